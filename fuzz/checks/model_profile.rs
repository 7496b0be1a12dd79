//! A random profile of a small switch, from a seed, with any of the parts and with extremes: no time at all, one place, no place.
//!
//! In: a seed. Out: a profile. Not each one could be read from a file: some numbers are below its bounds.

use profile::*;

/// The profile of this seed.
pub fn of(seed: u64) -> Profile {
    let random = &mut Random::new(seed);
    let mut profile = Profile::null();
    let service = *one_of(random, &[1, 500, 3000]);
    for kind in MessageType::ALL {
        let rank = random.below(3) as u8;
        *profile.cpu.service_mut(kind) = Service { rank, service_us: quantiles(random, service) };
    }
    profile.cpu.statistics_entry_us = random.below(50) as f64;
    profile.cpu.queue_messages = maybe(random, |random| random.below(20) as u32);
    profile.cpu.queue_full = *one_of(random, &[QueueFull::LosePacketIns, QueueFull::LoseAny]);
    profile.delay = Delay { ingress_us: quantiles(random, 40_000), egress_us: quantiles(random, 40_000) };
    profile.packet_in = PacketIn {
        limit: maybe(random, |random| PacketInRate {
            rate_per_s: 20.0 + random.below(500) as f64,
            burst_packets: random.below(9) as u32,
        }),
        buffers_packets: maybe(random, |random| random.below(10) as u32),
        buffer_life_us: 1.0 + random.below(200_000) as f64,
        miss_send_bytes: 64,
    };
    let late = quantiles(random, 300_000);
    let kind = match random.below(4) {
        0 | 1 => BarrierKind::Honest,
        2 => BarrierKind::Early(late),
        _ => BarrierKind::NotOrdering(late),
    };
    profile.barrier = Barrier { kind, rules_in_order: is_one_in(random, 2) };
    let (scan_period_us, counter_period_us) =
        (random.below(3) as f64 * 400_000.0, random.below(3) as f64 * 150_000.0);
    profile.timeouts = Timeouts { scan_period_us, counter_period_us };
    tables(&mut profile, random);
    profile
}

fn tables(profile: &mut Profile, random: &mut Random) {
    let above = SoftwareUse::AboveRate {
        rate_per_s: *one_of(random, &[1.0, 20.0, 300.0]),
        burst_rules: random.below(4) as u32,
    };
    let has_hardware = !is_one_in(random, 4);
    let uses = if has_hardware { [SoftwareUse::WhenFull, above] } else { [SoftwareUse::Only; 2] };
    let order = *one_of(random, &[PromotionOrder::Oldest, PromotionOrder::MostUsed, PromotionOrder::Random]);
    let period_us = *one_of(random, &[70_000.0, 70_000.0, 10_000.0, 1000.0, 0.0]);
    let promotion = Promotion { period_us, batch_rules: 1 + random.below(4) as u32, order };
    profile.software = maybe(random, |random| Software {
        when: *one_of(random, &uses),
        entries: maybe(random, |random| random.below(20) as u32),
        at_least: is_one_in(random, 8),
        forward_bits_per_s: maybe(random, |_| 2e6),
        forward_packets_per_s: maybe(random, |_| 500.0),
        forward_us: quantiles(random, 5000),
        promotion: maybe(random, |_| promotion).filter(|_| has_hardware),
    });
    if !has_hardware {
        return;
    }
    let capacity = |random: &mut Random, memory| Capacity {
        memory,
        at_least: is_one_in(random, 8),
        ..Capacity::any(1 + random.below(20) as u32)
    };
    let memory = random.below(2) as u8;
    profile.hardware = Some(Hardware {
        capacities: vec![capacity(random, 0), capacity(random, memory)],
        add: AddCost {
            same: curve(random),
            ascending: curve(random),
            descending: curve(random),
            random: maybe(random, curve),
        },
        modify: curve(random),
        modify_kind: *one_of(random, &[ModifyKind::InPlace, ModifyKind::DeleteAndAdd]),
        delete: curve(random),
        cpu_waits: is_one_in(random, 2),
        stall: maybe(random, stall),
        when_full: *one_of(random, &[WhenFull::Refuse, WhenFull::Ignore, WhenFull::Spill, WhenFull::Evict]),
        evict: vec![*one_of(random, &[Victim::Oldest, Victim::LowestPriority, Victim::Random])],
    });
    profile.install = maybe(random, |random| Install {
        size_rules: random.below(5) as u32,
        rate_per_s: 30.0 + random.below(100) as f64,
        batch_rules: 1 + random.below(3) as u32,
        when_full: *one_of(random, &[BufferFull::Wait, BufferFull::Spill, BufferFull::Refuse]),
    });
}

fn stall(random: &mut Random) -> Stall {
    let interval = match is_one_in(random, 2) {
        true => StallInterval::TimeUs(quantiles(random, 200_000)),
        false => StallInterval::Changes(1 + random.below(10) as u32),
    };
    Stall { interval, lasts_us: quantiles(random, 30_000) }
}

fn is_one_in(random: &mut Random, count: usize) -> bool {
    random.below(count) == 0
}

fn one_of<'a, T>(random: &mut Random, choices: &'a [T]) -> &'a T {
    &choices[random.below(choices.len())]
}

fn maybe<T>(random: &mut Random, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
    is_one_in(random, 2).then(|| make(random))
}

/// Nothing, a constant, or five points.
fn quantiles(random: &mut Random, largest_us: usize) -> Quantiles {
    let mut values: Vec<f64> = (0..5).map(|_| random.below(largest_us) as f64).collect();
    values.sort_by(f64::total_cmp);
    match random.below(3) {
        0 => Quantiles::constant(0.0),
        1 => Quantiles::constant(values[2]),
        _ => Quantiles::new(&[0.0, 0.3, 0.6, 0.95, 1.0].iter().copied().zip(values).collect::<Vec<_>>())
            .expect("rising points"),
    }
}

fn curve(random: &mut Random) -> Curve {
    let costs = *one_of(random, &[(0, 0), (2000, 9000), (10_000, 10_000)]);
    let mut cost = |largest: usize| random.below(largest + 1) as f64;
    Curve::new(&[(0.0, cost(costs.0)), (20.0, cost(costs.1))]).expect("rising points")
}
