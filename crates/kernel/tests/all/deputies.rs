//! No app may do through a group, a meter or a table what it may not do directly.
//!
//! The emulated switch executes accepted commands, and the test checks the frames that it sends.

use crate::emulated;

use abi::Outcome;
use abi::command::{GroupMod, What};
use emulated::*;
use flow::PortNo;
use kernel::{Capability, Grant};

/// May send ARP requests, and write rules for all of ARP.
fn asks_only() -> Grant {
    Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"])).with_rules(flowspace(&["arp"]))
}

const FORGES: &str = "set_field:2->arp_op,output:2";
const REWRITES: &str =
    "packet.out: an action in the action set makes packets outside the granted flowspace of some inside it";

#[test]
fn a_packet_out_forges_nothing_through_a_group_of_its_sender() {
    let mut world = World::with(asks_only());
    let by_hand = world.packet_out(&arp(1), FORGES);
    assert_eq!(by_hand, "packet.out: the actions make packets outside the granted flowspace");
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent", "for rules it is right");
    assert_eq!(world.rule(APP, 0, "arp,arp_spa=10.0.0.9", "group:7"), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), REWRITES);
    assert!(world.left().is_empty());
    assert_eq!(world.group(APP, ADD, 8, &["output:2", "set_field:1->arp_op,output:3"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:8"), "sent");
    assert_eq!(world.left(), [(PortNo(2), arp(1)), (PortNo(3), arp(1))]);
}

#[test]
fn a_group_that_packets_were_sent_to_becomes_no_forger() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 7, &[FORGES]), "sent", "nobody has sent anything to it yet");
    assert_eq!(world.group(APP, ADD, 8, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:8"), "sent");
    // Without a barrier, a switch may change the group before it sends the packet.
    assert_eq!(world.group(APP, MODIFY, 8, &[FORGES]), REWRITES);
    assert_eq!(world.group(APP, MODIFY, 8, &["output:3"]), "sent");
}

#[test]
fn what_a_switch_may_not_have_taken_back_counts() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent");
    // The switch may refuse the change and keep the old buckets.
    assert_eq!(world.group(APP, MODIFY, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), REWRITES);
    assert_eq!(world.group(APP, DELETE, 7, &[]), "sent");
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent");
}

#[test]
fn groups_in_groups_count() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 1, &[FORGES]), "sent");
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:2"), REWRITES);
    assert_eq!(world.group(APP, ADD, 3, &["output:2"]), "sent");
    assert_eq!(world.group(APP, ADD, 4, &["group:3"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:4"), "sent");
    assert_eq!(world.group(APP, MODIFY, 3, &[FORGES]), REWRITES, "packets came to it through 4");
    assert_eq!(world.group(APP, MODIFY, 4, &["group:1"]), REWRITES);
}

#[test]
fn groups_lead_to_no_group_twice_and_not_deep() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    let circle = "rule.write: group 1 would lead to itself or too deep: groups may be in groups 3 deep, and one that is in another may not \
                  come to lead further; delete the others first";
    assert_eq!(world.group(APP, ADD, 1, &["group:1"]), circle);
    assert_eq!(world.group(APP, ADD, 1, &["output:1"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 1, &["group:1"]), circle);
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 1, &["group:2"]), circle);
    assert_eq!(world.group(APP, ADD, 3, &["group:2"]), "sent");
    let deep = world.group(APP, ADD, 4, &["group:3"]);
    assert!(deep.starts_with("rule.write: group 4 would lead to itself or too deep"), "{deep}");
}

#[test]
fn a_command_costs_what_its_groups_lead_to() {
    let mut world = World::with(asks_only());
    let groups = |from: u32| (from..from + 64).map(|number| format!("group:{number}")).collect::<Vec<_>>();
    (100..164).for_each(|number| assert_eq!(world.group(APP, ADD, number, &[]), "sent"));
    let first = groups(100);
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    (200..264).for_each(|number| assert_eq!(world.group(APP, ADD, number, &first), "sent"));
    let second = groups(200);
    let second: Vec<&str> = second.iter().map(String::as_str).collect();
    world.kernel.take_compared();
    assert_eq!(world.group(APP, ADD, 300, &second), "sent");
    let counted = world.kernel.take_compared();
    assert!((4_096..10_000).contains(&counted), "64 times 64, once: {counted}");
    assert_eq!(world.packet_out(&arp(1), "group:300"), "sent");
    let counted = world.kernel.take_compared();
    assert!(
        (8_192..20_000).contains(&counted),
        "once for the bounds, once for the number of packets: {counted}"
    );
    assert_eq!(world.group(APP, MODIFY, 100, &["output:2"]), "sent");
    let counted = world.kernel.take_compared();
    assert!((4_096..20_000).contains(&counted), "all that lead to it, but each once: {counted}");
}

