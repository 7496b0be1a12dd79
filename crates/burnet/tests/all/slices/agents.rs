//! A whole node with agents on servers: labels follow what meters see, and nobody believes a liar. The agents are real, and their meters are the
//! test's own.

use edge::agent::{Agent, Commands, Event, Peer, Settings};
use edge::protocol::link::{Link, Opened};
use edge::protocol::{Entry, Key, Message, What};
use edge::shaper::{Deed, Place};
use edge::stream::Cutter;
use edge::vnic::{Address, AgentId, Directory, Flow, SliceId, Vnic, VnicId};
use emulator::{Emulation, FlowSpec, Handle, SwitchOptions, Topology, Versions};
use flow::MacAddr;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

const SERVICE: AgentId = AgentId(0);
const CAPACITY_KBPS: u64 = 10_000;
const BLUE_KBPS: u64 = 8_000;
/// From the VNIC E, which is on the server of agent 1, to F on that of agent 2.
const FLOW: Flow = Flow { sender: VnicId(1), receiver: VnicId(2) };
/// A step of the played time: less than an interval of an agent.
const STEP: Duration = Duration::from_millis(10);

fn key(of: u32) -> Key {
    Key([of as u8; 32])
}

fn mac(of: u32) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, of as u8])
}

/// A node with the slices blue and red on one link, whose blue VNICs have agents.
struct World {
    bed: Bed,
    node: Node,
    network: Handle,
    agents: SocketAddr,
    _blue: Node,
    _red: TcpListener,
}

impl World {
    fn new() -> World {
        World::with("")
    }

    /// With these further keys of the service.
    fn with(labels: &str) -> World {
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let blue = Bed::new(env!("CARGO_BIN_EXE_burnet")).node().app("learning-switch").start_ready();
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (red, agents, rest) =
            (listener(), listener().local_addr().unwrap(), listener().local_addr().unwrap());
        let keys = bed.folder().join("keys");
        let lines: String =
            [1u8, 2].iter().map(|of| format!("{of} {}\n", format!("{of:02x}").repeat(32))).collect();
        std::fs::write(&keys, lines).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&keys, private).unwrap();
        let vnic = |name: &str, of: u32, port: &str| {
            format!(
                "{name} = {{ port = '{port}', rate = '8M', number = {of}, mac = '{}', agent = {of} }}\n",
                mac(of)
            )
        };
        let config = format!(
            "[network]\nservices = ['discovery', 'labels', 'northbound']\n\
             [network.northbound]\nlisten = ['{rest}']\n\
             [network.labels]\nlisten = ['{agents}']\nkeys = '{}'\n{labels}\
             [slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nlinks = ['s1:3-s2:3']\n\
             [slice.blue.vnics]\n{}{}\
             [slice.red]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 20\nlinks = ['s1:3-s2:3']\n",
            keys.display(),
            blue.address(),
            vnic("E", 1, "s1:1"),
            vnic("F", 2, "s2:1"),
            red.local_addr().unwrap(),
        );
        let node = bed.node().config(&config).log("info").start_ready();
        let mut topology: Topology = "linear,2,2".parse().unwrap();
        for link in &mut topology.links {
            link.quality.rate_bits_per_s = Some(CAPACITY_KBPS * 1_000);
        }
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Emulation::start(&topology, node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        World { bed, node, network, agents, _blue: blue, _red: red }
    }

    /// The blue hosts reach each other, so that the slice has rules in both directions.
    fn ping(&self) {
        let is_answered = || {
            let report = self.network.begin_ping("h1s1", "h1s2", Duration::from_secs(5)).unwrap();
            report.recv().unwrap().is_complete()
        };
        self.node.wait("the hosts of the blue slice reach each other", |_| is_answered());
    }

    /// The label of red for the direction in which E sends to F.
    fn label(&self) -> Option<u64> {
        let done = self.bed.run(&["slice", "labels", "red", "--json"]);
        let labels: Value = serde_json::from_slice(&done.stdout).ok()?;
        let of = |item: &&Value| {
            item["link"].as_str().is_some_and(|link| link.starts_with("of:0000000000000001/3"))
        };
        labels["items"].as_array()?.iter().find(of)?["label_kbps"].as_u64()
    }

