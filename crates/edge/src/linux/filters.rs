//! Filters of tc that bring the frames of a VNIC, or of a flow, into its class.
//!
//! In: addresses, slots and classes. Out: lines for tc. It runs nothing.
//!
//! Frames without a tag are found by u32 filters in hash tables of 256 buckets, by the last byte of an address, so that a packet passes
//! only few filters. Linux keeps the tag of a frame beside the packet, where u32 cannot see it. So tagged frames are found by
//! programs of the classic packet filter, in order: there should be few tagged flows on one server.
//!
//! | priority | filters |
//! |---|---|
//! | 1, 2 | datagrams of agents by IPv4 and IPv6 (u32) |
//! | 3 | tagged flows (bpf) |
//! | 4 | all other tagged frames of a VNIC (bpf) |
//! | 5 | all other tagged frames (bpf): the default class |
//! | 6 | untagged flows (u32, by destination) |
//! | 7 | all other untagged frames of a VNIC (u32, by source) |

use super::agents::Agents;
use super::device::{Device, MAJOR};
use crate::vnic::Address;
use flow::MacAddr;

const AGENTS: u8 = 1;
const AGENTS_BY_IPV6: u8 = 2;
const TAGGED_FLOWS: u8 = 3;
const TAGGED_VNICS: u8 = 4;
const TAGGED_REST: u8 = 5;
const FLOWS: u8 = 6;
const VNICS: u8 = 7;

/// The hash tables: of flows, and of VNICs.
const FLOWS_TABLE: u8 = 2;
const VNICS_TABLE: u8 = 3;

/// Where the frames go that a filter finds, and which filter it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// The number of the filter among those of its kind.
    pub(super) slot: u16,
    /// The minor number of the class.
    pub(super) class: u16,
}

fn head(device: &Device, verb: &str, protocol: &str, priority: u8) -> String {
    format!("filter {verb} dev {device} parent {MAJOR}: protocol {protocol} prio {priority}")
}

/// The filters that are there from the beginning: hash tables, datagrams of agents, and unknown tagged frames.
pub(super) fn fixed(device: &Device, agents: &Agents, agents_class: u16, default_class: u16) -> Vec<String> {
    let mut lines = of_agents(device, agents, agents_class);
    // The last byte of the destination is the last of the word at -12; that of the source is the second of the word at -4.
    for (priority, table, mask, at) in
        [(FLOWS, FLOWS_TABLE, "0x000000ff", -12), (VNICS, VNICS_TABLE, "0x00ff0000", -4)]
    {
        let head = head(device, "add", "all", priority);
        lines.push(format!("{head} handle {table}: u32 divisor 256"));
        lines.push(format!("{head} u32 match u32 0 0 at 0 hashkey mask {mask} at {at} link {table}:"));
    }
    let program = bytecode(&any_tag());
    let head = head(device, "add", "all", TAGGED_REST);
    lines.push(format!("{head} handle 0x1 bpf bytecode \"{program}\" flowid {MAJOR}:{default_class:x}"));
    lines
}

/// The filters for the datagrams of this agent: by the address of the interface, its port, and its IP address if the socket has one. A tenant
/// cannot send with these, as long as it has another Ethernet address.
fn of_agents(device: &Device, agents: &Agents, class: u16) -> Vec<String> {
    let Some(mac) = agents.mac else { return Vec::new() };
    let own_port = agents.own.port();
    let versions = [(false, "ip", "ip", AGENTS, 32), (true, "ip6", "ipv6", AGENTS_BY_IPV6, 128)];
    let mut lines = Vec::new();
    for (is_v6, ip, protocol, priority, bits) in versions {
        let own_ip = agents.own_ip(is_v6).map(|own| format!("match {ip} src {own}/{bits} "));
        let own_ip = own_ip.unwrap_or_default();
        for port in agents.ports.iter().filter(|_| agents.has_version(is_v6)) {
            // IPv6 has no options before UDP here.
            lines.push(format!(
                "{} u32 {} match {ip} protocol 17 0xff {own_ip}match {ip} sport {own_port} 0xffff \
                 match {ip} dport {port} 0xffff flowid {MAJOR}:{class:x}",
                head(device, "add", protocol, priority),
                source(mac)
            ));
        }
    }
    lines
}

