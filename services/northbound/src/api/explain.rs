//! `GET /api/v1/explain`: which packet, and where it enters the network.
//!
//! ```text
//!   ?from=HOST&to=HOST[&packet=FIELDS]   or   ?at=CONNECT_POINT&packet=FIELDS ──> Asked
//! ```
//!
//! In: parameters and the state. Out: what is to be explained, with the addresses of the two hosts, or the parameter that is wrong.

use super::context::{Answer, Answered, Context};
use crate::http::Problem;
use crate::way::{Asked, Explaining};
use burnet_sdk::view::{ConnectPoint, Host, HostId, Snapshot};
use explain::{Packet, read_packet};
use flow::{Action, Field};
use std::net::IpAddr;

/// The longest text of a packet in bytes: all fields with their longest values are shorter.
const PACKET_BYTES_MAX: usize = 4_096;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u128 = 0x0806;

/// `OFPVID_PRESENT`.
const VLAN_PRESENT: u128 = 0x1000;

/// An end of the way.
struct End<'v> {
    at: ConnectPoint,
    host: Option<&'v Host>,
}

/// `GET /api/v1/explain`
pub fn explain(context: &Context<'_>) -> Answered {
    let view = &context.state.view;
    let text = context.parameter("packet").unwrap_or_default();
    if text.len() > PACKET_BYTES_MAX {
        let why = format!("it has {} bytes, and at most {PACKET_BYTES_MAX} are read", text.len());
        return Err(Problem::parameter("packet", why));
    }
    let packet = read_packet(text).map_err(|why| Problem::parameter("packet", why))?;
    let (name, start) = match (context.parameter("at"), context.parameter("from")) {
        (Some(_), Some(_)) => return Err(Problem::parameter("at", "write at or from, not both")),
        (Some(at), None) => ("at", at),
        (None, Some(from)) => ("from", from),
        (None, None) => {
            let why = "it is missing: write where the packet enters the network, a host or a connect point";
            return Err(Problem::parameter("from", why));
        }
    };
    let from = end(view, name, start)?;
    let to = context.parameter("to").map(|to| end(view, "to", to)).transpose()?;
    if context.parameter("packet").is_none()
        && (from.host.is_none() || to.as_ref().is_none_or(|it| it.host.is_none()))
    {
        let why = "it is missing: between two hosts, their addresses make the packet; otherwise write its fields, such as ip_dst=10.0.0.2,tcp_dst=80";
        return Err(Problem::parameter("packet", why));
    }
    if view.port(from.at).is_none() {
        return Err(missing(name, format!("the network has no port {}", from.at)));
    }
    let packet = between(packet, from.host, to.as_ref().and_then(|it| it.host));
    let asked = Asked { at: from.at, to: to.map(|it| it.at), packet };
    let apps = context.state.apps.iter().map(|app| (app.zone, app.id.clone())).collect();
    Ok(Answer::Steps(Box::new(Explaining::new(asked, view.clone(), apps))))
}

/// The parameter names nothing of the network.
fn missing(name: &str, why: String) -> Problem {
    Problem { field: Some(name.to_owned()), ..Problem::not_found(&why) }
}

/// A host by its id or address, or a connect point.
fn end<'v>(view: &'v Snapshot, name: &str, text: &str) -> Result<End<'v>, Problem> {
    let of_host = |host: &'v Host| End { at: host.at, host: Some(host) };
    let unknown = || missing(name, format!("the network has no host {text}: `burnet hosts` lists them"));
    if text.contains('/') {
        let point = text.parse::<ConnectPoint>();
        let at = point.map_err(|why| Problem::parameter(name, why.to_string()))?;
        return Ok(End { at, host: None });
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return view.hosts_with_address(address).next().map(of_host).ok_or_else(unknown);
    }
    match text.parse::<HostId>() {
        Ok(id) => {
            view.host(id).or_else(|| view.hosts_with_mac(id.mac).next()).map(of_host).ok_or_else(unknown)
        }
        Err(_) => {
            let why = format!(
                "{text:?} is wrong: write a host, such as 00:00:00:00:00:01 or 10.0.0.1, or a connect point, such as of:1/3"
            );
            Err(Problem::parameter(name, why))
        }
    }
}

/// The packet, with the addresses of these hosts where it has none.
fn between(mut packet: Packet, from: Option<&Host>, to: Option<&Host>) -> Packet {
    let common = |is_ipv4: bool| {
        let of = |host: &Host| host.addresses.iter().copied().find(|it| it.is_ipv4() == is_ipv4);
        Some((from.map(of)??, to.map(of)??))
    };
    if packet.get(Field::EthType) == Some(0) {
        let kind = match (common(true), common(false)) {
            (None, Some(_)) => IPV6,
            _ => IPV4,
        };
        let with_type = if kind == IPV6 { "ipv6" } else { "ip" };
        // Only if both hosts are known: otherwise the packet is as it was written.
        if let (Some(_), Some(_), Ok(typed)) = (from, to, read_packet(with_type)) {
            packet = typed.with_frame_of(&packet);
        }
    }
    if let Some(host) = from {
        packet.set_if_zero(Field::EthSrc, host.id.mac.to_u64().into());
        if let Some(vlan) = host.id.vlan.filter(|_| packet.get(Field::VlanVid) == Some(0)) {
            let tag = [
                Action::PushVlan(0x8100),
                Action::SetField { field: Field::VlanVid, value: u128::from(vlan) | VLAN_PRESENT },
            ];
            tag.iter().for_each(|action| drop(packet.apply(action)));
        }
    }
    let is_arp = packet.get(Field::EthType) == Some(ARP);
    if let Some(host) = to.filter(|_| !is_arp) {
        packet.set_if_zero(Field::EthDst, host.id.mac.to_u64().into());
    }
    let fields = match packet.get(Field::EthType) {
        Some(0x0800) => [Field::Ipv4Src, Field::Ipv4Dst],
        Some(0x86dd) => [Field::Ipv6Src, Field::Ipv6Dst],
        Some(ARP) => [Field::ArpSpa, Field::ArpTpa],
        _ => return packet,
    };
    let is_ipv4 = fields[0] != Field::Ipv6Src;
    if let Some((source, destination)) = common(is_ipv4) {
        packet.set_if_zero(fields[0], number(source));
        packet.set_if_zero(fields[1], number(destination));
    }
    packet
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}
