//! Random groups and rules for a frame.
//!
//! In: a seed, and the fields of a frame. Out: group mods and flow mods of which a switch accepts a good part. Priorities differ, since a switch may
//! take any of two equal rules.

use crate::seed::Seed;
use explain::{Bucket, GROUP_NONE, Group, GroupKind, Rule};
use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, MacAddr, Match, PortNo};

/// Fields that decide which other fields there are: rules name them often, so that set-field is consistent.
const KINDS: [Field; 4] = [Field::EthType, Field::VlanVid, Field::IpProto, Field::Icmpv6Type];

/// A match. It holds for the frame in about half of the cases.
fn matching(seed: &mut Seed, fields: &FrameFields, is_v10: bool) -> Match {
    let mut wanted = Match::any();
    for (field, value) in fields.iter() {
        if matches!(field, Field::TunnelId | Field::IpEcn | Field::Ipv6Exthdr)
            || is_v10 && field == Field::Metadata
        {
            continue;
        }
        let percent = if KINDS.contains(&field) { 55 } else { 12 };
        if !seed.percent(percent) {
            continue;
        }
        let value = if seed.percent(12) { value ^ 1 } else { value };
        match field.maskable() && seed.percent(20) && field != Field::VlanVid {
            true => wanted.set_masked(field, value, field.full_mask() ^ 1),
            false => wanted.set(field, value),
        }
    }
    if seed.percent(10) {
        wanted.set(Field::InPort, u128::from(1 + seed.below(2)));
    }
    wanted.sorted()
}

fn port(seed: &mut Seed) -> PortNo {
    match seed.below(12) {
        0 => PortNo::IN_PORT,
        1 => PortNo::ALL,
        2 => PortNo::FLOOD,
        3 => PortNo::CONTROLLER,
        number => PortNo(1 + u32::try_from(number).unwrap() % 6),
    }
}

fn output(seed: &mut Seed) -> Action {
    Action::Output { port: port(seed), max_len: 0xffff }
}

fn change_v13(seed: &mut Seed, fields: &FrameFields) -> Action {
    let there: Vec<Field> = fields.iter().map(|(field, _)| field).collect();
    let value = u128::from(seed.below(4));
    match seed.below(16) {
        0 => Action::PushVlan(seed.one(&[0x8100, 0x88a8])),
        1 => Action::PopVlan,
        2 => Action::PushMpls(0x8847),
        3 => Action::PopMpls(seed.one(&[0x0800, 0x8847, 0x0806])),
        4 => Action::SetMplsTtl(seed.one(&[1, 2, 9])),
        5 => Action::DecMplsTtl,
        6 => Action::SetNwTtl(seed.one(&[1, 2, 9])),
        7 | 8 => Action::DecNwTtl,
        9 => seed.one(&[Action::CopyTtlIn, Action::CopyTtlOut]),
        10 => Action::SetField { field: Field::VlanVid, value: 0x1000 | value },
        _ => Action::SetField { field: seed.one(&there), value },
    }
}

fn change_v10(seed: &mut Seed) -> Action {
    let number = u8::try_from(seed.below(4)).unwrap();
    match seed.below(9) {
        0 => Action::SetVlanVid(number.into()),
        1 => Action::SetVlanPcp(number),
        2 => Action::StripVlan,
        3 => Action::SetEthSrc(MacAddr([0, 0, 0, 0, 0, number])),
        4 => Action::SetEthDst(MacAddr([0, 0, 0, 0, 0, number])),
        5 => Action::SetIpv4Dst([10, 0, 0, number].into()),
        6 => Action::SetIpTos(number << 2),
        7 => Action::SetTransportSrc(number.into()),
        _ => Action::SetTransportDst(number.into()),
    }
}

fn actions(seed: &mut Seed, fields: &FrameFields, groups: &[u32]) -> Vec<Action> {
    let count = seed.below(4);
    let mut list: Vec<Action> = (0..count)
        .map(|_| match seed.below(10) {
            0..=3 => output(seed),
            4 | 5 if !groups.is_empty() => Action::Group(seed.one(groups)),
            6 => Action::SetQueue(1),
            _ => change_v13(seed, fields),
        })
        .collect();
    if seed.percent(70) {
        list.push(output(seed));
    }
    list
}

/// A rule of 1.3.
pub fn rule_v13(seed: &mut Seed, fields: &FrameFields, priority: u16, groups: &[u32]) -> Rule {
    let table_id = u8::try_from(seed.below(4)).unwrap().saturating_sub(1);
    let mut instructions = Vec::new();
    if seed.percent(15) {
        instructions.push(Instruction::Meter(1));
    }
    if seed.percent(65) {
        instructions.push(Instruction::ApplyActions(actions(seed, fields, groups)));
    }
    if seed.percent(10) {
        instructions.push(Instruction::ClearActions);
    }
    if seed.percent(40) {
        instructions.push(Instruction::WriteActions(actions(seed, fields, groups)));
    }
    if seed.percent(15) {
        instructions.push(Instruction::WriteMetadata { metadata: seed.below(2), mask: 1 });
    }
    if seed.percent(45) {
        instructions.push(Instruction::GotoTable(table_id + 1));
    }
    if seed.percent(50) {
        instructions.reverse();
    }
    Rule { table_id, priority, matching: matching(seed, fields, false), instructions }
}

/// A rule of 1.0.
pub fn rule_v10(seed: &mut Seed, fields: &FrameFields, priority: u16) -> Rule {
    let count = seed.below(5);
    let action = |seed: &mut Seed| match seed.percent(60) {
        true => output(seed),
        false => change_v10(seed),
    };
    let list: Vec<Action> = (0..count).map(|_| action(seed)).collect();
    let instructions = if list.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(list)] };
    Rule { table_id: 0, priority, matching: matching(seed, fields, true), instructions }
}

/// A group. Only groups before it are among its actions.
pub fn group(seed: &mut Seed, fields: &FrameFields, before: &[u32]) -> Group {
    let kind = seed.one(&[GroupKind::All, GroupKind::Select, GroupKind::Indirect, GroupKind::FastFailover]);
    let count = if kind == GroupKind::Indirect { 1 } else { seed.below(4) };
    let bucket = |seed: &mut Seed| Bucket {
        weight: if kind == GroupKind::Select { u16::try_from(seed.below(3)).unwrap() } else { 0 },
        watch_port: match kind == GroupKind::FastFailover || seed.percent(20) {
            true => PortNo(1 + u32::try_from(seed.below(5)).unwrap()),
            false => PortNo::ANY,
        },
        watch_group: match seed.percent(15) && !before.is_empty() {
            true => seed.one(before),
            false => GROUP_NONE,
        },
        actions: actions(seed, fields, before),
    };
    Group { kind, buckets: (0..count).map(|_| bucket(seed)).collect() }
}
