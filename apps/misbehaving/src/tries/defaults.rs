//! Tries each capability by an app that was granted all others.

use super::Try;
use super::bytes::{all_flows, apply, ask, bucket, output};
use crate::frames::FRAME;
use burnet_sdk::{Ask, Commands, DatapathId, GroupMod, MacAddr, MeterMod, PacketOut, PortMod, PortNo, What};

pub(super) const TRIES: &[Try] = &[
    Try::once("without-packet-out", |_, datapath, out| {
        send(datapath, &output(PortNo::FLOOD.0), out) + send(datapath, &output(PortNo::TABLE.0), out)
    }),
    Try::once("without-rule-write", |_, datapath, out| {
        out.rule(datapath).priority(1).send_with_receipt();
        out.rule(datapath).priority(1).delete_within().send_with_receipt();
        2
    }),
    Try::once("without-groups", |_, datapath, out| {
        let buckets = bucket(&output(1));
        out.command(
            datapath,
            What::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 9, buckets: &buckets }),
        );
        let band = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        out.command(datapath, What::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 9, bands: &band }));
        2
    }),
    Try::once("without-stats-read", |_, datapath, out| {
        // OFPMP_FLOW, OFPMP_TABLE, OFPMP_PORT_STATS.
        let every_port = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        ask(datapath, 1, &all_flows(), out) + ask(datapath, 3, &[], out) + ask(datapath, 4, &every_port, out)
    }),
    Try::once("without-port-write", |_, datapath, out| {
        (1..=4).for_each(|port| {
            // OFPPC_PORT_DOWN.
            let down = PortMod { port_no: PortNo(port), hw_addr: MacAddr([0; 6]), config: 1, mask: 1 };
            out.change_port(datapath, down);
        });
        4
    }),
    Try::once("without-packet-in", |_, datapath, out| {
        let rule = out.rule(datapath).priority(1);
        rule.instruction_bytes(&apply(&output(PortNo::CONTROLLER.0))).send_with_receipt();
        send(datapath, &output(PortNo::CONTROLLER.0), out) + 1
    }),
    Try::once("without-buffers", |_, datapath, out| {
        let actions = output(PortNo::FLOOD.0);
        (0..4).for_each(|buffer| {
            let kept =
                PacketOut { buffer_id: Some(buffer), in_port: PortNo(1), actions: &actions, data: &[] };
            out.command(datapath, What::PacketOut(kept));
        });
        4
    }),
    Try::once("without-barrier", |_, datapath, out| {
        out.barrier(datapath);
        1
    }),
    Try::once("without-query", |_, datapath, out| {
        out.command(datapath, What::Query(Ask::query("learning-switch", b"where is h1")));
        1
    }),
    Try::once("without-store", |_, _, out| {
        out.store_put("misbehaving/mine", b"x");
        out.store_get("firewall/rules");
        2
    }),
    Try::once("without-vendor", |_, datapath, out| {
        let note = super::bytes::nicira(8, &[0; 6]);
        out.rule(datapath).priority(1).instruction_bytes(&apply(&note)).send_with_receipt();
        1
    }),
    Try::once("without-others-meters", |_, datapath, out| {
        let band = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        for meter_id in [0xffff_fffd, 0xffff_fffe] {
            out.command(datapath, What::MeterMod(MeterMod { command: 0, flags: 1, meter_id, bands: &band }));
        }
        2
    }),
];

fn send(datapath: DatapathId, actions: &[u8], out: &mut Commands) -> u32 {
    let packet_out = PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions, data: &FRAME };
    out.command(datapath, What::PacketOut(packet_out));
    1
}
