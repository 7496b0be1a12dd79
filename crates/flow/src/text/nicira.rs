//! Converts simple Nicira actions between bytes and text.
//!
//! The bytes are the action's body: the subtype and its arguments (ovs-actions(7) and Open vSwitch's wire formats).
//! Actions that are unknown, or only partly known, use the hexadecimal form. The text here always expresses all bytes.

use super::words::{Token, number, words};
use super::{BadText, names};
use crate::action::Action;
use crate::port::PortNo;
use crate::value::{self, read_number};
use std::fmt::Write;

/// Nicira's number (`NX_VENDOR_ID`).
pub(super) const NICIRA: u32 = 0x0000_2320;

/// `NXAST_*`.
mod subtype {
    pub const RESUBMIT: u16 = 1;
    pub const SET_TUNNEL: u16 = 2;
    pub const SET_QUEUE: u16 = 4;
    pub const POP_QUEUE: u16 = 5;
    pub const REG_MOVE: u16 = 6;
    pub const REG_LOAD: u16 = 7;
    pub const NOTE: u16 = 8;
    pub const SET_TUNNEL64: u16 = 9;
    pub const RESUBMIT_TABLE: u16 = 14;
    pub const OUTPUT_REG: u16 = 15;
    pub const EXIT: u16 = 17;
    pub const DEC_TTL: u16 = 18;
    pub const CONTROLLER: u16 = 20;
    pub const DEC_TTL_CNT_IDS: u16 = 21;
    pub const OUTPUT_TRUNC: u16 = 39;
    pub const CT_CLEAR: u16 = 43;
}

/// The names of the reasons of a packet-in (`OFPR_*`).
const REASONS: [&str; 3] = ["no_match", "action", "invalid_ttl"];

/// The text of an action, if it expresses all of it. `dec_ttl` and `set_queue` print as OpenFlow's own actions with the
/// same meaning, and a plain `controller` as an output. They are read back as those.
pub(super) fn show(body: &[u8]) -> Option<String> {
    let text = show_known(body)?;
    let own = matches!(u16_at(body, 0)?, subtype::DEC_TTL | subtype::SET_QUEUE) && padding_is_zero(body);
    let read = super::parse_actions(&text).ok()?;
    let again = matches!(read.as_slice(), [Action::Experimenter { experimenter: NICIRA, body: there }] if there == body);
    let output = matches!(read.as_slice(), [Action::Output { port: PortNo::CONTROLLER, .. }]);
    (own || again || output).then_some(text)
}

fn padding_is_zero(body: &[u8]) -> bool {
    match u16_at(body, 0) {
        Some(subtype::DEC_TTL) => body.len() == 8 && body[2..] == [0; 6],
        _ => body.len() == 8 && body[2..4] == [0; 2],
    }
}

fn show_known(body: &[u8]) -> Option<String> {
    Some(match u16_at(body, 0)? {
        subtype::RESUBMIT => format!("resubmit:{}", port_at(body, 2)?),
        subtype::RESUBMIT_TABLE => show_resubmit(port_at(body, 2)?, *body.get(4)?),
        subtype::SET_TUNNEL => format!("set_tunnel:{:#x}", u32_at(body, 4)?),
        subtype::SET_TUNNEL64 => format!("set_tunnel64:{:#x}", u64_at(body, 8)?),
        subtype::SET_QUEUE => format!("set_queue:{}", u32_at(body, 4)?),
        subtype::POP_QUEUE => "pop_queue".to_owned(),
        subtype::REG_MOVE => {
            let bits = u16_at(body, 2)?;
            let from = Subfield { header: u32_at(body, 8)?, offset: u16_at(body, 4)?, bits };
            let to = Subfield { header: u32_at(body, 12)?, offset: u16_at(body, 6)?, bits };
            format!("move:{}->{}", from.show()?, to.show()?)
        }
        subtype::REG_LOAD => {
            let to = Subfield::packed(u16_at(body, 2)?, u32_at(body, 4)?);
            format!("load:{:#x}->{}", u64_at(body, 8)?, to.show()?)
        }
        subtype::OUTPUT_REG => {
            format!("output:{}", Subfield::packed(u16_at(body, 2)?, u32_at(body, 4)?).show()?)
        }
        subtype::NOTE => {
            let bytes: Vec<String> = body.get(2..)?.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("note:{}", bytes.join("."))
        }
        subtype::EXIT => "exit".to_owned(),
        subtype::CT_CLEAR => "ct_clear".to_owned(),
        subtype::DEC_TTL => "dec_ttl".to_owned(),
        subtype::CONTROLLER => show_controller(u16_at(body, 2)?, u16_at(body, 4)?, *body.get(6)?)?,
        subtype::DEC_TTL_CNT_IDS => show_dec_ttl(body)?,
        subtype::OUTPUT_TRUNC => format!("output(port={},max_len={})", port_at(body, 2)?, u32_at(body, 4)?),
        _ => return None,
    })
}

