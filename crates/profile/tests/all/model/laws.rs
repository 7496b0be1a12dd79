//! What holds for every profile and every input: each loss is reported, nothing overtakes, nothing comes too early.

use super::driver::{Caller, Draw, MS, SECOND, Selected, ends};
use profile::model::*;
use profile::*;
use std::collections::{BTreeMap, BTreeSet};

fn quantiles(draw: &mut Draw, largest_us: u64) -> Quantiles {
    let mut values: Vec<f64> = (0..5).map(|_| draw.below(largest_us) as f64).collect();
    values.sort_by(f64::total_cmp);
    match draw.below(3) {
        0 => Quantiles::constant(0.0),
        1 => Quantiles::constant(values[2]),
        _ => Quantiles::new(&[0.0, 0.3, 0.6, 0.95, 1.0].iter().copied().zip(values).collect::<Vec<_>>())
            .unwrap(),
    }
}

fn curve(draw: &mut Draw) -> Curve {
    Curve::new(&[(0.0, draw.below(2000) as f64), (20.0, draw.below(9000) as f64)]).unwrap()
}

/// A profile of a small and slow switch, with any of the parts.
pub fn random_profile(draw: &mut Draw) -> Profile {
    let mut profile = Profile::null();
    let service = if draw.yes() { 3000 } else { 1 };
    for kind in MessageType::ALL {
        let rank = draw.below(3) as u8;
        *profile.cpu.service_mut(kind) = Service { rank, service_us: quantiles(draw, service) };
    }
    profile.cpu.statistics_entry_us = draw.below(50) as f64;
    profile.cpu.queue_messages = draw.yes().then(|| draw.below(20) as u32);
    profile.cpu.queue_full = draw.one_of(&[QueueFull::LosePacketIns, QueueFull::LoseAny]);
    profile.delay = Delay { ingress_us: quantiles(draw, 40_000), egress_us: quantiles(draw, 40_000) };
    profile.packet_in = PacketIn {
        limit: draw.yes().then(|| PacketInRate {
            rate_per_s: 20.0 + draw.below(500) as f64,
            burst_packets: 1 + draw.below(9) as u32,
        }),
        buffers_packets: Some(draw.below(10) as u32),
        buffer_life_us: 1e5,
        miss_send_bytes: 64,
    };
    let late = quantiles(draw, 300_000);
    let kind = match draw.below(3) {
        0 => BarrierKind::Honest,
        1 => BarrierKind::Early(late),
        _ => BarrierKind::NotOrdering(late),
    };
    profile.barrier = Barrier { kind, rules_in_order: draw.yes() };
    let (scan_period_us, counter_period_us) =
        (draw.below(3) as f64 * 400_000.0, draw.below(3) as f64 * 150_000.0);
    profile.timeouts = Timeouts { scan_period_us, counter_period_us };
    tables(&mut profile, draw);
    profile
}

