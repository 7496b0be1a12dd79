//! The text form of field values: addresses as addresses, ports by name, the rest as numbers.
//!
//! JSON and text use the same values. Never checks whether a field may have a mask.

use crate::field::Field;
use crate::mac::MacAddr;
use crate::port::PortNo;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Port,
    Ethernet,
    Ipv4,
    Ipv6,
    Decimal,
    /// Hexadecimal with at least this many digits.
    Hexadecimal(usize),
}

impl Style {
    pub(crate) fn of(field: Field) -> Style {
        use Field::*;
        match field {
            InPort | InPhyPort => Style::Port,
            EthDst | EthSrc | ArpSha | ArpTha | Ipv6NdSll | Ipv6NdTll => Style::Ethernet,
            Ipv4Src | Ipv4Dst | ArpSpa | ArpTpa => Style::Ipv4,
            Ipv6Src | Ipv6Dst | Ipv6NdTarget => Style::Ipv6,
            EthType => Style::Hexadecimal(4),
            Ipv6Flabel => Style::Hexadecimal(5),
            Metadata | TunnelId | VlanVid | Ipv6Exthdr => Style::Hexadecimal(1),
            _ => Style::Decimal,
        }
    }

    /// The form of a value of this style, for error messages.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Style::Port => "a port number or name (1, LOCAL)",
            Style::Ethernet => "an Ethernet address (00:11:22:33:44:55)",
            Style::Ipv4 => "an IPv4 address (10.0.0.1)",
            Style::Ipv6 => "an IPv6 address (2001:db8::1)",
            Style::Decimal | Style::Hexadecimal(_) => "a number (10, 0xa)",
        }
    }
}

/// The value without a mask.
pub(crate) fn show(style: Style, value: u128) -> String {
    match style {
        Style::Port => PortNo((value & 0xffff_ffff) as u32).to_string(),
        Style::Ethernet => MacAddr::from_u64((value & 0xffff_ffff_ffff) as u64).to_string(),
        Style::Ipv4 => Ipv4Addr::from((value & 0xffff_ffff) as u32).to_string(),
        Style::Ipv6 => Ipv6Addr::from(value).to_string(),
        Style::Decimal => value.to_string(),
        Style::Hexadecimal(digits) => format!("0x{value:0digits$x}"),
    }
}

/// `value/mask`; IP addresses with a prefix length if the mask is a prefix.
pub(crate) fn show_masked(style: Style, value: u128, mask: u128) -> String {
    match (style, prefix_len(style, mask)) {
        (_, Some(length)) => format!("{}/{length}", show(style, value)),
        (Style::Decimal | Style::Port, None) => format!("{value:#x}/{mask:#x}"),
        _ => format!("{}/{}", show(style, value), show(style, mask)),
    }
}

/// The prefix length of an IP address's mask, if the mask is a prefix.
fn prefix_len(style: Style, mask: u128) -> Option<u32> {
    let bits = match style {
        Style::Ipv4 => 32,
        Style::Ipv6 => 128,
        _ => return None,
    };
    let length = mask.count_ones();
    (prefix_mask(bits, length) == mask).then_some(length)
}

/// `length` ones in front of zeros, `bits` in all.
pub(crate) fn prefix_mask(bits: u32, length: u32) -> u128 {
    let ones = 1u128.checked_shl(length).map_or(u128::MAX, |one| one - 1);
    ones.checked_shl(bits.saturating_sub(length)).unwrap_or(0)
}

/// A decimal or `0x` hexadecimal number without a sign.
pub(crate) fn read_number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plausible = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(digits, radix).ok().filter(|_| plausible)
}

/// A value without a mask. The message says what was expected.
pub(crate) fn read(style: Style, bits: u32, text: &str) -> Result<u128, String> {
    let value = match style {
        Style::Port => text.parse::<PortNo>().ok().map(|port| u128::from(port.0)),
        Style::Ethernet => text.parse::<MacAddr>().ok().map(|address| u128::from(address.to_u64())),
        Style::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(u32::from(address))),
        Style::Ipv6 => text.parse::<Ipv6Addr>().ok().map(u128::from),
        Style::Decimal | Style::Hexadecimal(_) => read_number(text),
    };
    let value = value.ok_or_else(|| format!("expected {}, found '{text}'", style.expected()))?;
    fits(value, bits)
}

