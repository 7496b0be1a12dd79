//! Whether a probe finds profiles that it does not know: switches made from seeds, probed in virtual time, and compared with their truth.
//!
//! ```text
//!   seed ──> hidden profile ──> Modelled ──> Probe ──> found profile ──> one line for each value: truth, found, error
//! ```
//!
//! In: seeds. Out: lines, a summary by value, and a digest. The same seeds give the same digest. It is part of the crate because the experiment
//! and the tests use it.

mod hidden;
pub mod outside;

use crate::engine::Probe;
use crate::event::Finished;
use crate::modelled::Modelled;
use crate::options::Options;
use crate::virtual_time;
use openflow::Version;
use profile::random::Random;
use profile::{BarrierKind, Fit, Hardware, Profile, SoftwareUse, WhenFull};
use std::collections::BTreeMap;

pub use hidden::hidden;

/// A probe that takes longer in virtual time has no end.
const LIMIT_NS: u64 = 7_200_000_000_000;
/// Draws of a delay that is the sum of two tables.
const DRAWS: usize = 4000;
/// How far rates and times may be from the truth.
const RATE_LIMIT: f64 = 0.03;
/// How far the size of a table that spills or evicts may be.
const SIZE_LIMIT: f64 = 0.01;
/// The largest good KS distance of a delay.
const KS_LIMIT: f64 = 0.05;

/// The longest probe of a switch whose table is not large.
pub const LONGEST_S: f64 = 300.0;

/// One value of one switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which value.
    pub what: &'static str,
    /// The truth, for people.
    pub truth: String,
    /// What was found.
    pub found: String,
    /// The relative error, the KS distance, or 0 and 1 for right and wrong.
    pub error: f64,
    /// The largest good error.
    pub limit: f64,
}

impl Line {
    /// Whether it is near enough.
    pub fn is_right(&self) -> bool {
        self.error <= self.limit
    }
}

/// What was found of one switch.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Value by value. Empty: the probe did not end with a profile.
    pub lines: Vec<Line>,
    /// How long the probe took, in seconds of virtual time.
    pub took_s: f64,
    /// How long one filling of the table took.
    pub filling_s: f64,
    /// A digest of all messages and frames, and of the found file. Two runs of a seed have the same.
    pub digest: u64,
    /// The probe's own judgements that are poor.
    pub poor: Vec<Fit>,
    /// When each phase began.
    pub timeline: String,
}

impl Outcome {
    /// Whether the probe ended, and each value is near enough.
    pub fn is_right(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(Line::is_right)
    }

    /// Whether all that is a name and no number is right: policies, victims, orders, kinds.
    pub fn are_policies_right(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().filter(|line| line.limit == 0.0).all(Line::is_right)
    }

    fn failed(seed: u64) -> Self {
        Outcome {
            seed,
            lines: Vec::new(),
            took_s: 0.0,
            filling_s: 0.0,
            digest: 0,
            poor: Vec::new(),
            timeline: String::new(),
        }
    }
}

/// Probes the switch of a seed.
pub fn run(seed: u64) -> Outcome {
    recovered(seed).unwrap_or_else(|| Outcome::failed(seed))
}

