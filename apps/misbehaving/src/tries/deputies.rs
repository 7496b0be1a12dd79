//! What an app may not do itself, done for it by a group, a table, a meter or an action set, its own or another's.

use super::Try;
use super::bytes::{apply, bucket, field, group, output, set_field};
use burnet_sdk::{Commands, DatapathId, Field, GroupMod, MeterMod, PacketOut, PortNo, What};

pub(super) const TRIES: &[Try] = &[
    Try::twice("forge-by-group", |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&forged_reply()), out),
        _ => send(datapath, &group(OWN), &ARP_REQUEST, out),
    }),
    Try::twice("ports-by-group", |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&output(NOWHERE)), out),
        _ => send(datapath, &group(OWN), &super::shadowing::FRAME, out),
    }),
    Try { name: "ports-by-chain", stages: 3, command: chain, on_packet: None },
    Try { name: "group-changed-later", stages: 3, command: changed_later, on_packet: None },
    Try::twice("forge-by-table", |stage, datapath, out| match stage {
        0 => {
            let rule = out.rule(datapath).priority(1).matching(|m| {
                m.field(Field::EthType, 0x0806u16);
            });
            rule.instruction_bytes(&apply(&forged_reply())).send_with_receipt();
            1
        }
        _ => send(datapath, &output(PortNo::TABLE.0), &ARP_REQUEST, out),
    }),
    Try::once("escape-by-action-set", |_, datapath, out| {
        let rule = out.rule(datapath).priority(5).matching(within);
        rule.instructions(|i| {
            i.write_actions(|a| {
                a.set_field(Field::Ipv4Dst, 0x0a00_0001u32).output(PortNo(NOWHERE), 0);
            })
            .goto_table(1);
        })
        .send_with_receipt();
        1
    }),
    Try::once("escape-by-bucket", |_, datapath, out| {
        let outside = set_field(&field(0x8000, 12, &[10, 0, 0, 1]));
        add_group(datapath, OWN, &bucket(&[outside, output(NOWHERE)].concat()), out)
    }),
    Try::once("unknown-group", |_, datapath, out| {
        let rule = out.rule(datapath).priority(5).matching(within);
        rule.instruction_bytes(&apply(&group(FOREIGN))).send_with_receipt();
        send(datapath, &group(FOREIGN), &super::shadowing::FRAME, out) + 1
    }),
    Try::once("unknown-meter", |_, datapath, out| {
        let rule = out.rule(datapath).priority(5).matching(within);
        rule.instructions(|i| {
            i.meter(FOREIGN);
        })
        .send_with_receipt();
        1
    }),
    Try::once("delete-all-groups", |_, datapath, out| {
        out.command(
            datapath,
            What::GroupMod(GroupMod { command: 2, group_type: 0, group_id: 0xffff_fffc, buckets: &[] }),
        );
        1
    }),
    Try::once("delete-all-meters", |_, datapath, out| {
        out.command(
            datapath,
            What::MeterMod(MeterMod { command: 2, flags: 0, meter_id: 0xffff_ffff, bands: &[] }),
        );
        1
    }),
    Try::once("controller-by-group", |_, datapath, out| {
        add_group(datapath, OWN, &bucket(&output(PortNo::CONTROLLER.0)), out)
    }),
];

/// Groups of the attacker's, and one that nobody has made.
const OWN: u32 = 900;
const SECOND: u32 = 901;
const FOREIGN: u32 = 77;
/// A port that no small switch has.
const NOWHERE: u32 = crate::NOWHERE.0;

/// Who has 10.0.0.1, asked by 10.9.0.1: what the attacker may send.
const ARP_REQUEST: [u8; 60] = {
    let mut frame = [0; 60];
    let begin: [u8; 42] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0xbb, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0xbb,
        0, 0, 0, 1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
    ];
    let mut at = 0;
    while at < begin.len() {
        frame[at] = begin[at];
        at += 1;
    }
    frame
};

/// What was granted to the bounded attacker.
fn within(m: &mut burnet_sdk::MatchWriter<'_>) {
    m.field(Field::EthType, 0x0800u16).field(Field::Ipv4Dst, 0x0a09_0001u32);
}

/// Turns the request into the answer of 10.0.0.1 that it is the attacker, for everybody.
fn forged_reply() -> Vec<u8> {
    let answer = set_field(&field(0x8000, 21, &[0, 2]));
    let sender = set_field(&field(0x8000, 22, &[10, 0, 0, 1]));
    [answer, sender, output(PortNo::FLOOD.0)].concat()
}

fn chain(stage: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
    match stage {
        0 => add_group(datapath, OWN, &bucket(&output(NOWHERE)), out),
        1 => add_group(datapath, SECOND, &bucket(&group(OWN)), out),
        _ => send(datapath, &group(SECOND), &super::shadowing::FRAME, out),
    }
}

fn changed_later(stage: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
    match stage {
        0 => add_group(datapath, OWN, &bucket(&output(1)), out),
        1 => {
            let changed =
                GroupMod { command: 1, group_type: 0, group_id: OWN, buckets: &bucket(&output(NOWHERE)) };
            out.command(datapath, What::GroupMod(changed));
            1
        }
        _ => send(datapath, &group(OWN), &super::shadowing::FRAME, out),
    }
}

fn add_group(datapath: DatapathId, group_id: u32, buckets: &[u8], out: &mut Commands) -> u32 {
    out.command(datapath, What::GroupMod(GroupMod { command: 0, group_type: 0, group_id, buckets }));
    1
}

fn send(datapath: DatapathId, actions: &[u8], data: &[u8], out: &mut Commands) -> u32 {
    let packet_out = PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions, data };
    out.command(datapath, What::PacketOut(packet_out));
    1
}
