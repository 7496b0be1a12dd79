//! The flows of one VNIC: which others its packets reach by the rules of the slice, and on which paths.
//!
//! ```text
//!   all packets at the port of a VNIC ──> rules there ──> the packets of each rule at the next port ──> … ──> ports of VNICs
//! ```
//!
//! What counts as a path:
//!
//! * A path leads from the port of a VNIC to the port of another one. Each switch on it has a rule that sends packets on. The packets of a
//!   path match all of its rules, also after actions have changed them.
//! * A rule for all packets, or for many destinations, counts as any other. If it sends to several ports, there is one path for each VNIC
//!   that is reached. A group of type ALL sends to all buckets. Of the other types, the first bucket counts.
//! * A rule hides those of lower priorities if it matches all of their packets. Rules that only together hide another one do not hide it here.
//! * If different packets of two VNICs take different ways, the first counts: that of the highest priority at the first switch, then of the
//!   newest rule, then of the first output. The next switches decide likewise.
//! * Packets that come to a port of a switch twice are in a loop, and have no path. So have packets that are dropped, go to a controller,
//!   or leave by a port without a VNIC.
//! * Packets whose single source address is behind another VNIC ([`crate::homes`]) are not those of this one.
//! * Rules that match only frames for finding others are no flows: ARP, LLDP, BDDP, the broadcast address, all multicast addresses at once.
//! * Whether links are up does not matter. A link that is down carries nothing, and its label says so.
//!
//! In: hops, homes and wiring. Out: paths, and what they depend on. The result depends on nothing else. It stops after a bounded number of steps.

use crate::homes::{Address, Homes, may_count, sources, written_sources};
use crate::hops::{Hop, HopTable, Target, exact};
use crate::plan::End;
use crate::vnic::{FlowPath, PhysicalLink, Wiring};
use flow::relation::{covers, intersection, overlaps};
use flow::rewrite::rewritten;
use flow::{Field, Match};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most steps for one VNIC: rules that are compared, and outputs that are followed. Then the rest of its packets is left out.
pub(crate) const STEPS_MAX: usize = 131_072;
/// The most links of a path, as the service of labels takes them.
const LINKS_MAX: usize = 255;
/// The most packets that are remembered for one port. Above this, each change of its rules counts.
const VISITS_MAX: usize = 64;
/// The higher rules with which one is compared. A rule that a further one hides counts as though it were not hidden.
const HIDING_MAX: usize = 64;

/// What tracing needs to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    pub(crate) wiring: Wiring,
    pub(crate) hops: BTreeMap<End, HopTable>,
    pub(crate) homes: Homes,
    /// The packets of the slice that enter at the port of each VNIC.
    pub(crate) starts: BTreeMap<End, Vec<Match>>,
    /// How much is kept for one VNIC.
    pub(crate) share: Share,
}

/// How much is kept for one VNIC. All VNICs of a slice share the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Ports of other VNICs.
    pub(crate) paths: usize,
    /// Packets, and addresses, on which the paths depend.
    pub(crate) reasons: usize,
}

impl Default for Share {
    fn default() -> Share {
        Share::of(1)
    }
}

impl Share {
    /// The share of each of so many VNICs.
    pub(crate) fn of(vnics: usize) -> Share {
        /// Paths of a slice.
        const PATHS: usize = 262_144;
        /// Packets, and addresses, of a slice.
        const REASONS: usize = 65_536;
        let of = |all: usize| (all / vnics.max(1)).max(64);
        Share { paths: of(PATHS), reasons: of(REASONS) }
    }
}

/// The paths of one VNIC's port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traced {
    /// By the ports that its packets reach.
    pub(crate) paths: BTreeMap<End, FlowPath>,
    /// The packets that came to each port. `None`: too many to remember.
    pub(crate) visits: BTreeMap<End, Option<Vec<Match>>>,
    /// The addresses whose homes mattered. `None`: too many.
    pub(crate) asked: Option<BTreeSet<Address>>,
    /// Whether something was left out.
    pub(crate) is_cut: bool,
    steps: usize,
    /// Steps that rules may have added since, which changed nothing.
    drift: usize,
    reasons: usize,
}

impl Traced {
    /// Whether a rule at a port can change the paths.
    pub(crate) fn is_touched(&mut self, at: End, hop: &Hop) -> bool {
        let Some(visits) = self.visits.get(&at) else { return false };
        let Some(visits) = visits else { return true };
        let target = Target::of(&hop.matching);
        let seen = visits.iter().filter(|packets| target.may_be_of(packets));
        let (mut compared, mut meets) = (0, false);
        for packets in seen {
            compared += 1;
            meets |= overlaps(packets, &hop.matching);
        }
        // A rule that was only compared counts as a step, so it can end the tracing earlier.
        self.drift += compared;
        meets || compared > 0 && (self.is_cut || self.steps + self.drift > STEPS_MAX)
    }
}

/// Traces the packets that enter at the port of a VNIC.
pub(crate) fn trace(ground: &Ground, source: End) -> Traced {
    let out = Traced { asked: Some(BTreeSet::new()), ..Traced::default() };
    let mut walk = Walk { ground, source, out, links: Vec::new(), on_path: Vec::new() };
    for packets in ground.starts.get(&source).map_or(&[][..], Vec::as_slice) {
        walk.enter(source, packets, &BTreeSet::new());
    }
    walk.out
}

