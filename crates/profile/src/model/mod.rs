//! The model of a switch: what it does with each message and packet, and when.
//!
//! ```text
//!   packet that misses ──> limit, buffers ──┐                  ┌──> residual ──> PacketIn
//!   message ──> barrier ahead? ─────────────┴─> ranks ──> CPU ─┼──> residual ──> CarryOut, Release
//!                                                              └──> tables ────> Refuse, InDataPlane, Evict
//!   packet in software ──> rate ──> Forward          time ──> scans, promotion ──> Expire, InDataPlane
//! ```
//!
//! In: the time in nanoseconds, a seed, and [`Input`]s. Out: [`Output`]s, each at its time. [`Model::next_due_ns`] says when the next
//! one comes. The caller carries them out in order:
//!
//! ```
//! use profile::model::{Input, Message, MessageId, Model, Output};
//! use profile::{MessageType, Profile};
//!
//! let mut model = Model::new(&Profile::null(), 1);
//! let mut out = Vec::new();
//! model.on_input(0, Input::Message(Message::new(MessageId(7), MessageType::Echo)), &mut out);
//! while model.next_due_ns().is_some_and(|due| due <= 0) {
//!     model.on_time(0, &mut out);
//!     // Here the caller acts on `out`, and answers CarryOut and Expire with Input::Modified or Input::Deleted.
//! }
//! assert_eq!(out, [Output::CarryOut { id: MessageId(7) }]);
//! ```
//!
//! It never does I/O and never reads a clock. It knows no match, action or frame. It never chooses which rules a message selects. See
//! `docs/concepts/models.md` for the queues and their bounds.
//!
//! | part | in |
//! |---|---|
//! | what waits for the CPU | `waiting` |
//! | the CPU, and the order of events | `full` |
//! | where rules are | `tables`, `rules`, `memory` |
//! | writes to hardware | `install`, `writes` |
//! | what the data plane has | `data_plane` |
//! | time-outs | `scan`, `expiry` |
//! | residual delays | `draw`, `leaving` |
//! | the paper's method | `paper`, `quantile_match` |

mod bucket;
mod buffers;
mod data_plane;
mod draw;
mod expiry;
mod full;
mod input;
mod install;
mod leaving;
mod memory;
mod output;
mod paper;
mod quantile_match;
mod random;
mod rules;
mod scan;
mod software_path;
mod tables;
mod waiting;
mod writes;

pub use buffers::{Buffers, slot_of};
pub use input::{Input, Message, MessageId, Miss, Packet, Rule, RuleId};
pub use output::{Loss, Output, Place, Refusal};
pub use rules::RULES_MAX;
pub use scan::ScanTimes;

use crate::delay::Delay;
use crate::quantiles::Quantiles;
use crate::whole::Profile;
use full::FullModel;
use paper::PaperModel;
use quantile_match::QuantileMatch;

/// How a model computes.
#[derive(Clone, Debug)]
enum Method {
    Full(Box<FullModel>),
    Paper(Box<PaperModel>),
}

/// How full a model is, for an overview.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Packet-ins and messages in the queue of the CPU.
    pub queued: usize,
    /// Messages that wait outside the queue or behind a barrier.
    pub outside: usize,
    /// Rules in hardware or on their way there.
    pub in_hardware: usize,
    /// Rules in software, with those that move to or from there.
    pub in_software: usize,
    /// Packet-ins that the CPU has processed, and that have not left.
    pub packet_ins_leaving: usize,
    /// The same of packets that messages release.
    pub packets_leaving: usize,
    /// Changes that wait for the hardware, or those that are on their way to the data plane, whichever are more.
    pub changes: usize,
}

/// The model of one switch.
#[derive(Clone, Debug)]
pub struct Model {
    method: Method,
    /// How many times slower than the caller's clock the model's is.
    slow_motion: u64,
}