fn tables(profile: &mut Profile, draw: &mut Draw) {
    let above = SoftwareUse::AboveRate { rate_per_s: 20.0, burst_rules: 2 };
    let order = draw.one_of(&[PromotionOrder::Oldest, PromotionOrder::MostUsed, PromotionOrder::Random]);
    let promotion = Promotion { period_us: 70_000.0, batch_rules: 1 + draw.below(4) as u32, order };
    profile.software = draw.yes().then(|| Software {
        when: draw.one_of(&[SoftwareUse::WhenFull, above]),
        entries: draw.yes().then(|| draw.below(20) as u32),
        forward_bits_per_s: draw.yes().then_some(2e6),
        forward_packets_per_s: draw.yes().then_some(500.0),
        forward_us: quantiles(draw, 5000),
        promotion: draw.yes().then_some(promotion),
        ..Software::default()
    });
    if draw.below(4) == 0 {
        return;
    }
    let stall = Stall {
        interval: match draw.yes() {
            true => StallInterval::TimeUs(quantiles(draw, 200_000)),
            false => StallInterval::Changes(1 + draw.below(10) as u32),
        },
        lasts_us: quantiles(draw, 30_000),
    };
    profile.hardware = Some(Hardware {
        capacities: vec![Capacity::any(1 + draw.below(20) as u32), Capacity::any(1 + draw.below(20) as u32)],
        add: AddCost {
            same: curve(draw),
            ascending: curve(draw),
            descending: curve(draw),
            random: draw.yes().then(|| curve(draw)),
        },
        modify: curve(draw),
        modify_kind: draw.one_of(&[ModifyKind::InPlace, ModifyKind::DeleteAndAdd]),
        delete: curve(draw),
        cpu_waits: draw.yes(),
        stall: draw.yes().then_some(stall),
        when_full: draw.one_of(&[WhenFull::Refuse, WhenFull::Ignore, WhenFull::Spill, WhenFull::Evict]),
        evict: vec![draw.one_of(&[Victim::Oldest, Victim::LowestPriority, Victim::Random])],
    });
    profile.install = draw.yes().then(|| Install {
        size_rules: draw.below(5) as u32,
        rate_per_s: 30.0 + draw.below(100) as f64,
        batch_rules: 1 + draw.below(3) as u32,
        when_full: draw.one_of(&[BufferFull::Wait, BufferFull::Spill, BufferFull::Refuse]),
    });
}

/// What went into a run: each message and packet, its type, and when it came.
type Sent = Vec<(MessageId, MessageType, u64)>;

/// A second of random messages and packets, and then a minute of silence.
pub fn random_run(model: Model, draw: &mut Draw, slow: u64) -> (Caller, Sent) {
    let mut caller = Caller::new(model);
    let (mut sent, mut now) = (Sent::new(), 0);
    let mut buffers = Vec::new();
    while now < SECOND * slow {
        now += draw.below(6 * MS) * slow;
        caller.pass_to(now);
        let id = RuleId(draw.below(60));
        let (kind, message) = match draw.below(12) {
            0..=2 => (MessageType::PacketIn, caller.miss(now)),
            3..=5 => (MessageType::Add, add(&mut caller, draw, id, &buffers, now)),
            6 => (MessageType::Delete, select(&mut caller, draw, MessageType::Delete, id, now)),
            7 => (MessageType::Modify, select(&mut caller, draw, MessageType::Modify, id, now)),
            8 => {
                caller.used.insert(id, now);
                let packet = caller.id();
                caller.input(now, Input::InSoftware { id: packet, rule: id, length_bytes: 500 });
                (MessageType::Other, packet)
            }
            _ => {
                let kinds = [
                    MessageType::PacketOut,
                    MessageType::Statistics,
                    MessageType::Echo,
                    MessageType::Barrier,
                ];
                let kind = draw.one_of(&kinds);
                (kind, caller.message(now, kind))
            }
        };
        sent.push((message, kind, now));
        buffers = caller.came.iter().filter_map(|(_, output)| buffer_of(output)).collect();
    }
    caller.finish(now + 60 * SECOND * slow);
    (caller, sent)
}

fn buffer_of(output: &Output) -> Option<u32> {
    match output {
        Output::PacketIn { buffer, .. } => *buffer,
        _ => None,
    }
}

fn add(caller: &mut Caller, draw: &mut Draw, id: RuleId, buffers: &[u32], now: u64) -> MessageId {
    let class = if id.0 % 8 == 7 { None } else { Some((id.0 % 2) as u8) };
    let (idle_timeout_s, hard_timeout_s) = (draw.below(2) as u16, draw.below(3) as u16);
    let rule = Rule { id, priority: (id.0 % 5) as u16, class, idle_timeout_s, hard_timeout_s };
    let packet = match draw.below(3) {
        0 => Packet::None,
        1 => Packet::Given,
        _ => buffers.last().map_or(Packet::Buffered(77), |id| Packet::Buffered(*id)),
    };
    caller.add(now, rule, packet)
}

fn select(caller: &mut Caller, draw: &mut Draw, kind: MessageType, id: RuleId, now: u64) -> MessageId {
    let selected = if draw.below(5) == 0 { Selected::All } else { Selected::One(id) };
    caller.select(now, kind, selected)
}

