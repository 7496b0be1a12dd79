//! Flows of a slice with three switches in a triangle.
//!
//! ```text
//!   A,B at s1:1, s1:2     C at s2:1     D at s3:1      s1:3 - s2:3, s1:4 - s3:3, s2:4 - s3:4
//! ```

use super::*;
use crate::event::Event;
use crate::output::Connection;
use crate::plan::{Isolation, Limits, LinkPlan, Numbers, PortPlan, SlicePlan, SwitchPlan};
use crate::port::PortFacts;
use crate::slicer::Slicer;
use crate::vnic::Vnic;
use flow::frame::FrameFields;
use flow::text::{parse_instructions, parse_match};
use flow::{Action, Field, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use proptest::prelude::*;

const VNICS: [(&str, u64, u32); 4] = [("A", 1, 1), ("B", 1, 2), ("C", 2, 1), ("D", 3, 1)];
const LINKS: [(u64, u32, u64, u32); 3] = [(1, 3, 2, 3), (1, 4, 3, 3), (2, 4, 3, 4)];

fn end(switch: u64, port: u32) -> End {
    End { datapath: DatapathId(switch), port: PortNo(port) }
}

/// Physical ports are 10 higher than those that the tenant sees.
fn plan(isolation: Isolation) -> SlicePlan {
    let port =
        |shown: u32| PortPlan { port: PortNo(shown + 10), shown_as: PortNo(shown), is_edge: shown < 3 };
    let switch = |number| SwitchPlan {
        datapath: DatapathId(number),
        shown_as: DatapathId(number),
        ports: (1..=4).map(port).collect(),
    };
    SlicePlan {
        name: "blue".to_owned(),
        isolation,
        is_read_only: false,
        switches: (1..=3).map(switch).collect(),
        links: LINKS.map(|(s, p, t, q)| LinkPlan { from: end(s, p), to: end(t, q) }).to_vec(),
        limits: Limits::default(),
        numbers: Numbers { groups: 100..108, meters: 200..204 },
    }
}

fn vnics() -> Vec<Vnic> {
    VNICS.map(|(name, switch, port)| Vnic { name: name.to_owned(), at: end(switch, port) }).to_vec()
}

/// The slice with a controller at each switch, and what it has told of its flows.
struct Rig {
    slicer: Slicer,
    told: BTreeMap<(String, String), FlowPath>,
    plan: SlicePlan,
}

impl Rig {
    fn new(isolation: Isolation) -> Rig {
        let plan = plan(isolation);
        let slicer = Slicer::new(&plan).unwrap().tracing(&plan, &vnics()).unwrap();
        let mut rig = Rig { slicer, told: BTreeMap::new(), plan };
        for switch in 1..=3 {
            let facts = |port: u32| PortFacts {
                port: PortNo(port + 10),
                hw_addr: MacAddr([2, 0, 0, 0, 9, port as u8]),
                name: format!("port {port}"),
                is_live: true,
                curr_speed_kbps: 0,
            };
            let ports = (1..=4).map(facts).collect();
            rig.event(Event::SwitchUp { datapath: DatapathId(switch), version: Version::V1_3, ports });
            rig.event(Event::ControllerUp(Connection { datapath: DatapathId(switch), controller: 0 }));
            let hello = Hello { elements: vec![HelloElement::VersionBitmap(vec![1 << 4])] };
            rig.say(switch, Body::Hello(hello));
        }
        rig
    }

    fn event(&mut self, event: Event<'_>) {
        self.slicer.on_event(0, event, &mut Vec::new());
    }

    fn say(&mut self, switch: u64, body: Body) {
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid: 1, body }.encode(&mut bytes).unwrap();
        let connection = Connection { datapath: DatapathId(switch), controller: 0 };
        self.event(Event::Message(connection, &bytes));
    }

    fn rule(&mut self, command: u8, switch: u64, priority: u16, matching: &str, actions: &str) {
        let fields = FlowModFields { priority, command, ..FlowModFields::default() };
        let matching = parse_match(matching).unwrap();
        self.say(switch, Body::FlowMod(fields.with(matching, parse_instructions(actions).unwrap())));
    }

    fn add(&mut self, switch: u64, priority: u16, matching: &str, actions: &str) {
        self.rule(FLOW_ADD, switch, priority, matching, actions);
    }

    /// Takes the changes, and returns how many there were.
    fn take(&mut self) -> usize {
        let mut changes = Vec::new();
        while self.slicer.trace_flows(1, &mut changes) {}
        let count = changes.len();
        for FlowChange { from, to, path } in changes {
            match path {
                Some(path) => drop(self.told.insert((from, to), path)),
                None => {
                    assert!(self.told.remove(&(from, to)).is_some(), "an end of a flow that was not told")
                }
            }
        }
        count
    }

    /// The flows that were told, as `A>C s1-s2 s2-s3`.
    fn flows(&mut self) -> Vec<String> {
        self.take();
        let link = |link: &crate::vnic::PhysicalLink| format!(" s{}-s{}", link.from.0, link.to.0);
        let flow = |((from, to), path): (&(String, String), &FlowPath)| {
            assert!(path.links.iter().all(|link| link.from_port.0 > 10 && link.to_port.0 > 10));
            assert_eq!(path.rules as usize, path.links.len() + 1);
            format!("{from}>{to}{}", path.links.iter().map(link).collect::<String>())
        };
        self.told.iter().map(flow).collect()
    }

    /// What tracing from nothing tells of the same rules.
    fn traced_anew(&self) -> BTreeMap<(String, String), FlowPath> {
        let plan = &self.plan;
        let mut fresh = Slicer::new(plan).unwrap().tracing(plan, &vnics()).unwrap();
        let flows = fresh.flows.as_mut().unwrap();
        for (datapath, switch) in &self.slicer.switches {
            let at = |port| End { datapath: *datapath, port };
            for rule in switch.rules.iter() {
                let hops = crate::hops::hops_of(rule, &switch.space, &switch.groups, at);
                flows.set_rule(*datapath, rule.number, hops);
            }
        }
        let mut changes = Vec::new();
        assert!(!flows.advance(usize::MAX, &mut changes));
        let path = |change: FlowChange| Some(((change.from, change.to), change.path?));
        changes.into_iter().filter_map(path).collect()
    }
}