fn show_resubmit(port: PortNo, table: u8) -> String {
    let port = if port == PortNo::IN_PORT { String::new() } else { port.to_string() };
    let table = if table == 0xff { String::new() } else { table.to_string() };
    format!("resubmit({port},{table})")
}

fn show_controller(max_len: u16, id: u16, reason: u8) -> Option<String> {
    if reason == 1 && id == 0 {
        return Some(format!("CONTROLLER:{max_len}"));
    }
    let mut parts = Vec::new();
    if reason != 1 {
        parts.push(format!("reason={}", REASONS.get(usize::from(reason))?));
    }
    if max_len != 0xffff {
        parts.push(format!("max_len={max_len}"));
    }
    if id != 0 {
        parts.push(format!("id={id}"));
    }
    Some(format!("controller({})", parts.join(",")))
}

fn show_dec_ttl(body: &[u8]) -> Option<String> {
    let count = usize::from(u16_at(body, 2)?);
    let ids: Option<Vec<String>> =
        (0..count).map(|id| u16_at(body, 8 + 2 * id).map(|id| id.to_string())).collect();
    Some(format!("dec_ttl({})", ids?.join(",")))
}

/// Reads a Nicira action by its keyword; `None` if the keyword is unknown.
pub(super) fn read(word: &Token<'_>) -> Result<Option<Action>, BadText> {
    let body = match word.key {
        "resubmit" => return read_resubmit(word).map(Some),
        "set_tunnel" => {
            let id: u64 = number(word, "a tunnel's number")?;
            match u32::try_from(id) {
                Ok(id) => Body::of(subtype::SET_TUNNEL).bytes(&[0; 2]).bytes(&id.to_be_bytes()),
                Err(_) => Body::of(subtype::SET_TUNNEL64).bytes(&[0; 6]).bytes(&id.to_be_bytes()),
            }
        }
        "set_tunnel64" => {
            let id: u64 = number(word, "a tunnel's number")?;
            Body::of(subtype::SET_TUNNEL64).bytes(&[0; 6]).bytes(&id.to_be_bytes())
        }
        "pop_queue" => word.bare(Body::of(subtype::POP_QUEUE))?,
        "exit" => word.bare(Body::of(subtype::EXIT))?,
        "ct_clear" => word.bare(Body::of(subtype::CT_CLEAR))?,
        "note" => read_note(word)?,
        "load" => read_load(word)?,
        "move" => read_move(word)?,
        "dec_ttl" => read_dec_ttl(word)?,
        _ => return Ok(None),
    };
    Ok(Some(body.action()))
}

