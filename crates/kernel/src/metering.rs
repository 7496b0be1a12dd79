//! The kernel's own meter at a switch. It limits the packet-ins of the table-miss rule in the switch, before they use
//! the control channel.
//!
//! ```text
//!   switch up ──> ask what its meters can do ──> make the meter (add it; modify it if it is there) ──> put it into the rule ──> metered
//!                        └── whatever goes wrong on the way: the rule goes without, and why is kept for the operator
//! ```
//!
//! The kernel first installs the rule without a meter, so that no packet is lost meanwhile. Once the switch has
//! confirmed the meter, the kernel adds it to the rule. If the switch does not confirm the rule with the meter, the
//! kernel installs the rule without it again. Each step is tried once per session.
//!
//! In: a switch's answers and receipts. Out: the next messages, as [`Effect`]s. It never sends anything, and never
//! looks at a packet. Memory: one state for each connected switch, with at most one sentence from the switch.

use crate::decision::Effect;
use crate::own_messages::{
    CHECK_TICKET, FEATURES_TICKET, METER_TICKET, MeterStep, MeterWanted, RULE_TICKET, later_table_of,
};
use crate::owned::Owned;
use abi::event::{Event, StatsReply};
use abi::{Outcome, Receipt};
use flow::{DatapathId, ErrorCode};
use openflow::statistics::{MeterFeatures, first_band_packets};
use std::fmt;

/// `ofp_meter_flags`, which are also the bits of the meter features (1.3.5, 7.3.4.3 and 7.3.5.14).
const PKTPS: u16 = 1 << 1;
const BURST: u16 = 1 << 2;
const STATS: u16 = 1 << 3;

/// OFPMBT_DROP, as a bit of `band_types`.
const DROP_BAND: u32 = 1 << 1;

/// OFPM_MAX: the highest number of a meter that a rule can have.
const MAX_METER: u32 = 0xffff_0000;

/// OFPET_METER_MOD_FAILED, OFPMMFC_METER_EXISTS.
const METER_EXISTS: ErrorCode = ErrorCode { kind: 12, code: 1 };

/// The state of the meter for the kernel's table-miss rule at a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// The operator configured no meter.
    #[default]
    Off,
    /// The kernel has asked the switch for its meter features.
    Asked,
    /// The kernel has asked the switch to add the meter.
    Making(MeterWanted),
    /// The switch has the meter. No app wants packets, or the switch has not confirmed the rule with the meter yet.
    Made(MeterWanted),
    /// The switch has the meter, and the rule uses it.
    On {
        /// The meter.
        meter: MeterWanted,
        /// Packets that the meter had dropped since it was added, by the switch's last answer.
        dropped: u64,
    },
    /// The rule with the meter was removed. The kernel has asked the switch whether the meter still exists.
    Missed(MeterWanted),
    /// The switch has no meter until its next session.
    Without(Why),
}

/// Why a switch's table-miss rule has no meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The kernel could not ask the switch.
    NotAsked(String),
    /// The switch has no meters, or no suitable ones.
    Unfit(&'static str),
    /// Apps use all of its meters.
    AllTaken,
    /// The switch answered with this error.
    Failed(String),
    /// The switch did not answer.
    NoAnswer(String),
    /// Another controller or an app deleted the meter, and so the rule.
    Deleted,
    /// An app with the right to do so deleted the rule.
    RuleDeleted,
}

impl Why {
    /// Whether this is a fault, and not just a property of the switch.
    pub const fn is_trouble(&self) -> bool {
        !matches!(self, Why::NotAsked(_) | Why::Unfit(_))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotAsked(reason) => write!(f, "the switch could not be asked for its meters: {reason}"),
            Why::Unfit(why) => f.write_str(why),
            Why::AllTaken => f.write_str("apps have all meters of the switch"),
            Why::Failed(reason) => write!(f, "the switch refused the meter: {reason}"),
            Why::NoAnswer(reason) => write!(f, "it is not known whether the switch has the meter: {reason}"),
            Why::Deleted => f.write_str("the node's meter in the switch was deleted, but not by this node"),
            Why::RuleDeleted => f.write_str("an app that may delete it deleted the table-miss rule"),
        }
    }
}