fn runs(check: impl Fn(u64, &Profile, &Caller, &Sent)) {
    for seed in 0..300 {
        let draw = &mut Draw(seed);
        let profile = random_profile(draw);
        let (caller, sent) = random_run(Model::new(&profile, seed), draw, 1);
        check(seed, &profile, &caller, &sent);
    }
}

#[test]
fn each_message_and_packet_ends_exactly_once_and_not_before_it_came() {
    runs(|seed, profile, caller, sent| {
        let mut ended: BTreeMap<MessageId, Vec<u64>> = BTreeMap::new();
        for (at, output) in &caller.came {
            if let Some(id) = ends(output) {
                ended.entry(id).or_default().push(*at);
            }
        }
        for (id, kind, came) in sent {
            let times = ended.remove(id).unwrap_or_default();
            assert_eq!(times.len(), 1, "seed {seed}: {kind:?} {id:?} ended at {times:?}: {profile:#?}");
            assert!(
                times[0] >= *came,
                "seed {seed}: {kind:?} {id:?} came at {came} and ended at {}",
                times[0]
            );
        }
        assert!(ended.is_empty(), "seed {seed}: {ended:?} ended, and never came");
    });
}

#[test]
fn the_packet_of_a_flow_mod_leaves_once_after_it_was_carried_out() {
    let number = std::cell::Cell::new([0; 2]);
    runs(|seed, _, caller, _| {
        let mut carried = BTreeSet::new();
        let mut released = BTreeSet::new();
        let [mut released_all, mut unknown] = number.get();
        for (_, output) in &caller.came {
            match output {
                Output::CarryOut { id } => {
                    carried.insert(*id);
                }
                Output::Release { id } | Output::NoBuffer { id, .. } => {
                    assert!(carried.contains(id) && released.insert(*id), "seed {seed}: {id:?}");
                    released_all += 1;
                    unknown += i32::from(matches!(output, Output::NoBuffer { .. }));
                }
                _ => {}
            }
        }
        number.set([released_all, unknown]);
    });
    let [released, unknown] = number.get();
    assert!(released > 1000 && unknown > 100 && unknown < released, "{released}, {unknown}");
}

#[test]
fn messages_of_one_type_leave_in_their_order() {
    runs(|seed, profile, caller, sent| {
        let mut latest: BTreeMap<MessageType, usize> = BTreeMap::new();
        for (_, output) in &caller.came {
            // What is lost or refused leaves nothing behind. Packets in software are counted as `Other` here.
            if let Output::PacketIn { id, .. }
            | Output::CarryOut { id }
            | Output::Forward { id }
            | Output::AnswerBarrier { id } = output
            {
                let place = sent.iter().position(|(sent, _, _)| sent == id).unwrap();
                let before = latest.insert(sent[place].1, place);
                assert!(before.is_none_or(|before| before < place), "seed {seed}, {id:?}: {profile:#?}");
            }
        }
    });
}

#[test]
fn nothing_of_the_controller_passes_an_honest_barrier() {
    let barriers = std::cell::Cell::new(0);
    runs(|seed, profile, caller, sent| {
        if profile.barrier.kind != BarrierKind::Honest {
            return;
        }
        let is_of_controller = |id: &MessageId| {
            sent.iter().any(|(sent, kind, _)| {
                sent == id && !matches!(kind, MessageType::PacketIn | MessageType::Other)
            })
        };
        let mut latest = MessageId(0);
        for (_, output) in &caller.came {
            let (id, is_barrier) = match output {
                Output::CarryOut { id } | Output::Release { id } => (*id, false),
                Output::Refuse { id, .. } => (*id, false),
                Output::AnswerBarrier { id } => (*id, true),
                _ => continue,
            };
            if is_of_controller(&id) {
                assert!(id > latest, "seed {seed}: {output:?} after the reply to {latest:?}: {profile:#?}");
                latest = if is_barrier { id } else { latest };
                barriers.set(barriers.get() + i32::from(is_barrier));
            }
        }
    });
    assert!(barriers.get() > 500);
}