/// `resubmit:PORT` or `resubmit(PORT,TABLE)`, either of which may be left out.
fn read_resubmit(word: &Token<'_>) -> Result<Action, BadText> {
    let expected = "a port, or a port and a table (resubmit(1,2), resubmit(,2))";
    let text = word.value.ok_or_else(|| word.fault(format!("expected {expected}")))?;
    let (port, table) = text.split_once(',').unwrap_or((text, ""));
    let port = match port.trim() {
        "" => PortNo::IN_PORT,
        port => port.parse().map_err(|_| word.fault(format!("expected {expected}")))?,
    };
    let port = short_port(word, port)?;
    let body = match table.trim() {
        "" if !text.contains(',') || port != short_port(word, PortNo::IN_PORT)? => {
            Body::of(subtype::RESUBMIT).bytes(&port.to_be_bytes())
        }
        "" => Body::of(subtype::RESUBMIT_TABLE).bytes(&port.to_be_bytes()).bytes(&[0xff]),
        table => {
            let table = read_number(table).and_then(|table| u8::try_from(table).ok());
            let table = table.ok_or_else(|| word.fault("expected a table from 0 to 255"))?;
            Body::of(subtype::RESUBMIT_TABLE).bytes(&port.to_be_bytes()).bytes(&[table])
        }
    };
    Ok(body.action())
}

/// Nicira's actions have 1.0's 16-bit ports.
fn short_port(word: &Token<'_>, port: PortNo) -> Result<u16, BadText> {
    port.to_v10().ok_or_else(|| word.fault("this action has room for ports below 65280 only"))
}

/// `note:00.01.02`; the dots may be left out.
fn read_note(word: &Token<'_>) -> Result<Body, BadText> {
    let digits: String = word.value.unwrap_or_default().split('.').collect();
    let bytes = value::read_hex(&digits).map_err(|fault| word.fault(fault))?;
    Ok(Body::of(subtype::NOTE).bytes(&bytes))
}

fn read_load(word: &Token<'_>) -> Result<Body, BadText> {
    let expected = "a value and where it goes (load:0x5->NXM_NX_REG0[])";
    let (value, to) = word.needed(expected)?.split_once("->").unwrap_or_default();
    let to = Subfield::read(word, to)?;
    let value = read_number(value).ok_or_else(|| word.fault(format!("expected {expected}")))?;
    if to.bits > 64 {
        return Err(word.fault("load sets at most 64 bits; name them as FIELD[0..63]"));
    }
    if value >> to.bits != 0 {
        return Err(word.fault(format!("{value:#x} does not fit into {} bit(s)", to.bits)));
    }
    let packed = to.pack(word)?;
    let value = value as u64;
    Ok(Body::of(subtype::REG_LOAD)
        .bytes(&packed.to_be_bytes())
        .bytes(&to.header.to_be_bytes())
        .bytes(&value.to_be_bytes()))
}

fn read_move(word: &Token<'_>) -> Result<Body, BadText> {
    let expected = "where from and where to (move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[])";
    let (from, to) = word.needed(expected)?.split_once("->").unwrap_or_default();
    let (from, to) = (Subfield::read(word, from)?, Subfield::read(word, to)?);
    if from.bits != to.bits {
        return Err(word.fault(format!("{} bits do not go into {} bits", from.bits, to.bits)));
    }
    Ok(Body::of(subtype::REG_MOVE)
        .bytes(&from.bits.to_be_bytes())
        .bytes(&from.offset.to_be_bytes())
        .bytes(&to.offset.to_be_bytes())
        .bytes(&from.header.to_be_bytes())
        .bytes(&to.header.to_be_bytes()))
}

/// `dec_ttl(1,2)`: the controllers that receive packets whose time-to-live has expired.
fn read_dec_ttl(word: &Token<'_>) -> Result<Body, BadText> {
    let expected = "controllers' numbers (dec_ttl(1,2))";
    let read = |id: &str| read_number(id.trim()).and_then(|id| u16::try_from(id).ok());
    let ids: Option<Vec<u16>> = word.needed(expected)?.split(',').map(read).collect();
    let ids = ids.ok_or_else(|| word.fault(format!("expected {expected}")))?;
    let count = u16::try_from(ids.len()).map_err(|_| word.fault("these are too many"))?;
    let body = Body::of(subtype::DEC_TTL_CNT_IDS).bytes(&count.to_be_bytes()).bytes(&[0; 4]);
    Ok(ids.iter().fold(body, |body, id| body.bytes(&id.to_be_bytes())))
}

