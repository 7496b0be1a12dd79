//! Who is told which label, and when.

mod random;

use graph::LinkNo;
use hose::{Bandwidth, Flows, INCREASES_MS, INTERVAL_MS, Notice, Notices, Pair, Path, SliceNo, VnicNo};
use random::Random;

const LINK: LinkNo = LinkNo(0);
const WATCHER: SliceNo = SliceNo(9);

/// One link of 100 bit/s, and slices with a flow each over it, of this many bit/s. All see the link.
struct Bench {
    flows: Flows,
    notices: Notices,
}

impl Bench {
    fn new(slices: u32) -> Bench {
        let mut flows = Flows::default();
        flows.labels_mut().set_capacity(LINK, Bandwidth::from_bps(100)).expect("it is known");
        let mut bench = Bench { flows, notices: Notices::default() };
        for slice in (0..slices).map(SliceNo).chain([WATCHER]) {
            bench.notices.watch(slice, LINK, 0, &bench.flows).expect("it is known");
        }
        bench
    }

    /// A slice has this rate over the link now.
    fn rate(&mut self, slice: u32, bps: u64, now_ms: u64) {
        let slice = SliceNo(slice);
        for vnic in [VnicNo(0), VnicNo(1)] {
            self.flows.put_vnic(slice, vnic, Bandwidth::from_bps(bps)).expect("it is known");
        }
        let pair = Pair { slice, source: VnicNo(0), destination: VnicNo(1) };
        if bps > 0 {
            self.flows.on_path(pair, Path::new(&[LINK]).expect("it is known"), 1).expect("it is known");
        } else {
            self.flows.on_no_path(pair);
        }
        self.notices.on_change(LINK, now_ms, &self.flows);
    }

    /// Who is told what at this time, by slice.
    fn told(&mut self, now_ms: u64) -> Vec<(u32, u64)> {
        let mut told = Vec::new();
        while let Some(Notice { slice, link, label }) = self.notices.next(now_ms, &self.flows) {
            assert_eq!(link, LINK);
            told.push((slice.0, label.bps()));
        }
        told
    }

    /// All notices until nothing is due, with their times.
    fn all(&mut self) -> Vec<(u64, u32, u64)> {
        let mut all = Vec::new();
        while let Some(now_ms) = self.notices.next_ms() {
            all.extend(self.told(now_ms).into_iter().map(|(slice, label)| (now_ms, slice, label)));
        }
        all
    }
}

#[test]
fn a_decrease_is_told_at_once_and_not_to_the_slice_that_caused_it() {
    let mut bench = Bench::new(2);
    bench.rate(0, 30, 1_000);
    assert_eq!(bench.told(1_000), [(1, 70), (9, 70)]);
    assert_eq!(bench.notices.next_ms(), None);
}

#[test]
fn a_change_below_5_percent_is_not_told_and_adds_up() {
    let mut bench = Bench::new(1);
    bench.rate(0, 4, 1_000);
    assert_eq!(bench.told(1_000), []);
    bench.rate(0, 5, 1_001);
    assert_eq!(bench.told(1_001), [(9, 95)]);
    bench.rate(0, 9, 3_000);
    assert_eq!(bench.told(3_000), []);
    bench.rate(0, 1, 4_000);
    assert_eq!(bench.told(4_000), []);
    bench.rate(0, 0, 5_000);
    assert_eq!(bench.told(5_000), [(9, 100)]);
}

#[test]
fn a_port_has_one_notice_in_100_ms() {
    let mut bench = Bench::new(1);
    bench.rate(0, 10, 1_000);
    assert_eq!(bench.told(1_000), [(9, 90)]);
    bench.rate(0, 20, 1_010);
    bench.rate(0, 40, 1_020);
    assert_eq!(bench.told(1_099), []);
    assert_eq!(bench.notices.next_ms(), Some(1_100));
    bench.rate(0, 50, 1_099);
    assert_eq!(bench.told(1_100), [(9, 50)], "the label of this moment");
    assert_eq!(bench.all(), []);
}

#[test]
fn a_change_that_is_taken_back_in_time_is_not_told() {
    let mut bench = Bench::new(1);
    bench.rate(0, 10, 1_000);
    assert_eq!(bench.told(1_000), [(9, 90)]);
    bench.rate(0, 50, 1_010);
    bench.rate(0, 12, 1_020);
    assert_eq!(bench.notices.next_ms(), None);
}

#[test]
fn increases_are_spread_over_a_second() {
    let mut bench = Bench::new(5);
    bench.rate(0, 80, 1_000);
    assert_eq!(bench.told(1_000), [(1, 20), (2, 20), (3, 20), (4, 20), (9, 20)]);
    bench.rate(0, 0, 5_000);
    let first = bench.all();
    assert_eq!(first.iter().map(|it| it.0).collect::<Vec<_>>(), [5_000, 5_200, 5_400, 5_600, 5_800]);
    bench.rate(0, 80, 10_000);
    bench.told(10_000);
    bench.rate(0, 0, 20_000);
    let second = bench.all();
    assert_ne!(first[0].1, second[0].1, "another slice begins the next time");
    assert!(second.iter().all(|(at_ms, _, label)| *at_ms < 20_000 + INCREASES_MS && *label == 100));
}

