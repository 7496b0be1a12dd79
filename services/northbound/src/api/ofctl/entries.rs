//! Changes of entries by Ryu's `ofctl_rest`: flow entries, groups and meters.
//!
//! ```text
//!   POST /stats/flowentry/add ──> a set with one rule ──> flows
//!   POST /stats/flowentry/delete ──> which sets have such rules? ──> flows ──> their removal ──> flows
//! ```
//!
//! In: requests with Ryu's JSON. Out: questions for the service `flows`. Each entry is a set of its own, so the node keeps it installed. It
//! changes only entries that were added here: rules of apps and intents stay.

use super::actions::{Item, actions, objects};
use super::bodies::{GROUP_TYPES, METER_FLAGS};
use super::{actions as action_json, matches};
use crate::api::context::{Answer, Answered, Call, Context, First, Reading};
use crate::api::page::connected;
use crate::api::refusal::refusal;
use crate::api::writes::{OF_FLOWS, object, read_json};
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::flow::relation::is_covered_by_one;
use burnet_sdk::flow::{Action, Instruction, Match, PortNo};
use burnet_sdk::view::{Key, Kind, Object, Rule};
use flows_contract::{
    EntryPage, Filter, GroupType, MeterUnit, PAGE_MAX, Question, WantedBand, WantedBucket, WantedGroup,
    WantedMeter, WantedRule, WantedSet, status,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// How the names of sets of this interface begin.
const FLOWS: &str = "ryu/flow/";
const GROUPS: &str = "ryu/group/";
const METERS: &str = "ryu/meter/";

/// The most pages of rules that one request looks through.
const PAGES_MAX: usize = 100;

/// Which rules a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Those within the match.
    Within,
    /// The one with this match and priority.
    Strictly,
}

/// The tables that a request means.
const ALL_TABLES: u8 = 0xff;

/// A flow entry as the client writes it.
struct Wanted {
    rule: WantedRule,
    out_port: Option<PortNo>,
    out_group: Option<u32>,
}

