//! What the virtual switch does with packets, against a software switch that the tenant controls directly.
//!
//! Random flow mods go to both. Then the same packets arrive at both: the frames that leave, the packet-ins and the counters must be equal,
//! but for ports and tags.

use crate::world::{PORTS, TAG, World, errors, is_edge, physical, with_tag, written};
use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::Isolation;
use software_switch::{ControllerId, Effects, Switch, SwitchOptions, Versions};

const TENANT: ControllerId = ControllerId(0);

/// Random numbers from a seed (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % bound
    }

    /// True in `percent` of a hundred cases.
    pub fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

fn address(random: &mut Random) -> MacAddr {
    MacAddr([0, 0, 0, 0, 0, random.below(3) as u8 + 1])
}

/// A match as a tenant of either version writes it.
fn any_match(random: &mut Random, tags: bool) -> Match {
    let mut it = Match::any();
    if random.is(50) {
        it.set(Field::InPort, (random.below(4) + 1).into());
    }
    if random.is(30) {
        it.set(Field::EthDst, address(random).to_u64().into());
    }
    if random.is(20) {
        it.set(Field::EthSrc, address(random).to_u64().into());
    }
    if tags && random.is(40) {
        it.set(Field::VlanVid, random.one(&[0, 0x1005, 0x1006]));
    }
    if !random.is(60) {
        return it;
    }
    let kind: u128 = random.one(&[0x0800, 0x0800, 0x0806, 0x1234]);
    it.set(Field::EthType, kind);
    if kind == 0x0800 {
        if random.is(50) {
            it.set_masked(
                Field::Ipv4Dst,
                random.one(&[0x0a00_0001, 0x0a00_0100]),
                random.one(&[0xffff_ff00, 0xffff_ffff]),
            );
        }
        if random.is(60) {
            let (proto, port) = random.one(&[(6, Field::TcpDst), (17, Field::UdpDst)]);
            it.set(Field::IpProto, proto);
            if random.is(50) {
                it.set(port, random.one(&[80, 443]));
            }
        }
    }
    it.sorted()
}

fn any_output(random: &mut Random) -> Action {
    let ports = [1, 2, 3, 4].map(PortNo);
    let reserved = [PortNo::FLOOD, PortNo::ALL, PortNo::IN_PORT, PortNo::CONTROLLER];
    let port = if random.is(60) { random.one(&ports) } else { random.one(&reserved) };
    Action::Output { port, max_len: 0xffff }
}

fn any_actions(random: &mut Random, of: &Match, version: Version, tags: bool) -> Vec<Action> {
    let mut actions = Vec::new();
    for _ in 0..random.below(5) {
        let is_v10 = version == Version::V1_0;
        let is_ip = of.get(Field::EthType) == Some((0x0800, 0xffff));
        let proto = of.get(Field::IpProto).map(|(proto, _)| proto);
        let set = |field, value: u128| Action::SetField { field, value };
        let mac = address(random);
        actions.push(match random.below(8) {
            0 if is_v10 => Action::SetEthSrc(mac),
            0 => set(Field::EthSrc, mac.to_u64().into()),
            1 if is_ip && is_v10 => Action::SetIpv4Src([10, 0, 0, 9].into()),
            1 if is_ip => set(Field::Ipv4Src, 0x0a00_0009),
            2 if proto.is_some() && is_v10 => Action::SetTransportDst(8080),
            2 if proto == Some(6) => set(Field::TcpDst, 8080),
            3 if is_ip && !is_v10 => Action::DecNwTtl,
            4 if is_v10 && tags => {
                random.one(&[Action::StripVlan, Action::SetVlanVid(6), Action::SetVlanPcp(3)])
            }
            4 if is_v10 => Action::StripVlan,
            _ => any_output(random),
        });
    }
    actions
}

