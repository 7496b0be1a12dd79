//! A part of the experiment `scale`, in a process of its own, so that its memory is its own.
//!
//! ```text
//!   experiments --part rules:1000000 ──> objects are made ──> {"bytes": …, "change_us": [ … ]}
//! ```
//!
//! In: a kind and a number. Out: a line of JSON. The memory is what Linux reports as resident and anonymous.

use super::engines::{FlowsEngine, PathsEngine};
use super::planner::{Planner, Wish};
use super::wan::detour;
use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use lab::processes::own_bytes;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use view::{
    Change, ConnectPoint, EntryState, Host, HostId, Object, Port, Rule, RuleId, Stamp, Switch, SwitchState,
    Tables,
};

/// Changes that are timed.
const TIMED: u32 = 400;

const SWITCHES: u64 = 206;
const PORTS: u32 = 48;

/// The number of rules of a path of six switches.
pub const RULES_OF_PATH: u32 = 6;

/// What a part has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Memory of all objects.
    pub bytes: u64,
    /// How many objects there are.
    pub objects: u64,
    /// The time of each of some changes.
    pub change_us: Vec<f64>,
}

/// Measures a part: `hosts:N`, `rules:N`, `wanted:N` or `intents:N`.
///
/// # Errors
/// There is no such part.
pub fn measure(part: &str) -> Result<String, String> {
    let unknown = || format!("there is no part {part:?}");
    let (kind, count) = part.split_once(':').ok_or_else(unknown)?;
    let count: u32 = count.parse().map_err(|_| unknown())?;
    let part = match kind {
        "hosts" => view_of(count, host),
        "rules" => view_of(count, rule),
        "wanted" => wanted(count)?,
        "intents" => intents(count),
        _ => return Err(unknown()),
    };
    serde_json::to_string(&part).map_err(|error| error.to_string())
}

fn memory() -> u64 {
    own_bytes(&[std::process::id()])
}

fn timed(mut change: impl FnMut(u32)) -> Vec<f64> {
    let one = |number| {
        let began = Instant::now();
        change(number);
        began.elapsed().as_secs_f64() * 1e6
    };
    (0..TIMED).map(one).collect()
}

/// The tables of the view with so many objects. A change is one object, while a reader holds the state before.
fn view_of(count: u32, make: fn(u32, u16) -> Object) -> Part {
    let (mut tables, mut sequence) = (Tables::new(), 0);
    let mut apply = |tables: &mut Tables, objects: Vec<Object>| {
        sequence += 1;
        let stamp = Stamp { term: 1, sequence, origin: 0 };
        let change = |object: Object| Change { stamp, key: object.key(), object: Some(object) };
        tables.apply(objects.into_iter().map(change).collect::<Vec<_>>())
    };
    apply(&mut tables, switches());
    let before = memory();
    for first in (0..count).step_by(1_000) {
        apply(&mut tables, (first..count.min(first + 1_000)).map(|number| make(number, 0)).collect());
    }
    let bytes = memory().saturating_sub(before);
    let change_us = timed(|number| {
        let held = tables.snapshot();
        let batch = apply(&mut tables, vec![make((number * 7_919) % count.max(1), number as u16 + 1)]);
        drop((held, batch));
    });
    Part { bytes, objects: count.into(), change_us }
}

fn switches() -> Vec<Object> {
    let switch = |id: u64| {
        let (description, annotations) = Default::default();
        let (id, state, openflow) = (DatapathId(id + 1), SwitchState::Up, "1.3".to_owned());
        Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }
            .into()
    };
    let port = |id: ConnectPoint| -> Object {
        let (mac, name) = (MacAddr::from_u64(1), format!("port{}", id.port));
        Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations: Default::default() }
            .into()
    };
    let ports = (0..SWITCHES * u64::from(PORTS)).map(|number| port(at(number as u32)));
    (0..SWITCHES).map(switch).chain(ports).collect()
}

fn at(number: u32) -> ConnectPoint {
    let switch = DatapathId(u64::from(number) % SWITCHES + 1);
    ConnectPoint { switch, port: PortNo(number / SWITCHES as u32 % PORTS + 1) }
}

