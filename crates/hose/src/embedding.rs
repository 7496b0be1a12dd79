//! Embedding: the switches and links of a slice that names only its VNICs.
//!
//! ```text
//!   all shortest paths ──lacks a link──> the same without that link, … ──> trees, from each switch on ──> the first that is admitted
//! ```
//!
//! Each attempt is judged by the admission. On a tree each pair has one path, and a link carries the lesser of both sides' sums. So a tree
//! often fits where equal-cost paths meet at a link that has little left.
//!
//! In: a graph, an admission, a request. Out: links and switches, with all attempts as an explanation. The same network and request give the same result.
//! It books nothing.

use crate::admission::{Admission, Booking, Checks, Lack, NotAdmitted, SliceRequest};
use crate::flow::SliceNo;
use crate::routing::{NoPath, PLACES_MAX, Routing};
use graph::{Graph, LinkNo, LinkSlot, MetricNo, NONE, SwitchNo, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The maximum number of links that are avoided one by one.
const AVOIDED_MAX: usize = 32;

/// The maximum number of switches from which trees are tried: those nearest to the VNICs.
const ROOTS_MAX: usize = 32;

/// What an attempt used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ways {
    /// All shortest paths.
    Shortest,
    /// All shortest paths that avoid these links, by name.
    Without(Vec<String>),
    /// A tree of shortest paths to this switch, by name.
    Tree(String),
}

/// An attempt, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What it used.
    pub ways: Ways,
    /// `None`: it fits.
    pub lack: Option<Lack>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ways {
            Ways::Shortest => write!(f, "all shortest paths: ")?,
            Ways::Without(links) => write!(f, "shortest paths without {}: ", links.join(", "))?,
            Ways::Tree(switch) => write!(f, "a tree to switch {switch}: ")?,
        }
        match &self.lack {
            Some(lack) => write!(f, "{lack}"),
            None => write!(f, "fits"),
        }
    }
}

/// The part of the network that a slice gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Its switches, in the order of their ids.
    pub switches: Vec<SwitchNo>,
    /// Its links, each direction by itself, in the order of their ids.
    pub links: Vec<LinkNo>,
    /// How its traffic is spread.
    pub routing: Routing,
    /// What it needs. It is not booked yet.
    pub booking: Booking,
    /// What was tried, in this order. The last fits.
    pub attempts: Vec<Attempt>,
}

/// No attempt fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEmbedded {
    /// Why the first attempt failed, which used all shortest paths.
    pub refusal: NotAdmitted,
    /// What was tried.
    pub attempts: Vec<Attempt>,
}

impl fmt::Display for NotEmbedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.refusal)?;
        match self.attempts.len() {
            0 | 1 => Ok(()),
            tried => write!(f, " ({tried} ways tried)"),
        }
    }
}

impl std::error::Error for NotEmbedded {}

/// The links of one attempt that may be used.
type May<'m> = &'m dyn Fn(LinkNo, &LinkSlot) -> bool;

struct Attempts<'a> {
    graph: &'a mut Graph,
    metric: MetricNo,
    admission: &'a Admission,
    slice: SliceNo,
    request: &'a SliceRequest,
    checks: Checks,
    places: Vec<SwitchNo>,
    tried: Vec<Attempt>,
}

/// Chooses switches and links for a slice.
///
/// # Errors
/// No attempt is admitted. If a NIC is lacking, only one is made.
pub fn embed(
    (graph, metric): (&mut Graph, MetricNo),
    admission: &Admission,
    slice: SliceNo,
    request: &SliceRequest,
    checks: Checks,
) -> Result<Embedding, NotEmbedded> {
    let places = admission.places(graph.topology(), request);
    let tried = Vec::new();
    let mut attempts = Attempts { graph, metric, admission, slice, request, checks, places, tried };
    let found = attempts.shortest().or_else(|_| attempts.trees());
    match found {
        Ok((routing, booking)) => Ok(embedding(attempts.graph.topology(), routing, booking, attempts.tried)),
        Err(lack) => {
            let first = attempts.tried.first().and_then(|attempt| attempt.lack.clone());
            let refusal = NotAdmitted { slice: request.name.clone(), lack: first.unwrap_or(lack) };
            Err(NotEmbedded { refusal, attempts: attempts.tried })
        }
    }
}

fn embedding(topology: &Topology, routing: Routing, booking: Booking, attempts: Vec<Attempt>) -> Embedding {
    let mut links: Vec<_> = routing.parts.keys().copied().collect();
    links.sort_unstable_by_key(|link| topology.slot(*link).id);
    let ends = links.iter().map(|link| topology.slot(*link)).flat_map(|slot| [slot.from, slot.to]);
    let switches: BTreeMap<_, _> =
        ends.chain(routing.places.iter().copied()).map(|it| (topology.switch_id(it), it)).collect();
    Embedding { switches: switches.into_values().collect(), links, routing, booking, attempts }
}

