//! Whether an intent makes sense, as far as that can be said without the network.
//!
//! In: what is wanted. Out: a sentence that begins with the wrong field. It asks nobody whether hosts, switches or links exist.

use flow::{Action, Field, Match, MatchEntry, PortNo, relation};
use serde_json::Value;
use std::collections::BTreeSet;
use view::{ConnectPoint, Constraints, Ends, HostId, LinkId, Protection, Wanted, Weight};

/// The most ends on one side of an intent. With them, an intent fits into an entry of a stream.
pub const ENDS_MAX: usize = 64;

/// The most links of a path. With them, a path fits into an entry of a stream.
pub const LINKS_MAX: usize = 200;

/// The most switches or links that a constraint lists.
pub const LISTED_MAX: usize = 64;

/// The most actions of a treatment.
const ACTIONS_MAX: usize = 16;

/// The most fields of a selector, beyond the number of which no packet has more.
const FIELDS_MAX: usize = 24;

const EVERYWHERE: [&str; 6] = ["type", "selector", "treatment", "constraints", "priority", "protection"];

/// Reads an intent and refuses members that it does not have.
pub(crate) fn read_wanted(value: &Value) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Err("intent: it is no object".to_owned()) };
    let of_type: &[&str] = match object.get("type").and_then(Value::as_str) {
        Some("host_to_host") => &["one", "two"],
        Some("explicit") => &["from", "to", "links"],
        Some("point_to_point" | "multi_to_single" | "single_to_multi") => &["from", "to"],
        _ => return Err(TYPES.to_owned()),
    };
    match object.keys().find(|key| !EVERYWHERE.contains(&key.as_str()) && !of_type.contains(&key.as_str())) {
        Some(unknown) => Err(format!("intent.{unknown}: unknown, or not of an intent of this type")),
        None => Ok(()),
    }
}

const TYPES: &str =
    "intent.type: write host_to_host, point_to_point, multi_to_single, single_to_multi or explicit";

/// Whether an intent makes sense by itself.
///
/// # Errors
/// A sentence that begins with the wrong field.
pub fn check_wanted(wanted: &Wanted) -> Result<(), String> {
    check_ends(&wanted.ends)?;
    check_selector(wanted)?;
    check_treatment(&wanted.treatment)?;
    check_constraints(&wanted.constraints)?;
    if wanted.priority == 0 {
        return Err("intent.priority: 0 is that of the table-miss rule: write 1 to 65535".to_owned());
    }
    check_combination(wanted)
}

fn check_ends(ends: &Ends) -> Result<(), String> {
    match ends {
        Ends::HostToHost { one, two } => check_hosts(*one, *two),
        Ends::PointToPoint { from, to } => check_points("to", *from, &[*to]),
        Ends::MultiToSingle { from, to } => check_points("from", *to, from),
        Ends::SingleToMulti { from, to } => check_points("to", *from, to),
        Ends::Explicit { from, to, links } => {
            check_points("to", *from, &[*to])?;
            check_links(*from, *to, links)
        }
    }
}

fn check_hosts(one: HostId, two: HostId) -> Result<(), String> {
    for (field, host) in [("one", one), ("two", two)] {
        if host.mac.is_multicast() || host.mac.0 == [0; 6] {
            return Err(format!("intent.{field}: {} is no address of a single host", host.mac));
        }
    }
    if one.mac == two.mac {
        return Err("intent.two: it is the same host as intent.one".to_owned());
    }
    match one.vlan == two.vlan {
        true => Ok(()),
        false => Err("intent.two: the hosts are in different VLANs".to_owned()),
    }
}

fn check_points(field: &str, single: ConnectPoint, several: &[ConnectPoint]) -> Result<(), String> {
    if several.is_empty() || several.len() > ENDS_MAX {
        return Err(format!("intent.{field}: {} ports: write 1 to {ENDS_MAX}", several.len()));
    }
    let is_port = |point: &ConnectPoint| (PortNo(1)..=PortNo::MAX).contains(&point.port);
    if let Some(wrong) = several.iter().chain([&single]).find(|point| !is_port(point)) {
        return Err(format!("intent.{field}: {wrong} is no port for packets of hosts"));
    }
    let mut seen = BTreeSet::from([single]);
    match several.iter().find(|point| !seen.insert(**point)) {
        Some(twice) => Err(format!("intent.{field}: {twice} is named twice")),
        None => Ok(()),
    }
}

