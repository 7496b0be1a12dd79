//! Nicira's fields whose bits have names, and the keywords for fragments.
//!
//! An exact value is `syn|ack`. With a mask, each relevant bit has a sign: `+syn-ack`. Bits without a name are printed
//! as a number.

use crate::value::{self, Style};

/// How the value of a Nicira field is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notation {
    /// As a value.
    Value(Style),
    /// By the names of its bits, the lowest first.
    Flags(&'static [&'static str]),
    /// As a keyword for each valid pair of value and mask.
    Fragment,
}

/// The bits of `ct_state` (ovs-fields(7)).
pub(super) static CT_STATE: [&str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];

/// The bits of `tcp_flags` (ovs-fields(7)).
pub(super) static TCP_FLAGS: [&str; 12] =
    ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"];

/// The keywords of `nw_frag` (ovs-fields(7)). Bit 0: it is a fragment. Bit 1: it is not the first.
const FRAGMENTS: [(&str, u128, Option<u128>); 5] =
    [("no", 0, None), ("yes", 1, Some(1)), ("first", 1, None), ("later", 3, None), ("not_later", 0, Some(2))];

impl Notation {
    /// The form of a value, for error messages.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Notation::Value(style) => style.expected(),
            Notation::Flags(_) => "flags (syn|ack, +syn-ack) or a number",
            Notation::Fragment => "no, yes, first, later or not_later",
        }
    }

    pub(super) fn show(self, value: u128, mask: Option<u128>) -> String {
        match (self, mask) {
            (Notation::Flags(names), _) => show_flags(names, value, mask)
                .unwrap_or_else(|| Notation::Value(Style::Hexadecimal(1)).show(value, mask)),
            (Notation::Fragment, _) => match FRAGMENTS.iter().find(|(_, v, m)| (*v, *m) == (value, mask)) {
                Some((word, ..)) => (*word).to_owned(),
                None => Notation::Value(Style::Hexadecimal(1)).show(value, mask),
            },
            (Notation::Value(style), None) => value::show(style, value),
            (Notation::Value(style), Some(mask)) => value::show_masked(style, value, mask),
        }
    }

    /// The value and the mask. The message says what was expected.
    pub(super) fn read(self, bits: u32, text: &str) -> Result<(u128, Option<u128>), String> {
        let starts_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
        let read = match self {
            Notation::Value(style) => return value::read_masked(style, bits, text),
            _ if starts_with_digit => return value::read_masked(Style::Hexadecimal(1), bits, text),
            Notation::Flags(names) => read_flags(names, text),
            Notation::Fragment => {
                FRAGMENTS.iter().find(|(word, ..)| *word == text).map(|(_, value, mask)| (*value, *mask))
            }
        };
        read.ok_or_else(|| format!("expected {}, found '{text}'", self.expected()))
    }
}

/// `None` if a bit has no name.
fn show_flags(names: &[&str], value: u128, mask: Option<u128>) -> Option<String> {
    if (value | mask.unwrap_or(0)) >> names.len() != 0 {
        return None;
    }
    let is_set = |number: usize, bits: u128| bits >> number & 1 == 1;
    let numbered = || names.iter().enumerate();
    Some(match mask {
        None if value == 0 => "0".to_owned(),
        None => {
            numbered().filter(|(n, _)| is_set(*n, value)).map(|(_, name)| *name).collect::<Vec<_>>().join("|")
        }
        Some(mask) => numbered()
            .filter(|(n, _)| is_set(*n, mask))
            .map(|(n, name)| format!("{}{name}", if is_set(n, value) { '+' } else { '-' }))
            .collect(),
    })
}

fn read_flags(names: &[&str], text: &str) -> Option<(u128, Option<u128>)> {
    let bit = |wanted: &str| names.iter().position(|name| *name == wanted).map(|number| 1u128 << number);
    if !text.starts_with(['+', '-']) {
        let bits: Option<Vec<u128>> = text.split('|').map(bit).collect();
        return Some((bits?.into_iter().fold(0, |all, bit| all | bit), None));
    }
    let (mut value, mut mask, mut rest) = (0, 0, text);
    while let Some(sign) = rest.chars().next() {
        let behind = rest.get(1..)?;
        let end = behind.find(['+', '-']).unwrap_or(behind.len());
        let flag = bit(behind.get(..end)?)?;
        if mask & flag != 0 {
            return None;
        }
        mask |= flag;
        value |= if sign == '+' { flag } else { 0 };
        rest = behind.get(end..)?;
    }
    Some((value, Some(mask)))
}

#[cfg(test)]
mod tests {
    use super::super::{match_to_string, parse_match};

    fn check(text: &str, again: &str) {
        assert_eq!(match_to_string(&parse_match(text).unwrap()), again);
    }

    #[test]
    fn what_is_no_flag_is_refused() {
        for text in [
            "tcp_flags=sin",
            "tcp_flags=+",
            "tcp_flags=+syn+syn",
            "tcp_flags=+syn-",
            "tcp_flags=+é",
            "nw_frag=maybe",
        ] {
            assert!(parse_match(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_have_names() {
        check("tcp,tcp_flags=0x12", "tcp,tcp_flags=syn|ack");
        check("tcp,tcp_flags=-ack+syn", "tcp,tcp_flags=+syn-ack");
        check("tcp,tcp_flags=0", "tcp,tcp_flags=0");
        check("ct_state=0x20/0x21", "ct_state=-new+trk");
        check("ct_state=0x100", "ct_state=0x100");
        check("ip,nw_frag=1/1", "ip,nw_frag=yes");
    }
}
