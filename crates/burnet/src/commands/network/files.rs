//! `burnet plan`, `burnet apply` and `burnet rollback`: what a file wants of the network, and the way there and back.
//!
//! ```text
//!   network.toml ──read──> Document ──plan, with what the node has──> text
//!                                        └──apply──> PUT version, a request for each step, PATCH: done ──wait──> programmed, or why not
//! ```
//!
//! In: parsed options and a file. Out: text or JSON. All is checked before the first request. The version is kept before the first change, and stays
//! open until the last one is made, so that an interrupted command is visible, and can go on or be rolled back.

use super::client::{Client, encoded};
use super::{client, failed, paged, settle};
use crate::cli::CommandError;
use crate::cli::network::{ApplyArgs, PlanArgs, RollbackArgs};
use crate::commands::json;
use crate::network_file::current::{Current, OWNER, Version, objects};
use crate::network_file::document::Document;
use crate::network_file::plan::{Plan, plan, ways};
use crate::network_file::{shown, source};
use northbound_contract::ROUTE_PAIRS_MAX;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

/// The longest file that is read. The node keeps documents of 512 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// `burnet plan`: what a file would change.
pub fn plan_file(args: &PlanArgs) -> Result<String, CommandError> {
    let document = read(&args.file)?;
    let client = client(&args.asking)?;
    let current = current(&client, &document).map_err(failed)?;
    let plan = plan(&document, &current);
    let text =
        if args.asking.json { json(&shown::value(&plan, &current))? } else { shown::text(&plan, &current) };
    match plan.refused.is_empty() {
        true => Ok(text),
        false => Err(failed(format!("the plan is refused:\n{}", text.trim_end()))),
    }
}

/// `burnet apply`: carries a plan out.
pub fn apply_file(args: &ApplyArgs) -> Result<String, CommandError> {
    let document = read(&args.file)?;
    let client = client(&args.asking)?;
    let target = Target { document, restores: None };
    carry_out(&client, &target, args.wait, args.asking.json)
}

/// `burnet rollback`: returns to the version before.
pub fn rollback(args: &RollbackArgs) -> Result<String, CommandError> {
    let client = client(&args.asking)?;
    let current = Current { versions: versions(&client, &args.name).map_err(failed)?, ..Current::default() };
    let version = match args.to {
        Some(version) => version,
        None => current.before().ok_or_else(|| {
            failed(format!("{}: there is no version before: nothing of this file is applied", args.name))
        })?,
    };
    let document = kept(&client, &args.name, version).map_err(failed)?;
    carry_out(&client, &Target { document, restores: Some(version) }, args.wait, args.asking.json)
}

/// What is to be applied.
struct Target {
    document: Document,
    /// The version whose document it is.
    restores: Option<u64>,
}

fn read(file: &Path) -> Result<Document, CommandError> {
    let path = file.display().to_string();
    let unreadable = |why: std::io::Error| CommandError::Usage(format!("{path}: {why}"));
    let (opened, mut text) = (File::open(file).map_err(unreadable)?, String::new());
    let length = opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(CommandError::Usage(format!(
            "{path}: it has more than the limit of {FILE_BYTES_MAX} bytes: divide the file"
        )));
    }
    source::read(&path, &text).map_err(CommandError::Usage)
}

/// The versions of a file.
fn versions(client: &Client, name: &str) -> Result<Vec<Version>, String> {
    let kept = client.ask("GET", &format!("/api/v1/network-files/{name}"), None)?;
    objects(kept["versions"].as_array().cloned().unwrap_or_default())
}

/// The document of a version. 0 is the empty one.
fn kept(client: &Client, name: &str, version: u64) -> Result<Document, String> {
    if version == 0 {
        return Ok(Document::empty(name));
    }
    let kept = client.ask("GET", &format!("/api/v1/network-files/{name}/{version}"), None)?;
    Document::read(kept["document"].clone())
        .map_err(|wrong| format!("version {version} of {name} cannot be read: {}", wrong.reason))
}

/// What the network has now, as far as a file depends on it.
fn current(client: &Client, document: &Document) -> Result<Current, String> {
    let all = |target: &str| paged(client, target);
    let versions = versions(client, &document.name)?;
    let first = versions.len() - versions.iter().rev().take_while(|it| it.open).count();
    let owning = &versions[first.saturating_sub(1)..];
    let applied =
        owning.iter().map(|it| kept(client, &document.name, it.version)).collect::<Result<_, _>>()?;
    let mut current = Current {
        hosts: objects(all("/api/v1/hosts?limit=1000")?)?,
        ports: objects(all("/api/v1/ports?limit=1000")?)?,
        intents: objects(all("/api/v1/intents?limit=1000")?)?,
        paths: objects(all("/api/v1/paths?limit=1000")?)?,
        rules: objects(all(&format!("/api/v1/flows?limit=1000&owner={OWNER}"))?)?,
        applied,
        versions,
        ..Current::default()
    };
    let (same, pairs): (Vec<_>, Vec<_>) =
        ways(document, &current).into_iter().partition(|(from, to)| from == to);
    current.ways.extend(same.into_iter().map(|ends| (ends, Vec::new())));
    for some in pairs.chunks(ROUTE_PAIRS_MAX) {
        let list: Vec<Value> = some.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
        // Ways that the node cannot compute now are not known: the plan is less exact, and warns if ports are protected.
        let Ok(found) = client.ask("POST", "/api/v1/routes", Some(&json!({ "pairs": list }))) else {
            continue;
        };
        for (ends, way) in some.iter().zip(found["items"].as_array().into_iter().flatten()) {
            // A way that is not there now is no error: the intent waits for it.
            if let Some(links) = way["links"].as_array() {
                current.ways.insert(*ends, objects(links.clone())?);
            }
        }
    }
    Ok(current)
}

