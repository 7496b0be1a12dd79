//! Compares the state of a switch before and after a command with what apps may do.
//!
//! In: the switch's own reports about its rules, groups and meters, and the frames that left it. Out: the first
//! forbidden effect. It knows grants only as facts, and compares packets one by one.

use super::grants::{Facts, Reach};
use super::peer::{Bench, PORTS, ask};
use super::steps::packets;
use abi::ZoneId;
use flow::frame::FrameFields;
use flow::text::{instructions_to_string, match_to_string};
use flow::{Action, Instruction, Match, PortNo};
use kernel::Eviction;
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::collections::{BTreeMap, BTreeSet};

/// A forbidden effect: a short name that identifies its kind, and a description.
#[derive(Clone, Debug)]
pub struct Difference {
    pub kind: &'static str,
    pub words: String,
}

pub type Verdict<T = ()> = Result<T, Difference>;

impl From<String> for Difference {
    /// An error of the test bench, not a verdict.
    fn from(words: String) -> Self {
        Difference { kind: "the bench broke", words }
    }
}

fn found(kind: &'static str, words: impl Into<String>) -> Verdict {
    Err(Difference { kind, words: words.into() })
}

/// The identity of a rule at its switch.
type Name = (u8, u16, String);

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    matching: Match,
    cookie: u64,
    instructions: Vec<Instruction>,
    packets: u64,
}

impl Rule {
    fn owner(&self) -> ZoneId {
        ZoneId::owner_of(self.cookie)
    }

    fn is_as(&self, other: &Rule) -> bool {
        (self.cookie, &self.instructions) == (other.cookie, &other.instructions)
    }

    /// Whether the switch deletes it together with a group or a meter.
    fn leans_on_another(&self) -> bool {
        self.instructions.iter().any(|instruction| match instruction {
            Instruction::Meter(_) => true,
            Instruction::ApplyActions(all) | Instruction::WriteActions(all) => {
                all.iter().any(|action| matches!(action, Action::Group(_)))
            }
            _ => false,
        })
    }
}

/// The rules, groups and meters of a switch.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    rules: BTreeMap<Name, Rule>,
    groups: BTreeMap<u32, String>,
    meters: BTreeMap<u32, String>,
}

impl Snapshot {
    pub fn take(bench: &mut dyn Bench, version: Version) -> Verdict<Snapshot> {
        let all = FlowStatsRequest::default();
        // OFPM_ALL.
        let wanted = [RequestBody::Flow(all), RequestBody::GroupDesc, RequestBody::MeterConfig(u32::MAX)];
        let mut bytes = Vec::new();
        // 1.0 has only rules.
        let count = if version == Version::V1_0 { 1 } else { wanted.len() };
        for body in wanted.into_iter().take(count) {
            let body = Body::MultipartRequest(MultipartRequest { flags: 0, body });
            let message = Message { version, xid: 9, body };
            message.encode(&mut bytes).map_err(|bad| bad.to_string())?;
        }
        let mut snapshot = Snapshot::default();
        for message in ask(bench.onlooker(), &bytes)? {
            if let Body::MultipartReply(MultipartReply { body, .. }) = message.body {
                snapshot.put(body);
            }
        }
        Ok(snapshot)
    }

    fn put(&mut self, body: ReplyBody) {
        match body {
            ReplyBody::Flow(flows) => self.rules.extend(flows.into_iter().map(|flow| {
                let FlowStats { table_id, priority, matching, cookie, instructions, packet_count, .. } = flow;
                let matching = matching.sorted();
                let name = (table_id, priority, format!("{matching:?}"));
                (name, Rule { matching, cookie, instructions, packets: packet_count })
            })),
            ReplyBody::GroupDesc(groups) => {
                let named = |group: GroupDesc| {
                    (group.group_id, format!("{:?} {:?}", group.group_type, group.buckets))
                };
                self.groups.extend(groups.into_iter().map(named));
            }
            ReplyBody::MeterConfig(meters) => {
                self.meters.extend(meters.into_iter().map(|meter| (meter.meter_id, format!("{meter:?}"))));
            }
            _ => {}
        }
    }

