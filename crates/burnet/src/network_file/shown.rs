//! A plan in words, and as JSON.
//!
//! In: a plan, and what the network has. Out: text. Numbers that are estimates say so.

use super::current::Current;
use super::plan::{Act, Plan, Step};
use serde_json::{Value, json};
use std::fmt::Write;

/// A plan in words.
pub fn text(plan: &Plan, current: &Current) -> String {
    let mut out = String::new();
    let count = |act: Act| plan.steps.iter().filter(|step| step.act == act).count();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{}: {} to add, {} to change, {} to withdraw, {} unchanged",
        plan.name,
        count(Act::Add),
        count(Act::Change),
        count(Act::Withdraw),
        plan.unchanged
    );
    plan.steps.iter().for_each(|step| out += &line(step));
    if !plan.steps.is_empty() {
        out += &switches(plan);
        out += &affected(plan);
        let _ = writeln!(out, "time: {}", time(plan, current));
    }
    for warning in &plan.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    for why in &plan.refused {
        let _ = writeln!(out, "refused: {why}");
    }
    out
}

fn line(step: &Step) -> String {
    let sign = match step.act {
        Act::Add => '+',
        Act::Change => '~',
        Act::Withdraw => '-',
    };
    format!("  {sign} {} {}  {}\n", step.kind, step.name, step.what)
}

fn switches(plan: &Plan) -> String {
    let effect = plan.effect();
    if effect.counts.is_empty() && !effect.is_open {
        return "rules: none\n".to_owned();
    }
    let each =
        effect.counts.iter().map(|(switch, count)| format!("{switch} +{} -{}", count.added, count.removed));
    let list = each.collect::<Vec<_>>().join(", ");
    let open = match (effect.is_open, list.is_empty()) {
        (false, _) => "",
        (true, true) => "not known: the ways of intents whose ends are unknown are not known yet",
        (true, false) => ", and those of intents whose ways are not known yet",
    };
    format!("rules: about {list}{open}\n")
}

fn affected(plan: &Plan) -> String {
    let list = |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let hosts = list(plan.hosts.iter().map(ToString::to_string).collect());
    let intents = list(plan.intents.iter().cloned().collect());
    format!("hosts: {hosts}\nother intents whose packets a rule may take: {intents}\n")
}

/// How long the switches need, by what earlier versions of this file took.
pub fn time(plan: &Plan, current: &Current) -> String {
    let rules = plan.effect().total();
    match current.pace() {
        None => {
            "not known: no version of this file was applied with --wait, so no pace was measured".to_owned()
        }
        Some(pace) => {
            let ms = (u128::from(rules) * u128::from(pace.took_ms)).div_ceil(u128::from(pace.rules));
            format!(
                "about {ms} ms for {rules} rules, if it goes as before ({} rules in {} ms)",
                pace.rules, pace.took_ms
            )
        }
    }
}

/// A plan as JSON.
pub fn value(plan: &Plan, current: &Current) -> Value {
    let act = |act: Act| match act {
        Act::Add => "add",
        Act::Change => "change",
        Act::Withdraw => "withdraw",
    };
    let step = |step: &Step| json!({ "act": act(step.act), "kind": step.kind, "name": step.name, "what": step.what });
    let effect = plan.effect();
    let switch = |(switch, count): (&flow::DatapathId, &super::effect::Count)| json!({ "switch": switch, "added": count.added, "removed": count.removed });
    json!({
        "name": plan.name,
        "base": current.latest(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "unchanged": plan.unchanged,
        "switches": effect.counts.iter().map(switch).collect::<Vec<_>>(),
        "is_estimate": true,
        "hosts": plan.hosts,
        "intents": plan.intents,
        "time": time(plan, current),
        "notes": plan.warnings,
        "refused": plan.refused,
    })
}
