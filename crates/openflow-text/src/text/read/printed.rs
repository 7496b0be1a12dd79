//! Parses printed messages: a heading with the type, and the text that follows for that type.
//!
//! Types whose text leaves out too much are refused, each with what is missing.

mod bundle;
mod connection;
mod statistics;

use flow::text::BadText;

use super::words::fault;
use super::{group, meter, packet_out, rule};
use openflow::message::*;
use openflow::version::Version;

/// `OFPT_FLOW_MOD (OF1.3) (xid=0x2): …`
pub(super) fn message(text: &str) -> Result<Message, BadText> {
    let Heading { name, version, xid, end } = heading(text)?;
    let rest = text[end..].trim_end();
    // Text on the heading's own line begins after a blank, text below it after a line end.
    let start = end + rest.len() - rest.trim_start().len();
    // An error in the heading's name has its offset already.
    let shift = |bad: BadText| if bad.word == name { bad } else { bad.shifted(start) };
    let body = body(name, version, text[start..].trim_end()).map_err(shift)?;
    Ok(Message { version, xid, body })
}

struct Heading<'a> {
    name: &'a str,
    version: Version,
    xid: u32,
    /// The offset of its end in the text.
    end: usize,
}

fn heading(text: &str) -> Result<Heading<'_>, BadText> {
    let expected =
        || fault(0, text.lines().next().unwrap_or_default(), "expected OFPT_… (OF1.3) (xid=0x…): …");
    let (before, after) = text.split_once(" (xid=0x").ok_or_else(expected)?;
    let (digits, rest) = after.split_once("):").ok_or_else(expected)?;
    let xid = u32::from_str_radix(digits, 16).map_err(|_| expected())?;
    let (name, version) = match before.split_once(" (OF") {
        None => (before, Version::V1_0),
        Some((name, version)) => (name, version_of(version).ok_or_else(expected)?),
    };
    Ok(Heading { name, version, xid, end: text.len() - rest.len() })
}

/// `1.3)` or ` 0x63)`
fn version_of(text: &str) -> Option<Version> {
    let text = text.strip_suffix(')')?.trim_start();
    (0..=u8::MAX).map(Version).find(|version| version.to_string() == text)
}

fn body(name: &str, version: Version, text: &str) -> Result<Body, BadText> {
    if let Some(kind) = name.strip_prefix("OFPST_") {
        let (flags, flags_len) = statistics::flags(text)?;
        let rest = text[flags_len..].trim_start();
        let shift = |bad: BadText| bad.shifted(text.len() - rest.len());
        return match kind.split_once(' ') {
            Some((kind, "request")) => statistics::request(kind, rest)
                .map(|body| Body::MultipartRequest(MultipartRequest { flags, body }))
                .map_err(shift),
            Some((kind, "reply")) => statistics::reply(kind, version, rest)
                .map(|body| Body::MultipartReply(MultipartReply { flags, body }))
                .map_err(shift),
            _ => Err(fault(0, name, "expected 'request' or 'reply' behind the type")),
        };
    }
    Ok(match name {
        "OFPT_HELLO" => Body::Hello(connection::hello(version, text)?),
        "OFPT_ERROR" => Body::Error(connection::error(version, text)?),
        "OFPT_ECHO_REQUEST" => Body::EchoRequest(connection::echo(text)?),
        "OFPT_ECHO_REPLY" => Body::EchoReply(connection::echo(text)?),
        "OFPT_EXPERIMENTER" => Body::Experimenter(connection::experimenter(text)?),
        "OFPT_FEATURES_REQUEST" => nothing(text, Body::FeaturesRequest)?,
        "OFPT_GET_CONFIG_REQUEST" => nothing(text, Body::GetConfigRequest)?,
        "OFPT_GET_CONFIG_REPLY" => Body::GetConfigReply(connection::config(text)?),
        "OFPT_SET_CONFIG" => Body::SetConfig(connection::config(text)?),
        "OFPT_FLOW_REMOVED" => Body::FlowRemoved(statistics::flow_removed(version, text)?),
        "OFPT_PACKET_OUT" => Body::PacketOut(packet_out::printed(text)?),
        "OFPT_FLOW_MOD" => Body::FlowMod(rule::printed(text, version)?),
        "OFPT_GROUP_MOD" => Body::GroupMod(group::printed(text)?),
        "OFPT_TABLE_MOD" => Body::TableMod(connection::table_mod(text)?),
        "OFPT_METER_MOD" => Body::MeterMod(meter::printed(text)?),
        "OFPT_BARRIER_REQUEST" => nothing(text, Body::BarrierRequest)?,
        "OFPT_BARRIER_REPLY" => nothing(text, Body::BarrierReply)?,
        "OFPT_QUEUE_GET_CONFIG_REQUEST" => {
            Body::QueueGetConfigRequest(QueueGetConfigRequest { port: connection::only_port(text, "port")? })
        }
        "OFPT_ROLE_REQUEST" => Body::RoleRequest(connection::role(text)?),
        "OFPT_ROLE_REPLY" => Body::RoleReply(connection::role(text)?),
        "OFPT_GET_ASYNC_REQUEST" => nothing(text, Body::GetAsyncRequest)?,
        "OFPT_GET_ASYNC_REPLY" => Body::GetAsyncReply(connection::async_config(text)?),
        "OFPT_SET_ASYNC" => Body::SetAsync(connection::async_config(text)?),
        "ONFT_BUNDLE_CONTROL" => Body::BundleControl(bundle::control(text)?),
        "ONFT_BUNDLE_ADD_MESSAGE" => {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            let message = bundled(rest).map_err(|bad| bad.shifted(text.len() - rest.len()))?;
            Body::BundleAdd(bundle::add(first, message)?)
        }
        "OFPT_PACKET_IN" => return Err(incomplete(text, "the packet's bytes")),
        "OFPT_FEATURES_REPLY" | "OFPT_PORT_STATUS" | "OFPT_PORT_MOD" => {
            return Err(incomplete(
                text,
                "the bits of ports and switches that have no name, and exact speeds",
            ));
        }
        "OFPT_QUEUE_GET_CONFIG_REPLY" => {
            return Err(incomplete(text, "the port asked for, and properties without a name"));
        }
        _ => return Err(fault(0, name, "no message has this name")),
    })
}

/// The message in one that adds it to a bundle. It cannot add another itself, which bounds the nesting.
fn bundled(text: &str) -> Result<Message, BadText> {
    if !text.starts_with("OFP") {
        return Err(fault(
            0,
            text.lines().next().unwrap_or_default(),
            "expected the bundled message: OFPT_…",
        ));
    }
    message(text)
}

/// The error for a text that cannot be read back without a guess.
fn incomplete(text: &str, missing: &str) -> BadText {
    let word = text.lines().next().unwrap_or_default();
    fault(0, word, format!("the text of this type leaves out {missing}: write the message in JSON"))
}

/// Returns `done` if nothing follows.
fn nothing<T>(text: &str, done: T) -> Result<T, BadText> {
    if text.is_empty() { Ok(done) } else { Err(fault(0, text, "nothing is expected behind this type")) }
}
