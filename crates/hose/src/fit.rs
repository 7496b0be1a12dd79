//! What would fit, if a slice does not.
//!
//! In: an admission, a request, its routing. Out: the greatest part of all rates together, and the greatest rate of each VNIC alone. It books nothing.

use crate::admission::{Admission, SliceRequest};
use crate::flow::SliceNo;
use crate::routing::Routing;
use crate::units::Bandwidth;
use graph::Topology;
use std::fmt;

/// The maximum number of VNICs that are judged alone: those with the greatest rates. Each takes some 30 judgements of the whole slice.
pub const ALONE_MAX: usize = 32;

/// What would fit. Rates are rounded down to kbit/s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The rates of all VNICs, reduced by the same factor, in the order of the request.
    pub together: Vec<(String, Bandwidth)>,
    /// If the slice does not fit: for at most [`ALONE_MAX`] VNICs, the greatest rate with which it fits if only that one changes. `None`: no rate is
    /// small enough.
    pub alone: Vec<(String, Option<Bandwidth>)>,
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.together.iter().map(|(name, rate)| format!("{name} {rate:#}")).collect();
        write!(f, "fits with {}", all.join(", "))?;
        for (name, rate) in self.alone.iter().filter_map(|(name, rate)| Some((name, (*rate)?))) {
            write!(f, "; or with {name} {rate:#} alone")?;
        }
        Ok(())
    }
}

/// What would fit of a request. `None`: it cannot be judged at all, such as with an unknown NIC.
pub fn fit(
    admission: &Admission,
    topology: &Topology,
    slice: SliceNo,
    request: &SliceRequest,
    routing: Option<&Routing>,
) -> Option<Fit> {
    let judge = |request: &SliceRequest| admission.judge(topology, slice, request, routing).is_ok();
    let (part, whole) = greatest_part(admission, topology, slice, request, routing)?;
    let reduced = |rate: Bandwidth| {
        // At most the rate.
        let bps = u128::from(rate.bps()) * u128::from(part) / u128::from(whole);
        Bandwidth::from_kbps(Bandwidth::from_bps(bps as u64).kbps())
    };
    let together = request.vnics.iter().map(|vnic| (vnic.name.clone(), reduced(vnic.rate))).collect();
    let mut alone = Vec::new();
    if !judge(request) {
        for place in greatest_rates(request) {
            let rate = greatest_alone(request, place, judge);
            alone.push((request.vnics[place].name.clone(), rate));
        }
    }
    Some(Fit { together, alone })
}

/// The least of what is left by what is needed, over all NICs and links, as a fraction of at most 1. The worst traffic grows in proportion to the rates.
fn greatest_part(
    admission: &Admission,
    topology: &Topology,
    slice: SliceNo,
    request: &SliceRequest,
    routing: Option<&Routing>,
) -> Option<(u64, u64)> {
    let demand = admission.demand(slice, request, routing).ok()?;
    let nics = demand.nics.iter().map(|(nic, bps)| (admission.nic_left(slice, *nic).bps(), *bps));
    let links = demand.links.iter().map(|(link, bps)| {
        let left = admission.link_left(topology, slice, *link).unwrap_or_default();
        (left.bps(), *bps)
    });
    let least = nics.chain(links).filter(|(left, needed)| left < needed);
    let less = |one: &(u64, u64), two: &(u64, u64)| {
        (u128::from(one.0) * u128::from(two.1)).cmp(&(u128::from(two.0) * u128::from(one.1)))
    };
    Some(least.min_by(less).unwrap_or((1, 1)))
}

/// The VNICs with the greatest rates, in the order of the request.
fn greatest_rates(request: &SliceRequest) -> Vec<usize> {
    let mut places: Vec<usize> = (0..request.vnics.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(request.vnics[*place].rate));
    places.truncate(ALONE_MAX);
    places.sort_unstable();
    places
}

/// The greatest rate of one VNIC, found by halving: if a rate fits, so do all lower ones.
fn greatest_alone(
    request: &SliceRequest,
    place: usize,
    fits: impl Fn(&SliceRequest) -> bool,
) -> Option<Bandwidth> {
    let with = |kbps: u64| {
        let mut changed = request.clone();
        changed.vnics[place].rate = Bandwidth::from_kbps(kbps);
        fits(&changed)
    };
    if !with(0) {
        return None;
    }
    // The first fits, the second does not.
    let (mut low_kbps, mut high_kbps) = (0, request.vnics[place].rate.kbps() + 1);
    while high_kbps - low_kbps > 1 {
        let middle_kbps = low_kbps + (high_kbps - low_kbps) / 2;
        if with(middle_kbps) {
            low_kbps = middle_kbps;
        } else {
            high_kbps = middle_kbps;
        }
    }
    Some(Bandwidth::from_kbps(low_kbps))
}
