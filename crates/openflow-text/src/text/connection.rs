//! Prints hello, error, echo, features, configuration and roles.

use std::fmt::{self, Write};

use super::dump::{hex_dump, printable};
use super::{Detail, bit_names};
use openflow::hex;
use openflow::message::*;
use openflow::names;
use openflow::version::Version;

pub(super) fn hello(out: &mut String, version: Version, hello: &Hello) -> fmt::Result {
    let said = hello.elements.iter().rev().find_map(|element| match element {
        HelloElement::VersionBitmap(words) => words.first().copied(),
        HelloElement::Unknown { .. } => None,
    });
    // Without a bitmap, a peer supports the version of its header and all earlier ones. Version 0 does not exist.
    let up_to_its_own = (2u64 << version.0.min(31)) - 2;
    let bits = u64::from(said.unwrap_or(0) & !1);
    let spoken = if bits != 0 { bits } else { up_to_its_own };
    let versions: Vec<String> =
        (0..32).filter(|bit| spoken >> bit & 1 == 1).map(|bit| format!("0x{bit:02x}")).collect();
    write!(out, "\n version bitmap: {}", versions.join(", "))?;
    hello.elements.iter().try_for_each(|element| match element {
        HelloElement::VersionBitmap(words) if words.is_empty() => {
            out.write_str("\n unknown element: type=1 data=")
        }
        HelloElement::VersionBitmap(_) => Ok(()),
        HelloElement::Unknown { kind, body } => {
            write!(out, "\n unknown element: type={kind} data={}", hex::to_text(body))
        }
    })
}

pub(super) fn error(out: &mut String, version: Version, error: &ErrorMessage) -> fmt::Result {
    const HELLO_FAILED: u16 = 0;
    let name = match error.experimenter {
        Some(whose) => names::experimenter_error_name(whose, error.code).map(str::to_owned),
        None => open_vswitch_name(version, error.kind, error.code),
    };
    match (error.experimenter, name) {
        (Some(experimenter), None) => {
            writeln!(out, " OFPET_EXPERIMENTER experimenter=0x{experimenter:x} exp_type={}", error.code)?;
            return hex_dump(out, &error.data);
        }
        (_, Some(name)) => writeln!(out, " {name}")?,
        (None, None) => writeln!(out, " type={} code={}", error.kind, error.code)?,
    }
    if error.kind == HELLO_FAILED { printable(out, &error.data) } else { message_within(out, &error.data) }
}

/// Open vSwitch uses one name for an error that has different names in several versions.
fn open_vswitch_name(version: Version, kind: u16, code: u16) -> Option<String> {
    let name = names::error_code_name(version, kind, code)?;
    let other = OTHER_NAMES.iter().find(|(specification, _)| *specification == name);
    Some(other.map_or(name, |(_, open_vswitch)| (*open_vswitch).to_owned()))
}

/// The specification's name and Open vSwitch's name, if they differ.
pub(super) const OTHER_NAMES: [(&str, &str); 11] = [
    ("OFPFMFC_ALL_TABLES_FULL", "OFPFMFC_TABLE_FULL"),
    ("OFPBRC_BAD_MULTIPART", "OFPBRC_BAD_STAT"),
    ("OFPBRC_BAD_EXPERIMENTER", "OFPBRC_BAD_VENDOR"),
    ("OFPBRC_BAD_EXP_TYPE", "OFPBRC_BAD_SUBTYPE"),
    ("OFPBRC_IS_SLAVE", "OFPBRC_IS_SECONDARY"),
    ("OFPBAC_BAD_EXPERIMENTER", "OFPBAC_BAD_VENDOR"),
    ("OFPBAC_BAD_EXP_TYPE", "OFPBAC_BAD_VENDOR_TYPE"),
    ("OFPMMFC_BAD_BAND_TYPE", "OFPMMFC_BAD_BAND_VALUE"),
    ("OFPTFFC_BAD_TYPE", "OFPBPC_BAD_TYPE"),
    ("OFPTFFC_BAD_LEN", "OFPBPC_BAD_LEN"),
    ("OFPTFFC_BAD_ARGUMENT", "OFPBPC_BAD_VALUE"),
];

/// The length of a message's header.
const HEADER_LEN: usize = 8;

