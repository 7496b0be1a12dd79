//! Writes actions as bytes: from typed values, or one by one.
//!
//! Actions of 1.0 become those of 1.3 if the meaning is the same. Otherwise they are refused with a reason.

use super::action_bytes::kind;
use super::match_bytes::MatchWriter;
use super::{Unwritable, pad_to_eight};
use crate::action::Action;
use crate::field::Field;
use crate::matching::FieldValue;
use crate::port::PortNo;

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u16 = 0x1000;

/// Appends a list of actions.
///
/// Actions of 1.0 are translated: addresses, VLAN id and VLAN priority become set-field, `StripVlan` becomes pop-VLAN,
/// and `Enqueue` becomes set-queue and output. The two VLAN actions then need a packet with a tag, while 1.0 would push
/// one.
///
/// # Errors
/// An action that 1.3 cannot express: a transport port without its protocol, or an output behind an `Enqueue`, whose
/// queue would apply to it too. Also a value that is wider than its field or exceeds an action's length. Nothing is
/// appended then.
///
/// ```
/// use flow::{Action, MacAddr, canonical::{read_actions, write_actions}};
/// let mut bytes = Vec::new();
/// write_actions(&[Action::SetEthDst(MacAddr::BROADCAST)], &mut bytes).unwrap();
/// let said_in_1_3 = Action::SetField { field: flow::Field::EthDst, value: 0xffff_ffff_ffff };
/// assert_eq!(read_actions(&bytes), Ok(vec![said_in_1_3]));
/// assert!(write_actions(&[Action::SetTransportDst(80)], &mut bytes).is_err());
/// ```
pub fn write_actions(actions: &[Action], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let start = out.len();
    let mut writer = ActionWriter::new(out);
    let mut written = Ok(());
    let mut queued = false;
    for action in actions {
        let sends = matches!(action, Action::Output { .. } | Action::Group(_));
        written = match action {
            _ if queued && sends => Err(Unwritable::new(
                "enqueue",
                "its queue would hold for the outputs behind it too; put it last",
            )),
            _ => writer.action(action).map(|_| ()),
        };
        queued = queued && !matches!(action, Action::SetQueue(_)) || matches!(action, Action::Enqueue { .. });
        if written.is_err() {
            break;
        }
    }
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends actions one by one, with no allocation but the buffer's own growth.
///
/// ```
/// use flow::{Field, PortNo, canonical::{ActionWriter, actions_raw}};
/// let mut bytes = Vec::new();
/// ActionWriter::new(&mut bytes).set_field(Field::Ipv4Dst, 0x0a00_0001u32).output(PortNo(2), 0);
/// assert_eq!(actions_raw(&bytes).count(), 2);
/// ```
#[derive(Debug)]
pub struct ActionWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> ActionWriter<'a> {
    /// A writer that appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        ActionWriter { out }
    }

    /// Appends an output; `max_len` is how many bytes go to the controller if that is the port.
    #[inline]
    pub fn output(&mut self, port: PortNo, max_len: u16) -> &mut Self {
        let ([k0, k1], [p0, p1, p2, p3]) = (kind::OUTPUT.to_be_bytes(), port.0.to_be_bytes());
        let [m0, m1] = max_len.to_be_bytes();
        // All 16 bytes at once: it is the action of nearly every rule.
        self.out.extend_from_slice(&[k0, k1, 0, 16, p0, p1, p2, p3, m0, m1, 0, 0, 0, 0, 0, 0]);
        self
    }

    /// Appends a set-field. Bits that the field does not have are dropped.
    pub fn set_field(&mut self, field: Field, value: impl Into<FieldValue>) -> &mut Self {
        let start = self.out.len();
        self.header(kind::SET_FIELD, (8 + field.bytes() as u16).next_multiple_of(8));
        MatchWriter::new(self.out).field(field, value);
        pad_to_eight(self.out, start);
        self
    }

    /// Appends a push of a VLAN tag with this EtherType (0x8100 or 0x88a8).
    pub fn push_vlan(&mut self, ethertype: u16) -> &mut Self {
        self.short(kind::PUSH_VLAN, u32::from(ethertype) << 16)
    }

    /// Appends a pop of the outer VLAN tag.
    pub fn pop_vlan(&mut self) -> &mut Self {
        self.short(kind::POP_VLAN, 0)
    }

    /// Appends set-queue, which applies to the outputs after it.
    pub fn set_queue(&mut self, queue_id: u32) -> &mut Self {
        self.short(kind::SET_QUEUE, queue_id)
    }

    /// Appends an output to a group.
    pub fn group(&mut self, group_id: u32) -> &mut Self {
        self.short(kind::GROUP, group_id)
    }

    /// Appends a decrement of the IP time-to-live.
    pub fn dec_nw_ttl(&mut self) -> &mut Self {
        self.short(kind::DEC_NW_TTL, 0)
    }

    /// Appends any action.
    ///
    /// # Errors
    /// As [`write_actions`], except that an output behind an `Enqueue` is not detected. Nothing is appended then.
    pub fn action(&mut self, action: &Action) -> Result<&mut Self, Unwritable> {
        Ok(match action {
            Action::Output { port, max_len } => self.output(*port, *max_len),
            Action::CopyTtlOut => self.short(kind::COPY_TTL_OUT, 0),
            Action::CopyTtlIn => self.short(kind::COPY_TTL_IN, 0),
            Action::SetMplsTtl(ttl) => self.short(kind::SET_MPLS_TTL, u32::from(*ttl) << 24),
            Action::DecMplsTtl => self.short(kind::DEC_MPLS_TTL, 0),
            Action::PushVlan(ethertype) => self.push_vlan(*ethertype),
            Action::PopVlan | Action::StripVlan => self.pop_vlan(),
            Action::PushMpls(ethertype) => self.short(kind::PUSH_MPLS, u32::from(*ethertype) << 16),
            Action::PopMpls(ethertype) => self.short(kind::POP_MPLS, u32::from(*ethertype) << 16),
            Action::SetQueue(queue_id) => self.set_queue(*queue_id),
            Action::Group(group_id) => self.group(*group_id),
            Action::SetNwTtl(ttl) => self.short(kind::SET_NW_TTL, u32::from(*ttl) << 24),
            Action::DecNwTtl => self.dec_nw_ttl(),
            Action::SetField { field, value } => return self.checked_set_field(*field, *value),
            Action::SetUnknownField { header, body } => return self.unknown_field(*header, body),
            Action::PushPbb(ethertype) => self.short(kind::PUSH_PBB, u32::from(*ethertype) << 16),
            Action::PopPbb => self.short(kind::POP_PBB, 0),
            // The bit of the tag would hide the excess: 4096 would become 0.
            Action::SetVlanVid(vid) if *vid >= VLAN_PRESENT => {
                return Err(Unwritable::new("set_vlan_vid", format!("{vid} is no VLAN id: write 0 to 4095")));
            }
            Action::SetVlanVid(vid) => {
                return self.checked_set_field(Field::VlanVid, u128::from(*vid | VLAN_PRESENT));
            }
            Action::SetVlanPcp(pcp) => return self.checked_set_field(Field::VlanPcp, u128::from(*pcp)),
            Action::SetEthSrc(address) => self.set_field(Field::EthSrc, *address),
            Action::SetEthDst(address) => self.set_field(Field::EthDst, *address),
            Action::SetIpv4Src(address) => self.set_field(Field::Ipv4Src, *address),
            Action::SetIpv4Dst(address) => self.set_field(Field::Ipv4Dst, *address),
            Action::SetIpTos(tos) => self.set_field(Field::IpDscp, tos >> 2),
            Action::SetTransportSrc(_) => return Err(needs_a_protocol("set_tp_src", "tcp_src")),
            Action::SetTransportDst(_) => return Err(needs_a_protocol("set_tp_dst", "tcp_dst")),
            Action::Enqueue { port, queue_id } => self.set_queue(*queue_id).output(*port, 0),
            Action::Experimenter { experimenter, body } => return self.experimenter(*experimenter, body),
        })
    }

    #[inline]
    fn header(&mut self, kind: u16, length: u16) {
        self.out.extend_from_slice(&kind.to_be_bytes());
        self.out.extend_from_slice(&length.to_be_bytes());
    }

    #[inline]
    fn short(&mut self, kind: u16, body: u32) -> &mut Self {
        self.header(kind, 8);
        self.out.extend_from_slice(&body.to_be_bytes());
        self
    }

    fn checked_set_field(&mut self, field: Field, value: u128) -> Result<&mut Self, Unwritable> {
        if value & !field.full_mask() != 0 {
            let reason = format!("{value:#x} is wider than {}'s {} bits", field.name(), field.bits());
            return Err(Unwritable::new("set_field", reason));
        }
        Ok(self.set_field(field, value))
    }

    fn unknown_field(&mut self, header: u32, body: &[u8]) -> Result<&mut Self, Unwritable> {
        if (header & 0xff) as usize != body.len() {
            let reason = format!("its header says {} bytes, and there are {}", header & 0xff, body.len());
            return Err(Unwritable::new("set_field", reason));
        }
        let start = self.out.len();
        self.header(kind::SET_FIELD, (8 + body.len() as u16).next_multiple_of(8));
        MatchWriter::new(self.out).unknown(header, body);
        pad_to_eight(self.out, start);
        Ok(self)
    }

    fn experimenter(&mut self, experimenter: u32, body: &[u8]) -> Result<&mut Self, Unwritable> {
        let length = u16::try_from(8 + body.len()).ok().filter(|length| length % 8 == 0);
        let Some(length) = length else {
            let reason = format!("{} bytes are not a multiple of 8 below 65528", body.len());
            return Err(Unwritable::new("experimenter", reason));
        };
        self.header(kind::EXPERIMENTER, length);
        self.out.extend_from_slice(&experimenter.to_be_bytes());
        self.out.extend_from_slice(body);
        Ok(self)
    }
}