fn wanted(context: &Context<'_>) -> Result<Wanted, Problem> {
    let members = object(context)?;
    let item = Item { members: &members, at: "flow" };
    let switch = switch(context, &members)?;
    let is_any = |name: &str, words: [&str; 2]| {
        members.get(name).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    if members.contains_key("buffer_id") && !is_any("buffer_id", ["NO_BUFFER", "OFP_NO_BUFFER"]) {
        let number: u32 = item.number("buffer_id")?;
        if number != u32::MAX {
            return Err(Problem::field("buffer_id", "the node keeps no packet for it: leave it out"));
        }
    }
    let all_tables = is_any("table_id", ["ALL", "OFPTT_ALL"]);
    let table_id = if all_tables { ALL_TABLES } else { item.number_or("table_id", 0)? };
    let out_port = if members.contains_key("out_port") { Some(item.port("out_port")?) } else { None };
    let out_group = match members.contains_key("out_group") && !is_any("out_group", ["ANY", "OFPG_ANY"]) {
        true => Some(item.number("out_group")?).filter(|it| *it != u32::MAX),
        false => None,
    };
    let rule = WantedRule {
        switch,
        table_id,
        stage: 0,
        priority: item.number_or("priority", 0)?,
        idle_timeout_s: item.number_or("idle_timeout", 0)?,
        hard_timeout_s: item.number_or("hard_timeout", 0)?,
        matching: matches::read(members.get("match"))?.sorted(),
        instructions: action_json::read(members.get("actions"))?,
    };
    Ok(Wanted { rule, out_port: out_port.filter(|it| *it != PortNo::ANY), out_group })
}

/// What a change or a removal means. An addition may have a cookie mask, as in Ryu's own examples, because it selects nothing there.
fn selected(context: &Context<'_>) -> Result<Wanted, Problem> {
    let members = object(context)?;
    if (Item { members: &members, at: "flow" }).number_or("cookie_mask", 0_u64)? != 0 {
        let why = "the node's rules have cookies of its own: leave it out, and name the match";
        return Err(Problem::field("cookie_mask", why));
    }
    wanted(context)
}

/// The switch that the body names. Ryu refuses one that is not connected.
pub fn switch(context: &Context<'_>, members: &Map<String, Value>) -> Result<DatapathId, Problem> {
    let dpid = match members.get("dpid") {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        _ => return Err(Problem::field("dpid", "it is missing: write a number")),
    };
    connected(context, &dpid).map(|switch| switch.id)
}

/// The name of the set with this rule, for an interface whose sets begin with `prefix`.
pub fn set_name(prefix: &str, rule: &WantedRule) -> String {
    let mut tlvs = Vec::new();
    write_match(&rule.matching, &mut tlvs);
    let hash = Sha256::digest(&tlvs);
    let digits: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{:x}/{}/{}/{digits}", rule.switch.0, rule.table_id, rule.priority)
}

fn put(name: String, rules: Vec<WantedRule>, groups: Vec<WantedGroup>, meters: Vec<WantedMeter>) -> Vec<u8> {
    let set = WantedSet { name, version: None, in_order: false, permanent: false, rules, groups, meters };
    Question::Put(set).to_bytes()
}

/// `POST /stats/flowentry/add`
pub fn add(context: &Context<'_>) -> Answered {
    let rule = wanted(context)?.rule;
    if rule.table_id == ALL_TABLES {
        return Err(Problem::field("table_id", "a rule is in one table"));
    }
    in_turn(VecDeque::from([put(set_name(FLOWS, &rule), vec![rule], Vec::new(), Vec::new())]))
}

/// `POST /stats/flowentry/modify` and `modify_strict`: what the rules do. Rules that are not there are not added.
pub fn modify(context: &Context<'_>, means: Means) -> Answered {
    let wanted = selected(context)?;
    let instructions = wanted.rule.instructions.clone();
    let change = move |rule: Rule| {
        let rule = WantedRule {
            switch: rule.id.switch,
            table_id: rule.table_id,
            stage: 0,
            priority: rule.priority,
            idle_timeout_s: rule.idle_timeout_s,
            hard_timeout_s: rule.hard_timeout_s,
            matching: rule.matching.sorted(),
            instructions: instructions.clone(),
        };
        put(set_name(FLOWS, &rule), vec![rule], Vec::new(), Vec::new())
    };
    for_each(wanted.rule.switch, move |rule| is_meant(&wanted, means, rule), change)
}

/// `POST /stats/flowentry/delete` and `delete_strict`
pub fn delete(context: &Context<'_>, means: Means) -> Answered {
    let wanted = selected(context)?;
    for_each(wanted.rule.switch, move |rule| is_meant(&wanted, means, rule), removal)
}

/// `DELETE /stats/flowentry/clear/{id}`
pub fn clear(context: &Context<'_>) -> Answered {
    for_each(connected(context, context.id)?.id, |_| true, removal)
}

fn removal(rule: Rule) -> Vec<u8> {
    Question::Remove { name: rule.set }.to_bytes()
}

fn is_meant(wanted: &Wanted, means: Means, rule: &Rule) -> bool {
    let Wanted { rule: by, out_port, out_group } = wanted;
    let is_there = by.table_id == ALL_TABLES || by.table_id == rule.table_id;
    let fits = match means {
        Means::Within => is_covered_by_one(&rule.matching, std::slice::from_ref(&by.matching)),
        Means::Strictly => by.priority == rule.priority && by.matching == sorted(&rule.matching),
    };
    let leads = |wanted: &Action| outputs(&rule.instructions).any(|action| same_target(action, wanted));
    is_there
        && fits
        && out_port.is_none_or(|port| leads(&Action::output(port)))
        && out_group.is_none_or(|group| leads(&Action::Group(group)))
}

fn sorted(matching: &Match) -> Match {
    matching.clone().sorted()
}

fn outputs(instructions: &[Instruction]) -> impl Iterator<Item = &Action> {
    instructions.iter().flat_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => actions.as_slice(),
        _ => &[],
    })
}

