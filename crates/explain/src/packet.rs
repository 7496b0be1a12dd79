//! A packet as its header fields, and what actions do to them.
//!
//! ```text
//!   fields, tags below the outer one, labels below the outer one, times-to-live ──action──> the same, or why it is not known
//! ```
//!
//! In: a packet and an action. Out: the packet after it. It holds no bytes: if an action reveals bytes that no field showed before, the
//! result is unknown, and it says so. An action on a header that is missing changes nothing, as in a switch.

use flow::frame::FrameFields;
use flow::{Action, Field, Match, PortNo};

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// The time-to-live of a packet whose text names none, and of a label that is pushed on a packet without one (RFC 1700).
const TTL_DEFAULT: u8 = 64;

/// The most VLAN tags, and the most MPLS labels, below the outer one. With more, the packet is no longer followed.
const INNER_HEADERS_MAX: usize = 64;

/// The fields that belong to the frame and not to what it carries.
const OF_FRAME: [Field; 4] = [Field::EthDst, Field::EthSrc, Field::VlanVid, Field::VlanPcp];

/// The types of ICMPv6 messages with fields of their own: neighbour solicitation and advertisement (RFC 4861).
const NEIGHBOUR_TYPES: [u128; 2] = [135, 136];

/// A label of an MPLS stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label {
    value: u128,
    class: u128,
    is_bottom: u128,
    ttl: u8,
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    visible: FrameFields,
    /// Tags below the outer one: id and priority, the innermost first.
    tags: Vec<(u128, u128)>,
    /// Labels below the outer one, the innermost first.
    labels: Vec<Label>,
    label_ttl: u8,
    ip_ttl: u8,
    /// What is below pushed labels. `None`: no label was pushed.
    carried: Option<Box<FrameFields>>,
}

/// What an action does to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes it.
    Changed,
    /// It changes nothing: the packet lacks the header, or has the value already.
    Unchanged,
    /// Its time-to-live ends: the switch may send it to the controller, and forwards it no further (OFPR_INVALID_TTL).
    Expired,
    /// The result is not known, because of this.
    Unknown(String),
}

impl Packet {
    /// A packet with the fields of a frame.
    pub fn new(fields: FrameFields) -> Packet {
        let mut visible = fields;
        visible.remove(Field::InPort);
        Packet {
            visible,
            tags: Vec::new(),
            labels: Vec::new(),
            label_ttl: TTL_DEFAULT,
            ip_ttl: TTL_DEFAULT,
            carried: None,
        }
    }

    /// The same with another time-to-live in its IP header.
    pub fn with_ttl(mut self, ttl: u8) -> Packet {
        self.ip_ttl = ttl;
        self
    }

    /// Sets a field that it has, and that is zero.
    pub fn set_if_zero(&mut self, field: Field, value: u128) {
        if self.visible.get(field) == Some(0) {
            self.visible.set(field, value);
        }
    }

    /// The same with the Ethernet addresses and the tag of another packet.
    pub fn with_frame_of(mut self, other: &Packet) -> Packet {
        for field in OF_FRAME {
            match other.visible.get(field) {
                Some(value) => self.visible.set(field, value),
                None => self.visible.remove(field),
            }
        }
        self.ip_ttl = other.ip_ttl;
        self
    }

    /// Its fields as a table sees them that a packet reaches from this port with this metadata.
    pub fn fields(&self, in_port: PortNo, metadata: u64) -> FrameFields {
        let mut fields = self.visible.from_port(in_port);
        fields.set(Field::Metadata, metadata);
        fields
    }

    /// Its fields as a match, without those that are no part of the frame.
    pub fn to_match(&self) -> Match {
        let mut rule = Match::any();
        let of_frame = |field: &Field| !matches!(field, Field::Metadata | Field::TunnelId);
        self.visible
            .iter()
            .filter(|(field, _)| of_frame(field))
            .for_each(|(field, value)| rule.set(field, value));
        rule
    }

    /// The value of a field.
    pub fn get(&self, field: Field) -> Option<u128> {
        self.visible.get(field)
    }

    /// The time-to-live of its IP header.
    pub fn ttl(&self) -> u8 {
        self.ip_ttl
    }

    /// Whether both are the same but for times-to-live: a packet that comes back so is in a loop.
    pub fn is_same_but_older(&self, other: &Packet) -> bool {
        let plain = |label: &Label| (label.value, label.class, label.is_bottom);
        self.visible == other.visible
            && self.tags == other.tags
            && self.carried == other.carried
            && self.labels.iter().map(plain).eq(other.labels.iter().map(plain))
    }

