//! Ryu's `ofctl_rest`: what a switch says when it is asked now.
//!
//! ```text
//!   GET /stats/flow/1 ──> SwitchQuestion ──> switch ──parts──> bodies ──> {"1": […]}
//! ```
//!
//! In: requests. Out: questions for a switch, with a bound and a deadline for its answer, and the JSON that Ryu makes of it. Changes of
//! entries are in `entries`.

pub mod actions;
pub mod bodies;
pub mod entries;
pub mod matches;
#[cfg(test)]
mod recorded_tests;
pub mod table_features;

use super::context::{Answer, Answered, Context, SwitchQuestion};
use super::page::connected;
use super::writes::object;
use crate::http::{Problem, Response};
use actions::Item;
use burnet_sdk::flow::PortNo;
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::view::ConnectPoint;
use burnet_sdk::{DatapathId, PortMod, QUEUE_CONFIG, ROLE};
use serde_json::{Map, Value, json};

/// Numbers of multipart requests (OpenFlow 1.3.5, 7.3.5).
mod kind {
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const PORT: u16 = 4;
    pub const QUEUE: u16 = 5;
    pub const GROUP: u16 = 6;
    pub const GROUP_DESC: u16 = 7;
    pub const GROUP_FEATURES: u16 = 8;
    pub const METER: u16 = 9;
    pub const METER_CONFIG: u16 = 10;
    pub const METER_FEATURES: u16 = 11;
    pub const TABLE_FEATURES: u16 = 12;
    pub const PORT_DESC: u16 = 13;
}

/// All ports, queues, groups and meters in a request.
const ANY: u32 = 0xffff_ffff;
const ALL_GROUPS: u32 = 0xffff_fffc;

/// Asks the switch `{id}`. Its entries become the only member of an object, by the datapath id in decimal.
fn ask(
    context: &Context<'_>,
    multipart: u16,
    body: Vec<u8>,
    show: impl Fn(&[u8]) -> Vec<Value> + Send + 'static,
) -> Answered {
    let switch = connected(context, first(context.id))?.id;
    let read = move |parts: &[Vec<u8>]| text(switch, parts, &show).map(Response::json);
    Ok(Answer::Ask(SwitchQuestion { switch, multipart, body, read: Box::new(read) }))
}

