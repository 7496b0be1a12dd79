//! Random flow tables and groups of OpenFlow 1.3. Both switches accept them, and the specification defines their
//! effect.
//!
//! Left out is what differs on purpose or what the specification leaves open:
//! * Rules with equal priority: it is open which one wins, so priorities are unique.
//! * A new MPLS label's number and class: ours are 0 (1.3.5, 5.12.1), and Open vSwitch copies them from IP, so the
//!   rules always set them. A new VLAN tag's id and priority: ours come from the enclosed tag (same section), Open
//!   vSwitch's are 0, so the rules always set them.
//! * Values of zero: for Open vSwitch a missing field is zero, for the specification it is missing.
//! * A packet that no rule of a later table matches: ours drops it (1.3.5, 5.4), and Open vSwitch executes the action
//!   set so far. So each later table has a rule for every packet.
//! * A label popped with a type that cannot follow it: Open vSwitch then pops the next label too.
//! * A time-to-live that expires while an action set waits: ours drops the packet, and Open vSwitch executes the set.
//! * New addresses for later fragments: Open vSwitch corrects a checksum that they do not have.
//! * A VLAN id or priority in a waiting action set: if the tag has been removed, nothing must be set, but Open
//!   vSwitch adds a new tag.
//! * A label popped while an action set waits: Open vSwitch 3.1 may end with a failed assertion
//!   (`recirc_alloc_id__`).
//! * Setting the fields of reverse ARP: Open vSwitch accepts such a rule, but its datapath does not change the
//!   packet.
//! * Select groups: each switch makes its own choice.

use super::dice::Dice;
use super::packets::{FLOW_LABELS, IPV4S, IPV6S, LABELS, MACS, PORTS, Style, VIDS};
use flow::text::{actions_to_string, instructions_to_string, match_to_string};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;

/// Ports of the switches; a rule may name one more, which is not there.
pub const PORTS_OF_SWITCH: u32 = 4;

/// The contents of a switch.
#[derive(Debug)]
pub struct RuleSet {
    pub style: Style,
    pub groups: Vec<GroupMod>,
    pub rules: Vec<FlowMod>,
}

impl RuleSet {
    /// A random one, with rules in so many tables.
    pub fn roll(dice: &mut Dice, tables: u8) -> RuleSet {
        let style = Style {
            tags_max: 1 + dice.below(2),
            expiring: dice.chance(25),
            fragments: dice.chance(20),
            popping: dice.chance(30),
        };
        let groups: Vec<GroupMod> = (1..=dice.below(4) as u32).map(|id| group(dice, id)).collect();
        let mut maker = Maker { dice, style, groups: groups.len() as u32, tables };
        let mut rules = Vec::new();
        for table_id in 0..tables {
            for priority in 1..=2 + maker.dice.below(10) as u16 {
                rules.push(maker.rule(table_id, priority));
            }
            if table_id > 0 {
                let mut every_packet = maker.rule(table_id, 0);
                every_packet.matching = Match::any();
                every_packet.instructions = maker.instructions(table_id, Kind::Any, Tag::MissingGrants);
                rules.push(every_packet);
            }
        }
        RuleSet { style, groups, rules }
    }

    /// The lines of `ovs-ofctl bundle` that make the same.
    pub fn for_ovs(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| format!("group add {}", group_text(group)));
        groups.chain(self.rules.iter().map(|rule| format!("flow add {}", rule_text(rule)))).collect()
    }
}

fn rule_text(rule: &FlowMod) -> String {
    let (matching, instructions) =
        (match_to_string(&rule.matching), instructions_to_string(&rule.instructions));
    format!("table={},priority={},{matching},actions={instructions}", rule.table_id, rule.priority)
}

fn group_text(group: &GroupMod) -> String {
    let kind = match group.group_type {
        GROUP_TYPE_ALL => "all",
        GROUP_TYPE_INDIRECT => "indirect",
        _ => "ff",
    };
    let buckets = group.buckets.iter().map(|bucket| {
        let watch = match bucket.watch_port {
            PortNo::ANY => String::new(),
            port => format!("watch_port:{port},"),
        };
        format!(",bucket={watch}actions={}", actions_to_string(&bucket.actions))
    });
    format!("group_id={},type={kind}{}", group.group_id, buckets.collect::<String>())
}

