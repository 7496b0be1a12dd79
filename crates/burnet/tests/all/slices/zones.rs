//! A whole node with the slices of two tenants, whose controllers are Burnet nodes of OpenFlow 1.0 and 1.3, on one emulated network.

mod changes;
mod gone;
mod memory;
mod paused;

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use flow::{Action, Instruction, Match};
use openflow::message::{FLOW_ADD, FlowModFields, Hello};
use openflow::{Body, Message, Version};
use operator::contract::FlowsView;
use slice::state::SliceState;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

/// The hosts of the slices. Both slices have the same addresses.
const BLUE: [&str; 2] = ["h1s1", "h1s2"];
const RED: [&str; 2] = ["h2s1", "h2s2"];

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A tenant's controller of this version, a node with a learning switch.
fn tenant(version: &str) -> Node {
    let config = format!("[southbound]\nversions = ['{version}']\n");
    bed().node().config(&config).app("learning-switch").start_ready()
}

/// A line of two switches. At each, port 1 leads to a host of the blue slice, port 2 to one of the red, and port 3 to the other switch.
fn topology() -> Topology {
    let mut topology: Topology = "linear,2,2".parse().unwrap();
    for names in [BLUE, RED] {
        for (place, name) in (1_u8..).zip(names) {
            let index = topology.host_named(name).unwrap();
            topology.hosts[index].mac = flow::MacAddr([2, 0, 0, 0, 0, place]);
            topology.hosts[index].address = [10, 0, 0, place].into();
        }
    }
    topology
}

/// Two slices with the same switches, and the controllers of their tenants.
struct World {
    node: Node,
    blue: Node,
    red: Node,
    network: Handle,
}

impl World {
    /// Slices with a tag.
    fn new() -> World {
        World::with(|port| {
            format!("isolation = 'vlan'\ntag = {port}0\nown_ports = ['s1:{port}', 's2:{port}']\n")
        })
    }

    /// Slices with addresses between switches.
    fn with_addresses() -> World {
        World::with(|port| {
            format!(
                "isolation = 'address'\nprefix = '172.16.{port}.0/24'\naddresses = '10.0.0.0/24'\n\
                 hosts = {{ '10.0.0.1' = 's1:{port}', '10.0.0.2' = 's2:{port}' }}\n"
            )
        })
    }

