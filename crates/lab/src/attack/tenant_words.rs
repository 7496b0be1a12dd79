//! What a tenant's controller could say: the messages of each attack, as bytes of OpenFlow 1.3.
//!
//! ```text
//!   TenantAttack ──> the part of burnet.toml that makes its slice
//!                └─> Words: what is said once or again and again, and what must come of it
//! ```
//!
//! The slice has the packets of one made-up protocol with one source address. It opens no connection.

use std::net::SocketAddr;

use flow::{Action, MacAddr, PortNo};
use openflow::message::{
    AsyncConfig, Bucket, Experimenter, FLOW_DELETE, FLOW_MODIFY, FlowMod, FlowModFields, FlowStatsRequest,
    GROUP_ALL, GROUP_ANY, GROUP_TYPE_INDIRECT, GroupMod, Hello, METER_ALL, MeterBand, MeterBandKind,
    MeterMod, MultipartRequest, NO_BUFFER, PacketOut, PortMod, RequestBody, Role, SwitchConfig, TABLE_ALL,
    TableMod,
};
use openflow::{Body, Message, Version};

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantAttack {
    Silent,
    HalfAMessage,
    NewerVersionOnly,
    Garbage,
    BadLength,
    NeverReads,
    ReconnectStorm,
    RuleOutside,
    RuleOnForeignPort,
    OutputOutside,
    RewriteOutside,
    ForeignGroup,
    ForeignMeter,
    ForeignTable,
    ForeignBuffer,
    PacketOutside,
    ForeignVendor,
    TakeAll,
    DeleteAll,
    ModifyAll,
    PortsDown,
    ForgeLinks,
    RoleStorm,
    Configure,
    RuleFlood,
    PacketFlood,
    QuestionFlood,
    GroupFlood,
    BarrierFlood,
}

/// What is said on each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// Nothing at all, not even a hello.
    Nothing,
    /// These bytes in place of a hello. They end the session.
    First(Vec<u8>),
    /// After the handshake, these bytes, which end the session.
    Last(Vec<u8>),
    /// After the handshake, these bytes once. The session lives on.
    Once(Vec<u8>),
    /// After the handshake, these messages once. Each must be answered by an error, and the session must live on.
    Refused(Vec<Vec<u8>>),
    /// After the handshake, these bytes again and again.
    Flood(Vec<u8>),
    /// The same, without reading any answer.
    FloodUnread(Vec<u8>),
    /// The connection is closed at once, each time.
    Hangup,
}

/// The slice's packets, as text.
const SPACE: &str = "dl_type=0x88b5,dl_src=02:00:00:00:00:ef";

/// The transaction id of the first of several messages. The next one has the next.
pub const FIRST_XID: u32 = 1_000;

/// Of messages that belong to the handshake, or to floods.
const ANY_XID: u32 = 1;

/// A group and a meter that the slice does not have.
const FOREIGN_GROUP: u32 = 1;
const FOREIGN_METER: u32 = 1;

/// Commands for groups and meters (1.3.5, 7.3.4.2 and 7.3.4.4).
const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

/// Rules that no slice may have: matches and instructions. The slice has no port 77, and one table.
const REFUSED_RULES: &[(TenantAttack, &str, &str)] = &[
    (TenantAttack::RuleOutside, "ip", "output:1"),
    (TenantAttack::RuleOutside, "dl_src=02:00:00:00:00:01", "output:1"),
    (TenantAttack::RuleOutside, "arp", "flood"),
    (TenantAttack::RuleOnForeignPort, "in_port=77", "output:1"),
    (TenantAttack::OutputOutside, "", "output:77"),
    (TenantAttack::OutputOutside, "", "normal"),
    (TenantAttack::OutputOutside, "", "local"),
    (TenantAttack::RewriteOutside, "", "mod_dl_src:02:00:00:00:00:01,output:1"),
    (TenantAttack::RewriteOutside, "", "push_mpls:0x8847,output:1"),
    (TenantAttack::ForeignGroup, "", "group:1"),
    (TenantAttack::ForeignMeter, "", "meter:1,output:1"),
    (TenantAttack::ForeignTable, "", "goto_table:200"),
];

