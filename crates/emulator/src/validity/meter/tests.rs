//! What the meter says of runs: machines that keep up, and machines that do not.

use super::*;
use crate::Random;
use crate::validity::Span;

const CALM: MachineReading =
    MachineReading { time: Duration::from_secs(1), processor: 0.3, steal: 0.0, run_queue: 0.005 };

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// A run of this many seconds with 1,000 releases and one reading in each. The test changes what it wants.
fn run(
    seconds: u64,
    mut release: impl FnMut(u64, &mut Release),
    reading: impl Fn(u64) -> MachineReading,
) -> Verdict {
    let (mut meter, mut random) = (Meter::default(), Random::new(1));
    for second in 0..seconds {
        for step in 0..1000u64 {
            let meant = Duration::from_secs(second) + Duration::from_millis(step);
            let delay = us(1000 + u64::from(random.below(9000)));
            let late = us(u64::from(random.below(30)));
            let mut one = Release {
                meant,
                actual: meant + late,
                delay: Some(DelayPair { meant: delay, actual: delay + late }),
                base_was_slower: false,
            };
            release(second, &mut one);
            meter.on_release(one);
        }
        meter.on_reading(reading(second), Duration::from_secs(second + 1));
    }
    meter.verdict(Duration::from_secs(seconds))
}

fn causes(verdict: &Verdict) -> Vec<(Cause, Validity)> {
    verdict.findings.iter().map(|found| (found.cause, found.validity)).collect()
}

#[test]
fn a_machine_that_keeps_up_makes_a_run_valid() {
    let verdict = run(20, |_, _| {}, |_| CALM);
    assert_eq!((verdict.validity, verdict.findings.len()), (Validity::Valid, 0), "{verdict}");
    assert_eq!((verdict.seconds, verdict.releases), (20, 20_000));
    assert_eq!(Meter::default().verdict(Duration::ZERO).validity, Validity::Valid, "nothing happened");
}

#[test]
fn delays_that_are_longer_than_meant_are_found_by_mean_and_distribution() {
    let longer = |by_us| {
        run(
            5,
            |_, release| {
                release.delay =
                    release.delay.map(|pair| DelayPair { actual: pair.actual + us(by_us), ..pair })
            },
            |_| CALM,
        )
    };
    // The mean of the meant delays is 5.5 ms, that of the lateness 15 µs.
    assert_eq!(longer(20).validity, Validity::Valid, "{}", longer(20));
    assert_eq!(causes(&longer(75)), [(Cause::MeanShift, Validity::Doubtful)]);
    let invalid = longer(700);
    assert_eq!(
        causes(&invalid),
        [(Cause::MeanShift, Validity::Invalid), (Cause::Distance, Validity::Invalid)]
    );
    assert_eq!(
        (invalid.findings[0].seconds, &invalid.findings[0].when[..]),
        (5, &[Span { from_s: 0, to_s: 5 }][..])
    );
}

#[test]
fn delays_that_are_shorter_than_meant_are_wrong_too() {
    let verdict = run(
        5,
        |_, release| {
            release.delay = release.delay.map(|pair| DelayPair { actual: pair.meant / 2, ..pair });
        },
        |_| CALM,
    );
    assert_eq!(
        causes(&verdict),
        [(Cause::MeanShift, Validity::Invalid), (Cause::Distance, Validity::Invalid)]
    );
    assert!(verdict.findings[0].value < -0.4, "{verdict}");
}

#[test]
fn two_errors_that_cancel_in_the_mean_are_found_by_the_distribution() {
    let mut longer = false;
    let verdict = run(
        5,
        |_, release| {
            longer = !longer;
            let by = |pair: DelayPair| {
                if longer { pair.meant + us(1500) } else { pair.meant.saturating_sub(us(1500)) }
            };
            release.delay = release.delay.map(|pair| DelayPair { actual: by(pair), ..pair });
        },
        |_| CALM,
    );
    assert_eq!(causes(&verdict), [(Cause::Distance, Validity::Invalid)], "{verdict}");
}

#[test]
fn too_few_delays_say_nothing() {
    let mut meter = Meter::default();
    for _ in 1..thresholds::DELAYS_MIN {
        let delay = Some(DelayPair { meant: us(1000), actual: us(9000) });
        meter.on_release(Release { meant: us(9), actual: us(9), delay, base_was_slower: false });
    }
    assert_eq!(meter.verdict(us(10)).findings, []);
}

#[test]
fn what_was_late_or_slow_says_when_it_was() {
    let verdict = run(
        20,
        |second, release| {
            release.base_was_slower = (3..5).contains(&second);
            if second == 7 {
                release.actual = release.meant + us(1500);
            }
        },
        |_| CALM,
    );
    assert_eq!(
        causes(&verdict),
        [(Cause::BaseSlower, Validity::Invalid), (Cause::Late, Validity::Doubtful)],
        "{verdict}"
    );
    assert_eq!(verdict.findings[0].when, [Span { from_s: 3, to_s: 5 }]);
    assert_eq!((verdict.findings[1].when[0].from_s, verdict.findings[1].value), (7, 0.05));
}

#[test]
fn a_lost_frame_makes_a_run_doubtful_and_one_in_a_thousand_invalid() {
    let lost = |frames| {
        let mut meter = Meter::default();
        for step in 0..10_000 {
            meter.on_release(Release {
                meant: us(step),
                actual: us(step),
                delay: None,
                base_was_slower: false,
            });
        }
        meter.on_lost(frames, us(10_000));
        meter.verdict(us(10_000)).validity
    };
    assert_eq!(
        [lost(0), lost(1), lost(10), lost(11)],
        [Validity::Valid, Validity::Doubtful, Validity::Doubtful, Validity::Invalid]
    );
    let mut meter = Meter::default();
    meter.on_lost(1, us(1));
    assert_eq!(meter.verdict(us(1)).validity, Validity::Invalid, "all there was is lost");
}

