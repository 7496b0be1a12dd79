//! A slice whose addresses differ between switches: what leaves the physical switch, and what its tenant hears.
//!
//! The tenant has 10.0.0.0/24, and 172.16.3.0/24 between switches. Its ports 1 and 2 are at the edge, with the hosts 10.0.0.1 and 10.0.0.2.
//! Ports 3 and 4 lead to other switches, where 10.0.0.3 is.

use crate::forwarding::{Heard, Random, Reference, dump, packet_in};
use crate::world::{DATAPATH, OTHER, PORTS, World, add, delete, errors, is_edge, physical, written};
use etherparse::PacketBuilder;
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use slicer::{AddressPlan, HostPlan, Isolation};
use software_switch::Effects;

/// The prefixes of the tenant, and between switches.
const TENANT: [u8; 3] = [10, 0, 0];
const BETWEEN: [u8; 3] = [172, 16, 3];

/// The addresses of the tenant are 10.0.0.0/24, and those between switches 172.16.3.0/24. Two hosts are at the edge ports, and one is elsewhere.
pub fn addresses() -> Isolation {
    let host = |last: u8, datapath: u64, port: u32| HostPlan {
        address: [10, 0, 0, last].into(),
        datapath: DatapathId(datapath),
        port: PortNo(port),
    };
    Isolation::Address(AddressPlan {
        tenant: [10, 0, 0, 0].into(),
        physical: [172, 16, 3, 0].into(),
        length: 24,
        hosts: vec![host(1, DATAPATH.0, 2), host(2, DATAPATH.0, 3), host(3, OTHER.0, 1)],
    })
}

/// What may enter at an edge port of a slice with addresses: the packets of its host.
pub fn own_packets(port: u32) -> [Match; 2] {
    let from = 0x0a00_0000 + port - 1;
    let packets = |kind: u16, source, destination| {
        let here = Match::any().with(Field::InPort, port).with(Field::VlanVid, 0u16);
        let here = here.with(Field::EthType, kind).with(source, from);
        here.with_masked(destination, 0x0a00_0000_u32, 0xffff_ff00_u32).sorted()
    };
    [packets(0x0800, Field::Ipv4Src, Field::Ipv4Dst), packets(0x0806, Field::ArpSpa, Field::ArpTpa)]
}

/// A packet between two addresses of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    /// 6 and 17: TCP and UDP. 1: another protocol. 0: ARP.
    kind: u8,
    from: u8,
    to: u8,
    port: u16,
}

impl Packet {
    /// Its bytes, with addresses of a prefix.
    fn bytes(self, [a, b, c]: [u8; 3]) -> Vec<u8> {
        let Packet { kind, from, to, port } = self;
        let (from_mac, to_mac) = ([0, 0, 0, 0, 0, from], [0, 0, 0, 0, 0, to]);
        let (from, to) = ([a, b, c, from], [a, b, c, to]);
        let mut bytes = Vec::new();
        let ip = PacketBuilder::ethernet2(from_mac, to_mac).ipv4(from, to, 9);
        match kind {
            6 => ip.tcp(5, port, 7, 8).write(&mut bytes, b"hello").unwrap(),
            17 => ip.udp(5, port).write(&mut bytes, b"odd").unwrap(),
            1 => ip.icmpv4_echo_request(1, 2).write(&mut bytes, b"ping").unwrap(),
            _ => {
                let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
                bytes = [&to_mac[..], &from_mac, &head, &from_mac, &from, &[0; 6], &to].concat();
            }
        }
        bytes
    }

    /// The same as it is at a port of the tenant.
    fn at(self, shown: u32) -> Vec<u8> {
        self.bytes(if is_edge(shown) { TENANT } else { BETWEEN })
    }
}

fn ip(from: u8, to: u8) -> Packet {
    Packet { kind: 17, from, to, port: 80 }
}

fn arp(from: u8, to: u8) -> Packet {
    Packet { kind: 0, from, to, port: 0 }
}

fn world() -> World {
    let mut world = World::new(addresses(), Version::V1_3);
    world.join(0, Version::V1_3);
    world
}

