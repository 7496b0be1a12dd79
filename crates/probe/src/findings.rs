//! What a probe has found so far. Phases read what earlier ones found, and add to it.
//!
//! Plain data. `compose` makes the profile of it.

use crate::flows::{FLOWS_MAX, TestFlow, Width};
use crate::script::Script;
use openflow::Version;
use profile::{
    Capacity, Curve, Fit, MessageType, ModifyKind, NotMeasured, Promotion, PromotionOrder, Quantiles, Victim,
    WhenFull,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the switch declares about itself.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Its maker.
    pub manufacturer: String,
    /// The model.
    pub hardware: String,
    /// The firmware.
    pub software: String,
    /// Its datapath id, by which two of the same model are told apart.
    pub datapath_id: u64,
    /// How many packets it says that it can buffer.
    pub buffers: u32,
}

/// How one type of message is served.
#[derive(Clone, Debug, Default)]
pub struct ServiceFound {
    /// Delays of the idle switch, from the message to its effect, in µs.
    pub idle_us: Vec<f64>,
    /// The time that the CPU needs for one, from the throughput at saturation.
    pub service_us: Option<f64>,
    /// The standard deviation of that time.
    pub deviation_us: Option<f64>,
    /// Which comes first: −1 before adds, 0 in turn with them, 1 behind them.
    pub rank: Option<i8>,
    /// How many samples the service time is from.
    pub samples: u32,
    /// Times that the CPU needed for single ones, in µs. Empty: only their mean is known.
    pub single_us: Vec<f64>,
}

/// What adds cost in an order of priorities: points (rules, µs).
pub type OrderCost = Vec<(f64, f64)>;

/// The order in which rules come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// All priorities are the same.
    Same,
    /// Each is above all before.
    Ascending,
    /// Each is below all before.
    Descending,
    /// Any.
    Random,
}

/// What a barrier reply was found to mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarrierFound {
    /// The data plane has the rules.
    #[default]
    Honest,
    /// The data plane gets them later.
    Early,
    /// It overtakes flow mods.
    NotOrdering,
}

/// A software table.
#[derive(Clone, Debug, Default)]
pub struct SoftwareFound {
    /// Rules go there when adds are faster than this, and how many may be at once.
    pub above: Option<(f64, u32)>,
    /// It was full at so many rules.
    pub entries: Option<u32>,
    /// What it forwards, in bits a second.
    pub bits_per_s: Option<f64>,
    /// What it forwards, in packets a second.
    pub packets_per_s: Option<f64>,
    /// Transits through it, in µs.
    pub transit_us: Vec<f64>,
    /// How rules move to hardware.
    pub promotion: Option<Promotion>,
    /// How sure the order is: the share of rules that it explains.
    pub promotion_order: Option<(PromotionOrder, f64)>,
}

/// What was seen under a load. It judges the profile.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Which load.
    pub what: String,
    /// What was sent.
    pub script: Script,
    /// From each test frame to its end, in µs.
    pub delays_us: Vec<f64>,
}

