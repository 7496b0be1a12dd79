//! What happens at the bounds: what is lost, what waits, and that a refusal changes nothing.

use super::driver::{Caller, MS, SECOND, Selected, rule};
use profile::model::*;
use profile::*;

/// The bounds of `docs/concepts/models.md`.
const LEAVING_MAX: usize = 65_536;
const CHANGES_MAX: usize = 131_072;

#[test]
fn packet_ins_that_find_too_many_on_their_way_out_are_lost_and_free_their_buffers() {
    let mut profile = Profile::null();
    profile.delay.ingress_us = Quantiles::constant(10e6);
    profile.packet_in.buffers_packets = Some(1);
    profile.packet_in.buffer_life_us = 1e9;
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..LEAVING_MAX).for_each(|_| _ = caller.miss_without_buffer(0));
    assert_eq!(caller.model.load().packet_ins_leaving, LEAVING_MAX);
    let lost = caller.miss(0);
    assert_eq!(caller.end_of(lost), Some((0, Output::Lost { id: lost, why: Loss::TooManyLeaving })));
    caller.pass_to(20 * SECOND);
    let sent = |output: &Output| matches!(output, Output::PacketIn { .. });
    assert_eq!(caller.came.iter().filter(|(_, output)| sent(output)).count(), LEAVING_MAX);
    let next = caller.miss(20 * SECOND);
    caller.pass_to(40 * SECOND);
    let (_, output) = caller.end_of(next).unwrap();
    assert!(
        matches!(output, Output::PacketIn { buffer: Some(_), .. }),
        "the only buffer is free: {output:?}"
    );
}

#[test]
fn the_cpu_waits_while_too_many_packets_are_on_their_way_out() {
    let mut profile = Profile::null();
    profile.delay.egress_us = Quantiles::constant(10e6);
    let mut caller = Caller::new(Model::new(&profile, 1));
    let sent: Vec<_> = (0..LEAVING_MAX + 1000).map(|_| caller.message(0, MessageType::PacketOut)).collect();
    let load = caller.model.load();
    assert_eq!((load.packets_leaving, load.queued + load.outside), (LEAVING_MAX, 1000));
    caller.pass_to(60 * SECOND);
    let left = |id: MessageId| caller.end_of(id).unwrap().0;
    assert!(sent[..LEAVING_MAX].iter().all(|id| left(*id) == 10 * SECOND));
    assert!(sent[LEAVING_MAX..].iter().all(|id| left(*id) == 20 * SECOND), "none is lost");
}

#[test]
fn the_cpu_waits_while_too_many_rules_are_on_their_way_to_the_data_plane() {
    let mut late = Profile::null();
    late.barrier.kind = BarrierKind::Early(Quantiles::constant(10e6));
    let mut slow = Profile::null();
    let capacities = vec![Capacity::any(1_000_000)];
    let add = AddCost::any_order(Curve::constant(1.0));
    slow.hardware = Some(Hardware { capacities, add, ..Hardware::default() });
    for profile in [late, slow] {
        let mut caller = Caller::new(Model::new(&profile, 1));
        let count = CHANGES_MAX as u64 + 5000;
        for number in 0..count {
            caller.add(0, rule(number, 1), Packet::None);
            assert!(caller.model.load().changes <= CHANGES_MAX);
        }
        assert!(caller.rules.len() <= CHANGES_MAX + 1, "the others wait for the CPU");
        caller.pass_to(60 * SECOND);
        assert_eq!(caller.places.len() as u64, count, "none is lost");
    }
}

#[test]
fn the_papers_model_loses_what_finds_too_much_on_its_way() {
    let target = Delay { ingress_us: Quantiles::constant(1e6), egress_us: Quantiles::constant(1e6) };
    let mut caller = Caller::new(Model::of_paper(&target, 1));
    (0..LEAVING_MAX).for_each(|_| _ = caller.message(0, MessageType::PacketOut));
    (0..LEAVING_MAX).for_each(|_| _ = caller.miss(0));
    for id in [caller.message(0, MessageType::PacketOut), caller.miss(0)] {
        assert_eq!(caller.end_of(id), Some((0, Output::Lost { id, why: Loss::TooManyLeaving })));
    }
}

fn evicting(capacities: Vec<Capacity>) -> Profile {
    let evict = vec![Victim::Oldest];
    let hardware = Hardware { capacities, when_full: WhenFull::Evict, evict, ..Hardware::default() };
    Profile { hardware: Some(hardware), ..Profile::null() }
}