    /// What it is after it has left a switch: metadata and tunnel stay behind.
    pub fn on_the_wire(mut self) -> Packet {
        self.visible.set(Field::Metadata, 0u8);
        self.visible.set(Field::TunnelId, 0u8);
        self
    }

    /// Carries out an action that changes the packet. Outputs, groups and queues are no such actions.
    pub fn apply(&mut self, action: &Action) -> Effect {
        match action {
            Action::SetField { field, value } => self.set_field(*field, *value),
            Action::SetEthSrc(address) => self.set(Field::EthSrc, address.to_u64().into()),
            Action::SetEthDst(address) => self.set(Field::EthDst, address.to_u64().into()),
            Action::SetIpv4Src(address) => self.set(Field::Ipv4Src, u32::from(*address).into()),
            Action::SetIpv4Dst(address) => self.set(Field::Ipv4Dst, u32::from(*address).into()),
            Action::SetIpTos(tos) => self.set(Field::IpDscp, u128::from(tos >> 2)),
            Action::SetTransportSrc(port) => {
                self.set_port([Field::TcpSrc, Field::UdpSrc, Field::SctpSrc], *port)
            }
            Action::SetTransportDst(port) => {
                self.set_port([Field::TcpDst, Field::UdpDst, Field::SctpDst], *port)
            }
            Action::SetVlanVid(vid) => {
                self.tag_if_untagged();
                self.set_vlan(Field::VlanVid, u128::from(vid & 0x0fff) | VLAN_PRESENT)
            }
            Action::SetVlanPcp(pcp) => {
                self.tag_if_untagged();
                self.set_vlan(Field::VlanPcp, u128::from(pcp & 7))
            }
            Action::PushVlan(_) => self.push_vlan(),
            Action::PopVlan | Action::StripVlan => self.pop_vlan(),
            Action::PushMpls(kind) => self.push_mpls(*kind),
            Action::PopMpls(kind) => self.pop_mpls(*kind),
            Action::SetMplsTtl(_)
            | Action::DecMplsTtl
            | Action::SetNwTtl(_)
            | Action::DecNwTtl
            | Action::CopyTtlOut
            | Action::CopyTtlIn => self.change_ttl(action),
            Action::PushPbb(_) | Action::PopPbb => {
                unknown("the headers of provider backbone bridges are not followed")
            }
            Action::SetUnknownField { .. } => unknown("it sets a field that OpenFlow does not define"),
            Action::Experimenter { experimenter, .. } => {
                Effect::Unknown(format!("an action of the experimenter {experimenter:#010x} is not followed"))
            }
            Action::Output { .. } | Action::SetQueue(_) | Action::Group(_) | Action::Enqueue { .. } => {
                Effect::Unchanged
            }
        }
    }

    fn set_field(&mut self, field: Field, value: u128) -> Effect {
        let there = self.visible.get(field);
        match field {
            Field::VlanVid => self.set_vlan(field, value & 0x0fff | VLAN_PRESENT),
            Field::VlanPcp => self.set_vlan(field, value),
            Field::Metadata | Field::TunnelId => {
                self.visible.set(field, value);
                Effect::Changed
            }
            Field::InPort | Field::InPhyPort => unknown("it changes the port by which the packet came"),
            _ if there.is_none() || there == Some(value) => Effect::Unchanged,
            Field::EthType | Field::IpProto | Field::MplsBos | Field::Ipv6Exthdr => {
                Effect::Unknown(format!("after a change of {} the bytes mean something else", field.name()))
            }
            Field::Icmpv6Type | Field::Icmpv6Code if self.is_about_neighbours(field, value) => {
                unknown("a neighbour message becomes another message, or the other way")
            }
            _ => self.set(field, value),
        }
    }

    /// Whether a message has fields of its own, before or after this change.
    fn is_about_neighbours(&self, field: Field, value: u128) -> bool {
        let kind = self.visible.get(Field::Icmpv6Type);
        let after = if field == Field::Icmpv6Type { Some(value) } else { kind };
        [kind, after].into_iter().flatten().any(|kind| NEIGHBOUR_TYPES.contains(&kind))
    }

    /// Sets a field that the packet has.
    fn set(&mut self, field: Field, value: u128) -> Effect {
        match self.visible.get(field) {
            Some(there) if there != value => {
                self.visible.set(field, value);
                Effect::Changed
            }
            _ => Effect::Unchanged,
        }
    }