fn check_links(from: ConnectPoint, to: ConnectPoint, links: &[LinkId]) -> Result<(), String> {
    if links.len() > LINKS_MAX {
        return Err(format!("intent.links: {} links: at most {LINKS_MAX} are allowed", links.len()));
    }
    let (mut at, mut seen) = (from.switch, BTreeSet::new());
    for (number, link) in links.iter().enumerate() {
        if link.from.switch != at {
            return Err(format!("intent.links[{number}]: {link} does not begin at the switch {at}"));
        }
        if !seen.insert(*link) {
            return Err(format!("intent.links[{number}]: {link} is there twice"));
        }
        at = link.to.switch;
    }
    match at == to.switch {
        true => Ok(()),
        false => Err(format!("intent.links: they end at the switch {at}, and not at {}", to.switch)),
    }
}

fn check_selector(wanted: &Wanted) -> Result<(), String> {
    let between_hosts = matches!(wanted.ends, Ends::HostToHost { .. });
    if wanted.selector.entries().len() > FIELDS_MAX {
        return Err(format!("intent.selector: more than {FIELDS_MAX} fields"));
    }
    for entry in wanted.selector.entries() {
        let MatchEntry::Field { field, .. } = entry else {
            return Err("intent.selector: it may have only fields of OpenFlow 1.3".to_owned());
        };
        match field {
            Field::InPort | Field::InPhyPort => {
                return Err(format!("intent.selector.{}: the ends of the intent give it", field.name()));
            }
            Field::EthSrc | Field::EthDst | Field::VlanVid if between_hosts => {
                return Err(format!("intent.selector.{}: the hosts give it", field.name()));
            }
            Field::Metadata | Field::TunnelId => {
                return Err(format!("intent.selector.{}: no packet has it between switches", field.name()));
            }
            _ => {}
        }
    }
    check_prerequisites(&wanted.selector)
}

fn check_prerequisites(selector: &Match) -> Result<(), String> {
    match relation::is_nothing(selector) {
        true => Err("intent.selector: no packet matches it".to_owned()),
        // OpenFlow 1.3.5, 7.2.3.8.
        false => flow::canonical::check_prerequisites(&selector.clone().sorted())
            .map_err(|why| format!("intent.selector: a field needs another one: {why}")),
    }
}

fn check_treatment(treatment: &[Action]) -> Result<(), String> {
    if treatment.len() > ACTIONS_MAX {
        return Err(format!(
            "intent.treatment: {} actions, and at most {ACTIONS_MAX} can be",
            treatment.len()
        ));
    }
    for (number, action) in treatment.iter().enumerate() {
        let why = match action {
            Action::Output { .. } | Action::Enqueue { .. } => "the ends of the intent are its only outputs",
            Action::Group(_) => "groups belong to the service",
            Action::Experimenter { .. } | Action::SetUnknownField { .. } => {
                "only standard actions are allowed"
            }
            _ => continue,
        };
        return Err(format!("intent.treatment[{number}]: {why}"));
    }
    Ok(())
}

