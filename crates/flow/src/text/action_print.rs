//! Actions, printed as ovs-ofctl prints them.

use super::{names, nicira};
use crate::action::Action;
use crate::field::Field;
use crate::port::PortNo;
use crate::value::{self, Style, show_hex};

/// Prints a list of actions; an empty one is `drop`.
///
/// ```
/// use flow::{Action, Field, PortNo, text::actions_to_string};
/// let actions = [Action::SetField { field: Field::VlanVid, value: 0x1005 }, Action::output(PortNo(2))];
/// assert_eq!(actions_to_string(&actions), "set_field:4101->vlan_vid,output:2");
/// assert_eq!(actions_to_string(&[]), "drop");
/// ```
pub fn actions_to_string(actions: &[Action]) -> String {
    if actions.is_empty() {
        return "drop".to_owned();
    }
    actions.iter().map(show).collect::<Vec<_>>().join(",")
}

fn show(action: &Action) -> String {
    match action {
        Action::Output { port, max_len } => show_output(*port, *max_len),
        Action::CopyTtlOut => "copy_ttl_out".to_owned(),
        Action::CopyTtlIn => "copy_ttl_in".to_owned(),
        Action::SetMplsTtl(ttl) => format!("set_mpls_ttl({ttl})"),
        Action::DecMplsTtl => "dec_mpls_ttl".to_owned(),
        Action::PushVlan(ethertype) => format!("push_vlan:{ethertype:#06x}"),
        Action::PopVlan => "pop_vlan".to_owned(),
        Action::PushMpls(ethertype) => format!("push_mpls:{ethertype:#06x}"),
        Action::PopMpls(ethertype) => format!("pop_mpls:{ethertype:#06x}"),
        Action::SetQueue(queue_id) => format!("set_queue:{queue_id}"),
        Action::Group(group_id) => format!("group:{group_id}"),
        Action::SetNwTtl(ttl) => format!("mod_nw_ttl:{ttl}"),
        Action::DecNwTtl => "dec_ttl".to_owned(),
        Action::SetField { field, value } => show_set_field(*field, *value),
        Action::SetUnknownField { header, body } => show_set_unknown(*header, body),
        Action::PushPbb(ethertype) => format!("push_pbb:{ethertype:#06x}"),
        Action::PopPbb => "pop_pbb".to_owned(),
        Action::SetVlanVid(vid) => format!("mod_vlan_vid:{vid}"),
        Action::SetVlanPcp(pcp) => format!("mod_vlan_pcp:{pcp}"),
        Action::StripVlan => "strip_vlan".to_owned(),
        Action::SetEthSrc(address) => format!("mod_dl_src:{address}"),
        Action::SetEthDst(address) => format!("mod_dl_dst:{address}"),
        Action::SetIpv4Src(address) => format!("mod_nw_src:{address}"),
        Action::SetIpv4Dst(address) => format!("mod_nw_dst:{address}"),
        Action::SetIpTos(tos) => format!("mod_nw_tos:{tos}"),
        Action::SetTransportSrc(port) => format!("mod_tp_src:{port}"),
        Action::SetTransportDst(port) => format!("mod_tp_dst:{port}"),
        Action::Enqueue { port, queue_id } => format!("enqueue:{port}:{queue_id}"),
        Action::Experimenter { experimenter: nicira::NICIRA, body } => {
            nicira::show(body).unwrap_or_else(|| show_experimenter(nicira::NICIRA, body))
        }
        Action::Experimenter { experimenter, body } => show_experimenter(*experimenter, body),
    }
}

fn show_experimenter(experimenter: u32, body: &[u8]) -> String {
    format!("experimenter({experimenter:#010x},{})", show_hex(body))
}

fn show_output(port: PortNo, max_len: u16) -> String {
    match port.reserved_name() {
        _ if port == PortNo::CONTROLLER => format!("CONTROLLER:{max_len}"),
        Some(name) => name.to_owned(),
        None => format!("output:{port}"),
    }
}

/// ovs-ofctl writes these two fields differently here than in a match.
pub(super) fn set_field_style(field: Field) -> Style {
    match field {
        Field::VlanVid => Style::Decimal,
        Field::Ipv6Flabel => Style::Hexadecimal(1),
        other => Style::of(other),
    }
}

fn show_set_field(field: Field, value: u128) -> String {
    format!("set_field:{}->{}", value::show(set_field_style(field), value), names::set_field_name(field))
}

fn show_set_unknown(header: u32, body: &[u8]) -> String {
    let named = names::extension_of(header)
        .filter(|extension| extension.header(false) == header && extension.bytes() == body.len());
    match named {
        Some(extension) => {
            let value = body.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
            format!("set_field:{}->{}", extension.notation.show(value, None), extension.name)
        }
        None => format!("set_field:{}->oxm:{header:#010x}", show_hex(body)),
    }
}