impl World {
    fn adds(&mut self, priority: u16, matching: &str, actions: &str) -> Vec<(u16, u16)> {
        errors(&self.say(Body::FlowMod(add(priority, matching, actions))))
    }

    /// How many rules the physical switch has for the tenant.
    fn pieces(&self) -> usize {
        self.slicer.rules(DATAPATH).unwrap().1
    }
}

/// A packet arrives at a port of the tenant, as it is there. It must leave by these ports, as it is there.
fn check(world: &mut World, shown: u32, packet: Packet, expected: &[u32]) {
    world.frames.clear();
    world.arrive(physical(shown), &packet.at(shown));
    let mut frames = std::mem::take(&mut world.frames);
    frames.sort();
    let mut wanted: Vec<_> =
        expected.iter().map(|port| (PortNo(physical(*port)), packet.at(*port))).collect();
    wanted.sort();
    assert_eq!(frames, wanted, "{packet:?} at {shown}\n{}", dump(world));
}

#[test]
fn addresses_change_at_the_edge_and_back() {
    let mut world = world();
    assert_eq!(world.adds(5, "ip,in_port=1,nw_dst=10.0.0.3", "output:3"), []);
    assert_eq!(world.adds(5, "ip,in_port=3,nw_src=10.0.0.3,nw_dst=10.0.0.1", "output:1"), []);
    assert_eq!(world.adds(5, "arp,in_port=1", "output:3"), []);
    assert_eq!(world.adds(5, "arp,in_port=3", "output:1"), []);
    check(&mut world, 1, ip(1, 3), &[3]);
    check(&mut world, 3, ip(3, 1), &[1]);
    check(&mut world, 1, arp(1, 3), &[3]);
    check(&mut world, 3, arp(3, 1), &[1]);
    check(&mut world, 1, ip(1, 2), &[]);
}

#[test]
fn a_rule_that_leaves_addresses_open_serves_all_hosts() {
    let mut world = world();
    assert_eq!(world.adds(5, "dl_dst=00:00:00:00:00:03", "output:3"), []);
    assert_eq!(world.adds(4, "", "flood"), []);
    for packet in [ip(1, 3), arp(1, 3), Packet { kind: 6, ..ip(1, 3) }, Packet { kind: 1, ..ip(1, 3) }] {
        check(&mut world, 1, packet, &[3]);
    }
    check(&mut world, 1, ip(1, 2), &[2, 3, 4]);
    check(&mut world, 4, ip(3, 2), &[1, 2, 3]);
    check(&mut world, 4, ip(1, 3), &[3]);
}

#[test]
fn packets_of_other_switches_leave_only_where_their_destination_is() {
    let mut world = world();
    assert_eq!(world.adds(5, "in_port=3", "output:1,output:4"), []);
    check(&mut world, 3, ip(3, 1), &[1, 4]);
    check(&mut world, 3, ip(3, 2), &[4]);
    // A rule that names both addresses says where they go.
    assert_eq!(world.adds(6, "udp,in_port=3,nw_src=10.0.0.3,nw_dst=10.0.0.2", "output:1,output:4"), []);
    check(&mut world, 3, ip(3, 2), &[1, 4]);
}

