//! Parses printed hello, error, echo, configuration and role messages.

use flow::PortNo;
use flow::text::BadText;

use super::super::super::connection::{OTHER_NAMES, PACKET_IN_REASONS};
use super::super::super::rule::REMOVED_REASONS;
use super::super::words::{Token, fault, fault_in, first, number, split};
use openflow::hex;
use openflow::message::*;
use openflow::names;
use openflow::version::Version;

/// `version bitmap: 0x01, 0x04`. The output for a hello without a bitmap is read as one without.
pub(super) fn hello(version: Version, text: &str) -> Result<Hello, BadText> {
    let list =
        text.strip_prefix("version bitmap:").ok_or_else(|| fault(0, text, "expected 'version bitmap: …'"))?;
    let at = text.len() - list.len();
    let mut bits = 0u32;
    for word in split(list) {
        let bit = number::<u8>(word.whole).filter(|bit| *bit < 32);
        bits |= 1 << bit.ok_or_else(|| word.fault("expected wire versions from 0x00 to 0x1f").shifted(at))?;
    }
    let up_to_its_own = u32::try_from((2u64 << version.0.min(31)) - 2).unwrap_or(u32::MAX);
    let elements =
        if bits == up_to_its_own { Vec::new() } else { vec![HelloElement::VersionBitmap(vec![bits])] };
    Ok(Hello { elements })
}

/// The error's name, followed by its data: a text, a printed message, or a dump of its bytes.
pub(super) fn error(version: Version, text: &str) -> Result<ErrorMessage, BadText> {
    let (line, below) = text.split_once('\n').unwrap_or((text, ""));
    let at = text.len() - below.len();
    let (kind, code, experimenter) = error_name(version, line)?;
    let hello_failed = kind == 0 && experimenter.is_none();
    let data = if hello_failed { unprintable(below) } else { carried(below) };
    Ok(ErrorMessage { kind, code, experimenter, data: data.map_err(|bad| bad.shifted(at))? })
}

fn error_name(version: Version, line: &str) -> Result<(u16, u16, Option<u32>), BadText> {
    if line.starts_with("OFPET_EXPERIMENTER") {
        let of = |key| {
            split(line)
                .find(|word| word.key == key)
                .ok_or_else(|| fault(0, line, format!("expected {key}=…")))
        };
        let experimenter = of("experimenter")?.number("the experimenter's number")?;
        return Ok((0xffff, of("exp_type")?.number("the experimenter's type of error")?, Some(experimenter)));
    }
    if line.starts_with("type=") {
        let mut words = split(line);
        let mut of = |key| match words.next() {
            Some(word) if word.key == key => word.number("a number from 0 to 65535"),
            _ => Err(fault(0, line, format!("expected {key}=…"))),
        };
        return Ok((of("type")?, of("code")?, None));
    }
    if let Some((experimenter, code)) = names::experimenter_error_number(line) {
        return Ok((openflow::error::EXPERIMENTER, code, Some(experimenter)));
    }
    let other = OTHER_NAMES.iter().filter(|(_, open_vswitch)| *open_vswitch == line).map(|(name, _)| *name);
    let known = std::iter::once(line).chain(other).find_map(|name| names::error_code_number(version, name));
    let (kind, code) =
        known.ok_or_else(|| fault(0, line, format!("no error of OpenFlow {version} has this name")))?;
    Ok((kind, code, None))
}

/// Text with octal escapes.
fn unprintable(text: &str) -> Result<Vec<u8>, BadText> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let escaped = behind.first_chunk::<3>().and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.ok_or_else(|| {
            fault(text.len() - behind.len() - 1, "\\", "expected three octal digits behind the backslash")
        })?);
        rest = &rest[3..];
    }
    Ok(bytes)
}

/// The bytes of the message in an error.
fn carried(text: &str) -> Result<Vec<u8>, BadText> {
    if text.is_empty() || text.starts_with("OpenFlow message is empty") {
        return Ok(Vec::new());
    }
    // A dump has all bytes. The text above it is for human readers.
    if let Some(start) = text.find("00000000  ") {
        return dump(&text[start..]).map_err(|bad| bad.shifted(start));
    }
    if text.contains(" bytes of payload") {
        return Err(super::incomplete(text, "the payload of the echo that this error carries"));
    }
    let message = super::message(text)?;
    let mut bytes = Vec::new();
    message.encode(&mut bytes).map_err(|bad| fault(0, text, bad.to_string()))?;
    Ok(bytes)
}

/// Lines of sixteen bytes, as [`super::super::super::dump`] prints them.
fn dump(text: &str) -> Result<Vec<u8>, BadText> {
    let mut bytes = Vec::new();
    for line in text.lines() {
        let malformed = || fault_in(text, line, "expected a line of a dump: 00000000  04 02 … |…|");
        let digits = line.get(10..).and_then(|line| line.split_once('|')).ok_or_else(malformed)?.0;
        let dense: String = digits.chars().filter(char::is_ascii_hexdigit).collect();
        bytes.extend(hex::from_text(&dense).map_err(|_| malformed())?);
    }
    Ok(bytes)
}

/// `4 bytes of payload` and their dump.
pub(super) fn echo(text: &str) -> Result<Vec<u8>, BadText> {
    let (line, below) = text.split_once('\n').unwrap_or((text, ""));
    let length = line.strip_suffix(" bytes of payload").and_then(number::<usize>);
    let length = length.ok_or_else(|| fault(0, line, "expected '… bytes of payload'"))?;
    let bytes = dump(below).map_err(|bad| bad.shifted(text.len() - below.len()))?;
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(fault(0, line, format!("{} bytes are in the lines below it", bytes.len())))
    }
}

