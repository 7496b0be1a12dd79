//! Whole nodes with slices whose links lead over switches that are not theirs: frames pass, take another way if one fails, and the tenant
//! learns that a link is down.

use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan};
use emulator::{Emulation, Handle, LinkQuality, SwitchOptions, Topology, Versions};
use flow::{DatapathId, MacAddr, PortNo};
use serde_json::Value;
use slice::state::{SliceLinkState, SliceState};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE, kill};

/// The hosts of the blue slice, at the ports 1 of s1 and s2. Those of the red one are at the ports 2.
const BLUE: [&str; 2] = ["b1", "b2"];
const RED: [&str; 2] = ["r1", "r2"];

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Switches s1, s2 … with these cables, and a host of each slice at s1 and s2.
fn topology(switches: u64, cables: &[&str]) -> Topology {
    let switch = |number: u64| SwitchPlan {
        name: format!("s{number}"),
        label: String::new(),
        datapath_id: DatapathId(number),
        place: None,
    };
    let end = |text: &str| {
        let (index, port) = text.strip_prefix('s').unwrap().split_once(':').unwrap();
        Endpoint::Switch { index: index.parse::<usize>().unwrap() - 1, port: PortNo(port.parse().unwrap()) }
    };
    let link = |one, two| Link { one, two, quality: LinkQuality::default() };
    let mut links: Vec<Link> = cables
        .iter()
        .map(|cable| cable.split_once('-').unwrap())
        .map(|(one, two)| link(end(one), end(two)))
        .collect();
    let mut hosts = Vec::new();
    for (port, names) in [(1, BLUE), (2, RED)] {
        for (place, name) in (1_u8..).zip(names) {
            // Both slices have the same addresses.
            let (mac, address) = (MacAddr([2, 0, 0, 0, 0, place]), [10, 0, 0, place].into());
            links.push(link(Endpoint::Host { index: hosts.len() }, end(&format!("s{place}:{port}"))));
            hosts.push(HostPlan { name: name.to_owned(), mac, address });
        }
    }
    Topology { switches: (1..=switches).map(switch).collect(), hosts, links }
}

/// s1 and s2 with s3 between them.
const LINE: [&str; 2] = ["s1:3-s3:1", "s3:2-s2:3"];

/// A node, and tenants with learning switches.
struct World {
    node: Node,
    tenants: Vec<Node>,
    network: Handle,
    topology: Topology,
}

/// A slice and how its packets are told apart.
fn slice(name: &str, tenant: &Node, keys: &str) -> String {
    format!("[slice.{name}]\ncontrollers = ['{}']\n{keys}\n", tenant.address())
}

/// A tenant's controller: a learning switch, and discovery of links.
fn tenant() -> Node {
    let config = format!("[network]\n[network.northbound]\nlisten = ['{}']\n", free());
    bed().node().config(&config).app("learning-switch").start_ready()
}

/// What a node with virtual links has besides its slices.
fn services() -> String {
    format!("[network]\n[network.northbound]\nlisten = ['{}']\n[network.paths]\nsettle_ms = 300\n", free())
}

impl World {
    /// The blue slice with these keys has a virtual link between the ports 3 of s1 and s2. The red one has the same ports, and no link.
    fn new(topology: Topology, versions: Versions, blue: &str, red: &str) -> World {
        World::start(topology, versions, |tenants| {
            services()
                + &slice("blue", &tenants[0], &format!("{blue}\nlinks = ['s1:3-s2:3']"))
                + &slice("red", &tenants[1], &format!("{red}\nports = ['s1:3', 's2:3']"))
        })
    }

