//! Which token bucket explains which packets passed and which did not.
//!
//! In: when each packet of an overload was sent, in order, and whether it passed; a first estimate, if there is one. Out: a rate and a burst.
//! A packet is anything that a bucket lets pass or not: an add that goes to hardware has passed. It never estimates a rate from the times of answers: delays behind the bucket disturb those, and not the bucket's decisions.
//!
//! A bucket of `burst` tokens that starts full and never is full again holds `burst + rate * t - passed` tokens at the time `t`. Each packet
//! that passed says that this was at least 1, and each lost one that it was less. For one burst, each packet so bounds the rate from one
//! side. Jitter of the driver makes a few packets contradict the others; the bucket that fewest contradict is the answer. A burst of one is
//! full again before the next packet comes, so nothing is said about it.
//!
//! Several buckets explain the same packets. Somebody once typed the limit in, so the one with the roundest numbers is taken.

use crate::samples::interval_ns;
use std::ops::RangeInclusive;

/// How far the rate may be from the first estimate, as a share of it.
const RATE_SHARE: f64 = 0.02;
/// How far the burst may be from the first estimate: the rate's share of the tokens of an overload, and some.
const BURST_SHARE: f64 = 0.1;
const BURST_MIN: u32 = 3;
/// If more than this share of packets contradicts each bucket, no bucket decided about them.
const CONTRADICT_MAX: f64 = 0.1;
/// Buckets that are contradicted by this much more than the best are as good.
const AS_GOOD: f64 = 1.25;
/// A switch counts its tokens with numbers of its own; a rate may be that much beyond what the packets say, as a share of it.
const INEXACT: f64 = 2e-6;
/// Steps in which the interval of a bucket is searched, twice.
const SEARCH_STEPS: u32 = 400;
/// Digits of a rate at most. More are noise.
const DIGITS_MAX: i32 = 9;

/// One packet: seconds after the first, how many passed before it, and whether it passed.
#[derive(Clone, Copy, Debug)]
struct Packet {
    after_s: f64,
    passed_before: f64,
    has_passed: bool,
}

/// Rates that equally many packets contradict, for one burst.
#[derive(Clone, Copy, Debug)]
struct Range {
    burst: u32,
    from: f64,
    until: f64,
    contradict: u64,
}

/// The bucket (rate in packets per second, burst in packets) that explains `packets`: when each was sent, in ns, and whether it passed.
/// `None`: no bucket near `(rate_per_s, burst)` does.
pub fn explain(packets: &[(u64, bool)], (rate_per_s, burst): (f64, u32)) -> Option<(f64, u32)> {
    let reach = BURST_MIN.max((f64::from(burst) * BURST_SHARE) as u32);
    let bursts = burst.saturating_sub(reach).max(1)..=burst.saturating_add(reach);
    among(packets, rate_per_s, burst, bursts)
}

/// The bucket without a first estimate, for packets whose times are known only roughly. `None`: too few passed after the first lost one.
///
/// The search finds the burst that is wrong about the fewest packets. Only the rate is refined after that: a greater burst would explain that
/// packets are late.
pub fn search(packets: &[(u64, bool)]) -> Option<(f64, u32)> {
    let (rate_per_s, burst) = roughly(packets)?;
    let refined = among(packets, rate_per_s, burst, burst..=burst);
    Some((refined.map_or(rate_per_s, |(rate_per_s, _)| rate_per_s), burst))
}

fn roughly(packets: &[(u64, bool)]) -> Option<(f64, u32)> {
    let first_lost = packets.iter().position(|(_, has_passed)| !has_passed)?;
    let steady: Vec<u64> =
        packets[first_lost..].iter().filter(|(_, has_passed)| *has_passed).map(|(at, _)| *at).collect();
    let rough_ns = interval_ns(&steady)?;
    let bursts = 1..=u32::try_from(first_lost).unwrap_or(u32::MAX).saturating_add(1);
    let fits = bursts.map(|burst| {
        let (rough_ns, _) = best_interval(packets, burst, (0.4 * rough_ns, 2.6 * rough_ns));
        let step = 2.2 * rough_ns / f64::from(SEARCH_STEPS);
        let (every_ns, wrong) = best_interval(packets, burst, (rough_ns - 3.0 * step, rough_ns + 3.0 * step));
        (wrong, burst, every_ns)
    });
    let (_, burst, every_ns) = fits.min_by_key(|(wrong, ..)| *wrong)?;
    (every_ns > 0.0).then(|| (1e9 / every_ns, burst))
}

/// The interval in the middle of those that are wrong about the fewest packets, and about how many.
fn best_interval(packets: &[(u64, bool)], burst: u32, (from, to): (f64, f64)) -> (f64, usize) {
    let at = |step: u32| from + (to - from) * f64::from(step) / f64::from(SEARCH_STEPS);
    let wrong: Vec<usize> = (0..=SEARCH_STEPS).map(|step| wrong_about(packets, burst, at(step))).collect();
    let least = wrong.iter().copied().min().unwrap_or(0);
    let best: Vec<f64> =
        (0..=SEARCH_STEPS).zip(&wrong).filter(|(_, it)| **it == least).map(|(step, _)| at(step)).collect();
    (best[best.len() / 2], least)
}

