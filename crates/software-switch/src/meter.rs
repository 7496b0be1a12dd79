//! Meters: the limit of a rule's packet rate (1.3.5, 5.7).
//!
//! ```text
//!   meter mods ──> Meters <── a packet's length, the time
//!                    └──> pass, drop, or raise the drop precedence
//! ```
//!
//! Each band is a token bucket. It is empty when packets come faster than its rate for longer than its burst. If
//! several bands are empty for a packet, the one with the highest rate applies. This file never sees a packet's
//! bytes, and never reads a clock.

use openflow::message::*;
use std::collections::BTreeMap;
use std::time::Duration;

use super::refusal::Refusal;

/// How many meters a switch holds. More are refused with OFPMMFC_OUT_OF_METERS.
pub(crate) const METERS_MAX: u32 = 4096;
/// How many bands a meter may have. More are refused with OFPMMFC_OUT_OF_BANDS.
const BANDS_MAX: u8 = 8;
/// OFPM_MAX: the highest meter number that rules can name.
const METER_MAX: u32 = 0xffff_0000;
/// OFPM_CONTROLLER: the meter of packet-ins.
pub(crate) const CONTROLLER_METER: u32 = 0xffff_fffe;
/// How many drop precedences a class of assured forwarding has above its lowest (RFC 2597).
const PRECEDENCE_STEPS_MAX: u8 = 2;

const METER_ADD: u16 = 0;
const METER_MODIFY: u16 = 1;
const METER_DELETE: u16 = 2;

/// OFPMF_KBPS: rates are in kbit/s. This is also the default.
const KBPS: u16 = 1;
/// OFPMF_PKTPS: rates are in packets a second.
const PKTPS: u16 = 1 << 1;
/// OFPMF_BURST: the bands have a burst size.
const BURST: u16 = 1 << 2;
/// OFPMF_STATS: the bands count.
const STATS: u16 = 1 << 3;
/// How many units of a bucket one kbit or one packet takes. A rate per second is then the number of units per
/// nanosecond.
const UNITS: u64 = 1_000_000_000;

/// The result for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeterResult {
    /// The packet goes on.
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet goes on, with its drop precedence raised by this many steps.
    Remark(u8),
}

/// A band, its current tokens, and its counters.
#[derive(Clone, Debug)]
struct Band {
    band: MeterBand,
    tokens: u64,
    packet_count: u64,
    byte_count: u64,
}

/// A meter.
#[derive(Clone, Debug)]
struct Meter {
    flags: u16,
    bands: Vec<Band>,
    filled_at: Duration,
    added_at: Duration,
    packet_count: u64,
    byte_count: u64,
}

/// The meters of a switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meters {
    entries: BTreeMap<u32, Meter>,
}

