//! What writes to hardware cost, and who waits for them.

use super::driver::{Caller, Draw, MS, SECOND, Selected, rule};
use profile::model::*;
use profile::*;

fn hardware(entries: u32) -> Hardware {
    Hardware { capacities: vec![Capacity::any(entries)], ..Hardware::default() }
}

fn with(hardware: Hardware) -> Profile {
    Profile { hardware: Some(hardware), ..Profile::null() }
}

#[test]
fn an_add_costs_what_the_rules_of_lower_and_higher_priority_say() {
    for seed in 0..50 {
        let mut draw = Draw(seed);
        let mut curve =
            || Curve::new(&[(0.0, draw.below(1000) as f64), (50.0, draw.below(90_000) as f64)]).unwrap();
        let (delete, modify) = (curve(), curve());
        let add = AddCost { same: curve(), ascending: curve(), descending: curve(), random: Some(curve()) };
        let table = Hardware { add: add.clone(), delete: delete.clone(), modify, ..hardware(100) };
        let mut caller = Caller::new(Model::new(&with(table), seed));
        let (mut list, mut now) = (Vec::<(u64, u16)>::new(), 0);
        for number in 0..100 {
            now += 10 * SECOND;
            if draw.below(4) == 0 && !list.is_empty() {
                let (deleted, _) = list.swap_remove(draw.below(list.len() as u64) as usize);
                caller.select(now, MessageType::Delete, Selected::One(RuleId(deleted)));
                caller.pass_to(now + SECOND);
                let gone = caller.came.last().unwrap();
                assert_eq!(gone.1, Output::InDataPlane { rule: RuleId(deleted), place: None });
                let cost = (delete.at((list.len() + 1) as f64) * 1e3).round() as u64;
                assert_eq!(gone.0, now + cost, "seed {seed}");
                continue;
            }
            let priority = draw.below(10) as u16;
            let count =
                |wanted: &dyn Fn(u16) -> bool| list.iter().filter(|(_, other)| wanted(*other)).count() as u32;
            let cost =
                add.at(list.len() as u32, count(&|other| other < priority), count(&|other| other > priority));
            caller.add(now, rule(number, priority), Packet::None);
            caller.pass_to(now + SECOND);
            let shown = caller.first_shown(RuleId(number)).unwrap();
            assert_eq!(shown, (now + (cost * 1e3).round() as u64, Place::Hardware), "seed {seed}");
            list.push((number, priority));
        }
    }
}

#[test]
fn a_cpu_that_waits_for_the_hardware_answers_at_the_rate_of_both() {
    let echo_after_adds = |cpu_waits| {
        let add = AddCost::any_order(Curve::constant(20_000.0));
        let mut profile = with(Hardware { add, cpu_waits, ..hardware(100) });
        profile.cpu.add.service_us = Quantiles::constant(5000.0);
        let mut caller = Caller::new(Model::new(&profile, 1));
        (0..10).for_each(|number| {
            caller.add(0, rule(number, 1), Packet::None);
        });
        let echo = caller.message(0, MessageType::Echo);
        caller.finish(u64::MAX);
        (caller.end_of(echo).unwrap().0 / MS, caller.first_shown(RuleId(9)).unwrap().0 / MS)
    };
    assert_eq!(echo_after_adds(true), (250, 250));
    assert_eq!(echo_after_adds(false), (50, 205));
}

#[test]
fn a_modify_as_delete_and_add_leaves_a_gap() {
    let places = |modify_kind| {
        let table = Hardware {
            add: AddCost::any_order(Curve::constant(8000.0)),
            modify: Curve::constant(3000.0),
            delete: Curve::constant(4000.0),
            modify_kind,
            ..hardware(10)
        };
        let mut caller = Caller::new(Model::new(&with(table), 1));
        caller.add(0, rule(1, 1), Packet::None);
        caller.select(100 * MS, MessageType::Modify, Selected::All);
        caller.finish(u64::MAX);
        let shown = |(at, output): &(u64, Output)| match output {
            Output::InDataPlane { place, .. } => Some((at / MS, place.is_some())),
            _ => None,
        };
        caller.came.iter().filter_map(shown).collect::<Vec<_>>()
    };
    assert_eq!(places(ModifyKind::InPlace), [(8, true), (103, true)]);
    assert_eq!(places(ModifyKind::DeleteAndAdd), [(8, true), (100, false), (112, true)]);
}

