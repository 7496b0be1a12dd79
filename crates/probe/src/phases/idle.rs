//! A phase: what the idle switch needs for one message: echo, barrier, statistics, packet-out, packet-in.
//!
//! Each message is sent when the one before is answered, and some time later, so that nothing waits. In: the times of answers. Out: `idle_us` of
//! each type.

use super::cabling::FRAME_BYTES;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules;
use crate::samples::{ns, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use openflow::{Body, Version};
use profile::MessageType;

/// The first samples of each type, which tell how many there is time for.
const PILOT: usize = 8;
/// Samples of replies: they vary little.
const SAMPLES_MAX: usize = 240;
/// Samples of packets. A table of so many is about 0.04 (KS) from its distribution.
const PACKETS_MAX: usize = 2000;
/// How long each type takes at most.
const TYPE_NS: u64 = 20 * SECOND_NS;
/// Between an answer and the next message.
const GAP_NS: u64 = 2 * MILLISECOND_NS;
/// How many times longer than the median a further answer may take, and how much on top.
const LATE: f64 = 20.0;
const GAP_LATE_NS: u64 = 100 * MILLISECOND_NS;
/// How long an answer may take.
const PATIENCE_NS: u64 = 5 * SECOND_NS;

const TYPES: [MessageType; 5] = [
    MessageType::Echo,
    MessageType::Barrier,
    MessageType::Statistics,
    MessageType::PacketOut,
    MessageType::PacketIn,
];

/// The phase.
#[derive(Debug, Default)]
pub struct Idle {
    /// Which type, and whether its pilot was measured.
    at: usize,
    has_pilot: bool,
    has_started: bool,
}

impl Phase for Idle {
    fn title(&self) -> String {
        "measuring the idle switch".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["idle delays"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (true, Some(record)) = (self.has_started, last) {
            let kind = TYPES[self.at];
            let delays = record.outcomes.iter().filter_map(|outcome| delay_of(kind, outcome)).map(us);
            let delays: Vec<f64> = delays.collect();
            found.service(kind).idle_us.extend(delays);
            if self.has_pilot || found.service(kind).idle_us.is_empty() {
                if found.service(kind).idle_us.is_empty() {
                    found.leave_out(&format!("cpu.{}", kind.key()), "the switch gave no answer");
                }
                (self.at, self.has_pilot) = (self.at + 1, false);
            } else {
                self.has_pilot = true;
            }
        }
        self.has_started = true;
        let Some(kind) = TYPES.get(self.at) else { return Next::Done };
        let count = if self.has_pilot { further(*kind, found.idle_us(*kind).unwrap_or(0.0)) } else { PILOT };
        Next::Run(script(*kind, count, !self.has_pilot, options, found))
    }
}

/// How many further samples there is time for.
fn further(kind: MessageType, each_us: f64) -> usize {
    let is_packet = matches!(kind, MessageType::PacketIn | MessageType::PacketOut);
    let most = if is_packet { PACKETS_MAX } else { SAMPLES_MAX };
    let each_ns = crate::samples::ns(each_us) + GAP_NS;
    usize::try_from(TYPE_NS / each_ns).unwrap_or(most).clamp(PILOT, most)
}

fn delay_of(kind: MessageType, outcome: &Outcome) -> Option<u64> {
    match kind {
        MessageType::PacketIn => outcome.packet_in_after_ns(),
        MessageType::PacketOut => outcome.frame_after_ns(),
        _ => outcome.reply_after_ns(),
    }
}

fn script(
    kind: MessageType,
    count: usize,
    is_first: bool,
    options: &Options,
    found: &mut Findings,
) -> Script {
    let when = When::After(GAP_NS);
    let (into, out) = (options.ports[0].port, options.ports[1].port);
    let ask = |body: &Body| (0..count).map(|_| Step::ask(when, body.clone())).collect();
    let mut steps: Vec<Step> = match kind {
        MessageType::Echo => ask(&Body::EchoRequest(Vec::new())),
        MessageType::Barrier => ask(&Body::BarrierRequest),
        MessageType::Statistics => ask(&rules::flow_stats()),
        MessageType::PacketOut => {
            let flows = found.take_flows(Width::Ethernet, count);
            flows.into_iter().map(|flow| Step::packet_out(when, flow, out, FRAME_BYTES)).collect()
        }
        _ => {
            let flows = found.take_flows(Width::Ethernet, count);
            flows
                .into_iter()
                .map(|flow| Step::frame(when, flow, into, FRAME_BYTES, Until::PacketIn))
                .collect()
        }
    };
    if kind == MessageType::PacketIn && is_first {
        steps.splice(0..0, to_controller(found));
    }
    // An answer that a bound keeps back never comes.
    let patience_ns =
        if is_first { PATIENCE_NS } else { ns(LATE * found.idle_us(kind).unwrap_or(0.0)) + GAP_LATE_NS };
    Script::new(steps, patience_ns.min(PATIENCE_NS))
}

/// Lets packets without a rule go to the controller.
pub(super) fn to_controller(found: &Findings) -> [Step; 2] {
    let rule = if found.version == Version::V1_0 { rules::delete_rest() } else { rules::add_miss(u16::MAX) };
    [Step::send(When::At(0), rule), Step::barrier(When::After(0))]
}
