//! What must hold for the journal of a slice, whatever is in its file. The fuzz target calls it with what it finds, and a test of the slicer
//! crate with what was kept (`corpus/slice_journal`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use flow::{DatapathId, MacAddr, PortNo};
use openflow::Version;
use openflow::message::ReplyBody;
use slicer::{
    Command, Event, Isolation, Limits, Numbers, Output, PortFacts, PortPlan, SlicePlan, Slicer, SwitchPlan,
};

const DATAPATH: DatapathId = DatapathId(7);
/// The first line of a journal.
const HEADING: &[u8] = b"burnet slice 1\n";

/// If the first byte is odd, the others are the records of one frame: so fuzzing reaches them without a checksum. If it is even, they are a
/// whole file.
pub fn slice_journal(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let file = if first & 1 == 1 { framed(rest) } else { rest.to_vec() };
    let mut slicer = slicer();
    if slicer.recall(DATAPATH, &file).is_err() {
        assert_eq!(slicer.rules(DATAPATH), Some((0, 0)), "a damaged journal has changed something");
        assert!(slicer.may_take_for(DATAPATH), "a damaged journal is compared with the switch");
        return;
    }
    check_that_it_is_written_the_same(&mut slicer);
    check_that_the_switch_decides(slicer);
}

fn slicer() -> Slicer {
    let port = |port, is_edge| PortPlan { port: PortNo(port), shown_as: PortNo(port), is_edge };
    let ports = vec![port(1, true), port(2, false), port(3, false)];
    let plan = SlicePlan {
        name: "blue".to_owned(),
        isolation: Isolation::Vlan(42),
        is_read_only: false,
        switches: vec![SwitchPlan { datapath: DATAPATH, shown_as: DATAPATH, ports }],
        links: Vec::new(),
        limits: Limits::default(),
        numbers: Numbers { groups: 100..108, meters: 200..204 },
    };
    let mut slicer = Slicer::new(&plan).expect("the plan is sound");
    slicer.number_rules_from(1 << 40);
    slicer
}

/// What is recalled and written is recalled and written the same again.
fn check_that_it_is_written_the_same(one: &mut Slicer) {
    let (mut file, mut again) = (Vec::new(), Vec::new());
    assert!(one.write_journal(DATAPATH, true, &mut file));
    let mut other = slicer();
    other.recall(DATAPATH, &file).expect("a journal that was written can be read");
    assert!(other.write_journal(DATAPATH, true, &mut again));
    assert!(file == again, "{} and {} bytes", file.len(), again.len());
}

/// A switch that has no rule leaves none in the table.
fn check_that_the_switch_decides(mut slicer: Slicer) {
    let facts = |port| PortFacts {
        port: PortNo(port),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 1]),
        name: "p".to_owned(),
        is_live: true,
        curr_speed_kbps: 0,
    };
    let ports = (1..=3).map(facts).collect();
    let mut outputs = Vec::new();
    let up = Event::SwitchUp { datapath: DATAPATH, version: Version::V1_3, ports };
    slicer.on_event(1, up, &mut outputs);
    for output in std::mem::take(&mut outputs) {
        let Output::Command { ticket, command, wants_receipt, .. } = output else { continue };
        let datapath = DATAPATH;
        let event = match command {
            Command::Statistics(_) => {
                Event::Statistics { datapath, ticket, more: false, body: ReplyBody::Flow(Vec::new()) }
            }
            _ if wants_receipt => Event::Answer { datapath, ticket, outcome: slicer::Outcome::Done },
            _ => continue,
        };
        slicer.on_event(2, event, &mut outputs);
    }
    assert!(slicer.may_take_for(DATAPATH), "the comparison does not end");
    let adds = |output: &Output| match output {
        Output::Command { command: Command::FlowMod(it), .. } => it.command == 0 && it.priority > 1,
        _ => false,
    };
    assert!(!outputs.iter().any(adds), "a rule is added that the switch did not have");
}

/// Records as the file that has them.
fn framed(records: &[u8]) -> Vec<u8> {
    let length = u32::try_from(records.len()).unwrap_or(u32::MAX);
    let head = [length, !length, crc32(records)].map(u32::to_le_bytes).concat();
    [HEADING, &head, records].concat()
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}
