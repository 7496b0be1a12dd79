//! A profile of a switch that does not exist, from a seed.
//!
//! In: a seed. Out: a profile within the ranges of published switches. Policies take turns by the seed, so that each occurs.

use profile::random::Random;
use profile::{
    AddCost, Barrier, BarrierKind, Capacity, Cpu, Curve, Delay, Hardware, ModifyKind, PacketIn, PacketInRate,
    Profile, Promotion, PromotionOrder, Quantiles, Software, SoftwareUse, Timeouts, Victim, WhenFull,
};

const POLICIES: [WhenFull; 4] = [WhenFull::Refuse, WhenFull::Spill, WhenFull::Evict, WhenFull::Ignore];
const VICTIMS: [Victim; 8] = [
    Victim::Oldest,
    Victim::LeastRecentlyUsed,
    Victim::LeastUsed,
    Victim::LowestPriority,
    Victim::Newest,
    Victim::MostRecentlyUsed,
    Victim::MostUsed,
    Victim::HighestPriority,
];
const ORDERS: [PromotionOrder; 3] =
    [PromotionOrder::Oldest, PromotionOrder::Newest, PromotionOrder::MostRecentlyUsed];

/// A number between two, as likely small as large on a scale of ratios.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.unit())
}

fn is_one_in(random: &mut Random, count: usize) -> bool {
    random.below(count) == 0
}

/// The profile of this seed.
pub fn hidden(seed: u64) -> Profile {
    // The numbers of two seeds have nothing in common.
    let mut random = Random::new(Random::new(seed).bits());
    let policy = POLICIES[(seed % 4) as usize];
    let above = policy == WhenFull::Spill && is_one_in(&mut random, 2);
    let cpu = cpu(&mut random);
    let hardware = hardware(policy, seed, above, &mut random);
    let software = (policy == WhenFull::Spill).then(|| software(above, seed, &mut random));
    let barrier = barrier(&mut random);
    let scan = if is_one_in(&mut random, 3) { 0.0 } else { between(&mut random, 0.2e6, 3e6) };
    Profile {
        name: format!("hidden-{seed}"),
        delay: Delay { ingress_us: residual(&mut random), egress_us: residual(&mut random) },
        packet_in: packet_in(&cpu, &mut random),
        cpu,
        hardware: Some(hardware),
        software,
        timeouts: Timeouts { scan_period_us: scan, ..Timeouts::default() },
        barrier,
        ..Profile::default()
    }
}

/// Constant, or spread around its mean.
fn service(random: &mut Random, low: f64, high: f64) -> Quantiles {
    let mean = between(random, low, high);
    if is_one_in(random, 2) {
        return Quantiles::constant(mean);
    }
    let points = [(0.0, 0.7), (0.25, 0.88), (0.5, 1.0), (0.75, 1.12), (1.0, 1.3)];
    Quantiles::new(&points.map(|(q, factor)| (q, factor * mean))).unwrap_or_default()
}

fn residual(random: &mut Random) -> Quantiles {
    let least = between(random, 100.0, 3000.0);
    let points = [(0.0, 1.0), (0.5, 1.5), (0.9, 2.5), (1.0, 4.0)];
    Quantiles::new(&points.map(|(q, factor)| (q, factor * least))).unwrap_or_default()
}

fn cpu(random: &mut Random) -> Cpu {
    let mut cpu = Cpu::default();
    cpu.packet_in.service_us = service(random, 500.0, 8000.0);
    cpu.packet_out.service_us = service(random, 200.0, 4000.0);
    cpu.add.service_us = service(random, 2000.0, 25_000.0);
    cpu.modify.service_us = Quantiles::constant(between(random, 2000.0, 15_000.0));
    cpu.delete.service_us = Quantiles::constant(between(random, 1000.0, 8000.0));
    cpu.statistics.service_us = Quantiles::constant(between(random, 300.0, 3000.0));
    cpu.statistics_entry_us = between(random, 5.0, 60.0);
    cpu.barrier.service_us = Quantiles::constant(between(random, 50.0, 500.0));
    cpu.echo.service_us = Quantiles::constant(between(random, 50.0, 500.0));
    cpu.other.service_us = cpu.echo.service_us.clone();
    if !is_one_in(random, 3) {
        cpu.queue_messages = Some(64 + random.below(400) as u32);
    }
    cpu
}

fn packet_in(cpu: &Cpu, random: &mut Random) -> PacketIn {
    let at_most = 1e6 / cpu.packet_in.service_us.mean_us();
    let limit = is_one_in(random, 3).then(|| PacketInRate {
        rate_per_s: at_most * (0.3 + 0.4 * random.unit()),
        burst_packets: 50 + random.below(80) as u32,
    });
    let buffers_packets = Some(if is_one_in(random, 3) { 0 } else { 64 + random.below(200) as u32 });
    PacketIn { limit, buffers_packets, buffer_life_us: 10e6, ..PacketIn::default() }
}

fn hardware(when_full: WhenFull, seed: u64, above: bool, random: &mut Random) -> Hardware {
    // At a few rules a second, a large table would take an hour.
    let most = if above { 300.0 } else { 1500.0 };
    let entries = between(random, 100.0, most) as u32;
    let rises = !above && is_one_in(random, 2);
    let descending = if rises {
        Curve::new(&[(0.0, 0.0), (1500.0, between(random, 5000.0, 40_000.0))])
    } else {
        Ok(Curve::default())
    };
    let evict =
        if when_full == WhenFull::Evict { vec![VICTIMS[(seed / 4 % 8) as usize]] } else { Vec::new() };
    Hardware {
        capacities: vec![Capacity::any(entries)],
        add: AddCost { descending: descending.unwrap_or_default(), ..AddCost::default() },
        cpu_waits: true,
        modify_kind: ModifyKind::InPlace,
        when_full,
        evict,
        ..Hardware::default()
    }
}

fn software(above: bool, seed: u64, random: &mut Random) -> Software {
    let when = if above {
        SoftwareUse::AboveRate {
            rate_per_s: between(random, 5.0, 15.0),
            burst_rules: 1 + random.below(10) as u32,
        }
    } else {
        SoftwareUse::WhenFull
    };
    let promotion = is_one_in(random, 2).then(|| Promotion {
        period_us: between(random, 0.4e6, 2e6),
        batch_rules: 1 + random.below(5) as u32,
        order: ORDERS[(seed / 4 % 3) as usize],
    });
    Software { when, forward_bits_per_s: Some(between(random, 2e6, 20e6)), promotion, ..Software::default() }
}

fn barrier(random: &mut Random) -> Barrier {
    if !is_one_in(random, 3) {
        return Barrier::default();
    }
    let most = between(random, 20e3, 400e3);
    let late = Quantiles::new(&[(0.0, 0.2 * most), (0.5, 0.5 * most), (1.0, most)]).unwrap_or_default();
    Barrier { kind: BarrierKind::Early(late), rules_in_order: !is_one_in(random, 2) }
}
