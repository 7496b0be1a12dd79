//! Indirect effects: a group, a table, a meter or an action set does what the app may not do itself. Some are the
//! app's own, some are another app's.

use super::bytes::{apply, bucket, field, group, output, set_field};
use super::{FOREIGN, Try};
use crate::frames::{A_RULES_ADDRESS, ARP_REQUEST, ASKING, BEYOND, ETHERTYPE, FRAME, TO_A_RULE};
use burnet_sdk::{Commands, DatapathId, Field, GroupMod, MeterMod, PacketOut, PortNo, What};

pub(super) const TRIES: &[Try] = &[
    Try::twice("forge-by-group", |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&forged_reply()), out),
        _ => {
            send(datapath, &output(PortNo::FLOOD.0), &ARP_REQUEST, out)
                + send(datapath, &group(OWN), &ARP_REQUEST, out)
        }
    }),
    Try::twice("forge-by-table", |stage, datapath, out| match stage {
        0 => {
            let rule = out.rule(datapath).priority(1).matching(|m| {
                m.field(Field::EthDst, A_RULES_ADDRESS).field(Field::EthType, ETHERTYPE);
            });
            let as_another = [set_field(&field(0x8000, 4, &[0, 0, 0, 0, 0, 1])), output(PortNo::FLOOD.0)];
            rule.instruction_bytes(&apply(&as_another.concat())).send_with_receipt();
            1
        }
        _ => {
            send(datapath, &output(PortNo::FLOOD.0), &FRAME, out)
                + send(datapath, &output(PortNo::TABLE.0), &TO_A_RULE, out)
        }
    }),
    Try::twice("ports-by-group", |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&output(BEYOND_PORT)), out),
        _ => by_port_and_group(datapath, OWN, out),
    }),
    Try::stages("ports-by-chain", 4, |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&output(BEYOND_PORT)), out),
        1 => add_group(datapath, SECOND, &bucket(&group(OWN)), out),
        2 => add_group(datapath, THIRD, &bucket(&group(SECOND)), out),
        _ => by_port_and_group(datapath, THIRD, out),
    }),
    Try::stages("group-changed-later", 4, changed_later),
    Try::twice("controller-by-group", |stage, datapath, out| match stage {
        0 => add_group(datapath, OWN, &bucket(&output(PortNo::CONTROLLER.0)), out),
        _ => {
            let rule = out.rule(datapath).priority(1).matching(|m| {
                m.field(Field::EthType, ETHERTYPE);
            });
            rule.instruction_bytes(&apply(&group(OWN))).send_with_receipt();
            (0..SENT_UP).map(|_| send(datapath, &group(OWN), &FRAME, out)).sum::<u32>() + 1
        }
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
        send(datapath, &group(FOREIGN), &FRAME, out) + 1
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
];

/// The numbers of the attacker's groups.
const OWN: u32 = 900;
const SECOND: u32 = 901;
const THIRD: u32 = 902;

/// A port that every switch of a trial has. It is not granted in cases that grant only the first port.
const BEYOND_PORT: u32 = 2;
const GRANTED_PORT: u32 = 1;
/// How many packets a group sends to the controller.
const SENT_UP: u32 = 400;
/// A port that no small switch has.
const NOWHERE: u32 = crate::NOWHERE.0;

/// The match that is granted to the bounded attacker.
fn within(m: &mut burnet_sdk::MatchWriter<'_>) {
    m.field(Field::EthType, 0x0800u16).field(Field::Ipv4Dst, 0x0a09_0001u32);
}

/// Turns an ARP request into a reply to everybody: 10.0.0.1 is at the attacker's address.
fn forged_reply() -> Vec<u8> {
    let answer = set_field(&field(0x8000, 21, &[0, 2]));
    let sender = set_field(&field(0x8000, 22, &[10, 0, 0, 1]));
    [answer, sender, output(PortNo::FLOOD.0)].concat()
}

/// A granted rule, and the same by a group that leads to a port that is not granted.
fn by_port_and_group(datapath: DatapathId, group_id: u32, out: &mut Commands) -> u32 {
    send(datapath, &output(GRANTED_PORT), &FRAME, out) + send(datapath, &group(group_id), &BEYOND, out)
}

/// A group that is harmless when a rule and a packet-out refer to it, and forges packets afterwards.
fn changed_later(stage: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
    match stage {
        0 => add_group(datapath, OWN, &bucket(&output(PortNo::FLOOD.0)), out),
        1 => {
            let rule = out.rule(datapath).priority(1).matching(|m| {
                m.field(Field::EthType, 0x0806u16).field(Field::ArpSpa, ASKING);
            });
            rule.instruction_bytes(&apply(&group(OWN))).send_with_receipt();
            send(datapath, &group(OWN), &ARP_REQUEST, out) + 1
        }
        2 => {
            let buckets = bucket(&forged_reply());
            let changed = GroupMod { command: 1, group_type: 0, group_id: OWN, buckets: &buckets };
            out.command(datapath, What::GroupMod(changed));
            1
        }
        _ => send(datapath, &group(OWN), &ARP_REQUEST, out),
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
