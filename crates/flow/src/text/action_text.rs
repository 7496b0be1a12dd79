//! Actions, read from text.

use super::action_print::set_field_style;
use super::words::{Token, number, words};
use super::{BadText, names, nicira};
use crate::action::Action;
use crate::field::Field;
use crate::mac::MacAddr;
use crate::port::PortNo;
use crate::value;
use std::net::Ipv4Addr;

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u16 = 0x1000;

/// Reads a list of actions as ovs-ofctl does; `drop` alone, or nothing at all, is the empty list.
///
/// # Errors
/// A word that is not an action (instructions are not), or an invalid argument of an action.
///
/// ```
/// use flow::{Action, PortNo, text::parse_actions};
/// assert_eq!(parse_actions("dec_ttl,2"), Ok(vec![Action::DecNwTtl, Action::output(PortNo(2))]));
/// let refused = parse_actions("dec_ttl,outptu:2").unwrap_err();
/// assert_eq!((refused.offset, refused.word.as_str()), (8, "outptu:2"));
/// ```
pub fn parse_actions(text: &str) -> Result<Vec<Action>, BadText> {
    let words = words(text)?;
    if let Some(drop) = drop_alone(&words)? {
        return Ok(drop);
    }
    words.iter().map(read_action).collect()
}

/// `drop` is not an action: it means an empty list.
pub(super) fn drop_alone<T>(words: &[Token<'_>]) -> Result<Option<Vec<T>>, BadText> {
    match words.iter().find(|word| word.key == "drop") {
        None => Ok(None),
        Some(_) if words.len() == 1 => Ok(Some(Vec::new())),
        Some(word) => Err(word.fault("'drop' stands alone, without other actions or instructions")),
    }
}

/// Reads one action.
pub(super) fn read_action(word: &Token<'_>) -> Result<Action, BadText> {
    Ok(match word.key {
        "output" => return read_output(word),
        "controller" | "CONTROLLER" => return read_controller(word),
        "copy_ttl_out" => word.bare(Action::CopyTtlOut)?,
        "copy_ttl_in" => word.bare(Action::CopyTtlIn)?,
        "set_mpls_ttl" => Action::SetMplsTtl(number(word, "a time-to-live from 0 to 255")?),
        "dec_mpls_ttl" => word.bare(Action::DecMplsTtl)?,
        "push_vlan" => Action::PushVlan(number(word, "an EtherType (0x8100)")?),
        "pop_vlan" => word.bare(Action::PopVlan)?,
        "push_mpls" => Action::PushMpls(number(word, "an EtherType (0x8847)")?),
        "pop_mpls" => Action::PopMpls(number(word, "an EtherType (0x0800)")?),
        "set_queue" => Action::SetQueue(number(word, "a queue's number")?),
        "group" => Action::Group(number(word, "a group's number")?),
        "mod_nw_ttl" => Action::SetNwTtl(number(word, "a time-to-live from 0 to 255")?),
        "dec_ttl" if word.value.is_none() => Action::DecNwTtl,
        "set_field" => return read_set_field(word),
        "push_pbb" => Action::PushPbb(number(word, "an EtherType (0x88e7)")?),
        "pop_pbb" => word.bare(Action::PopPbb)?,
        "mod_vlan_vid" => Action::SetVlanVid(below(word, 4096, "a VLAN id from 0 to 4095")?),
        "mod_vlan_pcp" => Action::SetVlanPcp(below(word, 8, "a priority from 0 to 7")?),
        "set_vlan_vid" => {
            set(Field::VlanVid, below::<u16>(word, 4096, "a VLAN id from 0 to 4095")? | VLAN_PRESENT)
        }
        "set_vlan_pcp" => set(Field::VlanPcp, below(word, 8, "a priority from 0 to 7")?),
        "strip_vlan" => word.bare(Action::StripVlan)?,
        "mod_dl_src" => {
            Action::SetEthSrc(parsed::<MacAddr>(word, "an Ethernet address (00:11:22:33:44:55)")?)
        }
        "mod_dl_dst" => {
            Action::SetEthDst(parsed::<MacAddr>(word, "an Ethernet address (00:11:22:33:44:55)")?)
        }
        "mod_nw_src" => Action::SetIpv4Src(parsed::<Ipv4Addr>(word, "an IPv4 address (10.0.0.1)")?),
        "mod_nw_dst" => Action::SetIpv4Dst(parsed::<Ipv4Addr>(word, "an IPv4 address (10.0.0.1)")?),
        "mod_nw_tos" => Action::SetIpTos(number(word, "a type of service from 0 to 255")?),
        "mod_nw_ecn" => set(Field::IpEcn, below(word, 4, "a number from 0 to 3")?),
        "mod_tp_src" => Action::SetTransportSrc(number(word, "a port from 0 to 65535")?),
        "mod_tp_dst" => Action::SetTransportDst(number(word, "a port from 0 to 65535")?),
        "set_mpls_label" => {
            let label: u32 = number(word, "a label from 0 to 1048575")?;
            return set_field(word, Field::MplsLabel, label.into());
        }
        "set_mpls_tc" => set(Field::MplsTc, below(word, 8, "a traffic class from 0 to 7")?),
        "enqueue" => return read_enqueue(word),
        "experimenter" => return read_experimenter(word),
        other => return read_other(word, other),
    })
}

/// A port without a keyword, or one of Nicira's actions.
fn read_other(word: &Token<'_>, key: &str) -> Result<Action, BadText> {
    if let Ok(port) = key.parse::<PortNo>() {
        return word.bare(Action::output(port));
    }
    if let Some(action) = nicira::read(word)? {
        return Ok(action);
    }
    let message = match key {
        "goto_table" | "write_metadata" | "write_actions" | "clear_actions" | "meter" => {
            "this is an instruction; expected an action (output:1, set_field:V->F, group:1 …)"
        }
        _ => "expected an action (output:1, set_field:V->F, group:1 …) or a port",
    };
    Err(word.fault(message))
}

fn below<T: TryFrom<u128> + Into<u32> + Copy>(
    word: &Token<'_>,
    bound: u32,
    expected: &str,
) -> Result<T, BadText> {
    let read: T = number(word, expected)?;
    if read.into() < bound { Ok(read) } else { Err(word.fault(format!("expected {expected}"))) }
}

fn parsed<T: std::str::FromStr>(word: &Token<'_>, expected: &str) -> Result<T, BadText> {
    word.needed(expected)?.parse().map_err(|_| word.fault(format!("expected {expected}")))
}

fn set(field: Field, value: u16) -> Action {
    Action::SetField { field, value: value.into() }
}

fn set_field(word: &Token<'_>, field: Field, value: u128) -> Result<Action, BadText> {
    if value & !field.full_mask() != 0 {
        return Err(word.fault(format!("{value:#x} is wider than {}'s {} bits", field.name(), field.bits())));
    }
    Ok(Action::SetField { field, value })
}

fn read_port(word: &Token<'_>, text: &str) -> Result<PortNo, BadText> {
    text.parse().map_err(|_| word.fault("expected a port number or name (1, LOCAL, FLOOD)"))
}

fn read_output(word: &Token<'_>) -> Result<Action, BadText> {
    let text = word.needed("a port (output:1)")?;
    if word.in_parentheses {
        return nicira::read_output_trunc(word);
    }
    if let Some(action) = nicira::read_output_reg(word, text)? {
        return Ok(action);
    }
    let port = read_port(word, text)?;
    Ok(if port == PortNo::CONTROLLER { Action::to_controller() } else { Action::output(port) })
}

fn read_controller(word: &Token<'_>) -> Result<Action, BadText> {
    match word.value {
        None | Some("") => Ok(Action::to_controller()),
        Some(_) if word.in_parentheses => nicira::read_controller(word),
        Some(_) => {
            let max_len = number(word, "how many bytes, from 0 to 65535")?;
            Ok(Action::Output { port: PortNo::CONTROLLER, max_len })
        }
    }
}

/// `enqueue:PORT:QUEUE`, `enqueue(PORT,QUEUE)` or, as of old, `enqueue:PORTqQUEUE`.
fn read_enqueue(word: &Token<'_>) -> Result<Action, BadText> {
    let expected = "a port and a queue (enqueue:1:2)";
    let (port, queue) = word.needed(expected)?.split_once([':', ',', 'q']).unwrap_or_default();
    let queue = value::read_number(queue.trim()).and_then(|queue| u32::try_from(queue).ok());
    let queue_id = queue.ok_or_else(|| word.fault(format!("expected {expected}")))?;
    Ok(Action::Enqueue { port: read_port(word, port.trim())?, queue_id })
}

fn read_set_field(word: &Token<'_>) -> Result<Action, BadText> {
    let text = word.needed("a value and a field (set_field:VALUE->FIELD)")?;
    let Some((value, name)) = text.rsplit_once("->") else {
        return Err(word.fault("expected set_field:VALUE->FIELD"));
    };
    if value.contains('/') {
        return Err(word.fault("set_field takes no mask in OpenFlow 1.3; 'load' sets some bits of a field"));
    }
    let at_fault = |fault| word.fault(fault);
    if let Some(field) = names::field_named(name) {
        let value = value::read(set_field_style(field), field.bits(), value).map_err(at_fault)?;
        return Ok(Action::SetField { field, value });
    }
    if let Some(extension) = names::extension_in_match(name) {
        let (value, _) = extension.notation.read(extension.bits, value).map_err(at_fault)?;
        let body = super::match_text::value_bytes(extension, value);
        return Ok(Action::SetUnknownField { header: extension.header(false), body });
    }
    let (header, body) = crate::json::read_unknown(name, value)
        .map_err(|fault| word.fault(format!("'{name}' is no field that can be set: {fault}")))?;
    Ok(Action::SetUnknownField { header, body })
}

/// `experimenter(0xNUMBER,hex)`.
fn read_experimenter(word: &Token<'_>) -> Result<Action, BadText> {
    let expected = "an experimenter's number and its bytes (experimenter(0x00002320,0011))";
    let (number, hex) = word.needed(expected)?.split_once(',').unwrap_or_default();
    let number = value::read_number(number.trim()).and_then(|number| u32::try_from(number).ok());
    let experimenter = number.ok_or_else(|| word.fault(format!("expected {expected}")))?;
    let body = value::read_hex(hex.trim()).map_err(|fault| word.fault(fault))?;
    Ok(Action::Experimenter { experimenter, body })
}

#[cfg(test)]
mod tests {
    use super::super::actions_to_string;
    use super::*;

    fn check_refused(text: &str, offset: usize, words: &[&str]) {
        let refused = parse_actions(text).unwrap_err();
        assert_eq!(refused.offset, offset, "{refused}");
        assert!(words.iter().all(|word| refused.to_string().contains(word)), "{refused}");
    }

    fn check(text: &str, again: &str) {
        assert_eq!(actions_to_string(&parse_actions(text).unwrap()), again, "{text}");
    }

    #[test]
    fn wrong_words_are_named_with_their_place() {
        check_refused("output:1,outptu:2", 9, &["'outptu:2'", "expected an action"]);
        check_refused("output", 0, &["a port"]);
        check_refused("output:x", 0, &["'output:x'", "a port number"]);
        check_refused("drop,output:1", 0, &["alone"]);
        check_refused("output:1,goto_table:2", 9, &["an instruction"]);
        check_refused("set_field:5", 0, &["VALUE->FIELD"]);
        check_refused("set_field:5->colour", 0, &["'colour'"]);
        check_refused("set_field:8->vlan_pcp", 0, &["3 bits"]);
        check_refused("set_field:5/7->metadata", 0, &["no mask"]);
        check_refused("controller:65536", 0, &["65535"]);
        check_refused("mod_vlan_vid:4096", 0, &["4095"]);
        check_refused("enqueue:1", 0, &["queue"]);
        check_refused("group:all", 0, &["a group's number"]);
        check_refused("pop_vlan:5", 0, &["takes nothing"]);
        check_refused("write_actions(output:1", 0, &["not closed"]);
        check_refused("load:2->NXM_NX_REG0[0]", 0, &["1 bit"]);
        check_refused("load:2->NXM_NX_REG0[3..40]", 0, &["32 bits"]);
        check_refused("move:NXM_NX_REG0[]->NXM_OF_ETH_DST[]", 0, &["32", "48"]);
    }

    #[test]
    fn every_form_is_read() {
        check("1,LOCAL,flood", "output:1,LOCAL,FLOOD");
        check("controller,controller:5,controller(max_len=6)", "CONTROLLER:65535,CONTROLLER:5,CONTROLLER:6");
        check("enqueue(1,2) enqueue:LOCAL:3", "enqueue:1:2,enqueue:LOCAL:3");
        check("set_field:10.0.0.1->nw_src", "set_field:10.0.0.1->ip_src");
        check("set_vlan_vid:5,set_mpls_label:7", "set_field:4101->vlan_vid,set_field:7->mpls_label");
        check("", "drop");
    }

    #[test]
    fn experimenters_are_kept_in_hexadecimal() {
        check("experimenter(0x12345678,00ff)", "experimenter(0x12345678,00ff)");
        check("set_field:00ff->oxm:0x00027e02", "set_field:00ff->oxm:0x00027e02");
    }
}