#[test]
fn after_a_silence_the_data_plane_has_exactly_the_rules_of_the_table() {
    runs(|seed, profile, caller, _| {
        let in_plane: BTreeSet<RuleId> = caller.places.keys().copied().collect();
        assert_eq!(in_plane, caller.rules, "seed {seed}: {profile:#?}");
        let load = caller.model.load();
        assert_eq!((load.queued, load.outside), (0, 0), "seed {seed}");
        if let Some(hardware) = &profile.hardware {
            let most = hardware.capacities.iter().map(|class| class.entries as usize).max().unwrap();
            assert!(load.in_hardware <= most, "seed {seed}");
        }
        let entries = profile.software.as_ref().and_then(|software| software.entries);
        assert!(entries.is_none_or(|entries| load.in_software <= entries as usize), "seed {seed}");
    });
}

#[test]
fn the_same_seed_has_the_same_outputs() {
    let came = |seed: u64, of_model: u64| {
        let draw = &mut Draw(seed);
        let profile = random_profile(draw);
        random_run(Model::new(&profile, of_model), draw, 1).0.came
    };
    let mut differ = 0;
    for seed in 0..60 {
        assert_eq!(came(seed, 5), came(seed, 5));
        differ += i32::from(came(seed, 5) != came(seed, 6));
    }
    assert!(differ > 40, "another seed has other outputs in {differ} of 60 runs");
}

#[test]
fn slow_motion_is_the_same_run_with_longer_times() {
    for seed in 0..60 {
        let came = |slow: u32| {
            let draw = &mut Draw(seed);
            let mut profile = random_profile(draw);
            // A time-out of whole seconds is as long in both, but the caller's table is asked in its own time.
            profile.timeouts = Timeouts::default();
            let model = Model::new(&profile, seed).in_slow_motion(slow);
            random_run(model, draw, u64::from(slow)).0.came
        };
        let stretched: Vec<_> =
            came(1).into_iter().map(|(at, output)| (at * 10, scaled(output, 10))).collect();
        assert_eq!(came(10), stretched, "seed {seed}");
    }
}

fn scaled(output: Output, factor: u64) -> Output {
    match output {
        Output::ExpireIfIdle { rule, unused_since_ns } => {
            Output::ExpireIfIdle { rule, unused_since_ns: unused_since_ns * factor + factor - 1 }
        }
        other => other,
    }
}

#[test]
fn a_null_profile_adds_nothing() {
    for seed in 0..20 {
        let draw = &mut Draw(seed);
        let (caller, sent) = random_run(Model::new(&Profile::null(), seed), draw, 1);
        for (id, kind, came) in sent {
            let (ended, output) = caller.end_of(id).unwrap();
            assert_eq!(ended, came, "{kind:?}");
            assert!(!matches!(output, Output::Lost { .. }), "{output:?}");
        }
    }
}

#[test]
fn a_caller_that_is_late_gets_everything_later_and_nothing_twice() {
    for seed in 0..50 {
        let draw = &mut Draw(seed);
        let profile = random_profile(draw);
        let mut model = Model::new(&profile, seed);
        let mut out = Vec::new();
        for number in 0..200u64 {
            // It is asked only each 20 ms, and gets four messages between.
            let kind = draw.one_of(&[MessageType::Echo, MessageType::PacketOut, MessageType::Barrier]);
            let now = number / 4 * 20 * MS;
            model.on_input(now, Input::Message(Message::new(MessageId(number), kind)), &mut out);
            if number % 4 == 0 {
                model.on_time(now, &mut out);
            }
        }
        while let Some(due) = model.next_due_ns() {
            model.on_time(due, &mut out);
        }
        let mut ended: Vec<u64> = out.iter().filter_map(|output| Some(ends(output)?.0)).collect();
        ended.sort_unstable();
        assert_eq!(ended, (0..200).collect::<Vec<_>>(), "seed {seed}");
    }
}
