//! The paced queue against a model that keeps everything that ever happened and computes each decision from it.

use super::*;
use proptest::prelude::*;

const LIMITS: PacingLimits = PacingLimits { per_s: 8, burst: 2, queue_max: 100 };

fn queue(limits: PacingLimits) -> PacedQueue<usize> {
    PacedQueue::new(limits, 0)
}

fn released(queue: &mut PacedQueue<usize>, now_ms: u64) -> Vec<usize> {
    let mut all = Vec::new();
    queue.release(now_ms, |_, item| all.push(item));
    all
}

/// Pushes flow mods that must have a place, and returns those that may go at once.
fn push_all(
    queue: &mut PacedQueue<usize>,
    zone: u16,
    items: std::ops::Range<usize>,
    now_ms: u64,
) -> Vec<usize> {
    let pushed = items.map(|item| queue.push(ZoneId(zone), item, 1, now_ms).unwrap());
    pushed.filter_map(|pushed| if let Pushed::Now(item) = pushed { Some(item) } else { None }).collect()
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    let mut queue = queue(LIMITS);
    assert_eq!(push_all(&mut queue, 1, 0..5, 0), [0, 1]);
    assert_eq!((queue.waiting(), queue.next_release_ms()), (3, Some(125)));
    assert_eq!(released(&mut queue, 124), []);
    assert_eq!(released(&mut queue, 125), [2]);
    assert_eq!(released(&mut queue, 375), [3, 4]);
    assert_eq!((queue.waiting(), queue.next_release_ms()), (0, None));
    assert_eq!(push_all(&mut queue, 1, 5..8, 10_000), [5, 6], "a pause saves up one burst and not more");
}

#[test]
fn zones_take_turns() {
    let mut queue = queue(PacingLimits { burst: 1, ..LIMITS });
    push_all(&mut queue, 1, 0..6, 0);
    push_all(&mut queue, 2, 10..13, 0);
    push_all(&mut queue, 3, 20..21, 0);
    let order: Vec<usize> = (1..=10).flat_map(|step| released(&mut queue, step * 125)).collect();
    assert_eq!(order, [10, 20, 1, 11, 2, 12, 3, 4, 5]);
}

#[test]
fn a_silent_zone_saves_up_no_turns() {
    let mut queue = queue(PacingLimits { burst: 1, ..LIMITS });
    push_all(&mut queue, 1, 0..20, 0);
    (1..=10).for_each(|step| drop(released(&mut queue, step * 125)));
    push_all(&mut queue, 2, 50..55, 1250);
    let order: Vec<usize> = (11..=16).flat_map(|step| released(&mut queue, step * 125)).collect();
    assert_eq!(order, [50, 11, 51, 12, 52, 13]);
}

#[test]
fn a_barrier_waits_for_its_own_flow_mods_and_for_no_others() {
    let mut queue = queue(LIMITS);
    push_all(&mut queue, 1, 0..4, 0);
    assert_eq!(queue.push(ZoneId(1), 100, 0, 0), Ok(Pushed::Later));
    assert_eq!(queue.push(ZoneId(2), 200, 0, 0), Ok(Pushed::Now(200)));
    assert_eq!(released(&mut queue, 125), [2]);
    assert_eq!(released(&mut queue, 250), [3, 100]);
}

#[test]
fn a_bundle_larger_than_a_burst_waits_for_a_whole_one_and_is_paid_for_later() {
    let mut queue = queue(LIMITS);
    assert_eq!(queue.push(ZoneId(1), 0, 10, 0), Ok(Pushed::Now(0)));
    assert_eq!(queue.push(ZoneId(1), 1, 1, 0), Ok(Pushed::Later));
    // Ten flow mods for a credit of two: eight are missing, and one for the next.
    assert_eq!((released(&mut queue, 1124), released(&mut queue, 1125)), (vec![], vec![1]));
}