/// None: the probe did not end, or refused the switch.
fn recovered(seed: u64) -> Option<Outcome> {
    let truth = hidden(seed);
    let version = if seed % 5 == 4 { Version::V1_0 } else { Version::V1_3 };
    let mut switch = Modelled::new(&truth, version, seed);
    let options = Options::simulated(&format!("hidden-{seed}"), "2026-11-25");
    let ended = virtual_time::run(Probe::new(options), &mut switch, LIMIT_NS)?;
    let Finished::Profile(found) = ended.finished else { return None };
    let text = found.to_toml().ok()?;
    let digest = text
        .bytes()
        .fold(ended.digest, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let filling_us = add_us(&truth, 0, 0) * truth.hardware.as_ref().map_or(0.0, |it| f64::from(size_of(it)));
    let told = ended.progress.iter().map(|(at_ns, what)| format!("{:.1} s: {what}\n", *at_ns as f64 / 1e9));
    Some(Outcome {
        seed,
        lines: compare(&truth, &found),
        took_s: ended.took_ns as f64 / 1e9,
        filling_s: filling_us / 1e6,
        digest,
        poor: found.measurement.fits.iter().filter(|fit| !fit.is_good()).cloned().collect(),
        timeline: told.collect(),
    })
}

fn number(what: &'static str, truth: f64, found: f64, limit: f64) -> Line {
    let error = if truth == found { 0.0 } else { (found - truth).abs() / truth.abs().max(1e-9) };
    Line { what, truth: format!("{truth:.1}"), found: format!("{found:.1}"), error, limit }
}

fn word<T: std::fmt::Debug + PartialEq>(what: &'static str, truth: &T, found: &T) -> Line {
    let error = if truth == found { 0.0 } else { 1.0 };
    Line { what, truth: format!("{truth:?}"), found: format!("{found:?}"), error, limit: 0.0 }
}

/// Every value that both profiles have.
pub fn compare(truth: &Profile, found: &Profile) -> Vec<Line> {
    let mut lines = Vec::new();
    if let (Some(one), Some(two)) = (&truth.hardware, &found.hardware) {
        tables(one, two, &mut lines);
    }
    let mut rate = |what, truth, found| lines.push(number(what, truth, found, RATE_LIMIT));
    rate("add, µs", add_us(truth, 0, 0), add_us(found, 0, 0));
    rate("add below 50 rules, µs", add_us(truth, 0, 50), add_us(found, 0, 50));
    rate(
        "packet-in service, µs",
        truth.cpu.packet_in.service_us.mean_us(),
        found.cpu.packet_in.service_us.mean_us(),
    );
    rate(
        "packet-out service, µs",
        truth.cpu.packet_out.service_us.mean_us(),
        found.cpu.packet_out.service_us.mean_us(),
    );
    rate("modify, µs", truth.cpu.modify.service_us.mean_us(), found.cpu.modify.service_us.mean_us());
    rate("delete, µs", truth.cpu.delete.service_us.mean_us(), found.cpu.delete.service_us.mean_us());
    rate("echo, µs", truth.cpu.echo.service_us.mean_us(), found.cpu.echo.service_us.mean_us());
    rate(
        "statistics, µs",
        truth.cpu.statistics.service_us.mean_us(),
        found.cpu.statistics.service_us.mean_us(),
    );
    rate("scan period, µs", truth.timeouts.scan_period_us, found.timeouts.scan_period_us);
    lines.push(ks("packet-in delay, KS", truth, found, |it| {
        (&it.cpu.packet_in.service_us, &it.delay.ingress_us)
    }));
    lines.push(ks("packet-out delay, KS", truth, found, |it| {
        (&it.cpu.packet_out.service_us, &it.delay.egress_us)
    }));
    barrier(truth, found, &mut lines);
    software(truth, found, &mut lines);
    lines.push(word("packet-in limit", &truth.packet_in.limit.is_some(), &found.packet_in.limit.is_some()));
    if let (Some(one), Some(two)) = (truth.packet_in.limit, found.packet_in.limit) {
        lines.push(number("packet-in limit, 1/s", one.rate_per_s, two.rate_per_s, RATE_LIMIT));
    }
    lines
}

fn tables(truth: &Hardware, found: &Hardware, lines: &mut Vec<Line>) {
    let is_exact = matches!(truth.when_full, WhenFull::Refuse | WhenFull::Ignore);
    let limit = if is_exact { 0.0 } else { SIZE_LIMIT };
    lines.push(number("table, rules", f64::from(size_of(truth)), f64::from(size_of(found)), limit));
    lines.push(word("when full", &truth.when_full, &found.when_full));
    if truth.when_full == WhenFull::Evict {
        lines.push(word("victim", &truth.evict.first(), &found.evict.first()));
    }
    lines.push(word("kind of modify", &truth.modify_kind, &found.modify_kind));
}

fn size_of(of: &Hardware) -> u32 {
    of.capacities.last().map_or(0, |capacity| capacity.entries)
}

/// The time for one more rule at saturation.
fn add_us(of: &Profile, lower: u32, higher: u32) -> f64 {
    let cpu_us = of.cpu.add.service_us.mean_us();
    let Some(hardware) = &of.hardware else { return cpu_us };
    let write_us = hardware.add.at(lower + higher, lower, higher);
    if hardware.cpu_waits { cpu_us + write_us } else { cpu_us.max(write_us) }
}

type Parts<'a> = (&'a profile::Quantiles, &'a profile::Quantiles);

/// The KS distance of two sums of two independent delays.
fn ks(what: &'static str, truth: &Profile, found: &Profile, parts: impl Fn(&Profile) -> Parts<'_>) -> Line {
    let draws = |of: &Profile, seed| {
        let (service, residual) = parts(of);
        let mut random = Random::new(seed);
        let sums = (0..DRAWS).map(|_| service.at(random.unit()) + residual.at(random.unit()));
        let mut sums: Vec<f64> = sums.collect();
        sums.sort_by(f64::total_cmp);
        sums
    };
    // The same draws for both, so that their noise cancels.
    let (one, two) = (draws(truth, 1), draws(found, 1));
    let below = |all: &[f64], at: f64| all.partition_point(|it| *it <= at) as f64 / DRAWS as f64;
    // Two equal constants differ by rounding only.
    let apart = |at: f64| {
        (below(&one, at * 1.003) - below(&two, at * 1.006)).max(below(&two, at) - below(&one, at * 1.006))
    };
    let error = one.iter().map(|at| apart(*at)).fold(0.0, f64::max);
    let middle = |all: &[f64]| format!("{:.1}", all[DRAWS / 2]);
    Line { what, truth: middle(&one), found: middle(&two), error, limit: KS_LIMIT }
}

fn barrier(truth: &Profile, found: &Profile, lines: &mut Vec<Line>) {
    // A reply that orders nothing looks early, if no message overtakes flow mods.
    let is_honest = |of: &Profile| of.barrier.kind == BarrierKind::Honest;
    lines.push(word("barrier is honest", &is_honest(truth), &is_honest(found)));
    if let (Some(one), Some(two)) = (truth.barrier.late_us(), found.barrier.late_us()) {
        lines.push(number("rules late, µs", one.mean_us(), two.mean_us(), RATE_LIMIT));
    }
}

fn software(truth: &Profile, found: &Profile, lines: &mut Vec<Line>) {
    lines.push(word("software table", &truth.software.is_some(), &found.software.is_some()));
    let (Some(one), Some(two)) = (&truth.software, &found.software) else { return };
    if let (Some(one), Some(two)) = (one.forward_bits_per_s, two.forward_bits_per_s) {
        lines.push(number("software, bit/s", one, two, RATE_LIMIT));
    }
    if let SoftwareUse::AboveRate { rate_per_s, .. } = one.when {
        let found = if let SoftwareUse::AboveRate { rate_per_s, .. } = two.when { rate_per_s } else { 0.0 };
        lines.push(number("adds in hardware, 1/s", rate_per_s, found, RATE_LIMIT));
    }
    lines.push(word("promotion", &one.promotion.is_some(), &two.promotion.is_some()));
    if let (Some(one), Some(two)) = (one.promotion, two.promotion) {
        lines.push(number("promotion period, µs", one.period_us, two.period_us, RATE_LIMIT));
        lines.push(word("promotion batch", &one.batch_rules, &two.batch_rules));
        lines.push(word("promotion order", &one.order, &two.order));
    }
}

/// All switches together, by value.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Value: how many had it, in how many it is right, the largest error.
    pub by_value: BTreeMap<&'static str, (u32, u32, f64)>,
    /// Probes that did not end with a profile.
    pub failed: Vec<u64>,
    /// How many switches there are, and of how many all policies are right.
    pub switches: u32,
    /// See `switches`.
    pub with_policies: u32,
    /// The probes' own judgements that are poor, of all switches.
    pub poor: usize,
    /// The longest probe, in seconds of virtual time.
    pub longest_s: f64,
    /// Probes that took longer than [`LONGEST_S`] and than four fillings of the table.
    pub too_long: usize,
    /// The digest of all.
    pub digest: u64,
    /// Lines that are not right, with the seed.
    pub wrong: Vec<(u64, Line)>,
}