    /// Sets the port field that the packet has.
    fn set_port(&mut self, fields: [Field; 3], port: u16) -> Effect {
        match fields.into_iter().find(|field| self.visible.has(*field)) {
            Some(field) => self.set(field, port.into()),
            None => Effect::Unchanged,
        }
    }

    fn is_tagged(&self) -> bool {
        self.visible.get(Field::VlanVid).is_some_and(|vid| vid & VLAN_PRESENT != 0)
    }

    fn set_vlan(&mut self, field: Field, value: u128) -> Effect {
        if self.is_tagged() { self.set(field, value) } else { Effect::Unchanged }
    }

    fn tag_if_untagged(&mut self) {
        if !self.is_tagged() {
            self.push_vlan();
        }
    }

    /// The new tag copies the one that it encloses (1.3.5, 5.12.1).
    fn push_vlan(&mut self) -> Effect {
        let (mut vid, mut priority) = (VLAN_PRESENT, 0);
        if self.is_tagged() {
            if self.tags.len() >= INNER_HEADERS_MAX {
                return unknown("it has too many VLAN tags to be followed");
            }
            vid = self.visible.get(Field::VlanVid).unwrap_or(VLAN_PRESENT);
            priority = self.visible.get(Field::VlanPcp).unwrap_or_default();
            self.tags.push((vid, priority));
        }
        self.visible.set(Field::VlanVid, vid);
        self.visible.set(Field::VlanPcp, priority);
        Effect::Changed
    }

    fn pop_vlan(&mut self) -> Effect {
        if !self.is_tagged() {
            return Effect::Unchanged;
        }
        match self.tags.pop() {
            Some((vid, priority)) => {
                self.visible.set(Field::VlanVid, vid);
                self.visible.set(Field::VlanPcp, priority);
            }
            None => {
                self.visible.set(Field::VlanVid, 0u8);
                self.visible.remove(Field::VlanPcp);
            }
        }
        Effect::Changed
    }

    fn is_ip(&self) -> bool {
        self.visible.has(Field::Ipv4Src) || self.visible.has(Field::Ipv6Src)
    }

    /// The outer label.
    fn label(&self) -> Option<Label> {
        Some(Label {
            value: self.visible.get(Field::MplsLabel)?,
            class: self.visible.get(Field::MplsTc)?,
            is_bottom: self.visible.get(Field::MplsBos)?,
            ttl: self.label_ttl,
        })
    }

    /// Keeps only the fields of the frame, with another EtherType.
    fn uncover(&mut self, kind: u16) {
        let mut frame = FrameFields::read(&[]);
        for field in OF_FRAME.into_iter().chain([Field::Metadata, Field::TunnelId]) {
            if let Some(value) = self.visible.get(field) {
                frame.set(field, value);
            }
        }
        frame.set(Field::EthType, kind);
        self.visible = frame;
    }

    fn show_label(&mut self, kind: u16, label: Label) {
        self.uncover(kind);
        self.visible.set(Field::MplsLabel, label.value);
        self.visible.set(Field::MplsTc, label.class);
        self.visible.set(Field::MplsBos, label.is_bottom);
        self.label_ttl = label.ttl;
    }

    /// The new label copies the one above which it is, or the time-to-live of the IP header (1.3.5, 5.12.1).
    fn push_mpls(&mut self, kind: u16) -> Effect {
        let new = match self.label() {
            Some(_) if self.labels.len() >= INNER_HEADERS_MAX => {
                return unknown("it has too many MPLS labels to be followed");
            }
            Some(outer) => {
                self.labels.push(outer);
                Label { is_bottom: 0, ..outer }
            }
            None => {
                self.carried = Some(Box::new(self.visible));
                let ttl = if self.is_ip() { self.ip_ttl } else { TTL_DEFAULT };
                Label { value: 0, class: 0, is_bottom: 1, ttl }
            }
        };
        self.show_label(kind, new);
        Effect::Changed
    }

    fn pop_mpls(&mut self, kind: u16) -> Effect {
        let Some(outer) = self.label() else { return Effect::Unchanged };
        let is_mpls = matches!(kind, 0x8847 | 0x8848);
        match (self.labels.pop(), self.carried.take()) {
            (Some(inner), carried) if is_mpls => {
                self.carried = carried;
                self.show_label(kind, inner);
                Effect::Changed
            }
            (None, Some(carried))
                if outer.is_bottom == 1 && carried.get(Field::EthType) == Some(kind.into()) =>
            {
                self.uncover(kind);
                let below = carried.iter().filter(|(field, _)| {
                    !OF_FRAME.contains(field) && !matches!(field, Field::Metadata | Field::TunnelId)
                });
                below.for_each(|(field, value)| self.visible.set(field, value));
                Effect::Changed
            }
            _ => unknown("the bytes below a popped label are not known"),
        }
    }