/// A walk through the slice.
struct Walk<'a> {
    ground: &'a Ground,
    source: End,
    out: Traced,
    links: Vec<PhysicalLink>,
    /// The ports by which the packets entered switches.
    on_path: Vec<End>,
}

impl Walk<'_> {
    /// Packets enter a switch.
    fn enter(&mut self, at: End, packets: &Match, rewrites: &BTreeSet<Field>) {
        if self.on_path.contains(&at) || self.links.len() > LINKS_MAX {
            return;
        }
        self.note_visit(at, packets);
        let ground = self.ground;
        let Some(table) = ground.hops.get(&at) else { return };
        self.on_path.push(at);
        let mut above = Above::default();
        for ((priority, ..), hop) in table.candidates(packets) {
            if !self.step() || above.hides_all_below(priority) {
                break;
            }
            let Some(taken) = intersection(packets, &hop.matching) else { continue };
            let is_hidden = above.hides(priority, &taken);
            above.add(priority, hop, covers(&hop.matching, packets));
            if !is_hidden && may_count(&taken) && !self.is_foreign(&taken, rewrites) {
                self.follow(hop, &taken, rewrites);
            }
        }
        self.on_path.pop();
    }

    /// Packets leave by the ways of a rule.
    fn follow(&mut self, hop: &Hop, taken: &Match, rewrites: &BTreeSet<Field>) {
        let ground = self.ground;
        let Some(here) = self.on_path.last().map(|at| at.datapath) else { return };
        for way in &hop.ways {
            if !self.step() {
                return;
            }
            let end = End { datapath: here, port: way.port };
            if let Some((peer, link)) = ground.wiring.peers.get(&end) {
                self.links.push(*link);
                if way.rewrites.is_empty() {
                    self.enter(*peer, taken, rewrites);
                } else {
                    let written = way.rewrites.iter().flat_map(written_sources);
                    let rewrites: BTreeSet<Field> = rewrites.iter().copied().chain(written).collect();
                    self.enter(*peer, &rewritten(taken, &way.rewrites), &rewrites);
                }
                self.links.pop();
            } else if ground.wiring.vnics.contains_key(&end) {
                self.arrive(end);
            }
        }
    }

    fn arrive(&mut self, end: End) {
        if self.links.len() > LINKS_MAX || self.out.paths.contains_key(&end) {
            return;
        }
        if self.out.paths.len() >= self.ground.share.paths {
            self.out.is_cut = true;
            return;
        }
        // A path has at most 256 switches.
        let path = FlowPath { links: self.links.clone(), rules: self.on_path.len() as u32 };
        self.out.paths.insert(end, path);
    }

    fn is_foreign(&mut self, packets: &Match, rewrites: &BTreeSet<Field>) -> bool {
        let mut is_foreign = false;
        for address in sources(packets, rewrites) {
            self.note_asked(address);
            is_foreign |= self.ground.homes.is_elsewhere(address, self.source);
        }
        is_foreign
    }

    fn step(&mut self) -> bool {
        self.out.steps += 1;
        let may_go_on = self.out.steps <= STEPS_MAX;
        self.out.is_cut |= !may_go_on;
        may_go_on
    }

    fn note_visit(&mut self, at: End, packets: &Match) {
        let has_room = self.out.reasons < self.ground.share.reasons;
        self.out.reasons += 1;
        let visits = self.out.visits.entry(at).or_insert_with(|| Some(Vec::new()));
        match visits {
            Some(there) if there.len() < VISITS_MAX && has_room => there.push(packets.clone()),
            _ => *visits = None,
        }
    }

    fn note_asked(&mut self, address: Address) {
        let most = self.ground.share.reasons;
        match &mut self.out.asked {
            Some(asked) if asked.len() < most => drop(asked.insert(address)),
            Some(asked) if asked.contains(&address) => {}
            asked => *asked = None,
        }
    }
}

/// The rules above one, among those that the packets can hit. Of two with one priority, either may decide, so none hides the other.
#[derive(Default)]
struct Above<'a> {
    by_target: BTreeMap<Target, Vec<(Reverse<u16>, &'a Match)>>,
    /// The priority of a rule for all of the packets.
    of_all: Option<Reverse<u16>>,
}

impl<'a> Above<'a> {
    fn add(&mut self, priority: Reverse<u16>, hop: &'a Hop, is_of_all: bool) {
        let there = self.by_target.entry(Target::of(&hop.matching)).or_default();
        if there.len() < HIDING_MAX {
            there.push((priority, &hop.matching));
        }
        if is_of_all {
            self.of_all.get_or_insert(priority);
        }
    }

    fn hides_all_below(&self, priority: Reverse<u16>) -> bool {
        self.of_all.is_some_and(|above| above < priority)
    }

    /// Whether one of them matches all of these packets. A rule for another destination does not.
    fn hides(&self, priority: Reverse<u16>, packets: &Match) -> bool {
        let ethernet = exact(packets, Field::EthDst).map(Target::Ethernet);
        let ipv4 = exact(packets, Field::Ipv4Dst).map(Target::Ipv4);
        let targets = ethernet.into_iter().chain(ipv4).chain([Target::Any]);
        let above = targets.filter_map(|target| self.by_target.get(&target)).flatten();
        let mut above = above.filter(|(there, _)| *there < priority);
        above.any(|(_, matching)| covers(matching, packets))
    }
}