impl Model {
    /// The whole model of a profile's switch, in its first moment: nothing waits, and no rule is there.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Model { method: Method::Full(Box::new(FullModel::new(profile, seed))), slow_motion: 1 }
    }

    /// The paper's model alone: the delays of the whole switch as these tables have them. No queue and no table.
    pub fn of_paper(target: &Delay, seed: u64) -> Self {
        Model { method: Method::Paper(Box::new(PaperModel::new(target, None, seed))), slow_motion: 1 }
    }

    /// The same model, in front of a real switch that has delays of its own at ingress. The table is the start of a histogram of
    /// these delays.
    pub fn before(mut self, base: &Quantiles) -> Self {
        let base = QuantileMatch::new(base);
        match &mut self.method {
            Method::Full(full) => full.set_base(base),
            Method::Paper(paper) => paper.set_base(base),
        }
        self
    }

    /// The same model in slow motion: all delays and time-outs are `factor` times as long, and all rates `factor` times as low. The times
    /// of inputs and outputs stay the caller's. A factor of 0 counts as 1. Delays of a real switch before it are not slowed.
    pub fn in_slow_motion(mut self, factor: u32) -> Self {
        self.slow_motion = u64::from(factor.max(1));
        self
    }

    /// Something happens at the switch, or the caller answers an output. Everything that was due before must have been asked for.
    /// Most outputs come with [`Self::on_time`]; what is lost at once comes here.
    #[inline]
    pub fn on_input(&mut self, now_ns: u64, input: Input, out: &mut Vec<Output>) {
        let observed_ns = match &input {
            Input::Miss(miss) => now_ns.saturating_sub(miss.arrived_ns),
            _ => 0,
        };
        let slow_motion = self.slow_motion;
        let input = if slow_motion == 1 { input } else { slowed(input, slow_motion) };
        match &mut self.method {
            Method::Full(full) => full.on_input(input, observed_ns, now_ns / slow_motion, out),
            Method::Paper(paper) => paper.on_input(input, observed_ns, now_ns / slow_motion, out),
        }
    }

    /// When [`Self::on_time`] must be called next. None: not before a further input.
    #[inline]
    pub fn next_due_ns(&self) -> Option<u64> {
        let due = match &self.method {
            Method::Full(full) => full.next_due_ns(),
            Method::Paper(paper) => paper.next_due_ns(),
        };
        due.map(|due| due.saturating_mul(self.slow_motion))
    }

    /// Time has passed: appends the outputs whose time has come. It stops after an output that the caller answers. So the caller acts on
    /// the outputs, and calls again until nothing is due.
    #[inline]
    pub fn on_time(&mut self, now_ns: u64, out: &mut Vec<Output>) {
        let (slow_motion, first) = (self.slow_motion, out.len());
        match &mut self.method {
            Method::Full(full) => full.on_time(now_ns / slow_motion, out),
            Method::Paper(paper) => paper.on_time(now_ns / slow_motion, out),
        }
        if slow_motion > 1 {
            for output in &mut out[first..] {
                if let Output::ExpireIfIdle { unused_since_ns, .. } = output {
                    // The last of the caller's times that are this one in the model's clock: a later use is later there, too.
                    *unused_since_ns =
                        unused_since_ns.saturating_mul(slow_motion).saturating_add(slow_motion - 1);
                }
            }
        }
    }

    /// The caller forgets messages, for example since the connection on which they came has ended. Those that wait for the CPU take no
    /// time of it, and end without an output. Those that the CPU has begun with go on. The paper's model forgets nothing.
    pub fn forget_messages(&mut self, is_forgotten: impl Fn(MessageId) -> bool) {
        if let Method::Full(full) = &mut self.method {
            full.forget(is_forgotten);
        }
    }

    /// How full it is. The paper's model has no queue and no table: for it, all is zero.
    pub fn load(&self) -> Load {
        match &self.method {
            Method::Paper(_) => Load::default(),
            Method::Full(full) => Load {
                queued: full.room().queued(),
                outside: full.room().outside(),
                in_hardware: full.tables().rules().in_hardware(),
                in_software: full.tables().rules().in_software(),
                packet_ins_leaving: full.leaving().packet_ins(),
                packets_leaving: full.leaving().of_messages(),
                changes: full.tables().changes(),
            },
        }
    }

    /// When the switch notices that time-outs have ended, for a caller that watches them itself. Without slow motion.
    pub fn scan_times(&self) -> ScanTimes {
        match &self.method {
            Method::Full(full) => full.scan_times(),
            Method::Paper(_) => ScanTimes::default(),
        }
    }
}

/// The same input, with its times in the model's slower clock.
fn slowed(input: Input, factor: u64) -> Input {
    match input {
        Input::Miss(miss) => Input::Miss(Miss { arrived_ns: miss.arrived_ns / factor, ..miss }),
        Input::Used { rule, at_ns, packets } => Input::Used { rule, at_ns: at_ns / factor, packets },
        other => other,
    }
}