/// The section of the attacker's slice, whose controller is at this address. It has all ports of the trial's network.
pub fn section(controller: SocketAddr) -> String {
    format!(
        "[slice.tenant]\ncontrollers = [\"{controller}\"]\nisolation = \"flowspace\"\nmatches = [\"{SPACE}\"]\n\
         ports = [\"s1:1\", \"s1:2\", \"s2:1\", \"s2:2\", \"s2:3\", \"s3:1\", \"s3:2\", \"s3:3\"]\n"
    )
}

/// A message of the handshake.
pub fn hello() -> Vec<u8> {
    written(ANY_XID, Body::Hello(Hello::default()))
}

/// A message of the handshake.
pub fn features_request() -> Vec<u8> {
    written(ANY_XID, Body::FeaturesRequest)
}

/// A question whose answer shows that the session lives.
pub fn echo(xid: u32) -> Vec<u8> {
    written(xid, Body::EchoRequest(b"alive".to_vec()))
}

/// What an attack says.
pub fn words(attack: TenantAttack) -> Words {
    use TenantAttack as T;
    match attack {
        T::Silent => Words::Nothing,
        T::ReconnectStorm => Words::Hangup,
        // A list of versions with OpenFlow 1.5 alone (1.3.5, 7.5.1). Without the list, the lower of both versions would be chosen.
        T::NewerVersionOnly => Words::First(vec![6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 1 << 6]),
        // Short messages. With a great length the slice would wait for the rest.
        T::Garbage => Words::First([0xa5, 0xa5, 0, 8, 0xa5, 0xa5, 0xa5, 0xa5].repeat(64)),
        // A whole message has eight bytes at least.
        T::BadLength => Words::Last(vec![4, 2, 0, 3, 0, 0, 0, 1]),
        T::HalfAMessage => Words::Once(vec![4, 14, 0xff, 0xff, 0, 0, 0, 1, 0, 0]),
        T::NeverReads => Words::FloodUnread(written(ANY_XID, Body::EchoRequest(vec![0xa5; 1024]))),
        T::RuleOutside
        | T::RuleOnForeignPort
        | T::OutputOutside
        | T::RewriteOutside
        | T::ForeignGroup
        | T::ForeignMeter
        | T::ForeignTable
        | T::ForeignBuffer
        | T::PacketOutside
        | T::ForeignVendor => Words::Refused(numbered(refused(attack))),
        T::TakeAll | T::DeleteAll | T::ModifyAll | T::PortsDown | T::Configure => {
            Words::Once(numbered(accepted(attack)).concat())
        }
        T::ForgeLinks
        | T::RoleStorm
        | T::RuleFlood
        | T::PacketFlood
        | T::QuestionFlood
        | T::GroupFlood
        | T::BarrierFlood => Words::Flood(numbered(repeated(attack)).concat()),
    }
}

/// What no slice may do.
fn refused(attack: TenantAttack) -> Vec<Body> {
    let rules = REFUSED_RULES.iter().filter(|(of, ..)| *of == attack);
    let rules = rules.map(|(_, matching, instructions)| rule(matching, instructions));
    rules.chain(refused_otherwise(attack)).collect()
}

