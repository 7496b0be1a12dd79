//! The filters of collections: parameters that choose objects.
//!
//! In: the name and value of a parameter. Out: a test of an object, or a problem that names the parameter. A test never fails later.

use crate::http::Problem;
use burnet_sdk::view::{
    ConnectPoint, HostId, IntentId, IntentState, Kind, LinkKind, LinkState, Object, SwitchState,
};
use burnet_sdk::{DatapathId, MacAddr};
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

/// Whether an object belongs to the answer.
pub type Test = Box<dyn Fn(&Object) -> bool>;

/// The filters of a collection.
pub fn names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Switch => &["state"],
        Kind::Port => &["switch", "live"],
        Kind::Link => &["switch", "state", "found"],
        Kind::Host => &["switch", "at", "mac", "vlan", "address"],
        Kind::Path => &["intent", "switch"],
        Kind::Intent => &["state", "owner", "name"],
        Kind::Rule | Kind::Group | Kind::Meter => &[],
    }
}

/// The test for one of the filters of a kind.
///
/// # Errors
/// The value is wrong.
pub fn test(kind: Kind, name: &str, value: &str) -> Result<Test, Problem> {
    match (kind, name) {
        (_, "switch") => Ok(on_switch(parsed(name, value)?)),
        (Kind::Switch, "state") => {
            let wanted: SwitchState = word(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Switch(it) if it.state == wanted)))
        }
        (Kind::Port, "live") => {
            let wanted: bool = parsed(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Port(it) if it.live == wanted)))
        }
        (Kind::Link, "state") => {
            let wanted: LinkState = word(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Link(it) if it.state == wanted)))
        }
        (Kind::Link, "found") => {
            let wanted: LinkKind = word(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Link(it) if it.found == wanted)))
        }
        (Kind::Host, name) => host(name, value),
        (Kind::Intent, name) => intent(name, value),
        (Kind::Path, "intent") => {
            let wanted: IntentId = parsed(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Path(it) if it.intent == wanted)))
        }
        _ => Err(Problem::parameter(name, "there is no such filter")),
    }
}

fn host(name: &str, value: &str) -> Result<Test, Problem> {
    match name {
        "at" => {
            let wanted: ConnectPoint = parsed(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Host(it) if it.at == wanted)))
        }
        "mac" => {
            let wanted: MacAddr = parsed(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Host(it) if it.id.mac == wanted)))
        }
        "vlan" => {
            // By the rules for ids, with any address before it.
            let id: HostId = parsed(name, &format!("00:00:00:00:00:00.{value}"))?;
            Ok(Box::new(move |it| matches!(it, Object::Host(it) if it.id.vlan == id.vlan)))
        }
        "address" => {
            let wanted: IpAddr = parsed(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Host(it) if it.addresses.contains(&wanted))))
        }
        _ => Err(Problem::parameter(name, "there is no such filter")),
    }
}

fn intent(name: &str, value: &str) -> Result<Test, Problem> {
    let text = value.to_owned();
    match name {
        "state" => {
            let wanted: IntentState = word(name, value)?;
            Ok(Box::new(move |it| matches!(it, Object::Intent(it) if it.state == wanted)))
        }
        "owner" => Ok(Box::new(move |it| matches!(it, Object::Intent(it) if it.owner == text))),
        "name" => Ok(Box::new(move |it| matches!(it, Object::Intent(it) if it.name == text))),
        _ => Err(Problem::parameter(name, "there is no such filter")),
    }
}

fn on_switch(switch: DatapathId) -> Test {
    Box::new(move |it| match it {
        Object::Switch(it) => it.id == switch,
        Object::Port(it) => it.id.switch == switch,
        Object::Link(it) => it.id.from.switch == switch || it.id.to.switch == switch,
        Object::Host(it) => it.at.switch == switch,
        Object::Rule(it) => it.id.switch == switch,
        Object::Group(it) => it.id.switch == switch,
        Object::Meter(it) => it.id.switch == switch,
        Object::Path(it) => {
            let ends = [it.from.switch, it.to.switch];
            ends.contains(&switch) || it.links.iter().any(|link| link.to.switch == switch)
        }
        Object::Intent(_) => false,
    })
}

/// A value in its text form.
pub fn parsed<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, Problem> {
    value.parse().map_err(|why| Problem::parameter(name, format!("{value:?} is wrong: {why}")))
}

/// A value that is one of a few words.
fn word<T: DeserializeOwned>(name: &str, value: &str) -> Result<T, Problem> {
    serde_json::from_value(value.into()).map_err(|why| Problem::parameter(name, why.to_string()))
}