fn group(dice: &mut Dice, group_id: u32) -> GroupMod {
    let group_type = dice.pick(&[GROUP_TYPE_ALL, GROUP_TYPE_INDIRECT, GROUP_TYPE_FAST_FAILOVER]);
    let count = match group_type {
        GROUP_TYPE_ALL => 1 + dice.below(3),
        GROUP_TYPE_FAST_FAILOVER => 2,
        _ => 1,
    };
    let buckets = (0..count).map(|_| {
        let port = PortNo(1 + dice.below(PORTS_OF_SWITCH.into()) as u32);
        let watch_port = if group_type == GROUP_TYPE_FAST_FAILOVER { port } else { PortNo::ANY };
        let mut actions = vec![Action::output(port)];
        if dice.chance(40) {
            actions.push(Action::SetField { field: Field::EthDst, value: dice.pick(&MACS).into() });
        }
        if dice.chance(20) {
            actions.push(Action::SetField { field: Field::EthSrc, value: dice.pick(&MACS).into() });
        }
        Bucket { weight: 0, watch_port, watch_group: GROUP_ANY, actions }
    });
    GroupMod { command: 0, group_type, group_id, buckets: buckets.collect() }
}

/// What kind of packet a rule speaks of, which decides the fields that it may name and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Arp,
    ReverseArp,
    Ipv4(Option<u8>),
    Ipv6(Option<u8>),
    /// A neighbour solicitation (135) or advertisement (136).
    Neighbour(u8),
    /// Whether the label is the last one, if the match says so.
    Mpls(Option<bool>),
}

/// What a rule's match says of the VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    MissingGrants,
    None,
    There,
}

struct Maker<'a> {
    dice: &'a mut Dice,
    style: Style,
    groups: u32,
    tables: u8,
}

