//! Makes the profile of what was found.
//!
//! ```text
//!   service time ──────────────> cpu.X.service_us
//!   idle delay − service time ─> delay.ingress_us, delay.egress_us
//!   sizes, costs, policies ────> hardware, software, timeouts, barrier
//! ```
//!
//! In: findings. Out: a profile in which each value has its origin. A value that was not found keeps its default, and is named under
//! `not_measured`.

use crate::deconvolve;
use crate::findings::{BarrierFound, Findings, Order, ServiceFound, SoftwareFound, curve};
use crate::options::Options;
use crate::samples;
use openflow::Version;
use profile::{
    AddCost, Barrier, BarrierKind, Capacity, Cpu, Curve, Delay, Hardware, MessageType, ModifyKind,
    OpenFlowVersion, PacketIn, PacketInRate, Profile, Provenance, Quantiles, Recognition, Software,
    SoftwareUse, Sources, Switch, Timeouts, WhenFull,
};
use std::collections::BTreeMap;

/// Makes the profile. Fits are noted in the findings.
pub fn profile(found: &mut Findings, options: &Options) -> Profile {
    if !found.cpu_waits() {
        found.leave_out("hardware.modify_us, hardware.delete_us", "the hardware works beside the CPU");
    }
    let cpu = cpu(found);
    let delay = delay(found, &cpu);
    let barrier = barrier(found);
    let software = software(found);
    let hardware = hardware(found);
    let mut profile = Profile {
        name: options.name.clone(),
        about: about(found),
        switch: switch(found),
        cpu,
        delay,
        packet_in: packet_in(found),
        software: software.filter(|software| hardware.is_some() || software.when == SoftwareUse::Only),
        hardware,
        install: None,
        timeouts: Timeouts { scan_period_us: found.scan_period_us.unwrap_or(0.0), ..Timeouts::default() },
        barrier,
        ..Profile::default()
    };
    profile.measurement.incomplete = found.incomplete.is_some();
    profile.measurement.not_measured = found.not_measured.clone();
    profile.measurement.fits = found.fits.clone();
    profile.sources = sources(found, options);
    profile
}

fn about(found: &Findings) -> String {
    let of = &found.description;
    let name = format!("{} {} {}", of.manufacturer, of.hardware, of.software);
    format!("Measured by burnet probe: {}.", name.trim())
}

fn switch(found: &Findings) -> Switch {
    let of = &found.description;
    let version = if found.version == Version::V1_0 { OpenFlowVersion::V10 } else { OpenFlowVersion::V13 };
    let pattern = Recognition {
        manufacturer: of.manufacturer.clone(),
        hardware: of.hardware.clone(),
        software: of.software.clone(),
    };
    let says_something = pattern != Recognition::default();
    Switch {
        vendor: of.manufacturer.clone(),
        hardware: of.hardware.clone(),
        firmware: of.software.clone(),
        link_bits_per_s: None,
        openflow: vec![version],
        recognised_by: if says_something { vec![pattern] } else { Vec::new() },
    }
}

/// Each value is measured unless its own source says otherwise.
fn sources(found: &Findings, options: &Options) -> Sources {
    let measured = |samples: u32| Provenance::Measured {
        date: options.date.clone(),
        // The file wants a text.
        firmware: match found.description.software.trim() {
            "" => "unknown".to_owned(),
            firmware => firmware.to_owned(),
        },
        samples: samples.max(1),
    };
    let all = found.services.values().map(|service| service.idle_us.len() as u32 + service.samples).sum();
    let mut sources = Sources::everything(measured(all));
    for (message, service) in &found.services {
        let samples = service.samples + service.idle_us.len() as u32;
        sources.set(format!("cpu.{}", message.key()), measured(samples));
    }
    let guessed = [(MessageType::Other, "as cheap as an echo")];
    for (message, why) in guessed {
        sources.set(format!("cpu.{}", message.key()), Provenance::Assumed(why.to_owned()));
    }
    sources
}