fn evicted(caller: &Caller) -> usize {
    caller.came.iter().filter(|(_, output)| matches!(output, Output::Evict { .. })).count()
}

fn refused(id: MessageId) -> Option<Output> {
    Some(Output::Refuse { id, why: Refusal::TableFull })
}

#[test]
fn a_rule_that_needs_the_place_of_too_many_is_refused_and_evicts_none() {
    // One wide rule takes as much as a hundred narrow ones.
    let mut caller = Caller::new(Model::new(&evicting(vec![Capacity::any(1000), Capacity::any(10)]), 1));
    (0..1000).for_each(|number| _ = caller.add(number, rule(number, 1), Packet::None));
    let wide = caller.add(2000, Rule { class: Some(1), ..rule(5000, 1) }, Packet::None);
    assert_eq!(caller.end_of(wide).map(|(_, output)| output), refused(wide));
    assert_eq!((evicted(&caller), caller.rules.len()), (0, 1000));
    let narrow = caller.add(3000, rule(6000, 1), Packet::None);
    assert_eq!(caller.end_of(narrow), Some((3000, Output::CarryOut { id: narrow })));
    assert_eq!(evicted(&caller), 1);
}

#[test]
fn a_rule_that_a_full_install_buffer_refuses_evicts_none() {
    let mut profile = evicting(vec![Capacity::any(2)]);
    let when_full = BufferFull::Refuse;
    profile.install = Some(Install { size_rules: 1, rate_per_s: 1.0, batch_rules: 1, when_full });
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..2).for_each(|number| _ = caller.add(number * 5 * SECOND, rule(number, 1), Packet::None));
    caller.pass_to(20 * SECOND);
    let first = caller.add(20 * SECOND, rule(7, 1), Packet::None);
    let second = caller.add(20 * SECOND, rule(8, 1), Packet::None);
    assert!(matches!(caller.end_of(first), Some((_, Output::CarryOut { .. }))));
    assert_eq!(caller.end_of(second).map(|(_, output)| output), refused(second));
    assert_eq!(evicted(&caller), 1, "only the first needed a place");
}

#[test]
fn only_rules_of_the_same_memory_make_place() {
    let other = Capacity { memory: 1, ..Capacity::any(2) };
    let mut caller = Caller::new(Model::new(&evicting(vec![Capacity::any(2), other]), 1));
    (0..2).for_each(|number| _ = caller.add(number, rule(number, 1), Packet::None));
    let wide = |number| Rule { class: Some(1), ..rule(number, 1) };
    (10..13).for_each(|number| _ = caller.add(number, wide(number), Packet::None));
    let there: Vec<u64> = caller.rules.iter().map(|rule| rule.0).collect();
    assert_eq!(there, [0, 1, 11, 12]);
}

/// A CPU that takes a millisecond for each message.
fn slow_cpu() -> Profile {
    let mut profile = Profile::null();
    for kind in MessageType::ALL {
        profile.cpu.service_mut(kind).service_us = Quantiles::constant(1000.0);
    }
    profile
}

#[test]
fn the_caller_says_which_rule_an_add_adds_when_it_carries_it_out() {
    let mut profile = slow_cpu();
    profile.hardware = Some(Hardware { capacities: vec![Capacity::any(1)], ..Hardware::default() });
    profile.delay.egress_us = Quantiles::constant(2000.0);
    let mut model = Model::new(&profile, 1);
    let mut out = Vec::new();
    for number in 0..4 {
        let add = Message { packet: Packet::Given, ..Message::new(MessageId(number), MessageType::Add) };
        model.on_input(0, Input::Message(add), &mut out);
    }
    let mut came = Vec::new();
    while let Some(due) = model.next_due_ns() {
        model.on_time(due, &mut out);
        for output in std::mem::take(&mut out) {
            came.push((due, output));
            let Output::CarryOut { id } = output else { continue };
            let input = match id.0 {
                // The caller has a reason of its own.
                1 => Input::Refused(id),
                number => Input::Added { id, rule: rule(number, 1) },
            };
            model.on_input(due, input, &mut out);
            came.extend(out.drain(..).map(|output| (due, output)));
        }
    }
    let id = MessageId;
    let place = Some(Place::Hardware);
    let expected = [
        (MS, Output::CarryOut { id: id(0) }),
        (MS, Output::InDataPlane { rule: RuleId(0), place }),
        (2 * MS, Output::CarryOut { id: id(1) }),
        (3 * MS, Output::Release { id: id(0) }),
        (3 * MS, Output::CarryOut { id: id(2) }),
        (3 * MS, Output::Refuse { id: id(2), why: Refusal::TableFull }),
        (4 * MS, Output::CarryOut { id: id(3) }),
        (4 * MS, Output::Refuse { id: id(3), why: Refusal::TableFull }),
    ];
    assert_eq!(came, expected, "no packet leaves for a message that was refused");
}

