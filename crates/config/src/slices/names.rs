//! Switches, ports and links as operators write them: `s6`, `s6:1`, `s3:1-s1:1`.
//!
//! `s6` is Mininet's name for the switch with datapath id 6. Each other form of a datapath id works too, with a slash before the port:
//! `of:0000000000000006/1`.
//!
//! In: text. Out: ids, or what to write; and ids back as text. It does not know which switches exist.

use flow::{DatapathId, PortNo};
use view::{ConnectPoint, LinkId};

/// The highest datapath id that is printed in the short form. Higher ones are usually Ethernet addresses.
const SHORT_MAX: u64 = 0xffff;

/// A switch: `s6`, or a datapath id.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_switch(text: &str) -> Result<DatapathId, String> {
    let short =
        text.strip_prefix('s').filter(|digits| is_digits(digits)).and_then(|digits| digits.parse().ok());
    match short {
        Some(number) => Ok(DatapathId(number)),
        None => text.parse().map_err(|_| {
            format!("`{}` is no switch: write s6 for datapath id 6, or of:0000000000000006", shown(text))
        }),
    }
}

/// A port: `s6:1`, or a datapath id, a slash and the port.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_port(text: &str) -> Result<ConnectPoint, String> {
    let no_port = || format!("`{}` is no port of a switch: write s6:1 or of:0000000000000006/1", shown(text));
    let is_short = |(switch, _): &(&str, &str)| switch.starts_with('s');
    let parts = text.rsplit_once('/').or_else(|| text.rsplit_once(':').filter(is_short));
    let (switch, port) = parts.ok_or_else(no_port)?;
    let number = Some(port).filter(|digits| is_digits(digits)).and_then(|digits| digits.parse().ok());
    match number.map(PortNo) {
        Some(port) if port.0 > 0 && port <= PortNo::MAX => {
            Ok(ConnectPoint { switch: parse_switch(switch)?, port })
        }
        _ => Err(no_port()),
    }
}

/// A link by its ends: `s3:1-s1:1`.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_link(text: &str) -> Result<LinkId, String> {
    let (from, to) = text
        .split_once('-')
        .ok_or_else(|| format!("`{}` is no link: write its two ports, as in s3:1-s1:1", shown(text)))?;
    let link = LinkId { from: parse_port(from.trim())?, to: parse_port(to.trim())? };
    match link.from.switch == link.to.switch {
        true => Err(format!("`{}` begins and ends at one switch: write two", shown(text))),
        false => Ok(link),
    }
}

/// The name of a switch: `s6`, or its datapath id if that is large.
pub fn switch_name(datapath: DatapathId) -> String {
    match datapath.0 {
        number @ 0..=SHORT_MAX => format!("s{number}"),
        _ => datapath.to_string(),
    }
}

/// The name of a port, in a form that [`parse_port`] reads.
pub fn port_name(at: ConnectPoint) -> String {
    let separator = if at.switch.0 <= SHORT_MAX { ':' } else { '/' };
    format!("{}{separator}{}", switch_name(at.switch), at.port)
}

/// The name of a link, in a form that [`parse_link`] reads.
pub fn link_name(link: LinkId) -> String {
    format!("{}-{}", port_name(link.from), port_name(link.to))
}

/// The two parts of `s6:1 as 7`. The second is the name that the tenant sees.
pub(super) fn renamed(text: &str) -> (&str, Option<&str>) {
    match text.split_once(" as ") {
        Some((name, shown_as)) => (name.trim(), Some(shown_as.trim())),
        None => (text.trim(), None),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A wrong text in a message: printable, and not a whole file by mistake.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(48).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_in_all_forms_and_printed_in_one() {
        for text in ["s6:1", "s6/1", "6/1", "of:6/1", "of:0000000000000006/1", "00:00:00:00:00:00:00:06/1"] {
            assert_eq!(port_name(parse_port(text).unwrap()), "s6:1", "{text}");
        }
        let large = parse_port("of:00000012345678ab/7").unwrap();
        assert_eq!(port_name(large), "of:00000012345678ab/7");
        assert_eq!(parse_port(&port_name(large)), Ok(large));
        assert_eq!(link_name(parse_link("s3:1 - of:1/2").unwrap()), "s3:1-s1:2");
    }

    #[test]
    fn what_is_no_port_is_refused_with_what_to_write() {
        for text in
            ["", "s6", "6:1", "s6:0", "s6:x", "s6:+1", "s6:4294967295", "sx:1", "s:1", "of:6:1", "s-1:1"]
        {
            let why = parse_port(text).unwrap_err();
            assert!(why.contains("write s6"), "{text}: {why}");
        }
        assert!(parse_link("s1:1").unwrap_err().contains("write its two ports"));
        assert!(parse_link("s1:1-s1:2").unwrap_err().contains("one switch"));
        assert!(parse_switch("\u{1b}[2J").unwrap_err().contains("\\u{1b}"));
    }
}