fn refused_otherwise(attack: TenantAttack) -> Vec<Body> {
    use TenantAttack as T;
    match attack {
        T::ForeignGroup => vec![group(MODIFY, FOREIGN_GROUP)],
        T::ForeignMeter => vec![meter(MODIFY, FOREIGN_METER)],
        T::ForeignTable => vec![Body::FlowMod(FlowMod { table_id: 200, ..flow_mod("", "output:1") })],
        T::ForeignBuffer => vec![
            Body::FlowMod(FlowMod { buffer_id: 7, ..flow_mod("", "output:1") }),
            Body::PacketOut(PacketOut { buffer_id: 7, data: Vec::new(), ..packet_out(&ipv4()) }),
        ],
        T::PacketOutside => vec![Body::PacketOut(packet_out(&ipv4()))],
        T::ForeignVendor => vec![
            // Nicira's message that changes the format of flows, and one of a vendor that does not exist.
            Body::Experimenter(Experimenter { experimenter: 0x2320, exp_type: Some(12), data: vec![0; 4] }),
            Body::Experimenter(Experimenter { experimenter: 0xdead, exp_type: Some(1), data: vec![0; 64] }),
        ],
        _ => Vec::new(),
    }
}

/// What a switch would do, and a slice does within its bounds.
fn accepted(attack: TenantAttack) -> Vec<Body> {
    use TenantAttack as T;
    match attack {
        T::TakeAll => vec![
            Body::FlowMod(FlowMod { priority: u16::MAX, ..flow_mod("", "") }),
            Body::FlowMod(FlowMod { priority: u16::MAX, ..flow_mod("in_port=1", "") }),
        ],
        T::DeleteAll => {
            let everything = FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, ..flow_mod("", "") };
            let of_the_kernel = FlowMod { cookie: u64::MAX, cookie_mask: 0, ..everything.clone() };
            vec![
                Body::FlowMod(everything),
                Body::FlowMod(of_the_kernel),
                group(DELETE, GROUP_ALL),
                meter(DELETE, METER_ALL),
            ]
        }
        T::ModifyAll => vec![Body::FlowMod(FlowMod { command: FLOW_MODIFY, ..flow_mod("", "") })],
        T::PortsDown => (1..=3).map(port_down).collect(),
        T::Configure => vec![
            // Drop fragments, and send nothing of a packet (1.3.5, 7.3.2).
            Body::SetConfig(SwitchConfig { flags: 1, miss_send_len: 0 }),
            Body::SetAsync(AsyncConfig::default()),
            Body::TableMod(TableMod { table_id: TABLE_ALL, config: 3 }),
        ],
        _ => Vec::new(),
    }
}

/// What is allowed, and not so often.
fn repeated(attack: TenantAttack) -> Vec<Body> {
    use TenantAttack as T;
    match attack {
        T::ForgeLinks => [lldp(1), lldp(2)].iter().map(|frame| Body::PacketOut(packet_out(frame))).collect(),
        T::RoleStorm => {
            (0..64).map(|number| Body::RoleRequest(Role { role: 2, generation_id: number << 56 })).collect()
        }
        T::RuleFlood => {
            (0..200).map(|number| rule(&format!("dl_dst=02:bb:00:00:00:{number:02x}"), "flood")).collect()
        }
        T::PacketFlood => vec![Body::PacketOut(packet_out(&own())); 100],
        T::QuestionFlood => {
            let all = FlowStatsRequest::default();
            let ask = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
            vec![
                ask(RequestBody::Flow(all)),
                ask(RequestBody::PortStats(PortNo::ANY)),
                ask(RequestBody::Table),
            ]
        }
        T::GroupFlood => (0..200).map(|number| group(ADD, number)).collect(),
        T::BarrierFlood => vec![Body::BarrierRequest; 100],
        _ => Vec::new(),
    }
}

fn flow_mod(matching: &str, instructions: &str) -> FlowMod {
    // Our own constants, which a test reads. One that could not be read would be no attack.
    let matching = flow::text::parse_match(matching).unwrap_or_else(|_| flow::Match::any());
    let instructions = flow::text::parse_instructions(instructions).unwrap_or_default();
    FlowModFields::default().with(matching, instructions)
}

fn rule(matching: &str, instructions: &str) -> Body {
    Body::FlowMod(flow_mod(matching, instructions))
}