/// All that is known.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The version in use.
    pub version: Version,
    /// The description.
    pub description: Description,
    /// The longest transit of a rule in hardware, in µs.
    pub hardware_transit_us: f64,
    /// A transit above this is software's.
    pub software_above_us: f64,
    /// By type.
    pub services: BTreeMap<MessageType, ServiceFound>,
    /// What an entry of statistics costs, in µs.
    pub statistics_entry_us: Option<f64>,
    /// What barriers mean.
    pub barrier: Option<BarrierFound>,
    /// How much later than the barrier reply rules are in the data plane, in µs.
    pub late_us: Vec<f64>,
    /// Whether rules reach the data plane in order.
    pub rules_in_order: bool,
    /// How long the CPU is busy with an add to a nearly empty table, in µs.
    pub add_cpu_us: Option<f64>,
    /// How many adds that is from.
    pub burst_adds: f64,
    /// From one rule in the data plane to the next, in µs, with adds at saturation.
    pub add_plane_us: Option<f64>,
    /// The standard error of that, as a share: how far bursts differ.
    pub add_error_share: Option<f64>,
    /// Sizes by match.
    pub capacities: Vec<(Width, Capacity)>,
    /// How long one filling of the table took.
    pub filling_ns: u64,
    /// How long the longest phase that fills the table took, with its looks and waits.
    pub table_ns: u64,
    /// How often the table was filled for the cost of an order, if more than once.
    pub fillings: BTreeMap<Order, u32>,
    /// How much time the probe had left when the present phase began.
    pub left_ns: u64,
    /// What happens when the table is full.
    pub when_full: Option<WhenFull>,
    /// Which rule makes place, and the share of victims that this explains.
    pub victim: Option<(Victim, f64)>,
    /// The costs of adds.
    pub orders: BTreeMap<Order, OrderCost>,
    /// The orders whose cost is from markers of the CPU, and not from frames.
    pub marked: BTreeSet<Order>,
    /// What a modify costs, in µs.
    pub modify_us: Option<f64>,
    /// How a rule is modified.
    pub modify_kind: Option<ModifyKind>,
    /// What a delete costs, in µs.
    pub delete_us: Option<f64>,
    /// The software table.
    pub software: Option<SoftwareFound>,
    /// The time between looks for expired rules, in µs.
    pub scan_period_us: Option<f64>,
    /// The bound on packet-ins and the burst.
    pub packet_in_limit: Option<(f64, u32)>,
    /// How many packets were buffered.
    pub buffers: Option<u32>,
    /// How long a packet is kept for the controller.
    pub buffer_life_us: Option<f64>,
    /// How many bytes a packet-in has.
    pub miss_send_bytes: Option<u16>,
    /// How many messages wait at most.
    pub queue_messages: Option<u32>,
    /// Under load.
    pub loads: Vec<Loaded>,
    /// The judgements.
    pub fits: Vec<Fit>,
    /// What could not be measured.
    pub not_measured: Vec<NotMeasured>,
    /// Why the probe ended early.
    pub incomplete: Option<String>,
    next_flow: u32,
}

impl Findings {
    /// Nothing is known but the version.
    pub fn new(version: Version) -> Self {
        Findings {
            version,
            description: Description::default(),
            hardware_transit_us: 0.0,
            software_above_us: f64::INFINITY,
            services: BTreeMap::new(),
            statistics_entry_us: None,
            barrier: None,
            late_us: Vec::new(),
            rules_in_order: true,
            add_cpu_us: None,
            burst_adds: 0.0,
            add_plane_us: None,
            add_error_share: None,
            capacities: Vec::new(),
            filling_ns: 0,
            table_ns: 0,
            fillings: BTreeMap::new(),
            left_ns: 0,
            when_full: None,
            victim: None,
            orders: BTreeMap::new(),
            marked: BTreeSet::new(),
            modify_us: None,
            modify_kind: None,
            delete_us: None,
            software: None,
            scan_period_us: None,
            packet_in_limit: None,
            buffers: None,
            buffer_life_us: None,
            miss_send_bytes: None,
            queue_messages: None,
            loads: Vec::new(),
            fits: Vec::new(),
            not_measured: Vec::new(),
            incomplete: None,
            next_flow: 1,
        }
    }

    /// Flows that no earlier phase used: a rule of an earlier one may still be on its way out of the data plane. After 16 million, they
    /// begin again.
    pub fn take_flows(&mut self, width: Width, count: usize) -> Vec<TestFlow> {
        let count = u32::try_from(count).unwrap_or(FLOWS_MAX).min(FLOWS_MAX - 1);
        if self.next_flow + count > FLOWS_MAX {
            self.next_flow = 1;
        }
        let first = self.next_flow;
        self.next_flow += count;
        (first..first + count).map(|number| TestFlow { width, number }).collect()
    }

    /// The service of a type.
    pub fn service(&mut self, message: MessageType) -> &mut ServiceFound {
        self.services.entry(message).or_default()
    }

    /// The median delay of the idle switch, in µs.
    pub fn idle_us(&self, message: MessageType) -> Option<f64> {
        crate::samples::median(&self.services.get(&message)?.idle_us)
    }