/// A value, and the mask if one follows a slash: in the same form, or as an IP prefix length.
pub(crate) fn read_masked(style: Style, bits: u32, text: &str) -> Result<(u128, Option<u128>), String> {
    let Some((value, mask)) = text.split_once('/') else {
        return Ok((read(style, bits, text)?, None));
    };
    let is_address = matches!(style, Style::Ipv4 | Style::Ipv6);
    let mask = match mask.parse::<u32>() {
        Ok(length) if is_address && length <= bits => prefix_mask(bits, length),
        Ok(_) if is_address => return Err(format!("a prefix has at most {bits} bits, found '{mask}'")),
        _ if style == Style::Ethernet && mask.starts_with("0x") => read(Style::Hexadecimal(1), bits, mask)?,
        _ => read(style, bits, mask)?,
    };
    let value = read(style, bits, value)?;
    Ok((value, Some(mask)))
}

fn fits(value: u128, bits: u32) -> Result<u128, String> {
    match value.checked_shr(bits) {
        None | Some(0) => Ok(value),
        Some(_) => Err(format!("{value:#x} is wider than {bits} bits")),
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn show_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hexadecimal digits, two for a byte.
pub(crate) fn read_hex(text: &str) -> Result<Vec<u8>, String> {
    let expected = || format!("expected hexadecimal digits, two for each byte, found '{text}'");
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected());
    }
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(expected)
}

impl Field {
    /// Parses a value, and the mask if one follows a slash: `10.0.0.0/8`, `01:00:00:00:00:00/01:00:00:00:00:00`,
    /// `LOCAL`, `0x800`. Bits of the value outside the mask are kept as they were written.
    ///
    /// # Errors
    /// A sentence with what was expected and what was found.
    ///
    /// ```
    /// use flow::Field;
    /// assert_eq!(Field::Ipv4Dst.read_value("10.0.0.0/8"), Ok((0x0a00_0000, Some(0xff00_0000))));
    /// assert!(Field::EthDst.read_value("10.0.0.1").is_err());
    /// ```
    pub fn read_value(self, text: &str) -> Result<(u128, Option<u128>), String> {
        read_masked(Style::of(self), self.bits(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(field: Field, text: &str) {
        let read = read_masked(Style::of(field), field.bits(), text);
        assert!(read.is_err(), "{text}: {read:?}");
    }

    fn check(field: Field, text: &str, value: u128, mask: Option<u128>, again: &str) {
        assert_eq!(read_masked(Style::of(field), field.bits(), text), Ok((value, mask)), "{text}");
        let shown = match mask {
            Some(mask) => show_masked(Style::of(field), value, mask),
            None => show(Style::of(field), value),
        };
        assert_eq!(shown, again);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in ["", "/", "1/", "+1", "-1", "0x", "65536", "1/65536", "1/2/3", "é"] {
            check_refused(Field::TcpSrc, text);
        }
        for text in ["10.0.0.1/33", "10.0.0", "10.0.0.1/-1", "10.0.0.1/255.0.0", "300.0.0.0"] {
            check_refused(Field::Ipv4Src, text);
        }
        check_refused(Field::Ipv6Src, "::1/129");
        check_refused(Field::VlanVid, "0x2000");
        check_refused(Field::EthSrc, "00:00:00:00:00:01/5");
    }

    #[test]
    fn values_are_shown_as_what_they_are() {
        check(Field::InPort, "local", 0xffff_fffe, None, "LOCAL");
        check(Field::Ipv4Src, "10.0.0.0/8", 0x0a00_0000, Some(0xff00_0000), "10.0.0.0/8");
        check(Field::Ipv4Src, "10.0.0.0/255.0.255.0", 0x0a00_0000, Some(0xff00_ff00), "10.0.0.0/255.0.255.0");
        check(Field::Ipv4Src, "0.0.0.0/0", 0, Some(0), "0.0.0.0/0");
        check(Field::Ipv6Dst, "::/0", 0, Some(0), "::/0");
        check(Field::Ipv6Dst, "::1/128", 1, Some(u128::MAX), "::1/128");
        check(Field::EthType, "2048", 0x800, None, "0x0800");
        check(Field::TcpDst, "0x50/0xfff0", 0x50, Some(0xfff0), "0x50/0xfff0");
        check(
            Field::EthDst,
            "1:0:0:0:0:0/0x010000000000",
            1 << 40,
            Some(1 << 40),
            "01:00:00:00:00:00/01:00:00:00:00:00",
        );
    }
}
