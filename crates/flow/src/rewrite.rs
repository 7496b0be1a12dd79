//! The packets of a match after a list of actions.
//!
//! ```text
//!   Match of the packets before, actions ──> Match of the packets after ──> "does it stay within the flowspace?"
//! ```
//!
//! The result is safe: if a field's new value is unknown, the result has no entry for it. The effect of an experimenter
//! action is unknown, unless it is one of the Nicira actions listed here.

use crate::action::Action;
use crate::canonical::prerequisites;
use crate::field::Field;
use crate::matching::{Match, MatchEntry};
use crate::relation::implies;

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// Class and field of Nicira's first register, NXM_NX_REG0, without the four bits that number sixteen of them.
const NICIRA_REGISTERS: u32 = 0x0001 << 7;

/// Nicira's number.
const NICIRA: u32 = 0x0000_2320;

/// A match of all packets that the actions make of the packets of `rule`.
///
/// Outputs in between are ignored: the result is for the packet after the last action. A set-field counts only if all
/// packets of the rule have the field. If some lack it, the field is unknown afterwards.
///
/// ```
/// use flow::{rewrite::rewritten, text::{match_to_string, parse_actions, parse_match}};
/// let rule = parse_match("tcp,nw_src=10.0.0.1,tp_dst=80").unwrap();
/// let after = rewritten(&rule, &parse_actions("set_field:10.0.0.9->ip_src,push_vlan:0x8100").unwrap());
/// assert_eq!(match_to_string(&after), "tcp,vlan_tci=0x1000/0x1000,nw_src=10.0.0.9,tp_dst=80");
/// ```
pub fn rewritten(rule: &Match, actions: &[Action]) -> Match {
    let mut after = rule.clone();
    for action in actions {
        rewrite(&mut after, action);
    }
    after
}

/// The same for one action, in place: `after` is the match before the action, and becomes the match after it. Allocates
/// only for fields of other classes.
pub fn rewrite(after: &mut Match, action: &Action) {
    match action {
        Action::SetField { field, value } => set(after, *field, *value),
        Action::SetUnknownField { header, body } => {
            // Nicira has its own names for OpenFlow's fields, also for in_port. Only its registers are no field of
            // OpenFlow.
            if *header >> 9 & !0xf != NICIRA_REGISTERS {
                after.clear();
            }
            // The same field may have been there with a mask.
            after.put(MatchEntry::Unknown { header: *header, body: body.clone() });
        }
        Action::PushVlan(_) => push_vlan(after),
        Action::PopVlan | Action::StripVlan => {
            // Whether there is another tag below is not known.
            forget(after, &[Field::VlanVid, Field::VlanPcp]);
        }
        Action::SetVlanVid(vid) => tag(after, Field::VlanVid, u128::from(*vid & 0xfff) | VLAN_PRESENT),
        Action::SetVlanPcp(pcp) => tag(after, Field::VlanPcp, u128::from(*pcp & 7)),
        Action::SetEthSrc(address) => set(after, Field::EthSrc, address.to_u64().into()),
        Action::SetEthDst(address) => set(after, Field::EthDst, address.to_u64().into()),
        Action::SetIpv4Src(address) => set(after, Field::Ipv4Src, u32::from(*address).into()),
        Action::SetIpv4Dst(address) => set(after, Field::Ipv4Dst, u32::from(*address).into()),
        Action::SetIpTos(tos) => set(after, Field::IpDscp, u128::from(tos >> 2)),
        Action::SetTransportSrc(port) => {
            set_transport(after, [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc], (*port).into());
        }
        Action::SetTransportDst(port) => {
            set_transport(after, [Field::TcpDst, Field::UdpDst, Field::SctpDst], (*port).into());
        }
        Action::PopMpls(ethertype) if is_mpls(after) => new_ether_type(after, *ethertype),
        Action::PopMpls(_) => {
            // Without such a header, a switch may leave the packet unchanged.
            forget(after, &[Field::EthType]);
            forget_packet(after);
        }
        Action::PushMpls(ethertype) | Action::PushPbb(ethertype) => {
            new_ether_type(after, *ethertype);
        }
        Action::PopPbb => {
            // The whole inner frame is unknown.
            let fields = [Field::EthSrc, Field::EthDst, Field::VlanVid, Field::VlanPcp, Field::EthType];
            forget(after, &fields);
            forget_packet(after);
        }
        Action::Experimenter { experimenter: NICIRA, body } => nicira(after, body),
        Action::Experimenter { .. } => after.clear(),
        // The time-to-live is in no match of OpenFlow's, but in one of Nicira's.
        Action::CopyTtlOut | Action::CopyTtlIn | Action::SetNwTtl(_) | Action::DecNwTtl => {
            forget_unknown(after)
        }
        Action::SetMplsTtl(_) | Action::DecMplsTtl => forget_unknown(after),
        Action::Output { .. } | Action::SetQueue(_) | Action::Group(_) | Action::Enqueue { .. } => {}
    }
}