/// `controller(max_len=N,reason=R,id=N)`; OpenFlow's own output if that expresses it.
pub(super) fn read_controller(word: &Token<'_>) -> Result<Action, BadText> {
    let (mut max_len, mut reason, mut id) = (0xffffu16, 1u8, 0u16);
    for part in parts(word)? {
        match part.key {
            "max_len" => max_len = number(&part, "how many bytes, from 0 to 65535")?,
            "id" => id = number(&part, "a controller's number")?,
            "reason" => {
                let position = REASONS.iter().position(|name| Some(*name) == part.value);
                let position = position.and_then(|position| u8::try_from(position).ok());
                reason = position.ok_or_else(|| part.fault("expected no_match, action or invalid_ttl"))?;
            }
            _ => return Err(part.fault("expected max_len, reason or id")),
        }
    }
    if (reason, id) == (1, 0) {
        return Ok(Action::Output { port: PortNo::CONTROLLER, max_len });
    }
    let body = Body::of(subtype::CONTROLLER).bytes(&max_len.to_be_bytes()).bytes(&id.to_be_bytes());
    Ok(body.bytes(&[reason]).action())
}

/// `output(port=P,max_len=N)`: an output of the first bytes of a packet.
pub(super) fn read_output_trunc(word: &Token<'_>) -> Result<Action, BadText> {
    let (mut port, mut max_len) = (None, None);
    for part in parts(word)? {
        match part.key {
            "port" => port = part.value.and_then(|port| port.parse::<PortNo>().ok()),
            "max_len" => max_len = Some(number::<u32>(&part, "how many bytes")?),
            _ => return Err(part.fault("expected port or max_len")),
        }
    }
    let (Some(port), Some(max_len)) = (port, max_len) else {
        return Err(word.fault("expected output(port=PORT,max_len=BYTES)"));
    };
    let port = short_port(word, port)?;
    Ok(Body::of(subtype::OUTPUT_TRUNC).bytes(&port.to_be_bytes()).bytes(&max_len.to_be_bytes()).action())
}

/// `output:FIELD[…]`: the port is in a field. `None` if the text is not a field.
pub(super) fn read_output_reg(word: &Token<'_>, text: &str) -> Result<Option<Action>, BadText> {
    if !text.ends_with(']') {
        return Ok(None);
    }
    let from = Subfield::read(word, text)?;
    let body = Body::of(subtype::OUTPUT_REG).bytes(&from.pack(word)?.to_be_bytes());
    let body = body.bytes(&from.header.to_be_bytes()).bytes(&0xffffu16.to_be_bytes()).bytes(&[0; 6]);
    Ok(Some(body.action()))
}

/// The words between an action's parentheses, their offsets counted in the whole text.
fn parts<'a>(word: &Token<'a>) -> Result<Vec<Token<'a>>, BadText> {
    let start = word.value_offset();
    let parts = words(word.value.unwrap_or_default()).map_err(|fault| fault.shifted(start))?;
    Ok(parts.into_iter().map(|part| Token { offset: part.offset + start, ..part }).collect())
}

/// Some bits of a field: `NAME[]`, `NAME[3]`, `NAME[0..15]`.
struct Subfield {
    header: u32,
    offset: u16,
    bits: u16,
}

impl Subfield {
    /// From Nicira's `ofs_nbits`: the offset in the upper ten bits, the width less one in the lower six.
    fn packed(ofs_nbits: u16, header: u32) -> Self {
        Subfield { header, offset: ofs_nbits >> 6, bits: (ofs_nbits & 0x3f) + 1 }
    }