fn needs_a_protocol(what: &'static str, instead: &'static str) -> Unwritable {
    let reason = format!("it does not say which protocol; use set_field with {instead} or its like");
    Unwritable::new(what, reason)
}

#[cfg(test)]
mod tests {
    use super::super::read_actions;
    use super::*;
    use crate::mac::MacAddr;
    use std::net::Ipv4Addr;

    fn check(actions: &[Action], expected: &[Action]) {
        let mut bytes = Vec::new();
        write_actions(actions, &mut bytes).unwrap();
        assert_eq!(read_actions(&bytes), Ok(expected.to_vec()));
    }

    fn check_refused(actions: &[Action], word: &str) {
        let mut bytes = vec![7];
        let refused = write_actions(actions, &mut bytes).unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
        assert_eq!(bytes, [7], "nothing of a refused list is written");
    }

    #[test]
    fn what_1_3_cannot_say_is_refused_with_the_reason() {
        check_refused(&[Action::PopVlan, Action::SetTransportDst(80)], "set_field with tcp_dst");
        check_refused(&[Action::SetField { field: Field::VlanPcp, value: 8 }], "3 bits");
        check_refused(&[Action::SetVlanPcp(8)], "3 bits");
        check_refused(&[Action::SetUnknownField { header: 0x0001_0004, body: vec![1] }], "4 bytes");
        check_refused(&[Action::SetVlanVid(4_096)], "0 to 4095");
        check_refused(&[Action::Experimenter { experimenter: 1, body: vec![0; 4] }], "multiple of 8");
        check_refused(&[Action::Experimenter { experimenter: 1, body: vec![0; 65536] }], "below 65528");
    }

