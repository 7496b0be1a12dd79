//! A slice that gets or loses ports while it runs: only the rules change that must, and its tenant's table is as it was.

use super::bed;
use super::memory::{Tenant, flow_mod, group, kept, meter};
use emulator::{SwitchOptions, Versions};
use openflow::Body;
use openflow::message::FLOW_ADD;
use operator::contract::FlowView;
use std::collections::BTreeMap;
use test_bed::{Bed, Node};

/// The slice with these own ports of switch s1, and port 3.
fn slice(tenant: &Tenant, own_ports: &[u16]) -> String {
    let own: Vec<String> = own_ports.iter().map(|port| format!("'s1:{port}'")).collect();
    format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = [{}]\nports = ['s1:3']\n",
        tenant.address(),
        own.join(", ")
    )
}

fn apply(bed: &Bed, words: &[&str], text: &str) -> String {
    let file = bed.file("wanted.toml", text);
    let done = bed.run(&[&["slice", "apply", file.to_str().unwrap()], words].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The slice's rules above its floor, by priority of the tenant and match.
fn rules(node: &Node) -> BTreeMap<(u16, String), FlowView> {
    let flows = node.flows().into_iter().flat_map(|switch| switch.flows);
    let own = flows.filter(|flow| flow.owner == "slice.blue" && flow.priority > 1);
    own.map(|flow| ((flow.priority - 2, flow.matching.clone()), flow)).collect()
}

/// The tenant's priorities of the rules that are other ones than before: added, removed, or with other actions. A rule that is there again is younger.
fn changed(
    before: &BTreeMap<(u16, String), FlowView>,
    after: &BTreeMap<(u16, String), FlowView>,
) -> Vec<u16> {
    let is_same = |one: &FlowView, other: &FlowView| {
        one.actions == other.actions && one.cookie == other.cookie && one.duration_s <= other.duration_s
    };
    let gone = before.iter().filter(|(key, one)| !after.get(key).is_some_and(|other| is_same(one, other)));
    let new = after.keys().filter(|key| !before.contains_key(key)).map(|(priority, _)| *priority);
    let mut changed: Vec<u16> = gone.map(|((priority, _), _)| *priority).chain(new).collect();
    changed.sort_unstable();
    changed
}

#[test]
fn a_slice_that_gets_or_loses_a_port_keeps_all_other_rules_in_a_switch_of_either_version() {
    for versions in [Versions::Only10, Versions::Only13] {
        let (bed, mut tenant) = (bed(), Tenant::new());
        let node = bed.node().config(&slice(&tenant, &[1, 2])).log("info").start_ready();
        let _network = node.network("single,4", &SwitchOptions { versions, ..SwitchOptions::default() });
        let file = bed.state().join("slices/slice.blue/0000000000000001.journal");
        tenant.accept();
        for body in [
            flow_mod(FLOW_ADD, 5, "in_port=1", "output:3"),
            flow_mod(FLOW_ADD, 6, "", "output:1"),
            flow_mod(FLOW_ADD, 7, "in_port=3", "flood"),
            flow_mod(FLOW_ADD, 8, "in_port=2", "output:3"),
        ] {
            assert_eq!(tenant.do_it(body.clone()), [], "{body:?}");
        }
        node.wait("the rules are kept", |_| kept(&file) == Some(4));
        let (before, table) = (rules(&node), tenant.rules());
        let wider = slice(&tenant, &[1, 2, 4]);
        assert_eq!(apply(&bed, &["--dry-run"], &wider), "no rule of a slice would leave a switch\n");
        let done = apply(&bed, &[], &wider);
        assert!(!done.contains("leave") && !done.contains("stay"), "{done}");
        tenant.accept();
        assert_eq!(tenant.rules(), table);
        let after = rules(&node);
        assert_eq!(changed(&before, &after), [6, 7], "a piece at the new port, and it is flooded to");
        let line = "slice blue: its rules for s1:2 leave, and others stay\n";
        let narrower = slice(&tenant, &[1, 4]);
        assert_eq!(apply(&bed, &["--dry-run"], &narrower), line, "and nothing has changed");
        assert!(changed(&after, &rules(&node)).is_empty());
        let done = apply(&bed, &[], &narrower);
        assert!(done.contains(line) && !done.contains("rules stay"), "{done}");
        tenant.accept();
        let priorities: Vec<u16> = tenant.rules().into_iter().map(|(priority, ..)| priority).collect();
        assert_eq!(priorities, [7, 6, 5]);
        assert_eq!(changed(&after, &rules(&node)), [6, 7, 8]);
    }
}

#[test]
fn what_a_removed_slice_had_is_free_at_once_for_another_slice_in_a_switch_of_either_version() {
    for versions in [Versions::Only10, Versions::Only13] {
        let (bed, mut tenant, mut other) = (bed(), Tenant::new(), Tenant::new());
        // Of three meters, one is for the VNIC.
        let with_numbers = |tenant: &Tenant| {
            slice(tenant, &[2])
                + "groups = [1000, 1004]\nmeters = [100, 102]\nvnics = { A = { port = 's1:1', rate = '1M' } }\n"
        };
        let node = bed.node().config(&with_numbers(&tenant)).log("info").start_ready();
        let _network = node.network("single,4", &SwitchOptions { versions, ..SwitchOptions::default() });
        assert_eq!(fill(&mut tenant, versions), []);
        let is_shaped = |owner: &str| {
            let mut flows = node.flows().into_iter().flat_map(|switch| switch.flows);
            let is_of_vnic = |it: &FlowView| it.owner == owner && it.matching.contains("in_port=1");
            let has_meter = |it: &FlowView| versions == Versions::Only10 || it.actions.contains("meter:");
            flows.any(|it| is_of_vnic(&it) && has_meter(&it))
        };
        node.wait("the VNIC is metered", |_| is_shaped("slice.blue"));
        let red = with_numbers(&other).replace("slice.blue", "slice.red").replace("tag = 10", "tag = 20");
        let done = apply(&bed, &[], &red);
        assert!(!done.contains("stay"), "{done}");
        assert!(!tenant.hear_end(), "the tenant is disconnected, and not dialled again");
        assert_eq!(fill(&mut other, versions), [], "ports, groups, meters, and the places of rules");
        node.wait("the VNIC of the other slice is metered", |_| is_shaped("slice.red"));
        assert!(!node.log().contains("is refused"), "{}", node.log());
    }
}

/// The tenant adds rules, in 1.3 with a group and a meter. Returns what was refused.
fn fill(tenant: &mut Tenant, versions: Versions) -> Vec<Body> {
    tenant.accept();
    let mut wanted = vec![flow_mod(FLOW_ADD, 5, "in_port=1", "output:3")];
    if versions == Versions::Only13 {
        wanted.extend([group(), meter(), flow_mod(FLOW_ADD, 6, "in_port=2", "meter:9,group:7")]);
    }
    wanted.into_iter().flat_map(|body| tenant.do_it(body)).collect()
}