/// The faulty message, or the part of it in the error.
fn message_within(out: &mut String, data: &[u8]) -> fmt::Result {
    let Some(header) = data.first_chunk::<HEADER_LEN>() else {
        if data.is_empty() {
            return out.write_str("OpenFlow message is empty\n");
        }
        writeln!(out, "OpenFlow packet too short (only {} bytes):", data.len())?;
        return hex_dump(out, data);
    };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if length < data.len() {
        writeln!(out, "(***only uses {length} bytes out of {}***)", data.len())?;
        return hex_dump(out, data);
    }
    if length > data.len() {
        heading_of_part(out, data)?;
        writeln!(out, "(***truncated to {} bytes from {length}***)", data.len())?;
        return hex_dump(out, data);
    }
    match Message::decode(data) {
        // An error inside an error is not parsed again, which bounds the nesting.
        Ok(Message { body: Body::Error(_), .. }) => hex_dump(out, data),
        Ok(message) => super::print(out, &message, Detail::Headers),
        Err(bad) => {
            let of_bundle = openflow::error::experimenter_of(bad.error)
                .and_then(|whose| names::experimenter_error_name(whose, bad.error.code));
            let name = match of_bundle {
                Some(name) => Some(name.to_owned()),
                None => open_vswitch_name(Version::V1_3, bad.error.kind, bad.error.code),
            };
            writeln!(out, "***decode error: {}***", name.unwrap_or_else(|| bad.to_string()))?;
            hex_dump(out, data)
        }
    }
}

/// The heading of an incomplete message, if its beginning is enough to tell its type.
fn heading_of_part(out: &mut String, data: &[u8]) -> fmt::Result {
    const MULTIPART: [&str; 14] = [
        "DESC",
        "FLOW",
        "AGGREGATE",
        "TABLE",
        "PORT",
        "QUEUE",
        "GROUP",
        "GROUP_DESC",
        "GROUP_FEATURES",
        "METER",
        "METER_CONFIG",
        "METER_FEATURES",
        "TABLE_FEATURES",
        "PORT_DESC",
    ];
    let &[version, kind, _, _, a, b, c, d, ref body @ ..] = data else { return Ok(()) };
    let Some(name) = names::message_type_name(Version(version), kind) else { return Ok(()) };
    let name = name_of_bundle(version, kind, body).unwrap_or(name);
    let name = match (name.strip_prefix("OFPT_MULTIPART_").or(name.strip_prefix("OFPT_STATS_")), body) {
        (None, _) => name.to_owned(),
        (Some(side), [0, kind, ..]) if usize::from(*kind) < MULTIPART.len() => {
            format!("OFPST_{} {}", MULTIPART[usize::from(*kind)], side.to_ascii_lowercase())
        }
        (Some(_), _) => return Ok(()),
    };
    super::print_heading(out, &name, Version(version), u32::from_be_bytes([a, b, c, d]))?;
    out.write_char('\n')
}

/// The name of a message of a bundle, by the experimenter and the type at the beginning of its body.
fn name_of_bundle(version: u8, kind: u8, body: &[u8]) -> Option<&'static str> {
    const EXPERIMENTER: u8 = 4;
    let numbers =
        body.first_chunk::<8>().filter(|_| (Version(version), kind) == (Version::V1_3, EXPERIMENTER))?;
    let number = |at: usize| Some(u32::from_be_bytes(*numbers.get(at..)?.first_chunk()?));
    match (number(0)?, number(4)?) {
        (ONF_EXPERIMENTER, ONF_BUNDLE_CONTROL) => Some("ONFT_BUNDLE_CONTROL"),
        (ONF_EXPERIMENTER, ONF_BUNDLE_ADD) => Some("ONFT_BUNDLE_ADD_MESSAGE"),
        _ => None,
    }
}

pub(super) fn echo(out: &mut String, data: &[u8], detail: Detail) -> fmt::Result {
    writeln!(out, " {} bytes of payload", data.len())?;
    if detail == Detail::Payloads { hex_dump(out, data) } else { Ok(()) }
}

pub(super) fn experimenter(
    out: &mut String,
    experimenter: u32,
    exp_type: Option<u32>,
    data: &[u8],
) -> fmt::Result {
    write!(out, " experimenter=0x{experimenter:x}")?;
    if let Some(exp_type) = exp_type {
        write!(out, " exp_type={exp_type}")?;
    }
    write!(out, " data={}", hex::to_text(data))
}