impl Metering {
    /// The meter that the table-miss rule should have, and may have already.
    pub(crate) const fn of_the_rule(&self) -> Option<MeterWanted> {
        match self {
            Metering::Made(meter) | Metering::On { meter, .. } => Some(*meter),
            _ => None,
        }
    }

    fn on_features(&mut self, reply: &StatsReply<'_>, taken: impl Fn(u32) -> bool, per_s: u32) {
        if *self != Metering::Asked {
            return;
        }
        *self = match wanted(reply.body, per_s) {
            // An app has a limited number of meters, so this ends soon.
            Ok(meter) => match (1..=meter.meter_id).rev().find(|id| !taken(*id)) {
                Some(meter_id) => Metering::Making(MeterWanted { meter_id, ..meter }),
                None => Metering::Without(Why::AllTaken),
            },
            Err(why) => Metering::Without(Why::Unfit(why)),
        }
    }

    /// Takes the result of the last step.
    fn on_receipt(&mut self, receipt: &Receipt<'_>) {
        let why = match receipt.outcome {
            Outcome::Programmed => None,
            Outcome::Failed => Some(Why::Failed(receipt.reason.to_owned())),
            Outcome::Refused | Outcome::Unknown => Some(Why::NoAnswer(receipt.reason.to_owned())),
        };
        *self = match (&*self, receipt.ticket, why) {
            (Metering::Asked, FEATURES_TICKET, Some(why)) => Metering::Without(why),
            (Metering::Making(meter), METER_TICKET, None) => Metering::Made(*meter),
            (Metering::Making(meter), METER_TICKET, Some(_))
                if receipt.error == METER_EXISTS && !meter.is_there =>
            {
                Metering::Making(MeterWanted { is_there: true, ..*meter })
            }
            (Metering::Making(_), METER_TICKET, Some(why)) => Metering::Without(why),
            (Metering::Made(meter), RULE_TICKET, None) => Metering::On { meter: *meter, dropped: 0 },
            (Metering::Made(_) | Metering::On { .. }, RULE_TICKET, Some(why)) => Metering::Without(why),
            (
                Metering::Made(_) | Metering::On { .. } | Metering::Missed(_),
                CHECK_TICKET,
                Some(Why::Failed(_)),
            ) => Metering::Without(Why::Deleted),
            // An unanswered check is repeated later.
            _ => return,
        }
    }

    /// Takes the statistics of the meter. If the meter is gone, the switch answers with an error, or with nothing.
    fn on_check(&mut self, reply: &StatsReply<'_>) {
        let is_there = !reply.body.is_empty() || reply.more;
        *self = match &*self {
            Metering::On { meter, dropped } if is_there => {
                Metering::On { meter: *meter, dropped: first_band_packets(reply.body).unwrap_or(*dropped) }
            }
            Metering::Missed(_) if is_there => Metering::Without(Why::RuleDeleted),
            Metering::Made(_) | Metering::On { .. } | Metering::Missed(_) if !is_there => {
                Metering::Without(Why::Deleted)
            }
            _ => return,
        }
    }
}

/// The meter for a switch with these features (OFPMP_METER_FEATURES), or why it gets none.
fn wanted(features: &[u8], per_s: u32) -> Result<MeterWanted, &'static str> {
    let MeterFeatures { max_meter, band_types, capabilities, max_bands } = MeterFeatures::read(features);
    if max_meter == 0 || max_bands == 0 {
        return Err("the switch has no meters");
    }
    if band_types & DROP_BAND == 0 {
        return Err("the switch's meters cannot drop");
    }
    if capabilities & u32::from(PKTPS) == 0 {
        return Err("the switch's meters cannot count packets a second");
    }
    let optional = [BURST, STATS].into_iter().filter(|flag| capabilities & u32::from(*flag) != 0);
    Ok(MeterWanted {
        // Apps start at 1, so the highest number rarely collides with theirs.
        meter_id: max_meter.min(MAX_METER),
        is_there: false,
        flags: optional.fold(PKTPS, |flags, flag| flags | flag),
        per_s,
        // One second's packets, like the kernel's own budget.
        burst: per_s,
    })
}

/// The inputs of a switch's meter, besides its own state.
pub(crate) struct AtSwitch<'a> {
    /// The switch.
    pub datapath: DatapathId,
    /// The packets per second that the meter lets through.
    pub per_s: Option<u32>,
    /// Whether an app wants packets of switches.
    pub wants_packets: bool,
    /// The owners of its groups and meters.
    pub owned: &'a mut Owned,
}

