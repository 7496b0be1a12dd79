//! Bytes as lines of hexadecimal digits, sixteen bytes per line, with their characters.

use std::fmt::{self, Write};

const PER_LINE: usize = 16;

/// `00000000  04 02 …-…  |....|`, one line for every sixteen bytes.
pub(super) fn hex_dump(out: &mut String, bytes: &[u8]) -> fmt::Result {
    for (index, line) in bytes.chunks(PER_LINE).enumerate() {
        write!(out, "{:08x}  ", index * PER_LINE)?;
        for (position, byte) in line.iter().enumerate() {
            let separator = if position == PER_LINE / 2 - 1 { '-' } else { ' ' };
            write!(out, "{byte:02x}{separator}")?;
        }
        out.extend(std::iter::repeat_n("   ", PER_LINE - line.len()));
        let characters =
            line.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' });
        writeln!(out, "|{:<PER_LINE$}|", characters.collect::<String>())?;
    }
    Ok(())
}

/// Untrusted text on one line. Quotes, backslashes and everything that is not plain ASCII become octal escapes.
pub(super) fn printable(out: &mut String, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| match byte {
        b'\\' | b'"' => write!(out, "\\{byte:03o}"),
        b' '..=b'~' => out.write_char(char::from(*byte)),
        _ => write!(out, "\\{byte:03o}"),
    })
}