fn group(command: u16, group_id: u32) -> Body {
    let bucket = Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: vec![Action::output(PortNo(1))],
    };
    let buckets = if command == DELETE { Vec::new() } else { vec![bucket] };
    Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_INDIRECT, group_id, buckets })
}

fn meter(command: u16, meter_id: u32) -> Body {
    // In kb/s (1.3.5, 7.3.4.4).
    let flags = 1;
    let bands = vec![MeterBand { rate: 1, burst_size: 0, kind: MeterBandKind::Drop }];
    Body::MeterMod(MeterMod { command, flags, meter_id, bands })
}

fn port_down(number: u32) -> Body {
    let config = 1;
    Body::PortMod(PortMod {
        port_no: PortNo(number),
        hw_addr: MacAddr([0; 6]),
        config,
        mask: config,
        advertise: 0,
    })
}

fn packet_out(frame: &[u8]) -> PacketOut {
    PacketOut {
        buffer_id: NO_BUFFER,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo(1)), Action::output(PortNo(2))],
        data: frame.to_vec(),
    }
}

/// A frame with this source address and EtherType, to everybody.
fn frame(source: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &source, &ethertype.to_be_bytes(), payload].concat();
    frame.resize(60, 0);
    frame
}

/// A frame of the slice.
fn own() -> Vec<u8> {
    frame([2, 0, 0, 0, 0, 0xef], 0x88b5, &[])
}

/// One that is none of the slice's.
fn ipv4() -> Vec<u8> {
    frame([2, 0, 0, 0, 0, 1], 0x0800, &[0x45])
}

/// A probe for links that says it comes from a switch of others (IEEE 802.1AB, 8.5).
fn lldp(switch: u8) -> Vec<u8> {
    let chassis = [2, 7, 4, 0, 0, 0, 0, 0, switch];
    let payload = [&chassis[..], &[4, 3, 2, 0, 1], &[6, 2, 0, 120], &[0, 0]].concat();
    frame([2, 0, 0, 0, 0, 0xef], 0x88cc, &payload)
}

fn numbered(bodies: Vec<Body>) -> Vec<Vec<u8>> {
    (FIRST_XID..).zip(bodies).map(|(xid, body)| written(xid, body)).collect()
}

fn written(xid: u32, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A message that cannot be written would be a fault of this program. A test writes all of them.
    let _ = Message { version: Version::V1_3, xid, body }.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::case::By;
    use crate::attack::catalogue;

    /// All attacks of tenants in the catalogue.
    fn all() -> Vec<TenantAttack> {
        let of_tenant = |case: &crate::attack::case::Case| match case.by {
            By::Tenant(attack) => Some(attack),
            _ => None,
        };
        catalogue::all().filter_map(of_tenant).collect()
    }

    #[test]
    fn each_attack_has_something_to_say() {
        assert!(all().len() >= 20);
        for attack in all() {
            let says = match words(attack) {
                Words::Nothing | Words::Hangup => true,
                Words::First(bytes)
                | Words::Last(bytes)
                | Words::Once(bytes)
                | Words::Flood(bytes)
                | Words::FloodUnread(bytes) => bytes.len() >= 8,
                Words::Refused(messages) => {
                    !messages.is_empty() && messages.iter().all(|message| message.len() >= 8)
                }
            };
            assert!(says, "{attack:?}");
        }
    }

    #[test]
    fn the_texts_of_rules_are_read() {
        for (attack, matching, instructions) in REFUSED_RULES {
            assert!(flow::text::parse_match(matching).is_ok(), "{attack:?}: {matching}");
            assert!(flow::text::parse_instructions(instructions).is_ok(), "{attack:?}: {instructions}");
        }
        assert!(flow::text::parse_match("dl_dst=02:bb:00:00:00:00").is_ok());
        assert!(flow::text::parse_match(SPACE).is_ok());
    }
}