    fn pack(&self, word: &Token<'_>) -> Result<u16, BadText> {
        if self.bits > 64 || self.offset > 1023 {
            return Err(word.fault("this action has room for 64 bits only"));
        }
        Ok(self.offset << 6 | (self.bits - 1))
    }

    fn show(&self) -> Option<String> {
        let (mut text, width) = names::name_of_header(self.header)?;
        let (offset, bits) = (u32::from(self.offset), u32::from(self.bits));
        if bits == 0 || offset + bits > width {
            return None;
        }
        let written = match (offset, bits) {
            (0, bits) if bits == width => write!(text, "[]"),
            (offset, 1) => write!(text, "[{offset}]"),
            (offset, bits) => write!(text, "[{offset}..{}]", offset + bits - 1),
        };
        written.ok().map(|()| text)
    }

    fn read(word: &Token<'_>, text: &str) -> Result<Self, BadText> {
        let expected =
            || word.fault(format!("expected some bits of a field (NXM_NX_REG0[0..15]), found '{text}'"));
        let (name, range) =
            text.strip_suffix(']').and_then(|text| text.split_once('[')).ok_or_else(expected)?;
        let Some((header, width)) = names::header_named(name) else {
            return Err(word.fault(format!("'{name}' is no field; expected one as NXM_NX_REG0 or eth_dst")));
        };
        let bit = |text: &str| text.parse::<u32>().map_err(|_| expected());
        let (first, last) = match range.split_once("..") {
            None if range.is_empty() => (0, width - 1),
            None => (bit(range)?, bit(range)?),
            Some((first, last)) => (bit(first)?, bit(last)?),
        };
        if first > last || last >= width {
            return Err(word.fault(format!("{name} has {width} bits, [{range}] is outside")));
        }
        Ok(Subfield { header, offset: first as u16, bits: (last - first + 1) as u16 })
    }
}

/// A body that is being written.
struct Body(Vec<u8>);

impl Body {
    fn of(subtype: u16) -> Self {
        Body(subtype.to_be_bytes().to_vec())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The action, padded to a multiple of eight: its header takes eight bytes, so its body's length is one too.
    fn action(mut self) -> Action {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        Action::Experimenter { experimenter: NICIRA, body: self.0 }
    }
}

fn u16_at(body: &[u8], at: usize) -> Option<u16> {
    body.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn u32_at(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn u64_at(body: &[u8], at: usize) -> Option<u64> {
    body.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}

fn port_at(body: &[u8], at: usize) -> Option<PortNo> {
    u16_at(body, at).map(PortNo::from_v10)
}

#[cfg(test)]
mod tests {
    use super::super::{actions_to_string, parse_actions};

    fn check(text: &str) {
        assert_eq!(actions_to_string(&parse_actions(text).unwrap()), text);
    }

    #[test]
    fn what_is_read_is_printed() {
        for text in [
            "resubmit:5",
            "resubmit(5,6)",
            "resubmit(,7)",
            "resubmit(,)",
            "set_tunnel:0x5",
            "set_tunnel64:0x5",
            "load:0x5->NXM_NX_REG0[0..15]",
            "load:0x1->OXM_OF_METADATA[3]",
            "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
            "note:00.01.02.00.00.00",
            "controller(reason=no_match,max_len=100,id=3)",
            "dec_ttl(1,2)",
            "output:NXM_NX_REG0[0..5]",
            "output(port=1,max_len=100)",
            "pop_queue,exit,ct_clear",
        ] {
            check(text);
        }
    }

    #[test]
    fn what_text_does_not_say_is_kept_in_hexadecimal() {
        // A resubmit with something in its padding; an unknown subtype; a body that is cut off.
        check("experimenter(0x00002320,0001000500000001)");
        check("experimenter(0x00002320,ffff000500000001)");
        check("experimenter(0x00002320,00)");
    }
}
