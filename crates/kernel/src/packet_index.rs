//! Finds the zones that may receive a packet-in, without a look at each zone.
//!
//! ```text
//!   what each zone receives ──PacketIndex::of──> for each of its matches, the field that the fewest others have ──> a key
//!   packet-in ──PacketIndex::find──> one look for each form of a key ──> candidates ──> Zone::hears_packet ──> zones
//! ```
//!
//! A key is one field of a match, with its mask and value, and the switch if the match is for one switch. A packet is looked
//! up once for each form: the field, the mask, and whether the switch counts. So the cost depends on the number of forms, and
//! not on the number of zones. A zone without such a field, or with too rare a form, is compared with each packet.
//!
//! In: subscriptions and grants of zones, and the fields of packets. Out: the same zones as a look at each. Bounds:
//! [`FORMS_MAX`] forms, and a key for each match and switch of a grant. A look allocates nothing.

use crate::capability::Capability;
use crate::grant::BoundsHere;
use crate::zone_set::ZoneSet;
use crate::zones::Zone;
use abi::ZoneId;
use flow::frame::FrameFields;
use flow::{DatapathId, Field, Match, MatchEntry};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How many forms of keys there are. Each costs each packet-in a look. A match whose fields have other forms is compared
/// with each packet.
const FORMS_MAX: usize = 8;

/// A grant of more keys than this for listed switches has one for all of them.
const KEYS_OF_SWITCHES_MAX: usize = 1_024;

/// What a key consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Form {
    /// The bits of a field; `None`: the switch alone.
    field: Option<(Field, u128)>,
    /// Whether the key is for one switch.
    has_switch: bool,
}

/// A form with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    form: Form,
    value: u128,
    /// 0 if the key is for all switches.
    datapath: u64,
}

/// Hashes a key of this index. The keys come from grants and subscriptions, and no packet adds one.
#[derive(Clone, Copy, Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }
}

/// The number of a form, the switch, and the value.
type Place = (u8, u64, u128);

/// The index over what zones receive.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketIndex {
    forms: Vec<Form>,
    zones: HashMap<Place, Vec<ZoneId>, BuildHasherDefault<KeyHasher>>,
    /// Zones that are compared with each packet.
    others: ZoneSet,
    /// What it cost to build: its parts, and their keys.
    cost: usize,
}

/// Some of the packets that a zone receives: those that all of these match, at one switch or at all.
struct Part<'a> {
    datapath: Option<DatapathId>,
    entries: Vec<&'a MatchEntry>,
}

