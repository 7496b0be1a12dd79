//! The kernel's own meter at a switch: what the punting rule sends up is limited in the switch, before it crosses the control channel.
//!
//! ```text
//!   switch up ──> ask what its meters can do ──> make the meter (add it; modify it if it is there) ──> put it into the rule ──> metered
//!                        └── whatever goes wrong on the way: the rule goes without, and why is kept for the operator
//! ```
//!
//! The rule is in the switch before there is a meter, so that no packet is lost meanwhile, and gets the meter once the switch has confirmed
//! it. If the switch does not confirm the rule with the meter, it gets the rule again without the meter. Each step is
//! tried once for each session.
//!
//! In: a switch's answers and receipts. Out: what to send next, as [`Effect`]s. Never sends anything, and never looks at a packet. Memory: one
//! state for each switch that is up, with one sentence of the switch's at most.

use crate::decision::Effect;
use crate::own_messages::{CHECK_TICKET, FEATURES_TICKET, METER_TICKET, MeterStep, MeterWanted, RULE_TICKET};
use crate::owned::Owned;
use abi::event::{Event, StatsReply};
use abi::{Outcome, Receipt};
use flow::{DatapathId, ErrorCode};
use openflow::statistics::{MeterFeatures, first_band_packets};
use std::fmt;

/// `ofp_meter_flags`, which are the capabilities' bits as well (1.3.5, 7.3.4.3 and 7.3.5.14).
const PKTPS: u16 = 1 << 1;
const BURST: u16 = 1 << 2;
const STATS: u16 = 1 << 3;

/// OFPMBT_DROP, as a bit of `band_types`.
const DROP_BAND: u32 = 1 << 1;

/// OFPM_MAX: the highest number that a meter of a rule has.
const MAX_METER: u32 = 0xffff_0000;

/// OFPET_METER_MOD_FAILED, OFPMMFC_METER_EXISTS.
const METER_EXISTS: ErrorCode = ErrorCode { kind: 12, code: 1 };

/// Whether the packets that a switch sends up by the kernel's rule are limited in the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// The operator wants no meter.
    #[default]
    Off,
    /// The switch has been asked what its meters can do.
    Asked,
    /// It has been told to have the meter.
    Making(MeterWanted),
    /// It has the meter. Nobody wants packets, or it has not confirmed the rule with the meter yet.
    Made(MeterWanted),
    /// It has the meter, and the rule carries it.
    On {
        /// Which.
        meter: MeterWanted,
        /// What the meter had dropped when the switch was last asked, since it was made.
        dropped: u64,
    },
    /// The rule with the meter is gone, and it has been asked whether the meter is.
    Missed(MeterWanted),
    /// It has none until its next session.
    Without(Why),
}

/// Why a switch's punting rule has no meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It could not be asked.
    NotAsked(String),
    /// It has no meters, or none that would do.
    Unfit(&'static str),
    /// Apps have all of its meters.
    AllTaken,
    /// It answered with this error.
    Failed(String),
    /// It did not answer.
    NoAnswer(String),
    /// Somebody has deleted the meter, and with it the rule.
    Deleted,
    /// Somebody who may has deleted the rule.
    RuleDeleted,
}

impl Why {
    /// Whether something went wrong, and it is not only what the switch is.
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
            Why::Deleted => f.write_str("somebody else has deleted the node's meter in the switch"),
            Why::RuleDeleted => f.write_str("an app that may delete it deleted the table-miss rule"),
        }
    }
}

impl Metering {
    /// The meter that the punting rule is to carry, and may carry already.
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
            // An app has as many as the kernel lets it have, so this ends soon.
            Ok(meter) => match (1..=meter.meter_id).rev().find(|id| !taken(*id)) {
                Some(meter_id) => Metering::Making(MeterWanted { meter_id, ..meter }),
                None => Metering::Without(Why::AllTaken),
            },
            Err(why) => Metering::Without(Why::Unfit(why)),
        }
    }

    /// The result of the last step.
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
            // What was not answered is asked again.
            _ => return,
        }
    }

    /// The switch says what its meter has done. Without the meter it answers with an error, or with nothing.
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

/// The meter for a switch that says this of its meters (OFPMP_METER_FEATURES), or why there is none.
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
        // Apps begin at 1, so what is highest is least in their way.
        meter_id: max_meter.min(MAX_METER),
        is_there: false,
        flags: optional.fold(PKTPS, |flags, flag| flags | flag),
        per_s,
        // A second's, as the kernel's own budget has it.
        burst: per_s,
    })
}

/// What a switch's meter depends on beside its own state.
pub(crate) struct AtSwitch<'a> {
    /// Which switch.
    pub datapath: DatapathId,
    /// Packets in a second that the meter is to let through.
    pub per_s: Option<u32>,
    /// Whether an app wants packets of switches.
    pub wants_packets: bool,
    /// The owners of its groups and meters.
    pub owned: &'a mut Owned,
}

impl Metering {
    /// The switch came up, and the operator wants a meter.
    pub(crate) fn begin(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        *self = Metering::Asked;
        effects.push(Effect::Meter { datapath, step: MeterStep::AskFeatures });
    }

    /// A rule of the kernel's is gone: the switch is asked whether the meter is.
    pub(crate) fn on_own_rule_removed(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        if let Some(meter) = self.of_the_rule() {
            *self = Metering::Missed(meter);
            effects.push(Effect::Meter { datapath, step: MeterStep::Check(meter.meter_id) });
        }
    }

    /// Asks the switch whether it has its meter still.
    pub(crate) fn check(&self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        if let Metering::On { meter, .. } | Metering::Missed(meter) = self {
            effects.push(Effect::Meter { datapath, step: MeterStep::Check(meter.meter_id) });
        }
    }

    /// A frame that answers the node, if it is about the kernel's meter: see [`is_about_the_meter`].
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

    /// A step, or the rule with the meter, could not be sent to the switch. A check is no such step: it is made again.
    pub(crate) fn on_not_sent(&mut self, reason: &str, at: AtSwitch<'_>, effects: &mut Vec<Effect>) {
        self.go_on(at, effects, |metering, _| {
            *metering = Metering::Without(Why::NotAsked(reason.to_owned()))
        });
    }

    /// Changes the state, and does what follows from one that is new.
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
}