impl Meters {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.entries.contains_key(&id)
    }

    /// Carries out a meter mod. Returns the deleted meters, whose rules the caller deletes too.
    pub(crate) fn modify(&mut self, wanted: &MeterMod, now: Duration) -> Result<Vec<u32>, Refusal> {
        let id = wanted.meter_id;
        match wanted.command {
            METER_DELETE => return self.delete(id),
            METER_ADD if self.contains(id) => return Err(Refusal::MeterExists),
            METER_ADD if self.entries.len() >= METERS_MAX as usize => return Err(Refusal::MeterOutOfMeters),
            METER_MODIFY if is_valid(id) && !self.contains(id) => return Err(Refusal::MeterUnknown),
            METER_ADD | METER_MODIFY => {}
            _ => return Err(Refusal::MeterCommand),
        }
        check(wanted)?;
        let mut meter = Meter::new(wanted, now);
        if let Some(before) = self.entries.get(&id) {
            // A meter with new rates is still the same meter: its counters go on (1.3.5, 6.6 sets counters only when
            // a meter is added).
            meter.added_at = before.added_at;
            (meter.packet_count, meter.byte_count) = (before.packet_count, before.byte_count);
        }
        self.entries.insert(id, meter);
        Ok(Vec::new())
    }

    fn delete(&mut self, id: u32) -> Result<Vec<u32>, Refusal> {
        if id == METER_ALL {
            return Ok(std::mem::take(&mut self.entries).into_keys().collect());
        }
        if !is_valid(id) {
            return Err(Refusal::MeterInvalid);
        }
        // Deleting a meter that does not exist is not an error (1.3.5, 6.6).
        Ok(self.entries.remove(&id).map(|_| id).into_iter().collect())
    }

    /// Meters a packet of this many bytes. If the meter does not exist, the packet passes.
    pub(crate) fn meter(&mut self, id: u32, bytes: usize, now: Duration) -> MeterResult {
        self.entries.get_mut(&id).map_or(MeterResult::Pass, |meter| meter.measure(bytes, now))
    }

    /// OFPMP_METER of one meter or of all. `rules_for` counts the rules that refer to a meter.
    pub(crate) fn statistics(
        &self,
        wanted: u32,
        now: Duration,
        rules_for: impl Fn(u32) -> usize,
    ) -> Result<Vec<MeterStats>, Refusal> {
        let describe = |(id, meter): (&u32, &Meter)| {
            let age = now.saturating_sub(meter.added_at);
            MeterStats {
                meter_id: *id,
                flow_count: u32::try_from(rules_for(*id)).unwrap_or(u32::MAX),
                packet_in_count: meter.packet_count,
                byte_in_count: meter.byte_count,
                duration_s: super::whole_seconds(age),
                duration_ns: age.subsec_nanos(),
                bands: meter.bands.iter().map(|band| (band.packet_count, band.byte_count)).collect(),
            }
        };
        Ok(self.selected(wanted)?.map(describe).collect())
    }

    /// OFPMP_METER_CONFIG of one meter or of all.
    pub(crate) fn configurations(&self, wanted: u32) -> Result<Vec<MeterConfig>, Refusal> {
        let describe = |(id, meter): (&u32, &Meter)| MeterConfig {
            flags: meter.flags,
            meter_id: *id,
            bands: meter.bands.iter().map(|band| band.band.clone()).collect(),
        };
        Ok(self.selected(wanted)?.map(describe).collect())
    }

    fn selected(&self, wanted: u32) -> Result<impl Iterator<Item = (&u32, &Meter)>, Refusal> {
        if wanted != METER_ALL && !self.contains(wanted) {
            return Err(Refusal::MeterUnknown);
        }
        Ok(self.entries.iter().filter(move |(id, _)| wanted == METER_ALL || **id == wanted))
    }
}

impl Meter {
    fn new(wanted: &MeterMod, now: Duration) -> Self {
        let full = |band: &MeterBand| Band {
            tokens: capacity(band, wanted.flags),
            band: band.clone(),
            packet_count: 0,
            byte_count: 0,
        };
        Meter {
            flags: wanted.flags,
            bands: wanted.bands.iter().map(full).collect(),
            filled_at: now,
            added_at: now,
            packet_count: 0,
            byte_count: 0,
        }
    }

    fn measure(&mut self, bytes: usize, now: Duration) -> MeterResult {
        let elapsed_ns = u64::try_from(now.saturating_sub(self.filled_at).as_nanos()).unwrap_or(u64::MAX);
        self.filled_at = self.filled_at.max(now);
        self.packet_count += 1;
        self.byte_count += bytes as u64;
        let (flags, price) = (self.flags, price(self.flags, bytes));
        let mut dry: Option<&mut Band> = None;
        for band in &mut self.bands {
            let gained = elapsed_ns.saturating_mul(band.band.rate.into());
            band.tokens = band.tokens.saturating_add(gained).min(capacity(&band.band, flags));
            match band.tokens.checked_sub(price) {
                Some(left) => band.tokens = left,
                None if dry.as_ref().is_none_or(|dry| dry.band.rate < band.band.rate) => dry = Some(band),
                None => {}
            }
        }
        dry.map_or(MeterResult::Pass, |band| band.apply(bytes, flags))
    }
}