fn cpu(found: &mut Findings) -> Cpu {
    let mut cpu = Cpu { queue_messages: found.queue_messages, ..Cpu::default() };
    for message in [MessageType::Echo, MessageType::Barrier, MessageType::Statistics] {
        // These have no residual delay: what an idle switch needs for them is the service.
        let idle = found.service(message).idle_us.clone();
        cpu.service_mut(message).service_us =
            found.table(&format!("cpu.{}.service_us", message.key()), &idle);
    }
    for message in [MessageType::PacketIn, MessageType::PacketOut] {
        cpu.service_mut(message).service_us = service_of(found.service(message));
    }
    let add = add_service_us(found);
    let shape = found.service(MessageType::Add).idle_us.clone();
    cpu.add.service_us = match samples::moments(&shape) {
        Some((mean, _)) if mean > 0.0 && found.cpu_waits() => spread(&shape, add, add / mean),
        _ => Quantiles::constant(add),
    };
    cpu.modify.service_us = Quantiles::constant(found.modify_us.unwrap_or(add));
    cpu.delete.service_us = Quantiles::constant(found.delete_us.unwrap_or(0.0));
    cpu.other.service_us = cpu.echo.service_us.clone();
    cpu.statistics_entry_us = found.statistics_entry_us.unwrap_or(0.0);
    if found.version == Version::V1_0 {
        // The idle switch had one rule, which drops the rest.
        cpu.statistics.service_us = cpu.statistics.service_us.plus_us(-cpu.statistics_entry_us);
    }
    for message in MessageType::ALL {
        let rank = found.services.get(&message).and_then(|service| service.rank).unwrap_or(0);
        cpu.service_mut(message).rank = u8::try_from(rank + 1).unwrap_or(1);
    }
    cpu
}

/// What the CPU needs for an add at least. What adds cost beyond that is the hardware's.
fn add_service_us(found: &Findings) -> f64 {
    let Some(cpu_us) = found.add_cpu_us.or(found.add_plane_us) else { return 0.0 };
    let costs = order_costs(found);
    let all = costs.values().flat_map(|curve| curve.points().iter().map(|(_, us)| *us));
    let cheapest = all.fold(f64::INFINITY, f64::min);
    match found.cpu_waits() {
        // A filling has more adds than a burst.
        true if cheapest.is_finite() => cheapest,
        _ => cpu_us,
    }
}

/// Constant costs that lie nearer to each other are one: their difference is the noise of a filling.
const SAME_COST_SHARE: f64 = 0.06;

/// The whole time of an add by the order of priorities.
fn order_costs(found: &Findings) -> BTreeMap<Order, Curve> {
    let entries = found.capacities.first().map_or(0.0, |(_, capacity)| f64::from(capacity.entries));
    // Rules that are late by delays of their own jitter, but not the markers behind them.
    let jitters = |order: &Order| found.latest_us() > 0.0 && !found.marked.contains(order);
    let filled = found.orders.iter().filter(|(_, points)| !points.is_empty());
    let mut costs: BTreeMap<Order, Curve> = filled
        .map(|(order, points)| {
            (*order, curve(points, entries, jitters(order), found.point_error_us(*order, points)))
        })
        .collect();
    // What each says counts as much as its adds: the last point is near their number.
    let adds = |order: &Order| found.orders[order].last().map_or(0.0, |(rules, _)| *rules);
    let constants = costs.iter().filter_map(|(order, curve)| Some((curve.as_constant()?, adds(order))));
    let burst = found.add_cpu_us.filter(|_| found.cpu_waits()).map(|us| (us, found.burst_adds));
    let constants: Vec<(f64, f64)> = constants.chain(burst).collect();
    let weight: f64 = constants.iter().map(|(_, weight)| weight).sum();
    let mean = constants.iter().map(|(us, weight)| us * weight).sum::<f64>() / weight.max(1.0);
    if constants.iter().all(|(us, _)| (us - mean).abs() < SAME_COST_SHARE * mean) {
        let constant = costs.values_mut().filter(|curve| curve.as_constant().is_some());
        // Rules that are late by delays of their own jitter more than the markers behind a burst.
        let marked = burst.filter(|_| found.latest_us() > 0.0).map(|(us, _)| us);
        constant.for_each(|curve| *curve = Curve::constant(marked.unwrap_or(mean)));
    }
    costs
}