impl Maker<'_> {
    fn rule(&mut self, table_id: u8, priority: u16) -> FlowMod {
        let kind = match self.dice.below(12) {
            0..3 => Kind::Any,
            3 => self.dice.pick(&[Kind::Arp, Kind::Arp, Kind::ReverseArp]),
            4..7 => Kind::Ipv4(self.dice.pick(&[None, Some(6), Some(17), Some(1), Some(132)])),
            7..9 => Kind::Ipv6(self.dice.pick(&[None, Some(6), Some(17), Some(58), Some(132)])),
            9 => Kind::Neighbour(self.dice.pick(&[135, 136])),
            _ => Kind::Mpls(self.dice.pick(&[None, Some(true), Some(false)])),
        };
        let tag = self.dice.pick(&[Tag::MissingGrants, Tag::MissingGrants, Tag::None, Tag::There]);
        FlowModFields { table_id, priority, ..FlowModFields::default() }
            .with(self.matching(table_id, kind, tag), self.instructions(table_id, kind, tag))
    }

    fn matching(&mut self, table_id: u8, kind: Kind, tag: Tag) -> Match {
        let mut all = Match::any();
        if self.dice.chance(25) {
            all.set(Field::InPort, u128::from(1 + self.dice.below(PORTS_OF_SWITCH.into())));
        }
        if table_id > 0 && self.dice.chance(25) {
            self.masked(&mut all, Field::Metadata, &[0x1, 0x3, 0x12]);
        }
        let macs = MACS.map(u128::from);
        for field in [Field::EthDst, Field::EthSrc] {
            if self.dice.chance(20) {
                self.masked(&mut all, field, &macs);
            }
        }
        match tag {
            Tag::MissingGrants => {}
            Tag::None => all.set(Field::VlanVid, 0),
            Tag::There => self.tag(&mut all),
        }
        self.of_kind(&mut all, kind);
        all
    }

    fn tag(&mut self, all: &mut Match) {
        if self.dice.chance(50) {
            all.set_masked(Field::VlanVid, 0x1000, 0x1000);
        } else {
            all.set(Field::VlanVid, u128::from(0x1000 | self.dice.pick(&VIDS)));
            if self.dice.chance(30) {
                all.set(Field::VlanPcp, self.dice.below(8).into());
            }
        }
    }

    fn of_kind(&mut self, all: &mut Match, kind: Kind) {
        let (ipv4s, macs) = (IPV4S.map(u128::from), MACS.map(u128::from));
        match kind {
            Kind::Any => {}
            Kind::Arp | Kind::ReverseArp => {
                all.set(Field::EthType, if kind == Kind::Arp { 0x0806 } else { 0x8035 });
                self.perhaps(all, Field::ArpOp, &[1, 2]);
                self.perhaps(all, Field::ArpSpa, &ipv4s);
                self.perhaps(all, Field::ArpTpa, &ipv4s);
                self.perhaps(all, Field::ArpSha, &macs);
                self.perhaps(all, Field::ArpTha, &macs);
            }
            Kind::Ipv4(protocol) => {
                all.set(Field::EthType, 0x0800);
                self.perhaps(all, Field::Ipv4Src, &ipv4s);
                self.perhaps(all, Field::Ipv4Dst, &ipv4s);
                self.of_ip(all, protocol);
            }
            Kind::Ipv6(protocol) => {
                all.set(Field::EthType, 0x86dd);
                self.perhaps(all, Field::Ipv6Src, &IPV6S);
                self.perhaps(all, Field::Ipv6Dst, &IPV6S);
                self.perhaps(all, Field::Ipv6Flabel, &FLOW_LABELS.map(u128::from));
                self.of_ip(all, protocol);
            }
            Kind::Neighbour(message) => {
                all.set(Field::EthType, 0x86dd);
                all.set(Field::IpProto, 58);
                all.set(Field::Icmpv6Type, message.into());
                all.set(Field::Icmpv6Code, 0);
                self.perhaps(all, Field::Ipv6NdTarget, &IPV6S);
                let option = if message == 135 { Field::Ipv6NdSll } else { Field::Ipv6NdTll };
                self.perhaps(all, option, &macs);
            }
            Kind::Mpls(is_last) => {
                all.set(Field::EthType, self.dice.pick(&[0x8847, 0x8847, 0x8848]));
                self.perhaps(all, Field::MplsLabel, &LABELS.map(u128::from));
                self.perhaps(all, Field::MplsTc, &[1, 5, 7]);
                is_last.into_iter().for_each(|is_last| all.set(Field::MplsBos, is_last.into()));
            }
        }
    }

    fn of_ip(&mut self, all: &mut Match, protocol: Option<u8>) {
        self.perhaps(all, Field::IpDscp, &[10, 46]);
        self.perhaps(all, Field::IpEcn, &[1, 3]);
        let Some(protocol) = protocol else { return };
        all.set(Field::IpProto, protocol.into());
        for field in ports_of(protocol) {
            self.perhaps(all, field, &PORTS.map(u128::from));
        }
        match protocol {
            1 => {
                self.perhaps(all, Field::Icmpv4Type, &[3, 8]);
                self.perhaps(all, Field::Icmpv4Code, &[1, 2]);
            }
            58 => self.perhaps(all, Field::Icmpv6Type, &[128, 135, 136]),
            _ => {}
        }
    }

    fn perhaps(&mut self, all: &mut Match, field: Field, values: &[u128]) {
        if self.dice.chance(30) {
            self.masked(all, field, values);
        }
    }

    /// One of the values, with a mask or without, under which it is not zero.
    fn masked(&mut self, all: &mut Match, field: Field, values: &[u128]) {
        let value = self.dice.pick(values);
        let mask = if !field.maskable() || self.dice.chance(50) {
            field.full_mask()
        } else if self.dice.chance(50) {
            field.full_mask() << self.dice.below(field.bits().into()) & field.full_mask()
        } else {
            (u128::from(self.dice.roll()) << 64 | u128::from(self.dice.roll())) & field.full_mask()
        };
        // ovs-ofctl reads an IPv6 mask that begins with a decimal digit as a prefix's length.
        let mask = if field.bits() == 128 { mask | 0xf << 124 } else { mask };
        if value & mask == 0 || mask == field.full_mask() {
            all.set(field, value);
        } else {
            all.set_masked(field, value & mask, mask);
        }
    }

    fn instructions(&mut self, table_id: u8, mut kind: Kind, mut tag: Tag) -> Vec<Instruction> {
        let mut all = Vec::new();
        let mut retagged = false;
        if self.dice.chance(75) {
            let applied = self.applied(table_id, kind, tag);
            retagged = applied.iter().any(retags);
            if retagged {
                // What is written then is checked by Open vSwitch against the packet as it is after that.
                (kind, tag) = (Kind::Any, Tag::MissingGrants);
            }
            all.push(Instruction::ApplyActions(applied));
        }
        if !retagged && self.dice.chance(10) {
            all.push(Instruction::ClearActions);
        }
        // The head of this file says why no set may wait there.
        if !self.style.expiring && !self.style.popping && self.dice.chance(40) {
            all.push(Instruction::WriteActions(self.written(kind, tag)));
        }
        if self.dice.chance(25) && self.tables > 1 {
            all.push(Instruction::WriteMetadata { metadata: self.dice.below(0x20), mask: 0x1f });
        }
        if table_id + 1 < self.tables && self.dice.chance(65) {
            let later = u64::from(self.tables - table_id - 1);
            all.push(Instruction::GotoTable(table_id + 1 + self.dice.below(later) as u8));
        }
        all
    }

    /// Sets, outputs between them, and a tag or label at the end: what comes after one would need another match.
    fn applied(&mut self, table_id: u8, kind: Kind, tag: Tag) -> Vec<Action> {
        let mut all = Vec::new();
        for _ in 0..self.dice.below(4) {
            all.push(self.set(kind, tag));
            if self.dice.chance(15) {
                all.push(self.output());
            }
        }
        if self.dice.chance(25) {
            all.extend(self.time_to_live(kind));
        }
        if self.dice.chance(30) {
            let on_tagged = table_id == 0 && self.style.tags_max == 1;
            self.retag(&mut all, kind, tag, on_tagged);
        }
        if all.is_empty() || self.dice.chance(60) {
            all.push(self.output());
        }
        all
    }

    /// One of a kind, in no order.
    fn written(&mut self, kind: Kind, tag: Tag) -> Vec<Action> {
        let mut all = vec![self.output()];
        let mut kind = kind;
        if self.dice.chance(20) {
            self.retag(&mut all, kind, tag, false);
            // In a set the label comes first, whatever is written first, and what it covers cannot be set any more.
            let hides = |action: &Action| matches!(action, Action::PushMpls(_));
            kind = if all.iter().any(hides) { Kind::Any } else { kind };
        }
        for _ in 0..self.dice.below(3) {
            all.push(self.set(kind, Tag::MissingGrants));
        }
        if self.dice.chance(20) {
            all.extend(self.time_to_live(kind));
        }
        let mut kept: Vec<Action> = Vec::new();
        for action in all {
            let field = |action: &Action| match action {
                Action::SetField { field, .. } => Some(*field),
                _ => None,
            };
            let same = |there: &Action| {
                std::mem::discriminant(there) == std::mem::discriminant(&action)
                    && field(there) == field(&action)
            };
            if !kept.iter().any(same) {
                kept.push(action);
            }
        }
        kept
    }

    fn output(&mut self) -> Action {
        if self.groups > 0 && self.dice.chance(25) {
            return Action::Group(1 + self.dice.below(self.groups.into()) as u32);
        }
        let port = match self.dice.below(20) {
            0 => PortNo::IN_PORT,
            1 => PortNo::FLOOD,
            2 => PortNo::ALL,
            _ => PortNo(1 + self.dice.below(u64::from(PORTS_OF_SWITCH) + 1) as u32),
        };
        Action::output(port)
    }

    fn set(&mut self, kind: Kind, tag: Tag) -> Action {
        let (macs, ipv4s) = (MACS.map(u128::from), IPV4S.map(u128::from));
        let mut choices: Vec<(Field, Vec<u128>)> =
            vec![(Field::EthDst, macs.to_vec()), (Field::EthSrc, macs.to_vec())];
        if tag == Tag::There {
            choices.push((Field::VlanVid, VIDS.map(|vid| u128::from(vid | 0x1000)).to_vec()));
            choices.push((Field::VlanPcp, (0..8).collect()));
        }
        let ports = PORTS.map(u128::from);
        match kind {
            Kind::Any | Kind::ReverseArp => {}
            Kind::Arp => choices.extend([
                (Field::ArpOp, vec![1, 2]),
                (Field::ArpSpa, ipv4s.to_vec()),
                (Field::ArpTpa, ipv4s.to_vec()),
                (Field::ArpSha, macs.to_vec()),
                (Field::ArpTha, macs.to_vec()),
            ]),
            // The head of this file says why not in fragments.
            Kind::Ipv4(_) | Kind::Ipv6(_) | Kind::Neighbour(_) if self.style.fragments => {}
            Kind::Ipv4(_) => {
                choices.extend([(Field::Ipv4Src, ipv4s.to_vec()), (Field::Ipv4Dst, ipv4s.to_vec())]);
            }
            Kind::Ipv6(_) | Kind::Neighbour(_) => choices.extend([
                (Field::Ipv6Src, IPV6S.to_vec()),
                (Field::Ipv6Dst, IPV6S.to_vec()),
                (Field::Ipv6Flabel, FLOW_LABELS.map(u128::from).to_vec()),
            ]),
            Kind::Mpls(_) => choices.extend([
                (Field::MplsLabel, LABELS.map(u128::from).to_vec()),
                (Field::MplsTc, (0..8).collect()),
            ]),
        }
        match kind {
            Kind::Ipv4(protocol) | Kind::Ipv6(protocol) => {
                choices.extend([(Field::IpDscp, vec![0, 10, 46]), (Field::IpEcn, vec![0, 1, 3])]);
                let ports_of = protocol.map(ports_of).unwrap_or_default();
                // A later fragment has no ports to set.
                if !self.style.fragments {
                    choices.extend(ports_of.into_iter().map(|field| (field, ports.to_vec())));
                }
                if protocol == Some(1) && !self.style.fragments {
                    choices.extend([(Field::Icmpv4Type, vec![3, 8]), (Field::Icmpv4Code, vec![1, 2])]);
                }
            }
            Kind::Neighbour(message) => {
                let option = if message == 135 { Field::Ipv6NdSll } else { Field::Ipv6NdTll };
                choices.extend([(Field::Ipv6NdTarget, IPV6S.to_vec()), (option, macs.to_vec())]);
            }
            _ => {}
        }
        let (field, values) = self.dice.pick(&choices);
        Action::SetField { field, value: self.dice.pick(&values) }
    }

    fn time_to_live(&mut self, kind: Kind) -> Option<Action> {
        match kind {
            Kind::Ipv4(_) | Kind::Ipv6(_) | Kind::Neighbour(_) => {
                Some(self.dice.pick(&[Action::DecNwTtl, Action::SetNwTtl(17)]))
            }
            Kind::Mpls(_) => Some(self.dice.pick(&[Action::DecMplsTtl, Action::SetMplsTtl(17)])),
            _ => None,
        }
    }

    /// A tag or label more or less. Neither switch is led to more tags or labels than Open vSwitch looks through.
    fn retag(&mut self, all: &mut Vec<Action>, kind: Kind, tag: Tag, on_tagged: bool) {
        let set = |field, value: u128| Action::SetField { field, value };
        match self.dice.below(4) {
            0 if tag == Tag::There => all.push(Action::PopVlan),
            1 if tag == Tag::None || on_tagged => {
                all.push(Action::PushVlan(self.dice.pick(&[0x8100, 0x88a8])));
                all.push(set(Field::VlanVid, u128::from(0x1000 | self.dice.pick(&VIDS))));
                all.push(set(Field::VlanPcp, self.dice.below(8).into()));
            }
            2 if !matches!(kind, Kind::Mpls(_) | Kind::Any) => {
                all.push(Action::PushMpls(self.dice.pick(&[0x8847, 0x8848])));
                all.push(set(Field::MplsLabel, self.dice.pick(&LABELS).into()));
                all.push(set(Field::MplsTc, self.dice.below(8).into()));
            }
            3 if kind == Kind::Mpls(Some(true)) && self.style.popping => {
                all.push(Action::PopMpls(self.dice.pick(&[0x0800, 0x86dd])));
            }
            3 if kind == Kind::Mpls(Some(false)) && self.style.popping => {
                all.push(Action::PopMpls(self.dice.pick(&[0x8847, 0x8848])));
            }
            _ => {}
        }
    }
}

fn retags(action: &Action) -> bool {
    matches!(action, Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_))
}

fn ports_of(protocol: u8) -> Vec<Field> {
    match protocol {
        6 => vec![Field::TcpSrc, Field::TcpDst],
        17 => vec![Field::UdpSrc, Field::UdpDst],
        132 => vec![Field::SctpSrc, Field::SctpDst],
        _ => vec![],
    }
}
