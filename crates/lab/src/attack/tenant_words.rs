//! What a tenant's controller could say: the words of each attack, in OpenFlow 1.0 and 1.3.
//!
//! ```text
//!   TenantAttack ──> the part of burnet.toml that makes its slice
//!                └─> Words: what is said once or again and again, and what must come of it
//! ```
//!
//! In: an attack, a version, the ports of the network. Out: a configuration, or words. It opens no connection.

use std::net::SocketAddr;

use flow::{Action, PortNo};
use openflow::message::{
    AsyncConfig, Bucket, Experimenter, FLOW_DELETE, FLOW_MOD_SEND_FLOW_REMOVED, FLOW_MODIFY, FlowMod,
    FlowStatsRequest, GROUP_ALL, GROUP_ANY, GROUP_TYPE_ALL, GROUP_TYPE_FAST_FAILOVER, GroupMod, Hello,
    METER_ALL, MultipartRequest, PacketOut, ROLE_MASTER, ROLE_SLAVE, RequestBody, Role, SwitchConfig,
    TABLE_ALL, TableMod,
};
use openflow::{Body, Version};

use super::tenant_messages::{
    arp, flow_mod, group, ipv4, ipv4_between, lldp, meter, numbered, own, packet_out, port_down, rule,
    tagged, written,
};

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
    CookieMasks,
    GroupChain,
    ReservedMeters,
    ReplayedBuffer,
    TagInMatch,
    TagInAction,
    RemovedFlood,
    EndlessRequest,
    OldGenerations,
    AsyncStorm,
    StackedProbes,
    ForeignSender,
    ForeignInPort,
    OddActions,
    CopyFlood,
    ForeignPorts,
}

/// What the slice of an attacker owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A made-up protocol with one source address.
    Flowspace,
    /// A tag.
    Tag,
    /// IPv4 addresses, which are rewritten between switches.
    Addresses,
}

/// The ports of a network, as an attacker sees them.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// The ports of its slice with a flowspace, as in a slices file.
    pub ports: &'static str,
    /// A link between switches, which a slice with a tag or with addresses has.
    pub link: &'static str,
    /// The own ports of its slice with a tag or with addresses: for two hosts.
    pub hosts: [&'static str; 2],
    /// Ports of its switches that the slice does not have. Of the last one, others have packets if there are such ports.
    pub foreign: &'static [u32],
}

/// That of a trial: three switches in a tree, whose host ports are all taken by others.
pub const TREE: Ground = Ground {
    ports: "\"s1:1\", \"s1:2\", \"s2:1\", \"s2:2\", \"s2:3\", \"s3:1\", \"s3:2\", \"s3:3\"",
    link: "s1:1-s2:3",
    hosts: ["s1:9", "s2:9"],
    foreign: &[77],
};

impl Ground {
    /// The switches that the slice of an attack has, each with a connection of its own.
    pub fn switches(&self, attack: TenantAttack) -> usize {
        if space(attack) == Space::Flowspace { 3 } else { 2 }
    }
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
    /// After the handshake, these bytes once, and then messages that must each be answered by an error.
    RefusedAfter(Vec<u8>, Vec<Vec<u8>>),
    /// After the handshake, a packet is put into a buffer by the first bytes. The connection is closed, and on the next one the packet is taken twice.
    Replay(Vec<u8>),
}

/// The slice's packets, as text.
const SPACE: &str = "dl_type=0x88b5,dl_src=02:00:00:00:00:ef,vlan_tci=0";

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

/// The tags and the addresses of the attacker's slice, and of others.
const OWN_TAG: u16 = 66;
const FOREIGN_TAG: u16 = 20;
const OWN_HOSTS: [[u8; 4]; 2] = [[10, 9, 0, 1], [10, 9, 0, 2]];

