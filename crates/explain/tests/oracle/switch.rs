//! One switch: the frames and packet-ins of the software switch are those that the tracer foretells.

use crate::frames::{frame, ttl};
use crate::rules;
use crate::seed::Seed;
use explain::{Event, Fate, Group, GroupKind, Packet, Passage, Rule, Tables, pass};
use flow::frame::FrameFields;
use flow::text::match_to_string;
use flow::{DatapathId, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use software_switch::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use std::collections::BTreeMap;
use std::time::Duration;

const C0: ControllerId = ControllerId(0);
const NOW: Duration = Duration::from_secs(1_000);

/// Scenarios for each version.
const SEEDS: u64 = 4_000;

/// A software switch, and the same as the tracer sees it.
pub struct Twin {
    pub switch: Switch,
    pub tables: Tables,
    version: Version,
}

impl Twin {
    /// With the ports 1 to 5, of which some are down.
    pub fn new(id: u64, is_v10: bool, down: &[u32]) -> Twin {
        let (versions, version) = match is_v10 {
            true => (Versions::Only10, Version::V1_0),
            false => (Versions::Only13, Version::V1_3),
        };
        let options = SwitchOptions { versions, n_buffers: 0, ..SwitchOptions::default() };
        let mut effects = Effects::default();
        let mut switch = Switch::new(DatapathId(id), "s", options);
        let mut tables = Tables { is_v10, ..Tables::default() };
        for number in 1..=5 {
            switch.add_port(PortNo(number), NOW, &mut effects);
            switch.set_link(PortNo(number), !down.contains(&number), &mut effects);
            tables.ports.insert(PortNo(number), !down.contains(&number));
        }
        switch.on_connected(C0, &mut effects);
        let mut twin = Twin { switch, tables, version };
        twin.say(Body::Hello(Hello::default()));
        twin
    }

    /// Sends a message over the wire. Returns whether it was accepted.
    pub fn say(&mut self, body: Body) -> bool {
        let mut bytes = Vec::new();
        if (Message { version: self.version, xid: 1, body }).encode(&mut bytes).is_err() {
            return false;
        }
        let Ok(message) = Message::decode(&bytes) else { return false };
        let mut effects = Effects::default();
        self.switch.on_message(C0, &message, NOW, &mut effects);
        !effects.messages.iter().any(|(_, answer)| matches!(answer.body, Body::Error(_)))
    }

    pub fn add_group(&mut self, number: u32, group: Group) {
        let group_type = match group.kind {
            GroupKind::All => GROUP_TYPE_ALL,
            GroupKind::Select => GROUP_TYPE_SELECT,
            GroupKind::Indirect => GROUP_TYPE_INDIRECT,
            GroupKind::FastFailover => GROUP_TYPE_FAST_FAILOVER,
        };
        let bucket = |bucket: &explain::Bucket| Bucket {
            weight: bucket.weight,
            watch_port: bucket.watch_port,
            watch_group: bucket.watch_group,
            actions: bucket.actions.clone(),
        };
        let buckets = group.buckets.iter().map(bucket).collect();
        if self.say(Body::GroupMod(GroupMod { command: 0, group_type, group_id: number, buckets })) {
            self.tables.groups.insert(number, group);
        }
    }

    pub fn add_meter(&mut self) {
        let bands = vec![MeterBand { kind: MeterBandKind::Drop, rate: u32::MAX, burst_size: 0 }];
        if self.say(Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 1, bands })) {
            self.tables.meters.insert(1);
        }
    }

    pub fn add_rule(&mut self, rule: Rule) {
        let head = FlowModFields { table_id: rule.table_id, priority: rule.priority, ..Default::default() };
        if self.say(Body::FlowMod(head.with(rule.matching.clone(), rule.instructions.clone()))) {
            self.tables.rules.push(rule);
        }
    }

    /// The frames that leave when this one arrives.
    pub fn frames(&mut self, in_port: PortNo, frame: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
        let mut effects = Effects::default();
        self.switch.on_frame(in_port, frame.to_vec(), NOW, &mut effects);
        effects.frames
    }

    /// What the switch does with a frame: sorted lines.
    pub fn does(&mut self, in_port: PortNo, frame: &[u8]) -> Vec<String> {
        let mut effects = Effects::default();
        self.switch.on_frame(in_port, frame.to_vec(), NOW, &mut effects);
        let packet_ins = effects.messages.into_iter().filter_map(|(_, message)| match message.body {
            // A packet whose time-to-live has ended is for those who asked for it.
            Body::PacketIn(it) if it.reason != 2 => Some((PortNo::CONTROLLER, it.data)),
            _ => None,
        });
        let all = effects.frames.into_iter().chain(packet_ins);
        sorted(all.map(|(port, frame)| line(port, &Packet::new(FrameFields::read(&frame)))))
    }
}