fn vlan() -> Rig {
    Rig::new(Isolation::Vlan(7))
}

/// Rules as (switch, priority, match, actions).
fn check(rules: &[(u64, u16, &str, &str)], expected: &[&str]) {
    let mut rig = vlan();
    rules
        .iter()
        .for_each(|(switch, priority, matching, actions)| rig.add(*switch, *priority, matching, actions));
    assert_eq!(rig.flows(), expected, "{rules:?}");
}

#[test]
fn a_flow_follows_the_rules_for_its_destination() {
    let to_c = "dl_dst=02:00:00:00:00:0c";
    let rules = [
        (1, 5, "in_port=1,dl_dst=02:00:00:00:00:0c", "output:3"),
        (2, 5, to_c, "output:1"),
        (3, 5, to_c, "output:4"),
    ];
    check(&rules[..1], &[]);
    check(&rules, &["A>C s1-s2", "D>C s3-s2"]);
    // A rule above takes the packets another way, or drops them.
    let other = (1, 9, to_c, "output:4");
    check(&[rules[0], rules[1], rules[2], other], &["A>C s1-s3 s3-s2", "B>C s1-s3 s3-s2", "D>C s3-s2"]);
    check(&[rules[0], rules[1], rules[2], (1, 9, to_c, "drop")], &["D>C s3-s2"]);
    check(&[rules[0], rules[1], rules[2], (1, 9, to_c, "controller")], &["D>C s3-s2"]);
    // One that decides only some of them hides nothing. Its packets come first.
    let web = (1, 9, "tcp,dl_dst=02:00:00:00:00:0c,tp_dst=80", "output:4");
    check(&[rules[0], rules[1], rules[2], web], &["A>C s1-s3 s3-s2", "B>C s1-s3 s3-s2", "D>C s3-s2"]);
}