impl Band {
    fn apply(&mut self, bytes: usize, flags: u16) -> MeterResult {
        if flags & STATS != 0 {
            self.packet_count += 1;
            self.byte_count += bytes as u64;
        }
        match self.band.kind {
            MeterBandKind::DscpRemark(steps) => MeterResult::Remark(steps),
            MeterBandKind::Drop | MeterBandKind::Experimenter { .. } => MeterResult::Drop,
        }
    }
}

/// The size of a band's bucket. Without a burst size, it is what the rate gives in one second.
fn capacity(band: &MeterBand, flags: u16) -> u64 {
    let size = if flags & BURST != 0 { band.burst_size } else { band.rate };
    u64::from(size) * UNITS
}

/// How many units a packet takes from the buckets.
fn price(flags: u16, bytes: usize) -> u64 {
    const BITS_IN_KBIT: u64 = 1000;
    if flags & PKTPS != 0 { UNITS } else { bytes as u64 * 8 * (UNITS / BITS_IN_KBIT) }
}

/// Whether a meter can have this number. OFPM_SLOWPATH is not one: this switch has no slow path.
fn is_valid(id: u32) -> bool {
    id == CONTROLLER_METER || (1..=METER_MAX).contains(&id)
}

/// Whether a meter mod is valid.
fn check(wanted: &MeterMod) -> Result<(), Refusal> {
    let known = KBPS | PKTPS | BURST | STATS;
    if !is_valid(wanted.meter_id) {
        return Err(Refusal::MeterInvalid);
    }
    if wanted.flags & !known != 0 || wanted.flags & (KBPS | PKTPS) == KBPS | PKTPS {
        return Err(Refusal::MeterFlags);
    }
    if wanted.bands.len() > usize::from(BANDS_MAX) {
        return Err(Refusal::MeterOutOfBands);
    }
    wanted.bands.iter().try_for_each(|band| check_band(band, wanted.flags))
}

fn check_band(band: &MeterBand, flags: u16) -> Result<(), Refusal> {
    match band.kind {
        MeterBandKind::Experimenter { .. } => return Err(Refusal::MeterBand),
        MeterBandKind::DscpRemark(steps) if steps == 0 || steps > PRECEDENCE_STEPS_MAX => {
            return Err(Refusal::MeterBandValue);
        }
        MeterBandKind::DscpRemark(_) | MeterBandKind::Drop => {}
    }
    if band.rate == 0 {
        return Err(Refusal::MeterRate);
    }
    // A bucket of size zero would never let a packet pass.
    if flags & BURST != 0 && band.burst_size == 0 { Err(Refusal::MeterBurst) } else { Ok(()) }
}

/// OFPMP_METER_FEATURES.
pub(crate) fn features() -> MeterFeatures {
    /// OFPMBT_DROP and OFPMBT_DSCP_REMARK.
    const BAND_TYPES: u32 = 1 << 1 | 1 << 2;
    MeterFeatures {
        max_meter: METERS_MAX,
        band_types: BAND_TYPES,
        capabilities: u32::from(KBPS | PKTPS | BURST | STATS),
        max_bands: BANDS_MAX,
        max_color: 0,
    }
}

