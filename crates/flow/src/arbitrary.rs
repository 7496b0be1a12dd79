//! Strategies for any match, action and instruction, for property tests.

use crate::action::Action;
use crate::field::Field;
use crate::instruction::Instruction;
use crate::mac::MacAddr;
use crate::matching::{Match, MatchEntry};
use crate::port::PortNo;
use proptest::collection::vec;
use proptest::prelude::*;

pub fn field() -> impl Strategy<Value = Field> {
    (0u8..40).prop_map(|number| Field::from_number(number).unwrap())
}

/// A port: a small one, a reserved one, or any.
pub fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![(1..9u32), (0xffff_fff7..=u32::MAX), any::<u32>()].prop_map(PortNo)
}

/// A header of a class other than OPENFLOW_BASIC and a body that fits it.
fn unknown() -> impl Strategy<Value = (u32, Vec<u8>)> {
    (
        prop_oneof![Just(0u16), Just(1), Just(0xffff), any::<u16>()],
        0..128u32,
        any::<bool>(),
        vec(any::<u8>(), 4..40),
    )
        .prop_filter("not OpenFlow's own class", |(class, ..)| *class != crate::field::CLASS_BASIC)
        .prop_map(|(class, number, has_mask, body)| {
            let header = u32::from(class) << 16 | number << 9 | u32::from(has_mask) << 8 | body.len() as u32;
            (header, body)
        })
}

fn entry() -> impl Strategy<Value = MatchEntry> {
    let known = (field(), any::<u128>(), proptest::option::of(prop_oneof![any::<u128>(), Just(u128::MAX)]))
        .prop_map(|(field, value, mask)| {
            let mask = mask.filter(|_| field.maskable()).map(|mask| mask & field.full_mask());
            MatchEntry::Field { field, value: value & mask.unwrap_or(field.full_mask()), mask }
        });
    prop_oneof![
        9 => known,
        1 => unknown().prop_map(|(header, body)| MatchEntry::Unknown { header, body }),
    ]
}

pub fn rule() -> impl Strategy<Value = Match> {
    vec(entry(), 0..12).prop_map(|entries| {
        let mut rule = Match::any();
        entries.into_iter().for_each(|entry| rule.put(entry));
        rule
    })
}

/// An action that OpenFlow 1.3 has.
pub fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (port(), any::<u16>()).prop_map(|(port, max_len)| Action::Output { port, max_len }),
        4 => (field(), any::<u128>())
            .prop_map(|(field, value)| Action::SetField { field, value: value & field.full_mask() }),
        1 => unknown().prop_map(|(header, body)| Action::SetUnknownField { header, body }),
        1 => any::<u32>().prop_map(Action::SetQueue),
        1 => any::<u32>().prop_map(Action::Group),
        1 => any::<u16>().prop_map(Action::PushVlan),
        1 => any::<u16>().prop_map(Action::PushMpls),
        1 => any::<u16>().prop_map(Action::PopMpls),
        1 => any::<u16>().prop_map(Action::PushPbb),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => any::<u8>().prop_map(Action::SetNwTtl),
        2 => prop::sample::select(vec![
            Action::CopyTtlOut,
            Action::CopyTtlIn,
            Action::DecMplsTtl,
            Action::PopVlan,
            Action::DecNwTtl,
            Action::PopPbb,
        ]),
        1 => (any::<u32>(), 0..5usize, any::<u8>()).prop_map(|(experimenter, words, byte)| {
            Action::Experimenter { experimenter, body: vec![byte; words * 8] }
        }),
    ]
}

/// An action that only OpenFlow 1.0 has.
pub fn action_of_1_0() -> impl Strategy<Value = Action> {
    prop_oneof![
        any::<u16>().prop_map(Action::SetVlanVid),
        any::<u8>().prop_map(Action::SetVlanPcp),
        Just(Action::StripVlan),
        any::<[u8; 6]>().prop_map(|octets| Action::SetEthSrc(MacAddr(octets))),
        any::<[u8; 6]>().prop_map(|octets| Action::SetEthDst(MacAddr(octets))),
        any::<u32>().prop_map(|address| Action::SetIpv4Src(address.into())),
        any::<u32>().prop_map(|address| Action::SetIpv4Dst(address.into())),
        any::<u8>().prop_map(Action::SetIpTos),
        any::<u16>().prop_map(Action::SetTransportSrc),
        any::<u16>().prop_map(Action::SetTransportDst),
        (port(), any::<u32>()).prop_map(|(port, queue_id)| Action::Enqueue { port, queue_id }),
    ]
}

pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    vec(action(), 0..6)
}

/// At most one instruction of each type.
pub fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    let all = (any::<u8>(), any::<[u64; 2]>(), actions(), actions(), any::<u32>(), (any::<u32>(), 0..3usize));
    (all, any::<[bool; 7]>()).prop_map(
        |((table, [metadata, mask], write, apply, meter, (experimenter, words)), kept)| {
            let all = [
                Instruction::Meter(meter),
                Instruction::ApplyActions(apply),
                Instruction::ClearActions,
                Instruction::WriteActions(write),
                Instruction::WriteMetadata { metadata, mask },
                Instruction::Experimenter { experimenter, body: vec![1; words * 8] },
                Instruction::GotoTable(table),
            ];
            all.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(instruction, _)| instruction).collect()
        },
    )
}