impl PacketIndex {
    /// The index over these zones.
    pub fn of(wanted: &ZoneSet, zones: &[Option<Zone>]) -> PacketIndex {
        let own_ports: Vec<Vec<MatchEntry>> = zones.iter().map(own_ports).collect();
        let there = |zone: ZoneId| zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        let parts: Vec<(ZoneId, Part<'_>)> = wanted
            .iter()
            .filter_map(|zone| Some((zone, there(zone)?, own_ports.get(usize::from(zone.0))?)))
            .flat_map(|(zone, there, own)| parts_of(there, own).into_iter().map(move |part| (zone, part)))
            .collect();
        let mut counts: HashMap<Key, usize> = HashMap::new();
        for (_, part) in &parts {
            keys_of(part).for_each(|key| *counts.entry(key).or_default() += 1);
        }
        let cost = parts.len() + counts.values().sum::<usize>();
        let mut index = PacketIndex { cost, ..PacketIndex::default() };
        for (zone, part) in &parts {
            let mut keys: Vec<Key> = keys_of(part).collect();
            // A key that few have leaves few candidates. Fields come in the order of their numbers otherwise.
            keys.sort_by_key(|key| counts.get(key).copied().unwrap_or_default());
            index.add(*zone, &keys);
        }
        index
    }

    /// What it cost to build the index: the parts of what the zones receive, and the keys of these parts. The kernel counts each as a
    /// comparison.
    pub fn cost(&self) -> u64 {
        self.cost as u64
    }

    /// Adds a zone under the first of these keys for whose form there is room.
    fn add(&mut self, zone: ZoneId, keys: &[Key]) {
        let place = keys.iter().find_map(|key| Some((self.form(key.form)?, key.datapath, key.value)));
        match place {
            Some(place) => {
                let there = self.zones.entry(place).or_default();
                if !there.contains(&zone) {
                    there.push(zone);
                }
            }
            None => self.others.insert(zone),
        }
    }

    fn form(&mut self, wanted: Form) -> Option<u8> {
        let known = self.forms.iter().position(|form| *form == wanted);
        let place = known.or_else(|| {
            let has_room = self.forms.len() < FORMS_MAX;
            has_room.then(|| {
                self.forms.push(wanted);
                self.forms.len() - 1
            })
        })?;
        u8::try_from(place).ok()
    }

    /// Adds the zones that receive a packet with these fields.
    #[inline]
    pub fn find(
        &self,
        datapath: DatapathId,
        fields: &FrameFields,
        zones: &[Option<Zone>],
        found: &mut ZoneSet,
    ) {
        for zone in &self.others {
            add_if_it_hears(zone, datapath, fields, zones, found);
        }
        for (form, number) in self.forms.iter().zip(0..) {
            let value = match form.field {
                None => Some(0),
                Some((field, mask)) => fields.get(field).map(|value| value & mask),
            };
            let Some(value) = value else { continue };
            let of_switch = if form.has_switch { datapath.0 } else { 0 };
            let Some(candidates) = self.zones.get(&(number, of_switch, value)) else { continue };
            for zone in candidates {
                add_if_it_hears(*zone, datapath, fields, zones, found);
            }
        }
    }
}

#[inline]
fn add_if_it_hears(
    zone: ZoneId,
    datapath: DatapathId,
    fields: &FrameFields,
    zones: &[Option<Zone>],
    found: &mut ZoneSet,
) {
    let there = zones.get(usize::from(zone.0)).and_then(Option::as_ref);
    if there.is_some_and(|it| it.hears_packet(datapath, fields)) {
        found.insert(zone);
    }
}

/// A match for each own port of a zone.
fn own_ports(zone: &Option<Zone>) -> Vec<MatchEntry> {
    let Some(zone) = zone else { return Vec::new() };
    let bounds = zone.grant.packets_in();
    let at_one = bounds.switches.values().flat_map(|here| here.own_ports.iter().flatten());
    let entry = |port: &flow::PortNo| MatchEntry::Field {
        field: Field::InPort,
        value: u128::from(port.0),
        mask: None,
    };
    bounds.own_ports.iter().chain(at_one).map(entry).collect()
}

/// The packets that a zone receives, in parts.
fn parts_of<'a>(zone: &'a Zone, own_ports: &'a [MatchEntry]) -> Vec<Part<'a>> {
    let subscribed = || zone.subscription.packets().into_iter().flat_map(Match::entries);
    if !zone.grant.is_bounded(Capability::PacketIn) {
        return vec![Part { datapath: None, entries: subscribed().collect() }];
    }
    let bounds = zone.grant.packets_in();
    let parts_at = |datapath: Option<DatapathId>, here: BoundsHere<'a>| {
        let with = |more: &'a [MatchEntry]| Part { datapath, entries: subscribed().chain(more).collect() };
        let Some(flowspace) = here.flowspace else { return vec![with(&[])] };
        let is_own = |entry: &&MatchEntry| match entry {
            MatchEntry::Field { value, .. } => here.own_ports.iter().any(|port| u128::from(port.0) == *value),
            MatchEntry::Unknown { .. } => false,
        };
        let own = own_ports.iter().filter(is_own).map(std::slice::from_ref);
        flowspace.iter().map(Match::entries).chain(own).map(with).collect()
    };
    let mut parts: Vec<Part<'a>> = Vec::new();
    for datapath in bounds.switches.keys() {
        parts.extend(parts_at(Some(*datapath), bounds.at(*datapath)));
    }
    let elsewhere = parts_at(None, bounds.elsewhere());
    let others = bounds.datapaths.iter().flatten().filter(|datapath| !bounds.switches.contains_key(datapath));
    match &bounds.datapaths {
        None if !bounds.switches.is_empty() => {}
        Some(listed) if listed.len() * elsewhere.len() <= KEYS_OF_SWITCHES_MAX => {
            parts.extend(others.flat_map(|datapath| parts_at(Some(*datapath), bounds.elsewhere())));
        }
        _ => parts.extend(elsewhere),
    }
    parts
}

