//! Messages as text, in the syntax that `ovs-ofctl` prints and reads.
//!
//! ```text
//!   Message ──> "OFPT_FLOW_MOD (OF1.3) (xid=0x2): ADD priority=100,in_port=1 actions=output:2"
//! ```
//!
//! Words, order and lines are those of `ovs-ofctl ofp-print` of Open vSwitch 3.1, including its names for roles and for
//! some errors. There is a form of our own where Open vSwitch prints nothing: unknown experimenter messages, and
//! numbers without a name.
//!
//! Text has less information than bytes and JSON: [`to_text`] lists what it leaves out. Never resolves names of ports
//! or tables.

mod bundle;
mod connection;
mod dump;
mod frame;
mod group;
mod meter;
mod packet;
mod port;
mod queue;
mod read;
mod rule;
mod table;

pub use flow::text::BadText;
pub use read::parse;

use std::fmt::{self, Write};

use openflow::message::*;
use openflow::version::Version;

/// How much of a message's packets and payloads is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// A packet's headers, and only the length of a payload. Used for a message inside an error.
    Headers,
    /// Payloads too.
    Payloads,
}

/// The message as `ovs-ofctl ofp-print` prints it: one line or several, each with its end.
///
/// The text leaves out some information, which cannot be read back: the bytes of a packet (only its headers are
/// printed), and bits without a name in Open vSwitch. Also the properties and unknown types of a bundle, the cookie of a 1.3 modify or delete without a mask, and
/// unknown action types of group features. JSON has all of it.
pub fn to_text(message: &Message) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = print(&mut out, message, Detail::Payloads);
    out
}

