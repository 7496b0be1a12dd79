//! Actions of 1.0 (5.2.4), and those of 1.3 that 1.0 can express.
//!
//! Never changes the meaning: an action that would have another effect on some packet in 1.0 is refused.

use flow::canonical::actions_raw;
use flow::{Action, BadInput, Field, MacAddr, PortNo};

use super::port_number;
use crate::error::{BAD_ACTION_LEN, BAD_ACTION_TYPE, Unwritable, bad};
use crate::wire::{Reader, Writer};

/// `ofp_action_type`.
mod kind {
    pub const OUTPUT: u16 = 0;
    pub const SET_VLAN_VID: u16 = 1;
    pub const SET_VLAN_PCP: u16 = 2;
    pub const STRIP_VLAN: u16 = 3;
    pub const SET_DL_SRC: u16 = 4;
    pub const SET_DL_DST: u16 = 5;
    pub const SET_NW_SRC: u16 = 6;
    pub const SET_NW_DST: u16 = 7;
    pub const SET_NW_TOS: u16 = 8;
    pub const SET_TP_SRC: u16 = 9;
    pub const SET_TP_DST: u16 = 10;
    pub const ENQUEUE: u16 = 11;
    pub const VENDOR: u16 = 0xffff;
}

/// The length of the smallest action. Every length is a multiple of it.
const UNIT: usize = 8;
/// The type of an experimenter action in 1.3.
const OFPAT_EXPERIMENTER: u16 = 0xffff;
/// OFPVID_PRESENT of 1.3.
const VLAN_PRESENT: u128 = 0x1000;
/// The EtherType of the one tag that 1.0 can push.
const ETH_VLAN: u16 = 0x8100;

/// Reads actions to the end of `body`.
pub(crate) fn read(body: Reader<'_>) -> Result<Vec<Action>, BadInput> {
    body.with_short(BAD_ACTION_LEN).list(read_action)
}

/// Checks actions to the end of `body`.
pub(crate) fn check(body: Reader<'_>) -> Result<(), BadInput> {
    let mut body = body.with_short(BAD_ACTION_LEN);
    while !body.is_empty() {
        read_action(&mut body)?;
    }
    Ok(())
}

/// Reads one action. Allocates only for a vendor action.
pub(crate) fn read_action(body: &mut Reader<'_>) -> Result<Action, BadInput> {
    let start = body.offset();
    let mut part = body.item(2, UNIT)?;
    let length = part.left();
    if length % UNIT != 0 {
        let message = format!("length {length} is not a multiple of {UNIT}");
        return Err(bad(start + 2, "len", BAD_ACTION_LEN, message));
    }
    let kind = part.u16("type")?;
    part.skip(2)?;
    let expected = match kind {
        kind::SET_DL_SRC | kind::SET_DL_DST | kind::ENQUEUE => 16,
        kind::VENDOR => length,
        _ => UNIT,
    };
    if length != expected && kind <= kind::ENQUEUE {
        let message = format!("this action has {expected} bytes, not {length}");
        return Err(bad(start + 2, "len", BAD_ACTION_LEN, message));
    }
    Ok(match kind {
        kind::OUTPUT => Action::Output {
            port: super::read_port_number(&mut part, "port")?,
            max_len: part.u16("max_len")?,
        },
        kind::SET_VLAN_VID => Action::SetVlanVid(part.u16("vlan_vid")?),
        kind::SET_VLAN_PCP => Action::SetVlanPcp(part.u8("vlan_pcp")?),
        kind::STRIP_VLAN => Action::StripVlan,
        kind::SET_DL_SRC => Action::SetEthSrc(MacAddr(part.array("dl_addr")?)),
        kind::SET_DL_DST => Action::SetEthDst(MacAddr(part.array("dl_addr")?)),
        kind::SET_NW_SRC => Action::SetIpv4Src(part.u32("nw_addr")?.into()),
        kind::SET_NW_DST => Action::SetIpv4Dst(part.u32("nw_addr")?.into()),
        kind::SET_NW_TOS => Action::SetIpTos(part.u8("nw_tos")?),
        kind::SET_TP_SRC => Action::SetTransportSrc(part.u16("tp_port")?),
        kind::SET_TP_DST => Action::SetTransportDst(part.u16("tp_port")?),
        kind::ENQUEUE => {
            let port = super::read_port_number(&mut part, "port")?;
            part.skip(6)?;
            Action::Enqueue { port, queue_id: part.u32("queue_id")? }
        }
        kind::VENDOR => {
            Action::Experimenter { experimenter: part.u32("vendor")?, body: part.rest().to_vec() }
        }
        unknown => {
            let message = format!("OpenFlow 1.0 has no action of type {unknown}");
            return Err(bad(start, "type", BAD_ACTION_TYPE, message));
        }
    })
}