/// The keys of which a part may have one.
fn keys_of<'a>(part: &'a Part<'_>) -> impl Iterator<Item = Key> + 'a {
    let (datapath, has_switch) = (part.datapath.map_or(0, |it| it.0), part.datapath.is_some());
    let fields = part.entries.iter().filter_map(move |entry| match entry {
        MatchEntry::Field { mask: Some(0), .. } | MatchEntry::Unknown { .. } => None,
        MatchEntry::Field { field, value, mask } => {
            let form = Form { field: Some((*field, mask.unwrap_or(field.full_mask()))), has_switch };
            Some(Key { form, value: *value, datapath })
        }
    });
    let switch_alone = Key { form: Form { field: None, has_switch }, value: 0, datapath };
    fields.chain(has_switch.then_some(switch_alone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Kernel;
    use crate::grant::{Bounds, Grant, SwitchBounds};
    use abi::Frame;
    use abi::command::{self, Command, Subscribe, What};
    use abi::event::kind;
    use flow::PortNo;
    use flow::canonical::write_match;
    use flow::text::parse_match;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// More forms than an index has, so that some zones are among the others.
    const MATCHES: [&str; 16] = [
        "in_port=1",
        "in_port=2",
        "dl_vlan=5",
        "dl_vlan=6,ip",
        "vlan_vid=0",
        "arp",
        "ip,nw_dst=10.0.0.0/31",
        "ip,nw_dst=10.0.0.1",
        "ip,nw_src=10.0.0.0/30",
        "tcp,tp_dst=80",
        "udp,tp_dst=80",
        "in_port=1,dl_vlan=5",
        "dl_dst=00:00:00:00:00:01",
        "dl_src=00:00:00:00:00:08/00:00:00:00:00:08",
        "metadata=0/1",
        "reg0=5",
    ];

    fn matches() -> impl Strategy<Value = Vec<Match>> {
        vec(prop::sample::select(&MATCHES[..]).prop_map(|text| parse_match(text).unwrap()), 1..4)
    }

    fn ports() -> impl Strategy<Value = Vec<PortNo>> {
        vec((1..4u32).prop_map(PortNo), 0..2)
    }

    fn bounds() -> impl Strategy<Value = Bounds> {
        let option = proptest::option::of::<proptest::strategy::BoxedStrategy<Vec<Match>>>;
        let here = (option(matches().boxed()), proptest::option::of(ports()))
            .prop_map(|(flowspace, own_ports)| SwitchBounds { flowspace, own_ports, ports: None });
        let switches = proptest::collection::btree_map((1..4u64).prop_map(DatapathId), here, 0..3);
        let datapaths = proptest::option::of(vec((1..4u64).prop_map(DatapathId), 1..3));
        (option(matches().boxed()), ports(), datapaths, switches).prop_map(
            |(flowspace, own_ports, datapaths, switches)| Bounds {
                flowspace,
                own_ports,
                datapaths,
                switches,
                ..Bounds::default()
            },
        )
    }

    /// What a zone is granted, and to what it subscribes.
    fn zone() -> impl Strategy<Value = (Option<Bounds>, Option<Match>)> {
        (
            proptest::option::weighted(0.9, bounds()),
            proptest::option::of(matches().prop_map(|mut all| all.remove(0))),
        )
    }

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        (1..3u8, prop::sample::select(vec![0, 5u8, 6]), 0..3u8, 0..4u8, 80..82u8).prop_map(
            |(to, tag, kind, dst, port)| {
                let mut bytes = vec![0, 0, 0, 0, 0, to, 0, 0, 0, 0, 0, 9];
                if tag != 0 {
                    bytes.extend([0x81, 0x00, 0x00, tag]);
                }
                match kind {
                    0 => bytes.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]),
                    _ => bytes.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 5 + kind * 6]),
                }
                bytes.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, dst, 0, 7, 0, port]);
                bytes.resize(bytes.len() + 30, 0);
                bytes
            },
        )
    }

    fn kernel(zones: &[(Option<Bounds>, Option<Match>)]) -> Kernel {
        let mut kernel = Kernel::new(7);
        for ((bounds, subscribed), number) in zones.iter().zip(1..) {
            let grant = match bounds {
                Some(bounds) => Grant::nothing().with_packets_in(bounds.clone()),
                None => Grant::nothing().with(Capability::PacketIn),
            };
            kernel.attach(ZoneId(number), "app", grant, 0);
            let (mut packets, mut bytes) = (Vec::new(), Vec::new());
            subscribed.iter().for_each(|it| write_match(it, &mut packets));
            let what = What::Subscribe(Subscribe { events: kind::bit(kind::PACKET_IN), packets: &packets });
            let command = Command { datapath: DatapathId(0), ticket: 7, wants_receipt: false, what };
            assert!(command::write::command(&mut bytes, &command));
            kernel.on_command(ZoneId(number), &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        }
        kernel
    }

    proptest! {
        #[test]
        fn the_index_finds_the_zones_that_a_look_at_each_finds(
            zones in vec(zone(), 0..40), packets in vec((1..4u64, 1..4u32, frame()), 1..20)
        ) {
            let kernel = kernel(&zones);
            let all: ZoneSet = (1..=40).map(ZoneId).collect();
            let index = PacketIndex::of(&all, &kernel.zones);
            for (datapath, in_port, frame) in packets {
                let fields = FrameFields::read(&frame).from_port(PortNo(in_port));
                let hears = |zone: &ZoneId| {
                    let there = kernel.zone(*zone);
                    there.is_some_and(|it| it.hears_packet(DatapathId(datapath), &fields))
                };
                let expected: ZoneSet = all.iter().filter(hears).collect();
                let mut found = ZoneSet::EMPTY;
                index.find(DatapathId(datapath), &fields, &kernel.zones, &mut found);
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn zones_with_a_port_or_a_tag_of_their_own_are_not_looked_at_one_by_one() {
        let of = |number: u64| {
            let space = Some(vec![parse_match(&format!("ip,dl_vlan={number}")).unwrap()]);
            (Some(Bounds { flowspace: space, ..Bounds::default() }), None)
        };
        let zones: Vec<_> = (1..=100).map(of).collect();
        let kernel = kernel(&zones);
        let index = PacketIndex::of(&(1..=100).map(ZoneId).collect(), &kernel.zones);
        assert!(index.others.is_empty());
        assert_eq!(index.forms.len(), 1, "by the tag, and not by the EtherType that all have");
        assert!(index.zones.values().all(|zones| zones.len() == 1));
    }
}