/// Whether constraints make sense by themselves.
pub(crate) fn check_constraints(constraints: &Constraints) -> Result<(), String> {
    let listed = [
        ("via", constraints.via.len()),
        ("avoid_switches", constraints.avoid_switches.len()),
        ("avoid_links", constraints.avoid_links.len()),
    ];
    if let Some((field, count)) = listed.iter().find(|(_, count)| *count > LISTED_MAX) {
        return Err(format!("intent.constraints.{field}: {count} are too many, at most {LISTED_MAX} can be"));
    }
    if let Some(both) = constraints.via.iter().find(|switch| constraints.avoid_switches.contains(switch)) {
        return Err(format!("intent.constraints.via: {both} is also one to avoid"));
    }
    match &constraints.weight {
        Weight::Annotation(name) if name.is_empty() || name.len() > 128 => {
            Err("intent.constraints.weight: the name of an annotation has 1 to 128 bytes".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_combination(wanted: &Wanted) -> Result<(), String> {
    let constraints = &wanted.constraints;
    let is_tree = matches!(wanted.ends, Ends::MultiToSingle { .. } | Ends::SingleToMulti { .. });
    let is_explicit = matches!(wanted.ends, Ends::Explicit { .. });
    let is_protected = wanted.protection == Protection::Protected;
    let refused = [
        (
            is_tree && is_protected,
            "intent.protection: only an intent from one end to another can be protected",
        ),
        (is_explicit && is_protected, "intent.protection: an explicit path has no backup"),
        (is_tree && !constraints.via.is_empty(), "intent.constraints.via: only for one end to another"),
        (is_explicit && !constraints.via.is_empty(), "intent.constraints.via: the links say it already"),
        (is_protected && !constraints.via.is_empty(), "intent.constraints.via: not for a protected intent"),
    ];
    match refused.iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Question;

    #[test]
    fn an_intent_that_makes_no_sense_is_refused_with_the_field() {
        let check = |intent: &str, part: &str| {
            let text = format!("{{\"op\":\"add\",\"intent\":{{{intent}}}}}");
            let why = Question::from_bytes(text.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        let hosts = |one: &str, two: &str| format!(r#""type":"host_to_host","one":"{one}","two":"{two}""#);
        check(
            &hosts("01:00:00:00:00:01", "00:00:00:00:00:02"),
            "intent.one: 01:00:00:00:00:01 is no address",
        );
        check(&hosts("00:00:00:00:00:01", "00:00:00:00:00:01"), "intent.two: it is the same host");
        check(&hosts("00:00:00:00:00:01", "00:00:00:00:00:02.3"), "intent.two: the hosts are in different");
        let points = |rest: &str| format!(r#""type":"point_to_point","from":"1/1","to":"2/2"{rest}"#);
        check(
            r#""type":"point_to_point","from":"1/1","to":"1/1""#,
            "intent.to: of:0000000000000001/1 is named",
        );
        check(r#""type":"point_to_point","from":"1/1","to":"1/FLOOD""#, "/FLOOD is no port for packets");
        check(r#""type":"point_to_point","from":"1/1","to":"1/0""#, "/0 is no port for packets");
        check(r#""type":"multi_to_single","from":[],"to":"1/1""#, "intent.from: 0 ports");
        check(r#""type":"single_to_multi","from":"1/1","to":["2/2","2/2"]"#, "is named twice");
        let explicit =
            |links: &str| format!(r#""type":"explicit","from":"1/9","to":"3/9","links":[{links}]"#);
        check(&explicit(r#""2/1-3/1""#), "intent.links[0]: ");
        check(&explicit(r#""1/1-2/1""#), "intent.links: they end at the switch of:0000000000000002");
        check(&explicit(r#""1/1-2/1","2/1-1/1","1/1-2/1","2/2-3/1""#), "intent.links[2]: ");
        check(&points(r#","selector":{"in_port":1}"#), "intent.selector.in_port: the ends");
        check(
            &points(r#","selector":{"ipv4_dst":"10.0.0.1"}"#),
            "intent.selector: a field needs another one",
        );
        check(&points(r#","selector":{"metadata":1}"#), "intent.selector.metadata: ");
        let two = hosts("00:00:00:00:00:01", "00:00:00:00:00:02");
        check(
            &format!(r#"{two},"selector":{{"eth_dst":"00:00:00:00:00:02"}}"#),
            "intent.selector.eth_dst: the",
        );
        check(&points(r#","treatment":[{"type":"output","port":1}]"#), "intent.treatment[0]: the ends");
        check(
            &points(r#","treatment":[{"type":"pop_vlan"},{"type":"group","group_id":1}]"#),
            "intent.treatment[1]",
        );
        check(&points(r#","priority":0"#), "intent.priority: 0 is that of");
        check(&points(r#","constraints":{"via":["3"],"avoid_switches":["3"]}"#), "intent.constraints.via: ");
        check(&points(r#","constraints":{"bandwidth":1}"#), "unknown field `bandwidth`");
        check(&points(r#","constraints":{"weight":{"annotation":""}}"#), "intent.constraints.weight: ");
        check(&points(r#","protection":"protected","constraints":{"via":["3"]}"#), "not for a protected");
        let tree = r#""type":"multi_to_single","from":["1/1"],"to":"2/2""#;
        check(&format!(r#"{tree},"protection":"protected""#), "intent.protection: only");
    }
}