    /// The owners of rules that have counted packets since then.
    pub fn hit_since(&self, before: &Snapshot) -> BTreeSet<u16> {
        let counted = |(name, rule): &(&Name, &Rule)| {
            before.rules.get(*name).is_some_and(|it| it.packets < rule.packets)
        };
        self.rules.iter().filter(counted).map(|(_, rule)| rule.owner().0).collect()
    }
}

/// The grants, and the owners of groups and meters.
pub struct Judge {
    pub openflow: Version,
    facts: Vec<Facts>,
    groups: BTreeMap<u32, u16>,
    meters: BTreeMap<u32, u16>,
    /// Whether an app of this world may change others' rules: then the sender of a frame is unknown.
    pub is_mixed: bool,
}

impl Judge {
    /// The facts are by zone, starting with the first.
    pub fn new(openflow: Version, facts: Vec<Facts>) -> Judge {
        let is_mixed = facts.iter().any(|it| it.others);
        Judge { openflow, facts, groups: BTreeMap::new(), meters: BTreeMap::new(), is_mixed }
    }

    /// The number of the app that owns a group of the switch.
    pub fn owner_of_group(&self, number: u32) -> Option<u16> {
        self.groups.get(&number).copied()
    }

    /// The number of the app that owns a meter of the switch.
    pub fn owner_of_meter(&self, number: u32) -> Option<u16> {
        self.meters.get(&number).copied()
    }

    fn facts(&self, zone: u16) -> Option<&Facts> {
        self.facts.get(usize::from(zone).checked_sub(1)?)
    }

    pub fn app(&self, zone: ZoneId) -> Verdict<&Facts> {
        self.facts(zone.0).ok_or_else(|| Difference::from(format!("there is no app {}", zone.0)))
    }

    /// Judges a command of this app; `passed`: whether the kernel accepted it.
    pub fn on_command(
        &mut self,
        zone: ZoneId,
        passed: bool,
        before: &Snapshot,
        after: &Snapshot,
        evicted: &[Eviction],
    ) -> Verdict {
        let others = self.app(zone)?.others && passed;
        for (name, rule) in &before.rules {
            let now = after.rules.get(name);
            if now.is_some_and(|now| now.is_as(rule)) {
                continue;
            }
            let owner = rule.owner();
            // Deleting another app's group deletes the rules that use it. An app may take back a rule that a modify of
            // 1.0 has taken over.
            let reaches = self.facts(owner.0).is_some_and(|it| it.others);
            let leans = reaches && (rule.leans_on_another() || self.openflow == Version::V1_0);
            // The rule was evicted for a rule of the sender, or for an app that would have received no packet.
            let gave_way = evicted.iter().any(|it| {
                let is_it = (it.table_id, it.priority, it.owner) == (name.0, name.1, owner);
                is_it && (it.takes_all || it.for_zone == zone) && it.for_zone.0 < owner.0
            });
            let is_over = now.is_none_or(|now| now.owner() == ZoneId::KERNEL && is_kernels(name));
            let may = passed && (owner == zone || others || leans || gave_way && is_over);
            if !may {
                let became =
                    now.map_or("it is gone".to_owned(), |now| format!("now it is {}", words(name, now)));
                return found("a rule of another changed", format!("{}: {became}", words(name, rule)));
            }
        }
        for (name, rule) in &after.rules {
            match before.rules.get(name) {
                Some(old) if old.is_as(rule) => {}
                Some(old) => self.changed(zone, old, rule, name)?,
                None => self.added(zone, passed, name, rule)?,
            }
        }
        self.of_kind("group", others, zone, passed, &before.groups, &after.groups)?;
        self.of_kind("meter", others, zone, passed, &before.meters, &after.meters)
    }