/// Single services that show how they are distributed.
const SINGLE_MIN: usize = 200;

/// The service of packet-ins or packet-outs: as single ones were spread, constant, or even between two bounds, from its mean and deviation at
/// saturation.
fn service_of(service: &ServiceFound) -> Quantiles {
    let mean_us = service.service_us.unwrap_or(0.0);
    let idle_us = &service.idle_us;
    if service.single_us.len() >= SINGLE_MIN {
        return spread(&service.single_us, mean_us, 1.0);
    }
    let deviation_us = samples::moments(idle_us).map_or(0.0, |(_, deviation)| deviation);
    // A small part of the idle delays' deviation is noise of the estimate.
    let own_us = service.deviation_us.filter(|own| *own > 0.2 * deviation_us);
    let half_us = own_us.map_or(0.0, |own_us| 3.0_f64.sqrt() * own_us.min(deviation_us));
    // Residual delays are not negative: the shortest delays are at least as long as the shortest service.
    let early = |q| samples::quantile(idle_us, q).filter(|early_us| *early_us < mean_us);
    let least_us = early(0.03).and_then(|_| early(0.004)).map_or(0.0, |early_us| mean_us - early_us);
    let half_us = half_us.max(least_us).min(mean_us);
    let even = Quantiles::new(&[(0.0, mean_us - half_us), (1.0, mean_us + half_us)]);
    even.unwrap_or_else(|_| Quantiles::constant(mean_us))
}

/// A table with this mean, and the shape of these delays with their spread multiplied.
fn spread(shape_us: &[f64], mean_us: f64, factor: f64) -> Quantiles {
    let Some((mean, _)) = samples::moments(shape_us).filter(|_| factor > 0.0) else {
        return Quantiles::constant(mean_us);
    };
    let spread: Vec<f64> = shape_us.iter().map(|it| (mean_us + (it - mean) * factor).max(0.0)).collect();
    let table = samples::fitted(&spread).map(|fitted| fitted.table);
    // The mean is from a longer measurement than the shape.
    table.map_or_else(|| Quantiles::constant(mean_us), |table| table.plus_us(mean_us - table.mean_us()))
}

fn delay(found: &mut Findings, cpu: &Cpu) -> Delay {
    let mut residual = |message: MessageType, what: &str| {
        let service = &cpu.service(message).service_us;
        let idle_us = found.service(message).idle_us.clone();
        found.fits.extend(deconvolve::judged(what, &idle_us, service));
        deconvolve::residual(&idle_us, service).unwrap_or_default()
    };
    Delay {
        ingress_us: residual(MessageType::PacketIn, "delay.ingress_us"),
        egress_us: residual(MessageType::PacketOut, "delay.egress_us"),
    }
}

fn packet_in(found: &Findings) -> PacketIn {
    let default = PacketIn::default();
    PacketIn {
        limit: found
            .packet_in_limit
            .map(|(rate_per_s, burst_packets)| PacketInRate { rate_per_s, burst_packets }),
        buffers_packets: found.buffers,
        buffer_life_us: found.buffer_life_us.unwrap_or(default.buffer_life_us),
        miss_send_bytes: found.miss_send_bytes.unwrap_or(default.miss_send_bytes),
    }
}

fn barrier(found: &mut Findings) -> Barrier {
    // If the hardware works beside the CPU, its time is part of what was seen. The reply came when the barrier itself had been served.
    let write_us = if found.cpu_waits() { 0.0 } else { found.add_plane_us.unwrap_or(0.0) };
    let after_add_us = found.idle_mean_us(MessageType::Barrier) - write_us;
    let is_late = |late: &&f64| **late > 0.0;
    let late = found.late_us.iter();
    let late: Vec<f64> =
        late.map(|late| (late + if is_late(&late) { after_add_us } else { 0.0 }).max(0.0)).collect();
    let kind = match found.barrier.unwrap_or_default() {
        BarrierFound::Honest => BarrierKind::Honest,
        BarrierFound::Early => BarrierKind::Early(found.table("barrier.rules_late_us", &late)),
        BarrierFound::NotOrdering => BarrierKind::NotOrdering(found.table("barrier.rules_late_us", &late)),
    };
    let rules_in_order = kind == BarrierKind::Honest || found.rules_in_order;
    Barrier { kind, rules_in_order }
}

