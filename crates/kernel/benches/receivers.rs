//! Counts what it costs to find the receivers of a packet-in, among few zones with flowspaces and among many.
//!
//! `--count CASE ZONES ROUNDS` only runs a case, so that callgrind can count its instructions. The difference of two counts
//! excludes the start-up. In the case `tag`, each zone has a VLAN tag of its own; in `port`, a port of its own at the switch;
//! in `prefix`, a prefix of addresses. In `own-rules`, each receives only what its rules send.

#![allow(clippy::unwrap_used, reason = "a bench may")]

use abi::command::{self, Command, Subscribe, What};
use abi::event::{self, OpenFlowVersion, PacketIn, SwitchUp, kind};
use abi::{Frame, ZoneId};
use flow::text::parse_match;
use flow::{DatapathId, PortNo};
use kernel::{Bounds, Capability, Grant, Kernel, SwitchBounds};
use std::hint::black_box;

const SWITCH: DatapathId = DatapathId(1);

/// Packet-ins per round.
const BATCH: u64 = 1_000;

/// The packets of a zone with this number.
fn bounds(case: &str, zone: u16) -> Bounds {
    let space = |text: String| Some(vec![parse_match(&text).unwrap()]);
    match case {
        "port" => {
            let here =
                SwitchBounds { flowspace: space(format!("in_port={zone}")), ..SwitchBounds::default() };
            Bounds { switches: [(SWITCH, here)].into(), ..Bounds::default() }
        }
        "prefix" => Bounds { flowspace: space(format!("ip,nw_dst=10.0.{zone}.0/24")), ..Bounds::default() },
        _ => Bounds { flowspace: space(format!("dl_vlan={zone}")), ..Bounds::default() },
    }
}

fn kernel(case: &str, zones: u16) -> Kernel {
    let mut kernel = Kernel::new(7);
    for number in 1..=zones {
        let grant = Grant::everywhere(&Capability::GRANT_ALL).with_packets_in(bounds(case, number));
        kernel.attach(ZoneId(number), "slice", grant, 0);
        let only_own = if case == "own-rules" { kind::OF_OWN_RULES } else { 0 };
        let events = kind::bit(kind::PACKET_IN) | only_own;
        let what = What::Subscribe(Subscribe { events, packets: &[] });
        let (mut bytes, mut effects) = (Vec::new(), Vec::new());
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        kernel.on_command(ZoneId(number), &Frame::read(&bytes).unwrap(), 0, &mut effects);
    }
    let mut bytes = Vec::new();
    let up =
        SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 8, openflow: OpenFlowVersion::V1_3, ports: &[] };
    event::write::switch_up(&mut bytes, 1, &up);
    kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    kernel
}

/// A packet-in for the zone with this number: of its port, its tag and its prefix, and by a rule of its own if that counts.
fn packet_in(case: &str, zone: u16) -> Vec<u8> {
    let low = zone.to_be_bytes()[1];
    let mut data = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0x81, 0, 0, low, 8, 0];
    data.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, low, 1, 0, 7, 0, 80]);
    data.resize(64, 0);
    let packet = PacketIn {
        datapath: SWITCH,
        in_port: PortNo(zone.into()),
        buffer_id: None,
        total_len: 64,
        reason: 0,
        table_id: 0,
        cookie: if case == "own-rules" { ZoneId(zone).stamp(1) } else { 0 },
        metadata: &[],
        data: &data,
    };
    let mut bytes = Vec::new();
    event::write::packet_in(&mut bytes, 2, &packet);
    bytes
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, flag, case, zones, rounds, ..] = &arguments[..] else { return };
    let (zones, rounds): (u16, u64) = (zones.parse().unwrap(), rounds.parse().unwrap());
    assert_eq!(flag, "--count");
    let (mut kernel, bytes) = (kernel(case, zones), packet_in(case, zones));
    let mut effects = Vec::new();
    for number in 0..rounds * BATCH {
        let frame = Frame::read(black_box(&bytes)).unwrap();
        // A round takes a second: a zone may not cause many packet-ins at once.
        let receivers = kernel.on_event(&frame, number / BATCH * 1_000, &mut effects).unwrap();
        assert!(black_box(receivers).contains(ZoneId(zones)));
    }
}