#[test]
fn a_group_in_a_group_stays_its_owners() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    assert_eq!(world.group(APP, ADD, 1, &["output:1"]), "sent");
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    // If it were deleted, the next owner of its number would get the packets of group 2.
    let named = "rule.write: group 1 is in the buckets of another group: delete that one first";
    assert_eq!(world.group(APP, DELETE, 1, &[]), named);
    assert_eq!(world.group(APP, DELETE, 2, &[]), "sent");
    assert_eq!(world.group(APP, DELETE, 1, &[]), "sent");
    assert_eq!(world.group(OTHER, ADD, 1, &["output:1"]), "sent");
}

#[test]
fn nobody_refers_to_what_is_not_its_own() {
    let others_too = Grant::everywhere(&Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    let check = |grant: Grant, expected: &str| {
        let mut world = World::with(grant);
        let foreign = expected.replace('#', "9");
        let of_another = expected.replace('#', "7");
        assert_eq!(world.group(OTHER, ADD, 7, &["output:1"]), "sent");
        assert_eq!(world.rule(APP, 0, "arp", "group:7"), of_another);
        assert_eq!(world.rule(APP, 0, "arp", "group:9"), foreign);
        assert_eq!(world.rule(APP, 0, "arp", "write_actions(group:9)"), foreign);
        assert_eq!(world.rule(APP, 0, "arp", "meter:9"), foreign.replace("group", "meter"));
        assert_eq!(world.group(APP, ADD, 1, &["output:1", "group:9"]), foreign);
        assert_eq!(world.packet_out(&arp(1), "group:9"), foreign.replace("rule.write", "packet.out"));
    };
    check(Grant::everywhere(&Capability::GRANT_ALL), "rule.write: group # is not the app's own");
    check(others_too, "sent");
    let bounded = Grant::nothing().with_rules(flowspace(&["arp"])).with_packets_out(flowspace(&["arp"]));
    check(bounded.clone(), "rule.write: group # is not the app's own");
    // A group of others may exceed the app's bounds.
    check(bounded.with(Capability::RuleWriteOthers), "rule.write: group # is not the app's own");
}

#[test]
fn a_bucket_watches_no_group_of_others() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    let mut bytes = Vec::new();
    write_bucket("output:1", 9, &mut bytes);
    let it = GroupMod { command: ADD, group_type: 3, group_id: 1, buckets: &bytes };
    assert_eq!(world.ask(APP, What::GroupMod(it)), "rule.write: group 9 is not the app's own");
}

#[test]
fn what_is_asked_for_is_its_own_once_the_switch_says_so_whoever_asks() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    world.confirms = false;
    let early = "rule.write: the switch has not confirmed this group or meter yet; wait for its receipt";
    assert_eq!(world.group(APP, ADD, 7, &["output:1"]), "sent");
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), early);
    // Another controller had made it.
    world.settle(Outcome::Failed);
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), "rule.write: group 7 is not the app's own");
    assert_eq!(world.group(APP, MODIFY, 7, &["output:2"]), "rule.write: group 7 is not the app's own");
    assert_eq!(world.group(APP, DELETE, 7, &[]), "rule.write: group 7 is not the app's own");
}

#[test]
fn under_another_grant_nobody_knows_what_groups_may_do() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent");
    world.kernel.detach(APP);
    world.kernel.attach(APP, "app", Grant::everywhere(&Capability::GRANT_ALL), 0);
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent", "it was started anew, and that is all");
    world.kernel.attach(APP, "app", asks_only(), 0);
    let unknown = "group 7 was made under another grant, and what it does was not compared with this one: delete it and add it again";
    assert_eq!(world.packet_out(&arp(1), "group:7"), format!("packet.out: {unknown}"));
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), format!("rule.write: {unknown}"));
    assert_eq!(world.group(APP, ADD, 8, &["group:7"]), format!("rule.write: {unknown}"));
    assert_eq!(world.group(APP, DELETE, 7, &[]), "sent");
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent");
}

#[test]
fn a_packet_out_forges_nothing_through_rules_of_its_sender() {
    let own_rules = "packet.out: TABLE hands the frame to the app's own rules, which may make packets outside the granted flowspace. The \
                     match of rule.write must lie within that of packet.out, or have no packet in common with it";
    let mut world = World::with(asks_only());
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", FORGES), "sent", "for rules it is right");
    assert_eq!(world.packet_out(&arp(1), "output:TABLE"), own_rules);
    assert!(world.left().is_empty());
    let check = |rules: Option<&str>, expected: &str| {
        let grant = Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"]));
        let grant = match rules {
            None => grant,
            Some("") => grant.with(Capability::RuleWrite),
            Some(rules) => grant.with_rules(flowspace(&[rules])),
        };
        assert_eq!(World::with(grant).packet_out(&arp(1), "output:TABLE"), expected, "{rules:?}");
    };
    check(None, "sent");
    check(Some("arp,arp_op=1,arp_spa=10.0.0.1"), "sent");
    check(Some("ip"), "sent");
    check(Some(""), own_rules);
    check(Some("in_port=1"), own_rules);
    // A rule may match some packets of both, and turn one into the other.
    let grant = Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"]));
    let both = grant.with_rules(flowspace(&["arp,arp_op=1", "arp,arp_op=2"]));
    assert_eq!(World::with(both).packet_out(&arp(1), "output:TABLE"), own_rules);
    assert_eq!(
        World::with(Grant::everywhere(&Capability::GRANT_ALL)).packet_out(&arp(1), "output:TABLE"),
        "sent"
    );
}

