//! A whole node with an emulated ring: intents stay true through a failed link, a full table and a restart, and packets go on.

use emulator::{FlowId, FlowReport, FlowSpec, Handle, SwitchOptions, Topology};
use rustix::process::Signal;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE, kill, signal};

/// Payload bits a second, and bytes of a packet: a packet each millisecond.
const BITS_PER_S: u64 = 800_000;
const PAYLOAD_BYTES: usize = 100;

/// Enough packets that one more change would show.
const PACKETS: u64 = 300;

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A node with all services of the network, which answers ARP in the names of hosts.
fn start(bed: &Bed, listen: SocketAddr, more: &str) -> Node {
    let config = format!(
        "[network]\n[network.northbound]\nlisten = ['{}']\n[network.paths]\nsettle_ms = 500\n[app.proxy-arp]\n{more}",
        free()
    );
    bed.node().config(&config).log("info").listen(listen).start_ready()
}

/// What a command of the network view prints as JSON. `Null` while the node cannot answer it.
fn burnet(node: &Node, words: &[&str]) -> Value {
    let output = node.bed().run(&[words, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn count(node: &Node, words: &[&str]) -> usize {
    burnet(node, words).as_array().map_or(0, Vec::len)
}

fn mac(host: usize) -> String {
    format!("00:00:00:00:00:{host:02x}")
}

/// Waits until the node knows all hosts and links of the ring.
fn wait_known(node: &Node, network: &Handle, links: usize) {
    node.wait("all links are known", |node| count(node, &["links"]) == links);
    node.wait("all hosts are known", |node| {
        network.ping_all(Duration::from_millis(50));
        let hosts = burnet(node, &["hosts"]);
        let has_address = |host: &&Value| host["addresses"].as_array().is_some_and(|it| !it.is_empty());
        hosts.as_array().is_some_and(|hosts| hosts.iter().filter(has_address).count() == network.hosts())
    });
}

fn add(node: &Node, one: usize, two: usize, more: &[&str]) -> u64 {
    let (one, two) = (mac(one), mac(two));
    let output = node.bed().run(&[&["intents", "add", &one, &two, "--wait", "--json"], more].concat());
    let said = format!("{output:?}\n{}", node.log());
    assert!(output.status.success(), "{said}");
    let intent: Value = serde_json::from_slice(&output.stdout).expect(&said);
    intent["id"].as_u64().expect(&said)
}

fn intent(node: &Node, id: u64) -> Value {
    let all = burnet(node, &["intents"]);
    let found = all.as_array().and_then(|all| all.iter().find(|intent| intent["id"].as_u64() == Some(id)));
    found.cloned().unwrap_or_default()
}

/// The links of the working path of an intent, from its first host to its second one: `s1-s2`.
fn trunks(node: &Node, id: u64) -> Vec<String> {
    let all = burnet(node, &["paths"]);
    // The way there has the number 0, and a backup would have a letter behind it.
    let is_its = |path: &&Value| path["id"] == format!("{id}.0");
    let name = |link: &Value| {
        let ends: Vec<String> = link.as_str().unwrap().split('-').map(switch_name).collect();
        ends.join("-")
    };
    let paths = all.as_array().into_iter().flatten().filter(is_its);
    paths.flat_map(|path| path["links"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()).collect()
}

/// `of:0000000000000003/2` is at `s3`.
fn switch_name(point: &str) -> String {
    let id = point.split('/').next().unwrap().trim_start_matches("of:");
    format!("s{}", u64::from_str_radix(id, 16).unwrap())
}

fn number_of(topology: &Topology, trunk: &str) -> usize {
    let (one, two) = trunk.split_once('-').unwrap();
    topology.links_between(one, two)[0]
}

/// A stream of packets from one host to another.
struct Traffic<'n> {
    network: &'n Handle,
    flow: FlowId,
    lost_before: u64,
}

impl Traffic<'_> {
    fn start<'n>(node: &Node, network: &'n Handle, from: &str, to: &str) -> Traffic<'n> {
        let spec = FlowSpec { payload_bytes: PAYLOAD_BYTES, ..FlowSpec::udp(from, to, BITS_PER_S) };
        let flow = network.start_flow(spec).unwrap();
        let mut traffic = Traffic { network, flow, lost_before: 0 };
        node.wait("packets arrive", |_| traffic.report().delivered_packets > 0);
        traffic.lost_before = traffic.missing();
        traffic
    }

    fn report(&self) -> FlowReport {
        self.network.flow_report(self.flow).unwrap()
    }

    fn missing(&self) -> u64 {
        let report = self.report();
        report.sent_packets.saturating_sub(report.delivered_packets)
    }

    /// How many packets were lost since the traffic began to arrive.
    fn lost(&self) -> u64 {
        self.missing().saturating_sub(self.lost_before)
    }

    /// Waits until some more packets were sent.
    fn go_on(&self, node: &Node) {
        let before = self.report().sent_packets;
        node.wait("packets are sent", |_| self.report().sent_packets >= before + PACKETS);
    }

    /// Waits until some more packets have arrived.
    fn wait_arrival(&self, node: &Node) {
        let before = self.report().delivered_packets;
        node.wait("packets arrive again", |_| self.report().delivered_packets >= before + PACKETS);
    }
}

