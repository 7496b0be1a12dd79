//! A phase: how often the switch looks for expired rules.
//!
//! ```text
//!   rules with a hard time-out of 1 s, added at uneven times ──> flow removeds ──> all at multiples of a period after a phase?
//! ```
//!
//! In: the times of flow removeds. Out: the period, 0 if each rule ends in time.

use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{ns, us};
use crate::script::{MILLISECOND_NS, Record, SECOND_NS, Script, Step, When};
use profile::random::Random;

/// Rules with a time-out.
const RULES: u32 = 28;
/// Between two of them, on average.
const EVERY_NS: f64 = 370e6;
/// How long their removal may take after the last add. Scans less often are not found.
const SETTLE_NS: u64 = 13 * SECOND_NS;
const TIMEOUT_NS: u64 = SECOND_NS;
/// Removals that differ less from the time-out are in time.
const IN_TIME_NS: u64 = 4 * MILLISECOND_NS;
/// Any would do.
const SEED: u64 = 98;
/// Steps in which the period is searched.
const SEARCH_STEPS: u32 = 4000;

/// The phase.
#[derive(Debug, Default)]
pub struct Timeouts {
    has_run: bool,
}

impl Phase for Timeouts {
    fn title(&self) -> String {
        "measuring time-outs".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["timeouts.scan_period_us"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (true, Some(record)) = (self.has_run, last) {
            conclude(record, found);
            return Next::Done;
        }
        self.has_run = true;
        found.leave_out("timeouts.counter_period_us", "this probe does not look at counters");
        let rule = RuleForm { hard_timeout_s: 1, is_reported: true, ..RuleForm::to(options.ports[1].port) };
        let flows = found.take_flows(Width::Ethernet, RULES as usize);
        let steps = flows.into_iter().zip(times_ns()).map(|(flow, at_ns)| Step {
            flow: Some(flow),
            ..Step::send(When::At(at_ns), rule.add_for(flow))
        });
        Next::Run(Script::new(steps.collect(), SECOND_NS).with_settle(SETTLE_NS))
    }
}

/// When the rules are added: at times like random ones, which are the same in each probe. Times by a simple law come in step with some
/// period. Then all rules wait equally long, and no period shows.
fn times_ns() -> impl Iterator<Item = u64> {
    let mut random = Random::new(SEED);
    (0..RULES).map(move |index| ((f64::from(index) + random.unit()) * EVERY_NS) as u64)
}

fn conclude(record: &Record, found: &mut Findings) {
    let removed = record.outcomes.iter().filter_map(|add| Some((add.sent_ns?, add.removed_ns?)));
    let removed: Vec<(u64, u64)> = removed.collect();
    if removed.len() < 8 {
        return found.leave_out("timeouts.scan_period_us", "the switch reported few removals in 14 s");
    }
    // Adds wait for each other, so that rules are added later than they are sent.
    let in_time_ns = IN_TIME_NS + 2 * ns(found.add_us());
    match period_ns(&removed, in_time_ns) {
        Some(period) => found.scan_period_us = Some(us(period)),
        None => {
            // Without a phase, a period as long as the spread gives the same lateness on average.
            let excess =
                removed.iter().map(|(added, removed)| us(removed.saturating_sub(added + TIMEOUT_NS)));
            let spread = excess.clone().fold(0.0, f64::max) - excess.fold(f64::INFINITY, f64::min);
            found.scan_period_us = Some(spread);
            found.leave_out(
                "phase of time-outs",
                format!("removals come up to {:.0} ms late, in no period", spread / 1e3),
            );
        }
    }
}

/// The period of the scans: (added, removed).
fn period_ns(removed: &[(u64, u64)], in_time_ns: u64) -> Option<u64> {
    let excess = removed.iter().map(|(added, removed)| removed.saturating_sub(added + TIMEOUT_NS));
    let (least, most) = excess.fold((u64::MAX, 0), |(least, most), it| (least.min(it), most.max(it)));
    let spread = most - least;
    if spread < in_time_ns {
        return Some(0);
    }
    // The excess lies anywhere within a period, so its spread is somewhat less than that.
    let times: Vec<f64> = removed.iter().map(|(_, removed)| *removed as f64).collect();
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let at = |step: u32| spread as f64 * (0.97 + 0.8 * f64::from(step) / f64::from(SEARCH_STEPS));
    let strength = |period: f64| {
        let (x, y) = times.iter().fold((0.0, 0.0), |(x, y), time| {
            let (sine, cosine) = (std::f64::consts::TAU * (time - first) / period).sin_cos();
            (x + cosine, y + sine)
        });
        (x * x + y * y).sqrt() / times.len() as f64
    };
    let best = (0..=SEARCH_STEPS).map(at).max_by(|one, two| strength(*one).total_cmp(&strength(*two)))?;
    (strength(best) > 0.9).then_some(best as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_of_scans_is_found_within_one_per_cent() {
        // No period is in step with the times of the adds.
        let periods_us = (0..160).map(|step| 30_000.0 * 1.03_f64.powi(step)).chain([209_611.0]);
        for period_us in periods_us.filter(|us| *us < 3e6).chain([5e6]) {
            let period = (1e3 * period_us) as u64;
            for phase in [0, period / 3, 2 * period / 3] {
                let removed: Vec<(u64, u64)> = times_ns()
                    .map(|at| {
                        let end = at + 7 * MILLISECOND_NS + TIMEOUT_NS;
                        (at, end.saturating_sub(phase).div_ceil(period) * period + phase)
                    })
                    .collect();
                let found = period_ns(&removed, IN_TIME_NS).unwrap() as f64 / period as f64;
                assert!((found - 1.0).abs() < 0.01, "{period_us} µs: {found} times that");
            }
        }
    }

    #[test]
    fn rules_that_end_in_time_have_no_period() {
        let removed: Vec<(u64, u64)> =
            (0..20u64).map(|at| (at * 7, at * 7 + TIMEOUT_NS + MILLISECOND_NS)).collect();
        assert_eq!(period_ns(&removed, IN_TIME_NS), Some(0));
    }
}