fn same_target(one: &Action, two: &Action) -> bool {
    match (one, two) {
        (Action::Output { port: one, .. }, Action::Output { port: two, .. }) => one == two,
        (one, two) => one == two,
    }
}

/// Changes each rule of this interface in a switch that is meant.
fn for_each(
    switch: DatapathId,
    is_meant: impl Fn(&Rule) -> bool + Send + 'static,
    change: impl Fn(Rule) -> Vec<u8> + Send + 'static,
) -> Answered {
    let then = move |rules: Vec<Rule>| {
        in_turn(rules.into_iter().filter(|rule| is_meant(rule)).map(change).collect())
    };
    collect(switch, None, Vec::new(), PAGES_MAX, Box::new(then))
}

type Then = Box<dyn FnOnce(Vec<Rule>) -> Answered + Send>;

/// Asks for the rules of this interface in a switch, page by page.
fn collect(
    switch: DatapathId,
    after: Option<Key>,
    mut found: Vec<Rule>,
    pages: usize,
    then: Then,
) -> Answered {
    let owner = Some(northbound_contract::SERVICE.to_owned());
    let filter = Filter { switch: Some(switch), owner, ..Filter::default() };
    let question = Question::List { kind: Kind::Rule, filter, after, limit: Some(PAGE_MAX) };
    let next = move |answer: u16, payload: &[u8]| {
        if answer != 0 {
            return Err(refusal(&OF_FLOWS, answer, payload));
        }
        let page: EntryPage = read_json(&OF_FLOWS, payload)?;
        let rules = page.entries.into_iter().filter_map(|record| match record.object {
            Object::Rule(rule) if rule.set.starts_with(FLOWS) => Some(rule),
            _ => None,
        });
        found.extend(rules);
        match page.next {
            None => then(found),
            Some(_) if pages <= 1 => Err(Problem::too_many("the switch has too many rules for this request")),
            next => collect(switch, next, found, pages - 1, then),
        }
    };
    let payload = question.to_bytes();
    Ok(Answer::Then(First { service: flows_contract::SERVICE, payload, next: Box::new(next) }))
}

/// Sends the questions one after the other. Ends at the first refusal.
fn in_turn(mut questions: VecDeque<Vec<u8>>) -> Answered {
    let Some(payload) = questions.pop_front() else {
        return Ok(Answer::Ready(Response::new(200, "", "")));
    };
    if questions.is_empty() {
        let read: Reading = Box::new(|answer, payload| match is_done(answer) {
            true => Ok(Response::new(200, "", "")),
            false => Err(refusal(&OF_FLOWS, answer, payload)),
        });
        return Ok(Answer::Call(Call { service: flows_contract::SERVICE, payload, read }));
    }
    let next = move |answer: u16, payload: &[u8]| match is_done(answer) {
        true => in_turn(questions),
        false => Err(refusal(&OF_FLOWS, answer, payload)),
    };
    Ok(Answer::Then(First { service: flows_contract::SERVICE, payload, next: Box::new(next) }))
}

/// A set that is gone is removed.
fn is_done(answer: u16) -> bool {
    matches!(answer, status::DONE | status::NOT_FOUND)
}

/// `POST /stats/groupentry/add` and `modify`
pub fn put_group(context: &Context<'_>) -> Answered {
    let members = object(context)?;
    let item = Item { members: &members, at: "group" };
    let (switch, group_id) = (switch(context, &members)?, item.number("group_id")?);
    let word = members.get("type").and_then(Value::as_str).unwrap_or("ALL");
    let group_type = match GROUP_TYPES.iter().position(|it| *it == word) {
        Some(0) => GroupType::All,
        Some(1) => GroupType::Select,
        Some(2) => GroupType::Indirect,
        Some(_) => GroupType::FastFailover,
        None => {
            return Err(Problem::field("type", format!("{word:?} is none of {}", GROUP_TYPES.join(", "))));
        }
    };
    let buckets = objects(members.get("buckets"), "buckets")?.into_iter().enumerate();
    let buckets = buckets.map(|(index, members)| bucket(members, &format!("buckets[{index}]")));
    let group = WantedGroup { switch, group_id, group_type, buckets: buckets.collect::<Result<_, _>>()? };
    let name = format!("{GROUPS}{:x}/{group_id}", switch.0);
    in_turn(VecDeque::from([put(name, Vec::new(), vec![group], Vec::new())]))
}