/// One packet may be in flight when the link fails.
const IN_FLIGHT: u64 = 1;

#[test]
fn a_protected_intent_goes_on_through_a_failed_link_while_nobody_computes_anything() {
    let bed = bed();
    let node = start(&bed, free(), "");
    let topology = Topology::ring(4, 1).unwrap();
    let network = node.network("ring,4,1", &SwitchOptions::default());
    wait_known(&node, &network, 8);
    let id = add(&node, 1, 3, &["--protected"]);
    let traffic = Traffic::start(&node, &network, "h1", "h3");
    let trunk = number_of(&topology, &trunks(&node, id)[0]);
    let service = node.pid_of("paths").unwrap();
    signal(service, Signal::STOP);
    network.set_link(trunk, false);
    traffic.go_on(&node);
    let lost = traffic.lost();
    signal(service, Signal::CONT);
    assert!(lost <= IN_FLIGHT, "{lost} packets were lost while only the switches knew of the failure");
    // The ring has no second path now: the intent says so, and goes on.
    node.wait("the intent knows that its protection is missing", |node| {
        let intent = intent(node, id);
        intent["state"] == "installed"
            && intent["reason"].as_str().is_some_and(|why| why.starts_with("protection"))
    });
    traffic.go_on(&node);
    network.set_link(trunk, true);
    node.wait("the intent is protected again", |node| {
        let intent = intent(node, id);
        intent["state"] == "installed" && intent["reason"].is_null()
    });
    traffic.go_on(&node);
    let lost = traffic.lost();
    assert!(lost <= IN_FLIGHT, "{lost} packets were lost in all\n{}", node.log());
}

#[test]
fn a_restored_intent_takes_another_path_and_stays_there_when_the_link_heals() {
    let bed = bed();
    let node = start(&bed, free(), "");
    let topology = Topology::ring(4, 1).unwrap();
    let network = node.network("ring,4,1", &SwitchOptions::default());
    wait_known(&node, &network, 8);
    let id = add(&node, 1, 3, &[]);
    let traffic = Traffic::start(&node, &network, "h1", "h3");
    let first = trunks(&node, id);
    let trunk = number_of(&topology, &first[0]);
    network.set_link(trunk, false);
    traffic.wait_arrival(&node);
    node.wait("it is installed", |node| intent(node, id)["state"] == "installed");
    let second = trunks(&node, id);
    assert!(second != first && !second.contains(&first[0]), "{second:?}");
    let lost = traffic.lost();
    println!("{lost} packets at 1 ms spacing were lost until the intent was restored");
    // From now on, none is lost: not while the link heals, and not when the way back fails.
    network.set_link(trunk, true);
    node.wait("the link is known again", |node| {
        let links = burnet(node, &["links"]);
        links.as_array().is_some_and(|links| links.iter().filter(|link| link["state"] == "up").count() == 8)
    });
    traffic.go_on(&node);
    assert_eq!(trunks(&node, id), second, "a path that serves is kept");
    assert_eq!(traffic.lost(), lost, "{}", node.log());
}

#[test]
fn a_full_table_is_named_and_routed_around() {
    let bed = bed();
    // The app fills the table of switch 1.
    let filler = format!(
        "[app.planner]\npath = '{}'\n[app.planner.capabilities]\n'view.read' = true\n'flows.write' = ['table=0,priority=100']\n\
         [app.planner.settings]\nsets = 1\nrules = 200\n",
        bed.example("planner").display()
    );
    let node = start(&bed, free(), &filler);
    let options = SwitchOptions { n_tables: 1, max_entries: 100, ..SwitchOptions::default() };
    let network = node.network("ring,4,1", &options);
    wait_known(&node, &network, 8);
    node.wait("the table of switch 1 is full", |node| {
        let full = |view: &&operator::contract::FlowsView| view.datapath.0 == 1 && view.flows.len() >= 90;
        node.flows().iter().any(|view| full(&view))
    });
    // From host 2 to host 4, one way leads through switch 1, and one through switch 3.
    for priority in 30_001..30_006 {
        let id = add(&node, 2, 4, &["--priority", &priority.to_string()]);
        let way = trunks(&node, id);
        assert!(way.iter().all(|trunk| !trunk.contains("s1")), "{way:?}");
    }
    let output = bed.run(&["intents", "add", &mac(1), &mac(3), "--wait"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("the table of the switch of:0000000000000001 is full"),
        "{said}"
    );
}

/// The entries of all switches.
fn entries(network: &Handle) -> Vec<usize> {
    network.switch_views().iter().map(|view| view.flow_entries).collect()
}

/// What the node has changed since an observer began: adds and modifies of wanted rules, and removals of any rule.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    wanted: usize,
    removals: usize,
}