    #[test]
    fn an_enqueue_does_not_leak_its_queue_to_later_outputs() {
        let enqueue = Action::Enqueue { port: PortNo(1), queue_id: 5 };
        check_refused(&[enqueue.clone(), Action::output(PortNo(2))], "put it last");
        check_refused(&[enqueue.clone(), Action::Group(2)], "put it last");
        check(
            &[Action::output(PortNo(2)), enqueue],
            &[Action::output(PortNo(2)), Action::SetQueue(5), Action::output(PortNo(1))],
        );
    }

    #[test]
    fn the_actions_of_1_0_are_said_in_1_3() {
        let set = |field, value| Action::SetField { field, value };
        check(
            &[
                Action::StripVlan,
                Action::SetVlanVid(5),
                Action::SetVlanPcp(7),
                Action::SetEthSrc(MacAddr::from_u64(1)),
                Action::SetIpv4Dst(Ipv4Addr::new(0, 0, 1, 0)),
                Action::SetIpTos(0xff),
            ],
            &[
                Action::PopVlan,
                set(Field::VlanVid, 0x1005),
                set(Field::VlanPcp, 7),
                set(Field::EthSrc, 1),
                set(Field::Ipv4Dst, 256),
                set(Field::IpDscp, 63),
            ],
        );
    }
}
