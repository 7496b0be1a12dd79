//! The compiler: from what is wanted to paths.
//!
//! ```text
//!   Wanted ──ends──> ports ──constraints──> a search of the graph ──> Plan, or the reason why there is none
//! ```
//!
//! In: an intent, the network, and its earlier plan. Out: a plan, or why not. It reserves nothing and changes no intent. A plan that still
//! serves is kept.

use crate::network::Network;
use crate::plan::{Leg, Plan};
use flow::DatapathId;
use graph::{Disjoint, Found, LinkNo, LinkSlot, MetricNo, SwitchNo};
use view::{ConnectPoint, Constraints, Ends, LinkState, Protection, Wanted};

/// Why an intent has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It can have one when the network changes. A sentence that begins with the field.
    NotNow(String),
    /// It cannot have one as it is.
    Never(String),
    /// Another intent of the same priority wants some of the same packets.
    Rival(u64),
}

fn not_now<T>(why: String) -> Result<T, WhyNot> {
    Err(WhyNot::NotNow(why))
}

/// What a compilation is about.
pub struct Task<'t> {
    /// The intent's number: it chooses among equal paths.
    pub id: u64,
    /// What is wanted.
    pub wanted: &'t Wanted,
    /// Its paths so far, if they are for the same wish.
    pub earlier: Option<&'t Plan>,
    /// The time.
    pub now_ms: u64,
}

/// Two ends, as ports and as switches of the graph.
#[derive(Clone, Copy)]
struct Way {
    from: ConnectPoint,
    to: ConnectPoint,
    switches: (SwitchNo, SwitchNo),
}

/// Compiles an intent.
///
/// # Errors
/// The reason why it has no plan.
pub fn compile(task: &Task<'_>, network: &mut Network) -> Result<Plan, WhyNot> {
    let metric = network.graph.metric(&task.wanted.constraints.weight).ok_or_else(|| {
        WhyNot::Never("constraints.weight: too many annotations are used as weights".to_owned())
    })?;
    let compiler = Compiler { task, metric };
    match &task.wanted.ends {
        Ends::HostToHost { one, two } => {
            let place = |field: &str, id| match network.host(id) {
                Some(at) => Ok(at),
                None => not_now(format!("{field}: the host {id} is not known")),
            };
            let (one, two) = (place("one", *one)?, place("two", *two)?);
            compiler.both_ways(network, one, two)
        }
        Ends::PointToPoint { from, to } => compiler.one_way(network, *from, *to),
        Ends::Explicit { from, to, links } => compiler.explicit(network, *from, *to, links),
        Ends::MultiToSingle { from, to } => compiler.gather(network, from, *to),
        Ends::SingleToMulti { from, to } => compiler.scatter(network, *from, to),
    }
}

struct Compiler<'c> {
    task: &'c Task<'c>,
    metric: MetricNo,
}

/// Which links a search may use.
struct Filter<'f> {
    constraints: &'f Constraints,
    /// Links of the intent's own plan, whose reservation is its own.
    own: Vec<LinkNo>,
    /// Switches whose tables are full.
    full: Vec<DatapathId>,
}

impl Filter<'_> {
    fn allows(&self, link: LinkNo, slot: &LinkSlot) -> bool {
        let Constraints { bandwidth_kbps, avoid_switches, avoid_links, .. } = self.constraints;
        let ends = [slot.id.from.switch, slot.id.to.switch];
        slot.is_up
            && !avoid_links.contains(&slot.id)
            && !ends.iter().any(|end| avoid_switches.contains(end) || self.full.contains(end))
            && (*bandwidth_kbps == 0 || self.has_room(link, slot, *bandwidth_kbps))
    }

    fn has_room(&self, link: LinkNo, slot: &LinkSlot, kbps: u64) -> bool {
        let own = if self.own.contains(&link) { kbps } else { 0 };
        slot.free_kbps().is_some_and(|free| free.saturating_add(own) >= kbps)
    }
}