    /// `isolation`: the keys of the slice whose hosts are at this port of each switch.
    fn with(isolation: impl Fn(u16) -> String) -> World {
        let (blue, red) = (tenant("1.3"), tenant("1.0"));
        let slice = |name: &str, port: u16, controller: &Node| {
            let (address, isolation) = (controller.address(), isolation(port));
            format!("[slice.{name}]\ncontrollers = ['{address}']\n{isolation}links = ['s1:3-s2:3']\n")
        };
        let config = slice("blue", 1, &blue) + &slice("red", 2, &red);
        let node = bed().node().config(&config).log("info").start_ready();
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Emulation::start(&topology(), node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        let world = World { node, blue, red, network };
        world.wait_tenants();
        world
    }

    /// Waits until both tenants have both of their switches.
    fn wait_tenants(&self) {
        for tenant in [&self.blue, &self.red] {
            tenant.wait("the tenant has its switches", |tenant| tenant.switches().len() == 2);
        }
    }

    /// Whether a ping was answered.
    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    /// Pings both ways until it works: the first packets may come before the rules.
    fn wait_pings(&self, [one, two]: [&str; 2]) {
        self.node
            .wait("the hosts of the slice reach each other", |_| self.ping(one, two) && self.ping(two, one));
    }

    /// Frames that hosts received.
    fn received(&self, hosts: [&str; 2]) -> u64 {
        let counters = self.network.host_counters().into_iter();
        counters.filter(|(name, _)| hosts.contains(&name.as_str())).map(|(_, it)| it.frames_in).sum()
    }

    /// The rules of an app in all switches, without their counters.
    fn rules(&self, app: &str) -> Vec<String> {
        let rule = |switch: &FlowsView| -> Vec<String> {
            let own = switch.flows.iter().filter(|flow| flow.owner == app);
            own.map(|it| format!("{} {} {} {}", switch.datapath, it.priority, it.matching, it.actions))
                .collect()
        };
        self.node.flows().iter().flat_map(rule).collect()
    }

    fn show(&self, slice: &str) -> SliceState {
        show(&self.node, slice)
    }
}

/// What `burnet slice show` prints.
fn show(node: &Node, slice: &str) -> SliceState {
    let shown = node.bed().run(&["slice", "show", slice, "--json"]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    serde_json::from_slice(&shown.stdout).unwrap()
}

#[test]
fn two_tenants_with_the_same_addresses_never_meet() {
    let world = World::new();
    world.wait_pings(BLUE);
    assert_eq!(world.received(RED), 0, "no frame of the blue slice reached a host of the red one");
    let blue_before = world.received(BLUE);
    world.wait_pings(RED);
    assert_eq!(world.received(BLUE), blue_before, "and none of the red slice one of the blue");
    let shown = world.show("blue");
    assert!(shown.switches.iter().all(|switch| switch.is_up && switch.rules > 0), "{shown:?}");
    let versions = |state: &SliceState| -> Vec<Option<String>> {
        state.switches.iter().map(|switch| switch.controllers[0].version.clone()).collect()
    };
    assert_eq!(versions(&shown), vec![Some("1.3".to_owned()); 2]);
    assert_eq!(versions(&world.show("red")), vec![Some("1.0".to_owned()); 2]);
    let listed = world.node.bed().run(&["slice", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("blue") && listed.contains("2 of 2"), "{listed}");
}

#[test]
fn two_tenants_whose_addresses_are_rewritten_never_meet() {
    let world = World::with_addresses();
    world.wait_pings(BLUE);
    assert_eq!(world.received(RED), 0, "no frame of the blue slice reached a host of the red one");
    let blue_before = world.received(BLUE);
    world.wait_pings(RED);
    assert_eq!(world.received(BLUE), blue_before, "and none of the red slice one of the blue");
    for (app, prefix) in [("slice.blue", "172.16.1."), ("slice.red", "172.16.2.")] {
        // Port 3 leads to the other switch: its packets have the addresses of the slice.
        let rules = world.rules(app);
        let of_link: Vec<&String> = rules.iter().filter(|rule| rule.contains("in_port=3")).collect();
        assert!(!of_link.is_empty() && of_link.iter().all(|rule| rule.contains(prefix)), "{rules:#?}");
        assert!(
            of_link.iter().any(|rule| rule.contains("10.0.0.")),
            "no rule writes the tenant's: {rules:#?}"
        );
    }
}

#[test]
fn a_slice_whose_process_is_killed_comes_back_its_rules_stay_and_the_other_loses_no_ping() {
    let world = World::new();
    world.wait_pings(BLUE);
    world.wait_pings(RED);
    let (before, pid) = (world.rules("slice.blue"), world.node.pid_of("slice.blue").unwrap());
    assert!(before.len() > 4, "{before:?}");
    kill(pid);
    for _ in 0..50 {
        assert!(world.ping(RED[0], RED[1]), "the red slice has lost a ping");
    }
    world.node.wait_app("slice.blue", "runs again", |app| app.status.pid.is_some_and(|now| now != pid));
    let after = world.rules("slice.blue");
    assert!(before.iter().all(|rule| after.contains(rule)), "before: {before:?}, after: {after:?}");
    world.node.wait("its tenant's controller is back", |_| {
        let switches = world.show("blue").switches;
        switches.iter().all(|switch| switch.controllers[0].version.is_some())
    });
    world.wait_pings(BLUE);
}

#[test]
fn a_controller_that_sends_rubbish_or_is_away_gets_one_line_and_is_dialled_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let slice = format!(
        "[slice.blue]\ncontrollers = ['{address}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:1', 's1:2']\n"
    );
    let node = bed().node().config(&slice).log("info").start_ready();
    let _network = node.network("single,2", &SwitchOptions::default());
    for _ in 0..3 {
        let (mut stream, _) = listener.accept().unwrap();
        // An echo request, before a hello.
        stream.write_all(&[4, 2, 0, 8, 0, 0, 0, 1]).unwrap();
    }
    let ended = format!(
        "controller {address} of switch of:0000000000000001: the controller's first message was no hello"
    );
    node.wait_for_line(&ended);
    drop(listener);
    node.wait_for_line("it cannot be reached");
    assert_eq!(node.log().matches(&ended).count(), 1, "{}", node.log());
    assert_eq!(node.app("slice.blue").status.restarts, 0);
}

/// A controller of 1.3 that reads when the test says so.
struct Reader {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Reader {
    /// Accepts the connection of a slice, and asks for all packets. Returns when the rule is in the switch.
    fn accept(listener: &TcpListener) -> Reader {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut reader = Reader { stream, bytes: Vec::new() };
        reader.say(1, Body::Hello(Hello::default()));
        let up = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
        let add = FlowModFields { command: FLOW_ADD, ..FlowModFields::default() }.with(Match::any(), up);
        reader.say(2, Body::FlowMod(add));
        reader.say(3, Body::BarrierRequest);
        reader.read_until(|message| message.body == Body::BarrierReply && message.xid == 3);
        reader
    }

    fn say(&mut self, xid: u32, body: Body) {
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid, body }.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// Reads so many bytes at most, and keeps them.
    fn read(&mut self, most: usize) {
        let mut buffer = vec![0; most];
        let count = self.stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the slice closed the connection");
        self.bytes.extend_from_slice(&buffer[..count]);
    }

    /// Reads messages up to one that is wanted. Returns how many there were before it.
    fn read_until(&mut self, is_wanted: impl Fn(&Message) -> bool) -> usize {
        for before in 0.. {
            while self.bytes.len() < 4 || self.bytes.len() < self.length() {
                self.read(64 << 10);
            }
            let rest = self.bytes.split_off(self.length());
            let message = Message::decode(&std::mem::replace(&mut self.bytes, rest)).unwrap();
            if is_wanted(&message) {
                return before;
            }
        }
        unreachable!()
    }

    fn length(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }
}

#[test]
fn a_controller_that_reads_slowly_loses_packet_ins_and_neither_answers_nor_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let slice = format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:1', 's1:2']\n",
        listener.local_addr().unwrap()
    );
    let node = bed().node().config(&slice).log("info").start_ready();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = node.network("single,2", &options);
    let mut reader = Reader::accept(&listener);
    let frame = |kind: [u8; 2], length: usize| {
        let head = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8][..], &kind].concat();
        [head, vec![0; length]].concat()
    };
    let (begin, mut sent) = (Instant::now(), 0);
    let unread = || show(&node, "blue").switches[0].packet_ins_unread;
    while unread() == 0 {
        assert!(begin.elapsed() < PATIENCE, "after {sent} packets, all of them wait");
        (0..500).for_each(|_| network.send_frame("h1", frame([0x88, 0xb5], 1_400)).unwrap());
        sent += 500;
        // It reads something, so that it is not taken for one that does not read at all.
        reader.read(64 << 10);
    }
    reader.say(4, Body::EchoRequest(vec![1, 2, 3]));
    reader.say(5, Body::BarrierRequest);
    let heard = reader.read_until(|message| message.body == Body::EchoReply(vec![1, 2, 3]));
    assert!(heard > 0 && heard < sent, "{heard} of {sent}");
    reader.read_until(|message| message.body == Body::BarrierReply && message.xid == 5);
    // It has read all. So it gets packet-ins again.
    let is_late =
        |message: &Message| matches!(&message.body, Body::PacketIn(it) if it.data[12..14] == [0x88, 0xb6]);
    network.send_frame("h1", frame([0x88, 0xb6], 60)).unwrap();
    reader.read_until(is_late);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the connection is the first");
    let shown = node.bed().run(&["slice", "show", "blue"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(" above the limit, ") && !shown.contains(", 0 not read"), "{shown}");
}