#[test]
fn a_rule_is_one_piece_unless_it_must_rewrite_what_it_leaves_open() {
    let mut world = world();
    let mut check = |matching: &str, actions: &str, expected: usize| {
        world.say(Body::FlowMod(delete("")));
        assert_eq!(world.adds(5, matching, actions), [], "{matching}");
        assert_eq!(world.pieces(), expected, "{matching} {actions}");
    };
    check("ip,in_port=1,nw_dst=10.0.0.3", "output:3", 1);
    check("ip,in_port=1", "output:2,controller", 1);
    check("ip,in_port=3", "output:4,controller", 1);
    check("ip,in_port=1", "", 1);
    // One for each destination.
    check("ip,in_port=1", "output:3", 3);
    check("ip,in_port=1,nw_dst=10.0.0.0/30", "output:3", 3);
    check("ip,in_port=1,nw_dst=10.0.0.2/31", "output:3", 2);
    // One for each source to the host of port 1, and one for each other destination.
    check("ip,in_port=3", "output:1", 3 + 2);
    check("ip,in_port=3,nw_dst=10.0.0.1", "output:1", 3);
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let mut world = world();
    let mut check = |matching: &str, actions: &str, expected: (u16, u16)| {
        assert_eq!(world.adds(5, matching, actions), [expected], "{matching} {actions}");
        assert_eq!(world.pieces(), 0, "{matching} {actions}");
    };
    let (no_packet, eperm, argument) = ((5, 4), (2, 6), (2, 5));
    check("ip,nw_dst=10.0.1.1", "output:1", no_packet);
    check("ip,nw_dst=172.16.3.1", "output:1", no_packet);
    check("ip,in_port=1,nw_src=10.0.0.2", "output:1", no_packet);
    check("ip,in_port=1,nw_dst=10.0.0.64/26", "output:3", no_packet);
    check("ipv6", "output:9", (2, 4));
    check("ipv6", "normal", (2, 6));
    check("dl_type=0x88cc", "group:1", (2, 9));
    check("ipv6,in_port=9", "output:1", no_packet);
    check("dl_vlan=5", "output:1", no_packet);
    check("ip,in_port=3", "set_field:10.0.1.1->ip_dst,output:4", eperm);
    check("ip,in_port=3", "set_field:172.16.3.1->ip_dst,output:4", eperm);
    check("in_port=3", "set_field:10.0.0.1->ip_dst,output:4", argument);
    check("ip,in_port=3", "push_vlan:0x8100,set_field:4101->vlan_vid,output:4", eperm);
    check("ip,in_port=1", "push_mpls:0x8847,output:3", eperm);
}

#[test]
fn a_tenant_sets_its_own_addresses() {
    let mut world = world();
    assert_eq!(world.adds(5, "udp,in_port=1,nw_dst=10.0.0.9", "set_field:10.0.0.3->ip_dst,output:3"), []);
    assert_eq!(world.adds(5, "udp,in_port=3,nw_src=10.0.0.3", "set_field:10.0.0.9->ip_src,output:1"), []);
    let sent = |world: &mut World, shown: u32, packet: Packet| {
        world.frames.clear();
        world.arrive(physical(shown), &packet.at(shown));
        std::mem::take(&mut world.frames)
    };
    let with = |packet: Packet, from, to, shown: u32| {
        let macs = packet.at(shown)[..12].to_vec();
        [&macs[..], &Packet { from, to, ..packet }.at(shown)[12..]].concat()
    };
    assert_eq!(sent(&mut world, 1, ip(1, 9)), [(PortNo(5), with(ip(1, 9), 1, 3, 3))]);
    assert_eq!(sent(&mut world, 3, ip(3, 1)), [(PortNo(2), with(ip(3, 1), 9, 1, 1))]);
}

#[test]
fn a_host_cannot_send_as_another_and_no_packet_of_others_enters() {
    let mut world = world();
    assert_eq!(world.adds(5, "", "output:2,output:3,controller"), []);
    let own = ip(1, 3);
    let mut is_silent = |port: u32, frame: &[u8]| {
        (world.frames, world.told) = Default::default();
        world.arrive(port, frame);
        assert!(world.frames.is_empty() && world.told.is_empty(), "{port} {frame:02x?} {:?}", world.told);
    };
    is_silent(physical(1), &ip(2, 3).bytes(TENANT));
    is_silent(physical(1), &own.bytes(BETWEEN));
    is_silent(physical(1), &own.bytes([10, 9, 0]));
    is_silent(physical(3), &own.bytes(TENANT));
    is_silent(physical(3), &own.bytes([172, 16, 4]));
    is_silent(physical(1), &crate::world::with_tag(&own.bytes(TENANT), 5));
    // Ports of others.
    is_silent(1, &own.bytes(TENANT));
    is_silent(4, &own.bytes(BETWEEN));
}

