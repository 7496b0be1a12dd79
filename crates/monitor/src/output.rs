//! The output of an app, as lines for the log. Pure.
//!
//! In: bytes from the app's pipe, and the time. Out: printable lines, at most [`LINES_PER_S_MAX`] per second, and the
//! number of dropped lines. It buffers one incomplete line of at most [`LINE_BYTES_MAX`], and trusts no byte of it.

use crate::app::legible;
pub use monitor_channel::usage::{LINE_BYTES_MAX, LINES_PER_S_MAX};

/// How many output bytes of one app are read per second. An app that prints more blocks in its own write.
pub(crate) const BYTES_PER_S_MAX: usize = 1 << 20;

const WINDOW_MS: u64 = 1_000;

/// The prefix of a line from the launcher of a process zone about the zone. It is logged, but does not count as the
/// app's output. An app that prints this prefix hides only its own line.
pub const ZONE_REMARK: &str = "zone: ";

#[derive(Debug, Default)]
pub(crate) struct Output {
    unfinished: Vec<u8>,
    window_start_ms: u64,
    lines: u32,
    bytes: usize,
    left_out: u64,
    last_line: Option<String>,
}

impl Output {
    /// Whether all output for this second has been read.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.bytes >= BYTES_PER_S_MAX
    }

    /// The time of the next work without new output: reading again, or reporting dropped lines.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        (self.is_exhausted() || self.left_out > 0).then_some(self.window_start_ms + WINDOW_MS)
    }

    /// Takes the bytes that were read, and returns the lines to log.
    pub(crate) fn push(&mut self, bytes: &[u8], now_ms: u64) -> Vec<String> {
        let mut shown = Vec::from_iter(self.tick(now_ms));
        self.bytes = self.bytes.saturating_add(bytes.len());
        for byte in bytes {
            match byte {
                b'\n' => shown.extend(self.line()),
                byte => {
                    self.unfinished.push(*byte);
                    if self.unfinished.len() >= LINE_BYTES_MAX {
                        shown.extend(self.line());
                    }
                }
            }
        }
        shown
    }

    /// Starts a new second if the last is over, and returns the report about dropped lines.
    pub(crate) fn tick(&mut self, now_ms: u64) -> Option<String> {
        if now_ms.saturating_sub(self.window_start_ms) < WINDOW_MS {
            return None;
        }
        self.window_start_ms = now_ms;
        self.lines = 0;
        self.bytes = 0;
        self.say_left_out()
    }

    /// The app has ended: returns the remaining lines to log, and the last line that it printed.
    pub(crate) fn finish(mut self) -> (Vec<String>, Option<String>) {
        let mut shown = Vec::from_iter(self.line());
        shown.extend(self.say_left_out());
        (shown, self.last_line)
    }

    fn line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.unfinished);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end();
        if text.is_empty() {
            return None;
        }
        // Escaped control characters take up to six times the space.
        let line = legible(text, 6 * LINE_BYTES_MAX);
        if !line.starts_with(ZONE_REMARK) {
            self.last_line = Some(line.clone());
        }
        self.lines += 1;
        if self.lines > LINES_PER_S_MAX {
            self.left_out += 1;
            return None;
        }
        Some(line)
    }

    fn say_left_out(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| {
            format!("({left_out} more lines were dropped; the limit is {LINES_PER_S_MAX} per second)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(printed: &[u8], expected: &[&str], last: Option<&str>) {
        // The lines do not depend on how the bytes are split into reads.
        for piece_bytes in [1, 3, printed.len().max(1)] {
            let mut output = Output::default();
            let mut shown: Vec<String> =
                printed.chunks(piece_bytes).flat_map(|piece| output.push(piece, 5)).collect();
            let (rest, last_line) = output.finish();
            shown.extend(rest);
            assert_eq!(shown, expected);
            assert_eq!(last_line.as_deref(), last);
        }
    }

    #[test]
    fn bytes_that_are_no_text_come_out_legible() {
        check(b"\xff\xfe\n", &["\u{fffd}\u{fffd}"], Some("\u{fffd}\u{fffd}"));
        check(b"\x1b[31mred\x00\n", &["\\u{1b}[31mred\\u{0}"], Some("\\u{1b}[31mred\\u{0}"));
    }

    #[test]
    fn lines_are_kept_and_empty_ones_are_not() {
        check(b"", &[], None);
        check(b"one\r\n\n  \ntwo", &["one", "two"], Some("two"));
    }

    #[test]
    fn what_the_launcher_says_of_the_zone_is_logged_and_is_not_the_apps_last_word() {
        check(b"zone: processes is not enforced\n", &["zone: processes is not enforced"], None);
        check(b"one\nzone: two\n", &["one", "zone: two"], Some("one"));
    }

    #[test]
    fn a_line_without_end_is_logged_in_pieces() {
        let mut output = Output::default();
        let shown = output.push(&[b'x'; 2 * LINE_BYTES_MAX + 1], 0);
        assert_eq!(shown.iter().map(String::len).collect::<Vec<_>>(), [LINE_BYTES_MAX, LINE_BYTES_MAX]);
        assert_eq!(output.finish().0, ["x"]);
    }

    #[test]
    fn a_flood_is_counted_and_the_next_second_is_fresh() {
        let mut output = Output::default();
        assert_eq!(output.push(&b"x\n".repeat(150), 10).len(), LINES_PER_S_MAX as usize);
        assert_eq!(output.next_wake_ms(), Some(WINDOW_MS));
        assert_eq!(output.tick(999), None);
        let said = output.tick(1_000).unwrap();
        assert!(said.starts_with("(50 more lines"), "{said}");
        assert_eq!(output.next_wake_ms(), None);
        assert_eq!(output.push(b"y\n", 1_001), ["y"]);
    }

    #[test]
    fn an_app_that_prints_too_much_is_not_read_until_the_next_second() {
        let mut output = Output::default();
        output.push(&vec![b'x'; BYTES_PER_S_MAX], 10);
        assert!(output.is_exhausted());
        assert_eq!(output.next_wake_ms(), Some(WINDOW_MS));
        output.tick(WINDOW_MS);
        assert!(!output.is_exhausted());
    }
}