    /// If rules of two apps match a packet, the earlier app's must win. The order is that of the apps' numbers.
    pub fn on_order(&self, after: &Snapshot) -> Verdict {
        if self.is_mixed {
            return Ok(());
        }
        let of_apps: Vec<(&Name, &Rule)> =
            after.rules.iter().filter(|(_, rule)| self.facts(rule.owner().0).is_some()).collect();
        for packet in packets() {
            for port in 1..=PORTS {
                let fields = FrameFields::read(&packet).from_port(PortNo(port));
                let for_it = of_apps.iter().filter(|(_, rule)| rule.matching.matches(&fields));
                self.on_order_of(&for_it.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    fn on_order_of(&self, rules: &[&(&Name, &Rule)]) -> Verdict {
        for (name, rule) in rules {
            let shadows = |(other, it): &&&(&Name, &Rule)| {
                other.0 == name.0 && other.1 > name.1 && it.owner().0 > rule.owner().0
            };
            if let Some((other, it)) = rules.iter().find(shadows) {
                let both = format!("{} by {}", words(name, rule), words(other, it));
                return found("a rule of an app before is shadowed", both);
            }
        }
        Ok(())
    }

    /// No rule of a later app takes all packets that an app receives, in any table that all packets reach. In these
    /// worlds, an app receives all packets or none.
    pub fn on_receivers(&self, after: &Snapshot) -> Verdict {
        if self.is_mixed {
            return Ok(());
        }
        let for_all = after
            .rules
            .iter()
            .filter(|(_, rule)| self.facts(rule.owner().0).is_some() && rule.matching.is_any());
        // A rule passes packets only to a later table, and the rules are in the order of their tables.
        let mut reached = BTreeSet::from([0]);
        for (name, rule) in for_all {
            if !reached.contains(&name.0) {
                continue;
            }
            let passed_on_to = passed_on_to(&rule.instructions);
            reached.extend(passed_on_to);
            let mut earlier = self.facts.iter().take(usize::from(rule.owner().0).saturating_sub(1));
            let is_taken = |facts: &&Facts| {
                let lowest = facts.rules.as_ref().map_or(0, |reach| reach.priorities.0);
                facts.packet_in && (passed_on_to.is_none() || lowest <= name.1)
            };
            if let Some(facts) = earlier.find(is_taken) {
                let both = format!("{}; the app: {}", words(name, rule), facts.words());
                return found("an app before receives no packet", both);
            }
        }
        Ok(())
    }

    fn changed(&self, zone: ZoneId, old: &Rule, rule: &Rule, name: &Name) -> Verdict {
        // An app that changes the rules of others may leave their owner unchanged.
        let is_kernels = rule.owner() == ZoneId::KERNEL && is_kernels(name);
        if rule.owner() != zone && rule.owner() != old.owner() && !is_kernels {
            return found("a rule says another owner", format!("app {}: {}", zone.0, words(name, rule)));
        }
        Ok(())
    }

    fn added(&self, zone: ZoneId, passed: bool, name: &Name, rule: &Rule) -> Verdict {
        if rule.owner() == ZoneId::KERNEL && is_kernels(name) {
            return Ok(());
        }
        if rule.owner() != zone {
            return found("a rule says another owner", format!("app {}: {}", zone.0, words(name, rule)));
        }
        let Some(reach) = self.app(zone)?.rules.as_ref().filter(|reach| passed && !reach.elsewhere) else {
            return found("a rule without rule.write", words(name, rule));
        };
        let (table_id, priority) = (name.0, name.1);
        if reach.tables.as_ref().is_some_and(|tables| !tables.contains(&table_id)) {
            return found("a rule in another table", words(name, rule));
        }
        if !(reach.priorities.0..=reach.priorities.1).contains(&priority) {
            return found("a rule with another priority", words(name, rule));
        }
        for packet in packets() {
            for port in 1..=PORTS {
                let fields = FrameFields::read(&packet).from_port(PortNo(port));
                if rule.matching.matches(&fields) && !reach.has_packet(&fields) {
                    return found("a rule of other packets", words(name, rule));
                }
            }
        }
        Ok(())
    }

    fn of_kind(
        &mut self,
        kind: &'static str,
        others: bool,
        zone: ZoneId,
        passed: bool,
        before: &BTreeMap<u32, String>,
        after: &BTreeMap<u32, String>,
    ) -> Verdict {
        let may_write = passed && self.app(zone)?.rules.as_ref().is_some_and(|reach| !reach.elsewhere);
        let owners = if kind == "group" { &mut self.groups } else { &mut self.meters };
        for (id, was) in before {
            let is = after.get(id);
            if is == Some(was) {
                continue;
            }
            let owner = owners.get(id).copied();
            if !(may_write && (others || owner == Some(zone.0))) {
                let words = format!("{kind} {id} of app {owner:?} was {was} and is {is:?}");
                return found("a group or meter of another changed", words);
            }
            if is.is_none() {
                owners.remove(id);
            }
        }
        for id in after.keys().filter(|id| !before.contains_key(id)) {
            if !may_write {
                return found("a group or meter without rule.write", format!("{kind} {id}"));
            }
            owners.insert(*id, zone.0);
        }
        Ok(())
    }

    /// Judges the frames that this app's rules or packet-outs sent.
    pub fn on_frames(&self, zone: u16, reach: &Reach, in_port: PortNo, frames: &[(u32, Vec<u8>)]) -> Verdict {
        for (port, frame) in frames {
            let fields = FrameFields::read(frame).from_port(in_port);
            let words = || {
                let seen = match_to_string(&fields.to_match());
                format!("app {zone}: by port {port}, {seen}; allowed: {}", reach.words)
            };
            if !reach.has_port(*port, in_port.0) {
                return found("a frame by another port", words());
            }
            if !reach.has_packet(&fields) {
                return found("a frame of other packets", words());
            }
        }
        Ok(())
    }

    /// Judges an incoming packet that these apps' rules counted.
    pub fn on_packet(
        &self,
        hit: &BTreeSet<u16>,
        port: u32,
        packet: &[u8],
        frames: &[(u32, Vec<u8>)],
        packet_ins: u32,
    ) -> Verdict {
        let apps: Vec<u16> = hit.iter().copied().filter(|zone| *zone != ZoneId::KERNEL.0).collect();
        let [zone] = apps[..] else { return Ok(()) };
        let Some(facts) = self.facts(zone).filter(|_| !self.is_mixed) else { return Ok(()) };
        let Some(reach) = &facts.rules else {
            return found("a rule without rule.write", format!("app {zone}"));
        };
        let fields = FrameFields::read(packet).from_port(PortNo(port));
        if !reach.has_packet(&fields) {
            return found(
                "a rule of other packets",
                format!("app {zone}: {}", match_to_string(&fields.to_match())),
            );
        }
        self.on_frames(zone, reach, PortNo(port), frames)?;
        if packet_ins > 0 && !facts.packet_in && !hit.contains(&ZoneId::KERNEL.0) {
            return found("a packet-in without packet.in", format!("app {zone}"));
        }
        Ok(())
    }
}

/// The table-miss rule of table 0, or of a table to which apps pass packets on.
fn is_kernels(name: &Name) -> bool {
    name.1 == 0 && name.2 == format!("{:?}", Match::any())
}

/// The table to which a rule passes packets on, if they go on as they came.
fn passed_on_to(instructions: &[Instruction]) -> Option<u8> {
    let (mut to, mut own_tags) = (None, 0);
    for instruction in instructions {
        match instruction {
            Instruction::GotoTable(table) => to = Some(*table),
            Instruction::WriteActions(_) | Instruction::ClearActions => {}
            Instruction::ApplyActions(actions) => {
                for action in actions {
                    match action {
                        Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => {}
                        Action::PushVlan(_) => own_tags += 1,
                        Action::PopVlan if own_tags > 0 => own_tags -= 1,
                        Action::SetField { field: flow::Field::VlanVid, .. } if own_tags > 0 => {}
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
    }
    to.filter(|_| own_tags == 0)
}

fn words(name: &Name, rule: &Rule) -> String {
    format!(
        "the rule of app {} in table {}, priority {}, {} actions={}, cookie {:#x}",
        rule.owner().0,
        name.0,
        name.1,
        match_to_string(&rule.matching),
        instructions_to_string(&rule.instructions),
        rule.cookie
    )
}