/// The slicer could have any fault: these rules are what the physical switch would get.
#[test]
fn the_kernel_refuses_rules_that_do_not_rewrite_or_that_reach_other_slices() {
    let mut world = world();
    let mut check = |matching: &str, actions: &str, expected: bool| {
        let flow_mod = add(5, &format!("{matching},vlan_tci=0x0000/0x1fff"), actions);
        assert_eq!(world.is_granted(flow_mod), expected, "{matching} {actions}");
    };
    let from_edge = "ip,in_port=2,nw_src=10.0.0.1,nw_dst=10.0.0.3";
    let set = |from: &str, to: &str| format!("set_field:{from}->ip_src,set_field:{to}->ip_dst,output:5");
    check(from_edge, &set("172.16.3.1", "172.16.3.3"), true);
    check(from_edge, "output:5", false);
    check(from_edge, "set_field:172.16.3.1->ip_src,output:5", false);
    check(from_edge, &set("172.16.4.1", "172.16.3.3"), false);
    check(from_edge, &set("172.16.3.1", "172.16.4.3"), false);
    check("in_port=2", &set("172.16.3.1", "172.16.3.3"), false);
    check(from_edge, "output:3", true);
    check(from_edge, "output:4", false);
    let between = "ip,in_port=5,nw_src=172.16.3.3,nw_dst=172.16.3.1";
    check(between, "set_field:10.0.0.3->ip_src,set_field:10.0.0.1->ip_dst,output:2", true);
    check(between, "set_field:10.0.0.3->ip_src,set_field:10.0.0.1->ip_dst,output:6", false);
    check(between, "output:6", true);
    check("ip,in_port=5,nw_src=172.16.4.3,nw_dst=172.16.3.1", "output:6", false);
    check("ip,in_port=5,nw_dst=172.16.3.1", "output:6", false);
    check("ipv6,in_port=5", "output:6", false);
}

#[test]
fn controllers_see_and_send_their_own_addresses() {
    let mut world = world();
    assert_eq!(world.adds(0, "", "controller:65535"), []);
    for (shown, packet) in [(1, ip(1, 3)), (3, ip(3, 1)), (1, arp(1, 77)), (4, arp(3, 2))] {
        world.told.clear();
        world.arrive(physical(shown), &packet.at(shown));
        let heard: Vec<Heard> = world.told.iter().filter_map(|(_, it)| packet_in(&it.body)).collect();
        let frame = packet.bytes(TENANT);
        assert_eq!(heard, [(shown.into(), 0, 0, frame.len() as u16, frame)], "{packet:?}");
    }
    let mut sends = |in_port: PortNo, packet: Packet, prefix, ports: &[u32], expected: &[u32]| {
        let data = packet.bytes(prefix);
        let actions = ports.iter().map(|port| Action::output(PortNo(*port))).collect();
        world.frames.clear();
        let packet_out = PacketOut { buffer_id: NO_BUFFER, in_port, actions, data };
        let refused = errors(&world.say(Body::PacketOut(packet_out)));
        let frames = std::mem::take(&mut world.frames);
        let wanted: Vec<_> =
            expected.iter().map(|port| (PortNo(physical(*port)), packet.at(*port))).collect();
        assert_eq!(frames, wanted, "{packet:?}");
        refused
    };
    assert_eq!(sends(PortNo(1), ip(1, 3), TENANT, &[3], &[3]), []);
    assert_eq!(sends(PortNo(3), ip(3, 1), TENANT, &[1], &[1]), []);
    assert_eq!(sends(PortNo::CONTROLLER, arp(254, 1), TENANT, &[1, 3], &[3, 1]), []);
    assert_eq!(sends(PortNo(1), arp(254, 1), TENANT, &[2], &[2]), []);
    assert_eq!(sends(PortNo::CONTROLLER, ip(1, 3), BETWEEN, &[3], &[]), [(1, 5)]);
    assert_eq!(sends(PortNo(1), ip(1, 3), [10, 0, 1], &[3], &[]), [(1, 5)]);
}

#[test]
fn a_group_sends_between_switches_and_to_no_edge_port() {
    let mut world = world();
    let group = |port: u32| {
        let actions = vec![Action::output(PortNo(port))];
        let (watch_port, watch_group) = (PortNo::ANY, GROUP_ANY);
        let buckets = vec![Bucket { weight: 0, watch_port, watch_group, actions }];
        GroupMod { command: 0, group_type: GROUP_TYPE_ALL, group_id: port, buckets }
    };
    assert_eq!(errors(&world.say(Body::GroupMod(group(3)))), []);
    assert_eq!(errors(&world.say(Body::GroupMod(group(1)))), [(2, 5)]);
    assert_eq!(world.adds(5, "in_port=1", "group:3"), []);
    check(&mut world, 1, ip(1, 3), &[3]);
    check(&mut world, 1, arp(1, 2), &[3]);
}