#[test]
fn a_decrease_overtakes_an_increase_that_waits() {
    let mut bench = Bench::new(5);
    bench.rate(0, 80, 1_000);
    bench.told(1_000);
    bench.rate(0, 40, 5_000);
    let early = bench.told(5_000);
    assert_eq!(early.len(), 1, "{early:?}");
    bench.rate(0, 100, 5_010);
    let late = bench.all();
    let others: Vec<_> = late.iter().filter(|(_, slice, _)| *slice != early[0].0).collect();
    assert!(others.iter().all(|(at_ms, _, label)| (*at_ms, *label) == (5_010, 0)), "{late:?}");
    assert_eq!(late.len(), 5);
}

#[test]
fn on_an_overbooked_link_the_newest_flows_slice_is_told_first() {
    let mut bench = Bench::new(3);
    bench.rate(0, 60, 1_000);
    bench.rate(1, 30, 1_000);
    bench.rate(2, 40, 1_000);
    assert_eq!(bench.told(1_000), [(2, 10), (9, 0)], "the newest, and the slice without flows");
    assert_eq!(bench.told(1_099), []);
    // Slice 2 does not move, so it is the turn of slice 1, and then of slice 0.
    assert_eq!(bench.all(), [(1_100, 1, 0), (1_200, 0, 30)]);
}

#[test]
fn a_newest_slice_that_knows_its_label_still_has_time_to_move() {
    let mut bench = Bench::new(2);
    bench.rate(0, 60, 1_000);
    assert_eq!(bench.told(1_000), [(1, 40), (9, 40)]);
    bench.rate(1, 60, 1_001);
    assert_eq!((bench.told(1_001), bench.notices.next_ms()), (vec![], Some(1_100)));
    assert_eq!(bench.all(), [(1_100, 9, 0), (1_101, 0, 40)]);
}

#[test]
fn once_the_newest_has_moved_the_others_are_not_told() {
    let mut bench = Bench::new(2);
    bench.rate(0, 60, 1_000);
    assert_eq!(bench.told(1_000), [(1, 40), (9, 40)]);
    bench.rate(1, 60, 1_001);
    assert_eq!(bench.told(1_001), []);
    bench.rate(1, 0, 1_050);
    assert_eq!(bench.all(), [], "labels are what was told before");
}

#[test]
fn a_slice_that_returns_to_an_overbooked_link_waits_again() {
    let mut bench = Bench::new(3);
    bench.rate(0, 60, 1_000);
    bench.rate(1, 30, 1_000);
    bench.all();
    bench.rate(2, 40, 5_000);
    bench.told(5_000);
    bench.rate(0, 75, 5_010);
    bench.rate(2, 0, 5_050);
    bench.rate(1, 40, 5_060);
    bench.rate(2, 30, 6_000);
    assert!(bench.flows.labels().is_overbooked(LINK));
    let turns: Vec<_> =
        bench.all().into_iter().filter(|(at, slice, _)| *at >= 6_000 && *slice != 9).collect();
    let times: Vec<_> = turns.iter().map(|turn| turn.0).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL_MS), "{turns:?}");
}

#[test]
fn a_slice_that_does_not_see_a_link_is_not_told() {
    let mut bench = Bench::new(2);
    bench.notices.unwatch(SliceNo(1), LINK);
    bench.rate(0, 30, 1_000);
    assert_eq!(bench.told(1_000), [(9, 70)]);
    bench.rate(0, 60, 1_010);
    bench.notices.remove_slice(WATCHER);
    assert_eq!((bench.notices.next_ms(), bench.told(9_000)), (None, vec![]));
}

#[test]
fn a_capacity_that_is_found_later_is_told() {
    let (mut flows, mut notices) = (Flows::default(), Notices::default());
    assert_eq!(notices.watch(WATCHER, LINK, 0, &flows), Ok(None));
    flows.labels_mut().set_capacity(LINK, Bandwidth::from_bps(100)).expect("it is known");
    notices.on_change(LINK, 500, &flows);
    let notice = Notice { slice: WATCHER, link: LINK, label: Bandwidth::from_bps(100) };
    assert_eq!(notices.next(500, &flows), Some(notice));
}

#[test]
fn whatever_happens_what_was_told_is_near_in_the_end_and_never_told_too_often() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let slices = 4;
        let mut bench = Bench::new(slices);
        let (mut now_ms, mut last) = (0, [None; 10]);
        let mut note = |bench: &mut Bench, now_ms: u64| {
            for (slice, label) in bench.told(now_ms) {
                let before: Option<u64> = last[slice as usize].replace(now_ms);
                assert!(
                    before.is_none_or(|before| before + INTERVAL_MS <= now_ms),
                    "seed {seed}, slice {slice}"
                );
                assert!(label <= 100);
            }
        };
        for _ in 0..80 {
            bench.rate(random.number(slices), random.below(9) * 10, now_ms);
            note(&mut bench, now_ms);
            now_ms += random.below(120);
            note(&mut bench, now_ms);
        }
        while let Some(next_ms) = bench.notices.next_ms() {
            now_ms = now_ms.max(next_ms);
            note(&mut bench, now_ms);
        }
        for slice in (0..slices).map(SliceNo).chain([WATCHER]) {
            let told = bench.notices.told(slice, LINK).expect("it is known");
            let label = bench.flows.labels().label(slice, LINK).expect("it is known");
            assert!(told.bps().abs_diff(label.bps()) < 5, "seed {seed}, {slice:?}: {told:?} and {label:?}");
        }
    }
}