pub(super) fn features(out: &mut String, version: Version, features: &FeaturesReply) -> fmt::Result {
    writeln!(out, " dpid:{:016x}", features.datapath_id.0)?;
    write!(out, "n_tables:{}, n_buffers:{}", features.n_tables, features.n_buffers)?;
    if features.auxiliary_id != 0 {
        write!(out, ", auxiliary_id:{}", features.auxiliary_id)?;
    }
    out.push_str("\ncapabilities: ");
    let (known, names) =
        if version == Version::V1_0 { (0xef, CAPABILITIES_1_0) } else { (0x16f, CAPABILITIES_1_3) };
    bit_names(out, features.capabilities & known, names)?;
    out.push('\n');
    if version != Version::V1_0 {
        return Ok(());
    }
    let actions: Vec<&str> = ACTIONS_1_0
        .iter()
        .filter(|(bit, _)| features.actions >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    if !actions.is_empty() {
        writeln!(out, "actions: {}", actions.join(" "))?;
    }
    super::port::all(out, version, &features.ports)
}

const CAPABILITIES_1_0: &[(u32, &str)] = &[
    (1, "FLOW_STATS"),
    (2, "TABLE_STATS"),
    (4, "PORT_STATS"),
    (8, "STP"),
    (0x20, "IP_REASM"),
    (0x40, "QUEUE_STATS"),
    (0x80, "ARP_MATCH_IP"),
];
const CAPABILITIES_1_3: &[(u32, &str)] = &[
    (1, "FLOW_STATS"),
    (2, "TABLE_STATS"),
    (4, "PORT_STATS"),
    (8, "GROUP_STATS"),
    (0x20, "IP_REASM"),
    (0x40, "QUEUE_STATS"),
    (0x100, "PORT_BLOCKED"),
];

/// Bit and name, in Open vSwitch's order of actions.
const ACTIONS_1_0: [(u32, &str); 12] = [
    (0, "output"),
    (11, "enqueue"),
    (1, "set_vlan_vid"),
    (2, "set_vlan_pcp"),
    (3, "strip_vlan"),
    (4, "mod_dl_src"),
    (5, "mod_dl_dst"),
    (6, "mod_nw_src"),
    (7, "mod_nw_dst"),
    (8, "mod_nw_tos"),
    (9, "mod_tp_src"),
    (10, "mod_tp_dst"),
];

pub(super) fn config(out: &mut String, version: Version, config: &SwitchConfig) -> fmt::Result {
    let fragments = match config.flags & 3 {
        0 => "normal",
        1 => "drop",
        2 => "reassemble",
        _ => "nx-match",
    };
    // 1.3 removed OFPC_INVALID_TTL_TO_CONTROLLER. Switches of earlier versions use it.
    let invalid_ttl =
        if config.flags & 4 != 0 && version != Version::V1_3 { " invalid_ttl_to_controller" } else { "" };
    writeln!(out, " frags={fragments}{invalid_ttl} miss_send_len={}", config.miss_send_len)
}

pub(super) fn switch_desc(out: &mut String, desc: &SwitchDesc) -> fmt::Result {
    writeln!(out, "\nManufacturer: {}", desc.mfr_desc)?;
    writeln!(out, "Hardware: {}", desc.hw_desc)?;
    writeln!(out, "Software: {}", desc.sw_desc)?;
    writeln!(out, "Serial Num: {}", desc.serial_num)?;
    writeln!(out, "DP Description: {}", desc.dp_desc)
}

pub(super) fn role(out: &mut String, role: &Role) -> fmt::Result {
    match role.role {
        // A query of the role has no generation id.
        ROLE_NOCHANGE => return out.write_str(" role=nochange"),
        ROLE_EQUAL => out.push_str(" role=equal"),
        ROLE_MASTER => out.push_str(" role=primary"),
        ROLE_SLAVE => out.push_str(" role=secondary"),
        number => write!(out, " role={number}")?,
    }
    // All ones from a switch mean that there was no generation id yet.
    if role.generation_id == u64::MAX { Ok(()) } else { write!(out, " generation_id={}", role.generation_id) }
}

/// Reasons of later versions are not printed, except those of flow removeds.
pub(super) fn async_config(out: &mut String, config: &AsyncConfig) -> fmt::Result {
    for (index, role) in ["primary", "secondary"].into_iter().enumerate() {
        write!(out, "\n {role}:\n")?;
        reasons(out, "PACKET_IN", config.packet_in_mask[index], &PACKET_IN_REASONS[..3])?;
        reasons(out, "PORT_STATUS", config.port_status_mask[index], &["add", "delete", "modify"])?;
        reasons(out, "FLOW_REMOVED", config.flow_removed_mask[index], &super::rule::REMOVED_REASONS)?;
        for later in ["ROLE_STATUS", "TABLE_STATUS", "REQUESTFORWARD"] {
            reasons(out, later, 0, &[])?;
        }
    }
    Ok(())
}

/// The reasons of a packet-in by number. Those after the third are of later versions.
pub(super) const PACKET_IN_REASONS: [&str; 6] =
    ["no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"];

fn reasons(out: &mut String, kind: &str, mask: u32, names: &[&str]) -> fmt::Result {
    write!(out, "{kind:>16}:")?;
    let mut set = names.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).peekable();
    if set.peek().is_none() {
        out.push_str(" (off)");
    }
    set.try_for_each(|(_, name)| write!(out, " {name}"))?;
    out.write_char('\n')
}