    /// Lets the servers work until the label is this.
    fn until(&self, what: &str, servers: &mut [Server], bytes: u64, expected: u64) {
        let (begin, mut seen) = (Instant::now(), None);
        while seen != Some(expected) {
            assert!(begin.elapsed() < PATIENCE, "{what}: the label is {seen:?}, not {expected}");
            (0..5).for_each(|_| work(servers, bytes));
            seen = self.label();
        }
    }
}

/// An agent, with the connection to the service.
struct Server {
    agent: Agent,
    service: SocketAddr,
    stream: Option<TcpStream>,
    cutter: Cutter,
    began: Instant,
    /// What the flow may send, as the shaper was told last.
    ceiling_bps: Option<u64>,
}

impl Server {
    fn new(of: u32, service: SocketAddr) -> Server {
        let vnic = |of: u32| Vnic {
            id: VnicId(of),
            slice: SliceId(0),
            agent: Some(AgentId(of)),
            address: Address { vlan: Some(10), mac: mac(of) },
            guarantee_bps: BLUE_KBPS * 1_000,
            strict: false,
        };
        let mut settings = Settings::for_nic(AgentId(of), CAPACITY_KBPS * 1_000, u64::from(of) + 77);
        settings.service = Some(SERVICE);
        let other = AgentId(3 - of);
        settings.peers = vec![Peer { agent: SERVICE, key: key(of) }, Peer { agent: other, key: key(9) }];
        let agent = Agent::new(0, settings, Directory::new([vnic(1), vnic(2)]).unwrap()).unwrap();
        Server {
            agent,
            service,
            stream: None,
            cutter: Cutter::default(),
            began: Instant::now(),
            ceiling_bps: None,
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// An event; datagrams for the other agent are returned.
    fn event(&mut self, event: Event<'_>) -> Vec<Vec<u8>> {
        let mut out = Commands::default();
        self.agent.on_event(self.now_ns(), event, &mut out);
        let (mine, others): (Vec<_>, Vec<_>) = out.datagrams.into_iter().partition(|(to, _)| *to == SERVICE);
        if self.stream.is_none() {
            self.stream = TcpStream::connect(self.service).ok();
            self.cutter = Cutter::default();
            self.stream.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
        }
        let written = self
            .stream
            .as_mut()
            .is_some_and(|stream| mine.iter().all(|(_, it)| stream.write_all(it).is_ok()));
        if !written {
            self.stream = None;
        }
        let mut others: Vec<Vec<u8>> = others.into_iter().map(|(_, datagram)| datagram).collect();
        for change in out.changes.iter().filter(|change| change.place == Place::Flow(FLOW)) {
            self.ceiling_bps = match change.deed {
                Deed::Add(rates) | Deed::Change(rates) => Some(rates.ceiling_bps),
                Deed::Remove => None,
            };
        }
        if !out.changes.is_empty() {
            others.extend(self.event(Event::Shaped(&[])));
        }
        others
    }

    fn hear(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = [0; 8192];
        let Some(stream) = &mut self.stream else { return Vec::new() };
        match stream.read(&mut buffer) {
            Ok(0) => self.stream = None,
            Ok(count) => self.cutter.push(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.stream = None,
        }
        let mut heard = Vec::new();
        while let Some(datagram) = self.cutter.next_datagram().unwrap() {
            heard.push(datagram.to_vec());
        }
        heard.iter().flat_map(|datagram| self.event(Event::Datagram(datagram))).collect()
    }
}

/// Both servers work for a while. The meter of the second sees so many bytes of the flow.
fn work(servers: &mut [Server], bytes: u64) {
    for at in 0..servers.len() {
        if at == 1 && bytes > 0 {
            servers[at].event(Event::Bytes(&[(FLOW, bytes)]));
        }
        let mut for_other = servers[at].event(Event::Time);
        for_other.extend(servers[at].hear());
        for datagram in for_other {
            // What the other answers is on its way with its next turn.
            let answers = servers.get_mut(1 - at).map(|other| other.event(Event::Datagram(&datagram)));
            answers
                .into_iter()
                .flatten()
                .for_each(|answer| drop(servers[at].event(Event::Datagram(&answer))));
        }
    }
    std::thread::sleep(STEP);
}

#[test]
fn a_flow_over_an_overbooked_link_is_shaped_to_its_share() {
    let world = World::with("link_rate = '6M'\n");
    world.ping();
    let mut servers = [Server::new(1, world.agents), Server::new(2, world.agents)];
    let mut until = |what: &str, bytes: u64, is_right: fn(Option<u64>) -> bool| {
        let begin = Instant::now();
        while !is_right(servers[0].ceiling_bps) {
            assert!(begin.elapsed() < PATIENCE, "{what}: {:?}", servers[0].ceiling_bps);
            work(&mut servers, bytes);
        }
    };
    // The VNICs may have 8 Mbit/s, and the link has 6.
    until("the service sends a cap", 5_000, |ceiling_bps| ceiling_bps == Some(6_000_000));
    until("the flow is silent, and has no cap", 0, |it| it.is_none_or(|bps| bps > 6_000_000));
}

#[test]
fn labels_follow_what_meters_see_also_after_the_service_was_restarted() {
    let world = World::new();
    world.ping();
    world.until("nobody meters, so the rules count", &mut [], 0, CAPACITY_KBPS - BLUE_KBPS);
    let mut servers = [Server::new(1, world.agents), Server::new(2, world.agents)];
    world.until("the meter sees nothing", &mut servers, 0, CAPACITY_KBPS);
    world.node.wait_for_line("agent 2 meters and shapes");
    world.ping();
    world.until("the meter sees the flow", &mut servers, 5_000, CAPACITY_KBPS - BLUE_KBPS);
    world.node.wait("reports have what the meter measured", |_| {
        (0..20).for_each(|_| work(&mut servers, 5_000));
        let report = world.bed.run(&["slice", "report", "blue", "--json"]).stdout;
        let report: Value = serde_json::from_slice(&report).unwrap();
        let of_e = report["items"].as_array().unwrap().iter().find(|it| it["vnic"] == "E").unwrap().clone();
        // 5,000 bytes in each step of 10 ms or more are at most 4 Mbit/s.
        of_e["measured"] == true && (1..=4_500_000).contains(&of_e["sends_bps"].as_u64().unwrap())
    });
    kill(world.node.pid_of("labels").unwrap());
    world.node.wait("the service runs again", |node| node.pid_of("labels").is_some());
    world.until("the agents have dialled again", &mut servers, 5_000, CAPACITY_KBPS - BLUE_KBPS);
    world.until("the flow is idle", &mut servers, 0, CAPACITY_KBPS);
    world.ping();
    world.until("rules alone do not count", &mut servers, 0, CAPACITY_KBPS);
    drop(servers);
    world.ping();
    world.until("the agents are gone", &mut [], 0, CAPACITY_KBPS - BLUE_KBPS);
    world.node.wait_for_line("agent 2 is silent");
}

#[test]
fn a_vnic_whose_agent_is_away_is_metered_at_its_port_until_the_agent_reports() {
    let world = World::new();
    world.ping();
    let is_shaped = |what: &str| {
        let shown = String::from_utf8(world.bed.run(&["slice", "show", "blue"]).stdout).unwrap();
        shown.lines().any(|line| line.starts_with(&format!("  VNIC E at port 1: {what}")))
    };
    let is_metered = || {
        let flows = world.node.flows();
        let mut all = flows.iter().flat_map(|switch| &switch.flows);
        all.any(|flow| flow.owner == "slice.blue" && flow.actions.contains("meter:"))
    };
    world.node.wait("the switch meters E", |_| is_shaped("shaped by meter "));
    // The rules follow the meter, and idle ones are gone until hosts speak again.
    world.node.wait("rules use the meter", |_| {
        world.ping();
        is_metered()
    });
    // The link carries 10 Mbit/s, and E is promised 8.
    let flow = world.network.start_flow(FlowSpec::udp("h1s1", "h1s2", 9_300_000)).unwrap();
    let mut servers = [Server::new(1, world.agents), Server::new(2, world.agents)];
    /// Of a hundred datagrams that were sent for a while, how many were lost.
    fn lost(world: &World, flow: emulator::FlowId, mut while_: impl FnMut()) -> u64 {
        let report = || world.network.flow_report(flow).unwrap();
        let before = report();
        (0..100).for_each(|_| while_());
        let after = report();
        let sent = after.sent_packets - before.sent_packets;
        (after.lost_packets - before.lost_packets) * 100 / sent.max(1)
    }
    let rest = || std::thread::sleep(STEP);
    world.node.wait("the meter drops what is beyond the rate", |_| lost(&world, flow, rest) >= 5);
    let begin = Instant::now();
    while !is_shaped("shaped by agent 1") {
        assert!(begin.elapsed() < PATIENCE, "the agent is not there");
        work(&mut servers, 5_000);
    }
    while lost(&world, flow, || work(&mut servers, 5_000)) > 1 {
        assert!(begin.elapsed() < PATIENCE, "datagrams are lost without a meter");
    }
    world.node.wait("the meter is gone from the rules", |_| !is_metered());
    drop(servers);
    world.node.wait("the switch meters E again", |_| is_shaped("shaped by meter "));
}

/// A connection of somebody who has written an agent of his own.
struct Liar {
    link: Link,
    stream: TcpStream,
    cutter: Cutter,
}

impl Liar {
    fn new(world: &World, of: u32, key: Key) -> Liar {
        let stream = TcpStream::connect(world.agents).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Liar { link: Link::new(AgentId(of), SERVICE, key, 0xbad), stream, cutter: Cutter::default() }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Greets, and waits until the service is known.
    fn greet(&mut self) {
        let hello = self.link.hello();
        self.say(&hello);
        let mut buffer = [0; 4096];
        while !self.link.is_up() {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the service closed the connection");
            self.cutter.push(&buffer[..count]);
            while let Some(datagram) = self.cutter.next_datagram().unwrap() {
                let opened = self.link.open(datagram).unwrap();
                assert!(!matches!(opened, Opened::Hello { .. }));
            }
        }
    }

    fn report(&mut self, number: u64, entries: &[(What, Flow)]) -> Vec<u8> {
        let entry = |(what, flow): &(What, Flow)| Entry { what: *what, flow: *flow, rate_bps: 0 };
        let entries = entries.iter().map(entry).collect();
        let bytes = self.link.seal(&Message::Report { number, entries }).unwrap();
        self.say(&bytes);
        bytes
    }
}

#[test]
fn lies_replays_and_foreign_vnics_change_nothing_and_are_incidents() {
    let world = World::new();
    world.ping();
    let left = CAPACITY_KBPS - BLUE_KBPS;
    world.until("the rules count", &mut [], 0, left);
    let nobody = Flow { sender: VnicId(0), receiver: VnicId(0) };
    // A stranger, and somebody with a wrong key: what he says to be is not there.
    Liar::new(&world, 5, key(1)).say(b"GET / HTTP/1.1\r\n\r\n");
    world.node.wait_for_line("incident: a malformed datagram was ignored");
    let mut forger = Liar::new(&world, 2, key(1));
    let hello = forger.link.hello();
    forger.say(&hello);
    world.node.wait_for_line("incident: a datagram in the name of agent 2 has a wrong signature");
    // Agent 1 is real, and speaks for the meter of agent 2.
    let mut liar = Liar::new(&world, 1, key(1));
    liar.greet();
    liar.report(1, &[(What::Reset, nobody)]);
    liar.report(2, &[(What::Ended, FLOW)]);
    world.node.wait_for_line("incident: agent 1 speaks for a VNIC that is not its own");
    world.until("its word about another's VNIC changed nothing", &mut [], 0, left);
    // Agent 2 itself: its meter sees nothing. What it said is recorded and sent again, and changes nothing.
    let mut own = Liar::new(&world, 2, key(2));
    own.greet();
    own.report(1, &[(What::Reset, nobody)]);
    let began = own.report(2, &[(What::Began, FLOW)]);
    own.report(3, &[(What::Ended, FLOW)]);
    let begin = Instant::now();
    let mut seen = None;
    while begin.elapsed() < PATIENCE {
        let beat = own.link.seal(&Message::Beat { newest: 3 }).unwrap();
        own.say(&beat);
        // The recorded datagram comes by a connection of the attacker.
        let mut attacker = TcpStream::connect(world.agents).unwrap();
        attacker.write_all(&began).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        seen = world.label();
        if seen == Some(CAPACITY_KBPS) && begin.elapsed() > Duration::from_secs(3) {
            break;
        }
    }
    assert_eq!(seen, Some(CAPACITY_KBPS), "the replay did not begin the flow again");
    world.node.wait_for_line("incident: datagram 2 of agent 2 came again and again");
}
