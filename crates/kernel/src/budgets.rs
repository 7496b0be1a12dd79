//! The operator's limits for apps and switches, and the charges against them.
//!
//! ```text
//!   packet-out, statistics, rule, packet-in that an app caused ──> the rates of its zone, the room in the switch ──> Ok, or the quota that it is beyond
//! ```
//!
//! In: the effects of a command, and the time. Out: whether the limits allow it, and which notices to send. It never
//! parses a command.

use crate::budget::TableRoom;
use crate::charge::{ANSWER_BYTES, BUFFERED_BYTES, Becomes, take};
use crate::datapath::Datapath;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, Refusal};
use crate::entries::EntryLease;
use crate::punt::PuntLimits;
use crate::quota::{COPIES_PER_S, FREE_PACKETS, QuotaKind};
use crate::record::RULES_PER_SWITCH;
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::PacketOut;
use abi::event::StatsReply;
use flow::DatapathId;
use openflow::statistics::kind as statistics;

/// The interval at which the kernel asks a switch whether it still has the kernel's meter. If a controller deletes a
/// meter, the switch also deletes the rules that use it (1.3.5, 6.6). Open vSwitch does not report that to a 1.3
/// controller.
const CHECK_INTERVAL_MS: u64 = 10_000;

/// The operator's limits, and the leases on tables.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    pub table_room: TableRoom,
    pub rules_per_switch: u32,
    pub punt_limits: PuntLimits,
    pub meter_per_s: Option<u32>,
    check_from_ms: u64,
    /// Entries that may be added to the table that had the last one.
    pub lease: Option<EntryLease>,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            table_room: TableRoom::default(),
            rules_per_switch: RULES_PER_SWITCH,
            punt_limits: PuntLimits::default(),
            meter_per_s: None,
            check_from_ms: 0,
            lease: None,
        }
    }
}

impl Budgets {
    /// Charges one more entry to this zone, if the limits allow it.
    #[inline]
    pub fn take_entry(
        &mut self,
        zone: (ZoneId, Option<&Zone>),
        (datapath, table_id): (DatapathId, u8),
        datapaths: &mut Datapaths,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        match &mut self.lease {
            Some(lease) if lease.left > 0 && lease.datapath == datapath && lease.table_id == table_id => {
                lease.left -= 1;
            }
            _ => self.renew_lease(zone.0, (datapath, table_id), datapaths, now_ms, effects)?,
        }
        let quota = zone.1.and_then(|zone| zone.grant.quotas().rules_per_datapath);
        match (quota, datapaths) {
            (None, _) => Ok(()),
            (Some(quota), datapaths) => match datapaths.get_mut(&datapath) {
                Some(there) => there.entries.take_rule(zone.0, datapath, quota, now_ms, effects),
                None => Ok(()),
            },
        }
    }

    /// Returns the unused part of a lease, and takes another.
    fn renew_lease(
        &mut self,
        zone: ZoneId,
        table: (DatapathId, u8),
        datapaths: &mut Datapaths,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if let Some(old) = self.lease.take()
            && let Some(there) = datapaths.get_mut(&old.datapath)
        {
            there.entries.give_back(&old);
        }
        // If the switch is not connected, the sender finds that out.
        let Some(Datapath { entries, .. }) = datapaths.get_mut(&table.0) else { return Ok(()) };
        self.lease = Some(entries.lease(zone, table, self.table_room, now_ms, effects)?);
        Ok(())
    }

    /// Whether it is time to look at the table-miss rules and their meters. Returns true once per interval.
    pub fn is_check_due(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms >= self.check_from_ms;
        if is_due {
            self.check_from_ms = now_ms + CHECK_INTERVAL_MS;
        }
        is_due
    }
}

/// Charges the packets of a packet-out to its sender.
#[inline]
pub(crate) fn take_packets(
    (zone, there): (ZoneId, &mut Zone),
    (datapath, datapaths): (DatapathId, &mut Datapaths),
    becomes: Becomes,
    it: &PacketOut<'_>,
    now_ms: u64,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
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
    // A long packet counts as several.
    let copies = copies.saturating_mul(length.div_ceil(BUFFERED_BYTES).max(1));
    let Some(switch) = datapaths.get_mut(&datapath) else { return Ok(()) };
    let rate = switch.copies.of(zone, quota, now_ms);
    take(rate, QuotaKind::CopiesPerSwitchPerS, zone, copies, now_ms, effects)
}

/// Whether the owner of a rule may cause one more packet-in.
pub(crate) fn take_caused(owner: ZoneId, zone: &mut Zone, now_ms: u64, effects: &mut Vec<Effect>) -> bool {
    let kind = QuotaKind::PacketInsCausedPerS;
    let taken = take(&mut zone.rates.packet_ins_caused, kind, owner, 1, now_ms, effects);
    if let Err(Refusal::Quota { hard, .. }) = taken {
        zone.counters.caused_dropped += 1;
        effects.push(Effect::RefusedByQuota { zone: owner, kind, hard });
    }
    taken.is_ok()
}

/// Charges a statistics request. The charge is the size of the last answer of this kind.
pub(crate) fn take_stats(
    (zone, there): (ZoneId, &mut Zone),
    (datapath, datapaths): (DatapathId, &Datapaths),
    multipart: u16,
    now_ms: u64,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
    let last = datapaths.get(&datapath).map_or_else(Default::default, |there| there.flow_answer);
    let count = last.count_of(multipart);
    take(&mut there.rates.stats, QuotaKind::StatsPerS, zone, count, now_ms, effects)
}

/// The part of an answer that the charge for its question did not cover, including the part in a frame of this length.
pub(crate) fn owed_for(reply: &StatsReply<'_>, frame_len: usize, datapaths: &mut Datapaths) -> u64 {
    let parts = (frame_len / ANSWER_BYTES) as u64;
    match datapaths.get_mut(&reply.datapath) {
        Some(there) if reply.multipart == statistics::FLOW => there.flow_answer.take(parts, reply.more),
        _ => parts,
    }
}
