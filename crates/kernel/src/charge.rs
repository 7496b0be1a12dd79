//! What commands do, charged to who gives them: packets that a packet-out becomes, packet-ins that an app causes, statistics.
//!
//! ```text
//!   packet-out ──> Becomes (packets, packet-ins) ──> Rates of its zone ──> passes, or the quota that it is beyond
//!   packet-in by an app's rule, or by its packet-out ──> Rates of that app ──> heard by that app, or dropped before anybody hears it
//!   statistics ──> what the last such answer was ──> Rates of who asks; what the answer is more is owed
//! ```
//!
//! A packet-in that an app's rule or packet-out made is not the network's: others would take a frame that the app has made for one of a host's. So it
//! is heard by that app, and by who holds `rule.write.others`. OpenFlow 1.0 does not say which rule it was: there all hear it who hear packet-ins.
//!
//! In: what a command was found to do, packet-ins and answers, and the time. Out: whether the quotas have room for it, who hears, and whom to tell.
//! Never looks into a command.

use crate::decision::{Effect, Refusal};
use crate::quota::{Quota, QuotaKind, Rate, Use};
use crate::zone_set::is_zone_number;
use abi::ZoneId;
use abi::event::Cause;
use flow::DatapathId;
use openflow::statistics::kind as statistics;

/// What a packet-out becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Becomes {
    /// Packets; at least one, since a switch has work with one that goes nowhere too.
    pub packets: u64,
    /// How many of them may come up again.
    pub packet_ins: u64,
}

impl Becomes {
    /// One output to a port, as most.
    pub const ONE_PACKET: Becomes = Becomes { packets: 1, packet_ins: 0 };
}

/// The length of a packet that waits in a switch, and that nobody here knows; up to which a packet counts as one.
pub(crate) const BUFFERED_BYTES: u64 = 1_514;

/// The copies that a switch makes for apps: of each that has had some, so at most as many as there are zones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Vec<(ZoneId, Rate)>);

impl Copies {
    /// What is left of this zone's copies.
    pub fn of(&mut self, zone: ZoneId, quota: Quota, now_ms: u64) -> &mut Rate {
        let place = self.0.iter().position(|(whose, _)| *whose == zone).unwrap_or_else(|| {
            self.0.push((zone, Rate::new(quota, now_ms)));
            self.0.len() - 1
        });
        let rate = &mut self.0[place].1;
        if rate.quota() != quota {
            *rate = Rate::new(quota, now_ms);
        }
        rate
    }
}

/// OFPR_ACTION (1.3.5, 7.4.1), and the cookie where the switch names no rule.
const BY_ACTION: u8 = 1;
pub(crate) const NO_COOKIE: u64 = u64::MAX;

/// Whether an app made the switch send it up, or may have: a rule with an app's cookie, or an action of no rule.
#[inline]
pub(crate) fn is_an_apps(cause: Cause) -> bool {
    let owner = ZoneId::owner_of(cause.cookie).0;
    is_zone_number(owner) || cause.cookie == NO_COOKIE && cause.reason == BY_ACTION
}

/// What a request counts that makes a switch walk through its tables and answer little.
const WALK: u64 = 16;

/// Bytes of an answer that count as one request.
pub(crate) const ANSWER_BYTES: usize = 1_024;

/// The flow entries that apps asked a switch for, in parts of [`ANSWER_BYTES`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowAnswer {
    so_far: u64,
    last: u64,
}

impl FlowAnswer {
    /// What a request of this type is charged: as much as the last such answer was.
    pub fn count_of(self, multipart: u16) -> u64 {
        match multipart {
            statistics::FLOW => WALK.max(self.last),
            statistics::AGGREGATE | statistics::TABLE_FEATURES => WALK,
            _ => 1,
        }
    }

    /// A part of an answer: what is owed once it is whole.
    pub fn take(&mut self, parts: u64, more: bool) -> u64 {
        self.so_far = self.so_far.saturating_add(parts);
        if more {
            return 0;
        }
        let charged = WALK.max(self.last);
        self.last = std::mem::take(&mut self.so_far);
        self.last.saturating_sub(charged)
    }
}

/// So many uses of something that is limited.
#[inline]
pub(crate) fn take(
    rate: &mut Rate,
    kind: QuotaKind,
    zone: ZoneId,
    count: u64,
    now_ms: u64,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
    match rate.take(count, now_ms) {
        Use::Fine => Ok(()),
        Use::Soft => {
            let (quota, datapath) = (rate.quota(), DatapathId(0));
            let (used, soft, hard) = (quota.soft, quota.soft, quota.hard);
            effects.push(Effect::SoftLimit { zone, datapath, kind, used, soft, hard });
            Ok(())
        }
        Use::Hard => Err(Refusal::Quota { kind, hard: rate.quota().hard }),
    }
}
