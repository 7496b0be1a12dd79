//! A switch with cached paths behaves as a switch without them.

use super::dsl::*;
use flow::{Action, Field, Instruction};
use openflow::Body;
use openflow::message::*;
use proptest::prelude::*;

/// Packets that differ in every layer that the rules test.
fn packets() -> Vec<(u32, Vec<u8>)> {
    let doubly = |inner| {
        let mut frame = tagged(tagged(ping(), inner), 5);
        (frame[12], frame[13]) = (0x88, 0xa8);
        frame
    };
    let mut dying = ping();
    dying[14 + 8] = 1;
    let frames = [
        ping(),
        dying,
        tcp(1, 80),
        tcp(2, 80),
        tcp(80, 1),
        tagged(ping(), 5),
        tagged(ping(), 6),
        doubly(5),
        doubly(6),
    ];
    frames.into_iter().flat_map(|frame| [(1, frame.clone()), (2, frame)]).collect()
}

fn arbitrary_match(rule: Rule) -> impl Strategy<Value = Rule> {
    let fields = vec![
        vec![(Field::InPort, 1u128, u128::MAX)],
        vec![(Field::VlanVid, 0, u128::MAX)],
        vec![(Field::VlanVid, 0x1005, u128::MAX)],
        vec![(Field::VlanVid, 0x1000, 0x1000)],
        vec![(Field::EthType, 0x800, u128::MAX), (Field::IpProto, 6, u128::MAX)],
        vec![
            (Field::EthType, 0x800, u128::MAX),
            (Field::IpProto, 6, u128::MAX),
            (Field::TcpDst, 80, u128::MAX),
        ],
        vec![(Field::EthType, 0x800, u128::MAX), (Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000)],
        vec![(Field::EthDst, 2, u128::MAX)],
        vec![(Field::Metadata, 3, 3)],
        vec![],
    ];
    prop::sample::select(fields).prop_map(move |entries| {
        entries.into_iter().fold(rule.clone(), |rule, (field, value, mask)| rule.masked(field, value, mask))
    })
}

fn arbitrary_instructions(table: u8) -> impl Strategy<Value = Vec<Instruction>> {
    let action = prop_oneof![
        Just(output("2")),
        Just(output("3")),
        Just(output("CONTROLLER")),
        Just(output("FLOOD")),
        Just(Action::PopVlan),
        Just(Action::PushVlan(0x8100)),
        Just(set(Field::VlanVid, 0x1005)),
        Just(set(Field::EthDst, 2)),
        Just(set(Field::Ipv4Dst, 0x0b00_0001)),
        Just(set(Field::TcpDst, 80)),
        Just(Action::DecNwTtl),
        Just(Action::PushMpls(0x8847)),
        Just(Action::PopMpls(0x800)),
    ];
    let instruction = prop_oneof![
        proptest::collection::vec(action.clone(), 0..4).prop_map(Instruction::ApplyActions),
        proptest::collection::vec(action, 0..3).prop_map(Instruction::WriteActions),
        Just(Instruction::ClearActions),
        (0u64..4).prop_map(|metadata| Instruction::WriteMetadata { metadata, mask: 3 }),
    ];
    let goto = proptest::option::weighted(0.8, (table + 1..table + 3).prop_map(Instruction::GotoTable));
    (proptest::collection::vec(instruction, 0..4), goto).prop_map(|(mut all, goto)| {
        all.extend(goto);
        let mut kinds = Vec::new();
        all.retain(|instruction| {
            let kind = std::mem::discriminant(instruction);
            let first = !kinds.contains(&kind);
            kinds.push(kind);
            first
        });
        all
    })
}

fn arbitrary_rule() -> impl Strategy<Value = Rule> {
    (0u8..3, 0u16..4).prop_flat_map(|(table, priority)| {
        let matching = arbitrary_match(rule(priority).table(table));
        (matching, arbitrary_instructions(table))
            .prop_map(|(rule, instructions)| instructions.into_iter().fold(rule, Rule::then))
    })
}

proptest! {
    #[test]
    fn a_remembered_path_is_the_path_that_would_be_found(
        rules in proptest::collection::vec(arbitrary_rule(), 1..24),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (mut remembers, mut forgets) = (Bench::new(V13), Bench::new(V13));
        for rule in &rules {
            // A rule that sets a field which its packets may not have is refused.
            prop_assert_eq!(remembers.refusal(rule.body()), forgets.refusal(rule.body()));
        }
        let packets = packets();
        for index in order {
            let (in_port, frame) = index.get(&packets);
            // A change of the tables that has no effect on the rules.
            forgets.add(&[rule(9).command(FLOW_DELETE_STRICT)]);
            let expected = forgets.emits(*in_port, frame);
            prop_assert_eq!(remembers.emits(*in_port, frame), expected);
        }
        prop_assert_eq!(counted(&mut remembers), counted(&mut forgets));
    }
}

/// The counters of rules and tables.
fn counted(bench: &mut Bench) -> Vec<Body> {
    let every_rule = FlowStatsRequest::default();
    [RequestBody::Flow(every_rule), RequestBody::Table]
        .into_iter()
        .flat_map(|body| bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body })))
        .collect()
}

#[test]
fn a_rule_that_comes_later_is_heeded_by_flows_that_are_known() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("2")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    bench.add(&[rule(2).on(Field::EthDst, H2).output("3")]);
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    bench.add(&[rule(2).on(Field::EthDst, H2).output("4").command(FLOW_MODIFY)]);
    assert_eq!(bench.arrive(1, &ping()).0, "4");
    bench.add(&[rule(2).on(Field::EthDst, H2).command(FLOW_DELETE_STRICT)]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn what_a_popped_tag_covered_is_looked_at_in_each_packet() {
    let mut bench = Bench::new(V13);
    bench.add(&[
        rule(1).apply(&[Action::PopVlan]).goto(1),
        rule(1).table(1).on(Field::VlanVid, 0x1005u16).output("2"),
        rule(1).table(1).on(Field::VlanVid, 0x1006u16).output("3"),
    ]);
    for _ in 0..2 {
        assert_eq!(bench.arrive(1, &tagged(tagged(ping(), 5), 9)).0, "2");
        assert_eq!(bench.arrive(1, &tagged(tagged(ping(), 6), 9)).0, "3");
    }
}

#[test]
fn a_rule_that_is_over_is_not_remembered() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("2"), rule(2).output("3").timeouts(0, 5)]);
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    bench.pass(5);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn more_flows_than_can_be_remembered_are_all_forwarded() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1)
        .on(Field::EthType, 0x800u16)
        .on(Field::IpProto, 6u8)
        .on(Field::TcpDst, 80u16)
        .output("3")]);
    bench.add(&[rule(0).output("2")]);
    for _ in 0..2 {
        for port in 0..20_000u16 {
            let expected = if port == 80 { "3" } else { "2" };
            assert_eq!(bench.arrive(1, &tcp(1, port)).0, expected);
        }
    }
}