#[test]
fn several_outputs_are_a_path_for_each_vnic_and_loops_are_none() {
    check(&[(1, 5, "in_port=1", "output:2,output:3"), (2, 5, "", "output:1")], &["A>B", "A>C s1-s2"]);
    check(&[(1, 1, "", "flood"), (2, 1, "in_port=3", "output:1")], &["A>B", "A>C s1-s2", "B>A", "B>C s1-s2"]);
    let around = [(1, 1, "", "output:3"), (2, 1, "", "output:4"), (3, 1, "", "output:3")];
    check(&around, &[]);
    check(
        &[around[0], around[1], around[2], (3, 2, "tcp", "output:1")],
        &["A>D s1-s2 s2-s3", "B>D s1-s2 s2-s3", "C>D s2-s3"],
    );
}

#[test]
fn an_address_that_is_behind_one_vnic_is_no_source_of_another() {
    let both = "dl_src=02:00:00:00:00:0a,dl_dst=02:00:00:00:00:0c";
    let there = [(1, 5, both, "output:3"), (2, 5, both, "output:1")];
    check(&there, &["A>C s1-s2", "B>C s1-s2"]);
    // The way back says where the address is.
    let back = "dl_src=02:00:00:00:00:0c,dl_dst=02:00:00:00:00:0a";
    let home = [(2, 5, back, "output:3"), (1, 5, back, "output:1")];
    check(&[there[0], there[1], home[0], home[1]], &["A>C s1-s2", "C>A s2-s1"]);
}

#[test]
fn frames_by_which_hosts_find_each_other_are_no_flows() {
    check(&[(1, 5, "arp", "flood"), (1, 5, "dl_dst=ff:ff:ff:ff:ff:ff", "flood")], &[]);
    check(&[(1, 5, "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", "flood")], &[]);
    check(&[(1, 5, "in_port=1,dl_dst=01:00:5e:00:00:05", "output:2")], &["A>B"]);
}

#[test]
fn actions_change_what_later_rules_match() {
    let rules = [
        (1, 5, "in_port=1,ip,nw_dst=10.0.0.3", "set_field:02:00:00:00:00:0c->eth_dst,output:3"),
        (2, 5, "dl_dst=02:00:00:00:00:0c", "output:1"),
        (2, 6, "ip,nw_dst=10.0.0.4", "drop"),
    ];
    check(&rules, &["A>C s1-s2"]);
    check(&[rules[0], (2, 5, "dl_dst=02:00:00:00:00:0d", "output:1")], &[]);
}

#[test]
fn all_buckets_of_a_group_are_ways_or_the_first() {
    let flows = |group_type| {
        let mut rig = vlan();
        let bucket = |port| Bucket {
            weight: 0,
            watch_port: PortNo(port),
            watch_group: GROUP_ANY,
            actions: vec![Action::output(PortNo(port))],
        };
        let buckets = vec![bucket(3), bucket(2)];
        rig.say(1, Body::GroupMod(GroupMod { command: 0, group_type, group_id: 5, buckets }));
        // The switch confirms the group.
        rig.slicer.switches.get_mut(&DatapathId(1)).unwrap().claims = 0;
        rig.add(1, 5, "in_port=1", "group:5");
        rig.add(2, 5, "", "output:1");
        let before = rig.flows();
        rig.say(
            1,
            Body::GroupMod(GroupMod { command: 1, group_type, group_id: 5, buckets: vec![bucket(2)] }),
        );
        (before, rig.flows())
    };
    let is = |flows: &[&str]| flows.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(flows(GROUP_TYPE_ALL), (is(&["A>B", "A>C s1-s2"]), is(&["A>B"])));
    assert_eq!(flows(GROUP_TYPE_FAST_FAILOVER), (is(&["A>C s1-s2"]), is(&["A>B"])));
}

#[test]
fn only_packets_of_the_flowspace_make_flows() {
    let space = ["ip,nw_dst=10.0.0.0/8", "arp"].map(|text| parse_match(text).unwrap());
    let mut rig = Rig::new(Isolation::Flowspace(space.to_vec()));
    rig.add(1, 5, "in_port=1", "output:3");
    rig.add(2, 5, "ip,nw_dst=11.0.0.0/8", "output:1");
    assert_eq!(rig.flows(), Vec::<String>::new());
    rig.add(2, 6, "ip,nw_dst=10.1.0.0/16", "output:1");
    assert_eq!(rig.flows(), ["A>C s1-s2"]);
}