/// About how many packets a bucket is wrong (the generic cell rate algorithm, ITU-T I.371), and by how many more or fewer it lets pass.
/// Services vary, so that the right bucket is wrong about some packets, but not about their number. Its state is its own and not the one that
/// was seen: a rule that moved to hardware before it was seen in software took no token.
fn wrong_about(packets: &[(u64, bool)], burst: u32, every_ns: f64) -> usize {
    let tolerance = every_ns * f64::from(burst.saturating_sub(1));
    let mut full_at = 0.0_f64;
    let (mut wrongly_let_in, mut wrongly_kept_out) = (0_usize, 0_usize);
    for (at, has_passed) in packets {
        let at = *at as f64;
        let has_token = full_at <= at + tolerance;
        if has_token {
            full_at = full_at.max(at) + every_ns;
        }
        wrongly_let_in += usize::from(has_token && !has_passed);
        wrongly_kept_out += usize::from(!has_token && *has_passed);
    }
    wrongly_let_in + wrongly_kept_out + wrongly_let_in.abs_diff(wrongly_kept_out)
}

fn among(
    packets: &[(u64, bool)],
    rate_per_s: f64,
    burst: u32,
    bursts: RangeInclusive<u32>,
) -> Option<(f64, u32)> {
    let packets = counted(packets);
    let (low, high) = (rate_per_s * (1.0 - RATE_SHARE), rate_per_s * (1.0 + RATE_SHARE));
    let ranges: Vec<Range> = bursts.flat_map(|burst| ranges(&packets, burst, low, high)).collect();
    let fewest = ranges.iter().map(|range| range.contradict).min()?;
    if fewest as f64 >= CONTRADICT_MAX * packets.len() as f64 {
        return None;
    }
    let as_good = ranges.iter().filter(|range| range.contradict as f64 <= fewest as f64 * AS_GOOD);
    let rounded = as_good
        .map(|range| (roundest(range.from * (1.0 - INEXACT), range.until * (1.0 + INEXACT)), range.burst));
    let best =
        rounded.min_by_key(|((_, digits), found)| (digits + digits_of(*found), found.abs_diff(burst)))?;
    Some((best.0.0, best.1))
}

fn counted(packets: &[(u64, bool)]) -> Vec<Packet> {
    let first_ns = packets.first().map_or(0, |(at_ns, _)| *at_ns);
    let mut passed = 0.0;
    let packet = |(at_ns, has_passed): &(u64, bool)| {
        let after_s = at_ns.saturating_sub(first_ns) as f64 / 1e9;
        let packet = Packet { after_s, passed_before: passed, has_passed: *has_passed };
        passed += if *has_passed { 1.0 } else { 0.0 };
        packet
    };
    packets.iter().map(packet).collect()
}

/// The rates from `low` to `high`, cut where a packet begins or ceases to contradict them.
fn ranges(packets: &[Packet], burst: u32, low: f64, high: f64) -> Vec<Range> {
    let burst_tokens = f64::from(burst);
    let mut contradict = 0i64;
    let mut turns: Vec<(f64, i64)> = Vec::new();
    for packet in packets {
        // From this rate on, there is a token for the packet.
        let missing = 1.0 + packet.passed_before - burst_tokens;
        let rate = match packet.after_s {
            after_s if after_s > 0.0 => missing / after_s,
            _ if missing <= 0.0 => 0.0,
            _ => f64::INFINITY,
        };
        contradict += i64::from((rate <= low) != packet.has_passed);
        if rate > low && rate < high {
            turns.push((rate, if packet.has_passed { -1 } else { 1 }));
        }
    }
    turns.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut from = low;
    let mut found = Vec::new();
    for (until, change) in turns.into_iter().chain([(high, 0)]) {
        if until > from {
            found.push(Range { burst, from, until, contradict: contradict.unsigned_abs() });
        }
        contradict += change;
        from = until;
    }
    found
}

/// The number of fewest digits from `from` to below `until`, and how many digits it has.
fn roundest(from: f64, until: f64) -> (f64, u32) {
    let magnitude = until.log10().floor() as i32;
    for digits in 1..=DIGITS_MAX {
        // A step below 1 is divided by its inverse: tenths have no exact form.
        let exponent = magnitude + 1 - digits;
        let scaled = |number: f64| {
            if exponent < 0 { number * 10f64.powi(-exponent) } else { number / 10f64.powi(exponent) }
        };
        let steps = scaled(from).ceil();
        let rounded = if exponent < 0 { steps / 10f64.powi(-exponent) } else { steps * 10f64.powi(exponent) };
        if rounded >= from && rounded < until {
            return (rounded, digits as u32);
        }
    }
    (f64::midpoint(from, until), DIGITS_MAX as u32 + 1)
}

