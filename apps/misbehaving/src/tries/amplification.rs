//! Few commands with many effects: outputs, floods, groups of groups, packet-ins and statistics by the thousand.
//!
//! Every number is bounded, so that a switch that carries out everything is done in a few seconds.

use super::Try;
use super::bytes::{all_flows, apply, ask, bucket, group, output};
use crate::frames::{ETHERTYPE, FRAME, kind_of_frame};
use burnet_sdk::{Commands, DatapathId, Field, GroupMod, MeterMod, PacketIn, PacketOut, PortNo, What};

pub(super) const TRIES: &[Try] = &[
    Try::once("many-outputs", |_, datapath, out| {
        packet_outs(datapath, 100, &output(crate::NOWHERE.0).repeat(OUTPUTS), out)
    }),
    Try::once("many-floods", |_, datapath, out| {
        let allowed = output(PortNo::FLOOD.0);
        packet_outs(datapath, 20, &allowed.repeat(OUTPUTS), out) + packet_outs(datapath, 5, &allowed, out)
    }),
    Try::once("long-frames", |_, datapath, out| {
        let frame = [&FRAME[..], &[0x55; 8_000]].concat();
        (0..500).map(|_| send(datapath, &output(PortNo::FLOOD.0), &frame, out)).sum()
    }),
    Try::stages("group-of-groups", 4, group_of_groups),
    Try::twice("controller-outputs", |stage, datapath, out| match stage {
        0 => {
            let rule = out.rule(datapath).priority(1).matching(own_packets);
            rule.instruction_bytes(&apply(&to_controller().repeat(OUTPUTS))).send_with_receipt();
            1
        }
        _ => packet_outs(datapath, PACKETS_TO_TABLE, &output(PortNo::TABLE.0), out),
    }),
    Try { on_packet: Some(send_twice_again), ..Try::twice("packet-in-loop", packet_in_loop) },
    Try::once("statistics-flood", |_, datapath, out| {
        let all = all_flows();
        (0..2_000).map(|_| ask(datapath, 1, &all, out)).sum()
    }),
    Try::once("barrier-flood", |_, datapath, out| {
        (0..2_000).for_each(|_| {
            out.barrier(datapath);
        });
        2_000
    }),
    Try::once("group-flood", |_, datapath, out| {
        (1..=5_000).for_each(|group_id| {
            out.command(
                datapath,
                What::GroupMod(GroupMod { command: 0, group_type: 0, group_id, buckets: &[] }),
            );
        });
        5_000
    }),
    Try::once("meter-flood", |_, datapath, out| {
        let band = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        (1..=5_000).for_each(|meter_id| {
            out.command(datapath, What::MeterMod(MeterMod { command: 0, flags: 1, meter_id, bands: &band }));
        });
        5_000
    }),
];

/// The number of outputs in one command: about as many as fit into a message.
const OUTPUTS: usize = 3_500;

/// Without the rule the learning switch floods each of them, so three switches make 60 frames at each host. Open
/// vSwitch's dummy ports keep a hundred frames for a host and drop the rest (`NETDEV_DUMMY_MAX_QUEUE`). With 50 of
/// each, they dropped a ping once in forty trials.
const PACKETS_TO_TABLE: u32 = 20;

const OWN: u32 = 900;
const SECOND: u32 = 901;
const THIRD: u32 = 902;
/// The number of buckets in each group. Two levels make 100 packets of one. Three make 1,200, more than one packet may become.
const BUCKETS: [usize; 3] = [10, 10, 12];

/// OFPAT_OUTPUT to the controller, of the whole packet.
fn to_controller() -> Vec<u8> {
    let mut action = output(PortNo::CONTROLLER.0);
    action[8..10].copy_from_slice(&[0xff, 0xff]);
    action
}

/// Matches the attacker's own frames and no others.
fn own_packets(m: &mut burnet_sdk::MatchWriter<'_>) {
    m.field(Field::EthType, ETHERTYPE);
}

fn packet_outs(datapath: DatapathId, count: u32, actions: &[u8], out: &mut Commands) -> u32 {
    (0..count).map(|_| send(datapath, actions, &FRAME, out)).sum()
}

fn group_of_groups(stage: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
    let add = |group_id, actions: &[u8], out: &mut Commands| {
        let buckets = bucket(actions).repeat(BUCKETS[usize::from(stage)]);
        out.command(
            datapath,
            What::GroupMod(GroupMod { command: 0, group_type: 0, group_id, buckets: &buckets }),
        );
        1
    };
    match stage {
        0 => add(OWN, &output(1), out),
        1 => add(SECOND, &group(OWN), out),
        2 => add(THIRD, &group(SECOND), out),
        _ => packet_outs(datapath, 20, &group(THIRD), out) + packet_outs(datapath, 1, &group(OWN), out),
    }
}

/// Sends two packets for each of its own that arrives, so that they double until a limit stops them. It ignores
/// hosts' frames: an app that may send any packet may also send in their names, which is not tested here.
fn send_twice_again(packet: &PacketIn, out: &mut Commands) {
    if kind_of_frame(packet.data).is_none() {
        return;
    }
    for _ in 0..2 {
        out.packet_out(packet.datapath).frame(packet.data).output(PortNo::TABLE).send();
    }
}

fn packet_in_loop(stage: u8, datapath: DatapathId, out: &mut Commands) -> u32 {
    match stage {
        0 => {
            let rule = out.rule(datapath).priority(1).matching(own_packets);
            rule.instruction_bytes(&apply(&to_controller())).send_with_receipt();
            1
        }
        _ => packet_outs(datapath, 10, &output(PortNo::TABLE.0), out),
    }
}

fn send(datapath: DatapathId, actions: &[u8], data: &[u8], out: &mut Commands) -> u32 {
    let packet_out = PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions, data };
    out.command(datapath, What::PacketOut(packet_out));
    1
}