/// Whether an action may write this field, by OpenFlow's name or that of another class. True for unknown actions.
///
/// ```
/// use flow::{Field, rewrite::may_set, text::parse_actions};
/// let writes = |text: &str| may_set(&parse_actions(text).unwrap()[0], Field::InPort);
/// assert!(writes("set_field:3->in_port") && writes("load:3->NXM_OF_IN_PORT[]"));
/// assert!(!writes("set_field:10.0.0.1->ip_dst") && !writes("load:3->NXM_NX_REG0[]"));
/// ```
pub fn may_set(action: &Action, wanted: Field) -> bool {
    match action {
        Action::SetField { field, .. } => *field == wanted,
        Action::SetUnknownField { header, .. } => may_be(*header, wanted),
        Action::Experimenter { experimenter: NICIRA, body } => {
            let header_at = |at: usize| body.get(at..).and_then(|bytes| bytes.first_chunk()).copied();
            let target = match body.get(..2) {
                // load and pop, move, multipath: ovs-actions(7) and its nicira-ext.h define the position of the written
                // field.
                Some([0, 7 | 28]) => header_at(4),
                Some([0, 6]) => header_at(12),
                Some([0, 10]) => header_at(20),
                // set_tunnel, set_queue, pop_queue, note, set_tunnel64, exit, dec_ttl, controller, push, output with a length, ct_clear.
                Some([0, 2 | 4 | 5 | 8 | 9 | 17 | 18 | 20 | 21 | 27 | 37 | 39 | 43]) => return false,
                // resubmit with a table only looks the packet up again, under another port.
                Some([0, 14]) => return false,
                _ => None,
            };
            target.is_none_or(|header| may_be(u32::from_be_bytes(header), wanted))
        }
        Action::Experimenter { .. } => true,
        // Each of the others writes a field of the frame. Fields outside the frame do not change.
        _ => !matches!(wanted, Field::InPort | Field::InPhyPort | Field::Metadata | Field::TunnelId),
    }
}

/// Whether writing one field of a packet may change another, or take it away: the field itself, those of which it is a
/// prerequisite, and the other part of a tag.
///
/// ```
/// use flow::{Field, rewrite::is_changed_with};
/// assert!(is_changed_with(Field::TcpDst, Field::IpProto) && is_changed_with(Field::VlanPcp, Field::VlanVid));
/// assert!(!is_changed_with(Field::IpProto, Field::TcpDst) && !is_changed_with(Field::VlanVid, Field::EthDst));
/// ```
pub fn is_changed_with(field: Field, written: Field) -> bool {
    let is_of_tag = |field: Field| matches!(field, Field::VlanVid | Field::VlanPcp);
    field == written
        || is_of_tag(field) && is_of_tag(written)
        || prerequisites(field).iter().any(|(needed, _)| *needed == written)
}

/// OpenFlow's class, in which a header names a field by its number.
const OPENFLOW_BASIC: u32 = 0x8000;