/// Digits without the zeros at the end.
fn digits_of(mut number: u32) -> u32 {
    while number >= 10 && number.is_multiple_of(10) {
        number /= 10;
    }
    number.checked_ilog10().unwrap_or(0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a bucket passes of `count` packets, one each `every_ns`, of which each is sent up to `jitter_ns` late.
    fn overload(rate_per_s: f64, burst: u32, every_ns: u64, jitter_ns: u64, count: u64) -> Vec<(u64, bool)> {
        let mut tokens = f64::from(burst);
        let (mut last_ns, mut state) = (0, 7u64);
        let packets = (0..count).map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let arrives_ns = index * every_ns + (state >> 33) % jitter_ns.max(1);
            tokens = (tokens + (arrives_ns.saturating_sub(last_ns)) as f64 / 1e9 * rate_per_s)
                .min(f64::from(burst));
            last_ns = arrives_ns.max(last_ns);
            let passes = tokens >= 1.0;
            tokens -= if passes { 1.0 } else { 0.0 };
            (index * every_ns, passes)
        });
        packets.collect()
    }

    fn check(
        truth: (f64, u32),
        every_ns: u64,
        jitter_ns: u64,
        estimate: (f64, u32),
        expected: Option<(f64, u32)>,
    ) {
        let packets = overload(truth.0, truth.1, every_ns, jitter_ns, 2000);
        assert_eq!(explain(&packets, estimate), expected, "{truth:?}");
    }

    #[test]
    fn a_round_limit_is_found_exactly() {
        check((100.0, 100), 2_600_000, 0, (99.98, 99), Some((100.0, 100)));
        check((42.0, 8), 7_100_000, 0, (41.6, 10), Some((42.0, 8)));
        check((12.5, 4), 31_000_000, 0, (12.4, 3), Some((12.5, 4)));
        check((1000.0, 250), 340_000, 0, (1013.0, 240), Some((1000.0, 250)));
    }

    #[test]
    fn jitter_of_the_driver_does_not_hide_it() {
        check((100.0, 100), 2_600_000, 600_000, (99.8, 99), Some((100.0, 100)));
        check((42.0, 8), 7_100_000, 2_000_000, (41.9, 7), Some((42.0, 8)));
    }

    #[test]
    fn a_limit_that_is_not_round_is_found_as_exactly_as_the_packets_tell() {
        let packets = overload(87.654_321, 37, 2_600_000, 0, 2000);
        let (rate, burst) = explain(&packets, (87.2, 38)).expect("a bucket");
        assert!((rate / 87.654_321 - 1.0).abs() < 2e-3, "{rate}");
        assert!(burst.abs_diff(37) <= 1, "{burst}");
    }

    #[test]
    fn packets_that_no_bucket_decided_about_are_not_explained() {
        let mut packets = overload(100.0, 100, 2_600_000, 0, 2000);
        for (index, packet) in packets.iter_mut().enumerate() {
            packet.1 = index % 3 == 0;
        }
        assert_eq!(explain(&packets, (100.0, 100)), None);
        assert_eq!(explain(&[], (100.0, 100)), None);
    }

    #[test]
    fn a_bucket_that_is_full_between_packets_is_left_to_the_first_estimate() {
        check((12.5, 1), 31_000_000, 0, (12.4, 2), None);
    }

    /// What a bucket passes of packets at uneven times. With even ones, it could not be told from a multiple of their interval.
    fn uneven(rate_per_s: f64, burst: u32, every_ms: f64, count: usize) -> Vec<(u64, bool)> {
        let (mut tokens, mut last) = (f64::from(burst), 0.0);
        let packets = (0..count).map(|index| {
            let now = (index as f64 + (index as f64 * 0.618).fract() / 2.0) * every_ms / 1e3;
            tokens = (tokens + (now - last) * rate_per_s).min(f64::from(burst));
            last = now;
            let passes = tokens >= 1.0;
            tokens -= if passes { 1.0 } else { 0.0 };
            ((now * 1e9) as u64, passes)
        });
        packets.collect()
    }

    #[test]
    fn without_an_estimate_the_bucket_is_searched() {
        for (rate, burst) in [(8.0, 1), (8.0, 20), (13.3, 5)] {
            let (found, found_burst) = search(&uneven(rate, burst, 29.0, 700)).expect("a bucket");
            assert!((found / rate - 1.0).abs() < 0.03, "{found} a second, it was {rate}");
            assert_eq!(found_burst, burst);
        }
        assert_eq!(search(&[(0, true), (1, true)]), None);
    }

    #[test]
    fn the_roundest_number_of_a_range() {
        let check = |from: f64, until: f64, expected: (f64, u32)| assert_eq!(roundest(from, until), expected);
        check(99.95, 100.02, (100.0, 1));
        check(41.62, 41.71, (41.7, 3));
        check(0.118, 0.131, (0.12, 2));
        check(1990.0, 2010.0, (2000.0, 1));
    }
}