pub fn line(port: PortNo, packet: &Packet) -> String {
    format!("{port} {}", match_to_string(&packet.to_match()))
}

pub fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// For each selection that the switch may make: what it then does. `None`: the tracer does not know.
pub fn foretold(passage: &Passage) -> Option<Vec<Vec<String>>> {
    let is_unknown = |event: &Event| matches!(event, Event::Unknown(_) | Event::TooMany | Event::Normal);
    if passage.events.iter().any(is_unknown) {
        return None;
    }
    let visits: Vec<&[usize]> = passage.events.iter().filter_map(selectable).collect();
    let mut all = vec![BTreeMap::new()];
    for (visit, buckets) in visits.iter().enumerate() {
        let with = |chosen: &BTreeMap<usize, usize>, bucket: usize| {
            let mut chosen = chosen.clone();
            chosen.insert(visit, bucket);
            chosen
        };
        all = all.iter().flat_map(|chosen| buckets.iter().map(|bucket| with(chosen, *bucket))).collect();
        if all.len() > 4_096 {
            return None;
        }
    }
    Some(all.iter().map(|chosen| under(passage, chosen)).collect())
}

fn selectable(event: &Event) -> Option<&[usize]> {
    match event {
        Event::Group { kind: Some(GroupKind::Select), buckets, .. } if buckets.len() > 1 => Some(buckets),
        _ => None,
    }
}

fn under(passage: &Passage, chosen: &BTreeMap<usize, usize>) -> Vec<String> {
    let fits =
        |choices: &[explain::Choice]| choices.iter().all(|it| chosen.get(&it.visit) == Some(&it.bucket));
    sorted(passage.events.iter().filter_map(|event| match event {
        Event::Output(it) if it.fate == Fate::Sent && fits(&it.choices) => Some(line(it.port, &it.packet)),
        Event::Controller { packet, is_expired: false, choices } if fits(choices) => {
            Some(line(PortNo::CONTROLLER, packet))
        }
        _ => None,
    }))
}

/// A switch with random rules for a random frame.
fn scenario(seed: &mut Seed, is_v10: bool) -> (Twin, Vec<u8>) {
    let bytes = frame(seed);
    let fields = FrameFields::read(&bytes).from_port(PortNo(1));
    let down = if seed.percent(50) { vec![1 + u32::try_from(seed.below(5)).unwrap()] } else { Vec::new() };
    let down: Vec<u32> = down.into_iter().filter(|port| *port != 1).collect();
    let mut twin = Twin::new(7, is_v10, &down);
    let mut groups = Vec::new();
    if !is_v10 {
        twin.add_meter();
        for number in 1..=seed.below(4) {
            let number = u32::try_from(number).unwrap();
            twin.add_group(number, rules::group(seed, &fields, &groups));
            groups = twin.tables.groups.keys().copied().collect();
        }
    }
    for priority in 1..=8 {
        let rule = match is_v10 {
            true => rules::rule_v10(seed, &fields, priority),
            false => rules::rule_v13(seed, &fields, priority, &groups),
        };
        twin.add_rule(rule);
    }
    (twin, bytes)
}

fn check(is_v10: bool) {
    let (mut known, mut with_output, mut with_group) = (0, 0, 0);
    for number in 0..SEEDS {
        let (mut twin, bytes) = scenario(&mut Seed(number), is_v10);
        let packet = Packet::new(FrameFields::read(&bytes)).with_ttl(ttl(&bytes));
        let passage = pass(&twin.tables, &packet, PortNo(1));
        let Some(foretold) = foretold(&passage) else { continue };
        let done = twin.does(PortNo(1), &bytes);
        assert!(
            foretold.contains(&done),
            "seed {number}, 1.0: {is_v10}\nthe switch: {done:#?}\nforetold: {foretold:#?}\n{passage:#?}\n{:#?}",
            twin.tables
        );
        known += 1;
        with_output += u64::from(!done.is_empty());
        with_group += u64::from(passage.events.iter().any(|event| matches!(event, Event::Group { .. })));
    }
    println!("{known} of {SEEDS} known, {with_output} with outputs, {with_group} with groups");
    assert!(known > SEEDS * 3 / 4, "{known} of {SEEDS} known");
    assert!(with_output > SEEDS / 4, "{with_output} of {SEEDS} with outputs");
    assert!(is_v10 || with_group > SEEDS / 20, "{with_group} of {SEEDS} with groups");
}

#[test]
fn a_switch_of_1_0_does_what_the_tracer_foretells() {
    check(true);
}

#[test]
fn a_switch_of_1_3_does_what_the_tracer_foretells() {
    check(false);
}