/// A flow mod. Different matches have different priorities, since the specification leaves open which of two overlapping rules of one
/// priority is hit.
fn any_flow_mod(random: &mut Random, matches: &mut Vec<Match>, version: Version, tags: bool) -> FlowMod {
    let matching =
        if !matches.is_empty() && random.is(30) { random.one(matches) } else { any_match(random, tags) };
    let place = matches.iter().position(|it| *it == matching).unwrap_or_else(|| {
        matches.push(matching.clone());
        matches.len() - 1
    });
    let actions = any_actions(random, &matching, version, tags);
    let mut instructions = Vec::new();
    if version != Version::V1_0 && random.is(30) {
        instructions.push(Instruction::WriteActions(any_actions(random, &matching, version, tags)));
    }
    if !actions.is_empty() {
        instructions.insert(0, Instruction::ApplyActions(actions));
    }
    let is_strict = random.is(50);
    let command = match random.below(10) {
        0..7 => FLOW_ADD,
        7 | 8 if is_strict => FLOW_MODIFY_STRICT,
        7 | 8 => FLOW_MODIFY,
        _ if is_strict => FLOW_DELETE_STRICT,
        _ => FLOW_DELETE,
    };
    let is_delete = matches!(command, FLOW_DELETE | FLOW_DELETE_STRICT);
    let is_v10 = version == Version::V1_0;
    let fields = FlowModFields {
        command,
        cookie: random.below(4) | 0xabcd << 48,
        cookie_mask: if !is_v10 && command != FLOW_ADD && random.is(30) { 3 } else { 0 },
        table_id: if is_delete && is_v10 { TABLE_ALL } else { 0 },
        priority: (place * 3) as u16,
        out_port: if is_delete && random.is(30) { PortNo(1) } else { PortNo::ANY },
        ..FlowModFields::default()
    };
    fields.with(matching, if is_delete { Vec::new() } else { instructions })
}

/// The switch that the tenant controls directly.
pub struct Reference {
    pub switch: Switch,
    version: Version,
}

impl Reference {
    pub fn new(world: &World, version: Version) -> Reference {
        let versions = if version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let options = SwitchOptions { versions, n_buffers: 0, n_tables: 1, ..SwitchOptions::default() };
        let mut switch = Switch::new(DatapathId(0x77), "v", options);
        let mut effects = Effects::default();
        (1..=4).for_each(|port| switch.add_port(PortNo(port), world.now, &mut effects));
        switch.on_connected(TENANT, &mut effects);
        let hello = Message { version, xid: 0, body: Body::Hello(Hello::default()) };
        switch.on_message(TENANT, &hello, world.now, &mut effects);
        Reference { switch, version }
    }

    pub fn say(&mut self, world: &World, bytes: &[u8]) -> Effects {
        let mut effects = Effects::default();
        let message = Message::decode(bytes).unwrap();
        self.switch.on_received(TENANT, &message, bytes, world.now, &mut effects);
        effects
    }
}

pub type Heard = (u128, u8, u64, u16, Vec<u8>);

pub fn packet_in(body: &Body) -> Option<Heard> {
    let Body::PacketIn(it) = body else { return None };
    let (port, _) = it.matching.get(Field::InPort)?;
    Some((port, it.reason, it.cookie, it.total_len, it.data.clone()))
}

fn frame(random: &mut Random, tags: bool) -> Vec<u8> {
    let (dst, src) = (address(random), address(random));
    let mut frame = [dst.0, src.0].concat();
    if tags && random.is(50) {
        frame.extend([0x81, 0x00, 0x00, random.one(&[5, 6, TAG as u8])]);
    }
    let kind: u16 = random.one(&[0x0800, 0x0800, 0x0800, 0x0806, 0x1234]);
    frame.extend(kind.to_be_bytes());
    if kind == 0x0800 {
        let proto = random.one(&[6u8, 17, 1]);
        let to = random.one(&[[10, 0, 0, 1], [10, 0, 1, 0], [10, 0, 0, 7]]);
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, random.one(&[1, 64]), proto, 0, 0, 10, 0, 0, 3]);
        frame.extend(to);
        frame.extend(random.one(&[80u16, 443, 22]).to_be_bytes());
        frame.extend(random.one(&[80u16, 443, 22]).to_be_bytes());
    }
    frame.extend([7; 20]);
    frame
}

/// Which frames leave which ports, as the tenant sees them. Fails if one leaves elsewhere, or with another tag.
fn shown(world: &World, frames: Vec<(PortNo, Vec<u8>)>) -> Vec<(PortNo, Vec<u8>)> {
    let is_vlan = matches!(world.isolation, Isolation::Vlan(_));
    let mut all: Vec<_> = frames
        .into_iter()
        .map(|(port, frame)| {
            let own = PORTS.iter().find(|(it, ..)| PortNo(*it) == port);
            let (_, shown, is_edge) = own.unwrap_or_else(|| panic!("a frame leaves by {port}"));
            let frame = if is_vlan && !is_edge {
                assert_eq!(frame[12..16], [0x81, 0x00, 0, TAG as u8], "port {port}");
                [&frame[..12], &frame[16..]].concat()
            } else {
                frame
            };
            (PortNo(*shown), frame)
        })
        .collect();
    all.sort();
    all
}

