//! Actions in JSON.

use super::match_json::{Value, read_unknown, unknown_key};
use super::object::Object;
use crate::action::Action;
use crate::field::Field;
use crate::port::PortNo;
use crate::value::{self, Style};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// An object whose `type` is the specification's name in lower case.
///
/// ```
/// use flow::{Action, PortNo};
/// let action = Action::Output { port: PortNo::CONTROLLER, max_len: 128 };
/// let json = r#"{"type":"output","port":"CONTROLLER","max_len":128}"#;
/// assert_eq!(serde_json::to_string(&action).unwrap(), json);
/// assert_eq!(serde_json::from_str::<Action>(json).unwrap(), action);
/// ```
impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", type_name(self))?;
        match self {
            Action::Output { port, max_len } => {
                map.serialize_entry("port", port)?;
                map.serialize_entry("max_len", max_len)?;
            }
            Action::SetMplsTtl(ttl) | Action::SetNwTtl(ttl) => map.serialize_entry("ttl", ttl)?,
            Action::PushVlan(ethertype)
            | Action::PushMpls(ethertype)
            | Action::PopMpls(ethertype)
            | Action::PushPbb(ethertype) => map.serialize_entry("ethertype", &format!("{ethertype:#06x}"))?,
            Action::SetQueue(queue_id) => map.serialize_entry("queue_id", queue_id)?,
            Action::Group(group_id) => map.serialize_entry("group_id", group_id)?,
            Action::SetField { field, value } => {
                map.serialize_entry("field", field.name())?;
                map.serialize_entry("value", &Value { field: *field, value: *value })?;
            }
            Action::SetUnknownField { header, body } => {
                map.serialize_entry("field", &unknown_key(*header))?;
                map.serialize_entry("value", &value::show_hex(body))?;
            }
            Action::SetVlanVid(vid) => map.serialize_entry("vlan_vid", vid)?,
            Action::SetVlanPcp(pcp) => map.serialize_entry("vlan_pcp", pcp)?,
            Action::SetEthSrc(address) | Action::SetEthDst(address) => {
                map.serialize_entry("address", address)?
            }
            Action::SetIpv4Src(address) | Action::SetIpv4Dst(address) => {
                map.serialize_entry("address", &address.to_string())?;
            }
            Action::SetIpTos(tos) => map.serialize_entry("tos", tos)?,
            Action::SetTransportSrc(port) | Action::SetTransportDst(port) => {
                map.serialize_entry("port", port)?
            }
            Action::Enqueue { port, queue_id } => {
                map.serialize_entry("port", port)?;
                map.serialize_entry("queue_id", queue_id)?;
            }
            Action::Experimenter { experimenter, body } => {
                map.serialize_entry("experimenter", &format!("{experimenter:#010x}"))?;
                map.serialize_entry("body", &value::show_hex(body))?;
            }
            Action::CopyTtlOut
            | Action::CopyTtlIn
            | Action::DecMplsTtl
            | Action::PopVlan
            | Action::DecNwTtl
            | Action::PopPbb
            | Action::StripVlan => {}
        }
        map.end()
    }
}

fn type_name(action: &Action) -> &'static str {
    match action {
        Action::Output { .. } => "output",
        Action::CopyTtlOut => "copy_ttl_out",
        Action::CopyTtlIn => "copy_ttl_in",
        Action::SetMplsTtl(_) => "set_mpls_ttl",
        Action::DecMplsTtl => "dec_mpls_ttl",
        Action::PushVlan(_) => "push_vlan",
        Action::PopVlan => "pop_vlan",
        Action::PushMpls(_) => "push_mpls",
        Action::PopMpls(_) => "pop_mpls",
        Action::SetQueue(_) => "set_queue",
        Action::Group(_) => "group",
        Action::SetNwTtl(_) => "set_nw_ttl",
        Action::DecNwTtl => "dec_nw_ttl",
        Action::SetField { .. } | Action::SetUnknownField { .. } => "set_field",
        Action::PushPbb(_) => "push_pbb",
        Action::PopPbb => "pop_pbb",
        Action::SetVlanVid(_) => "set_vlan_vid",
        Action::SetVlanPcp(_) => "set_vlan_pcp",
        Action::StripVlan => "strip_vlan",
        Action::SetEthSrc(_) => "set_eth_src",
        Action::SetEthDst(_) => "set_eth_dst",
        Action::SetIpv4Src(_) => "set_ipv4_src",
        Action::SetIpv4Dst(_) => "set_ipv4_dst",
        Action::SetIpTos(_) => "set_ip_tos",
        Action::SetTransportSrc(_) => "set_transport_src",
        Action::SetTransportDst(_) => "set_transport_dst",
        Action::Enqueue { .. } => "enqueue",
        Action::Experimenter { .. } => "experimenter",
    }
}

