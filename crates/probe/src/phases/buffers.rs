//! A phase: how many packets the switch keeps for the controller, how long, and how much of them a packet-in has.
//!
//! ```text
//!   packets that nobody answers ──> packet-ins with and without a buffer ──> the number of buffers
//!   packet-outs with such buffers, later and later ──> errors ──> the life of a buffer
//! ```
//!
//! In: packet-ins, and errors. Out: the number of buffers, their life, and the bytes of a packet-in. A switch that says nothing about a
//! packet-out without its packet has no life here.

use super::cabling::FRAME_BYTES;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules;
use crate::script::{Record, SECOND_NS, Script, Step, Until, When};
use openflow::message::{NO_BUFFER, SwitchConfig};
use openflow::{Body, Version};
use profile::MessageType;
use std::collections::HashSet;

/// Packets at first.
const PACKETS: usize = 600;
/// Packets at most.
const PACKETS_MAX: usize = 3000;
/// How long it takes at most. Buffers may expire after a few seconds.
const LONGEST_NS: f64 = 4e9;
/// What the probe asks for.
const BYTES: u16 = 128;

/// Packets in buffers whose life is measured at once, and the fewest.
const KEPT: usize = 16;
const KEPT_MIN: usize = 4;
/// The ages at which they are asked for at first: some longer than the packets of a connection are waited for.
const YOUNGEST_NS: f64 = 0.2e9;
const OLDEST_NS: f64 = 12e9;
/// Rounds. Each makes the range of the life a tenth as wide.
const ROUNDS: usize = 3;
/// A range this narrow is a result.
const NARROW: f64 = 0.005;

/// The phase.
#[derive(Debug, Default)]
pub struct Buffers {
    state: State,
    /// Since when packets are kept that are asked for: when each came in, and its buffer.
    kept: Vec<(u64, u32)>,
    /// The oldest packet that was still there, and the youngest that was not.
    alive_ns: f64,
    gone_ns: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Counting,
    /// Packets come in, for this round.
    Filling(usize),
    /// They are asked for.
    Asking(usize),
}

impl Phase for Buffers {
    fn title(&self) -> String {
        "counting packet buffers".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["packet_in.buffers_packets", "packet_in.buffer_life_us"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.state, last) {
            (State::Counting, Some(record)) => {
                conclude(record, found);
                return self.ask(0, record, options, found);
            }
            (State::Filling(round), Some(record)) => return self.ask(round, record, options, found),
            (State::Asking(round), Some(record)) => return self.on_asked(round, record, options, found),
            _ => self.state = State::Counting,
        }
        let every_ns = every_ns(options, found);
        let said = (2 * found.description.buffers as usize).clamp(PACKETS, PACKETS_MAX);
        let count = said.min((LONGEST_NS / every_ns) as usize).max(16);
        let rest = match found.version {
            Version::V1_0 => rules::delete_rest(),
            _ => rules::add_miss(BYTES),
        };
        let config = Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: BYTES });
        let first =
            [Step::send(When::At(0), config), Step::send(When::At(0), rest), Step::barrier(When::At(0))];
        let packets = packets(count, every_ns, options, found);
        Next::Run(Script::new(first.into_iter().chain(packets).collect(), 3 * SECOND_NS))
    }
}

impl Buffers {
    /// Asks for packets that the switch keeps, each at another age.
    fn ask(&mut self, round: usize, record: &Record, options: &Options, found: &mut Findings) -> Next {
        let kept = record.outcomes.iter().filter_map(|outcome| Some((outcome.sent_ns?, outcome.packet_in?)));
        let kept = kept.filter(|(_, packet)| packet.buffer_id != NO_BUFFER);
        let mut kept: Vec<(u64, u32)> = kept.map(|(at, packet)| (at, packet.buffer_id)).collect();
        // The youngest, since the others may be gone.
        self.kept = kept.split_off(kept.len().saturating_sub(KEPT));
        if self.kept.len() < KEPT_MIN {
            return self.end(found);
        }
        self.state = State::Asking(round);
        let last = (self.kept.len() - 1) as f64;
        let (into, out) = (options.ports[0].port, options.ports[1].port);
        let asks = self.kept.iter().enumerate().map(|(index, (since_ns, buffer_id))| {
            let age_ns = self.age_ns(index as f64 / last);
            let passed_ns = record.ended_ns.saturating_sub(*since_ns);
            let when = When::At((age_ns as u64).saturating_sub(passed_ns));
            Step::send(when, rules::release(*buffer_id, Vec::new(), into, out))
        });
        let mut steps: Vec<Step> = asks.collect();
        steps.push(Step::barrier(When::After(0)));
        Next::Run(Script::new(steps, 3 * SECOND_NS).with_settle(SECOND_NS / 2))
    }