#[test]
fn a_change_traces_only_what_it_meets_and_tells_only_what_changed() {
    let mut rig = vlan();
    for (port, vnic) in [(1, "a"), (2, "b")] {
        rig.add(1, 5, &format!("dl_dst=02:00:00:00:00:0{vnic}"), &format!("output:{port}"));
    }
    rig.add(2, 5, "dl_dst=02:00:00:00:00:0a", "output:3");
    assert_eq!(rig.flows(), ["A>B", "B>A", "C>A s2-s1"]);
    let due = |rig: &Rig| rig.slicer.flows.as_ref().unwrap().due.len();
    rig.add(3, 5, "in_port=1", "output:3");
    assert_eq!((due(&rig), rig.take()), (1, 2), "D only: its packets reach A and B");
    rig.add(1, 5, "in_port=3,dl_dst=02:00:00:00:00:0b", "output:2");
    assert_eq!(due(&rig), 0, "nothing for B comes from s2");
    rig.rule(FLOW_MODIFY_STRICT, 1, 5, "dl_dst=02:00:00:00:00:0b", "output:2");
    assert_eq!(due(&rig), 0, "the same rule again");
    rig.rule(FLOW_DELETE, 1, 0, "dl_dst=02:00:00:00:00:0b", "");
    rig.take();
    assert_eq!(rig.flows(), ["B>A", "C>A s2-s1", "D>A s3-s1"]);
}

#[test]
fn a_port_that_the_tenant_closes_has_no_flows() {
    let mut rig = vlan();
    rig.add(1, 1, "", "flood");
    assert_eq!(rig.flows(), ["A>B", "B>A"]);
    let port_mod = |config| {
        let hw_addr = MacAddr([2, 0, 0, 0, 9, 2]);
        Body::PortMod(PortMod { port_no: PortNo(2), hw_addr, config, mask: 1, advertise: 0 })
    };
    rig.say(1, port_mod(1));
    assert_eq!(rig.flows(), Vec::<String>::new());
    rig.say(1, port_mod(0));
    assert_eq!(rig.flows(), ["A>B", "B>A"]);
}

#[test]
fn a_vnic_before_too_many_rules_has_fewer_flows_and_says_so() {
    let mut rig = vlan();
    for port in 0..400 {
        rig.add(1, 5, &format!("in_port=1,tcp,tp_src={port}"), "output:3");
        rig.add(2, 5, &format!("in_port=3,tcp,tp_dst={port}"), "output:1");
    }
    assert_eq!((rig.flows(), rig.slicer.flows_cut()), (vec!["A>C s1-s2".to_owned()], 1));
    assert_eq!(rig.told, rig.traced_anew());
}

/// A change that a tenant makes: command, switch, priority, match and actions.
type Change = (u8, u64, u16, String, String);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let address = |field: &'static str| (0..4u8).prop_map(move |it| format!("{field}=02:00:00:00:00:0{it}"));
    let part = prop_oneof![
        3 => address("dl_dst"),
        2 => address("dl_src"),
        2 => (1..=4u8).prop_map(|port| format!("in_port={port}")),
        1 => Just("ip".to_owned()),
        1 => Just("ip,nw_dst=10.0.0.1".to_owned()),
        1 => Just("dl_dst=02:00:00:00:00:00/ff:ff:ff:ff:ff:fe".to_owned()),
        1 => Just(String::new()),
    ];
    let matching = (part.clone(), part).prop_filter_map("a field twice", |(one, other)| {
        let text = [one.as_str(), other.as_str()]
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join(",");
        let names: Vec<&str> = text.split(',').map(|it| it.split('=').next().unwrap_or(it)).collect();
        let is_once = (1..names.len()).all(|place| !names[..place].contains(&names[place]));
        is_once.then_some(text)
    });
    let actions = prop_oneof![
        6 => (1..=4u8).prop_map(|port| format!("output:{port}")),
        1 => Just("flood".to_owned()),
        1 => Just("drop".to_owned()),
        1 => Just("controller".to_owned()),
        1 => Just("output:3,output:4".to_owned()),
        1 => (0..4u8, 1..=4u8).prop_map(|(to, port)| format!("set_field:02:00:00:00:00:0{to}->eth_dst,output:{port}")),
        1 => Just("set_field:02:00:00:00:00:01->eth_src,output:3".to_owned()),
    ];
    let command = prop_oneof![6 => Just(FLOW_ADD), 1 => Just(FLOW_MODIFY), 1 => Just(FLOW_DELETE), 1 => Just(FLOW_DELETE_STRICT)];
    prop::collection::vec((command, 1..=3u64, 1..4u16, matching, actions), 1..40)
}