fn host(number: u32, version: u16) -> Object {
    Host {
        id: HostId { mac: MacAddr::from_u64(0x0200_0000_0000 + u64::from(number)), vlan: None },
        addresses: vec![Ipv4Addr::from(0x0a00_0000 + number).into()],
        at: at(number.wrapping_add(version.into())),
        since_ms: 0,
        configured: false,
        annotations: Default::default(),
    }
    .into()
}

fn rule(number: u32, version: u16) -> Object {
    let matching = Match::any()
        .with(Field::EthSrc, MacAddr::from_u64(number.into()))
        .with(Field::EthDst, MacAddr::from_u64(!u64::from(number)));
    let output = Action::Output { port: PortNo(1), max_len: 0 };
    Rule {
        id: RuleId {
            switch: DatapathId(u64::from(number) % SWITCHES + 1),
            number: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        },
        owner: "paths".into(),
        set: "intent/1".into(),
        table_id: 0,
        priority: version,
        matching,
        instructions: vec![Instruction::ApplyActions(vec![output])],
        cookie: number.into(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        state: EntryState::Installed,
    }
    .into()
}

/// So many wanted rules in the engine of rules, as sets with a path of six switches each. A change is a set that is put, and
/// confirmed by its switches.
fn wanted(count: u32) -> Result<Part, String> {
    let network = detour(1);
    let mut planner = Planner::of(&network.wan);
    let mut flows = FlowsEngine::new(network.wan.switches())?;
    let edge = |pair: &(usize, usize)| (network.wan.edge(pair.0), network.wan.edge(pair.1));
    let pairs: Vec<_> = network.six.iter().map(edge).collect();
    let sets = count / RULES_OF_PATH;
    let mut put = |flows: &mut FlowsEngine, first: u32, count: u32| {
        let wish = Wish { pairs: pairs.clone(), first, count, version: 1 };
        let (mut spent, mut number) = (Duration::ZERO, first);
        while let Some((batch, next)) = planner.plan(&wish, number)? {
            let began = Instant::now();
            flows.take(batch.as_bytes(), 1)?;
            spent += began.elapsed();
            number = next;
        }
        Ok::<_, String>(spent)
    };
    // The trees of the planner are there before memory is read.
    put(&mut flows, sets, 2_000)?;
    let before = memory();
    for first in (0..sets).step_by(1_000) {
        put(&mut flows, first, 1_000.min(sets - first))?;
    }
    let bytes = memory().saturating_sub(before);
    let mut change_us = Vec::new();
    for number in 0..TIMED {
        change_us.push(put(&mut flows, sets + 2_000 + number, 1)?.as_secs_f64() * 1e6);
    }
    Ok(Part { bytes, objects: (sets * RULES_OF_PATH).into(), change_us })
}

/// So many intents in the engine of intents. A change is one more intent, with its rules.
fn intents(count: u32) -> Part {
    let network = detour(1);
    let mut paths = PathsEngine::new(&network.wan, false);
    let pair = |number: u32| network.six[number as usize % network.six.len()];
    let before = memory();
    for number in 0..count {
        paths.add(&network.wan, pair(number), number);
    }
    paths.compile();
    let bytes = memory().saturating_sub(before);
    let change_us = timed(|number| {
        paths.add(&network.wan, pair(count + number), count + number);
        paths.compile();
    });
    Part { bytes, objects: count.into(), change_us }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_says_how_many_objects_it_has() {
        let check = |part: &str, objects: u64| {
            let measured: Part = serde_json::from_str(&measure(part).unwrap()).unwrap();
            assert_eq!((measured.objects, measured.change_us.len()), (objects, TIMED as usize), "{part}");
        };
        check("hosts:300", 300);
        check("rules:300", 300);
        check("wanted:60", 60);
        check("intents:30", 30);
    }

    #[test]
    fn an_unknown_part_is_refused_by_name() {
        for part in ["hosts", "hosts:many", "planets:3"] {
            assert!(measure(part).is_err_and(|why| why.contains(part)));
        }
    }
}