#[test]
fn a_full_queue_says_how_long_to_wait() {
    let mut queue = queue(PacingLimits { queue_max: 20, ..LIMITS });
    push_all(&mut queue, 1, 0..8, 0);
    // Six wait. Six more of its own, and eight places for others, make twenty.
    assert_eq!(queue.push(ZoneId(1), 8, 1, 0), Err(Full::For { wait_ms: 125 }));
    assert_eq!(queue.push(ZoneId(2), 9, 6, 0), Ok(Pushed::Later), "another zone has a place");
    assert_eq!(queue.push(ZoneId(3), 9, 13, 0), Err(Full::Always));
    assert_eq!(queue.push(ZoneId::KERNEL, 9, 8, 0), Ok(Pushed::Later), "the node may have the rest");
    assert_eq!(
        Full::For { wait_ms: 1250 }.to_string(),
        "as many flow mods wait for this switch as may be; try again in 1250 ms"
    );
}

#[test]
fn items_without_a_cost_are_bounded_too() {
    let mut queue = queue(LIMITS);
    let fill = |queue: &mut PacedQueue<usize>, now_ms| {
        push_all(queue, 1, 0..3, now_ms);
        let barriers = (0..FREE_ITEMS_MAX).map(|item| queue.push(ZoneId(1), item, 0, now_ms));
        assert!(barriers.into_iter().all(|pushed| pushed == Ok(Pushed::Later)));
        assert_eq!(queue.push(ZoneId(1), 0, 0, now_ms), Err(Full::For { wait_ms: 125 }));
    };
    fill(&mut queue, 0);
    assert_eq!(released(&mut queue, 125).len(), 1 + FREE_ITEMS_MAX);
    fill(&mut queue, 10_000);
}

#[test]
fn a_thousand_rules_leave_in_the_time_of_the_rate() {
    let mut queue = queue(PacingLimits { queue_max: 10_000, ..LIMITS });
    let mut left = push_all(&mut queue, 1, 0..1000, 0).len();
    let mut last_ms = 0;
    while let Some(next_ms) = queue.next_release_ms() {
        left += released(&mut queue, next_ms).len();
        last_ms = next_ms;
    }
    // Two go at once, and the others at eight a second.
    assert_eq!((left, last_ms), (1000, 998 * 125));
}

#[test]
fn what_belongs_to_a_zone_or_session_that_ended_is_given_back() {
    let mut queue = queue(LIMITS);
    push_all(&mut queue, 1, 0..5, 0);
    push_all(&mut queue, 2, 10..13, 0);
    assert_eq!(queue.forget(ZoneId(1)), [2, 3, 4]);
    assert_eq!((queue.forget(ZoneId(1)), queue.waiting()), (vec![], 3));
    assert_eq!(queue.clear(), [(ZoneId(2), 10), (ZoneId(2), 11), (ZoneId(2), 12)]);
    assert_eq!((queue.waiting(), queue.next_release_ms()), (0, None));
}

/// One step of a history: time passes, then a zone sends an item.
#[derive(Clone, Copy, Debug)]
struct Step {
    after_ms: u64,
    zone: u16,
    cost: u32,
}

/// An item that was accepted, and when it left.
#[derive(Clone, Copy, Debug)]
struct Past {
    zone: u16,
    cost: u32,
    left: Option<usize>,
}

/// Keeps all items and decides by looking through all of them. It steps through each millisecond.
struct Model {
    limits: PacingLimits,
    now_ms: u64,
    credit: i64,
    items: Vec<Past>,
    /// Which items left, in order.
    log: Vec<usize>,
    turns: BTreeMap<u16, u64>,
    last_turn: u64,
    last_zone: u16,
}

impl Model {
    fn new(limits: PacingLimits) -> Self {
        let credit = i64::from(limits.burst) * 1000;
        Model {
            limits,
            now_ms: 0,
            credit,
            items: Vec::new(),
            log: Vec::new(),
            turns: BTreeMap::new(),
            last_turn: 0,
            last_zone: 0,
        }
    }

    fn waiting(&self) -> Vec<usize> {
        (0..self.items.len()).filter(|item| self.items[*item].left.is_none()).collect()
    }

    /// The first waiting item of each zone.
    fn heads(&self) -> Vec<usize> {
        let waiting = self.waiting();
        let is_head = |item: &&usize| {
            !waiting.iter().any(|other| other < *item && self.items[*other].zone == self.items[**item].zone)
        };
        waiting.iter().filter(is_head).copied().collect()
    }