#[test]
fn by_table_a_frame_meets_the_rules_of_others_and_they_are_theirs() {
    let bounds = to_ports(flowspace(&["arp,arp_op=1"]), &[PortNo::TABLE]);
    let mut world = World::with(Grant::nothing().with_packets_out(bounds));
    assert_eq!(world.rule(OTHER, 0, "arp", "set_field:2->arp_op,output:4"), "sent");
    assert_eq!(world.packet_out(&arp(1), "output:2"), "packet.out: port 2 is not among the granted ports");
    assert_eq!(
        world.packet_out(&arp(2), "output:TABLE"),
        "packet.out: the frame is outside the granted flowspace"
    );
    assert_eq!(world.packet_out(&arp(1), "output:TABLE"), "sent");
    assert_eq!(world.left(), [(PortNo(4), arp(2))], "as every such frame of a host");
}

/// The frames that leave the switch when a host sends this one through port 1.
fn heard(world: &mut World, frame: Vec<u8>) -> Vec<(PortNo, Vec<u8>)> {
    world.host_says(frame);
    world.left()
}

#[test]
fn a_table_of_others_gets_packets_that_its_giver_may_make() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,arp_op=1"])));
    assert_eq!(world.rule(OTHER, 1, "arp,arp_op=2", "output:4"), "sent");
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", "set_field:2->arp_op,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", "goto_table:1"), "sent");
    assert!(heard(&mut world, arp(1)).is_empty());
}

#[test]
fn metadata_that_others_read_is_bounded_where_the_flowspace_says_it() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,metadata=1"])));
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "write_metadata:2,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "set_field:2->metadata,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "write_metadata:1,goto_table:1"), "sent");
}

#[test]
fn an_action_set_that_anothers_table_completes_makes_nothing_that_its_writer_may_not() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,arp_spa=10.0.0.1", "ip"])));
    // Alone it would stay within the bounds: an answer of 10.0.0.1. Combined with another app's write it might not.
    let later = "rule.write: an action in the action set makes packets outside the granted flowspace of some inside it";
    assert_eq!(
        world.rule(APP, 0, "arp,arp_spa=10.0.0.1", "write_actions(set_field:10.0.0.9->arp_spa),goto_table:1"),
        later
    );
    assert_eq!(
        world.rule(APP, 0, "arp,arp_spa=10.0.0.1", "write_actions(set_field:2->arp_op),goto_table:1"),
        "sent"
    );
    assert_eq!(world.rule(OTHER, 1, "arp", "write_actions(output:4)"), "sent");
    assert_eq!(heard(&mut world, arp(1)), [(PortNo(4), arp(2))]);
}

#[test]
fn a_meter_remarks_no_packet_out_of_the_flowspace() {
    let remark = [0, 2, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0];
    let check = |spaces: &[&str], bands: &[u8], expected: &str| {
        let grant = Grant::nothing().with_rules(flowspace(spaces));
        assert_eq!(World::with(grant).meter(APP, bands), expected, "{spaces:?}");
    };
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    check(&["arp", "ip,ip_dscp=10"], &remark, beyond);
    check(&["ip,nw_dst=10.0.0.1"], &remark, "sent");
    let drop = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    check(&["ip,ip_dscp=10"], &drop, "sent");
}

#[test]
fn who_may_hear_no_packets_sends_none_up_by_any_way() {
    let deaf = || Grant::nothing().with(Capability::RuleWrite).with(Capability::PacketOut);
    let controller = |what: &str| format!("{what}: sending to the controller needs packet.in as well");
    let mut world = World::with(deaf());
    assert_eq!(world.rule(APP, 0, "arp", "controller"), controller("rule.write"));
    assert_eq!(world.rule(APP, 0, "arp", "output:1,controller"), controller("rule.write"));
    assert_eq!(world.rule(APP, 0, "arp", "write_actions(controller)"), controller("rule.write"));
    assert_eq!(world.packet_out(&arp(1), "controller"), controller("packet.out"));
    assert_eq!(world.packet_out(&arp(1), "output:1,controller"), controller("packet.out"));
    assert_eq!(world.group(APP, ADD, 1, &["output:1", "controller"]), controller("rule.write"));
    let mut hears = World::with(deaf().with(Capability::PacketIn));
    assert_eq!(hears.rule(APP, 0, "arp", "controller"), "sent");
    assert_eq!(hears.packet_out(&arp(1), "controller"), "sent");
    assert_eq!(hears.group(APP, ADD, 1, &["output:1", "controller"]), "sent");
}
