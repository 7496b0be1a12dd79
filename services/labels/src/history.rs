//! What the VNICs of slices got lately, for `burnet slice report --since`.
//!
//! ```text
//!   every 5 s: shares of a slice ──on_shares──> [ spans of a minute, an hour long │ spans of ten minutes, a day long ]
//!   how far back ──past──> means, and reasons with their share of the time
//! ```
//!
//! In: shares and the time as an argument. Out: sums. It reads no clock, and keeps nothing over a restart: an answer says which time it covers.
//! Shares are looked at every few seconds. So a flow that lives for less may be missing.

use labels_contract::{Past, PastShare, Reason, Share};
use std::collections::{BTreeMap, VecDeque};

/// How far apart two looks at a slice are.
pub const SAMPLE_MS: u64 = 5_000;

/// The time of a short span, and how many of them a slice keeps. Older ones are joined to long ones.
const SPAN_MS: u64 = 60_000;
const SPANS_MAX: usize = 60;

/// How many short spans a long one has, and how many of those a slice keeps. Older ones are forgotten.
const JOINED: u64 = 10;
const LONG_SPANS_MAX: usize = 144;

/// The VNICs in all spans of all slices: some tens of megabytes. Above that, the slice that is looked at forgets its oldest span.
const ENTRIES_MAX: usize = 400_000;

/// The reasons that a VNIC has in a span. Those that come later count as one.
const REASONS_MAX: usize = 4;
const OTHER_REASONS: &str = "other reasons";

/// The past of all slices.
#[derive(Clone, Debug, Default)]
pub struct History {
    slices: BTreeMap<String, Slice>,
    entries: usize,
}

/// The past of a slice, the oldest span first.
#[derive(Clone, Debug, Default)]
struct Slice {
    long: VecDeque<Span>,
    short: VecDeque<Span>,
}

/// What was seen in a time.
#[derive(Clone, Debug, Default)]
struct Span {
    began_ms: u64,
    looks: u64,
    vnics: BTreeMap<String, Sums>,
}

/// What was seen of a VNIC, summed over the looks.
#[derive(Clone, Debug, Default)]
struct Sums {
    sends_bps: u64,
    receives_bps: u64,
    reasons: Vec<(String, u64)>,
}

impl History {
    /// The shares of a slice as they are now.
    pub fn on_shares(&mut self, slice: &str, shares: &[Share], now_ms: u64) {
        let known = self.slices.entry(slice.to_owned()).or_default();
        let before = known.entries();
        known.make_room(now_ms);
        if let Some(span) = known.short.back_mut() {
            span.looks += 1;
            shares.iter().filter(|share| share.sends_bps > 0 || share.receives_bps > 0).for_each(|share| {
                span.vnics.entry(share.vnic.clone()).or_default().add(share);
            });
        }
        while self.entries + known.entries() > ENTRIES_MAX + before && known.forget_oldest() {}
        self.entries = self.entries + known.entries() - before;
    }

    /// The slice is gone.
    pub fn remove(&mut self, slice: &str) {
        let gone = self.slices.remove(slice).unwrap_or_default();
        self.entries -= gone.entries();
    }

    /// What a slice got in the last `since_s` seconds. A span that began earlier counts if more than half of it is within them.
    pub fn past(&self, slice: &str, since_s: u64, now_ms: u64) -> Past {
        let Some(known) = self.slices.get(slice) else { return Past::default() };
        let from_ms = now_ms.saturating_sub(since_s.saturating_mul(1_000));
        let is_within = |(span, length_ms): &(&Span, u64)| span.began_ms + length_ms / 2 >= from_ms;
        let spans: Vec<&Span> = known.spans().filter(is_within).map(|(span, _)| span).collect();
        let mut sum = Span::default();
        spans.iter().for_each(|span| sum.join(span));
        let began_ms = spans.first().map_or(now_ms, |span| span.began_ms);
        let covers_s = (now_ms.saturating_sub(began_ms) / 1_000).min(since_s);
        Past { covers_s, vnics: sum.vnics.iter().map(|(vnic, sums)| sums.share(vnic, sum.looks)).collect() }
    }
}