/// Where a frame for an address, from an unknown one, arrives if it enters at a VNIC's port.
fn forwarded(rig: &Rig, from: End, to: u8) -> BTreeSet<End> {
    let mut arrived = BTreeSet::new();
    let mut frames = vec![(from, vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 7, 7, 0x90, 0, 0, 0], 0)];
    while let Some((at, frame, hops)) = frames.pop() {
        let switch = &rig.slicer.switches[&at.datapath];
        let fields = FrameFields::read(&frame).from_port(at.port);
        let Some(rule) = switch.rules.hit(&fields).filter(|_| hops < 6) else { continue };
        let mut frame = frame;
        for action in rule.actions() {
            let ports = match action {
                Action::Output { port: PortNo::FLOOD, .. } => (1..=4).map(PortNo).collect(),
                Action::Output { port, .. } => vec![*port],
                Action::SetField { field: Field::EthDst, value } => {
                    frame[..6].copy_from_slice(&value.to_be_bytes()[10..]);
                    Vec::new()
                }
                Action::SetField { value, .. } => {
                    frame[6..12].copy_from_slice(&value.to_be_bytes()[10..]);
                    Vec::new()
                }
                _ => Vec::new(),
            };
            for port in ports.into_iter().filter(|port| *port != at.port) {
                let out = End { port, ..at };
                match LINKS
                    .iter()
                    .flat_map(|(s, p, t, q)| [(end(*s, *p), end(*t, *q)), (end(*t, *q), end(*s, *p))])
                    .find(|(it, _)| *it == out)
                {
                    Some((_, peer)) => frames.push((peer, frame.clone(), hops + 1)),
                    None => drop(arrived.insert(out)),
                }
            }
        }
    }
    arrived
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn flows_are_those_of_tracing_from_nothing(changes in changes(), is_vlan in any::<bool>(), pause in 1..6usize) {
        let isolation = match is_vlan {
            true => Isolation::Vlan(7),
            false => Isolation::Flowspace(vec![parse_match("ip,nw_dst=10.0.0.0/9").unwrap(), parse_match("dl_vlan=3").unwrap()]),
        };
        let mut rig = Rig::new(isolation);
        for (place, (command, switch, priority, matching, actions)) in changes.iter().enumerate() {
            rig.rule(*command, *switch, *priority, matching, actions);
            if place % pause == 0 {
                rig.take();
                prop_assert_eq!(&rig.told, &rig.traced_anew(), "after {:?}", &changes[..=place]);
            }
        }
        rig.take();
        prop_assert_eq!(&rig.told, &rig.traced_anew());
        let again: BTreeMap<_, _> =
            rig.slicer.flows().into_iter().filter_map(|it| Some(((it.from, it.to), it.path?))).collect();
        prop_assert_eq!(&rig.told, &again);
    }

    #[test]
    fn where_a_frame_arrives_there_is_a_flow(changes in changes(), to in 0..4u8) {
        let mut rig = vlan();
        for (command, switch, priority, matching, actions) in &changes {
            rig.rule(*command, *switch, *priority, matching, actions);
        }
        rig.take();
        for (name, switch, port) in VNICS {
            for arrived in forwarded(&rig, end(switch, port), to) {
                let to = VNICS.iter().find(|(_, switch, port)| end(*switch, *port) == arrived).map(|it| it.0);
                let Some(to) = to.filter(|to| *to != name) else { continue };
                let flow = (name.to_owned(), to.to_owned());
                prop_assert!(rig.told.contains_key(&flow), "{:?} has no path: {:?}", flow, rig.told);
            }
        }
    }
}