#[test]
fn readings_above_a_limit_in_more_than_a_tenth_of_the_seconds_make_a_run_invalid() {
    let check = |bad: MachineReading, seconds: u64, expected: &[(Cause, Validity)]| {
        let verdict = run(20, |_, _| {}, |second| if second < seconds { bad } else { CALM });
        assert_eq!(causes(&verdict), expected, "{verdict}");
    };
    let busy = MachineReading { processor: 0.81, ..CALM };
    check(busy, 0, &[]);
    check(busy, 1, &[(Cause::Processor, Validity::Doubtful)]);
    check(busy, 2, &[(Cause::Processor, Validity::Doubtful)]);
    check(busy, 3, &[(Cause::Processor, Validity::Invalid)]);
    check(MachineReading { processor: 0.8, ..CALM }, 20, &[]);
    check(MachineReading { steal: 0.03, ..CALM }, 20, &[(Cause::Steal, Validity::Doubtful)]);
    check(MachineReading { steal: 0.06, ..CALM }, 20, &[(Cause::Steal, Validity::Invalid)]);
    check(MachineReading { run_queue: 0.2, ..CALM }, 20, &[(Cause::RunQueue, Validity::Invalid)]);
}

#[test]
fn a_machine_that_cannot_be_read_makes_a_run_doubtful() {
    let meter = Meter::default();
    assert_eq!(meter.verdict(us(2_999_999)).validity, Validity::Valid);
    assert_eq!(causes(&meter.verdict(thresholds::UNREAD)), [(Cause::Unread, Validity::Doubtful)]);
}

#[test]
fn the_seconds_count_from_the_beginning_of_the_run() {
    let at = Duration::from_secs;
    let mut meter = Meter::beginning_at(at(100));
    meter.on_reading(CALM, at(101));
    meter.on_reading(MachineReading { steal: 0.5, ..CALM }, at(102));
    let verdict = meter.verdict(at(102));
    assert_eq!((verdict.seconds, verdict.findings[0].when[0]), (2, Span { from_s: 1, to_s: 2 }));
}

#[test]
fn a_reading_counts_by_its_time_and_one_from_before_the_run_does_not() {
    let ms = Duration::from_millis;
    let busy = MachineReading { processor: 0.9, ..CALM };
    // The last reading of a run is shorter.
    let last = |time: Duration, seconds: u64| {
        let mut meter = Meter::beginning_at(ms(500));
        meter.on_reading(busy, ms(1400));
        (1..=seconds).for_each(|second| meter.on_reading(CALM, ms(500 + second * 1000)));
        let end = ms(500 + seconds * 1000) + time;
        meter.on_reading(MachineReading { time, ..busy }, end);
        meter.verdict(end)
    };
    let short = last(ms(300), 4);
    assert_eq!(causes(&short), [(Cause::Processor, Validity::Doubtful)], "0.3 s of 4.3 s: {short}");
    assert_eq!(
        (&short.findings[0].when[..], short.findings[0].seconds),
        (&[Span { from_s: 4, to_s: 5 }][..], 1)
    );
    assert_eq!(causes(&last(ms(600), 4)), [(Cause::Processor, Validity::Invalid)], "0.6 s of 4.6 s");
}

#[test]
fn in_slow_motion_the_limits_are_about_the_time_of_the_model() {
    let slowed = |factor: u32| {
        let mut meter = Meter::default().in_slow_motion(factor);
        for step in 0..1000 {
            let meant = us(step * 1000 * u64::from(factor));
            let late = us(1500);
            let delay = DelayPair { meant: us(50_000) * factor, actual: us(50_000) * factor + late };
            meter.on_release(Release {
                meant,
                actual: meant + late,
                delay: Some(delay),
                base_was_slower: false,
            });
        }
        meter.verdict(us(1))
    };
    assert_eq!(
        causes(&slowed(1)),
        [Cause::MeanShift, Cause::Distance, Cause::Late].map(|cause| (cause, Validity::Invalid))
    );
    assert_eq!(causes(&slowed(10)), []);
}

#[test]
fn in_slow_motion_a_wait_for_a_core_costs_the_model_a_part_of_it_and_a_busy_machine_stays_busy() {
    let slowed = |factor: u32, reading: MachineReading| {
        let mut meter = Meter::default().in_slow_motion(factor);
        meter.on_reading(reading, us(1_000_000));
        causes(&meter.verdict(us(1_000_000)))
    };
    let waits = MachineReading { run_queue: 0.25, ..CALM };
    assert_eq!(slowed(1, waits), [(Cause::RunQueue, Validity::Invalid)]);
    assert_eq!(slowed(5, waits), [(Cause::RunQueue, Validity::Doubtful)]);
    assert_eq!(slowed(10, waits), []);
    assert_eq!(slowed(10, MachineReading { steal: 0.06, ..CALM }), []);
    assert_eq!(
        slowed(10, MachineReading { processor: 0.9, ..CALM }),
        [(Cause::Processor, Validity::Invalid)]
    );
}

#[test]
fn the_text_says_what_was_found_and_when() {
    let busy = MachineReading { processor: 0.97, ..CALM };
    let verdict = run(20, |_, _| {}, |second| if second >= 8 { busy } else { CALM });
    let expected = "invalid after 20 s and 20000 releases\n\
                    invalid: the cores were 97 % busy (limit 80 %), in 12 seconds between 8 s and 20 s";
    assert_eq!(verdict.to_string(), expected);
}