/// The filter for the frames of a flow.
pub(super) fn of_flow(device: &Device, from: Address, to: Address, target: Target) -> String {
    let Target { slot, class } = target;
    match from.vlan {
        Some(vlan) => {
            let program = bytecode(&tagged(vlan, Some(to.mac), from.mac));
            let head = head(device, "replace", "all", TAGGED_FLOWS);
            format!("{head} handle {slot:#x} bpf bytecode \"{program}\" flowid {MAJOR}:{class:x}")
        }
        None => {
            let head = head(device, "replace", "all", FLOWS);
            let (handle, keys) =
                (u32_handle(FLOWS_TABLE, to.mac, slot), [destination(to.mac), source(from.mac)]);
            let bucket = to.mac.0[5];
            format!(
                "{head} handle {handle} u32 ht {FLOWS_TABLE:x}:{bucket:x}: {} flowid {MAJOR}:{class:x}",
                keys.join(" ")
            )
        }
    }
}

/// The filter for all frames of a VNIC that no filter of a flow found.
pub(super) fn of_vnic(device: &Device, from: Address, target: Target) -> String {
    let Target { slot, class } = target;
    match from.vlan {
        Some(vlan) => {
            let program = bytecode(&tagged(vlan, None, from.mac));
            let head = head(device, "replace", "all", TAGGED_VNICS);
            format!("{head} handle {slot:#x} bpf bytecode \"{program}\" flowid {MAJOR}:{class:x}")
        }
        None => {
            let head = head(device, "replace", "all", VNICS);
            let (handle, key) = (u32_handle(VNICS_TABLE, from.mac, slot), source(from.mac));
            let bucket = from.mac.0[5];
            format!(
                "{head} handle {handle} u32 ht {VNICS_TABLE:x}:{bucket:x}: {key} flowid {MAJOR}:{class:x}"
            )
        }
    }
}

/// Removes the filter of a flow.
pub(super) fn without_flow(device: &Device, from: Address, to: Address, slot: u16) -> String {
    without(device, from.vlan, [TAGGED_FLOWS, FLOWS], FLOWS_TABLE, to.mac, slot)
}

/// Removes the filter of a VNIC.
pub(super) fn without_vnic(device: &Device, from: Address, slot: u16) -> String {
    without(device, from.vlan, [TAGGED_VNICS, VNICS], VNICS_TABLE, from.mac, slot)
}

fn without(
    device: &Device,
    vlan: Option<u16>,
    [tagged, untagged]: [u8; 2],
    table: u8,
    hashed: MacAddr,
    slot: u16,
) -> String {
    match vlan {
        Some(_) => format!("{} handle {slot:#x} bpf", head(device, "del", "all", tagged)),
        None => {
            let handle = u32_handle(table, hashed, slot);
            format!("{} handle {handle} u32", head(device, "del", "all", untagged))
        }
    }
}

fn u32_handle(table: u8, hashed: MacAddr, slot: u16) -> String {
    format!("{table:x}:{:x}:{slot:x}", hashed.0[5])
}

/// The Ethernet header lies before the packet, so that its bytes have negative places: from -14 on.
fn destination(mac: MacAddr) -> String {
    let [a, b, c, d, e, f] = mac.0;
    format!(
        "match u16 {:#06x} 0xffff at -14 match u32 {:#010x} 0xffffffff at -12",
        u16::from_be_bytes([a, b]),
        u32::from_be_bytes([c, d, e, f])
    )
}

fn source(mac: MacAddr) -> String {
    let [a, b, c, d, e, f] = mac.0;
    format!(
        "match u32 {:#010x} 0xffffffff at -8 match u16 {:#06x} 0xffff at -4",
        u32::from_be_bytes([a, b, c, d]),
        u16::from_be_bytes([e, f])
    )
}

/// An instruction of the classic packet filter: code, jump if true, jump if false, value.
type Instruction = (u16, u8, u8, u32);

