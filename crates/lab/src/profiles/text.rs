//! Profiles as text and as JSON, for people and programs.
//!
//! In: profiles. Out: text. It reads and prints nothing.

use burnet::commands::table::aligned;
use profile::compare::{Change, changes, ks_of_tables};
use profile::file::stated;
use profile::{BarrierKind, Profile, Provenance, Quantiles, SoftwareUse, WhenFull};
use serde_json::{Value, json};
use std::fmt::Write;

/// Columns of a value before it is cut.
const VALUE_CHARS: usize = 60;

/// How many values are from each kind of source, in the order of trust.
fn sources(profile: &Profile) -> [(&'static str, usize); 4] {
    let mut counts = [("measured", 0), ("published", 0), ("reconstructed", 0), ("assumed", 0)];
    for (key, _) in stated(profile) {
        let kind = match profile.sources.of(&key) {
            Some(Provenance::Measured { .. }) => 0,
            Some(Provenance::Published(_)) => 1,
            Some(Provenance::Reconstructed(_)) => 2,
            Some(Provenance::Assumed(_)) => 3,
            None => continue,
        };
        counts[kind].1 += 1;
    }
    counts
}

fn sources_text(profile: &Profile) -> String {
    let some = sources(profile).into_iter().filter(|(_, count)| *count > 0);
    match some.map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "all defaults".to_owned(),
        some => some,
    }
}

fn rate_text(rate: Option<f64>) -> String {
    rate.map_or_else(|| "any".to_owned(), |rate| format!("{rate:.1}/s"))
}

/// Entries of the class with the most: that of the narrowest matches.
fn entries_text(profile: &Profile) -> String {
    let hardware = profile.hardware.iter().flat_map(|hardware| &hardware.capacities);
    let most = hardware.max_by_key(|capacity| capacity.entries);
    let software =
        profile.software.as_ref().and_then(|software| software.entries.map(|n| (n, software.at_least)));
    match most.map(|capacity| (capacity.entries, capacity.at_least)).or(software) {
        Some((entries, true)) => format!("{entries} or more"),
        Some((entries, false)) => entries.to_string(),
        None => "any".to_owned(),
    }
}

/// A line for each profile.
pub(super) fn list(profiles: &[Profile]) -> String {
    let head = ["name", "set-up rate", "in hardware", "entries", "values"].map(str::to_owned).to_vec();
    let row = |profile: &Profile| {
        let name = profile.name.clone();
        let (setup, hardware) = (profile.setup_rate_per_s(), profile.hardware_rate_per_s());
        vec![name, rate_text(setup), rate_text(hardware), entries_text(profile), sources_text(profile)]
    };
    aligned(&[head].into_iter().chain(profiles.iter().map(row)).collect::<Vec<_>>())
}

fn summary_json(profile: &Profile) -> Value {
    json!({
        "name": profile.name,
        "about": profile.about,
        "setup_rate_per_s": profile.setup_rate_per_s(),
        "hardware_rate_per_s": profile.hardware_rate_per_s(),
        "values": sources(profile).into_iter().map(|(kind, count)| (kind.to_owned(), json!(count)))
            .collect::<serde_json::Map<_, _>>(),
    })
}

fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The same as JSON.
pub(super) fn list_json(profiles: &[Profile]) -> String {
    json_text(&json!({ "profiles": profiles.iter().map(summary_json).collect::<Vec<_>>() }))
}

