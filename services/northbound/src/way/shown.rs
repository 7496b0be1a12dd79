//! The JSON of an explanation: a step for each rule that the packet meets.
//!
//! ```text
//!   Way, looks, names ──shown──> {"verdict", "reason", "steps": [{"switch", "table", "rule", "owner", "action", …}], "links", "exits", …}
//! ```
//!
//! In: what was found out. Out: JSON for the page, the command line and programs. It decides nothing.

use super::names::{Owner, intent_of, owner, remark};
use super::{Explaining, watched};
use burnet_sdk::view::{ConnectPoint, LinkId, Rule};
use explain::{Event, Fate, GroupKind, Output, Packet, Stop, StopEnd, Verdict, exits, verdict};
use flow::text::{actions_to_string, instructions_to_string, match_to_string};
use flow::{Action, PortNo};
use flows_contract::{Look, SeenRule};
use serde_json::{Map, Value, json};

/// The explanation.
pub fn shown(it: &Explaining) -> Value {
    let (verdict, reason) = verdict(&it.way, it.asked.to);
    let mut steps = Vec::new();
    for (number, stop) in it.way.stops.iter().enumerate() {
        steps.extend(steps_of(it, number, stop));
    }
    json!({
        "verdict": word(verdict),
        "reason": capital(&full_reason(it, reason)),
        "at": it.asked.at,
        "to": it.asked.to,
        "packet": text(&it.asked.packet),
        "steps": steps,
        "links": links(it),
        "exits": exits(&it.way).iter().map(|exit| exit_shown(it, exit)).collect::<Vec<_>>(),
        "unread": it.unread.iter().map(|(switch, why)| json!({ "switch": switch, "reason": why })).collect::<Vec<_>>(),
        "is_cut": it.way.is_cut,
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Unknown => "unknown",
        Verdict::Punted => "punted",
        Verdict::Looped => "looped",
        Verdict::Dropped => "dropped",
    }
}

/// The reason, and what is wanted and missing at the place where the packet ends.
fn full_reason(it: &Explaining, reason: String) -> String {
    let missing = it.way.stops.iter().find_map(|stop| {
        let look = it.look(stop.at, &stop.packet)?;
        let best = first_rule(stop).and_then(|number| look.rules.get(number));
        missing(look, best).next()
    });
    match missing {
        Some(rule) => format!("{reason}; {} misses a rule that {} wants", rule.id.switch, wanter(rule)),
        None => reason,
    }
}

fn first_rule(stop: &Stop) -> Option<usize> {
    stop.passage.events.iter().find_map(|event| match event {
        Event::Rule { table_id: 0, number, .. } => Some(*number),
        _ => None,
    })
}

/// The wanted rules that would take the packet if they were in the switch.
fn missing<'l>(look: &'l Look, best: Option<&'l SeenRule>) -> impl Iterator<Item = &'l Rule> {
    let wins = move |rule: &&Rule| best.is_none_or(|best| rule.priority >= best.priority);
    look.missing.iter().filter(wins)
}

fn wanter(rule: &Rule) -> String {
    match intent_of(&rule.owner, &rule.set) {
        Some(intent) => format!("intent {intent}"),
        None => format!("{} (set {:?})", rule.owner, rule.set),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    // The end of a sentence.
    format!("{first}{}.", letters.as_str())
}

fn text(packet: &Packet) -> String {
    match_to_string(&packet.to_match())
}

/// The links that the packet takes, each once.
fn links(it: &Explaining) -> Vec<LinkId> {
    let mut taken = Vec::new();
    for stop in &it.way.stops {
        for (event, next) in &stop.next {
            let from = out_of(stop, *event);
            let to = it.way.stops.get(*next).map(|next| next.at);
            if let (Some(from), Some(to)) = (from, to) {
                let link = LinkId { from, to };
                if !taken.contains(&link) {
                    taken.push(link);
                }
            }
        }
    }
    taken
}

fn out_of(stop: &Stop, event: usize) -> Option<ConnectPoint> {
    match stop.passage.events.get(event)? {
        Event::Output(output) => Some(ConnectPoint { switch: stop.at.switch, port: output.port }),
        _ => None,
    }
}

fn exit_shown(it: &Explaining, exit: &explain::Exit) -> Value {
    let hosts: Vec<_> = it.view.hosts_at(exit.at).map(|host| host.id.to_string()).collect();
    let packet = it.way.stops.get(exit.stop).and_then(|stop| match stop.passage.events.get(exit.event)? {
        Event::Output(output) => Some(text(&output.packet)),
        _ => None,
    });
    json!({ "at": exit.at, "hosts": hosts, "packet": packet, "is_choice": exit.is_choice })
}

/// One step of the way, while its events are gathered.
struct Step {
    members: Map<String, Value>,
    notes: Vec<String>,
    outputs: Vec<Value>,
    changes: Vec<Action>,
}

impl Step {
    fn new(number: usize, stop: &Stop, what: Value) -> Step {
        let mut members = Map::new();
        members.insert("stop".to_owned(), number.into());
        members.insert("switch".to_owned(), json!(stop.at.switch));
        members.insert("in_port".to_owned(), stop.at.port.to_string().into());
        members.insert("out_port".to_owned(), Value::Null);
        members.insert("packets".to_owned(), Value::Null);
        members.extend(what.as_object().cloned().unwrap_or_default());
        Step { members, notes: Vec::new(), outputs: Vec::new(), changes: Vec::new() }
    }

    fn finish(mut self) -> Value {
        if !self.changes.is_empty() {
            self.members.insert("rewrites".to_owned(), actions_to_string(&self.changes).into());
        }
        self.members.insert("notes".to_owned(), self.notes.into());
        self.members.insert("outputs".to_owned(), self.outputs.into());
        self.members.into()
    }
}

/// The steps of one stop.
fn steps_of(it: &Explaining, number: usize, stop: &Stop) -> Vec<Value> {
    let plain = |rule: &str, action: &str| {
        let what = json!({ "table": null, "rule": rule, "owner": "", "action": action });
        Step::new(number, stop, what)
    };
    match &stop.end {
        StopEnd::Loop(first) => {
            let mut step = plain("", "loop");
            step.notes.push(format!("the same packet was at stop {first} already"));
            return vec![step.finish()];
        }
        StopEnd::Unread => {
            let mut step = plain("", "unknown");
            step.notes.extend(it.unread.get(&stop.at.switch).cloned());
            return vec![step.finish()];
        }
        StopEnd::Passed => {}
    }
    let Some(look) = it.look(stop.at, &stop.packet) else { return Vec::new() };
    let mut steps: Vec<Step> = Vec::new();
    for (at, event) in stop.passage.events.iter().enumerate() {
        match event {
            Event::Rule { table_id, number: rule, equal, unsure } => {
                let mut step = rule_step(it, number, stop, look, (*table_id, *rule));
                step.notes.extend(ambiguous(look, equal, unsure));
                steps.push(step);
            }
            Event::Miss { table_id, unsure } => {
                let action = if look.is_v10 { "to the controller" } else { "drop" };
                let what =
                    json!({ "table": table_id, "rule": "no rule matches", "owner": "", "action": action });
                let mut step = Step::new(number, stop, what);
                step.notes.extend(ambiguous(look, &[], unsure));
                steps.push(step);
            }
            other => {
                if let Some(step) = steps.last_mut() {
                    note(it, stop, at, other, step);
                }
            }
        }
    }
    if let Some(first) = steps.first_mut() {
        let best = first_rule(stop).and_then(|number| look.rules.get(number));
        first.notes.extend(missing(look, best).map(missing_note));
        if look.left_out > 0 {
            first.notes.push(format!("{} rules of the switch were left out", look.left_out));
        }
    }
    steps.into_iter().map(Step::finish).collect()
}

fn missing_note(rule: &Rule) -> String {
    let state = serde_json::to_value(rule.state).unwrap_or_default();
    format!(
        "{} wants the rule priority={},{} here, and the switch does not have it ({})",
        wanter(rule),
        rule.priority,
        match_to_string(&rule.matching),
        state.as_str().unwrap_or_default()
    )
}

fn ambiguous(look: &Look, equal: &[usize], unsure: &[usize]) -> Vec<String> {
    let name = |number: &usize| look.rules.get(*number).map(rule_text).unwrap_or_default();
    let equal = equal.iter().map(|it| {
        format!("a rule of the same priority matches too, so the switch may take it: {}", name(it))
    });
    let unsure = unsure
        .iter()
        .map(|it| format!("a rule with a field that is not followed may match instead: {}", name(it)));
    equal.chain(unsure).collect()
}

fn rule_text(rule: &SeenRule) -> String {
    let matching = match_to_string(&rule.matching);
    let comma = if matching.is_empty() { "" } else { "," };
    format!("priority={}{comma}{matching}", rule.priority)
}

fn rule_step(
    it: &Explaining,
    number: usize,
    stop: &Stop,
    look: &Look,
    (table_id, rule): (u8, usize),
) -> Step {
    let Some(rule) = look.rules.get(rule) else {
        return Step::new(number, stop, json!({ "table": table_id, "rule": "", "owner": "", "action": "" }));
    };
    let whose: Owner = owner(rule, &it.apps);
    let instructions = instructions_to_string(&rule.instructions);
    let what = json!({
        "table": table_id,
        "rule": rule_text(rule),
        "rule_id": rule.id,
        "owner": whose.name,
        "set": whose.set,
        "intent": whose.intent,
        "state": whose.state,
        "action": if instructions.is_empty() { "drop".to_owned() } else { instructions },
        "packets": rule.packets,
        "bytes": rule.bytes,
        "duration_s": rule.duration_s,
    });
    let mut step = Step::new(number, stop, what);
    step.notes.extend(remark(&whose));
    step
}

/// Adds what happens after a rule to its step.
fn note(it: &Explaining, stop: &Stop, at: usize, event: &Event, step: &mut Step) {
    let switch = stop.at.switch;
    match event {
        Event::Output(output) => add_output(it, stop, at, output, step),
        Event::Changed(action) => step.changes.push(action.clone()),
        Event::Meter { meter, is_there: true } => {
            step.notes.push(format!("meter {meter} may drop it above its rate"));
        }
        Event::Meter { meter, is_there: false } => {
            step.notes.push(format!("the rule names meter {meter}, which {switch} does not have"));
        }
        Event::Group { group, kind, buckets } => {
            step.notes.push(group_note(it, stop, *group, *kind, buckets))
        }
        Event::Controller { is_expired: true, .. } => {
            step.notes.push("its time-to-live has ended: the switch forwards it no further".to_owned());
        }
        Event::Controller { .. } => step.outputs.push(json!({ "port": "CONTROLLER", "fate": "sent" })),
        Event::Normal => step.notes.push("the switch forwards it by its own addresses".to_owned()),
        Event::NoAction => step.notes.push("no action sends it anywhere: it is dropped".to_owned()),
        Event::Unknown(why) => step.notes.push(format!("from here on its way is not known: {why}")),
        Event::TooMany => step.notes.push("there are too many copies; the others are left out".to_owned()),
        Event::Rule { .. } | Event::Miss { .. } => {}
    }
}

fn group_note(
    it: &Explaining,
    stop: &Stop,
    group: u32,
    kind: Option<GroupKind>,
    buckets: &[usize],
) -> String {
    let number = |bucket: &usize| bucket.to_string();
    let list = buckets.iter().map(number).collect::<Vec<_>>().join(", ");
    match kind {
        None => format!("group {group} is not in the switch: nothing is sent"),
        Some(GroupKind::FastFailover) => match buckets.first() {
            None => format!("fast-failover group {group} has no live bucket: nothing is sent"),
            Some(bucket) => {
                let tables = it.network.tables(stop.at, &stop.packet);
                let by = tables.and_then(|it| watched(it.groups.get(&group)?.buckets.get(*bucket)?));
                let by = by.map_or(String::new(), |by| format!(", which watches {by}"));
                format!("fast-failover group {group}: bucket {bucket} is the first live one{by}")
            }
        },
        Some(GroupKind::Select) if buckets.len() > 1 => {
            format!("select group {group}: the switch selects one of the buckets {list}")
        }
        Some(GroupKind::Select) if buckets.is_empty() => {
            format!("select group {group} has no live bucket: nothing is sent")
        }
        Some(_) => format!("group {group}: bucket {list}"),
    }
}

fn add_output(it: &Explaining, stop: &Stop, at: usize, output: &Output, step: &mut Step) {
    let here = ConnectPoint { switch: stop.at.switch, port: output.port };
    let next = stop.next.iter().find(|(event, _)| *event == at).map(|(_, next)| *next);
    let (fate, note) = match output.fate {
        Fate::Sent => ("sent", None),
        Fate::Down => ("down", Some(format!("port {} is down", output.port))),
        Fate::NoPort => ("no-port", Some(format!("the switch has no port {}", output.port))),
        Fate::InPort => {
            ("in-port", Some(format!("it came by port {}, and only IN_PORT sends it back", output.port)))
        }
    };
    step.notes.extend(note);
    let hosts: Vec<_> = it.view.hosts_at(here).map(|host| host.id.to_string()).collect();
    let is_first = output.fate == Fate::Sent && step.members.get("out_port") == Some(&Value::Null);
    if is_first && output.port != PortNo::CONTROLLER {
        step.members.insert("out_port".to_owned(), output.port.to_string().into());
    }
    let next_at = next.and_then(|next| it.way.stops.get(next)).map(|next| next.at);
    step.outputs.push(
        json!({ "port": output.port.to_string(), "fate": fate, "next": next, "to": next_at, "hosts": hosts }),
    );
}