impl Summary {
    /// Adds one switch.
    pub fn add(&mut self, outcome: Outcome) {
        let seed = outcome.seed;
        self.switches += 1;
        if outcome.lines.is_empty() {
            return self.failed.push(seed);
        }
        self.with_policies += u32::from(outcome.are_policies_right());
        self.longest_s = self.longest_s.max(outcome.took_s);
        self.too_long += usize::from(outcome.took_s > LONGEST_S.max(4.0 * outcome.filling_s));
        self.poor += outcome.poor.len();
        self.digest = (self.digest ^ outcome.digest).wrapping_mul(0x0100_0000_01b3);
        for line in outcome.lines {
            let entry = self.by_value.entry(line.what).or_default();
            *entry = (entry.0 + 1, entry.1 + u32::from(line.is_right()), entry.2.max(line.error));
            if !line.is_right() {
                self.wrong.push((seed, line));
            }
        }
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut text = format!("{:<24}{:>9}{:>9}{:>14}\n", "value", "switches", "right", "largest error");
        for (what, (count, right, error)) in &self.by_value {
            text += &format!("{what:<24}{count:>9}{right:>9}{error:>14.3}\n");
        }
        text += &format!(
            "policies right in {} of {}; {} fits poor; longest probe {:.0} s; {} failed; digest {:016x}\n",
            self.with_policies,
            self.switches,
            self.poor,
            self.longest_s,
            self.failed.len(),
            self.digest
        );
        text
    }
}