/// What a profile means, and then each value with its source.
pub(super) fn show(profile: &Profile) -> String {
    let mut text = format!("{}\n{}\n\n", profile.name, profile.about);
    let switch = &profile.switch;
    let mut rows = vec![
        row("switch", format!("{} {} {}", switch.vendor, switch.hardware, switch.firmware).trim().to_owned()),
        row("set-up rate", rate_text(profile.setup_rate_per_s())),
        row("in hardware", rate_text(profile.hardware_rate_per_s())),
        row("table", table_text(profile)),
        row("barrier", barrier_text(profile)),
        row("values", sources_text(profile)),
    ];
    rows.extend(profile.measurement.fits.iter().map(|fit| {
        let verdict = if fit.is_good() { "good" } else { "poor" };
        row("fit", format!("{}: {verdict}, KS {:.3} of at most {:.3}", fit.what, fit.ks, fit.ks_limit))
    }));
    let left_out = profile.measurement.not_measured.iter();
    rows.extend(left_out.map(|left_out| row("not measured", format!("{}: {}", left_out.what, left_out.why))));
    text.push_str(&aligned(&rows));
    text.push('\n');
    let value = |(key, value): (String, String)| {
        let source = profile.sources.of(&key)?.to_string();
        Some(vec![key, shortened(&value), source])
    };
    text.push_str(&aligned(&stated(profile).into_iter().filter_map(value).collect::<Vec<_>>()));
    text
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn table_text(profile: &Profile) -> String {
    let entries = entries_text(profile);
    let Some(hardware) = &profile.hardware else {
        return format!("{entries} entries, in software");
    };
    let full = match hardware.when_full {
        WhenFull::Refuse => "then refuses",
        WhenFull::Ignore => "then ignores rules",
        WhenFull::Spill => "then software",
        WhenFull::Evict => "then evicts",
    };
    match profile.software.as_ref().map(|software| software.when) {
        Some(SoftwareUse::AboveRate { rate_per_s, .. }) => {
            format!("{entries} entries, {full}; above {rate_per_s} adds a second, software")
        }
        _ => format!("{entries} entries, {full}"),
    }
}

fn barrier_text(profile: &Profile) -> String {
    let late =
        |table: &Quantiles| format!("by {:.0} ms (p50), {:.0} ms (p99)", ms(table, 0.5), ms(table, 0.99));
    match &profile.barrier.kind {
        BarrierKind::Honest => "honest".to_owned(),
        BarrierKind::Early(table) => format!("early {}", late(table)),
        BarrierKind::NotOrdering(table) => format!("orders nothing; rules are late {}", late(table)),
    }
}

fn ms(table: &Quantiles, q: f64) -> f64 {
    table.at(q) / 1000.0
}

fn shortened(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= VALUE_CHARS {
        return line;
    }
    line.chars().take(VALUE_CHARS - 1).chain(['…']).collect()
}

/// The same as JSON.
pub(super) fn show_json(profile: &Profile) -> String {
    let value = |(key, value): (String, String)| {
        let source = profile.sources.of(&key).map(ToString::to_string);
        json!({ "key": key, "toml": value, "source": source })
    };
    let mut shown = summary_json(profile);
    shown["incomplete"] = json!(profile.measurement.incomplete);
    shown["keys"] = stated(profile).into_iter().map(value).collect();
    json_text(&shown)
}

/// The line of a file without problems.
pub(super) fn checked(file: &str, profile: &Profile) -> String {
    let mut text = format!("{file}: {} is good: {}\n", profile.name, sources_text(profile));
    if profile.measurement.incomplete {
        let _ = writeln!(text, "{file}: the measurement is incomplete");
    }
    for fit in profile.measurement.fits.iter().filter(|fit| !fit.is_good()) {
        let _ = writeln!(
            text,
            "{file}: {} is a poor fit: KS {:.3} of at most {:.3}",
            fit.what, fit.ks, fit.ks_limit
        );
    }
    text
}

/// A line for each value that differs.
pub(super) fn compare(first: &Profile, second: &Profile) -> String {
    let changes = changes(first, second);
    if changes.is_empty() {
        return "No value differs.\n".to_owned();
    }
    aligned(&changes.iter().map(|change| vec![change.key.clone(), change_text(change)]).collect::<Vec<_>>())
}

fn change_text(change: &Change) -> String {
    if let Some((first, second)) = change.delays() {
        let at = |name: &str, q: f64| format!("{name} {:.0} → {:.0} µs", first.at(q), second.at(q));
        let mean = format!("mean {:.0} → {:.0} µs", first.mean_us(), second.mean_us());
        return format!(
            "{mean}, {}, {}, KS {:.3}",
            at("p50", 0.5),
            at("p99", 0.99),
            ks_of_tables(&first, &second)
        );
    }
    let side = |value: &Option<String>| value.as_deref().map_or_else(|| "none".to_owned(), shortened);
    format!("{} → {}", side(&change.first), side(&change.second))
}

/// The same as JSON.
pub(super) fn compare_json(first: &Profile, second: &Profile) -> String {
    let change = |change: &Change| {
        let mut shown = json!({ "key": change.key, "first": change.first, "second": change.second });
        if let Some((first, second)) = change.delays() {
            shown["mean_us"] = json!([first.mean_us(), second.mean_us()]);
            shown["ks"] = json!(ks_of_tables(&first, &second));
        }
        shown
    };
    json_text(&json!({ "changes": changes(first, second).iter().map(change).collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::built_in;

    fn of(name: &str) -> Profile {
        built_in(name).unwrap()
    }

    #[test]
    fn the_list_has_the_rates_and_the_entries() {
        let text = list(&[of("hp-procurve-j9451a"), of("null")]);
        let cells = |line: &str| -> Vec<String> {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        };
        let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
        assert_eq!(lines[1][..4], ["hp-procurve-j9451a", "40.0/s", "8.0/s", "1500"]);
        assert_eq!(lines[2], ["null", "any", "any", "any", "all defaults"]);
    }

    #[test]
    fn a_value_is_shown_with_its_source() {
        let text = show(&of("hp-5406zl"));
        assert!(text.contains("early by 100 ms (p50), 247 ms (p99)"), "{text}");
        let line = text.lines().find(|line| line.starts_with("hardware.capacity.entries")).unwrap();
        assert!(line.contains("1500") && line.contains("assumed: recalled from PAM 2015"), "{line}");
        // A default that the file does not state has no source.
        assert!(!text.contains("hardware.evict"), "{text}");
        let json: Value = serde_json::from_str(&show_json(&of("hp-5406zl"))).unwrap();
        assert_eq!(json["values"]["measured"], 0);
        assert!(json["keys"].as_array().unwrap().iter().any(|key| key["key"] == "barrier.reply"));
    }

    #[test]
    fn a_changed_delay_is_shown_by_its_quantiles() {
        let first = of("quanta-lb4g");
        let mut second = first.clone();
        second.delay.ingress_us = Quantiles::constant(5_000.0);
        assert_eq!(
            compare(&first, &second),
            "delay.ingress_us  mean 1375 → 5000 µs, p50 1000 → 5000 µs, p99 2960 → 5000 µs, KS 1.000\n"
        );
        assert_eq!(compare(&first, &first), "No value differs.\n");
        let variant = compare(&first, &of("quanta-lb4g-software"));
        assert!(
            variant.contains("hardware.when_full") && variant.contains("\"refuse\" → \"spill\""),
            "{variant}"
        );
        let json: Value = serde_json::from_str(&compare_json(&first, &second)).unwrap();
        assert_eq!(json["changes"][0]["ks"], 1.0);
    }

    #[test]
    fn a_poor_fit_is_named() {
        let mut profile = of("null");
        let fit = |what: &str, ks| profile::Fit { what: what.to_owned(), samples: 100, ks, ks_limit: 0.05 };
        profile.measurement.fits = vec![fit("delay.ingress_us", 0.01), fit("cpu.add.service_us", 0.5)];
        profile.measurement.incomplete = true;
        assert_eq!(
            checked("my.toml", &profile),
            "my.toml: null is good: all defaults\nmy.toml: the measurement is incomplete\n\
             my.toml: cpu.add.service_us is a poor fit: KS 0.500 of at most 0.050\n"
        );
    }
}