    fn change_ttl(&mut self, action: &Action) -> Effect {
        let ttl = match (action, self.visible.has(Field::MplsLabel)) {
            (Action::SetMplsTtl(_) | Action::DecMplsTtl, true) => &mut self.label_ttl,
            (Action::SetNwTtl(_) | Action::DecNwTtl, _) if self.is_ip() => &mut self.ip_ttl,
            (Action::CopyTtlOut | Action::CopyTtlIn, true) => return self.copy_ttl(action),
            _ => return Effect::Unchanged,
        };
        match action {
            Action::SetMplsTtl(new) | Action::SetNwTtl(new) => *ttl = *new,
            _ if *ttl <= 1 => return Effect::Expired,
            _ => *ttl -= 1,
        }
        Effect::Changed
    }

    fn copy_ttl(&mut self, action: &Action) -> Effect {
        let carries_ip =
            self.carried.as_ref().is_some_and(|it| it.has(Field::Ipv4Src) || it.has(Field::Ipv6Src));
        let inner = match self.labels.last_mut() {
            Some(label) => &mut label.ttl,
            None if carries_ip => &mut self.ip_ttl,
            None => return Effect::Unchanged,
        };
        match action {
            Action::CopyTtlIn => *inner = self.label_ttl,
            _ => self.label_ttl = *inner,
        }
        Effect::Changed
    }
}

fn unknown(why: &str) -> Effect {
    Effect::Unknown(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_packet;
    use flow::text::{match_to_string, parse_actions};

    /// The packet after the actions, or what became of the first one that did not change it.
    fn check(packet: &str, actions: &str, expected: Result<&str, &str>) {
        let mut packet = read_packet(packet).unwrap();
        let mut stopped = None;
        for action in parse_actions(actions).unwrap() {
            match packet.apply(&action) {
                Effect::Unknown(why) => stopped = Some(why),
                Effect::Expired => stopped = Some("expired".to_owned()),
                Effect::Changed | Effect::Unchanged => {}
            }
        }
        match (stopped, expected) {
            (None, Ok(expected)) => {
                let mut after = packet.to_match();
                [Field::EthSrc, Field::EthDst, Field::IpDscp, Field::IpEcn].iter().for_each(|it| {
                    after.remove(*it);
                });
                assert_eq!(match_to_string(&after), expected, "{actions}");
            }
            (Some(why), Err(part)) => assert!(why.contains(part), "{actions}: {why}"),
            (stopped, _) => panic!("{actions}: {stopped:?}"),
        }
    }

    const WEB: &str = "ip_src=10.0.0.1,ip_dst=10.0.0.2,tcp_dst=80";

    #[test]
    fn what_is_not_followed_is_unknown() {
        check(WEB, "resubmit(,7)", Err("experimenter 0x00002320"));
        check(WEB, "set_field:17->ip_proto", Err("ip_proto"));
        check("mpls,mpls_label=5", "pop_mpls:0x0800", Err("below a popped label"));
        check(WEB, "push_mpls:0x8847,pop_mpls:0x0806", Err("below a popped label"));
        check("icmp6,icmpv6_type=135", "set_field:136->icmpv6_type", Err("neighbour"));
    }

    #[test]
    fn a_header_that_is_missing_is_not_changed() {
        check(
            "dl_type=0x1234",
            "set_field:10.0.0.9->ip_dst,dec_ttl",
            Ok("vlan_tci=0x0000/0x1fff,dl_type=0x1234"),
        );
        check(
            "dl_type=0x1234",
            "set_field:4101->vlan_vid,pop_vlan",
            Ok("vlan_tci=0x0000/0x1fff,dl_type=0x1234"),
        );
    }

    #[test]
    fn tags_and_labels_come_off_in_the_order_in_which_they_went_on() {
        let plain = "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=0,tp_dst=80";
        check(WEB, "push_mpls:0x8847,push_mpls:0x8847,pop_mpls:0x8847,pop_mpls:0x0800", Ok(plain));
        check(WEB, "push_vlan:0x8100,set_field:4101->vlan_vid,push_vlan:0x8100,pop_vlan,pop_vlan", Ok(plain));
    }

    #[test]
    fn a_time_to_live_ends() {
        check(WEB, "mod_nw_ttl:2,dec_ttl,dec_ttl", Err("expired"));
        check(WEB, "push_mpls:0x8847,set_mpls_ttl(1),dec_mpls_ttl", Err("expired"));
    }
}