#[test]
fn forgotten_messages_take_no_time_of_the_cpu() {
    let mut caller = Caller::new(Model::new(&slow_cpu(), 1));
    let kinds = [MessageType::Echo, MessageType::Barrier, MessageType::PacketOut, MessageType::Barrier];
    let old: Vec<MessageId> = (0..40).map(|number| caller.message(0, kinds[number % 4])).collect();
    let packet = caller.miss(0);
    caller.pass_to(MS / 2);
    caller.model.forget_messages(|id| old.contains(&id));
    let new = caller.message(MS / 2, MessageType::Echo);
    caller.pass_to(SECOND);
    assert_eq!(caller.end_of(old[0]).map(|(at, _)| at), Some(MS), "the CPU had begun with it");
    assert!(old[1..].iter().all(|id| caller.end_of(*id).is_none()));
    assert_eq!(caller.end_of(packet).map(|(at, _)| at), Some(2 * MS));
    assert_eq!(caller.end_of(new).map(|(at, _)| at), Some(3 * MS));
}

#[test]
fn a_barrier_that_is_forgotten_while_it_is_answered_lets_others_in() {
    let mut profile = slow_cpu();
    profile.delay.egress_us = Quantiles::constant(50_000.0);
    let mut caller = Caller::new(Model::new(&profile, 1));
    let old = [MessageType::PacketOut, MessageType::Barrier, MessageType::Echo];
    let old = old.map(|kind| caller.message(0, kind));
    caller.pass_to(5 * MS);
    caller.model.forget_messages(|id| old.contains(&id));
    let new = caller.message(5 * MS, MessageType::Echo);
    caller.pass_to(SECOND);
    assert_eq!(caller.end_of(new).map(|(at, _)| at), Some(52 * MS), "behind the reply, which has begun");
    assert_eq!(caller.end_of(old[2]), None);
}

#[test]
fn a_promotion_moves_nothing_before_a_millisecond_has_passed() {
    let mut profile = Profile::null();
    profile.hardware = Some(Hardware {
        capacities: vec![Capacity::any(50)],
        when_full: WhenFull::Spill,
        ..Hardware::default()
    });
    let promotion = Promotion { period_us: 0.0, batch_rules: 1, order: PromotionOrder::Oldest };
    let when = SoftwareUse::AboveRate { rate_per_s: 0.001, burst_rules: 1 };
    profile.software = Some(Software { when, promotion: Some(promotion), ..Software::default() });
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..11).for_each(|number| _ = caller.add(0, rule(number, 1), Packet::None));
    caller.pass_to(5 * MS);
    assert!((5..=7).contains(&caller.model.load().in_software), "{:?}", caller.model.load());
    caller.select(6 * MS, MessageType::Delete, Selected::All);
}

#[test]
fn a_rule_that_is_deleted_on_its_way_to_hardware_leaves_software_at_once() {
    let mut profile = Profile::null();
    profile.hardware = Some(Hardware {
        capacities: vec![Capacity::any(50)],
        when_full: WhenFull::Spill,
        add: AddCost::any_order(Curve::constant(1e6)),
        ..Hardware::default()
    });
    let promotion = Promotion { period_us: 1000.0, batch_rules: 1, order: PromotionOrder::Oldest };
    let when = SoftwareUse::AboveRate { rate_per_s: 0.001, burst_rules: 1 };
    let entries = Some(1);
    profile.software = Some(Software { when, entries, promotion: Some(promotion), ..Software::default() });
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..2).for_each(|number| _ = caller.add(0, rule(number, 1), Packet::None));
    assert_eq!(caller.places.get(&RuleId(1)), Some(&Place::Software));
    caller.select(10 * MS, MessageType::Delete, Selected::One(RuleId(1)));
    assert!(caller.places.is_empty(), "the hardware still writes both");
    caller.add(11 * MS, rule(1, 2), Packet::None);
    assert_eq!(caller.places.get(&RuleId(1)), Some(&Place::Software), "there is one place in software");
    caller.pass_to(60 * SECOND);
    assert_eq!(caller.places.values().collect::<Vec<_>>(), [&Place::Hardware; 2]);
}
