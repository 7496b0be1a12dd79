//! Charges for the effects of commands: packets of a packet-out, packet-ins that an app causes, and statistics.
//!
//! ```text
//!   packet-out ──> Becomes (packets, packet-ins) ──> Rates of its zone ──> passes, or the quota that it is beyond
//!   packet-in by an app's rule, or by its packet-out ──> Rates of that app ──> heard by that app, or dropped before anybody hears it
//!   statistics ──> what the last such answer was ──> Rates of who asks; what the answer is more is owed
//! ```
//!
//! If an app's rule or packet-out causes a packet-in, the packet may not come from the network: other apps could take
//! the app's frame for a host's. So only that app and the apps with `rule.write.others` receive it. OpenFlow 1.0 does
//! not report the rule. There, all apps with `packet.in` receive it.
//!
//! In: the effects of a command, packet-ins and answers, and the time. Out: whether the quotas allow it, the receivers,
//! and the notices. It never parses a command.

use crate::decision::{Effect, Refusal};
use crate::quota::{Quota, QuotaKind, Rate, Use};
use crate::zone_set::is_zone_number;
use abi::ZoneId;
use abi::event::Cause;
use flow::DatapathId;
use openflow::statistics::kind as statistics;

/// The packets that a packet-out causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Becomes {
    /// Packets; at least one, because the switch also works on a packet that it sends nowhere.
    pub packets: u64,
    /// How many of them may cause a packet-in.
    pub packet_ins: u64,
}

impl Becomes {
    /// At most one output to a port.
    pub const ONE_PACKET: Becomes = Becomes { packets: 1, packet_ins: 0 };
}

/// The assumed length of a packet in a switch's buffer. A packet up to this length counts as one.
pub(crate) const BUFFERED_BYTES: u64 = 1_514;

/// The copies that a switch makes for apps: an entry for each app that has caused some, so at most one for each zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Vec<(ZoneId, Rate)>);

impl Copies {
    /// The remaining copies of this zone.
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

/// Whether an app caused this packet-in, or may have: through a rule with an app's cookie, or an action without a rule.
#[inline]
pub(crate) fn is_an_apps(cause: Cause) -> bool {
    let owner = ZoneId::owner_of(cause.cookie).0;
    is_zone_number(owner) || cause.cookie == NO_COOKIE && cause.reason == BY_ACTION
}

/// The charge for a request that makes a switch scan its tables but gets a short answer.
const WALK: u64 = 16;

/// Bytes of an answer that count as one request.
pub(crate) const ANSWER_BYTES: usize = 1_024;

/// The flow entries that apps requested from a switch, in parts of [`ANSWER_BYTES`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowAnswer {
    so_far: u64,
    last: u64,
}

impl FlowAnswer {
    /// The charge for a request of this type: the size of the last such answer.
    pub fn count_of(self, multipart: u16) -> u64 {
        match multipart {
            statistics::FLOW => WALK.max(self.last),
            statistics::AGGREGATE | statistics::TABLE_FEATURES => WALK,
            _ => 1,
        }
    }

    /// Takes a part of an answer. Returns the debt once the answer is complete.
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

/// A number of uses of a limited resource.
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