/// One seed: random rules, then random packets.
fn check(isolation: &Isolation, by: Version, on: Version, seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let mut world = World::new(isolation.clone(), on);
    let mut reference = Reference::new(&world, by);
    world.join(0, by);
    let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
    world.say(Body::SetConfig(config));
    reference.say(&world, &written(by, Body::SetConfig(config)));
    let tags = matches!(isolation, Isolation::Flowspace(_));
    let (mut matches, mut refused) = (Vec::new(), 0);
    let count = 5 + random.below(25);
    for _ in 0..count {
        let flow_mod = any_flow_mod(&mut random, &mut matches, by, tags);
        let bytes = written(by, Body::FlowMod(flow_mod.clone()));
        let answers = world.send(0, &bytes);
        if !errors(&answers).is_empty() {
            refused += 1;
            continue;
        }
        let effects = reference.say(&world, &bytes);
        let answers: Vec<&Message> = effects.messages.iter().map(|(_, it)| it).collect();
        assert!(answers.is_empty(), "seed {seed}: {flow_mod:?} {answers:?}");
    }
    for _ in 0..40 {
        compare_packet_out(&mut world, &mut reference, &mut random, tags, seed);
        let frame = frame(&mut random, tags);
        let port = random.below(4) as u32 + 1;
        if world.owns(port, &frame) {
            compare(&mut world, &mut reference, (port, &frame), seed);
        } else if tags {
            is_silent(&mut world, physical(port), &frame, seed);
        }
        let foreign = random.one(&[1, 4]);
        is_silent(&mut world, foreign, &frame, seed);
        is_silent(&mut world, foreign, &with_tag(&frame, TAG), seed);
        if !tags {
            let wrong = if is_edge(port) { with_tag(&frame, TAG) } else { frame.clone() };
            is_silent(&mut world, physical(port), &wrong, seed);
            is_silent(&mut world, physical(port), &with_tag(&frame, TAG + 1), seed);
        }
    }
    compare_counters(&mut world, &mut reference, seed);
    (count as usize, refused)
}

/// The same packet arrives at both.
fn compare(world: &mut World, reference: &mut Reference, (port, frame): (u32, &[u8]), seed: u64) {
    let mut effects = Effects::default();
    reference.switch.on_frame(PortNo(port), frame.to_vec(), world.now, &mut effects);
    let mut expected = effects.frames;
    expected.sort();
    let mut wanted: Vec<Heard> = effects.messages.iter().filter_map(|(_, it)| packet_in(&it.body)).collect();
    world.told.clear();
    world.frames.clear();
    world.arrive_shown(port, frame);
    let frames = std::mem::take(&mut world.frames);
    assert_eq!(shown(world, frames), expected, "seed {seed}: port {port} {frame:02x?}\n{}", dump(world));
    let mut heard: Vec<Heard> = world.told.iter().filter_map(|(_, it)| packet_in(&it.body)).collect();
    if world.on == Version::V1_0 {
        // A switch of 1.0 does not say which rule sent a packet. If an action changed it before, the tenant's table cannot tell.
        heard.iter_mut().chain(&mut wanted).for_each(|it| (it.1, it.2) = (0, 0));
    }
    heard.sort();
    wanted.sort();
    assert_eq!(heard, wanted, "seed {seed}: port {port} {frame:02x?}\n{}", dump(world));
}

pub fn dump(world: &World) -> String {
    world.commands.iter().map(|it| format!("{it:?}\n")).collect()
}

/// The same packet-out to both: with an input port or none, by ports or through the table.
fn compare_packet_out(
    world: &mut World,
    reference: &mut Reference,
    random: &mut Random,
    tags: bool,
    seed: u64,
) {
    let data = frame(random, tags);
    let port = random.below(4) as u32 + 1;
    if !world.owns(port, &data) {
        return;
    }
    let in_port = PortNo(port);
    let actions = if random.is(20) {
        vec![Action::output(PortNo::TABLE)]
    } else {
        any_actions(random, &Match::any(), reference.version, false)
    };
    let to_controller = |action: &Action| matches!(action, Action::Output { port: PortNo::CONTROLLER, .. });
    if actions.iter().any(to_controller) {
        return;
    }
    let packet_out = PacketOut { buffer_id: NO_BUFFER, in_port, actions, data };
    let bytes = written(reference.version, Body::PacketOut(packet_out));
    world.frames.clear();
    world.told.clear();
    if !errors(&world.send(0, &bytes)).is_empty() {
        return;
    }
    let mut expected = reference.say(world, &bytes).frames;
    expected.sort();
    let frames = std::mem::take(&mut world.frames);
    assert_eq!(shown(world, frames), expected, "seed {seed}: {bytes:02x?}\n{}", dump(world));
}