fn read_action(mut object: Object) -> Result<Action, String> {
    let action = match object.kind() {
        "output" => read_output(&mut object)?,
        "copy_ttl_out" => Action::CopyTtlOut,
        "copy_ttl_in" => Action::CopyTtlIn,
        "set_mpls_ttl" => Action::SetMplsTtl(object.number("ttl")?),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "push_vlan" => Action::PushVlan(object.number("ethertype")?),
        "pop_vlan" => Action::PopVlan,
        "push_mpls" => Action::PushMpls(object.number("ethertype")?),
        "pop_mpls" => Action::PopMpls(object.number("ethertype")?),
        "set_queue" => Action::SetQueue(object.number("queue_id")?),
        "group" => Action::Group(object.number("group_id")?),
        "set_nw_ttl" => Action::SetNwTtl(object.number("ttl")?),
        "dec_nw_ttl" => Action::DecNwTtl,
        "set_field" => read_set_field(&mut object)?,
        "push_pbb" => Action::PushPbb(object.number("ethertype")?),
        "pop_pbb" => Action::PopPbb,
        "set_vlan_vid" => Action::SetVlanVid(object.number("vlan_vid")?),
        "set_vlan_pcp" => Action::SetVlanPcp(object.number("vlan_pcp")?),
        "strip_vlan" => Action::StripVlan,
        "set_eth_src" => Action::SetEthSrc(object.parsed("address")?),
        "set_eth_dst" => Action::SetEthDst(object.parsed("address")?),
        "set_ipv4_src" => Action::SetIpv4Src(read_ipv4(&mut object)?),
        "set_ipv4_dst" => Action::SetIpv4Dst(read_ipv4(&mut object)?),
        "set_ip_tos" => Action::SetIpTos(object.number("tos")?),
        "set_transport_src" => Action::SetTransportSrc(object.number("port")?),
        "set_transport_dst" => Action::SetTransportDst(object.number("port")?),
        "enqueue" => Action::Enqueue { port: object.port("port")?, queue_id: object.number("queue_id")? },
        "experimenter" => {
            Action::Experimenter { experimenter: object.number("experimenter")?, body: object.bytes("body")? }
        }
        unknown => {
            return Err(format!("type: expected an action (output, set_field, group …), found '{unknown}'"));
        }
    };
    object.end(action)
}

/// Without `max_len` the controller gets the whole packet.
fn read_output(object: &mut Object) -> Result<Action, String> {
    let port = object.port("port")?;
    let max_len = match port {
        _ if object.has("max_len") => object.number("max_len")?,
        PortNo::CONTROLLER => 0xffff,
        _ => 0,
    };
    Ok(Action::Output { port, max_len })
}

fn read_ipv4(object: &mut Object) -> Result<std::net::Ipv4Addr, String> {
    let text = object.text("address")?;
    let expected = Style::Ipv4.expected();
    text.parse().map_err(|_| object.fault(format!("address: expected {expected}, found '{text}'")))
}

fn read_set_field(object: &mut Object) -> Result<Action, String> {
    let (name, text) = (object.text("field")?, object.text("value")?);
    let Some(field) = Field::from_name(&name) else {
        let unknown = read_unknown(&name, &text);
        let (header, body) = unknown.map_err(|fault| object.fault(format!("{name}: {fault}")))?;
        return Ok(Action::SetUnknownField { header, body });
    };
    let value = value::read(Style::of(field), field.bits(), &text);
    let value = value.map_err(|fault| object.fault(format!("{name}: {fault}")))?;
    Ok(Action::SetField { field, value })
}

struct ActionVisitor;

impl<'de> Visitor<'de> for ActionVisitor {
    type Value = Action;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an action: an object with a type")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Action, A::Error> {
        read_action(Object::read(map, |_, _| Ok(false))?).map_err(A::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ActionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_refused(json: &str, words: &[&str]) {
        let refused = serde_json::from_str::<Action>(json).unwrap_err().to_string();
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }

    #[test]
    fn wrong_input_is_refused_by_its_key() {
        check_refused("5", &["an action"]);
        check_refused("{}", &["'type' is missing"]);
        check_refused(r#"{"type":"outptu"}"#, &["type", "'outptu'", "output"]);
        check_refused(r#"{"type":"output"}"#, &["output", "'port' is missing"]);
        check_refused(r#"{"type":"output","port":"NOWHERE"}"#, &["output", "port", "'NOWHERE'"]);
        check_refused(r#"{"type":"output","port":1,"max_len":65536}"#, &["max_len", "16 bits"]);
        check_refused(r#"{"type":"output","port":1,"colour":2}"#, &["output", "'colour' is unknown"]);
        check_refused(r#"{"type":"output","port":1,"port":2}"#, &["'port'", "twice"]);
        check_refused(r#"{"type":"set_nw_ttl","ttl":256}"#, &["set_nw_ttl", "ttl", "8 bits"]);
        check_refused(
            r#"{"type":"set_field","field":"eth_dst","value":"x"}"#,
            &["eth_dst", "an Ethernet address"],
        );
        check_refused(
            r#"{"type":"set_field","field":"colour","value":"1"}"#,
            &["colour", "a field of OpenFlow"],
        );
        check_refused(r#"{"type":"set_ipv4_src","address":"1.2.3"}"#, &["address", "'1.2.3'"]);
    }

    #[test]
    fn the_controller_gets_all_if_nothing_else_is_said() {
        let read = |json| serde_json::from_str::<Action>(json).unwrap();
        assert_eq!(read(r#"{"type":"output","port":"controller"}"#), Action::to_controller());
        assert_eq!(read(r#"{"type":"output","port":1}"#), Action::output(PortNo(1)));
    }

    proptest! {
        #[test]
        fn an_action_comes_back(
            action in prop_oneof![crate::arbitrary::action(), crate::arbitrary::action_of_1_0()],
        ) {
            let json = serde_json::to_string(&action).unwrap();
            prop_assert_eq!(serde_json::from_str::<Action>(&json).unwrap(), action);
        }
    }
}