/// Loads of four, two bytes and one byte of the frame; and with a mask; jump if equal; end.
const LOAD4: u16 = 0x20;
const LOAD2: u16 = 0x28;
const LOAD1: u16 = 0x30;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Places that mean the tag beside the packet: its value, and whether there is one (`SKF_AD_VLAN_TAG`, `SKF_AD_VLAN_TAG_PRESENT`).
const TAG: u32 = 0xffff_f02c;
const TAG_PRESENT: u32 = 0xffff_f030;

/// The type of a frame whose tag is within it.
const VLAN_TYPE: u32 = 0x8100;

const VLAN_ID_MASK: u32 = 0x0fff;

/// What makes the filter's own class the result, and what goes to the next filter.
const FOUND: u32 = u32::MAX;
const NOT_FOUND: u32 = 0;

/// A tag of any VLAN.
fn any_tag() -> Vec<Instruction> {
    vec![
        (LOAD1, 0, 0, TAG_PRESENT),
        (JUMP_IF_EQUAL, 2, 0, 1),
        (LOAD2, 0, 0, 12),
        (JUMP_IF_EQUAL, 0, 1, VLAN_TYPE),
        (RETURN, 0, 0, FOUND),
        (RETURN, 0, 0, NOT_FOUND),
    ]
}

/// A tag of this VLAN, beside the packet or within it, and these addresses.
fn tagged(vlan: u16, to: Option<MacAddr>, from: MacAddr) -> Vec<Instruction> {
    let mut tests = Vec::new();
    for (mac, at) in to.map(|mac| (mac, 0)).into_iter().chain([(from, 6)]) {
        let [a, b, c, d, e, f] = mac.0;
        tests.push((LOAD4, at + 2, u32::from_be_bytes([c, d, e, f])));
        tests.push((LOAD2, at, u32::from(u16::from_be_bytes([a, b]))));
    }
    // Behind the nine instructions below come two for each test, and then the two ends.
    let to_failure = |done: usize| (2 * (tests.len() - done)) as u8;
    let mut program = vec![
        (LOAD1, 0, 0, TAG_PRESENT),
        (JUMP_IF_EQUAL, 4, 0, 1),
        (LOAD2, 0, 0, 12),
        (JUMP_IF_EQUAL, 0, 6 + to_failure(0), VLAN_TYPE),
        (LOAD2, 0, 0, 14),
        // Over the load of the tag beside the packet: a jump that is always taken, to the mask.
        (0x05, 0, 0, 1),
        (LOAD4, 0, 0, TAG),
        (AND, 0, 0, VLAN_ID_MASK),
        (JUMP_IF_EQUAL, 0, 1 + to_failure(0), vlan.into()),
    ];
    for (index, (load, at, value)) in tests.iter().enumerate() {
        program.push((*load, 0, 0, *at));
        program.push((JUMP_IF_EQUAL, 0, 1 + to_failure(index + 1), *value));
    }
    program.push((RETURN, 0, 0, FOUND));
    program.push((RETURN, 0, 0, NOT_FOUND));
    program
}