/// `experimenter=0x2320 exp_type=1 data=0102`
pub(super) fn experimenter(text: &str) -> Result<Experimenter, BadText> {
    let mut read = Experimenter { experimenter: 0, exp_type: None, data: Vec::new() };
    let mut said = false;
    for word in split(text) {
        match word.key {
            "experimenter" => {
                read.experimenter = word.number("the experimenter's number")?;
                said = true;
            }
            "exp_type" => read.exp_type = Some(word.number("the experimenter's type")?),
            "data" => {
                let digits = word.value.unwrap_or_default();
                read.data = hex::from_text(digits).map_err(|bad| word.fault(bad.to_string()))?;
            }
            _ => return Err(word.unknown("experimenter, exp_type, data")),
        }
    }
    if said { Ok(read) } else { Err(fault(0, text, "expected experimenter=…")) }
}

/// `frags=normal miss_send_len=128`
pub(super) fn config(text: &str) -> Result<SwitchConfig, BadText> {
    const FRAGMENTS: [(u16, &str); 4] = [(0, "normal"), (1, "drop"), (2, "reassemble"), (3, "nx-match")];
    let mut read = SwitchConfig { flags: 0, miss_send_len: 0 };
    for word in split(text) {
        match word.key {
            "frags" => read.flags |= word.named(&FRAGMENTS, "normal, drop or reassemble")?,
            "invalid_ttl_to_controller" => read.flags |= 4,
            "miss_send_len" => read.miss_send_len = word.number("bytes from 0 to 65535")?,
            _ => return Err(word.unknown("frags, invalid_ttl_to_controller, miss_send_len")),
        }
    }
    Ok(read)
}

/// `table_id=3` or `table_id: ALL_TABLES`
pub(super) fn table_mod(text: &str) -> Result<TableMod, BadText> {
    let table_id = match first(text) {
        ("table_id:", "ALL_TABLES") => TABLE_ALL,
        _ => match split(text).next() {
            Some(word) if word.key == "table_id" => word.number("a table's number")?,
            _ => return Err(fault(0, text, "expected table_id=…")),
        },
    };
    Ok(TableMod { table_id, config: 0 })
}

/// `port=3`
pub(super) fn only_port(text: &str, key: &str) -> Result<PortNo, BadText> {
    match split(text).collect::<Vec<Token<'_>>>()[..] {
        [word] if word.key == key => word.port(),
        _ => Err(fault(0, text, format!("expected {key}=…"))),
    }
}

/// `role=primary generation_id=5`. Without a generation id it is all ones, as a switch sends it.
pub(super) fn role(text: &str) -> Result<Role, BadText> {
    const ROLES: [(u32, &str); 6] = [
        (ROLE_NOCHANGE, "nochange"),
        (ROLE_EQUAL, "equal"),
        (ROLE_MASTER, "primary"),
        (ROLE_MASTER, "master"),
        (ROLE_SLAVE, "secondary"),
        (ROLE_SLAVE, "slave"),
    ];
    let mut role = None;
    let mut generation_id = None;
    for word in split(text) {
        match word.key {
            "role" => role = Some(word.named(&ROLES, "nochange, equal, primary or secondary")?),
            "generation_id" => generation_id = Some(word.number("a number of 64 bits")?),
            _ => return Err(word.unknown("role, generation_id")),
        }
    }
    let role = role.ok_or_else(|| fault(0, text, "expected role=…"))?;
    let none = if role == ROLE_NOCHANGE { 0 } else { u64::MAX };
    Ok(Role { role, generation_id: generation_id.unwrap_or(none) })
}

/// The enabled reasons: for each role a list of kinds.
pub(super) fn async_config(text: &str) -> Result<AsyncConfig, BadText> {
    let mut read = AsyncConfig::default();
    let mut index = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, reasons) = line
            .split_once(':')
            .ok_or_else(|| fault_in(text, line, "expected a kind of message and a colon"))?;
        match kind {
            "primary" => index = Some(0),
            "secondary" => index = Some(1),
            _ => {
                let role: usize = index
                    .ok_or_else(|| fault_in(text, line, "expected 'primary:' or 'secondary:' before it"))?;
                let (mask, names): (_, &[&str]) = match kind {
                    "PACKET_IN" => (&mut read.packet_in_mask, &PACKET_IN_REASONS[..3]),
                    "PORT_STATUS" => (&mut read.port_status_mask, &["add", "delete", "modify"]),
                    "FLOW_REMOVED" => (&mut read.flow_removed_mask, &REMOVED_REASONS),
                    "ROLE_STATUS" | "TABLE_STATUS" | "REQUESTFORWARD" => continue,
                    _ => return Err(fault_in(text, line, "expected PACKET_IN, PORT_STATUS or FLOW_REMOVED")),
                };
                mask[role] = reasons_of(text, reasons, names)?;
            }
        }
    }
    Ok(read)
}

fn reasons_of(text: &str, list: &str, names: &[&str]) -> Result<u32, BadText> {
    let words = list.split_ascii_whitespace().filter(|word| *word != "(off)");
    words
        .map(|word| {
            names
                .iter()
                .position(|name| *name == word)
                .map(|bit| 1 << bit)
                .ok_or_else(|| fault_in(text, word, format!("expected some of {}", names.join(" "))))
        })
        .try_fold(0, |mask, bit| Ok(mask | bit?))
}