impl Compiler<'_> {
    fn filter(&self, network: &Network) -> Filter<'_> {
        let constraints = &self.task.wanted.constraints;
        let own = match constraints.bandwidth_kbps {
            0 => Vec::new(),
            _ => self.task.earlier.map(|plan| plan.links().collect()).unwrap_or_default(),
        };
        let is_full = |id: &DatapathId| network.is_full(*id, self.task.now_ms);
        let full = match network.has_full(self.task.now_ms) {
            true => {
                let topology = network.graph.topology();
                let all = (0..topology.switches() as u32).map(|number| topology.switch_id(SwitchNo(number)));
                all.filter(is_full).collect()
            }
            false => Vec::new(),
        };
        Filter { constraints, own, full }
    }

    /// Whether no link is excluded, so that the trees have the answer.
    fn is_free(&self, network: &Network) -> bool {
        let Constraints { bandwidth_kbps, latency_us_max, via, avoid_switches, avoid_links, weight: _ } =
            &self.task.wanted.constraints;
        (*bandwidth_kbps, *latency_us_max) == (0, None)
            && via.is_empty()
            && avoid_switches.is_empty()
            && avoid_links.is_empty()
            && !network.has_full(self.task.now_ms)
    }

    fn way(&self, network: &Network, from: ConnectPoint, to: ConnectPoint) -> Result<Way, WhyNot> {
        let avoided = &self.task.wanted.constraints.avoid_switches;
        let end = |field: &str, id: DatapathId| match network.switch(id) {
            None => not_now(format!("{field}: the switch {id} is not known")),
            Some((_, facts)) if !facts.is_up => not_now(format!("{field}: the switch {id} is not connected")),
            Some(_) if avoided.contains(&id) => {
                Err(WhyNot::Never(format!("constraints.avoid_switches: {id} is an end of the intent")))
            }
            Some(_) if network.is_full(id, self.task.now_ms) => {
                Err(WhyNot::Never(format!("{field}: the table of the switch {id} is full")))
            }
            Some((number, _)) => Ok(number),
        };
        Ok(Way { from, to, switches: (end("from", from.switch)?, end("to", to.switch)?) })
    }

    fn one_way(&self, network: &mut Network, from: ConnectPoint, to: ConnectPoint) -> Result<Plan, WhyNot> {
        let way = self.way(network, from, to)?;
        let (mut legs, lacks) = self.legs(network, 0, way)?;
        legs.shrink_to_fit();
        Ok(Plan { legs, lacks })
    }

    fn both_ways(&self, network: &mut Network, one: ConnectPoint, two: ConnectPoint) -> Result<Plan, WhyNot> {
        if one == two {
            return not_now(format!("two: both hosts are at {one}, so their packets need no path"));
        }
        let there = self.way(network, one, two)?;
        let back = Way { from: two, to: one, switches: (there.switches.1, there.switches.0) };
        let (mut legs, lacks) = self.legs(network, 0, there)?;
        let filter = self.filter(network);
        let may = |network: &Network, links: &[LinkNo]| {
            links.iter().all(|link| filter.allows(*link, network.graph.topology().slot(*link)))
        };
        // The same cables back, if they carry frames that way.
        let mirrored: Option<Vec<Leg>> = legs
            .iter()
            .map(|leg| {
                let links = network.reversed(&leg.links).filter(|links| may(network, links))?;
                Some(Leg { number: 1, backup: leg.backup, from: two, to: one, links })
            })
            .collect();
        match mirrored {
            Some(mirrored) => legs.extend(mirrored),
            None => legs.extend(self.legs(network, 1, back)?.0),
        }
        Ok(Plan { legs, lacks })
    }

    /// The path of a way and its backup, if it has one; and what is missing.
    fn legs(
        &self,
        network: &mut Network,
        number: u16,
        way: Way,
    ) -> Result<(Vec<Leg>, Option<String>), WhyNot> {
        let leg = |links, backup| Leg { number, backup, from: way.from, to: way.to, links };
        if self.task.wanted.protection == Protection::Protected && way.from.switch != way.to.switch {
            match self.protected(network, way)? {
                Ok([working, backup]) => return Ok((vec![leg(working, false), leg(backup, true)], None)),
                Err(lacks) => return Ok((vec![leg(self.path(network, number, way)?, false)], Some(lacks))),
            }
        }
        Ok((vec![leg(self.path(network, number, way)?, false)], None))
    }

    fn path(&self, network: &mut Network, number: u16, way: Way) -> Result<Vec<LinkNo>, WhyNot> {
        if let Some(kept) = self.kept(network, number, way) {
            return Ok(kept);
        }
        let mut links = Vec::with_capacity(8);
        if self.is_free(network) {
            return match network.graph.path(
                self.metric,
                way.switches.0,
                way.switches.1,
                self.task.id,
                &mut links,
            ) {
                true => Ok(links),
                false => self.no_path(network, way),
            };
        }
        let via = &self.task.wanted.constraints.via;
        match via.is_empty() {
            true => self.segment(network, way.switches, way, &mut links)?,
            false => self.through(network, via, way, &mut links)?,
        }
        Ok(links)
    }

    /// The earlier path, if it serves as it did.
    fn kept(&self, network: &Network, number: u16, way: Way) -> Option<Vec<LinkNo>> {
        let legs = &self.task.earlier?.legs;
        let leg = legs.iter().find(|leg| leg.number == number && !leg.backup)?;
        let filter = self.filter(network);
        let topology = network.graph.topology();
        let serves = leg.from == way.from
            && leg.to == way.to
            && leg.links.iter().all(|link| filter.allows(*link, topology.slot(*link)))
            && self.is_fast_enough(network, &leg.links);
        serves.then(|| leg.links.clone())
    }

    fn is_fast_enough(&self, network: &Network, links: &[LinkNo]) -> bool {
        match self.task.wanted.constraints.latency_us_max {
            None => true,
            Some(max_us) => network.graph.latency_us(links).is_some_and(|latency_us| latency_us <= max_us),
        }
    }

    /// One search from a switch to another.
    fn segment(
        &self,
        network: &mut Network,
        ends: (SwitchNo, SwitchNo),
        way: Way,
        links: &mut Vec<LinkNo>,
    ) -> Result<(), WhyNot> {
        let filter = self.filter(network);
        let taken = links.clone();
        let usable = |link, slot: &LinkSlot| filter.allows(link, slot) && !taken.contains(&link);
        match self.task.wanted.constraints.latency_us_max {
            None => match network.graph.constrained(self.metric, ends, self.task.id, usable, links) {
                true => Ok(()),
                false => self.no_path(network, way),
            },
            Some(max_us) => {
                let spent_us = network.graph.latency_us(&taken).unwrap_or(0);
                let left_us = max_us.saturating_sub(spent_us);
                match network.graph.within_latency(self.metric, ends, left_us, self.task.id, usable, links) {
                    Found::Path => Ok(()),
                    Found::TooSlow(least_us) => not_now(format!(
                        "constraints.latency_us_max: the fastest path takes {} us",
                        spent_us + least_us
                    )),
                    Found::None => self.no_path(network, way),
                }
            }
        }
    }

    /// The searches between way-points. No link is used twice, so no rule has two outputs.
    fn through(
        &self,
        network: &mut Network,
        via: &[DatapathId],
        way: Way,
        links: &mut Vec<LinkNo>,
    ) -> Result<(), WhyNot> {
        let mut at = way.switches.0;
        for id in via {
            let Some((next, _)) = network.switch(*id) else {
                return not_now(format!("constraints.via: the switch {id} is not known"));
            };
            self.segment(network, (at, next), way, links)?;
            at = next;
        }
        self.segment(network, (at, way.switches.1), way, links)
    }

    /// Two disjoint paths over switches with groups. The inner error: there is a path, but no protection.
    fn protected(&self, network: &Network, way: Way) -> Result<Result<[Vec<LinkNo>; 2], String>, WhyNot> {
        let filter = self.filter(network);
        let has_groups = |slot: &LinkSlot| {
            let has = |id| network.switch(id).is_some_and(|(_, facts)| facts.has_groups);
            has(slot.id.from.switch) && has(slot.id.to.switch)
        };
        let two = |what, all_versions: bool| {
            let usable =
                |link, slot: &LinkSlot| filter.allows(link, slot) && (all_versions || has_groups(slot));
            let mut found = network.graph.disjoint(self.metric, way.switches, 2, what, usable);
            match (found.pop(), found.pop()) {
                (Some(backup), Some(working)) => Some([working, backup]),
                _ => None,
            }
        };
        let found = two(Disjoint::Switches, false).or_else(|| two(Disjoint::Links, false));
        match found {
            Some(pair) if pair.iter().all(|links| self.is_fast_enough(network, links)) => Ok(Ok(pair)),
            Some(_) => Ok(Err("protection: no two disjoint paths are within the latency".to_owned())),
            None if two(Disjoint::Links, true).is_some() => Err(WhyNot::Never(
                "protection: all disjoint paths lead through switches with OpenFlow 1.0, which has no fast-failover groups"
                    .to_owned(),
            )),
            None => Ok(Err("protection: there are no two disjoint paths now".to_owned())),
        }
    }

    fn explicit(
        &self,
        network: &Network,
        from: ConnectPoint,
        to: ConnectPoint,
        ids: &[view::LinkId],
    ) -> Result<Plan, WhyNot> {
        self.way(network, from, to)?;
        let filter = self.filter(network);
        let topology = network.graph.topology();
        let mut links = Vec::with_capacity(ids.len());
        for (number, id) in ids.iter().enumerate() {
            let Some(link) = topology.link(*id) else {
                return not_now(format!("links[{number}]: the link {id} is not known"));
            };
            if !topology.slot(link).is_up {
                return not_now(format!("links[{number}]: the link {id} is {}", word(LinkState::Down)));
            }
            if !filter.allows(link, topology.slot(link)) {
                return not_now(format!("links[{number}]: the link {id} does not fulfil the constraints"));
            }
            links.push(link);
        }
        match self.is_fast_enough(network, &links) {
            true => Ok(Plan { legs: vec![Leg { number: 0, backup: false, from, to, links }], lacks: None }),
            false => not_now("constraints.latency_us_max: the links take longer".to_owned()),
        }
    }

    /// Paths to one end, which join and never part.
    fn gather(&self, network: &mut Network, from: &[ConnectPoint], to: ConnectPoint) -> Result<Plan, WhyNot> {
        let ways = from.iter().map(|from| self.way(network, *from, to)).collect::<Result<Vec<_>, _>>()?;
        let filter = self.filter(network);
        let Some(first) = ways.first() else { return Ok(Plan::default()) };
        network.graph.measure(self.metric, first.switches.1, |link, slot| filter.allows(link, slot));
        let mut plan = Plan::default();
        for (number, way) in (0..).zip(&ways) {
            let mut links = Vec::new();
            if !network.graph.measured(way.switches.0, self.task.id, &mut links) {
                return self.no_path(network, *way);
            }
            plan.legs.push(Leg { number, backup: false, from: way.from, to, links });
        }
        self.check_speed(network, plan)
    }

    /// Paths from one end, which part and never join: the reverse of those to it, over the same cables.
    fn scatter(
        &self,
        network: &mut Network,
        from: ConnectPoint,
        to: &[ConnectPoint],
    ) -> Result<Plan, WhyNot> {
        let ways = to.iter().map(|to| self.way(network, from, *to)).collect::<Result<Vec<_>, _>>()?;
        let filter = self.filter(network);
        let Some(first) = ways.first() else { return Ok(Plan::default()) };
        let topology = network.graph.topology();
        let allowed: Vec<bool> = topology
            .all_links()
            .map(|(link, _)| {
                let back = network.reverse(link);
                back.is_some_and(|back| filter.allows(back, topology.slot(back)))
            })
            .collect();
        network.graph.measure(self.metric, first.switches.0, |link, _| allowed[link.index()]);
        let mut plan = Plan::default();
        for (number, way) in (0..).zip(&ways) {
            let mut back = Vec::new();
            let found = network.graph.measured(way.switches.1, self.task.id, &mut back);
            let Some(links) = network.reversed(&back).filter(|_| found) else {
                return self.no_path(network, *way);
            };
            plan.legs.push(Leg { number, backup: false, from, to: way.to, links });
        }
        self.check_speed(network, plan)
    }

    fn check_speed(&self, network: &Network, plan: Plan) -> Result<Plan, WhyNot> {
        match plan.legs.iter().find(|leg| !self.is_fast_enough(network, &leg.links)) {
            None => Ok(plan),
            Some(leg) => not_now(format!(
                "constraints.latency_us_max: the path from {} to {} takes longer",
                leg.from, leg.to
            )),
        }
    }

    /// Says what stands in the way: the constraints, one after the other, or the network.
    fn no_path<T>(&self, network: &mut Network, way: Way) -> Result<T, WhyNot> {
        let (from, to) = (way.from.switch, way.to.switch);
        let free = Constraints::default();
        let constraints = &self.task.wanted.constraints;
        let full = self.filter(network).full;
        let mut reaches = |constraints: &Constraints, full: &[DatapathId]| {
            let filter = Filter { constraints, own: Vec::new(), full: full.to_vec() };
            let usable = |link, slot: &LinkSlot| filter.allows(link, slot);
            network.graph.constrained(self.metric, way.switches, 0, usable, &mut Vec::new())
        };
        if !reaches(&free, &[]) {
            return not_now(format!("no path leads from {from} to {to}"));
        }
        if let Some(switch) = full.first().filter(|_| !reaches(&free, &full)) {
            return Err(WhyNot::Never(format!(
                "the table of the switch {switch} is full, and no path avoids it"
            )));
        }
        let avoiding = Constraints { bandwidth_kbps: 0, ..constraints.clone() };
        if !reaches(&avoiding, &[]) {
            return not_now(
                "constraints.avoid_switches, constraints.avoid_links: no path is left".to_owned(),
            );
        }
        match constraints.bandwidth_kbps {
            0 => not_now(
                "constraints.via: no path visits these switches without using a link twice".to_owned(),
            ),
            kbps => not_now(format!(
                "constraints.bandwidth_kbps: no path from {from} to {to} has {kbps} kbit/s free"
            )),
        }
    }
}

const fn word(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
    }
}