/// A packet of others: nothing of the slice may touch it.
fn is_silent(world: &mut World, port: u32, frame: &[u8], seed: u64) {
    world.told.clear();
    world.frames.clear();
    world.arrive(port, frame);
    assert!(world.frames.is_empty() && world.told.is_empty(), "seed {seed}: port {port} {frame:02x?}");
}

type Entry = (u16, u64, u64, Option<u64>, String);

fn entries(bodies: impl Iterator<Item = Body>, has_bytes: bool) -> Vec<Entry> {
    let mut all = Vec::new();
    for body in bodies {
        let Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) = body else {
            continue;
        };
        for it in entries {
            let shown = format!("{:?} {:?}", it.matching.clone().sorted(), it.instructions);
            all.push((it.priority, it.cookie, it.packet_count, has_bytes.then_some(it.byte_count), shown));
        }
    }
    all.sort();
    all
}

fn compare_counters(world: &mut World, reference: &mut Reference, seed: u64) {
    let request = FlowStatsRequest::default();
    let request = MultipartRequest { flags: 0, body: RequestBody::Flow(request) };
    let bytes = written(reference.version, Body::MultipartRequest(request));
    // The slice's tag counts as bytes of the switch.
    let has_bytes = matches!(world.isolation, Isolation::Flowspace(_));
    let effects = reference.say(world, &bytes);
    let expected = entries(effects.messages.into_iter().map(|(_, it)| it.body), has_bytes);
    let answers = entries(world.send(0, &bytes).into_iter(), has_bytes);
    for (entry, expected) in answers.iter().zip(&expected) {
        assert_eq!(entry, expected, "seed {seed}\n{}", dump(world));
    }
    assert_eq!(answers.len(), expected.len(), "seed {seed}");
}

/// So many seeds take some seconds.
const SEEDS: u64 = 150;

/// Many seeds. Few flow mods may be refused, or the comparison is worth little.
fn check_seeds(isolation: Isolation, by: Version, on: Version, refused_percent: usize) {
    let (mut all, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let (of_seed, refused_of_seed) = check(&isolation, by, on, seed);
        all += of_seed;
        refused += refused_of_seed;
    }
    assert!(refused * 100 <= all * refused_percent, "{refused} of {all} flow mods were refused");
}

fn flowspace() -> Isolation {
    let matches = ["ip,nw_dst=10.0.0.0/24", "tcp,tp_dst=443", "in_port=5,arp", "in_port=2,dl_vlan=5"];
    Isolation::Flowspace(matches.iter().map(|it| flow::text::parse_match(it).unwrap()).collect())
}

#[test]
fn with_a_tag_a_tenant_of_1_3_controls_a_switch_of_1_3() {
    check_seeds(Isolation::Vlan(TAG), Version::V1_3, Version::V1_3, 5);
}

#[test]
fn with_a_tag_a_tenant_of_1_0_controls_a_switch_of_1_3() {
    check_seeds(Isolation::Vlan(TAG), Version::V1_0, Version::V1_3, 5);
}

#[test]
fn with_a_tag_a_tenant_of_1_3_controls_a_switch_of_1_0() {
    check_seeds(Isolation::Vlan(TAG), Version::V1_3, Version::V1_0, 40);
}

#[test]
fn with_a_tag_a_tenant_of_1_0_controls_a_switch_of_1_0() {
    check_seeds(Isolation::Vlan(TAG), Version::V1_0, Version::V1_0, 5);
}

#[test]
fn with_a_flowspace_a_tenant_of_1_3_controls_a_switch_of_1_3() {
    check_seeds(flowspace(), Version::V1_3, Version::V1_3, 60);
}

#[test]
fn with_a_flowspace_a_tenant_of_1_0_controls_a_switch_of_1_3() {
    check_seeds(flowspace(), Version::V1_0, Version::V1_3, 60);
}

#[test]
fn with_a_flowspace_a_tenant_of_1_3_controls_a_switch_of_1_0() {
    check_seeds(flowspace(), Version::V1_3, Version::V1_0, 70);
}

#[test]
fn with_a_flowspace_a_tenant_of_1_0_controls_a_switch_of_1_0() {
    check_seeds(flowspace(), Version::V1_0, Version::V1_0, 60);
}
