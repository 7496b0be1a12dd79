//! Answers to questions that change nothing.
//!
//! In: questions, the engine, the stamps. Out: statuses and payloads.

use crate::engine::{Engine, Entry};
use crate::network::Network;
use crate::publish::Tables;
use graph::{Disjoint, LinkNo, LinkSlot, MetricNo, SwitchNo};
use paths_contract::{Filter, PAGE_DEFAULT, PAGE_MAX, Page, Question, WAYS_MAX, Way, Ways, status};
use view::{Constraints, Ends, IntentId, Record};

/// A refusal: a status and a sentence.
pub type Refused = (u16, String);

/// The answer to a question that changes nothing.
pub fn answer(question: &Question, engine: &mut Engine, tables: &Tables) -> Result<Vec<u8>, Refused> {
    let json = match question {
        Question::Get { id } => {
            let entry = engine.entry(*id).ok_or_else(|| no_intent(*id))?;
            return Ok(record(entry, tables).to_bytes());
        }
        Question::List { filter, after, limit } => {
            serde_json::to_vec(&page(engine, tables, filter, *after, *limit))
        }
        Question::Ways { .. } => serde_json::to_vec(&ways(question, engine.network_mut())?),
        Question::Counts => serde_json::to_vec(&engine.counts()),
        Question::Add { .. }
        | Question::AddAll { .. }
        | Question::Change { .. }
        | Question::Withdraw { .. } => Ok(Vec::new()),
    };
    // Only maps whose keys are no texts can fail.
    Ok(json.unwrap_or_default())
}

/// The refusal of a question about an unknown intent.
pub fn no_intent(id: IntentId) -> Refused {
    (status::NOT_FOUND, format!("id: there is no intent {id}"))
}

/// An intent as the stream has it.
pub fn record(entry: &Entry, tables: &Tables) -> Record {
    Record { stamp: tables.stamp(entry.kept.id.0), object: entry.to_intent().into() }
}

fn page(
    engine: &Engine,
    tables: &Tables,
    filter: &Filter,
    after: Option<IntentId>,
    limit: Option<usize>,
) -> Page {
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut found = engine.entries_after(after).filter(|entry| fits(engine, filter, entry));
    let intents: Vec<Record> = found.by_ref().take(limit).map(|entry| record(entry, tables)).collect();
    let next = found.next().and(intents.last()).and_then(|last| match last.object.key() {
        view::Key::Intent(id) => Some(id),
        _ => None,
    });
    Page { intents, next }
}

fn fits(engine: &Engine, filter: &Filter, entry: &Entry) -> bool {
    let Filter { state, owner, name, host, at, link } = filter;
    let has_host = |host| matches!(&entry.kept.wanted.ends, Ends::HostToHost { one, two } if [*one, *two].contains(&host));
    let is_at = |at| match &entry.kept.wanted.ends {
        Ends::HostToHost { one, two } => {
            [one, two].iter().any(|host| engine.network().host(**host) == Some(at))
        }
        Ends::PointToPoint { from, to } | Ends::Explicit { from, to, .. } => *from == at || *to == at,
        Ends::MultiToSingle { from, to } => from.contains(&at) || *to == at,
        Ends::SingleToMulti { from, to } => *from == at || to.contains(&at),
    };
    state.is_none_or(|state| state == entry.state)
        && owner.as_ref().is_none_or(|owner| *owner == entry.kept.owner)
        && name.as_ref().is_none_or(|name| *name == entry.kept.name)
        && host.is_none_or(has_host)
        && at.is_none_or(is_at)
        && link.is_none_or(|link| engine.uses(entry.kept.id.0, link))
}

fn ways(question: &Question, network: &mut Network) -> Result<Ways, Refused> {
    use paths_contract::Choice;
    let Question::Ways { from, to, count, choice, constraints } = question else {
        return Ok(Ways::default());
    };
    let number = |field: &str, id| match network.switch(id) {
        Some((number, _)) => Ok(number),
        None => Err((status::NO_WAY, format!("{field}: the switch {id} is not known"))),
    };
    let ends: (SwitchNo, SwitchNo) = (number("from", *from)?, number("to", *to)?);
    let Some(metric) = network.graph.metric(&constraints.weight) else {
        return Err((status::NO_WAY, "constraints.weight: too many annotations are used".to_owned()));
    };
    let count = (*count).clamp(1, WAYS_MAX);
    let allowed = allowed(constraints, network);
    let usable = |link: LinkNo, _: &LinkSlot| allowed[link.index()];
    let found = match choice {
        _ if ends.0 == ends.1 => vec![Vec::new()],
        Choice::LinkDisjoint => network.graph.disjoint(metric, ends, count.into(), Disjoint::Links, usable),
        Choice::SwitchDisjoint => {
            network.graph.disjoint(metric, ends, count.into(), Disjoint::Switches, usable)
        }
        Choice::Equal
            if allowed.iter().all(|is_allowed| *is_allowed) && constraints.latency_us_max.is_none() =>
        {
            network.graph.equal_paths(metric, ends.0, ends.1, count.into())
        }
        Choice::Equal => {
            let mut links = Vec::new();
            let max_us = constraints.latency_us_max;
            let is_found = match max_us {
                None => network.graph.constrained(metric, ends, 0, usable, &mut links),
                Some(max_us) => {
                    let found = network.graph.within_latency(metric, ends, max_us, 0, usable, &mut links);
                    found == graph::Found::Path
                }
            };
            is_found.then_some(links).into_iter().collect()
        }
    };
    let is_fast = |links: &Vec<LinkNo>| {
        constraints
            .latency_us_max
            .is_none_or(|max_us| network.graph.latency_us(links).is_some_and(|us| us <= max_us))
    };
    let ways: Vec<Way> =
        found.iter().filter(|links| is_fast(links)).map(|links| way(links, metric, network)).collect();
    match ways.is_empty() {
        true => Err((status::NO_WAY, format!("no path from {from} to {to} fulfils the constraints"))),
        false => Ok(Ways { ways }),
    }
}

fn allowed(constraints: &Constraints, network: &Network) -> Vec<bool> {
    let Constraints { bandwidth_kbps, avoid_switches, avoid_links, .. } = constraints;
    let allows = |slot: &LinkSlot| {
        let ends = [slot.id.from.switch, slot.id.to.switch];
        !avoid_links.contains(&slot.id)
            && !ends.iter().any(|end| avoid_switches.contains(end))
            && (*bandwidth_kbps == 0 || slot.free_kbps().is_some_and(|free| free >= *bandwidth_kbps))
    };
    network.graph.topology().all_links().map(|(_, slot)| allows(slot)).collect()
}

fn way(links: &[LinkNo], metric: MetricNo, network: &Network) -> Way {
    let topology = network.graph.topology();
    let free = links.iter().map(|link| topology.slot(*link).free_kbps());
    Way {
        links: links.iter().map(|link| topology.slot(*link).id).collect(),
        weight: links.iter().map(|link| u64::from(network.graph.cost(metric, *link))).sum(),
        latency_us: network.graph.latency_us(links),
        free_kbps: free.min().flatten(),
    }
}