/// A program in the syntax of tc: the number of instructions, and their numbers in decimal.
fn bytecode(program: &[Instruction]) -> String {
    let instruction = |(code, yes, no, value): &Instruction| format!("{code} {yes} {no} {value}");
    let instructions: Vec<String> = program.iter().map(instruction).collect();
    format!("{},{}", program.len(), instructions.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0x11, 0x22, 0x33, 0x44, 0x55]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn frame(to: MacAddr, from: MacAddr, rest: &[u8]) -> Vec<u8> {
        [&to.0[..], &from.0[..], rest].concat()
    }

    /// A machine for the few instructions that the programs have. `tag` is the tag beside the packet.
    fn runs(program: &[Instruction], frame: &[u8], tag: Option<u16>) -> u32 {
        let load = |at: u32, bytes: usize| -> Option<u32> {
            let at = at as usize;
            Some(frame.get(at..at + bytes)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        let (mut place, mut a) = (0, 0);
        loop {
            let (code, yes, no, value) = program[place];
            place += 1;
            match (code, value) {
                (LOAD1, TAG_PRESENT) => a = tag.is_some().into(),
                (LOAD4, TAG) => a = tag.unwrap_or_default().into(),
                (LOAD4, at) => a = load(at, 4).unwrap(),
                (LOAD2, at) => a = load(at, 2).unwrap(),
                (AND, mask) => a &= mask,
                (0x05, by) => place += by as usize,
                (JUMP_IF_EQUAL, value) => place += usize::from(if a == value { yes } else { no }),
                (RETURN, value) => return value,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_program_finds_its_tag_and_addresses_only() {
        let (ip, inline) = (&[8, 0, 0x45, 0][..], |vlan: u8| [0x81, 0, 0x60, vlan, 8, 0]);
        let check = |to: Option<MacAddr>, frame: &[u8], tag: Option<u16>, expected: bool| {
            let found = runs(&tagged(7, to, A), frame, tag) == FOUND;
            assert_eq!(found, expected, "{to:?} {frame:?} {tag:?}");
        };
        for to in [None, Some(B)] {
            check(to, &frame(B, A, ip), None, false);
            check(to, &frame(B, A, ip), Some(8), false);
            check(to, &frame(B, B, ip), Some(7), false);
            check(to, &frame(B, A, &inline(8)), None, false);
            check(to, &frame(B, A, ip), Some(0x6007), true);
            check(to, &frame(B, A, &inline(7)), None, true);
            check(to, &frame(A, A, ip), Some(7), to.is_none());
            check(to, &frame(A, A, &inline(7)), None, to.is_none());
        }
        let any = |frame: &[u8], tag| runs(&any_tag(), frame, tag) == FOUND;
        assert!(
            !any(&frame(B, A, ip), None)
                && any(&frame(B, A, ip), Some(1))
                && any(&frame(B, A, &inline(3)), None)
        );
    }

    #[test]
    fn a_port_alone_makes_no_datagram_of_an_agent() {
        let device = Device::new("v0").unwrap();
        let of = |mac, own: &str| {
            let peers = ["10.9.0.2:6655".parse().unwrap(), "10.9.0.3:6655".parse().unwrap()];
            of_agents(&device, &Agents::new(mac, own.parse().unwrap(), &peers), 2)
        };
        let start = "filter add dev v0 parent bed9: protocol ip prio 1 u32 match u32 0x02112233 0xffffffff at -8 \
                     match u16 0x4455 0xffff at -4 match ip protocol 17 0xff ";
        let end = "match ip sport 6655 0xffff match ip dport 6655 0xffff flowid bed9:2";
        assert_eq!(of(Some(A), "0.0.0.0:6655"), [format!("{start}{end}")]);
        assert_eq!(of(Some(A), "10.9.0.1:6655"), [format!("{start}match ip src 10.9.0.1/32 {end}")]);
        assert_eq!(of(Some(A), "[::]:6655").len(), 2);
        assert_eq!(of(None, "0.0.0.0:6655"), Vec::<String>::new());
    }

    #[test]
    fn lines_are_what_tc_reads() {
        let device = Device::new("v0").unwrap();
        let at = |mac, vlan| Address { vlan, mac };
        let target = Target { slot: 10, class: 0x100a };
        assert_eq!(
            of_flow(&device, at(A, None), at(B, None), target),
            "filter replace dev v0 parent bed9: protocol all prio 6 handle 2:9:a u32 ht 2:9: \
             match u16 0x0200 0xffff at -14 match u32 0x00000009 0xffffffff at -12 \
             match u32 0x02112233 0xffffffff at -8 match u16 0x4455 0xffff at -4 flowid bed9:100a"
        );
        assert_eq!(
            without_flow(&device, at(A, None), at(B, None), 10),
            "filter del dev v0 parent bed9: protocol all prio 6 handle 2:9:a u32"
        );
        assert_eq!(
            without_vnic(&device, at(A, Some(7)), 10),
            "filter del dev v0 parent bed9: protocol all prio 4 handle 0xa bpf"
        );
        assert!(
            of_vnic(&device, at(A, None), target)
                .contains(" handle 3:55:a u32 ht 3:55: match u32 0x02112233")
        );
    }
}