fn hardware(found: &Findings) -> Option<Hardware> {
    if found.capacities.is_empty() {
        return None;
    }
    let add = add_cost(found);
    let when_full = match (found.when_full, &found.software) {
        (Some(WhenFull::Spill), None) | (None, _) => WhenFull::Refuse,
        (Some(policy), _) => policy,
    };
    Some(Hardware {
        capacities: capacities(found),
        add,
        modify: Curve::default(),
        modify_kind: found.modify_kind.unwrap_or(ModifyKind::InPlace),
        delete: Curve::default(),
        cpu_waits: found.cpu_waits(),
        stall: None,
        when_full,
        evict: match (when_full, found.victim) {
            (WhenFull::Evict, Some((victim, _))) => vec![victim],
            (WhenFull::Evict, None) => vec![profile::Victim::Random],
            _ => Vec::new(),
        },
    })
}

fn add_cost(found: &Findings) -> AddCost {
    let service_us = add_service_us(found);
    let waits = found.cpu_waits();
    let costs = order_costs(found);
    let cost = |order: Order| -> Option<Curve> {
        let whole = costs.get(&order)?;
        if !waits {
            return Some(whole.clone());
        }
        let rest: Vec<(f64, f64)> =
            whole.points().iter().map(|(rules, us)| (*rules, (us - service_us).max(0.0))).collect();
        Curve::new(&rest).ok()
    };
    let same = cost(Order::Same).unwrap_or_else(|| match waits {
        true => Curve::default(),
        false => Curve::constant(found.add_plane_us.unwrap_or(0.0)),
    });
    let (ascending, descending) = (cost(Order::Ascending), cost(Order::Descending));
    AddCost {
        ascending: ascending.unwrap_or_else(|| same.clone()),
        descending: descending.unwrap_or_else(|| same.clone()),
        random: cost(Order::Random),
        same,
    }
}

/// Sizes that differ by less are one, if rules move.
const SAME_SIZE_SHARE: f64 = 0.01;

/// Sizes by match. The class that takes every match is the last. Classes of the same size are one.
fn capacities(found: &Findings) -> Vec<Capacity> {
    let Some((_, any)) = found.capacities.iter().find(|(_, capacity)| capacity.fields.is_empty()) else {
        return found.capacities.iter().map(|(_, capacity)| capacity.clone()).collect();
    };
    let others = found.capacities.iter().map(|(_, capacity)| capacity);
    // Where rules spill or are evicted, a rule that moves meanwhile is counted at the wrong place.
    let is_exact = matches!(found.when_full, None | Some(WhenFull::Refuse | WhenFull::Ignore));
    let apart = if is_exact { 0.0 } else { SAME_SIZE_SHARE * f64::from(any.entries) };
    let is_same =
        |it: &Capacity| it.at_least == any.at_least && f64::from(it.entries.abs_diff(any.entries)) <= apart;
    let others = others.filter(|it| !is_same(it));
    others.chain([any]).cloned().collect()
}

fn software(found: &mut Findings) -> Option<Software> {
    let SoftwareFound { above, entries, bits_per_s, packets_per_s, transit_us, promotion, .. } =
        found.software.clone()?;
    let when = match above {
        Some((rate_per_s, burst_rules)) => SoftwareUse::AboveRate { rate_per_s, burst_rules },
        None => SoftwareUse::WhenFull,
    };
    let service_us = bits_per_s.map_or(0.0, |rate| 8e6 * super::phases::FRAME_BYTES as f64 / rate);
    let service_us = packets_per_s.map_or(service_us, |rate| service_us.max(1e6 / rate));
    let extra: Vec<f64> =
        transit_us.iter().map(|us| (us - service_us - found.hardware_transit_us).max(0.0)).collect();
    let forward_us = found.table("software.forward_us", &extra);
    Some(Software {
        when,
        entries,
        at_least: false,
        forward_bits_per_s: bits_per_s,
        forward_packets_per_s: packets_per_s,
        forward_us,
        promotion,
    })
}
