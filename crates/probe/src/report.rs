//! The short table at the end of a probe: what people ask first of a switch, one line each.
//!
//! In: a profile, and how exact its set-up rate is. Out: lines of text, with what was not measured and which parts fit poorly. It measures
//! and computes nothing.

use crate::findings::Findings;
use profile::{
    BarrierKind, Capacity, Hardware, ModifyKind, Profile, Quantiles, Software, SoftwareUse, WhenFull,
};

/// The width of the first column.
const COLUMN: usize = 16;
/// Where a note on exactness begins, after the first column.
const NOTE_COLUMN: usize = 34;

/// The lines.
pub fn table(profile: &Profile, found: &Findings) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(hardware) = &profile.hardware {
        lines.extend(hardware.capacities.iter().map(|capacity| ("hardware table", size(capacity, hardware))));
    }
    lines.extend(setup(profile, found.add_error_share));
    lines.push(("packet-in", delay(&profile.cpu.packet_in.service_us, &profile.delay.ingress_us)));
    lines.push(("packet-out", delay(&profile.cpu.packet_out.service_us, &profile.delay.egress_us)));
    lines.extend(limits(profile));
    lines.extend(profile.software.iter().map(|software| ("software table", forwarding(software))));
    lines.push(("barrier", barrier(profile)));
    let scan = profile.timeouts.scan_period_us;
    lines.push((
        "time-outs",
        if scan > 0.0 { format!("noticed every {}", time(scan)) } else { "in time".to_owned() },
    ));
    if profile.hardware.as_ref().is_some_and(|hardware| hardware.modify_kind == ModifyKind::DeleteAndAdd) {
        lines.push(("modify", "deletes the rule and adds it again: packets are lost in between".to_owned()));
    }
    let poor = profile.measurement.fits.iter().filter(|fit| !fit.is_good());
    lines.extend(
        poor.map(|fit| ("poor fit", format!("{}: KS {:.2}, good is {:.2}", fit.what, fit.ks, fit.ks_limit))),
    );
    let left_out = profile.measurement.not_measured.iter();
    lines.extend(left_out.map(|it| ("not measured", format!("{} ({})", it.what, it.why))));
    lines.into_iter().map(|(what, value)| format!("{what:<COLUMN$}{value}\n")).collect()
}

fn size(capacity: &Capacity, hardware: &Hardware) -> String {
    let then = match hardware.when_full {
        WhenFull::Refuse => "then refuses".to_owned(),
        WhenFull::Ignore => "then ignores rules without an error".to_owned(),
        WhenFull::Spill => "then software".to_owned(),
        WhenFull::Evict => {
            let order = hardware.evict.first().map(|victim| format!("{victim:?}")).unwrap_or_default();
            format!("then evicts ({})", words(&order))
        }
    };
    let fields = capacity.fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(", ");
    let class = if fields.is_empty() { String::new() } else { format!(" for {fields}") };
    let is_exact = matches!(hardware.when_full, WhenFull::Refuse | WhenFull::Ignore);
    let exact = if is_exact { "exact" } else { "by transit times" };
    match capacity.at_least {
        true => format!("{} entries or more{class}", capacity.entries),
        false => {
            let text = format!("{} entries{class}, {then}", capacity.entries);
            format!("{text:<NOTE_COLUMN$} {exact}")
        }
    }
}

/// `LeastRecentlyUsed` as `least recently used`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn setup(profile: &Profile, error_share: Option<f64>) -> Option<(&'static str, String)> {
    let add_us = profile.cpu.add.service_us.mean_us();
    let hardware_us = profile.hardware.as_ref().map_or(0.0, |hardware| hardware.add.at(0, 0, 0));
    let waits = profile.hardware.as_ref().is_some_and(|hardware| hardware.cpu_waits);
    let each_us = if waits { add_us + hardware_us } else { add_us.max(hardware_us) };
    let rate = (each_us > 0.0).then(|| 1e6 / each_us)?;
    let bound = match profile.software.as_ref().map(|software| software.when) {
        Some(SoftwareUse::AboveRate { rate_per_s, burst_rules }) => {
            format!("; up to {rate_per_s:.1}/s stay in hardware, {burst_rules} at once")
        }
        _ => String::new(),
    };
    let error = error_share.map(|share| format!(" ±{:.1}", rate * share)).unwrap_or_default();
    Some(("set-up rate", format!("{rate:.1}/s{error}{bound}")))
}

fn delay(service: &Quantiles, residual: &Quantiles) -> String {
    let service_us = service.mean_us();
    let rate = if service_us > 0.0 { format!("{:.0}/s at most; ", 1e6 / service_us) } else { String::new() };
    let at = |q| time(service.at(q) + residual.at(q));
    format!("{rate}{} idle (p50), {} (p99)", at(0.5), at(0.99))
}

fn limits(profile: &Profile) -> Option<(&'static str, String)> {
    let limit = profile.packet_in.limit?;
    Some(("packet-in limit", format!("{:.1}/s, {} at once", limit.rate_per_s, limit.burst_packets)))
}

fn forwarding(software: &Software) -> String {
    let bits = software.forward_bits_per_s.map(|rate| format!("{:.2} Mb/s", rate / 1e6));
    let packets = software.forward_packets_per_s.map(|rate| format!("{rate:.0} packets/s"));
    let rates: Vec<String> = bits.into_iter().chain(packets).collect();
    let rates = if rates.is_empty() { "as fast as its links".to_owned() } else { rates.join(", ") };
    let promotion = software.promotion.map(|it| {
        let order = words(&format!("{:?}", it.order));
        format!("; {} rules move to hardware every {} ({order} first)", it.batch_rules, time(it.period_us))
    });
    format!("{rates}{}", promotion.unwrap_or_default())
}

fn barrier(profile: &Profile) -> String {
    let order = if profile.barrier.rules_in_order { "" } else { "; rules come in another order" };
    let text = match &profile.barrier.kind {
        BarrierKind::Honest => "honest".to_owned(),
        BarrierKind::Early(late) => {
            format!("early by {} (p50), {} (p99)", time(late.at(0.5)), time(late.at(0.99)))
        }
        BarrierKind::NotOrdering(_) => "answered before earlier messages".to_owned(),
    };
    format!("{text}{order}")
}

fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.1} ms", us / 1e3),
        us => format!("{us:.0} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::Victim;

    #[test]
    fn the_lines_name_sizes_policies_and_what_is_missing() {
        let mut profile = Profile::null();
        profile.hardware = Some(Hardware {
            capacities: vec![Capacity::any(768)],
            when_full: WhenFull::Evict,
            evict: vec![Victim::LeastRecentlyUsed],
            ..Hardware::default()
        });
        profile.barrier.kind = BarrierKind::Early(Quantiles::constant(212_000.0));
        let why =
            profile::NotMeasured { what: "IPv6".to_owned(), why: "the switch refuses the match".to_owned() };
        profile.measurement.not_measured.push(why);
        profile.cpu.add.service_us = Quantiles::constant(10_000.0);
        let mut found = Findings::new(openflow::Version::V1_3);
        found.add_error_share = Some(0.004);
        let text = table(&profile, &found);
        for line in [
            "hardware table  768 entries, then evicts (least recently used) by transit times",
            "set-up rate     100.0/s ±0.4",
            "barrier         early by 212.0 ms (p50), 212.0 ms (p99)",
            "not measured    IPv6 (the switch refuses the match)",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }
}
