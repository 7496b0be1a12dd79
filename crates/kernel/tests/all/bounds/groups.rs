//! Groups and meters of an app with bounded capabilities: who owns them, and what their buckets may do.

use super::*;

#[test]
fn groups_and_meters_are_whose_who_made_them() {
    let mut node = Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let group = |command| What::GroupMod(GroupMod { command, group_type: 0, group_id: 7, buckets: &[] });
    assert_eq!(node.command(OTHER, group(0)), "sent");
    assert_eq!(node.command(APP, group(2)), "rule.write: group 7 is not the app's own");
    assert_eq!(node.rule("", "group:7", ADD), "rule.write: group 7 is not the app's own");
    assert_eq!(node.packet_out(&[], "group:7"), "packet.out: group 7 is not the app's own");
    assert_eq!(node.rule("", "group:8", ADD), "rule.write: group 8 is not the app's own");
    let mut bounded = Node::with_rules(flowspace(&["arp"]));
    assert_eq!(bounded.rule("arp", "group:8", ADD), "rule.write: group 8 is not the app's own");
    assert_eq!(bounded.rule("arp", "meter:8", ADD), "rule.write: meter 8 is not the app's own");
    let early = "rule.write: the switch has not confirmed this group or meter yet; wait for its receipt";
    assert_eq!(bounded.command(APP, group(0)), "sent");
    assert_eq!(bounded.rule("arp", "group:7", ADD), early);
    assert_eq!(bounded.command(APP, group(2)), early);
    assert_eq!(bounded.receipt(Outcome::Programmed), Some(Some(7)));
    assert_eq!(bounded.receipt(Outcome::Programmed), None);
    assert_eq!(bounded.rule("arp", "group:7", ADD), "sent");
    // It existed already: the claim is void.
    let other = |command| What::GroupMod(GroupMod { command, group_type: 0, group_id: 9, buckets: &[] });
    assert_eq!(bounded.command(APP, other(0)), "sent");
    assert_eq!(bounded.receipt(Outcome::Failed), Some(Some(7)));
    assert_eq!(bounded.command(APP, other(2)), "rule.write: group 9 is not the app's own");
}

#[test]
fn no_app_has_the_kernels_tickets() {
    let mut node = Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 3 << 62 | 1, wants_receipt: true, what: What::Barrier };
    assert!(command::write::command(&mut bytes, &command));
    let decided = node.0.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
    assert!(matches!(decided, Decision::Refuse(kernel::Refusal::Ticket)), "{decided:?}");
}

#[test]
fn of_a_switch_that_is_not_here_nobody_has_groups() {
    let mut node = Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut bytes = Vec::new();
    let what = What::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 7, buckets: &[] });
    let command = Command { datapath: DatapathId(9), ticket: 7, wants_receipt: true, what };
    assert!(command::write::command(&mut bytes, &command));
    let decided = node.0.on_command(OTHER, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
    assert!(matches!(decided, Decision::Refuse(kernel::Refusal::NoSuchSwitch(DatapathId(9)))));
    let mut bytes = Vec::new();
    let up = SwitchUp {
        datapath: DatapathId(9),
        n_buffers: 0,
        n_tables: 8,
        openflow: OpenFlowVersion::V1_3,
        ports: &[],
    };
    event::write::switch_up(&mut bytes, 1, &up);
    node.0.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    node.0.on_no_answer(DatapathId(9), kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    let mut bytes = Vec::new();
    assert!(command::write::command(&mut bytes, &command));
    let decided = node.0.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
    assert!(matches!(decided, Decision::Send(_)), "{decided:?}");
}

#[test]
fn whose_groups_a_command_refers_to_is_for_the_worker_that_has_the_switch() {
    let there = Bounds { datapaths: Some(vec![DatapathId(9)]), ..Bounds::default() };
    let mut node = Node::with(Grant::nothing().with_rules(there.clone()).with_packets_out(there));
    let (mut actions, mut done) = (Vec::new(), Vec::new());
    write_actions(&parse_actions("group:7").unwrap(), &mut actions).unwrap();
    write_instructions(&parse_instructions("group:7").unwrap(), &mut done).unwrap();
    let data = [0; 60].as_slice();
    let (buffer_id, in_port) = (None, PortNo(1));
    for what in [
        What::FlowMod(FlowMod { instructions: &done, ..FlowMod::ADD }),
        What::PacketOut(PacketOut { buffer_id, in_port, actions: &actions, data }),
    ] {
        let mut bytes = Vec::new();
        let command = Command { datapath: DatapathId(9), ticket: 7, wants_receipt: true, what };
        assert!(command::write::command(&mut bytes, &command));
        let decided = node.0.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        let elsewhere = kernel::Refusal::NoSuchSwitch(DatapathId(9));
        assert!(matches!(&decided, Decision::Refuse(it) if *it == elsewhere), "{decided:?}");
    }
}

#[test]
fn the_buckets_of_a_group_stay_within_bounds() {
    let bounds = Bounds { ports: Some(vec![PortNo(1)]), ..flowspace(&["ip,nw_dst=10.0.0.0/24"]) };
    let mut node = Node::with_rules(bounds);
    let mut check = |actions: &str, expected: &str| {
        let mut bytes = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        write_actions(&parse_actions(actions).unwrap(), &mut bytes).unwrap();
        bytes[1] = u8::try_from(bytes.len()).unwrap();
        let group = GroupMod { command: 0, group_type: 0, group_id: 7, buckets: &bytes };
        assert_eq!(node.command(APP, What::GroupMod(group)), expected, "{actions}");
    };
    check("output:2", "rule.write: port 2 is not among the granted ports");
    check(
        "set_field:10.0.1.1->ip_dst,output:1",
        "rule.write: an action in the action set makes packets outside the granted flowspace of some inside it",
    );
    check("group:9", "rule.write: group 9 is not the app's own");
    check("set_field:10.0.0.1->ip_dst,output:1", "sent");
}