/// The priorities of the planner's rules, and of intents.
const WANTED: [u16; 2] = [100, 30_000];

fn changes(observer: &emulator::Observer) -> Changes {
    let mut changes = Changes::default();
    while let Ok(event) = observer.try_next() {
        let emulator::NetworkEvent::FlowMod { flow_mod, .. } = event else { continue };
        changes.wanted += usize::from(flow_mod.command < 3 && WANTED.contains(&flow_mod.priority));
        changes.removals += usize::from(flow_mod.command >= 3);
    }
    changes
}

/// The node is killed and starts again. Its services find the rules of a planner and of an intent, and leave them alone. Half of the rules
/// and more are in one switch.
fn restart_with(sets: usize, rules_of_a_set: usize) {
    let bed = bed();
    let listen = free();
    let planner = format!(
        "[app.planner]\npath = '{}'\n[app.planner.capabilities]\n'view.read' = true\n'flows.write' = ['table=0,priority=100']\n\
         [app.planner.settings]\nsets = {sets}\nrules = {rules_of_a_set}\nswitches = 4\n[network.flows]\naudit_interval_s = 5\n",
        bed.example("planner").display()
    );
    let wanted = sets * rules_of_a_set;
    let installed = format!("all {sets} sets are installed");
    let mut node = start(&bed, listen, &planner);
    let options = SwitchOptions {
        max_entries: 2 * u32::try_from(wanted).unwrap() + 10_000,
        ..SwitchOptions::default()
    };
    let network = node.network("ring,4,1", &options);
    wait_known(&node, &network, 8);
    let id = add(&node, 1, 3, &["--priority", "30000"]);
    let way = trunks(&node, id);
    let began = std::time::Instant::now();
    while !node.log().contains(&installed) {
        assert!(began.elapsed() < 5 * PATIENCE, "{:?}\n{}", entries(&network), node.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    let flows = node.app("flows");
    assert_eq!(flows.status.restarts, 0, "the service was ended: {}", node.log());
    let traffic = Traffic::start(&node, &network, "h1", "h3");
    // A whole reading of each switch after the last rule.
    traffic.go_on(&node);
    let before = entries(&network);
    assert!(before.iter().sum::<usize>() > wanted && before[0] > wanted / 2, "{before:?}");
    kill(node.pid());
    node.wait_for_end();
    traffic.go_on(&node);
    let observer = network.observer();
    let flow_mods = network.counters().flow_mods;
    let lines = node.log().matches(&installed).count();
    let node = start(&bed, listen, &planner);
    network.wait_connected(PATIENCE).unwrap();
    node.wait("the sets are installed again", |node| node.log().matches(&installed).count() > lines);
    node.wait("the intent is installed again", |node| intent(node, id)["state"] == "installed");
    assert_eq!(trunks(&node, id), way);
    // Long enough for an audit of each switch.
    let audited = std::time::Instant::now() + Duration::from_secs(6);
    node.wait("audits are over", |_| std::time::Instant::now() > audited);
    traffic.go_on(&node);
    assert_eq!(node.app("flows").status.restarts, 0, "the service was ended: {}", node.log());
    assert_eq!(observer.dropped(), 0, "all flow mods were seen");
    let (changes, after) = (changes(&observer), entries(&network));
    // The rules of the kernel and of other services are added once more: fewer than ten for each switch.
    let sent = network.counters().flow_mods - flow_mods;
    println!(
        "{wanted} rules, {} of them in one switch: {changes:?} and {sent} flow mods in all to 4 switches after the restart, \
         {} of {} packets lost",
        before[0],
        traffic.lost(),
        traffic.report().sent_packets,
    );
    assert_eq!(changes, Changes::default());
    assert!(sent < 40, "{sent} flow mods after the restart");
    assert_eq!((after, traffic.lost()), (before, 0), "{}", node.log());
}

/// How many rules the planner wants. `BURNET_RESTART_RULES` sets another number: 100,000 take two minutes.
const RULES: usize = 20_000;
const RULES_OF_A_SET: usize = 500;

#[test]
fn a_killed_node_finds_its_rules_and_removes_and_adds_none() {
    let wanted = std::env::var("BURNET_RESTART_RULES").ok().map_or(RULES, |text| text.parse().unwrap());
    restart_with(wanted / RULES_OF_A_SET, RULES_OF_A_SET);
}