/// Rules that no slice may have: matches and instructions. The slice has no port 77, and one table.
const REFUSED_RULES: &[(TenantAttack, &str, &str)] = &[
    (TenantAttack::RuleOutside, "ip", "output:1"),
    (TenantAttack::RuleOutside, "dl_src=02:00:00:00:00:01", "output:1"),
    (TenantAttack::RuleOutside, "arp", "flood"),
    (TenantAttack::OutputOutside, "", "normal"),
    (TenantAttack::OutputOutside, "", "local"),
    (TenantAttack::RewriteOutside, "", "mod_dl_src:02:00:00:00:00:01,output:1"),
    (TenantAttack::RewriteOutside, "", "push_mpls:0x8847,output:1"),
    (TenantAttack::ForeignGroup, "", "group:1"),
    (TenantAttack::ForeignMeter, "", "meter:1,output:1"),
    (TenantAttack::ForeignTable, "", "goto_table:200"),
    (TenantAttack::ForeignTable, "", "write_actions(output:1),goto_table:1"),
    (TenantAttack::TagInAction, "", "mod_vlan_vid:20,output:1"),
    (TenantAttack::TagInAction, "", "push_vlan:0x8100,mod_vlan_vid:20,output:1"),
    (TenantAttack::TagInAction, "", "push_vlan:0x88a8,output:1"),
    (TenantAttack::TagInAction, "", "write_actions(push_vlan:0x8100,output:1)"),
    (TenantAttack::TagInAction, "", "write_actions(push_vlan:0x8100,mod_vlan_vid:20,output:1)"),
];

/// Rules with tags in their matches: of others, all, and parts of tags.
const TAG_RULES: &[&str] = &[
    "dl_vlan=20",
    "dl_vlan=66",
    "dl_vlan=20,dl_vlan_pcp=7",
    "vlan_tci=0x1000/0x1000",
    "vlan_tci=0x1004/0x1004",
];

/// What the slice of an attack owns.
pub fn space(attack: TenantAttack) -> Space {
    use TenantAttack as T;
    match attack {
        T::TagInMatch | T::TagInAction | T::StackedProbes => Space::Tag,
        T::ForeignSender => Space::Addresses,
        _ => Space::Flowspace,
    }
}

/// The section of the attacker's slice, whose controller is at this address.
pub fn section(name: &str, attack: TenantAttack, controller: SocketAddr, ground: &Ground) -> String {
    let Ground { ports, link, hosts: [here, there], .. } = ground;
    let own = match space(attack) {
        Space::Flowspace => format!("isolation = \"flowspace\"\nmatches = [\"{SPACE}\"]\nports = [{ports}]"),
        Space::Tag => format!(
            "isolation = \"vlan\"\ntag = {OWN_TAG}\nown_ports = [\"{here}\", \"{there}\"]\nlinks = [\"{link}\"]"
        ),
        Space::Addresses => format!(
            "isolation = \"address\"\naddresses = \"10.9.0.0/24\"\nprefix = \"172.16.66.0/24\"\nlinks = [\"{link}\"]\n\
             hosts = {{ \"10.9.0.1\" = \"{here}\", \"10.9.0.2\" = \"{there}\" }}"
        ),
    };
    format!("[slice.{name}]\ncontrollers = [\"{controller}\"]\n{own}\n")
}

/// A message of the handshake.
pub fn hello(version: Version) -> Vec<u8> {
    said(version, Body::Hello(Hello::default()))
}

/// A message of the handshake.
pub fn features_request(version: Version) -> Vec<u8> {
    said(version, Body::FeaturesRequest)
}

/// A question whose answer shows that the session lives.
pub fn echo(version: Version, xid: u32) -> Vec<u8> {
    written(version, xid, Body::EchoRequest(b"alive".to_vec())).unwrap_or_default()
}

/// The packet of this buffer to the first port.
pub fn from_buffer(version: Version, xid: u32, buffer_id: u32) -> Vec<u8> {
    let body = Body::PacketOut(PacketOut { buffer_id, data: Vec::new(), ..packet_out(&own()) });
    written(version, xid, body).unwrap_or_default()
}

/// A message that belongs to the handshake, or to a flood.
fn said(version: Version, body: Body) -> Vec<u8> {
    written(version, ANY_XID, body).unwrap_or_default()
}