#[test]
fn on_a_switch_of_1_0_only_arp_cannot_be_rewritten() {
    let mut world = World::new(addresses(), Version::V1_0);
    world.join(0, Version::V1_0);
    let adds = |world: &mut World, matching: &str, actions: &str| {
        errors(&world.say(Body::FlowMod(add(5, matching, actions))))
    };
    assert_eq!(adds(&mut world, "ip,in_port=1,nw_dst=10.0.0.3", "output:3"), []);
    assert_eq!(adds(&mut world, "ip,in_port=3", "output:1"), []);
    assert_eq!(adds(&mut world, "arp,in_port=1", "output:2"), []);
    assert_eq!(adds(&mut world, "arp,in_port=1,arp_op=1", "output:3"), [(2, 0)]);
    check(&mut world, 1, ip(1, 3), &[3]);
    check(&mut world, 3, ip(3, 1), &[1]);
}

fn any_match(random: &mut Random) -> Match {
    let mut it = Match::any();
    if random.is(60) {
        it.set(Field::InPort, (random.below(4) + 1).into());
    }
    if random.is(25) {
        it.set(Field::EthDst, u128::from(random.below(4) + 1));
    }
    if random.is(40) {
        return it;
    }
    let is_ip = random.is(70);
    it.set(Field::EthType, if is_ip { 0x0800 } else { 0x0806 });
    let fields = if is_ip { [Field::Ipv4Src, Field::Ipv4Dst] } else { [Field::ArpSpa, Field::ArpTpa] };
    for field in fields {
        if random.is(40) {
            let mask = random.one(&[0xffff_ffff, 0xffff_fffe, 0xff00_0000, 0x0000_0003]);
            it.set_masked(field, (0x0a00_0000 | random.below(4) as u32 & 3).into(), mask);
        }
    }
    if is_ip && random.is(40) {
        it.set(Field::IpProto, random.one(&[6, 17]));
    }
    it.sorted()
}

fn any_actions(random: &mut Random, of: &Match) -> Vec<Action> {
    let set = |field, value: u128| Action::SetField { field, value };
    let is_ip = of.get(Field::EthType) == Some((0x0800, 0xffff));
    let some = |random: &mut Random| match random.below(8) {
        0 => set(Field::EthSrc, 7),
        1 if is_ip => set(Field::Ipv4Dst, u128::from(0x0a00_0000 + random.below(4))),
        2 if is_ip => set(Field::Ipv4Src, u128::from(0x0a00_0000 + random.below(4))),
        3 => Action::Output {
            port: random.one(&[PortNo::FLOOD, PortNo::IN_PORT, PortNo::CONTROLLER]),
            max_len: 0xffff,
        },
        _ => Action::output(PortNo(random.below(4) as u32 + 1)),
    };
    (0..random.below(5)).map(|_| some(random)).collect()
}

/// Random rules go to the slice and to a switch that the tenant controls directly, and then the same packets. Only packets of other switches
/// may be missing at edge ports where their destination is not.
fn compare(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let mut world = world();
    let mut reference = Reference::new(&world, Version::V1_3);
    let (count, mut refused) = (3 + random.below(12), 0);
    for priority in 0..count {
        let matching = any_match(&mut random);
        let actions = any_actions(&mut random, &matching);
        let fields = FlowModFields { priority: 3 * priority as u16 + 1, ..FlowModFields::default() };
        let flow_mod = fields.with(matching, vec![Instruction::ApplyActions(actions)]);
        let bytes = written(Version::V1_3, Body::FlowMod(flow_mod));
        match errors(&world.send(0, &bytes)).is_empty() {
            true => assert!(reference.say(&world, &bytes).messages.is_empty(), "seed {seed}"),
            false => refused += 1,
        }
    }
    for _ in 0..40 {
        let shown = random.below(4) as u32 + 1;
        let from = if is_edge(shown) { shown as u8 } else { random.one(&[1, 2, 3]) };
        let (kind, to) = (random.one(&[0, 1, 6, 17]), random.one(&[1, 2, 3]));
        let packet = Packet { kind, from, to, port: 80 };
        compare_packet(&mut world, &mut reference, (shown, packet), seed);
    }
    (count as usize, refused)
}

