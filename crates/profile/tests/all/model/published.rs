//! Switches with the numbers that the paper on switch models publishes of them (Table 1, and section 2.2).

use super::driver::{Caller, MS, SECOND, rule};
use profile::model::*;
use profile::*;

fn hp() -> Profile {
    built_in("hp-procurve-j9451a").unwrap()
}

/// A switch whose packet-in and add take the CPU for one flow's share of a second.
fn set_up_at(flows_per_s: f64, entries: u32) -> Profile {
    let mut profile = Profile::null();
    let each = Quantiles::constant(1e6 / flows_per_s / 2.0);
    profile.cpu.packet_in.service_us = each.clone();
    profile.cpu.add.service_us = each;
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(entries)], ..Hardware::default() });
    profile
}

#[test]
fn the_hp_keeps_eight_adds_a_second_in_hardware_and_not_forty() {
    let in_software = |every: u64| {
        let mut caller = Caller::new(Model::new(&hp(), 1));
        (0..100).for_each(|number| {
            caller.add(number * every, rule(number, 1), Packet::None);
        });
        caller.finish(100 * every + SECOND);
        let places: Vec<Place> =
            (0..100).map(|number| caller.first_shown(RuleId(number)).unwrap().1).collect();
        places.iter().filter(|place| **place == Place::Software).count()
    };
    assert_eq!(in_software(SECOND / 8), 0);
    let of_forty = in_software(SECOND / 40);
    assert!((70..=85).contains(&of_forty), "{of_forty} of 100 began in software: four of five");
}

#[test]
fn the_hp_refuses_nothing_and_moves_rules_to_hardware() {
    let mut caller = Caller::new(Model::new(&hp(), 1));
    (0..1000).for_each(|number| {
        caller.add(number * SECOND / 40, rule(number, 1), Packet::None);
    });
    assert!(!caller.came.iter().any(|(_, output)| matches!(output, Output::Refuse { .. })));
    assert!(caller.model.load().in_software > 100);
    caller.finish(300 * SECOND);
    assert_eq!((caller.model.load().in_software, caller.model.load().in_hardware), (0, 1000));
    assert!(caller.places.values().all(|place| *place == Place::Hardware));
}

#[test]
fn packets_in_the_hps_software_share_a_few_megabits() {
    let mut profile = hp();
    if let Some(software) = &mut profile.software {
        // Otherwise the rule moves to hardware.
        software.promotion = None;
    }
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..50).for_each(|number| {
        caller.add(number, rule(number, 1), Packet::None);
    });
    let slow = RuleId(49);
    caller.pass_to(2 * SECOND);
    assert_eq!(caller.places[&slow], Place::Software);
    let offered = 2000;
    for number in 0..offered {
        let id = caller.id();
        // Twelve megabits a second: four times too many.
        caller.input(2 * SECOND + number * MS, Input::InSoftware { id, rule: slow, length_bytes: 1500 });
    }
    caller.finish(u64::MAX);
    let forwarded = caller.came.iter().filter(|(_, output)| matches!(output, Output::Forward { .. })).count();
    // Two seconds at 250 packets a second, and a tenth of a second of queue.
    assert!((500..=527).contains(&forwarded), "{forwarded} of {offered}");
}

#[test]
fn the_monaco_refuses_the_512th_rule() {
    let mut caller = Caller::new(Model::new(&built_in("fulcrum-monaco").unwrap(), 1));
    let last = (1..=512).map(|number| caller.add(number * SECOND, rule(number, 1), Packet::None)).last();
    caller.finish(600 * SECOND);
    let refusals: Vec<_> =
        caller.came.iter().filter(|(_, out)| matches!(out, Output::Refuse { .. })).collect();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].1, Output::Refuse { id: last.unwrap(), why: Refusal::TableFull });
}

/// Queries as in the paper: each needs two rules, the second when the reply comes. Returns the largest completion time in the last
/// fifth, in ms.
fn slowest_late_query_ms(profile: &Profile, every_ms: u64) -> u64 {
    let mut caller = Caller::new(Model::new(profile, 1));
    let (mut waiting, mut slowest) = (Vec::<(MessageId, u64, u8)>::new(), 0);
    let queries = 400;
    for now in (0..queries * every_ms + 20_000).map(|ms| ms * MS) {
        caller.pass_to(now);
        if now % (every_ms * MS) == 0 && now < queries * every_ms * MS {
            waiting.push((caller.miss(now), now, 0));
        }
        for query in &mut waiting {
            let (id, began, step) = *query;
            if caller.end_of(id).is_some() {
                let next = match step {
                    0 | 2 => {
                        let number = caller.id().0;
                        caller.add(now, rule(number, 1), Packet::None)
                    }
                    1 => caller.miss(now),
                    _ => {
                        let is_late = began > queries * every_ms * MS * 4 / 5;
                        slowest = if is_late { slowest.max((now - began) / MS) } else { slowest };
                        MessageId(0)
                    }
                };
                *query = (next, began, step + 1);
            }
        }
        waiting.retain(|(_, _, step)| *step < 4);
    }
    slowest
}

#[test]
fn twenty_queries_a_second_are_near_the_saturation_of_forty_flows_a_second() {
    // Fifteen a second take 30 of 40 flows: no query waits long.
    let easy = slowest_late_query_ms(&set_up_at(40.0, 10_000), 66);
    // Twenty-two a second take 44: the queue grows for as long as the run lasts.
    let beyond = slowest_late_query_ms(&set_up_at(40.0, 10_000), 45);
    assert!(easy < 200, "{easy} ms");
    assert!(beyond > 1000, "{beyond} ms");
}