/// What an attack says.
pub fn words(attack: TenantAttack, version: Version, ground: &Ground) -> Words {
    use TenantAttack as T;
    let all = |bodies| numbered(version, FIRST_XID, bodies);
    match attack {
        T::Silent => Words::Nothing,
        T::ReconnectStorm => Words::Hangup,
        // A list of versions with OpenFlow 1.5 alone (1.3.5, 7.5.1). Without the list, the lower of both versions would be chosen.
        T::NewerVersionOnly => Words::First(vec![6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 1 << 6]),
        // Short messages. With a great length the slice would wait for the rest.
        T::Garbage => Words::First([0xa5, 0xa5, 0, 8, 0xa5, 0xa5, 0xa5, 0xa5].repeat(64)),
        // A whole message has eight bytes at least.
        T::BadLength => Words::Last(vec![version.0, 2, 0, 3, 0, 0, 0, 1]),
        T::HalfAMessage => Words::Once(vec![version.0, 14, 0xff, 0xff, 0, 0, 0, 1, 0, 0]),
        T::NeverReads => Words::FloodUnread(said(version, Body::EchoRequest(vec![0xa5; 1024]))),
        T::ReplayedBuffer => Words::Replay(all(repeated(attack)).concat()),
        T::OldGenerations => {
            let role = |role, generation_id| Body::RoleRequest(Role { role, generation_id });
            // Behind the latest one, by the difference as a signed number (1.3.5, 6.3.5).
            let old =
                [(ROLE_MASTER, 4), (ROLE_SLAVE, 4), (ROLE_MASTER, 5 + (1 << 63)), (ROLE_SLAVE, u64::MAX)];
            let old = old.into_iter().map(|(kind, generation)| role(kind, generation));
            Words::RefusedAfter(said(version, role(ROLE_MASTER, 5)), all(old.collect()))
        }
        T::OddActions => Words::Refused(odd_actions(version)),
        _ if !refused(attack, version, ground).is_empty() => {
            Words::Refused(all(refused(attack, version, ground)))
        }
        _ if !accepted(attack).is_empty() => Words::Once(all(accepted(attack)).concat()),
        _ => Words::Flood(all(repeated(attack)).concat()),
    }
}

/// What no slice may do.
fn refused(attack: TenantAttack, version: Version, ground: &Ground) -> Vec<Body> {
    use TenantAttack as T;
    let rules = REFUSED_RULES.iter().filter(|(of, ..)| *of == attack);
    let rules = rules.map(|(_, matching, instructions)| rule(matching, instructions));
    let at_port = |port: &u32| match attack {
        T::RuleOnForeignPort => vec![rule(&format!("in_port={port}"), "output:1")],
        T::OutputOutside => vec![
            rule("", &format!("output:{port}")),
            Body::PacketOut(PacketOut { actions: vec![Action::output(PortNo(*port))], ..packet_out(&own()) }),
        ],
        T::ForeignInPort => vec![Body::PacketOut(PacketOut { in_port: PortNo(*port), ..packet_out(&own()) })],
        T::ForeignPorts => vec![port_down(*port)],
        _ => Vec::new(),
    };
    rules
        .chain(ground.foreign.iter().flat_map(at_port))
        .chain(refused_otherwise(attack, version, ground))
        .collect()
}

fn refused_otherwise(attack: TenantAttack, version: Version, ground: &Ground) -> Vec<Body> {
    use TenantAttack as T;
    match attack {
        T::ForeignGroup => vec![group(MODIFY, FOREIGN_GROUP)],
        T::ForeignMeter => vec![meter(MODIFY, FOREIGN_METER)],
        T::ForeignTable => vec![
            Body::FlowMod(FlowMod { table_id: 200, ..flow_mod("", "output:1") }),
            Body::TableMod(TableMod { table_id: 200, config: 0 }),
        ],
        T::ForeignBuffer => vec![
            Body::FlowMod(FlowMod { buffer_id: 7, ..flow_mod("", "output:1") }),
            Body::PacketOut(PacketOut { buffer_id: 7, data: Vec::new(), ..packet_out(&ipv4()) }),
        ],
        T::PacketOutside => vec![
            Body::PacketOut(packet_out(&ipv4())),
            Body::PacketOut(PacketOut {
                actions: vec![Action::output(PortNo::TABLE)],
                ..packet_out(&ipv4())
            }),
            Body::PacketOut(packet_out(&tagged(&own(), &[(0x8100, FOREIGN_TAG)]))),
        ],
        T::ForeignVendor => {
            // Nicira's message that changes the format of flows, and one of a vendor that does not exist.
            let kind = |kind| (version != Version::V1_0).then_some(kind);
            vec![
                Body::Experimenter(Experimenter {
                    experimenter: 0x2320,
                    exp_type: kind(12),
                    data: vec![0; 4],
                }),
                Body::Experimenter(Experimenter {
                    experimenter: 0xdead,
                    exp_type: kind(1),
                    data: vec![0; 64],
                }),
            ]
        }
        T::GroupChain => group_chain(ground),
        // Of the controller, of the slow path, and all (1.3.5, 7.3.4.4).
        T::ReservedMeters => {
            [0xffff_fffd, 0xffff_fffe, METER_ALL].into_iter().map(|number| meter(ADD, number)).collect()
        }
        T::TagInMatch => TAG_RULES.iter().map(|matching| rule(matching, "output:1")).collect(),
        T::ForeignSender => foreign_senders(),
        _ => Vec::new(),
    }
}