/// A DSCP whose drop precedence is raised by `steps`, up to the highest of its class. Only classes of assured
/// forwarding have one (RFC 2597). Any other DSCP stays as it is.
pub(crate) fn remark(dscp: u8, steps: u8) -> u8 {
    let (class, precedence, low) = (dscp >> 3, dscp >> 1 & 3, dscp & 1);
    if !(1..=4).contains(&class) || precedence == 0 || low != 0 {
        return dscp;
    }
    class << 3 | (precedence + steps).min(3) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(10);

    fn drop_at(rate: u32, burst_size: u32) -> MeterBand {
        MeterBand { rate, burst_size, kind: MeterBandKind::Drop }
    }

    fn meters(flags: u16, bands: &[MeterBand]) -> Meters {
        let mut meters = Meters::default();
        let wanted = MeterMod { command: METER_ADD, flags, meter_id: 1, bands: bands.to_vec() };
        assert_eq!(meters.modify(&wanted, NOW), Ok(vec![]));
        meters
    }

    /// How many of `count` packets at one moment pass.
    fn passed(meters: &mut Meters, count: usize, bytes: usize, now: Duration) -> usize {
        (0..count).filter(|_| meters.meter(1, bytes, now) == MeterResult::Pass).count()
    }

    #[test]
    fn a_meter_that_is_not_there_stops_nothing() {
        assert_eq!(Meters::default().meter(7, 1000, NOW), MeterResult::Pass);
    }

    #[test]
    fn packets_a_second_are_counted_and_not_their_bytes() {
        let mut meters = meters(PKTPS | BURST, &[drop_at(10, 5)]);
        assert_eq!(passed(&mut meters, 20, 9000, NOW), 5);
        assert_eq!(passed(&mut meters, 20, 1, NOW + Duration::from_millis(99)), 0);
        assert_eq!(passed(&mut meters, 20, 1, NOW + Duration::from_millis(100)), 1);
        assert_eq!(passed(&mut meters, 20, 1, NOW + Duration::from_secs(60)), 5, "no more than the burst");
    }

    #[test]
    fn kbit_a_second_are_thousands_of_bits() {
        // 1000 bytes are 8 kbit.
        let mut meters = meters(KBPS | BURST, &[drop_at(80, 16)]);
        assert_eq!(passed(&mut meters, 9, 1000, NOW), 2);
        assert_eq!(passed(&mut meters, 9, 1000, NOW + Duration::from_millis(100)), 1);
    }

    #[test]
    fn without_a_burst_a_second_of_the_rate_passes_at_once() {
        assert_eq!(passed(&mut meters(PKTPS, &[drop_at(7, 99)]), 50, 1, NOW), 7);
        assert_eq!(passed(&mut meters(0, &[drop_at(8, 0)]), 50, 500, NOW), 2, "kbit/s if nothing is said");
    }

    #[test]
    fn the_dry_band_with_the_highest_rate_has_its_way() {
        let remark = MeterBand { rate: 1, burst_size: 1, kind: MeterBandKind::DscpRemark(1) };
        for bands in [[remark.clone(), drop_at(2, 2)], [drop_at(2, 2), remark]] {
            let mut meters = meters(PKTPS | BURST, &bands);
            let verdicts: Vec<MeterResult> = (0..3).map(|_| meters.meter(1, 1, NOW)).collect();
            assert_eq!(verdicts, [MeterResult::Pass, MeterResult::Remark(1), MeterResult::Drop]);
        }
    }

    #[test]
    fn a_clock_that_steps_back_fills_nothing_twice() {
        let mut meters = meters(PKTPS | BURST, &[drop_at(10, 1)]);
        passed(&mut meters, 1, 1, NOW + Duration::from_secs(1));
        assert_eq!(passed(&mut meters, 1, 1, NOW), 0);
        assert_eq!(passed(&mut meters, 1, 1, NOW + Duration::from_secs(1)), 0);
    }

    #[test]
    fn only_assured_forwarding_has_a_precedence_to_raise() {
        // AF11 becomes AF12 and AF13; AF43 has no higher one. Expedited forwarding, best effort and class selectors
        // do not change.
        for (dscp, steps, expected) in [
            (10, 1, 12),
            (10, 2, 14),
            (12, 2, 14),
            (38, 1, 38),
            (46, 1, 46),
            (0, 2, 0),
            (8, 1, 8),
            (63, 1, 63),
        ] {
            assert_eq!(remark(dscp, steps), expected, "{dscp} by {steps}");
        }
    }

    proptest! {
        #[test]
        fn over_any_time_no_more_passes_than_burst_and_rate_allow(
            rate in 1u32..10_000,
            burst in 1u32..1000,
            gaps_us in prop::collection::vec(0u64..100_000, 1..200),
        ) {
            let mut meters = meters(PKTPS | BURST, &[drop_at(rate, burst)]);
            let (mut now, mut through) = (NOW, 0u64);
            for gap in gaps_us {
                now += Duration::from_micros(gap);
                through += passed(&mut meters, 3, 64, now) as u64;
            }
            let allowed = u64::from(burst) + u64::from(rate) * (now - NOW).as_micros() as u64 / 1_000_000;
            prop_assert!(through <= allowed, "{through} of {allowed}");
        }
    }
}