fn compare_packet(world: &mut World, reference: &mut Reference, (shown, packet): (u32, Packet), seed: u64) {
    let mut effects = Effects::default();
    reference.switch.on_frame(PortNo(shown), packet.bytes(TENANT), world.now, &mut effects);
    (world.frames, world.told) = Default::default();
    world.arrive(physical(shown), &packet.at(shown));
    let about = format!("seed {seed}: {packet:?} at {shown}\n{}", dump(world));
    let mut frames: Vec<(PortNo, Vec<u8>)> = Vec::new();
    for (port, frame) in std::mem::take(&mut world.frames) {
        let (_, port, is_edge) = PORTS.iter().find(|(it, ..)| PortNo(*it) == port).expect(&about);
        let prefix = if *is_edge { TENANT } else { BETWEEN };
        let at = if frame[13] == 6 { [28, 38] } else { [26, 30] };
        at.into_iter().for_each(|at| assert_eq!(frame[at..at + 3], prefix, "{about}"));
        frames.push((PortNo(*port), in_tenants_words(&frame)));
    }
    for (port, frame) in effects.frames {
        let wanted = (port, in_tenants_words(&frame));
        let destination = frame[if frame[13] == 6 { 41 } else { 33 }];
        match frames.iter().position(|it| *it == wanted) {
            Some(place) => drop(frames.remove(place)),
            None => assert!(
                !is_edge(shown) && is_edge(port.0) && u32::from(destination) != port.0,
                "by {port}: {frame:02x?} {about}"
            ),
        }
    }
    assert_eq!(frames, [], "{about}");
    let heard = |messages: Vec<Body>| -> Vec<Heard> {
        let mut all: Vec<Heard> = messages.iter().filter_map(packet_in).collect();
        all.sort();
        all
    };
    let expected = heard(effects.messages.into_iter().map(|(_, it)| it.body).collect());
    assert_eq!(heard(world.told.iter().map(|(_, it)| it.body.clone()).collect()), expected, "{about}");
}

/// The frame with the tenant's prefix, and its checksums. A wrong checksum stays a wrong one.
fn in_tenants_words(frame: &[u8]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    if bytes[13] == 6 {
        [28, 38].into_iter().for_each(|at| bytes[at..at + 3].copy_from_slice(&TENANT));
        return bytes;
    }
    let ip = etherparse::SlicedPacket::from_ethernet(frame).unwrap();
    let Some(etherparse::NetSlice::Ipv4(ipv4)) = &ip.net else { panic!("{frame:02x?}") };
    let header = ipv4.header().to_header();
    assert_eq!(header.header_checksum, header.calc_header_checksum(), "{frame:02x?}");
    match &ip.transport {
        Some(etherparse::TransportSlice::Tcp(tcp)) => {
            let wanted = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
            assert_eq!(tcp.checksum(), wanted, "{frame:02x?}");
            bytes[50..52].fill(0);
        }
        Some(etherparse::TransportSlice::Udp(udp)) => {
            let wanted = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
            assert_eq!(udp.checksum(), wanted, "{frame:02x?}");
            bytes[40..42].fill(0);
        }
        _ => {}
    }
    [26, 30].into_iter().for_each(|at| bytes[at..at + 3].copy_from_slice(&TENANT));
    bytes[24..26].fill(0);
    bytes
}

#[test]
fn a_tenant_with_addresses_controls_a_switch_as_one_that_has_it_alone() {
    let (mut all, mut refused) = (0, 0);
    for seed in 0..200 {
        let (of_seed, refused_of_seed) = compare(seed);
        all += of_seed;
        refused += refused_of_seed;
    }
    assert!(refused * 100 <= all * 40, "{refused} of {all} flow mods were refused");
}