/// Groups that lead to others' groups, watch others' ports, or send there.
fn group_chain(ground: &Ground) -> Vec<Body> {
    let bucket = |watch_port, watch_group, actions| Bucket { weight: 0, watch_port, watch_group, actions };
    let to = |port: u32| vec![Action::output(PortNo(port))];
    let of = |group_type, bucket| {
        Body::GroupMod(GroupMod { command: ADD, group_type, group_id: 9, buckets: vec![bucket] })
    };
    let chain = Action::Group(FOREIGN_GROUP);
    let mut groups = vec![
        of(GROUP_TYPE_ALL, bucket(PortNo::ANY, GROUP_ANY, vec![chain])),
        of(GROUP_TYPE_FAST_FAILOVER, bucket(PortNo::ANY, FOREIGN_GROUP, to(1))),
    ];
    for foreign in ground.foreign {
        groups.push(of(GROUP_TYPE_FAST_FAILOVER, bucket(PortNo(*foreign), GROUP_ANY, to(1))));
        groups.push(of(GROUP_TYPE_ALL, bucket(PortNo::ANY, GROUP_ANY, to(*foreign))));
    }
    groups
}

/// Packets that say they come from hosts of others: by their addresses, and by those between switches.
fn foreign_senders() -> Vec<Body> {
    let ethernet = [2, 0, 0, 0, 0, 0xef];
    let senders = [[10, 9, 0, 9], [172, 16, 66, 1], [10, 0, 0, 1]];
    let arps = senders.map(|sender| arp(ethernet, sender, OWN_HOSTS[1]));
    let packets = senders.map(|sender| ipv4_between(sender, OWN_HOSTS[1]));
    arps.iter().chain(&packets).map(|frame| Body::PacketOut(packet_out(frame))).collect()
}

/// Rules whose actions have lengths that no action has: none at all, and more than there is.
fn odd_actions(version: Version) -> Vec<Vec<u8>> {
    let whole = numbered(version, FIRST_XID, vec![rule("", "output:1"); 2]);
    // An output is the last action: of 8 bytes in 1.0, and of 16 in 1.3.
    let length_at = |bytes: &[u8]| bytes.len() - if version == Version::V1_0 { 6 } else { 14 };
    let with_length = |mut bytes: Vec<u8>, length: u16| {
        let at = length_at(&bytes);
        bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
        bytes
    };
    whole.into_iter().zip([0, 0xfff8]).map(|(bytes, length)| with_length(bytes, length)).collect()
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
        T::CookieMasks => cookie_masks(),
        T::Configure => vec![
            // Drop fragments, and send nothing of a packet (1.3.5, 7.3.2).
            Body::SetConfig(SwitchConfig { flags: 1, miss_send_len: 0 }),
            Body::SetAsync(AsyncConfig::default()),
            Body::TableMod(TableMod { table_id: TABLE_ALL, config: 3 }),
        ],
        _ => Vec::new(),
    }
}

/// Rules are found by their cookies, with each part of a cookie that could be an owner's.
fn cookie_masks() -> Vec<Body> {
    let of = |command, cookie, cookie_mask| {
        let table_id = if command == FLOW_DELETE { TABLE_ALL } else { 0 };
        Body::FlowMod(FlowMod { command, cookie, cookie_mask, table_id, ..flow_mod("", "") })
    };
    let owners = (0..64u64).map(|owner| owner << 48);
    let masks = [u64::MAX, 0xffff << 48, 1 << 63, 0xff];
    let all =
        masks.into_iter().flat_map(|mask| [FLOW_MODIFY, FLOW_DELETE].map(|command| of(command, mask, mask)));
    let none =
        masks.into_iter().flat_map(|mask| [FLOW_MODIFY, FLOW_DELETE].map(|command| of(command, 0, mask)));
    all.chain(none).chain(owners.map(|owner| of(FLOW_DELETE, owner, 0xffff << 48))).collect()
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
        // Every packet goes up, and this one is given to the table.
        T::ReplayedBuffer => vec![
            Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 32 }),
            Body::FlowMod(FlowMod { priority: 0, ..flow_mod("", "controller:32") }),
            Body::PacketOut(PacketOut {
                in_port: PortNo(1),
                actions: vec![Action::output(PortNo::TABLE)],
                ..packet_out(&own())
            }),
        ],
        T::RemovedFlood => (0..200).map(short_rule).collect(),
        // More parts of the request are to come, and never do.
        T::EndlessRequest => (0..64)
            .map(|_| {
                Body::MultipartRequest(MultipartRequest {
                    flags: 1,
                    body: RequestBody::TableFeatures(Vec::new()),
                })
            })
            .collect(),
        T::AsyncStorm => (0..64).map(async_mask).collect(),
        T::StackedProbes => stacked_probes().iter().map(|frame| Body::PacketOut(packet_out(frame))).collect(),
        // One packet leaves a thousand times.
        T::CopyFlood => {
            let actions = vec![Action::output(PortNo(1)); 1_000];
            vec![Body::PacketOut(PacketOut { actions, ..packet_out(&own()) }); 4]
        }
        _ => Vec::new(),
    }
}