    /// `config`: what the node has for these tenants.
    fn start(topology: Topology, versions: Versions, config: impl FnOnce(&[Node]) -> String) -> World {
        let tenants = vec![tenant(), tenant()];
        let config = config(&tenants);
        let node = bed().node().config(&config).log("info").start_ready();
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let network = Emulation::start(&topology, node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        World { node, tenants, network, topology }
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    fn wait_pings(&self) {
        let [one, two] = BLUE;
        self.node.wait("the hosts of the blue slice reach each other", |_| {
            self.ping(one, two) && self.ping(two, one)
        });
    }

    /// The first link of the blue slice.
    fn link(&self) -> SliceLinkState {
        self.links().swap_remove(0)
    }

    /// The links of the blue slice, as soon as the slice answers.
    fn links(&self) -> Vec<SliceLinkState> {
        let mut links = Vec::new();
        self.node.wait("the slice shows its links", |node| {
            let shown = node.bed().run(&["slice", "show", "blue", "--json"]);
            let state: Option<SliceState> = serde_json::from_slice(&shown.stdout).ok();
            links = state.map(|state| state.links).unwrap_or_default();
            !links.is_empty()
        });
        links
    }

    /// Waits until the link of the blue slice leads over this switch, or is down.
    fn wait_way(&self, over: Option<u64>) {
        self.node.wait(&format!("the link leads over {over:?}"), |_| {
            let link = self.link();
            match over {
                None => !link.is_up && link.why.is_some(),
                Some(switch) => link.is_up && link.hops.iter().any(|hop| hop.to.switch == DatapathId(switch)),
            }
        });
    }

    fn set_cable(&self, one: &str, two: &str, is_up: bool) {
        self.network.set_link(self.topology.links_between(one, two)[0], is_up);
    }

    /// Frames that a host received for itself. It ignores probes of the node.
    fn frames_to(&self, host: &str) -> u64 {
        let counters = self.network.host_counters().into_iter();
        counters.filter(|(name, _)| name == host).map(|(_, it)| it.frames_in - it.frames_ignored).sum()
    }

    /// The rules in a switch, each with its owner.
    fn rules_in(&self, switch: u64) -> Vec<String> {
        let all = self.node.flows().into_iter().filter(|it| it.datapath == DatapathId(switch));
        let rule = |it: &operator::contract::FlowView| format!("{} {} {}", it.owner, it.matching, it.actions);
        all.flat_map(|it| it.flows.iter().map(rule).collect::<Vec<_>>()).collect()
    }
}

fn vlan(port: u16) -> String {
    format!("isolation = 'vlan'\ntag = {port}0\nown_ports = ['s1:{port}', 's2:{port}']")
}

/// Frames of the blue slice pass the switch between, and none of the red slice, which has no link.
fn check_frames_pass(versions: Versions, blue: &str, red: &str) {
    let world = World::new(topology(3, &LINE), versions, blue, red);
    world.wait_pings();
    world.wait_way(Some(3));
    assert!(!world.ping(RED[0], RED[1]), "the red slice has no link");
    assert_eq!(
        world.frames_to(RED[1]),
        0,
        "no frame of the red slice passed, and none of the blue one came to it"
    );
    let rules = world.rules_in(3);
    assert!(rules.iter().all(|rule| !rule.starts_with("slice.")), "the slice has rules between: {rules:?}");
    let of_link = rules.iter().filter(|rule| rule.starts_with("flows ")).count();
    assert!(of_link >= 2, "a rule for each direction: {rules:?}");
}

#[test]
fn frames_of_a_slice_with_a_tag_pass_the_switch_between() {
    check_frames_pass(Versions::Only13, &vlan(1), &vlan(2));
}

#[test]
fn frames_of_a_slice_with_a_tag_pass_a_switch_of_openflow_1_0() {
    check_frames_pass(Versions::Only10, &vlan(1), &vlan(2));
}

#[test]
fn frames_of_a_slice_with_addresses_pass_the_switch_between() {
    let addresses = |port: u16| {
        format!(
            "isolation = 'address'\nprefix = '172.16.{port}.0/24'\naddresses = '10.0.0.0/24'\n\
             hosts = {{ '10.0.0.1' = 's1:{port}', '10.0.0.2' = 's2:{port}' }}"
        )
    };
    check_frames_pass(Versions::Only13, &addresses(1), &addresses(2));
}

/// The hosts of the red slice have the same addresses, so it has a tag.
const FLOWSPACE: &str =
    "isolation = 'flowspace'\nmatches = ['arp,vlan_tci=0', 'ip,vlan_tci=0']\nown_ports = ['s1:1', 's2:1']";

#[test]
fn frames_of_a_flowspace_pass_the_switch_between() {
    check_frames_pass(Versions::Only13, FLOWSPACE, &vlan(2));
}

#[test]
fn frames_of_a_flowspace_pass_a_switch_of_openflow_1_0() {
    check_frames_pass(Versions::Only10, FLOWSPACE, &vlan(2));
}

/// s1 and s2 with a switch next to each, and two ways between these.
const TWO_WAYS: [&str; 6] = ["s1:3-s3:1", "s3:2-s4:1", "s4:2-s6:1", "s3:3-s5:1", "s5:2-s6:2", "s6:3-s2:3"];

impl World {
    /// Waits until the link is up. Returns the switch that it leads over, and the one that it could lead over.
    fn used_and_unused(&self) -> (u64, u64) {
        self.node.wait("the link is up", |_| self.link().is_up);
        let hops = self.link().hops;
        if hops.iter().any(|hop| hop.to.switch == DatapathId(4)) { (4, 5) } else { (5, 4) }
    }

    /// Waits until the blue tenant knows of so many directions of links that are up.
    fn wait_discovered(&self, expected: usize) {
        let tenant = &self.tenants[0];
        tenant.wait(&format!("the tenant knows {expected} links"), |tenant| {
            let shown = tenant.bed().run(&["links", "--json"]);
            let links: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
            links
                .as_array()
                .is_some_and(|all| all.iter().filter(|link| link["state"] == "up").count() == expected)
        });
    }
}

#[test]
fn a_virtual_link_takes_another_way_and_is_down_for_the_tenant_while_there_is_none() {
    let world = World::new(topology(6, &TWO_WAYS), Versions::Only13, &vlan(1), &vlan(2));
    world.wait_pings();
    world.wait_discovered(2);
    let (first, second) = world.used_and_unused();
    let cable = |switch: u64, is_up| world.set_cable(&format!("s{switch}"), "s6", is_up);
    cable(first, false);
    world.wait_way(Some(second));
    world.wait_pings();
    cable(second, false);
    world.wait_way(None);
    world.wait_discovered(0);
    assert!(!world.ping(BLUE[0], BLUE[1]), "no way is left");
    cable(first, true);
    world.wait_way(Some(first));
    world.wait_discovered(2);
    world.wait_pings();
    // Rules of the way that is used no more are removed, as soon as the switch has no others to serve.
    let has_rules = |switch| world.rules_in(switch).iter().any(|rule| rule.starts_with("flows "));
    world.node.wait("the rules of the other way are gone", |_| has_rules(first) && !has_rules(second));
}

#[test]
fn two_links_of_a_slice_take_different_ways_and_one_is_down_while_there_is_one_way() {
    let cables = [&TWO_WAYS[..], &["s1:4-s3:9", "s6:9-s2:4"]].concat();
    // The slice has a ring, in which a learning switch would flood for ever. So no controller answers.
    let links = "links = ['s1:3-s2:3', 's1:4-s2:4']";
    let blue = format!("[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\n{links}\n", free());
    let world = World::start(topology(6, &cables), Versions::Only13, |_| services() + &blue);
    let over =
        |link: &SliceLinkState, switch: u64| link.hops.iter().any(|hop| hop.to.switch == DatapathId(switch));
    world.node.wait("both links are up, and each has a way of its own", |_| {
        let links = world.links();
        links.iter().all(|link| link.is_up && over(link, 4) != over(link, 5))
            && over(&links[0], 4) != over(&links[1], 4)
    });
    world.set_cable("s4", "s6", false);
    world.node.wait("one of them is down", |_| {
        let (up, down): (Vec<_>, Vec<_>) = world.links().into_iter().partition(|link| link.is_up);
        let is_told = |link: &SliceLinkState| {
            link.why.as_ref().is_some_and(|why| why.contains("a virtual link of a slice"))
        };
        up.len() == 1 && over(&up[0], 5) && down.iter().all(is_told)
    });
}

#[test]
fn links_outlive_the_service_and_are_followed_again_by_another_process_of_it() {
    let world = World::new(topology(6, &TWO_WAYS), Versions::Only13, &vlan(1), &vlan(2));
    world.wait_pings();
    let (first, second) = world.used_and_unused();
    kill(world.node.pid_of("paths").unwrap());
    for _ in 0..20 {
        assert!(world.ping(BLUE[0], BLUE[1]), "the rules stay");
        let link = world.link();
        assert!(link.is_up, "and the link stays up: {link:?}\n{}", world.node.log());
    }
    world.node.wait("the service runs again", |node| node.pid_of("paths").is_some());
    world.set_cable(&format!("s{first}"), "s6", false);
    world.wait_way(Some(second));
    world.wait_pings();
}

#[test]
fn applied_slices_get_their_links_and_removed_ones_leave_no_rules() {
    let world = World::new(topology(3, &LINE), Versions::Only13, &vlan(1), &vlan(2));
    world.wait_pings();
    let without = world.node.bed().run(&["slice", "remove", "blue"]);
    assert!(without.status.success(), "{without:?}");
    world.node.wait("no rules are left between", |_| {
        !world.rules_in(3).iter().any(|rule| rule.starts_with("flows "))
    });
    let again = slice("blue", &world.tenants[0], &format!("{}\nlinks = ['s1:3-s2:3']", vlan(1)));
    let file = world.node.bed().file("again.toml", &again);
    let applied = world.node.bed().run(&["slice", "apply", file.to_str().unwrap()]);
    assert!(applied.status.success(), "{applied:?}");
    world.wait_way(Some(3));
    world.wait_pings();
}

/// The two ways carry this, and all other cables 10 Mbit/s.
fn two_ways(mbps_over_s4: u64, mbps_over_s5: u64) -> Topology {
    let mut topology = topology(6, &TWO_WAYS);
    for link in &mut topology.links {
        link.quality.rate_bits_per_s = Some(10_000_000);
    }
    for (between, mbps) in [("s4", mbps_over_s4), ("s5", mbps_over_s5)] {
        let cable = topology.links_between(between, "s6")[0];
        topology.links[cable].quality.rate_bits_per_s = Some(mbps * 1_000_000);
    }
    topology
}

/// A slice with a link between s1 and s2, and a VNIC of 4 Mbit/s at each of them.
fn promised(name: &str, tenant: &Node, port: u16) -> String {
    let vnics = format!(
        "vnics = {{ E = {{ port = 's1:{port}', rate = '4M' }}, F = {{ port = 's2:{port}', rate = '4M' }} }}"
    );
    slice(name, tenant, &format!("isolation = 'vlan'\ntag = {port}0\nlinks = ['s1:3-s2:3']\n{vnics}"))
}

#[test]
fn a_link_whose_only_way_carries_less_stays_up_and_is_shown_until_it_can_move() {
    let rest = free();
    let network =
        format!("[network]\n[network.northbound]\nlisten = ['{rest}']\n[network.paths]\nsettle_ms = 300\n");
    let world = World::start(two_ways(10, 3), Versions::Only13, |tenants| {
        network + &promised("blue", &tenants[0], 1)
    });
    world.wait_way(Some(4));
    world.wait_pings();
    let shown = |words: &[&str]| String::from_utf8(world.node.bed().run(words).stdout).unwrap();
    let lack = "hop s5:2-s6:2 lacks 1.0M: its VNICs can put 4.0M there, and 3.0M of 3.0M is left";
    let sentences = [("list", "slice blue: link s1:3-s2:3 does not fit: "), ("show", "; does not fit: ")];
    let says = |(command, before): (&str, &str)| {
        let words = if command == "list" { vec!["slice", "list"] } else { vec!["slice", "show", "blue"] };
        shown(&words).contains(&format!("{before}{lack}\n"))
    };
    let link = || read(rest, "/api/v1/slices/blue/network")["links"][0].clone();
    let count = || read(rest, "/api/v1/slices/blue")["links_unfit"].clone();
    assert!(!sentences.into_iter().any(says), "it prefers the way that fits");
    world.set_cable("s4", "s6", false);
    world.wait_way(Some(5));
    world.wait_pings();
    world.node.wait("commands show what is lacking", |_| sentences.into_iter().all(says));
    world.node.wait("REST shows it", |_| {
        let text = link()["does_not_fit"].as_str().map(str::to_owned).unwrap_or_default();
        text.starts_with("hop of:0000000000000005/2-of:0000000000000006/2 lacks 1.0M: ") && count() == 1
    });
    world.node.wait_for_line("does not fit: hop of:0000000000000005/2-of:0000000000000006/2 lacks 1.0M");
    world.set_cable("s4", "s6", true);
    world.wait_way(Some(4));
    world.node.wait("commands show nothing", |_| !sentences.into_iter().any(says));
    world.node.wait("REST shows nothing", |_| {
        link()["up"] == true && link()["does_not_fit"].is_null() && count() == 0
    });
    world.node.wait_for_line("fits again");
    world.wait_pings();
}

/// What REST answers to an operator.
fn read(rest: SocketAddr, path: &str) -> Value {
    let mut connection = TcpStream::connect(rest).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_default()
}

#[test]
fn a_flow_over_a_virtual_link_is_booked_on_its_hops_and_lowers_the_label_of_another() {
    let world = World::start(two_ways(10, 10), Versions::Only13, |tenants| {
        services() + &promised("blue", &tenants[0], 1) + &promised("red", &tenants[1], 2)
    });
    let asked = |words: &[&str]| -> Vec<Value> {
        let shown = world.node.bed().run(&[&["slice"], words, &["--json"]].concat());
        let answer: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        answer["items"].as_array().cloned().unwrap_or_default()
    };
    let wait_label = |expected_kbps: u64| {
        world.node.wait(&format!("the label {expected_kbps}"), |_| {
            let labels = asked(&["labels", "red"]);
            !labels.is_empty() && labels.iter().all(|label| label["label_kbps"] == expected_kbps)
        });
    };
    wait_label(10_000);
    let wait_hops = |switch: u64| {
        let part = format!("-of:{switch:016x}/");
        world.node.wait(&format!("the flow leads over {switch}"), |_| {
            // The rules of the learning switch end after a while.
            world.ping(BLUE[0], BLUE[1]);
            let flows = asked(&["flows", "blue"]);
            let is_over = |flow: &Value| {
                let links = flow["links"].as_array().map_or(&[][..], Vec::as_slice);
                links.len() == 4
                    && links.iter().any(|link| link.as_str().is_some_and(|it| it.contains(&part)))
            };
            !flows.is_empty() && flows.iter().all(is_over)
        });
    };
    let (first, second) = world.used_and_unused();
    wait_hops(first);
    wait_label(6_000);
    world.set_cable(&format!("s{first}"), "s6", false);
    wait_hops(second);
    wait_label(6_000);
    world.set_cable(&format!("s{second}"), "s6", false);
    world.node.wait("there is no label", |_| asked(&["labels", "red"]).is_empty());
}
