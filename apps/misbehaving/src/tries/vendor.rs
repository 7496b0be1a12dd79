//! Vendor extensions, used by an app without the capability for them. Each one allows something that no other
//! capability allows.

use super::Try;
use super::bytes::{
    NICIRA, NXM_0, NXM_1, apply, ask, experimenter, field, header, masked, nicira, output, set_field,
};
use burnet_sdk::{Commands, DatapathId, MeterMod, What};

pub(super) const TRIES: &[Try] = &[
    Try::once("learn-by-packet-out", |_, datapath, out| packet_out(datapath, &learn(LEARN), out)),
    Try::once("learn-by-rule", |_, datapath, out| rule(datapath, &learn(LEARN), out)),
    Try::once("delete-learned", |_, datapath, out| rule(datapath, &learn(DELETE_LEARNED), out)),
    Try::once("resubmit-packet-out", |_, datapath, out| packet_out(datapath, &resubmit(), out)),
    Try::once("resubmit-rule", |_, datapath, out| rule(datapath, &resubmit(), out)),
    Try::once("load-field", |_, datapath, out| {
        packet_out(datapath, &[load_eth_src(), output(1)].concat(), out)
            + rule(datapath, &load_eth_src(), out)
    }),
    Try::once("output-register", |_, datapath, out| packet_out(datapath, &output_register(), out)),
    Try::once("controller-action", |_, datapath, out| rule(datapath, &to_controller(), out)),
    Try::once("clone-action", |_, datapath, out| {
        packet_out(datapath, &nicira(42, &[&[0; 6][..], &output(1)].concat()), out)
    }),
    Try::once("conntrack-action", |_, datapath, out| rule(datapath, &nicira(35, &[0; 14]), out)),
    Try::once("unknown-vendor-action", |_, datapath, out| {
        rule(datapath, &experimenter(0x0012_3456, &[0; 8]), out)
            + packet_out(datapath, &experimenter(0x0012_3456, &[0; 8]), out)
    }),
    Try::once("vendor-set-field", |_, datapath, out| {
        let register = set_field(&field(NXM_1, 0, &[0, 0, 0, 1]));
        packet_out(datapath, &[register, output(1)].concat(), out)
    }),
    Try::once("unknown-oxm-class", |_, datapath, out| {
        matched(datapath, &field(0x1234, 1, &[0, 0, 0, 1]), out)
            + matched(datapath, &field(NXM_1, 0, &[0, 0, 0, 1]), out)
    }),
    Try::once("experimenter-field", |_, datapath, out| {
        matched(
            datapath,
            &masked(0xffff, 42, &[0x4f, 0x4e, 0x46, 0, 0, 2], &[0x4f, 0x4e, 0x46, 0, 0xff, 0xff]),
            out,
        )
    }),
    Try::once("experimenter-instruction", |_, datapath, out| {
        out.rule(datapath).priority(1).instruction_bytes(&experimenter(NICIRA, &[0; 8])).send_with_receipt();
        1
    }),
    Try::once("experimenter-band", |_, datapath, out| {
        let band = [&[0xff, 0xff, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0][..], &NICIRA.to_be_bytes()].concat();
        out.command(datapath, What::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 9, bands: &band }));
        1
    }),
    Try::once("experimenter-statistics", |_, datapath, out| {
        // NXST_FLOW_MONITOR: reports every change of every rule of every app.
        let monitor = [&NICIRA.to_be_bytes()[..], &[0, 0, 0, 2], &[0; 16]].concat();
        ask(datapath, 0xffff, &monitor, out)
    }),
];

/// `NX_LEARN_F_DELETE_LEARNED`.
const DELETE_LEARNED: u16 = 2;
const LEARN: u16 = 0;

/// `NXAST_LEARN` of exactly the firewall's rule, which then sends packets back where they came from. Its cookie names
/// the first app.
fn learn(flags: u16) -> Vec<u8> {
    let matched = |name: u32, bits: u16, value: &[u8]| {
        // An immediate value that is matched.
        [&(1 << 13 | bits).to_be_bytes()[..], value, &name.to_be_bytes(), &[0, 0]].concat()
    };
    let in_port = header(NXM_0, 0, false, 2);
    // A field whose value becomes the port of an output.
    let sent_back = [&(2u16 << 11 | 16).to_be_bytes()[..], &in_port.to_be_bytes(), &[0, 0]].concat();
    let fixed = [
        &[0, 0, 0, 0][..],
        &60_000u16.to_be_bytes(),
        &(1u64 << 48).to_be_bytes(),
        &flags.to_be_bytes(),
        &[0, 0, 0, 0, 0, 0],
    ];
    let specs = [
        matched(header(NXM_0, 3, false, 2), 16, &[0x08, 0x00]),
        matched(header(NXM_0, 7, false, 4), 32, &[10, 0, 0, 1]),
        matched(header(NXM_0, 8, false, 4), 32, &[10, 0, 0, 4]),
        sent_back,
    ];
    nicira(16, &[fixed.concat(), specs.concat()].concat())
}

/// `NXAST_RESUBMIT`: sends the packet through the tables as if port 1 had received it.
fn resubmit() -> Vec<u8> {
    nicira(1, &[0, 1, 0, 0, 0, 0])
}

/// `NXAST_REG_LOAD`: replaces the lower 32 bits of the source address by another host's.
fn load_eth_src() -> Vec<u8> {
    nicira(
        7,
        &[&31u16.to_be_bytes()[..], &header(NXM_0, 2, false, 6).to_be_bytes(), &[0, 0, 0, 0, 0, 0, 0, 1]]
            .concat(),
    )
}

/// `NXAST_OUTPUT_REG`: sends the packet to the port whose number is in a register.
fn output_register() -> Vec<u8> {
    nicira(15, &[&31u16.to_be_bytes()[..], &header(NXM_1, 0, false, 4).to_be_bytes(), &[0; 8]].concat())
}

/// `NXAST_CONTROLLER`: sends the packet to any controller, with any reason.
fn to_controller() -> Vec<u8> {
    nicira(20, &[0xff, 0xff, 0, 0, 0, 0])
}

fn packet_out(datapath: DatapathId, actions: &[u8], out: &mut Commands) -> u32 {
    let what = burnet_sdk::PacketOut {
        buffer_id: None,
        in_port: burnet_sdk::PortNo::CONTROLLER,
        actions,
        data: &crate::frames::FRAME,
    };
    out.command(datapath, What::PacketOut(what));
    1
}

fn rule(datapath: DatapathId, actions: &[u8], out: &mut Commands) -> u32 {
    out.rule(datapath).priority(1).instruction_bytes(&apply(actions)).send_with_receipt();
    1
}

fn matched(datapath: DatapathId, matching: &[u8], out: &mut Commands) -> u32 {
    out.rule(datapath).priority(1).matching_bytes(matching).send_with_receipt();
    1
}