    /// The mean delay of the idle switch, in µs; 0 if it is not known.
    pub fn idle_mean_us(&self, message: MessageType) -> f64 {
        let idle = self.services.get(&message).and_then(|service| crate::samples::moments(&service.idle_us));
        idle.map_or(0.0, |(mean, _)| mean)
    }

    /// Whether an add of the same priority costs the same in an empty table and in a fuller one, as far as is known.
    pub fn is_add_constant(&self) -> bool {
        let points = self.orders.get(&Order::Same).filter(|points| !points.is_empty());
        points.is_none_or(|points| {
            let jitters = self.latest_us() > 0.0;
            curve(points, 0.0, jitters, self.point_error_us(Order::Same, points)).as_constant().is_some()
        })
    }

    /// The standard error of a point of an order's cost, in µs, from how far single adds differ. `None`: it is not known, because rules are
    /// late by delays of their own.
    pub fn point_error_us(&self, order: Order, points: &[(f64, f64)]) -> Option<f64> {
        let single = self.services.get(&MessageType::Add).filter(|_| self.latest_us() <= 0.0);
        let (_, deviation) = crate::samples::moments(&single?.idle_us)?;
        // The first point is in the middle of the first part of a filling.
        let adds = 2.0 * points.first()?.0 * f64::from(self.fillings.get(&order).copied().unwrap_or(1));
        Some(deviation / adds.max(1.0).sqrt())
    }

    /// The longest time by which a rule was later than its barrier reply, in µs.
    pub fn latest_us(&self) -> f64 {
        self.late_us.iter().copied().fold(0.0, f64::max)
    }

    /// The time from one rule in the data plane to the next, or a guess before it is measured.
    pub fn add_us(&self) -> f64 {
        self.add_plane_us.or(self.add_cpu_us).unwrap_or(50_000.0)
    }

    /// Whether the CPU waits for the hardware: then it needs as long for an add as the data plane does.
    pub fn cpu_waits(&self) -> bool {
        match (self.add_cpu_us, self.add_plane_us) {
            (Some(cpu), Some(plane)) => cpu >= 0.95 * plane,
            _ => true,
        }
    }

    /// Whether a frame with this transit was forwarded by software.
    pub fn is_software(&self, transit_ns: u64) -> bool {
        crate::samples::us(transit_ns) > self.software_above_us
    }

    /// Notes that something was not measured.
    pub fn leave_out(&mut self, what: &str, why: impl Into<String>) {
        self.not_measured.push(NotMeasured { what: what.to_owned(), why: why.into() });
    }

    /// A quantile table of these delays; its fit is noted under this name.
    pub fn table(&mut self, what: &str, samples_us: &[f64]) -> Quantiles {
        let Some(fitted) = crate::samples::fitted(samples_us) else { return Quantiles::default() };
        let samples = u32::try_from(fitted.held_back).unwrap_or(u32::MAX);
        self.fits.push(Fit {
            what: what.to_owned(),
            samples,
            ks: fitted.ks,
            ks_limit: fitted.ks_limit.min(1.0),
        });
        fitted.table
    }
}

/// How far the ends of a cost that counts as constant may lie apart.
const CONSTANT_SHARE: f64 = 0.03;
/// The same, for rules that are late by delays of their own.
const JITTER_SHARE: f64 = 0.3;
/// How far points may lie from a straight line that describes them.
const STRAIGHT_SHARE: f64 = 0.08;
/// How many standard errors a slope must have to be one.
const ERRORS: f64 = 4.0;
/// How far the known error of a point may be from what the points themselves show. Few points can lie near a line by chance, or far from
/// it: then the known error is better. Far beyond, it is the error of something else.
const KNOWN_ERROR: (f64, f64) = (0.5, 3.0);