/// Writes actions. `untagged`: the packets have no VLAN tag. Then setting the VLAN id in 1.0 pushes one.
pub(crate) fn write(actions: &[Action], untagged: bool, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let mut translation = Translation::new(untagged);
    actions.iter().try_for_each(|action| translation.write(action, out))?;
    translation.finish()
}

/// Writes a list of one output.
pub(crate) fn write_one_output(port: PortNo, max_len: u16, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    Translation::new(false).write_output(port, max_len, out)
}

/// Writes actions from their canonical bytes. Allocates only the text of an error.
pub(crate) fn write_from_canonical(
    actions: &[u8],
    untagged: bool,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    let mut translation = Translation::new(untagged);
    for raw in actions_raw(actions) {
        let raw = raw.map_err(|refused| Unwritable::new("actions", refused.to_string()))?;
        if let Some((port, max_len)) = raw.output() {
            // Nearly every list is one output, which needs no typed action.
            translation.check_push()?;
            translation.write_output(port, max_len, out)?;
            continue;
        }
        if raw.kind == OFPAT_EXPERIMENTER {
            // An experimenter action has the layout of a vendor action, so it is copied without reading it.
            translation.check_push()?;
            out.bytes(raw.bytes);
            continue;
        }
        let action = raw.read().map_err(|refused| Unwritable::new("actions", refused.to_string()))?;
        translation.write(&action, out)?;
    }
    translation.finish()
}

/// The effect of the earlier actions on the translation of the next one.
struct Translation {
    untagged: bool,
    /// A pushed tag whose id or priority the next action must set.
    pushed: bool,
    queue_id: Option<u32>,
}

impl Translation {
    const fn new(untagged: bool) -> Self {
        Translation { untagged, pushed: false, queue_id: None }
    }

    fn check_push(&self) -> Result<(), Unwritable> {
        if !self.pushed {
            return Ok(());
        }
        let why = "OpenFlow 1.0 pushes a tag only where it sets the VLAN id or priority: that must be the next action";
        Err(Unwritable::new("OFPAT_PUSH_VLAN", why))
    }

    fn finish(self) -> Result<(), Unwritable> {
        self.check_push()
    }

    fn write(&mut self, action: &Action, out: &mut Writer<'_>) -> Result<(), Unwritable> {
        let sets_vlan = matches!(
            action,
            Action::SetVlanVid(_)
                | Action::SetVlanPcp(_)
                | Action::SetField { field: Field::VlanVid | Field::VlanPcp, .. }
        );
        if sets_vlan {
            self.pushed = false;
            self.untagged = false;
        }
        self.check_push()?;
        match action {
            Action::Output { port, max_len } => return self.write_output(*port, *max_len, out),
            Action::SetQueue(queue_id) => self.queue_id = Some(*queue_id),
            Action::PushVlan(ETH_VLAN) if self.untagged => self.pushed = true,
            Action::PushVlan(ETH_VLAN) => {
                let why = "OpenFlow 1.0 changes the tag of a packet that has one: the match must have vlan_vid 0, no tag";
                return Err(Unwritable::new("OFPAT_PUSH_VLAN", why));
            }
            Action::SetField { field, value } => return write_set_field(*field, *value, out),
            Action::Enqueue { port, queue_id } => return write_enqueue(*port, *queue_id, out),
            Action::SetVlanVid(vid) => write_u16(kind::SET_VLAN_VID, *vid, out),
            Action::SetVlanPcp(pcp) => write_u8(kind::SET_VLAN_PCP, *pcp, out),
            Action::StripVlan | Action::PopVlan => write_u8(kind::STRIP_VLAN, 0, out),
            Action::SetEthSrc(address) => write_address(kind::SET_DL_SRC, *address, out),
            Action::SetEthDst(address) => write_address(kind::SET_DL_DST, *address, out),
            Action::SetIpv4Src(address) => write_u32(kind::SET_NW_SRC, (*address).into(), out),
            Action::SetIpv4Dst(address) => write_u32(kind::SET_NW_DST, (*address).into(), out),
            Action::SetIpTos(tos) => write_u8(kind::SET_NW_TOS, *tos, out),
            Action::SetTransportSrc(port) => write_u16(kind::SET_TP_SRC, *port, out),
            Action::SetTransportDst(port) => write_u16(kind::SET_TP_DST, *port, out),
            Action::Experimenter { experimenter, body } => return write_vendor(*experimenter, body, out),
            other => return Err(Unwritable::new(name(other), "OpenFlow 1.0 has no such action")),
        }
        Ok(())
    }