#[test]
fn a_deleted_rule_makes_room_for_an_add_that_follows_at_once() {
    let table = Hardware { delete: Curve::constant(50_000.0), ..hardware(1) };
    let mut caller = Caller::new(Model::new(&with(table), 1));
    caller.add(0, rule(1, 1), Packet::None);
    caller.select(MS, MessageType::Delete, Selected::All);
    let second = caller.add(MS, rule(2, 1), Packet::None);
    assert!(matches!(caller.end_of(second), Some((_, Output::CarryOut { .. }))));
    caller.finish(u64::MAX);
    assert_eq!(
        caller.first_shown(RuleId(2)),
        Some((51 * MS, Place::Hardware)),
        "after the old one is erased"
    );
}

#[test]
fn stalls_stop_writes_and_nothing_else() {
    let stall = Stall {
        interval: StallInterval::TimeUs(Quantiles::constant(100_000.0)),
        lasts_us: Quantiles::constant(900_000.0),
    };
    let table = Hardware { stall: Some(stall), ..hardware(100) };
    let mut caller = Caller::new(Model::new(&with(table), 1));
    let mut delays = Vec::new();
    for number in 0..40 {
        let now = number * 25 * MS;
        caller.add(now, rule(number, 1), Packet::None);
        let echo = caller.message(now, MessageType::Echo);
        assert_eq!(caller.end_of(echo).unwrap().0, now);
    }
    caller.finish(u64::MAX);
    (0..40).for_each(|number| delays.push(caller.first_shown(RuleId(number)).unwrap().0 / MS));
    let expected: Vec<u64> = (0..40).map(|number| if number < 4 { number * 25 } else { 1000 }).collect();
    assert_eq!(delays, expected);
}

#[test]
fn stalls_by_count_come_after_so_many_changes() {
    let stall = Stall { interval: StallInterval::Changes(3), lasts_us: Quantiles::constant(1000.0) };
    let mut caller = Caller::new(Model::new(&with(Hardware { stall: Some(stall), ..hardware(100) }), 1));
    (0..10).for_each(|number| {
        caller.add(0, rule(number, 1), Packet::None);
    });
    caller.finish(u64::MAX);
    let shown: Vec<u64> = (0..10).map(|number| caller.first_shown(RuleId(number)).unwrap().0 / MS).collect();
    assert_eq!(shown, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn an_install_buffer_gives_batches_to_the_hardware_and_its_bound_holds() {
    let run = |when_full| {
        let mut profile = with(hardware(100));
        let software = Software { when: SoftwareUse::WhenFull, ..Software::default() };
        profile.software = Some(software);
        profile.install = Some(Install { size_rules: 10, rate_per_s: 20.0, batch_rules: 2, when_full });
        let mut caller = Caller::new(Model::new(&profile, 1));
        (0..30).for_each(|number| {
            caller.add(0, rule(number, 1), Packet::None);
        });
        caller.finish(10 * SECOND);
        caller
    };
    let refused =
        |caller: &Caller| caller.came.iter().filter(|(_, out)| matches!(out, Output::Refuse { .. })).count();
    let caller = run(BufferFull::Refuse);
    assert_eq!((refused(&caller), caller.model.load().in_hardware), (20, 10));
    let mut shown: Vec<u64> = (0..10).map(|number| caller.first_shown(RuleId(number)).unwrap().0).collect();
    shown.dedup();
    assert_eq!(shown.len(), 5, "five batches of two");
    assert!(shown.windows(2).all(|pair| pair[1] - pair[0] == 100 * MS), "{shown:?}");
    let caller = run(BufferFull::Spill);
    assert_eq!((refused(&caller), caller.model.load().in_software), (0, 20));
    let caller = run(BufferFull::Wait);
    assert_eq!((refused(&caller), caller.model.load().in_hardware), (0, 30));
    let last = caller.first_shown(RuleId(29)).unwrap().0;
    assert!((1400 * MS..=1500 * MS).contains(&last), "fifteen batches, {last}");
}
