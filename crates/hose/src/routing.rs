//! Which part of the traffic between two switches uses each link, over equal-cost paths.
//!
//! ```text
//!   graph, places ──> for each pair of places: 1 at the first, split evenly at each switch ──> by link: (from, to, share)
//! ```
//!
//! In: a graph, the switches where a slice has VNICs, which links it may use. Out: shares. A share that is no whole number is rounded up, by less than
//! one in 10^14, so that no link seems to carry less than it may. It knows no rates.

use graph::{Graph, LinkNo, LinkSlot, MetricNo, NONE, SwitchNo};
use std::collections::{BTreeMap, BinaryHeap};

/// All of the traffic of a pair: a number that can be split twice into any number of parts up to 16, and often further, without a rest.
pub const WHOLE: u64 = 720_720 * 720_720 * 1_024;

/// The maximum number of switches with VNICs of one slice. With more, shares need gigabytes.
pub const PLACES_MAX: usize = 256;

/// The part of one pair's traffic that uses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where the traffic begins, as an index of the places.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
    /// Its part, 1 to [`WHOLE`].
    pub share: u64,
}

/// No path leads from one switch to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPath {
    /// Where it would begin.
    pub from: SwitchNo,
    /// Where it would end.
    pub to: SwitchNo,
}

/// The shares of all pairs of places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// The switches with VNICs.
    pub places: Vec<SwitchNo>,
    /// By link: the parts of pairs that use it.
    pub parts: BTreeMap<LinkNo, Vec<Part>>,
}

impl Routing {
    /// The shares over all shortest paths that use these links only.
    ///
    /// # Errors
    /// Two places are not connected.
    pub fn equal_cost(
        graph: &mut Graph,
        metric: MetricNo,
        places: &[SwitchNo],
        usable: impl Fn(LinkNo, &LinkSlot) -> bool,
    ) -> Result<Routing, NoPath> {
        let mut routing = Routing { places: places.to_vec(), parts: BTreeMap::new() };
        for (to, last) in (0..).zip(places) {
            graph.measure(metric, *last, &usable);
            for (from, first) in (0..).zip(places).filter(|(from, _)| *from != to) {
                if graph.measured_distance(*first) == NONE {
                    return Err(NoPath { from: *first, to: *last });
                }
                routing.spread(graph, *first, (from, to));
            }
        }
        Ok(routing)
    }

    /// Sends the whole of a pair's traffic from its first switch to the one that was measured.
    fn spread(&mut self, graph: &Graph, first: SwitchNo, (from, to): (u32, u32)) {
        let mut shares = BTreeMap::from([(first, WHOLE)]);
        // The farthest first: all that reaches a switch is there before it goes on.
        let mut queue = BinaryHeap::from([(graph.measured_distance(first), first)]);
        while let Some((_, at)) = queue.pop() {
            let next = graph.measured_next_hops(at);
            // Fewer than the links of a switch.
            let ways = next.count() as u64;
            let Some(share) = shares.remove(&at).filter(|_| ways > 0).map(|share| share.div_ceil(ways))
            else {
                continue;
            };
            for link in graph.measured_next_hops(at) {
                self.parts.entry(link).or_default().push(Part { from, to, share });
                let peer = graph.topology().slot(link).to;
                let arrived = shares.entry(peer).or_insert_with(|| {
                    queue.push((graph.measured_distance(peer), peer));
                    0
                });
                *arrived = arrived.saturating_add(share).min(WHOLE);
            }
        }
    }
}