    fn leave_if_possible(&mut self) {
        loop {
            let heads = self.heads();
            if let Some(free) =
                heads.iter().copied().filter(|item| self.items[*item].cost == 0).min_by_key(|item| {
                    let zone = self.items[*item].zone;
                    (self.turns[&zone], zone <= self.last_zone, zone)
                })
            {
                self.leave(free);
                continue;
            }
            let next = heads.iter().copied().min_by_key(|item| {
                let zone = self.items[*item].zone;
                (self.turns[&zone], zone <= self.last_zone, zone)
            });
            let Some(next) = next else { break };
            let Past { zone, cost, .. } = self.items[next];
            if self.credit < i64::from(cost.min(self.limits.burst)) * 1000 {
                return;
            }
            (self.last_turn, self.last_zone) = (self.turns[&zone], zone);
            *self.turns.get_mut(&zone).unwrap() += u64::from(cost);
            self.leave(next);
        }
        self.turns.clear();
        self.last_turn = 0;
    }

    fn leave(&mut self, item: usize) {
        self.credit -= i64::from(self.items[item].cost) * 1000;
        self.items[item].left = Some(self.log.len());
        self.log.push(item);
    }

    fn pass(&mut self, ms: u64) {
        let most = i64::from(self.limits.burst) * 1000 + i64::from(self.limits.per_s) - 1;
        self.leave_if_possible();
        for _ in 0..ms {
            self.now_ms += 1;
            if self.log.len() == self.items.len() && self.credit == most {
                // Nothing changes any more but the time.
                continue;
            }
            self.credit = (self.credit + i64::from(self.limits.per_s)).min(most);
            self.leave_if_possible();
        }
    }

    fn has_place(&self, zone: u16, cost: u32) -> bool {
        let waiting = self.waiting();
        let of = |zone: Option<u16>| -> u32 {
            waiting
                .iter()
                .filter(|item| zone.is_none_or(|zone| self.items[**item].zone == zone))
                .map(|item| self.items[*item].cost)
                .sum()
        };
        let free = waiting
            .iter()
            .filter(|item| self.items[**item].zone == zone && self.items[**item].cost == 0)
            .count();
        let for_others = if zone == 0 { 0 } else { of(Some(zone)) + KEPT };
        let is_first = !waiting.iter().any(|item| self.items[*item].zone == zone);
        let goes_now = is_first
            && (cost == 0 || (of(None) == 0 && self.credit >= i64::from(cost.min(self.limits.burst)) * 1000));
        goes_now
            || if cost == 0 {
                free < FREE_ITEMS_MAX
            } else {
                of(None) + for_others + cost <= self.limits.queue_max
            }
    }

    fn push(&mut self, zone: u16, cost: u32) {
        let waiting = self.waiting();
        let is_first = !waiting.iter().any(|item| self.items[*item].zone == zone);
        let waits: u32 = waiting.iter().map(|item| self.items[*item].cost).sum();
        self.items.push(Past { zone, cost, left: None });
        let item = self.items.len() - 1;
        if is_first
            && (cost == 0 || (waits == 0 && self.credit >= i64::from(cost.min(self.limits.burst)) * 1000))
        {
            if cost > 0 {
                self.last_zone = zone;
            }
            return self.leave(item);
        }
        let last_turn = self.last_turn;
        let turn = self.turns.entry(zone).or_insert(0);
        if is_first {
            *turn = (*turn).max(last_turn);
        }
    }
}

/// Plays a history on both. Returns the model, and when each item left by the queue.
fn play(limits: PacingLimits, steps: &[Step]) -> Result<(Model, Vec<(u64, usize)>), TestCaseError> {
    let (mut queue, mut model, mut left) = (queue(limits), Model::new(limits), Vec::new());
    // Everything has left by then: at most 120 times 11 flow mods at one a second.
    let end = Step { after_ms: 1_500_000, zone: 0, cost: 0 };
    for (number, step) in steps.iter().chain([&end]).enumerate() {
        let until = model.now_ms + step.after_ms;
        // The caller comes whenever the queue says that it has something.
        while let Some(next) = queue.next_release_ms().filter(|next| *next <= until) {
            queue.release(next, |_, item| left.push((next, item)));
        }
        model.pass(if number == steps.len() { until.saturating_sub(model.now_ms) } else { step.after_ms });
        prop_assert_eq!(left.iter().map(|(_, item)| *item).collect::<Vec<_>>(), model.log.clone());
        let has_place = model.has_place(step.zone, step.cost);
        let item = model.items.len();
        match queue.push(ZoneId(step.zone), item, step.cost, until) {
            Ok(pushed) => {
                prop_assert!(has_place);
                model.push(step.zone, step.cost);
                if pushed == Pushed::Now(item) {
                    left.push((until, item));
                }
            }
            Err(full) => {
                prop_assert!(!has_place, "{full:?}");
                if let Full::For { wait_ms } = full {
                    prop_assert!(is_accepted_after(&model, *step, wait_ms), "{step:?} after {wait_ms} ms");
                }
            }
        }
    }
    Ok((model, left))
}