impl Slice {
    fn entries(&self) -> usize {
        self.long.iter().chain(&self.short).map(|span| span.vnics.len()).sum()
    }

    /// All spans with the time that they are about, the oldest first.
    fn spans(&self) -> impl Iterator<Item = (&Span, u64)> {
        let long = self.long.iter().map(|span| (span, SPAN_MS * JOINED));
        long.chain(self.short.iter().map(|span| (span, SPAN_MS)))
    }

    /// The last span is the one of this moment.
    fn make_room(&mut self, now_ms: u64) {
        let began_ms = now_ms / SPAN_MS * SPAN_MS;
        if self.short.back().is_none_or(|span| span.began_ms < began_ms) {
            self.short.push_back(Span { began_ms, ..Span::default() });
        }
        while self.short.len() > SPANS_MAX {
            self.join_oldest();
        }
        while self.long.len() > LONG_SPANS_MAX {
            self.long.pop_front();
        }
    }

    fn join_oldest(&mut self) {
        let Some(oldest) = self.short.pop_front() else { return };
        let length_ms = SPAN_MS * JOINED;
        let began_ms = oldest.began_ms / length_ms * length_ms;
        if self.long.back().is_none_or(|span| span.began_ms < began_ms) {
            self.long.push_back(Span { began_ms, ..Span::default() });
        }
        if let Some(long) = self.long.back_mut() {
            long.join(&oldest);
        }
    }

    /// Returns whether there was one. The span of this moment stays.
    fn forget_oldest(&mut self) -> bool {
        if self.long.pop_front().is_some() {
            return true;
        }
        self.short.len() > 1 && self.short.pop_front().is_some()
    }
}

impl Span {
    fn join(&mut self, other: &Span) {
        self.looks += other.looks;
        for (vnic, sums) in &other.vnics {
            self.vnics.entry(vnic.clone()).or_default().join(sums);
        }
    }
}

impl Sums {
    fn add(&mut self, share: &Share) {
        self.sends_bps = self.sends_bps.saturating_add(share.sends_bps);
        self.receives_bps = self.receives_bps.saturating_add(share.receives_bps);
        // A VNIC whose flows are silent wants nothing, so it gets what it wants.
        if let (Some(why), true) = (&share.why_less, share.sends_bps > 0) {
            self.count(why, 1);
        }
    }

    fn join(&mut self, other: &Sums) {
        self.sends_bps = self.sends_bps.saturating_add(other.sends_bps);
        self.receives_bps = self.receives_bps.saturating_add(other.receives_bps);
        other.reasons.iter().for_each(|(why, looks)| self.count(why, *looks));
    }

    fn count(&mut self, why: &str, looks: u64) {
        if let Some((_, sum)) = self.reasons.iter_mut().find(|(known, _)| known == why) {
            *sum += looks;
        } else if self.reasons.len() < REASONS_MAX {
            self.reasons.push((why.to_owned(), looks));
        } else if let Some((other, sum)) = self.reasons.last_mut() {
            OTHER_REASONS.clone_into(other);
            *sum += looks;
        }
    }