/// What an attempt gives.
type Tried = Result<(Routing, Booking), Lack>;

impl Attempts<'_> {
    fn attempt(&mut self, ways: Ways, may: May<'_>) -> Tried {
        let result = self.judged(may);
        self.tried.push(Attempt { ways, lack: result.as_ref().err().cloned() });
        result
    }

    fn judged(&mut self, may: May<'_>) -> Tried {
        if self.places.len() > PLACES_MAX {
            return Err(Lack::TooManyPlaces(self.places.len()));
        }
        let Attempts { graph, metric, admission, slice, request, .. } = self;
        let routing = Routing::equal_cost(graph, *metric, &self.places, may);
        let topology = graph.topology();
        // NICs first: without them, no other path is of use.
        let edge = admission.judge(topology, *slice, request, None).map_err(|refused| refused.lack)?;
        let routing = routing.map_err(|NoPath { from, to }| Lack::NoPath {
            from: topology.switch_id(from).to_string(),
            to: topology.switch_id(to).to_string(),
        })?;
        if self.checks == Checks::Edge {
            return Ok((routing, edge));
        }
        let judged = admission.judge(topology, *slice, request, Some(&routing));
        judged.map(|booking| (routing, booking)).map_err(|refused| refused.lack)
    }

    /// All shortest paths, then those without each link that was lacking.
    fn shortest(&mut self) -> Tried {
        let mut avoided = BTreeSet::new();
        loop {
            let ways = if avoided.is_empty() { Ways::Shortest } else { Ways::Without(self.names(&avoided)) };
            let result = self.attempt(ways, &|link, _| !avoided.contains(&link));
            let Err(Lack::Link { link, .. } | Lack::UnknownCapacity { link, .. }) = &result else {
                return result;
            };
            if avoided.len() >= AVOIDED_MAX || !avoided.insert(*link) {
                return result;
            }
        }
    }

    fn names(&self, links: &BTreeSet<LinkNo>) -> Vec<String> {
        let topology = self.graph.topology();
        links.iter().map(|link| topology.slot(*link).id.to_string()).collect()
    }

    /// Trees, over links with something left. Those to the switches nearest to all VNICs first.
    fn trees(&mut self) -> Tried {
        let last = self.tried.last().and_then(|attempt| attempt.lack.clone());
        let is_of_links = |lack: &Lack| {
            matches!(lack, Lack::Link { .. } | Lack::UnknownCapacity { .. } | Lack::NoPath { .. })
        };
        let mut result = match last {
            Some(lack) if is_of_links(&lack) && self.checks == Checks::Fabric => Err(lack),
            Some(lack) => return Err(lack),
            None => return Err(Lack::TooManyPlaces(0)),
        };
        let back = self.cables_with_room();
        for root in self.roots() {
            let Some(tree) = self.tree(root, &back) else { continue };
            let name = self.graph.topology().switch_id(root).to_string();
            result = self.attempt(Ways::Tree(name), &|link, _| tree.contains(&link));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn roots(&mut self) -> Vec<SwitchNo> {
        let mut roots = Vec::new();
        for root in (0..).map(SwitchNo).take(self.graph.topology().switches()) {
            let distances = self.places.iter().map(|place| self.graph.distance(self.metric, root, *place));
            let sum = distances.fold(0_u64, |sum, distance| match distance {
                NONE => u64::MAX,
                distance => sum.saturating_add(u64::from(distance)),
            });
            if sum < u64::MAX {
                roots.push((sum, self.graph.topology().switch_id(root), root));
            }
        }
        roots.sort_unstable();
        roots.truncate(ROOTS_MAX);
        roots.into_iter().map(|(_, _, root)| root).collect()
    }

    /// The links that have something left in both directions, each with its other direction.
    fn cables_with_room(&self) -> BTreeMap<LinkNo, LinkNo> {
        let topology = self.graph.topology();
        let has_room = |link| {
            let left = self.admission.link_left(topology, self.slice, link);
            topology.slot(link).is_up && left.is_some_and(|left| left.bps() > 0)
        };
        let cables = topology.all_links().filter_map(|(link, slot)| {
            let back = topology.link(slot.id.reversed())?;
            (has_room(link) && has_room(back)).then_some((link, back))
        });
        cables.collect()
    }

    /// The links of a tree to a switch, both directions. `None`: it does not reach all places.
    fn tree(&mut self, root: SwitchNo, back: &BTreeMap<LinkNo, LinkNo>) -> Option<BTreeSet<LinkNo>> {
        self.graph.measure(self.metric, root, |link, _| back.contains_key(&link));
        let mut tree = BTreeSet::new();
        for place in &self.places {
            let mut path = Vec::new();
            // Paths with the same hash join and never part, so the links are a tree.
            if !self.graph.measured(*place, 0, &mut path) {
                return None;
            }
            tree.extend(path.iter().filter_map(|link| back.get(link)));
            tree.extend(path);
        }
        Some(tree)
    }
}