/// Whether the item is accepted after this wait, if nothing else is sent.
fn is_accepted_after(model: &Model, step: Step, wait_ms: u64) -> bool {
    let mut later = Model {
        limits: model.limits,
        items: model.items.clone(),
        log: model.log.clone(),
        turns: model.turns.clone(),
        ..*model
    };
    later.pass(wait_ms);
    later.has_place(step.zone, step.cost)
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let cost = prop_oneof![6 => Just(1u32), 2 => Just(0u32), 1 => 2..12u32];
    let after_ms = prop_oneof![3 => Just(0u64), 2 => 0..40u64, 1 => 0..400u64];
    let step = (after_ms, 0..4u16, cost).prop_map(|(after_ms, zone, cost)| Step { after_ms, zone, cost });
    proptest::collection::vec(step, 1..120)
}

fn limits() -> impl Strategy<Value = PacingLimits> {
    (1..60u32, 1..6u32, 10..60u32).prop_map(|(per_s, burst, queue_max)| PacingLimits {
        per_s,
        burst,
        queue_max,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_decides_as_the_model_does(limits in limits(), steps in history()) {
        let (model, left) = play(limits, &steps)?;
        prop_assert_eq!(left.len(), model.items.len(), "each accepted item leaves");
    }

    #[test]
    fn no_window_has_more_than_its_rate(limits in limits(), steps in history()) {
        let (model, left) = play(limits, &steps)?;
        let cost = |item: usize| u64::from(model.items[item].cost);
        let largest = model.items.iter().map(|item| u64::from(item.cost)).max().unwrap_or(0);
        for begin in 0..left.len() {
            let mut sum = 0;
            for (at, item) in &left[begin..] {
                sum += cost(*item);
                // The clock has milliseconds, so that one more may count.
                let passed_ms = at - left[begin].0 + 1;
                let most = u64::from(limits.burst) * 1000 + passed_ms * u64::from(limits.per_s);
                let debt = largest.saturating_sub(u64::from(limits.burst)) * 1000;
                prop_assert!(sum * 1000 <= most + debt, "{sum} from {} to {at}", left[begin].0);
            }
        }
    }

    #[test]
    fn each_zone_keeps_its_order(limits in limits(), steps in history()) {
        let (model, left) = play(limits, &steps)?;
        for zone in 0..4 {
            let items: Vec<usize> = left.iter().map(|(_, item)| *item).filter(|item| model.items[*item].zone == zone).collect();
            prop_assert!(items.is_sorted(), "{items:?}");
        }
    }

    #[test]
    fn zones_that_both_wait_get_the_same(limits in limits(), costs in proptest::collection::vec((1..4u16, 1..6u32), 30..90)) {
        // Everything is there from the start, and the queue is large.
        let limits = PacingLimits { queue_max: 100_000, ..limits };
        let steps: Vec<Step> = costs.iter().map(|(zone, cost)| Step { after_ms: 0, zone: *zone, cost: *cost }).collect();
        let (model, left) = play(limits, &steps)?;
        let mut had = [0u32; 4];
        let first_waiting = left.iter().position(|(at, _)| *at > 0).unwrap_or(left.len());
        for (place, (_, item)) in left.iter().enumerate().skip(first_waiting) {
            had[usize::from(model.items[*item].zone)] += model.items[*item].cost;
            let rest = &left[place + 1..];
            let waits = |zone: u16| rest.iter().any(|(_, item)| model.items[*item].zone == zone);
            for (a, b) in [(1u16, 2u16), (1, 3), (2, 3)] {
                if waits(a) && waits(b) {
                    // Each is at most its own largest item ahead.
                    prop_assert!(had[usize::from(a)].abs_diff(had[usize::from(b)]) <= 10, "{had:?} at {place}");
                }
            }
        }
    }
}