/// Whether a header of any class may mean this field. Only Nicira's registers certainly do not.
fn may_be(header: u32, wanted: Field) -> bool {
    match header >> 16 {
        OPENFLOW_BASIC => header >> 9 & 0x7f == wanted as u32,
        _ => header >> 9 & !0xf != NICIRA_REGISTERS,
    }
}

/// Sets a field if all packets have it. Otherwise the field becomes unknown.
fn set(after: &mut Match, field: Field, value: u128) {
    let there = |(needed, values): &(Field, &[u128])| match values {
        [one] => implies(after, *needed, *one, needed.full_mask()),
        values => values.iter().any(|value| implies(after, *needed, *value, needed.full_mask())),
    };
    let certain = match field {
        Field::VlanVid | Field::VlanPcp => implies(after, Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
        _ => prerequisites(field).iter().all(there),
    };
    // A new value that determines the meaning of the following bytes makes all of them unknown.
    if after.get(field) != Some((value, field.full_mask())) {
        forget_where(after, |other| prerequisites(other).iter().any(|(needed, _)| *needed == field));
    }
    after.remove(field);
    if certain {
        after.set(field, value);
    }
    forget_unknown(after);
}

/// As in 1.0: a packet without a tag gets one, with the other part zero.
fn tag(after: &mut Match, field: Field, value: u128) {
    match after.get(Field::VlanVid) {
        Some((0, mask)) if mask & VLAN_PRESENT != 0 => {
            after.set(Field::VlanVid, VLAN_PRESENT);
            after.set(Field::VlanPcp, 0);
        }
        Some((vid, mask)) if vid & mask & VLAN_PRESENT != 0 => {}
        _ => {
            forget(after, &[Field::VlanVid, Field::VlanPcp]);
            after.set_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
        }
    }
    after.set(field, value);
    forget_unknown(after);
}

/// The new tag of an untagged packet has zeros. That of a tagged one has the old id and priority (1.3.5, 5.13), but
/// zeros in Open vSwitch. So it is unknown.
fn push_vlan(after: &mut Match) {
    match after.get(Field::VlanVid) {
        Some((0, mask)) if mask & VLAN_PRESENT != 0 => {
            after.set(Field::VlanVid, VLAN_PRESENT);
            after.set(Field::VlanPcp, 0);
        }
        _ => {
            forget(after, &[Field::VlanVid, Field::VlanPcp]);
            after.set_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
        }
    }
    forget_unknown(after);
}

fn set_transport(after: &mut Match, fields: [Field; 3], value: u128) {
    match after.get(Field::IpProto).map(|(ip_proto, _)| ip_proto) {
        Some(6) => set(after, fields[0], value),
        Some(17) => set(after, fields[1], value),
        Some(132) => set(after, fields[2], value),
        _ => forget(after, &fields),
    }
}

/// Whether the packets have an MPLS header for certain.
fn is_mpls(after: &Match) -> bool {
    const MPLS_TYPES: [u128; 2] = [0x8847, 0x8848];
    MPLS_TYPES.iter().any(|kind| implies(after, Field::EthType, *kind, Field::EthType.full_mask()))
}

/// Another header follows the Ethernet header: entries about the old packet are dropped.
fn new_ether_type(after: &mut Match, ethertype: u16) {
    forget_packet(after);
    after.remove(Field::EthType);
    after.set(Field::EthType, ethertype.into());
}

fn forget(after: &mut Match, fields: &[Field]) {
    forget_where(after, |field| fields.contains(&field));
}

fn forget_where(after: &mut Match, unwanted: impl Fn(Field) -> bool) {
    after.retain(|entry| !matches!(entry, MatchEntry::Field { field, .. } if unwanted(*field)));
}

/// Drops all fields behind the EtherType.
fn forget_packet(after: &mut Match) {
    forget_where(after, |field| !prerequisites(field).is_empty());
    forget_unknown(after);
}

/// Drops the fields of other classes, because their prerequisites are unknown.
fn forget_unknown(after: &mut Match) {
    after.retain(|entry| matches!(entry, MatchEntry::Field { .. }));
}

/// The Nicira subtypes (ovs-actions(7)) whose changes are known.
fn nicira(after: &mut Match, body: &[u8]) {
    let number = |from: usize, to: usize| {
        body.get(from..to)
            .map(|bytes| bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte)))
    };
    match (number(0, 2), body.len()) {
        // set_queue, pop_queue, note, exit, controller in both forms, output from a field and with a length.
        (Some(4 | 5 | 8 | 15 | 17 | 20 | 37 | 39), _) => {}
        (Some(2), 8) => set(after, Field::TunnelId, number(4, 8).unwrap_or(0)),
        (Some(9), 16) => set(after, Field::TunnelId, number(8, 16).unwrap_or(0)),
        // dec_ttl, with and without controllers.
        (Some(18 | 21), _) => forget_unknown(after),
        // The input port is dropped as well: move and load write that field too.
        _ => after.clear(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::PortNo;
    use crate::relation::brute_force::{Packet, matches, rule, world};
    use crate::text::{match_to_string, parse_actions, parse_match};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn check(rule: &str, actions: &str, expected: &str) {
        let after = rewritten(&parse_match(rule).unwrap(), &parse_actions(actions).unwrap());
        assert_eq!(match_to_string(&after), expected, "{rule} {actions}");
    }

    #[test]
    fn what_is_not_understood_says_nothing_afterwards() {
        check("in_port=1,ip,nw_src=10.0.0.1", "experimenter(0x12345678,00)", "");
        check("in_port=1,ip,nw_src=10.0.0.1", "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]", "");
        check("in_port=1,ip,nw_src=10.0.0.1", "resubmit(,7)", "");
    }

    #[test]
    fn a_field_that_may_be_missing_is_unknown_afterwards() {
        check("in_port=1", "set_field:10.0.0.1->ip_src", "in_port=1");
        check("in_port=1", "set_field:4101->vlan_vid", "in_port=1");
        check("ip,nw_src=10.0.0.0/8", "set_field:10.0.0.9->ip_src", "ip,nw_src=10.0.0.9");
        check("ip,nw_src=10.0.0.1", "mod_tp_src:5", "ip,nw_src=10.0.0.1");
        check("udp,tp_src=1", "mod_tp_src:5", "udp,tp_src=5");
        check("udp,reg0=5,nw_ttl=3", "dec_ttl", "udp");
    }

    #[test]
    fn tags_come_and_go() {
        check("dl_vlan=5,dl_vlan_pcp=2", "push_vlan:0x8100", "vlan_tci=0x1000/0x1000");
        check("dl_vlan=5", "push_vlan:0x8100,set_field:4101->vlan_vid", "dl_vlan=5");
        check("vlan_vid=0,ip", "push_vlan:0x8100,set_field:4103->vlan_vid", "ip,dl_vlan=7,dl_vlan_pcp=0");
        check("ip", "mod_vlan_vid:7", "ip,dl_vlan=7");
        check("vlan_vid=0", "mod_vlan_pcp:3", "dl_vlan=0,dl_vlan_pcp=3");
        check("dl_vlan=5,dl_vlan_pcp=2,ip", "strip_vlan", "ip");
    }

    #[test]
    fn another_outer_header_hides_the_packet() {
        check("in_port=1,tcp,nw_src=10.0.0.1,tp_dst=3", "push_mpls:0x8847", "mpls,in_port=1");
        check("mpls,mpls_label=5", "pop_mpls:0x0800,set_field:10.0.0.1->ip_src", "ip,nw_src=10.0.0.1");
        check("in_port=1,ip", "set_field:0x806->eth_type,pop_mpls:0x0800", "in_port=1");
        check("in_port=1,dl_type=0x88e7,dl_src=00:00:00:00:00:01", "pop_pbb", "in_port=1");
        check("tcp,tp_dst=3", "set_field:17->ip_proto", "udp");
        check("tcp,tp_dst=3", "set_field:6->ip_proto", "tcp,tp_dst=3");
    }

    /// What a switch does with a packet of the small world.
    fn carry_out(packet: &mut Packet, action: &Action) {
        match action {
            Action::SetField { field, value } if packet.contains_key(field) => set_in(packet, *field, *value),
            Action::PushVlan(_) => push(packet),
            Action::SetVlanVid(vid) => {
                push(packet);
                packet.insert(Field::VlanVid, u128::from(*vid) | VLAN_PRESENT);
            }
            Action::SetVlanPcp(pcp) => {
                push(packet);
                packet.insert(Field::VlanPcp, u128::from(*pcp));
            }
            Action::PopVlan => {
                packet.insert(Field::VlanVid, 0);
                packet.remove(&Field::VlanPcp);
            }
            Action::SetTransportSrc(port) => match packet.get(&Field::IpProto) {
                Some(6) => drop(packet.insert(Field::TcpSrc, u128::from(*port))),
                Some(17) => drop(packet.insert(Field::UdpSrc, u128::from(*port))),
                _ => {}
            },
            Action::PushMpls(ethertype) => {
                packet.insert(Field::EthType, u128::from(*ethertype));
                packet.retain(|field, _| prerequisites(*field).is_empty());
            }
            _ => {}
        }
    }

    /// Where the bytes behind mean something else now, there are fields with values that nobody knows (here: 3).
    fn set_in(packet: &mut Packet, field: Field, value: u128) {
        // A packet that gets an id gets a whole tag, as in Open vSwitch.
        if field == Field::VlanVid {
            push(packet);
        }
        if packet.insert(field, value) == Some(value) {
            return;
        }
        packet.retain(|other, _| !prerequisites(*other).iter().any(|(needed, _)| *needed == field));
        for news in
            [Field::Ipv4Src, Field::IpDscp, Field::IpProto, Field::TcpSrc, Field::Icmpv6Type, Field::ArpSpa]
        {
            let there =
                |(needed, values): &(Field, &[u128])| packet.get(needed).is_some_and(|v| values.contains(v));
            if prerequisites(news).iter().all(there) {
                packet.entry(news).or_insert(3);
            }
        }
        if matches!(packet.get(&Field::Icmpv6Type), Some(135 | 136)) {
            packet.entry(Field::Ipv6NdTarget).or_insert(3);
        }
    }

    /// A tag of its own for a packet that has none.
    fn push(packet: &mut Packet) {
        if packet.get(&Field::VlanVid) == Some(&0) {
            packet.insert(Field::VlanVid, VLAN_PRESENT);
            packet.insert(Field::VlanPcp, 0);
        }
    }

    fn action() -> impl Strategy<Value = Action> {
        use Field::*;
        let sets = vec![
            (EthType, 0x800),
            (EthType, 0x86dd),
            (IpProto, 6),
            (IpProto, 17),
            (Ipv4Src, 1),
            (TcpSrc, 2),
            (IpDscp, 1),
            (VlanVid, 0x1002),
            (VlanPcp, 1),
            (ArpSpa, 1),
            (Icmpv6Type, 135),
            (Ipv6NdTarget, 1),
        ];
        prop_oneof![
            6 => prop::sample::select(sets).prop_map(|(field, value)| Action::SetField { field, value }),
            1 => Just(Action::PushVlan(0x8100)),
            1 => Just(Action::PopVlan),
            1 => Just(Action::SetVlanVid(3)),
            1 => Just(Action::SetVlanPcp(1)),
            1 => Just(Action::SetTransportSrc(1)),
            1 => Just(Action::PushMpls(0x8847)),
            1 => Just(Action::output(PortNo(1))),
        ]
    }

    proptest! {
        #[test]
        fn each_packet_is_in_the_match_afterwards(before in rule(), actions in vec(action(), 0..5)) {
            let after = rewritten(&before, &actions);
            for packet in world().iter().filter(|packet| matches(&before, packet)) {
                let mut changed = packet.clone();
                actions.iter().for_each(|action| carry_out(&mut changed, action));
                prop_assert!(matches(&after, &changed), "{packet:?} becomes {changed:?}, not in {after:?}");
            }
        }
    }
}
