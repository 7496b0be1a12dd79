//! The book of rules against the switch itself: after any flow mods, both have the same rules.

use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use proptest::prelude::*;
use software_switch::{
    BookChange, ControllerId, Effects, RuleBook, Switch, SwitchOptions, Versions, rule_number,
};
use std::collections::BTreeSet;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);
const C: ControllerId = ControllerId(0);

fn a_match() -> impl Strategy<Value = Match> {
    let field = prop_oneof![
        (1..4u32).prop_map(|port| Match::any().with(Field::InPort, port)),
        (0..4u64).prop_map(|mac| Match::any().with(Field::EthDst, mac)),
        (0..3u32, 0..4u64)
            .prop_map(|(port, mac)| Match::any().with(Field::InPort, port + 1).with(Field::EthDst, mac)),
        Just(Match::any()),
    ];
    field.boxed()
}

fn a_flow_mod() -> impl Strategy<Value = FlowMod> {
    let command = prop_oneof![3 => Just(FLOW_ADD), 1 => Just(FLOW_MODIFY), 1 => Just(FLOW_MODIFY_STRICT),
        1 => Just(FLOW_DELETE), 1 => Just(FLOW_DELETE_STRICT)];
    let (table, restricted) = (0..2u8, prop_oneof![2 => Just(PortNo::ANY), 1 => Just(PortNo(1))]);
    (command, table, 0..3u16, a_match(), 1..4u32, restricted, 0..3u64, any::<bool>()).prop_map(
        |(command, table_id, priority, matching, output, out_port, cookie, by_cookie)| {
            let is_delete = command == FLOW_DELETE || command == FLOW_DELETE_STRICT;
            let fields = FlowModFields {
                command,
                table_id,
                priority,
                cookie,
                cookie_mask: if by_cookie && is_delete { 3 } else { 0 },
                out_port: if is_delete { out_port } else { PortNo::ANY },
                ..FlowModFields::default()
            };
            fields.with(matching, vec![Instruction::ApplyActions(vec![Action::output(PortNo(output))])])
        },
    )
}

/// Table, priority, match and instructions of each rule, as text.
type Rules = BTreeSet<(u8, u16, String, String)>;

fn rules_of(switch: &mut Switch, version: Version) -> Rules {
    let request = FlowStatsRequest::default();
    let body = Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Flow(request) });
    let mut effects = Effects::default();
    switch.on_message(C, &Message { version, xid: 9, body }, NOW, &mut effects);
    let replies = effects.messages.into_iter().filter_map(|(_, message)| match message.body {
        Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(rules), .. }) => Some(rules),
        _ => None,
    });
    let text = |rule: FlowStats| {
        let matching = rule.matching.sorted();
        (rule.table_id, rule.priority, format!("{matching:?}"), format!("{:?}", rule.instructions))
    };
    replies.flatten().map(text).collect()
}

fn check(version: Version, flow_mods: &[FlowMod]) {
    let versions = if version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions { versions, ..Default::default() });
    let (mut effects, mut book) = (Effects::default(), RuleBook::default());
    switch.on_connected(C, &mut effects);
    let hello = Message { version, xid: 1, body: Body::Hello(Hello::default()) };
    switch.on_message(C, &hello, NOW, &mut effects);
    let mut numbers: BTreeSet<u64> = BTreeSet::new();
    for flow_mod in flow_mods {
        let table_id = if version == Version::V1_0 { 0 } else { flow_mod.table_id };
        let wanted = FlowMod {
            table_id,
            cookie_mask: if table_id == 0 { 0 } else { flow_mod.cookie_mask },
            ..flow_mod.clone()
        };
        effects.messages.clear();
        switch.on_message(
            C,
            &Message { version, xid: 1, body: Body::FlowMod(wanted.clone()) },
            NOW,
            &mut effects,
        );
        assert!(effects.messages.is_empty(), "{:?}", effects.messages);
        match book.carry_out(&wanted, version) {
            BookChange::Added(number) => {
                numbers.insert(number);
            }
            BookChange::Modified(changed) => assert!(changed.iter().all(|number| numbers.contains(number))),
            BookChange::Deleted(gone) => {
                for (number, rule) in gone {
                    assert!(numbers.remove(&number));
                    assert_eq!(rule_number(rule.table_id, rule.priority, &rule.matching), Some(number));
                }
            }
            BookChange::Unknown => panic!("{wanted:?}"),
        }
    }
    let ours = numbers.iter().map(|number| {
        let rule = book.get(*number).expect("its number is known");
        let matching = rule.matching.sorted();
        (rule.table_id, rule.priority, format!("{matching:?}"), format!("{:?}", rule.instructions))
    });
    assert_eq!(ours.collect::<Rules>(), rules_of(&mut switch, version));
    assert_eq!(book.len(), numbers.len());
}

proptest! {
    #[test]
    fn the_book_has_the_rules_of_the_switch(flow_mods in proptest::collection::vec(a_flow_mod(), 1..40)) {
        check(Version::V1_3, &flow_mods);
        check(Version::V1_0, &flow_mods);
    }
}
