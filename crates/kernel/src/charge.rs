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

use crate::capability::Capability;
use crate::decision::{Effect, Refusal};
use crate::dispatch::Kernel;
use crate::quota::{COPIES_PER_S, FREE_PACKETS, Quota, QuotaKind, Rate, Use};
use crate::zone_set::{ZoneSet, is_zone_number};
use abi::command::PacketOut;
use abi::event::{Cause, Event, OpenFlowVersion, kind};
use abi::{Frame, Malformed, ZoneId};
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
const BUFFERED_BYTES: u64 = 1_514;

impl Kernel {
    /// What a packet-out becomes is charged to its sender.
    #[inline]
    pub(crate) fn take_packets(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        becomes: Becomes,
        it: &PacketOut<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) else { return Ok(()) };
        let rates = &mut there.rates;
        let length = if it.buffer_id.is_some() { BUFFERED_BYTES } else { it.data.len() as u64 };
        if let Some(rate) = &mut rates.packet_outs {
            take(rate, QuotaKind::PacketOutsPerS, zone, becomes.packets, now_ms, effects)?;
        }
        if let Some(rate) = &mut rates.packet_out_bytes {
            let bytes = becomes.packets.saturating_mul(length);
            take(rate, QuotaKind::PacketOutBytesPerS, zone, bytes, now_ms, effects)?;
        }
        if becomes.packet_ins > 0 {
            let kind = QuotaKind::PacketInsCausedPerS;
            take(&mut rates.packet_ins_caused, kind, zone, becomes.packet_ins, now_ms, effects)?;
        }
        let copies = becomes.packets.saturating_sub(FREE_PACKETS);
        if copies == 0 {
            return Ok(());
        }
        let quota = there.grant.quotas().copies_per_switch_per_s.unwrap_or(COPIES_PER_S);
        // A long packet is as much as several.
        let copies = copies.saturating_mul(length.div_ceil(BUFFERED_BYTES).max(1));
        let Some(there) = self.datapaths.get_mut(&datapath) else { return Ok(()) };
        let rate = there.copies.of(zone, quota, now_ms);
        take(rate, QuotaKind::CopiesPerSwitchPerS, zone, copies, now_ms, effects)
    }
}

/// The copies that a switch makes for apps: of each that has had some, so at most as many as there are zones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Vec<(ZoneId, Rate)>);

impl Copies {
    fn of(&mut self, zone: ZoneId, quota: Quota, now_ms: u64) -> &mut Rate {
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
const NO_COOKIE: u64 = u64::MAX;

/// Whether an app made the switch send it up, or may have: a rule with an app's cookie, or an action of no rule.
#[inline]
pub(crate) fn is_an_apps(cause: Cause) -> bool {
    let owner = ZoneId::owner_of(cause.cookie).0;
    is_zone_number(owner) || cause.cookie == NO_COOKIE && cause.reason == BY_ACTION
}

impl Kernel {
    /// A packet-in that an app may have caused: who hears it. It takes nothing of the budgets of its switch and port.
    #[cold]
    pub(crate) fn find_hearers_of_caused(
        &mut self,
        frame: &Frame<'_>,
        cause: Cause,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Malformed> {
        let owner = ZoneId::owner_of(cause.cookie);
        let causers = match cause.cookie {
            NO_COOKIE => self.senders_up(frame.datapath()),
            _ if self.take_caused(owner, now_ms, effects) => ZoneSet::only(owner),
            _ => {
                self.found.clear();
                return Ok(());
            }
        };
        if causers.is_empty() {
            return self.find_hearers_of_networks(frame, now_ms);
        }
        self.find_hearers_of_packet(frame)?;
        let mut found = std::mem::take(&mut self.found);
        found.retain(|zone| causers.contains(zone) || self.may_change_others(zone));
        self.found = found;
        Ok(())
    }

    /// Whether the owner of a rule may cause one more packet-in. Of an app that is not there nobody knows, and the app hears nothing.
    fn take_caused(&mut self, owner: ZoneId, now_ms: u64, effects: &mut Vec<Effect>) -> bool {
        let Some(Some(zone)) = self.zones.get_mut(usize::from(owner.0)) else { return true };
        let kind = QuotaKind::PacketInsCausedPerS;
        let taken = take(&mut zone.rates.packet_ins_caused, kind, owner, 1, now_ms, effects);
        if let Err(Refusal::Quota { hard, .. }) = taken {
            zone.counters.caused_dropped += 1;
            effects.push(Effect::RefusedByQuota { zone: owner, kind, hard });
        }
        taken.is_ok()
    }

    /// Who has sent packets up by packet-outs, at a switch that would say it of a rule. Nobody is known where that is OpenFlow 1.0.
    fn senders_up(&self, datapath: DatapathId) -> ZoneSet {
        let there = self.datapaths.get(&datapath).filter(|it| it.openflow != OpenFlowVersion::V1_0);
        there.map_or(ZoneSet::EMPTY, |there| there.senders_up.clone())
    }

    fn may_change_others(&self, zone: ZoneId) -> bool {
        self.zone(zone).is_some_and(|zone| zone.grant.holds(Capability::RuleWriteOthers))
    }
}

/// What a request counts that makes a switch walk through its tables and answer little.
const WALK: u64 = 16;

/// Bytes of an answer that count as one request.
const ANSWER_BYTES: usize = 1_024;

/// The flow entries that apps asked a switch for, in parts of [`ANSWER_BYTES`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowAnswer {
    so_far: u64,
    last: u64,
}

impl Kernel {
    /// Statistics are asked for: charged as the last such answer was.
    pub(crate) fn take_stats(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        multipart: u16,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let last = self.datapaths.get(&datapath).map_or(0, |there| there.flow_answer.last);
        let count = match multipart {
            statistics::FLOW => WALK.max(last),
            statistics::AGGREGATE | statistics::TABLE_FEATURES => WALK,
            _ => 1,
        };
        let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) else { return Ok(()) };
        take(&mut there.rates.stats, QuotaKind::StatsPerS, zone, count, now_ms, effects)
    }

    /// A frame that answers a zone: what it is more than its question was charged for is owed.
    pub fn charge_answer(&mut self, zone: ZoneId, frame: &[u8], now_ms: u64) {
        let Ok(read) = Frame::read(frame) else { return };
        if read.header.kind.get() != kind::STATS_REPLY {
            return;
        }
        let Ok(Event::StatsReply(reply)) = Event::read(&read) else { return };
        let parts = (frame.len() / ANSWER_BYTES) as u64;
        let owed = match self.datapaths.get_mut(&reply.datapath) {
            Some(there) if reply.multipart == statistics::FLOW => there.flow_answer.take(parts, reply.more),
            _ => parts,
        };
        if let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) {
            there.rates.stats.owe(owed, now_ms);
        }
    }
}

impl FlowAnswer {
    /// A part of an answer: what is owed once it is whole.
    fn take(&mut self, parts: u64, more: bool) -> u64 {
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