    /// Ages at first grow by a factor, and then lie evenly within the range that is known.
    fn age_ns(&self, share: f64) -> f64 {
        match self.gone_ns {
            Some(gone_ns) => self.alive_ns + share * (gone_ns - self.alive_ns),
            None => YOUNGEST_NS * (OLDEST_NS / YOUNGEST_NS).powf(share),
        }
    }

    fn on_asked(&mut self, round: usize, record: &Record, options: &Options, found: &mut Findings) -> Next {
        for ((since_ns, _), outcome) in self.kept.iter().zip(&record.outcomes) {
            let Some(asked_ns) = outcome.sent_ns else { continue };
            let age_ns = asked_ns.saturating_sub(*since_ns) as f64;
            if outcome.error.is_some() {
                self.gone_ns = Some(self.gone_ns.map_or(age_ns, |gone_ns| gone_ns.min(age_ns)));
            } else {
                self.alive_ns = self.alive_ns.max(age_ns);
            }
        }
        let is_open = self.gone_ns.is_some_and(|gone_ns| gone_ns > self.alive_ns * (1.0 + NARROW));
        if round + 1 >= ROUNDS || !is_open {
            return self.end(found);
        }
        self.state = State::Filling(round + 1);
        let every_ns = every_ns(options, found);
        let packets = packets(KEPT, every_ns, options, found);
        Next::Run(Script::new(packets, 3 * SECOND_NS))
    }

    fn end(&self, found: &mut Findings) -> Next {
        const LIFE: &str = "packet_in.buffer_life_us";
        match self.gone_ns {
            Some(gone_ns) if gone_ns > self.alive_ns && self.alive_ns > 0.0 => {
                found.buffer_life_us = Some(self.alive_ns.midpoint(gone_ns) / 1e3);
            }
            Some(_) if self.alive_ns == 0.0 => found.leave_out(LIFE, "no packet was there after 0.2 s"),
            Some(_) => found.leave_out(LIFE, "older packets were still there when younger ones were gone"),
            None if self.alive_ns > 0.0 => {
                let why = format!("packets were there, or no error came, for {:.1} s", self.alive_ns / 1e9);
                found.leave_out(LIFE, why);
            }
            None => found.leave_out(LIFE, "too few packets are kept"),
        }
        Next::Done
    }
}

/// The time between two packets that all come to the controller.
fn every_ns(options: &Options, found: &mut Findings) -> f64 {
    let service_ns = found.service(MessageType::PacketIn).service_us.unwrap_or(1000.0) * 1e3;
    let limit_ns = found.packet_in_limit.map_or(0.0, |(rate, _)| 1e9 / rate);
    (1.1 * service_ns).max(1.05 * limit_ns).max(options.watch_tick_ns as f64)
}

/// Packets without a rule, after a second in which the switch becomes idle.
fn packets(count: usize, every_ns: f64, options: &Options, found: &mut Findings) -> Vec<Step> {
    let into = options.ports[0].port;
    let flows = found.take_flows(Width::Ethernet, count).into_iter().zip(0u32..);
    let packet = |(flow, index)| {
        let at = SECOND_NS + (f64::from(index) * every_ns) as u64;
        Step::frame(When::At(at), flow, into, FRAME_BYTES, Until::PacketIn)
    };
    flows.map(packet).collect()
}

fn conclude(record: &Record, found: &mut Findings) {
    let packets: Vec<_> = record.outcomes.iter().filter_map(|outcome| outcome.packet_in).collect();
    let Some(first) = packets.first() else {
        return found.leave_out("packet_in.buffers_packets", "no packet-in came");
    };
    if first.buffer_id == NO_BUFFER {
        found.buffers = Some(0);
        return;
    }
    found.miss_send_bytes = u16::try_from(first.bytes).ok();
    let full = packets.iter().position(|packet| packet.buffer_id == NO_BUFFER);
    let ids: HashSet<u32> =
        packets.iter().take(full.unwrap_or(packets.len())).map(|packet| packet.buffer_id).collect();
    found.buffers = u32::try_from(ids.len()).ok();
    if full.is_none() {
        found.leave_out(
            "packet_in.buffers_packets",
            format!("all of {} packets were buffered: at least so many", ids.len()),
        );
    }
}