fn carry_out(client: &Client, target: &Target, wait: bool, as_json: bool) -> Result<String, CommandError> {
    let Target { document, restores } = target;
    let current = current(client, document).map_err(failed)?;
    let plan = plan(document, &current);
    let text = shown::text(&plan, &current);
    if !plan.refused.is_empty() {
        return Err(failed(format!(
            "nothing was changed, because the plan is refused:\n{}",
            text.trim_end()
        )));
    }
    let is_kept = current.applied.last().is_some_and(|it| it.value == document.value);
    let open = current.open().filter(|it| is_kept && it.restores == *restores);
    if plan.steps.is_empty() && is_kept && restores.is_none() && current.open().is_none() {
        return report(&plan, &current, current.latest(), None, as_json, &text);
    }
    let version = match open {
        // It goes on.
        Some(open) => open.version,
        None => {
            keep(client, target, &current).map_err(|why| failed(format!("nothing was changed: {why}")))?
        }
    };
    let began = Instant::now();
    take_steps(client, &plan, restores.is_some()).map_err(failed)?;
    let name = &document.name;
    note(client, name, &json!({ "version": version, "done": true })).map_err(|why| {
        failed(format!(
            "all steps of version {version} of {name} are taken, but the node did not note it: {why}"
        ))
    })?;
    let took = match wait {
        true => Some(settle::wait(client, &plan, began).map_err(|why| {
            failed(format!("version {version} of {name} is applied and kept, but is not all in place: {why}"))
        })?),
        false => None,
    };
    if let Some(took) = took.as_ref().filter(|it| it["rules"] != 0) {
        // The pace of the next plan. Without it, the plan says that it is not known.
        let _ = note(client, name, &json!({ "version": version, "took": took }));
    }
    report(&plan, &current, version, took.as_ref(), as_json, &text)
}

/// Keeps the document as the next version, whose steps are still to be taken. Returns its number.
fn keep(client: &Client, Target { document, restores }: &Target, current: &Current) -> Result<u64, String> {
    let body =
        json!({ "base": current.latest(), "document": document.value, "restores": restores, "open": true });
    let kept =
        client.ask("PUT", &format!("/api/v1/network-files/{}", document.name), Some(&without_nulls(body)))?;
    let version = kept["versions"].as_array().and_then(|all| all.last()?["version"].as_u64());
    version.ok_or_else(|| "the answer of the node names no version".to_owned())
}

fn note(client: &Client, name: &str, note: &Value) -> Result<(), String> {
    client.ask("PATCH", &format!("/api/v1/network-files/{name}"), Some(note)).map(drop)
}

fn without_nulls(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

/// Takes the steps in their order.
fn take_steps(client: &Client, plan: &Plan, is_rollback: bool) -> Result<(), String> {
    for (number, step) in plan.steps.iter().enumerate() {
        let (method, target, body) = &step.request;
        // The name of a set can have a space or a question mark.
        if let Err(why) = client.ask(method, &encoded(target), body.as_ref()) {
            let done: Vec<String> =
                plan.steps.iter().take(number).map(|it| format!("{} {}", it.kind, it.name)).collect();
            let done = if done.is_empty() { "nothing".to_owned() } else { done.join(", ") };
            let then = match is_rollback {
                true => format!("run `burnet rollback {}` again to go on", plan.name),
                false => {
                    format!("run `burnet apply` again to go on, or `burnet rollback {}` to return", plan.name)
                }
            };
            return Err(format!(
                "{} {}: {why}\ndone so far: {done}; {} of {} steps are left\n{then}",
                step.kind,
                step.name,
                plan.steps.len() - number,
                plan.steps.len()
            ));
        }
    }
    Ok(())
}

fn report(
    plan: &Plan,
    current: &Current,
    version: u64,
    took: Option<&Value>,
    as_json: bool,
    text: &str,
) -> Result<String, CommandError> {
    if as_json {
        let mut value = shown::value(plan, current);
        value["version"] = version.into();
        value["took"] = took.cloned().unwrap_or_default();
        return json(&value);
    }
    let end = match (plan.steps.is_empty(), took) {
        (true, _) => format!("nothing to change; {} has version {version}\n", plan.name),
        (false, None) => {
            format!("version {version} of {} is applied; the switches get their rules now\n", plan.name)
        }
        (false, Some(took)) => {
            format!("version {version} of {} is in place after {} ms\n", plan.name, took["took_ms"])
        }
    };
    Ok(format!("{text}{end}"))
}