/// A rule that ends at once, and its end is told.
fn short_rule(number: u8) -> Body {
    let of = flow_mod(&format!("dl_dst=02:bb:00:00:00:{number:02x}"), "flood");
    Body::FlowMod(FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, idle_timeout_s: 1, ..of })
}

/// All kinds of messages are wanted, then none, in turn.
fn async_mask(number: u32) -> Body {
    let mask = if number.is_multiple_of(2) { [u32::MAX; 2] } else { [0; 2] };
    Body::SetAsync(AsyncConfig { packet_in_mask: mask, port_status_mask: mask, flow_removed_mask: mask })
}

/// Probes for links behind one tag, behind two, and behind those of providers.
fn stacked_probes() -> Vec<Vec<u8>> {
    let tags: [&[(u16, u16)]; 5] = [
        &[(0x8100, FOREIGN_TAG)],
        &[(0x8100, OWN_TAG)],
        &[(0x88a8, FOREIGN_TAG), (0x8100, FOREIGN_TAG)],
        &[(0x8100, 0), (0x8100, FOREIGN_TAG)],
        &[(0x9100, FOREIGN_TAG)],
    ];
    tags.iter().map(|tags| tagged(&lldp(1), tags)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::case::{By, On};
    use crate::attack::catalogue;

    /// All attacks of tenants in the catalogue.
    fn all() -> Vec<TenantAttack> {
        let of_tenant = |case: &crate::attack::case::Case| match case.by {
            By::Tenant(attack) => Some(attack),
            _ => None,
        };
        catalogue::all().filter_map(of_tenant).collect()
    }

    fn is_said(words: &Words) -> bool {
        match words {
            Words::Nothing | Words::Hangup => true,
            Words::First(bytes)
            | Words::Last(bytes)
            | Words::Once(bytes)
            | Words::Flood(bytes)
            | Words::FloodUnread(bytes)
            | Words::Replay(bytes) => bytes.len() >= 8,
            Words::Refused(messages) | Words::RefusedAfter(_, messages) => {
                !messages.is_empty() && messages.iter().all(|message| message.len() >= 8)
            }
        }
    }

    #[test]
    fn each_attack_has_something_to_say_in_each_version_that_has_it() {
        let cases = catalogue::all().filter(|case| matches!(case.by, By::Tenant(_)));
        for case in cases {
            let By::Tenant(attack) = case.by else { continue };
            for version in [Version::V1_0, Version::V1_3] {
                let is_there = !matches!(case.on, On::Only(only) if only != version);
                assert!(!is_there || is_said(&words(attack, version, &TREE)), "{attack:?} in {version}");
            }
        }
        assert!(all().len() >= 45);
    }

    #[test]
    fn the_texts_of_rules_are_read() {
        for (attack, matching, instructions) in REFUSED_RULES {
            assert!(flow::text::parse_match(matching).is_ok(), "{attack:?}: {matching}");
            assert!(flow::text::parse_instructions(instructions).is_ok(), "{attack:?}: {instructions}");
        }
        for matching in TAG_RULES {
            assert!(flow::text::parse_match(matching).is_ok(), "{matching}");
        }
        assert!(flow::text::parse_instructions("controller:32").is_ok());
        assert!(flow::text::parse_match("dl_dst=02:bb:00:00:00:00").is_ok());
        assert!(flow::text::parse_match(SPACE).is_ok());
    }
}