/// The most bytes of an answer as JSON. A longer one is refused.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// The entries as JSON. They become text part by part: as values, those of a whole answer would take a hundred times as much memory as the
/// switch has sent.
fn text(
    switch: DatapathId,
    parts: &[Vec<u8>],
    show: &impl Fn(&[u8]) -> Vec<Value>,
) -> Result<Vec<u8>, Problem> {
    let mut out = format!("{{\"{}\":[", switch.0).into_bytes();
    let start = out.len();
    for part in parts {
        for entry in show(part) {
            if out.len() > start {
                out.push(b',');
            }
            // A value can always be written.
            drop(serde_json::to_writer(&mut out, &entry));
        }
        if out.len() > TEXT_BYTES_MAX {
            let why = format!(
                "the answer of the switch {switch} has more than {TEXT_BYTES_MAX} bytes as JSON: ask for one table, or for a match"
            );
            return Err(Problem::new(507, "no-room", "The node cannot keep it", why));
        }
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

fn first(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

/// The number at this place behind the switch. `ALL`, or nothing, is `all`.
fn further(context: &Context<'_>, place: usize, all: u32) -> Result<u32, Problem> {
    match context.id.split('/').nth(place) {
        None | Some("ALL") => Ok(all),
        Some(text) => {
            let digits = text.strip_prefix("0x");
            let number = digits.map_or_else(|| text.parse().ok(), |it| u32::from_str_radix(it, 16).ok());
            number.ok_or_else(|| Problem::not_found(&format!("{text:?} is no number")))
        }
    }
}

/// Fails if more parts than these are behind the switch.
fn at_most(context: &Context<'_>, parts: usize) -> Result<(), Problem> {
    match context.id.split('/').count() <= parts + 1 {
        true => Ok(()),
        false => Err(Problem::not_found("no resource has this address")),
    }
}

/// A request with numbers of four bytes.
fn numbers<const N: usize>(list: [u32; N]) -> Vec<u8> {
    list.iter().flat_map(|it| it.to_be_bytes()).collect()
}

/// `/stats/flow/{id}`: the flow entries, or with a body those that it chooses.
pub fn flows(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    let (body, priority) = chosen(context)?;
    ask(context, kind::FLOW, body, move |part| bodies::flows(part, priority))
}

/// `/stats/aggregateflow/{id}`
pub fn aggregate(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    let (body, _) = chosen(context)?;
    ask(context, kind::AGGREGATE, body, bodies::aggregate)
}

/// Which entries the body of a request chooses: the body of the request to the switch (7.3.5.2), and a priority, which the switch does not
/// know.
fn chosen(context: &Context<'_>) -> Result<(Vec<u8>, Option<u16>), Problem> {
    let members = match context.request.body.as_slice() {
        [] => Map::new(),
        body => match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => members,
            _ => return Err(Problem::bad_request("the body is no JSON object")),
        },
    };
    let item = Item { members: &members, at: "flow" };
    let table_id = match members.get("table_id").and_then(Value::as_str) {
        Some("ALL" | "OFPTT_ALL") => 0xff,
        _ => item.number_or("table_id", 0xff_u8)?,
    };
    let out_port = if members.contains_key("out_port") { item.port("out_port")? } else { PortNo::ANY };
    let out_group = item.number_or("out_group", ANY)?;
    let priority = members.contains_key("priority").then(|| item.number("priority")).transpose()?;
    let mut body = vec![table_id, 0, 0, 0];
    body.extend(numbers([out_port.0, out_group, 0]));
    body.extend(item.number_or("cookie", 0_u64)?.to_be_bytes());
    body.extend(item.number_or("cookie_mask", 0_u64)?.to_be_bytes());
    let mut tlvs = Vec::new();
    write_match(&matches::read(members.get("match"))?, &mut tlvs);
    // OFPMT_OXM, the length without padding, the fields, and padding.
    let length = u16::try_from(tlvs.len() + 4).map_err(|_| Problem::field("match", "it is too long"))?;
    body.extend([0, 1]);
    body.extend(length.to_be_bytes());
    body.extend(tlvs);
    body.resize(body.len().next_multiple_of(8), 0);
    Ok((body, priority))
}

/// `/stats/table/{id}`
pub fn tables(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    ask(context, kind::TABLE, Vec::new(), bodies::tables)
}

/// `/stats/tablefeatures/{id}`. OpenFlow 1.0 has no such answer.
pub fn features_of_tables(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    since_1_3(context, "the features of tables")?;
    ask(context, kind::TABLE_FEATURES, Vec::new(), table_features::table_features)
}

/// Fails if the switch speaks OpenFlow 1.0, which has no request for this.
fn since_1_3(context: &Context<'_>, what: &str) -> Result<(), Problem> {
    match connected(context, first(context.id))?.openflow.as_str() {
        "1.0" => Err(not_in_version(what)),
        _ => Ok(()),
    }
}

/// What Ryu answers for a request that the OpenFlow version of a switch does not have.
fn not_in_version(what: &str) -> Problem {
    let detail = format!("the OpenFlow version of the switch has no request for {what}");
    Problem::new(501, "not-supported", "The switch has no such request", detail)
}

/// `/stats/flowdesc/{id}`, `/stats/queuedesc/{id}` and `/stats/meterdesc/{id}`: OpenFlow 1.4 and 1.5.
pub fn of_later_versions(context: &Context<'_>) -> Answered {
    connected(context, first(context.id))?;
    Err(not_in_version("this: OpenFlow 1.4 or later is needed, and the node speaks 1.0 and 1.3"))
}

/// `/stats/queueconfig/{id}`, also with a port behind it. OpenFlow 1.0 has the queues of one port (5.3.4), and Ryu none.
pub fn queue_configurations(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    let port = further(context, 1, ANY)?;
    if port == ANY {
        since_1_3(context, "the queues of all ports: write a port, as in /stats/queueconfig/1/2")?;
    }
    ask(context, QUEUE_CONFIG, numbers([port, 0]), bodies::queue_configurations)
}

/// `POST /stats/role` and `/stats/experimenter/{id}`: what the node decides itself, or does not send.
pub fn not_offered(_: &Context<'_>) -> Answered {
    let detail = "over this interface, the node does not accept a role, because it decides itself who controls a switch. It sends no \
                  experimenter message: use the tools of the switch";
    Err(Problem::new(501, "not-supported", "The node does not offer this", detail))
}

/// `/stats/port/{id}`, also with a port behind it.
pub fn ports(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    ask(context, kind::PORT, numbers([further(context, 1, ANY)?, 0]), bodies::ports)
}

/// `/stats/portdesc/{id}`. A switch with OpenFlow 1.0 has no such answer, so the view gives it. A port behind it counts from OpenFlow 1.5 on:
/// like Ryu, it is left out.
pub fn port_descriptions(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    further(context, 1, ANY)?;
    let switch = connected(context, first(context.id))?;
    if switch.openflow != "1.0" {
        return ask(context, kind::PORT_DESC, Vec::new(), bodies::port_descriptions);
    }
    let down = |is_up: bool| u8::from(!is_up);
    let ports = context.state.view.ports_of(switch.id).map(|port| {
        json!({
            "port_no": matches::port(port.id.port),
            "hw_addr": port.mac.to_string(),
            "name": port.name,
            "config": down(port.enabled),
            "state": down(port.live),
            "curr": 0,
            "advertised": 0,
            "supported": 0,
            "peer": 0,
            "curr_speed": port.speed_kbps,
            "max_speed": 0,
        })
    });
    let ports: Vec<Value> = ports.collect();
    Ok(Answer::Ready(Response::value(&Value::Object(Map::from_iter([(
        switch.id.0.to_string(),
        ports.into(),
    )])))))
}

/// `/stats/queue/{id}`, also with a port and a queue behind it.
pub fn queues(context: &Context<'_>) -> Answered {
    at_most(context, 2)?;
    let body = numbers([further(context, 1, ANY)?, further(context, 2, ANY)?]);
    ask(context, kind::QUEUE, body, bodies::queues)
}

/// `/stats/group/{id}`, also with a group behind it.
pub fn groups(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    since_1_3(context, "groups")?;
    ask(context, kind::GROUP, numbers([further(context, 1, ALL_GROUPS)?, 0]), bodies::groups)
}

/// `/stats/groupdesc/{id}`. A group behind it counts from OpenFlow 1.5 on: like Ryu, it is left out.
pub fn group_descriptions(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    further(context, 1, ANY)?;
    since_1_3(context, "groups")?;
    ask(context, kind::GROUP_DESC, Vec::new(), bodies::group_descriptions)
}

/// `/stats/groupfeatures/{id}`
pub fn group_features(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    since_1_3(context, "groups")?;
    ask(context, kind::GROUP_FEATURES, Vec::new(), bodies::group_features)
}

/// `/stats/meter/{id}`, also with a meter behind it.
pub fn meters(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    since_1_3(context, "meters")?;
    ask(context, kind::METER, numbers([further(context, 1, ANY)?, 0]), bodies::meters)
}

/// `/stats/meterconfig/{id}`, also with a meter behind it.
pub fn meter_configurations(context: &Context<'_>) -> Answered {
    at_most(context, 1)?;
    since_1_3(context, "meters")?;
    ask(context, kind::METER_CONFIG, numbers([further(context, 1, ANY)?, 0]), bodies::meter_configurations)
}

/// `/stats/meterfeatures/{id}`
pub fn meter_features(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    since_1_3(context, "meters")?;
    ask(context, kind::METER_FEATURES, Vec::new(), bodies::meter_features)
}

/// `/stats/role/{id}`: what the switch answers when it is asked for a role without a change.
pub fn role(context: &Context<'_>) -> Answered {
    at_most(context, 0)?;
    since_1_3(context, "roles")?;
    ask(context, ROLE, Vec::new(), bodies::role)
}

/// `POST /stats/portdesc/modify`
pub fn change_port(context: &Context<'_>) -> Answered {
    let members = object(context)?;
    let item = Item { members: &members, at: "port" };
    let switch = entries::switch(context, &members)?;
    let at = ConnectPoint { switch, port: item.port("port_no")? };
    let missing = || Problem::not_found(&format!("the switch {switch} has no port {}", at.port));
    let port = context.state.view.port(at).ok_or_else(missing)?;
    if item.number_or("advertise", 0_u32)? != 0 {
        let why = "the node does not change what a port advertises: leave it out";
        return Err(Problem::field("advertise", why));
    }
    let hw_addr = match members.get("hw_addr") {
        None => port.mac,
        Some(text) => {
            let wrong = || Problem::field("hw_addr", format!("hw_addr: {text} is no Ethernet address"));
            text.as_str().and_then(|it| it.parse().ok()).ok_or_else(wrong)?
        }
    };
    let change = PortMod {
        port_no: at.port,
        hw_addr,
        config: item.number_or("config", 0)?,
        mask: item.number_or("mask", 0)?,
    };
    Ok(Answer::Port(switch, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of an answer of this switch with so many entries without a match and instructions.
    fn part(entries: usize) -> Vec<u8> {
        let mut entry = [0; 56];
        (entry[1], entry[49], entry[51]) = (56, 1, 4);
        entry.repeat(entries)
    }

    fn shown(parts: &[Vec<u8>]) -> Result<Vec<u8>, Problem> {
        text(DatapathId(7), parts, &|part: &[u8]| bodies::flows(part, None))
    }

    #[test]
    fn the_entries_of_all_parts_are_in_one_list() {
        for (parts, entries) in [(vec![], 0), (vec![part(0)], 0), (vec![part(2), part(0), part(1)], 3)] {
            let value: Value = serde_json::from_slice(&shown(&parts).unwrap()).unwrap();
            assert_eq!(value["7"].as_array().unwrap().len(), entries);
        }
    }

    #[test]
    fn an_answer_that_is_too_long_as_json_is_refused() {
        let one = shown(&[part(1_000)]).unwrap().len();
        let parts = vec![part(1_000); TEXT_BYTES_MAX / one + 2];
        let refused = shown(&parts).unwrap_err();
        assert_eq!(refused.status, 507);
        assert!(refused.detail.contains("ask for one table"), "{}", refused.detail);
    }
}