fn bucket(members: &Map<String, Value>, at: &str) -> Result<WantedBucket, Problem> {
    let item = Item { members, at };
    let port = if members.contains_key("watch_port") { Some(item.port("watch_port")?) } else { None };
    let group: u32 = item.number_or("watch_group", u32::MAX)?;
    Ok(WantedBucket {
        weight: item.number_or("weight", 0)?,
        watch_port: port.filter(|it| *it != PortNo::ANY),
        watch_group: Some(group).filter(|it| *it != u32::MAX),
        actions: actions(members.get("actions"), at)?,
    })
}

/// `POST /stats/groupentry/delete`
pub fn delete_group(context: &Context<'_>) -> Answered {
    let members = object(context)?;
    let number: u32 = Item { members: &members, at: "group" }.number("group_id")?;
    let name = format!("{GROUPS}{:x}/{number}", switch(context, &members)?.0);
    in_turn(VecDeque::from([Question::Remove { name }.to_bytes()]))
}

/// `POST /stats/meterentry/add` and `modify`
pub fn put_meter(context: &Context<'_>) -> Answered {
    let members = object(context)?;
    let item = Item { members: &members, at: "meter" };
    let (switch, meter_id) = (switch(context, &members)?, item.number("meter_id")?);
    let flags = match members.get("flags") {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(word) => word.as_str().into_iter().collect(),
    };
    if let Some(other) = flags.iter().find(|flag| !METER_FLAGS.contains(flag)) {
        return Err(Problem::field("flags", format!("{other:?} is none of {}", METER_FLAGS.join(", "))));
    }
    let bands = objects(members.get("bands"), "bands")?.into_iter().enumerate();
    let bands = bands.map(|(index, members)| band(members, &format!("bands[{index}]")));
    let meter = WantedMeter {
        switch,
        meter_id,
        unit: if flags.contains(&"PKTPS") { MeterUnit::PacketsPerS } else { MeterUnit::Kbps },
        burst: flags.contains(&"BURST"),
        stats: flags.contains(&"STATS"),
        bands: bands.collect::<Result<_, _>>()?,
    };
    let name = format!("{METERS}{:x}/{meter_id}", switch.0);
    in_turn(VecDeque::from([put(name, Vec::new(), Vec::new(), vec![meter])]))
}

fn band(members: &Map<String, Value>, at: &str) -> Result<WantedBand, Problem> {
    let item = Item { members, at };
    let (rate, burst_size) = (item.number_or("rate", 0)?, item.number_or("burst_size", 0)?);
    match members.get("type").and_then(Value::as_str) {
        Some("DROP") => Ok(WantedBand::Drop { rate, burst_size }),
        Some("DSCP_REMARK") => {
            Ok(WantedBand::DscpRemark { rate, burst_size, prec_level: item.number_or("prec_level", 0)? })
        }
        _ => Err(Problem::field(&format!("{at}.type"), format!("{at}.type: write DROP or DSCP_REMARK"))),
    }
}

/// `POST /stats/meterentry/delete`
pub fn delete_meter(context: &Context<'_>) -> Answered {
    let members = object(context)?;
    let number: u32 = Item { members: &members, at: "meter" }.number("meter_id")?;
    let name = format!("{METERS}{:x}/{number}", switch(context, &members)?.0);
    in_turn(VecDeque::from([Question::Remove { name }.to_bytes()]))
}