fn print(out: &mut String, message: &Message, detail: Detail) -> fmt::Result {
    print_heading(out, &name(&message.body), message.version, message.xid)?;
    print_body(out, message, detail)?;
    if out.ends_with(' ') {
        out.pop();
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(())
}

/// `OFPT_FLOW_MOD (OF1.3) (xid=0x2):`
fn print_heading(out: &mut String, name: &str, version: Version, xid: u32) -> fmt::Result {
    out.push_str(name);
    match version {
        Version::V1_0 => {}
        Version(2..=6) => write!(out, " (OF{version})")?,
        Version(byte) => write!(out, " (OF 0x{byte:02x})")?,
    }
    write!(out, " (xid=0x{xid:x}):")
}

/// Open vSwitch's name for a type of message. For a multipart message it is the name of 1.0.
fn name(body: &Body) -> String {
    match body {
        Body::MultipartRequest(request) => format!("{} request", statistics_name(request.body.word())),
        Body::MultipartReply(reply) => format!("{} reply", statistics_name(reply.body.word())),
        // In 1.4 they are the specification's own, and begin with OFPT_.
        Body::BundleControl(_) | Body::BundleAdd(_) => {
            format!("ONFT_{}", body.type_word().to_ascii_uppercase())
        }
        _ => format!("OFPT_{}", body.type_word().to_ascii_uppercase()),
    }
}

fn statistics_name(word: &str) -> String {
    match word {
        "port_stats" => "OFPST_PORT".to_owned(),
        _ => format!("OFPST_{}", word.to_ascii_uppercase()),
    }
}

fn print_body(out: &mut String, message: &Message, detail: Detail) -> fmt::Result {
    let version = message.version;
    match &message.body {
        Body::Hello(hello) => connection::hello(out, version, hello),
        Body::Error(error) => connection::error(out, version, error),
        Body::EchoRequest(data) | Body::EchoReply(data) => connection::echo(out, data, detail),
        Body::Experimenter(whole) => {
            connection::experimenter(out, whole.experimenter, whole.exp_type, &whole.data)
        }
        Body::FeaturesReply(features) => connection::features(out, version, features),
        Body::GetConfigReply(config) | Body::SetConfig(config) => connection::config(out, version, config),
        Body::PacketIn(packet_in) => packet::packet_in(out, packet_in),
        Body::FlowRemoved(removed) => rule::flow_removed(out, version, removed),
        Body::PortStatus(status) => port::status(out, version, status),
        Body::PacketOut(packet_out) => packet::packet_out(out, packet_out),
        Body::FlowMod(flow_mod) => rule::flow_mod(out, version, flow_mod),
        Body::GroupMod(group_mod) => group::group_mod(out, group_mod),
        Body::PortMod(port_mod) => port::port_mod(out, version, port_mod),
        Body::TableMod(table_mod) => table::table_mod(out, table_mod),
        Body::MultipartRequest(request) => {
            multipart_flags(out, request.flags, version != Version::V1_0)?;
            print_request(out, version, &request.body)
        }
        Body::MultipartReply(reply) => {
            multipart_flags(out, reply.flags, true)?;
            print_reply(out, version, &reply.body)
        }
        Body::QueueGetConfigRequest(request) => write!(out, " port={}", request.port),
        Body::QueueGetConfigReply(reply) => queue::config(out, reply),
        Body::RoleRequest(role) | Body::RoleReply(role) => connection::role(out, role),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => connection::async_config(out, config),
        Body::MeterMod(meter_mod) => meter::meter_mod(out, meter_mod),
        Body::BundleControl(control) => bundle::control(out, control),
        Body::BundleAdd(add) => {
            bundle::add(out, add)?;
            print(out, &add.message, detail)
        }
        Body::FeaturesRequest
        | Body::GetConfigRequest
        | Body::BarrierRequest
        | Body::BarrierReply
        | Body::GetAsyncRequest => Ok(()),
    }
}

/// `may_be_more`: 1.0 has no parts of a request.
fn multipart_flags(out: &mut String, flags: u16, may_be_more: bool) -> fmt::Result {
    let more = if may_be_more { flags & MULTIPART_MORE } else { 0 };
    if flags != 0 {
        out.push_str(" flags=");
    }
    if more != 0 {
        out.push_str("[more]");
    }
    match flags & !more {
        0 => Ok(()),
        unknown => write!(out, "[***unknown flags 0x{unknown:04x}***]"),
    }
}

fn print_request(out: &mut String, version: Version, body: &RequestBody) -> fmt::Result {
    match body {
        RequestBody::Flow(which) | RequestBody::Aggregate(which) => rule::stats_request(out, version, which),
        RequestBody::PortStats(port) => write!(out, " port_no={port}"),
        RequestBody::Queue { port, queue_id } => {
            write!(out, " port={port} queue=")?;
            queue::id(out, *queue_id)
        }
        RequestBody::Group(group_id) => {
            out.push_str(" group_id=");
            group::id(out, *group_id)
        }
        RequestBody::GroupDesc => write!(out, " group_id=ALL"),
        RequestBody::Meter(meter_id) | RequestBody::MeterConfig(meter_id) => {
            out.push(' ');
            meter::id(out, *meter_id, '=')
        }
        RequestBody::TableFeatures(tables) => table::features(out, tables),
        RequestBody::PortDesc => write!(out, " port=ANY"),
        RequestBody::Experimenter(whole) => {
            connection::experimenter(out, whole.experimenter, whole.exp_type, &whole.data)
        }
        RequestBody::Desc | RequestBody::Table | RequestBody::GroupFeatures | RequestBody::MeterFeatures => {
            Ok(())
        }
    }
}

fn print_reply(out: &mut String, version: Version, body: &ReplyBody) -> fmt::Result {
    match body {
        ReplyBody::Desc(desc) => connection::switch_desc(out, desc),
        ReplyBody::Flow(flows) => flows.iter().try_for_each(|flow| rule::flow_stats(out, version, flow)),
        ReplyBody::Aggregate(sums) => rule::aggregate(out, sums),
        ReplyBody::Table(tables) => table::stats(out, version, tables),
        ReplyBody::PortStats(ports) => port::stats(out, version, ports),
        ReplyBody::Queue(queues) => queue::stats(out, version, queues),
        ReplyBody::Group(groups) => groups.iter().try_for_each(|group| group::stats(out, group)),
        ReplyBody::GroupDesc(groups) => groups.iter().try_for_each(|desc| group::desc(out, desc)),
        ReplyBody::GroupFeatures(features) => group::features(out, features),
        ReplyBody::Meter(meters) => meters.iter().try_for_each(|stats| meter::stats(out, stats)),
        ReplyBody::MeterConfig(meters) => meters.iter().try_for_each(|config| {
            out.push('\n');
            meter::config(out, config.flags, config.meter_id, &config.bands)
        }),
        ReplyBody::MeterFeatures(features) => meter::features(out, features),
        ReplyBody::TableFeatures(tables) => table::features(out, tables),
        ReplyBody::PortDesc(ports) => {
            out.push('\n');
            port::all(out, version, ports)
        }
        ReplyBody::Experimenter(whole) => {
            connection::experimenter(out, whole.experimenter, whole.exp_type, &whole.data)
        }
    }
}

/// `5.250s`: no decimals, three decimals, or as many as needed.
fn duration(out: &mut String, seconds: u32, nanoseconds: u32) -> fmt::Result {
    write!(out, "{seconds}")?;
    if nanoseconds > 0 && nanoseconds.is_multiple_of(1_000_000) {
        write!(out, ".{:03}", nanoseconds / 1_000_000)?;
    } else if nanoseconds > 0 {
        let digits = format!(".{nanoseconds:09}");
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push('s');
    Ok(())
}

/// A counter, or `?` if the switch does not count it (all ones).
fn counter(count: u64) -> String {
    if count == u64::MAX { "?".to_owned() } else { count.to_string() }
}

/// The names of the set bits, from the lowest on, and the rest as a number; `0` if no bit is set.
fn bit_names(out: &mut String, bits: u32, names: &[(u32, &str)]) -> fmt::Result {
    let mut words: Vec<String> =
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    let rest = names.iter().fold(bits, |rest, (bit, _)| rest & !bit);
    if rest != 0 {
        words.push(format!("0x{rest:x}"));
    }
    if words.is_empty() { out.write_str("0") } else { out.write_str(&words.join(" ")) }
}