impl Metering {
    /// The switch has connected, and the operator wants a meter.
    pub(crate) fn begin(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        *self = Metering::Asked;
        effects.push(Effect::Meter { datapath, step: MeterStep::AskFeatures });
    }

    /// A rule of the kernel was removed: ask the switch whether the meter still exists.
    pub(crate) fn on_own_rule_removed(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        if let Some(meter) = self.of_the_rule() {
            *self = Metering::Missed(meter);
            effects.push(Effect::Meter { datapath, step: MeterStep::Check(meter.meter_id) });
        }
    }

    /// Asks the switch whether it still has the meter.
    pub(crate) fn check(&self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        if let Metering::On { meter, .. } | Metering::Missed(meter) = self {
            effects.push(Effect::Meter { datapath, step: MeterStep::Check(meter.meter_id) });
        }
    }

    /// Takes an answer to the node, if it is about the kernel's meter: see [`is_about_the_meter`].
    pub(crate) fn on_answer(&mut self, event: &Event<'_>, at: AtSwitch<'_>, effects: &mut Vec<Effect>) {
        let (datapath, per_s) = (at.datapath, at.per_s.unwrap_or(u32::MAX));
        self.go_on(at, effects, |metering, owned| match event {
            Event::StatsReply(reply) if reply.ticket == FEATURES_TICKET => {
                metering.on_features(reply, |id| owned.is_apps_meter(datapath, id), per_s);
            }
            Event::StatsReply(reply) => metering.on_check(reply),
            Event::Receipt(_, receipt) => metering.on_receipt(receipt),
            Event::SwitchError(it) => {
                let (ticket, error, reason) = (it.ticket, it.error, it.reason);
                metering.on_receipt(&Receipt { ticket, outcome: Outcome::Failed, error, reason });
            }
            _ => {}
        });
    }

    /// The worker could not send a step, or the rule with the meter, to the switch. A check is not a step: it is
    /// repeated.
    pub(crate) fn on_not_sent(&mut self, reason: &str, at: AtSwitch<'_>, effects: &mut Vec<Effect>) {
        self.go_on(at, effects, |metering, _| {
            *metering = Metering::Without(Why::NotAsked(reason.to_owned()))
        });
    }

    /// Changes the state, and does what the new state requires.
    fn go_on(
        &mut self,
        at: AtSwitch<'_>,
        effects: &mut Vec<Effect>,
        change: impl FnOnce(&mut Metering, &Owned),
    ) {
        let AtSwitch { datapath, wants_packets, owned, .. } = at;
        let before = self.clone();
        change(self, owned);
        match self {
            same if *same == before => {}
            Metering::Making(meter) => {
                owned.reserve_meter(datapath, meter.meter_id);
                effects.push(Effect::Meter { datapath, step: MeterStep::Make(*meter) });
            }
            Metering::Made(_) if wants_packets => effects.push(Effect::Punt(datapath)),
            // Only what it has dropped is new.
            Metering::On { .. } if matches!(before, Metering::On { .. }) => {}
            Metering::On { .. } => effects.push(Effect::MeterSettled(datapath)),
            Metering::Without(why) => {
                owned.release_meter(datapath);
                effects.push(Effect::MeterSettled(datapath));
                // Unless one who may has deleted it, the rule is to be there, and it is not known whether it is.
                let is_missed = before.of_the_rule().is_some() || matches!(before, Metering::Missed(_));
                if wants_packets && is_missed && *why != Why::RuleDeleted {
                    effects.push(Effect::Punt(datapath));
                }
            }
            _ => {}
        }
    }
}

/// Whether this event answers a step, or is about the rule that carries the meter.
pub(crate) fn is_about_the_meter(event: &Event<'_>) -> bool {
    match event {
        Event::StatsReply(reply) => matches!(reply.ticket, FEATURES_TICKET | CHECK_TICKET),
        Event::Receipt(_, receipt) => is_own_ticket(receipt.ticket),
        Event::SwitchError(error) => is_own_ticket(error.ticket),
        _ => false,
    }
}

fn is_own_ticket(ticket: u64) -> bool {
    matches!(ticket, FEATURES_TICKET | METER_TICKET | RULE_TICKET | CHECK_TICKET)
        || later_table_of(ticket).is_some()
}
