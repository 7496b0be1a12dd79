//! When rules end, against arithmetic on the periods.

use super::driver::{Caller, Draw, MS, SECOND, rule};
use profile::model::*;
use profile::*;

fn switch(scan_period_us: f64, counter_period_us: f64) -> Profile {
    Profile { timeouts: Timeouts { scan_period_us, counter_period_us }, ..Profile::null() }
}

fn ends(caller: &Caller, wanted: RuleId) -> Option<u64> {
    caller.came.iter().rev().find_map(|(at, output)| match output {
        Output::InDataPlane { rule, place: None } if *rule == wanted => Some(*at),
        _ => None,
    })
}

#[test]
fn in_slow_motion_a_use_at_any_time_counts_once() {
    for slow in 2..20u64 {
        let mut model = Model::new(&Profile::null(), 1).in_slow_motion(slow as u32);
        let mut out = Vec::new();
        let added = Rule { idle_timeout_s: 1, ..rule(1, 1) };
        let add = Message { rule: Some(added), ..Message::new(MessageId(1), MessageType::Add) };
        model.on_input(0, Input::Message(add), &mut out);
        // The last use is a little later than a time of the model's slower clock.
        let used = 7 * slow + slow - 1;
        let (mut asked, mut ended) = (0, None);
        while let Some(due) = model.next_due_ns().filter(|_| ended.is_none()) {
            model.on_time(due, &mut out);
            for output in std::mem::take(&mut out) {
                let Output::ExpireIfIdle { rule, unused_since_ns } = output else { continue };
                asked += 1;
                assert!(asked < 10, "slow motion {slow}: it asks for ever");
                let answer = match used > unused_since_ns {
                    true => Input::Used { rule, at_ns: used, packets: 1 },
                    false => Input::Deleted(rule),
                };
                ended = (used <= unused_since_ns).then_some(due);
                model.on_input(due, answer, &mut out);
            }
        }
        assert_eq!((asked, ended), (2, Some((SECOND + 7) * slow)), "slow motion {slow}");
    }
}

#[test]
fn without_periods_a_rule_ends_at_its_time_out() {
    let mut caller = Caller::new(Model::new(&Profile::null(), 1));
    caller.add(MS, Rule { hard_timeout_s: 30, ..rule(1, 1) }, Packet::None);
    caller.add(MS, Rule { idle_timeout_s: 10, ..rule(2, 1) }, Packet::None);
    caller.add(MS, Rule { idle_timeout_s: 10, hard_timeout_s: 30, ..rule(3, 1) }, Packet::None);
    (0..100).for_each(|second| {
        caller.pass_to(second * SECOND / 2);
        caller.used.insert(RuleId(3), second * SECOND / 2);
    });
    caller.used.insert(RuleId(2), 5 * SECOND);
    assert_eq!(ends(&caller, RuleId(1)), Some(30 * SECOND + MS));
    assert_eq!(ends(&caller, RuleId(2)), Some(10 * SECOND + MS));
    assert_eq!(
        ends(&caller, RuleId(3)),
        Some(30 * SECOND + MS),
        "it is used, so only its hard time-out ends it"
    );
}

#[test]
fn rules_end_at_scans_and_all_scans_are_a_period_apart() {
    let mut caller = Caller::new(Model::new(&switch(5e6, 0.0), 3));
    let mut draw = Draw(1);
    let mut now = 0;
    for number in 0..200 {
        now += draw.below(SECOND);
        caller.add(now, Rule { hard_timeout_s: 7, ..rule(number, 1) }, Packet::None);
    }
    caller.finish(u64::MAX);
    let all: Vec<u64> = (0..200).map(|number| ends(&caller, RuleId(number)).unwrap()).collect();
    assert!(all.iter().all(|end| end % (5 * SECOND) == all[0] % (5 * SECOND)), "{all:?}");
    let mut late: Vec<u64> = Vec::new();
    for (number, end) in all.iter().enumerate() {
        let added = caller.first_shown(RuleId(number as u64)).unwrap().0;
        late.push(end - added - 7 * SECOND);
    }
    let (least, most) = (late.iter().min().unwrap(), late.iter().max().unwrap());
    assert!(*least < SECOND / 2 && *most > 4 * SECOND && *most < 5 * SECOND, "{least} to {most}");
}

#[test]
fn an_idle_rule_lives_until_the_scan_after_the_refresh_after_its_last_use() {
    for seed in 0..50 {
        let profile = switch(3e6, 2e6);
        let mut caller = Caller::new(Model::new(&profile, seed));
        let times = caller.model.scan_times();
        let mut draw = Draw(seed);
        caller.add(0, Rule { idle_timeout_s: 4, ..rule(1, 1) }, Packet::None);
        let mut used = 0;
        // It is used often enough to live for a while.
        for _ in 0..10 {
            used += draw.below(4 * SECOND);
            caller.pass_to(used);
            if caller.rules.is_empty() {
                break;
            }
            caller.used.insert(RuleId(1), used);
        }
        let last = caller.used.get(&RuleId(1)).copied().unwrap_or(0);
        caller.finish(u64::MAX);
        let end = ends(&caller, RuleId(1)).unwrap();
        assert_eq!(end, times.idle_end_ns(last, 4), "seed {seed}");
        assert!(end >= last + 4 * SECOND && end <= last + 9 * SECOND, "seed {seed}");
    }
}

#[test]
fn a_rule_that_is_added_again_begins_again() {
    let mut caller = Caller::new(Model::new(&Profile::null(), 1));
    caller.add(0, Rule { hard_timeout_s: 10, ..rule(1, 1) }, Packet::None);
    caller.add(6 * SECOND, Rule { hard_timeout_s: 10, ..rule(1, 1) }, Packet::None);
    caller.add(7 * SECOND, Rule { hard_timeout_s: 20, ..rule(2, 1) }, Packet::None);
    caller.add(8 * SECOND, Rule { hard_timeout_s: 2, ..rule(2, 1) }, Packet::None);
    caller.finish(u64::MAX);
    assert_eq!(ends(&caller, RuleId(1)), Some(16 * SECOND));
    assert_eq!(ends(&caller, RuleId(2)), Some(10 * SECOND), "a shorter time-out counts too");
}
