//! Makes text for the operator safe: characters that change how other text appears are shown as escapes.
//!
//! In: text or a log line. Out: the same text, with each bidirectional control character as `\u` and four hexadecimal
//! digits, which JSON reads as that character. Control characters in text from outside are escaped where the text
//! arrives ([`monitor_channel::app::legible`]). This is the last place before a terminal or a file. It never changes
//! what is stored.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Escapes text for a terminal, or JSON.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(turns) {
        return Cow::Borrowed(text);
    }
    let mut spelt = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if turns(character) {
            // Writing to a string cannot fail.
            let _ = write!(spelt, "\\u{:04x}", u32::from(character));
        } else {
            spelt.push(character);
        }
    }
    Cow::Owned(spelt)
}

/// The characters of [`monitor_channel::app::steers`] except a terminal's own control characters and our line ends.
fn turns(character: char) -> bool {
    monitor_channel::app::steers(character) && !character.is_control()
}

/// A log whose lines are made visible. Each line must be written whole.
#[derive(Debug)]
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(visible(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_turns_is_spelt_out_and_our_own_lines_stay() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("a\u{202e}txt.exe\n", "a\\u202etxt.exe\n");
        check("\u{2066}\u{61c}\u{200e}", "\\u2066\\u061c\\u200e");
        check("\u{1b}[31mred\u{1b}[0m, שלום\n", "\u{1b}[31mred\u{1b}[0m, שלום\n");
        let json = serde_json::to_string("x\u{202e}y").unwrap();
        assert_eq!(serde_json::from_str::<String>(&visible(&json)).unwrap(), "x\u{202e}y");
        let mut log = Visible(Vec::new());
        log.write_all("app \u{202e}\n".as_bytes()).unwrap();
        assert_eq!(log.0, b"app \\u202e\n");
    }
}