    fn share(&self, vnic: &str, looks: u64) -> PastShare {
        let looks = looks.max(1);
        let mut reasons = self.reasons.clone();
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let percent = |sum: u64| u8::try_from((sum * 100).div_ceil(looks).min(100)).unwrap_or(100);
        PastShare {
            vnic: vnic.to_owned(),
            sends_bps: self.sends_bps / looks,
            receives_bps: self.receives_bps / looks,
            reasons: reasons.into_iter().map(|(why, sum)| Reason { why, percent: percent(sum) }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(vnic: &str, sends_bps: u64, why: Option<&str>) -> Share {
        Share {
            vnic: vnic.to_owned(),
            promised_bps: 10,
            sends_bps,
            receives_bps: 0,
            flows: 1,
            measured: false,
            why_less: why.map(str::to_owned),
        }
    }

    /// The slice `blue` after so many looks at a VNIC that sends.
    fn looked(looks: u64, sends_bps: impl Fn(u64) -> u64) -> History {
        let mut history = History::default();
        for look in 0..looks {
            let shares = [share("A", sends_bps(look), Some("C receives all that it may"))];
            history.on_shares("blue", &shares, look * SAMPLE_MS);
        }
        history
    }

    #[test]
    fn a_slice_that_was_never_looked_at_has_no_past() {
        assert_eq!(History::default().past("blue", 60, 0), Past::default());
        assert_eq!(looked(1, |_| 1).past("red", 60, 0), Past::default());
    }

    #[test]
    fn a_mean_counts_the_time_in_which_a_vnic_sent_nothing() {
        // Eight bits for a half of ten minutes.
        let history = looked(120, |look| if look % 2 == 0 { 8 } else { 0 });
        let past = history.past("blue", 600, 600_000);
        let why = "C receives all that it may".to_owned();
        let reasons = vec![Reason { why, percent: 50 }];
        let expected = PastShare { vnic: "A".to_owned(), sends_bps: 4, receives_bps: 0, reasons };
        assert_eq!(past, Past { covers_s: 600, vnics: vec![expected] });
    }

    #[test]
    fn only_the_time_that_was_asked_for_counts() {
        let history = looked(120, |look| if look < 60 { 0 } else { 6 });
        let sends = |since_s: u64| history.past("blue", since_s, 600_000).vnics[0].sends_bps;
        assert_eq!((sends(60), sends(300), sends(600)), (6, 6, 3));
        assert_eq!(history.past("blue", 86_400, 600_000).covers_s, 600, "it knows no more");
    }

    #[test]
    fn old_spans_are_joined_and_a_day_is_kept() {
        let day_ms = 86_400_000;
        let history = looked(2 * day_ms / SAMPLE_MS, |_| 7);
        let past = history.past("blue", 2 * 86_400, 2 * day_ms);
        assert!((86_400..=86_400 + 3_600 + 600).contains(&past.covers_s), "{}", past.covers_s);
        assert_eq!(past.vnics[0].sends_bps, 7);
        let slice = &history.slices["blue"];
        assert_eq!((slice.long.len(), slice.short.len()), (LONG_SPANS_MAX, SPANS_MAX));
        assert_eq!(history.entries, slice.entries());
    }

    #[test]
    fn above_the_bound_a_slice_forgets_its_oldest_time() {
        let shares: Vec<Share> = (0..100_000).map(|number| share(&format!("V{number}"), 1, None)).collect();
        let mut history = History::default();
        (0..6).for_each(|minute| history.on_shares("blue", &shares, minute * SPAN_MS));
        assert_eq!((history.entries, history.slices["blue"].short.len()), (ENTRIES_MAX, 4));
        assert_eq!(history.past("blue", 3_600, 6 * SPAN_MS).covers_s, 4 * 60);
        history.remove("blue");
        assert_eq!(history.entries, 0);
    }

    #[test]
    fn reasons_beyond_a_few_count_as_one() {
        let mut sums = Sums::default();
        let reasons = ["a", "b", "c", "d", "e", "a"];
        reasons.iter().for_each(|why| sums.add(&share("A", 1, Some(why))));
        let counted: Vec<(String, u8)> =
            sums.share("A", 6).reasons.into_iter().map(|reason| (reason.why, reason.percent)).collect();
        let expected = [("a", 34), (OTHER_REASONS, 34), ("b", 17), ("c", 17)];
        assert_eq!(counted, expected.map(|(why, percent)| (why.to_owned(), percent)));
    }
}