/// The cost by occupancy, from points in the middle of parts of a filling. It is a constant if the points show no slope, and a straight
/// line up to the full table if they are near one. Otherwise it is the points themselves, with their ends drawn out. `known_error_us`: the
/// standard error of a point.
pub fn curve(points: &[(f64, f64)], entries: f64, jitters: bool, known_error_us: Option<f64>) -> Curve {
    let Some((first, last)) = points.first().zip(points.last()) else { return Curve::default() };
    let count = points.len() as f64;
    let mean = points.iter().map(|point| point.1).sum::<f64>() / count;
    let middle = points.iter().map(|point| point.0).sum::<f64>() / count;
    let Some(slope) = crate::samples::slope(points).filter(|_| points.len() > 2) else {
        return Curve::constant(mean);
    };
    let line = |rules: f64| mean + (rules - middle) * slope;
    let spread: f64 = points.iter().map(|point| (point.0 - middle).powi(2)).sum();
    let apart = points.iter().map(|point| (point.1 - line(point.0)).powi(2)).sum::<f64>() / (count - 2.0);
    let rise = (slope * (last.0 - first.0)).abs();
    let seen_us = apart.sqrt();
    let error_us =
        known_error_us.map_or(seen_us, |us| us.clamp(KNOWN_ERROR.0 * seen_us, KNOWN_ERROR.1 * seen_us));
    let error = error_us / spread.sqrt() * (last.0 - first.0);
    let share = if jitters { JITTER_SHARE } else { CONSTANT_SHARE };
    if rise < (share * mean).max(ERRORS * error) && apart.sqrt() < 2.0 * STRAIGHT_SHARE * mean {
        return Curve::constant(mean);
    }
    let end = entries.max(last.0);
    let straight = apart.sqrt() < STRAIGHT_SHARE * mean;
    if straight {
        return Curve::new(&[(0.0, line(0.0).max(0.0)), (end, line(end).max(0.0))]).unwrap_or_default();
    }
    let beyond = |rules: f64, near: &(f64, f64), far: &(f64, f64)| {
        let rise = (near.1 - far.1) / (near.0 - far.0);
        (rules, (near.1 + (rules - near.0) * rise).max(0.0))
    };
    let mut whole = vec![beyond(0.0, first, &points[1])];
    whole.extend(points.iter().filter(|(rules, _)| *rules > 0.0));
    if entries > last.0 + 1.0 {
        whole.push(beyond(entries, last, &points[points.len() - 2]));
    }
    Curve::new(&whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a cost with a relative error that changes its sign.
    fn points(cost: impl Fn(f64) -> f64, error: f64) -> Vec<(f64, f64)> {
        let signs = [1.0, -1.0, 0.4, -0.8, 1.0, 0.1, -0.9, 0.3];
        signs
            .iter()
            .zip(0u8..)
            .map(|(sign, at)| {
                let rules = 50.0 + 100.0 * f64::from(at);
                (rules, cost(rules) * (1.0 + sign * error))
            })
            .collect()
    }

    #[test]
    fn a_cost_that_only_jitters_is_constant() {
        let curve = curve(&points(|_| 1000.0, 0.05), 900.0, false, None);
        assert!((curve.as_constant().unwrap() - 1000.0).abs() < 20.0);
    }

    /// Eight points that lie near a rising line by chance, and eight that lie far from theirs.
    #[test]
    fn the_known_error_of_a_point_decides_where_few_points_mislead() {
        let near = points(|rules| 1000.0 + 0.1 * rules, 0.01);
        let far = points(|rules| 1000.0 + 0.2 * rules, 0.04);
        let is_constant =
            |points: &[(f64, f64)], known| curve(points, 900.0, false, known).as_constant().is_some();
        assert_eq!((is_constant(&near, None), is_constant(&near, Some(25.0))), (false, true));
        assert_eq!((is_constant(&far, None), is_constant(&far, Some(20.0))), (true, false));
    }

    #[test]
    fn a_cost_that_rises_is_a_line_up_to_the_full_table() {
        let curve = curve(&points(|rules| 1000.0 + 2.0 * rules, 0.02), 900.0, false, None);
        assert!(
            (curve.at(0.0) / 1000.0 - 1.0).abs() < 0.03 && (curve.at(900.0) / 2800.0 - 1.0).abs() < 0.03,
            "{curve:?}"
        );
    }

    #[test]
    fn a_cost_that_jumps_keeps_its_points() {
        let curve =
            curve(&points(|rules| if rules < 500.0 { 100.0 } else { 5000.0 }, 0.0), 900.0, false, None);
        assert!(curve.at(200.0) < 110.0 && curve.at(700.0) > 4900.0, "{curve:?}");
    }
}