    /// An output behind a set-queue of 1.3 is an enqueue in 1.0.
    fn write_output(&mut self, port: PortNo, max_len: u16, out: &mut Writer<'_>) -> Result<(), Unwritable> {
        match self.queue_id {
            // Output to the controller uses no queue.
            Some(queue_id) if port != PortNo::CONTROLLER => {
                let is_one_port = port.0 <= PortNo::MAX.0 || port == PortNo::IN_PORT || port == PortNo::LOCAL;
                if !is_one_port {
                    let why = format!("{port} is no single port, and OpenFlow 1.0 has queues only for those");
                    return Err(Unwritable::new("OFPAT_SET_QUEUE", why));
                }
                write_enqueue(port, queue_id, out)
            }
            _ => {
                let number = port_number(port, "OFPAT_OUTPUT")?;
                out.u16(kind::OUTPUT).u16(8).u16(number).u16(max_len);
                Ok(())
            }
        }
    }
}

fn write_enqueue(port: PortNo, queue_id: u32, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let number = port_number(port, "OFPAT_ENQUEUE")?;
    out.u16(kind::ENQUEUE).u16(16).u16(number).zeros(6).u32(queue_id);
    Ok(())
}

fn write_u8(kind: u16, value: u8, out: &mut Writer<'_>) {
    out.u16(kind).u16(8).u8(value).zeros(3);
}

fn write_u16(kind: u16, value: u16, out: &mut Writer<'_>) {
    out.u16(kind).u16(8).u16(value).zeros(2);
}

fn write_u32(kind: u16, value: u32, out: &mut Writer<'_>) {
    out.u16(kind).u16(8).u32(value);
}

fn write_address(kind: u16, address: MacAddr, out: &mut Writer<'_>) {
    out.u16(kind).u16(16).bytes(&address.0).zeros(6);
}

fn write_vendor(vendor: u32, body: &[u8], out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let Some(length) = u16::try_from(8 + body.len()).ok().filter(|length| length % 8 == 0) else {
        let why = format!("{} bytes are not a multiple of 8 below 65528", body.len());
        return Err(Unwritable::new("OFPAT_VENDOR", why));
    };
    out.u16(kind::VENDOR).u16(length).u32(vendor).bytes(body);
    Ok(())
}

/// Writes a set-field of 1.3 as the action of 1.0 for that field.
fn write_set_field(field: Field, value: u128, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if value & !field.full_mask() != 0 {
        return Err(Unwritable::new(
            field.name(),
            format!("the value is wider than its {} bits", field.bits()),
        ));
    }
    let octets = value.to_be_bytes();
    let [.., low] = octets;
    let [.., a, b, c, d, e, f] = octets;
    let short = u16::from_be_bytes([e, f]);
    match field {
        Field::EthSrc => write_address(kind::SET_DL_SRC, MacAddr([a, b, c, d, e, f]), out),
        Field::EthDst => write_address(kind::SET_DL_DST, MacAddr([a, b, c, d, e, f]), out),
        Field::VlanVid if value & VLAN_PRESENT == 0 => {
            return Err(Unwritable::new(
                "vlan_vid",
                "OFPVID_PRESENT is not set: a tag cannot be set to none",
            ));
        }
        Field::VlanVid => write_u16(kind::SET_VLAN_VID, short & 0x0fff, out),
        Field::VlanPcp => write_u8(kind::SET_VLAN_PCP, low, out),
        Field::Ipv4Src => write_u32(kind::SET_NW_SRC, u32::from_be_bytes([c, d, e, f]), out),
        Field::Ipv4Dst => write_u32(kind::SET_NW_DST, u32::from_be_bytes([c, d, e, f]), out),
        Field::IpDscp => write_u8(kind::SET_NW_TOS, low << 2, out),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => write_u16(kind::SET_TP_SRC, short, out),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => write_u16(kind::SET_TP_DST, short, out),
        _ => return Err(Unwritable::new(field.name(), "OpenFlow 1.0 has no action that sets it")),
    }
    Ok(())
}

/// The specification's name of an action that 1.0 does not have.
const fn name(action: &Action) -> &'static str {
    match action {
        Action::CopyTtlOut => "OFPAT_COPY_TTL_OUT",
        Action::CopyTtlIn => "OFPAT_COPY_TTL_IN",
        Action::SetMplsTtl(_) => "OFPAT_SET_MPLS_TTL",
        Action::DecMplsTtl => "OFPAT_DEC_MPLS_TTL",
        Action::PushVlan(_) => "OFPAT_PUSH_VLAN",
        Action::PushMpls(_) => "OFPAT_PUSH_MPLS",
        Action::PopMpls(_) => "OFPAT_POP_MPLS",
        Action::Group(_) => "OFPAT_GROUP",
        Action::SetNwTtl(_) => "OFPAT_SET_NW_TTL",
        Action::DecNwTtl => "OFPAT_DEC_NW_TTL",
        Action::PushPbb(_) => "OFPAT_PUSH_PBB",
        Action::PopPbb => "OFPAT_POP_PBB",
        _ => "OFPAT_SET_FIELD",
    }
}
