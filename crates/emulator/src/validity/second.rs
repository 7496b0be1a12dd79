//! In which seconds of a run a cause was present.
//!
//! In: each second, in order, in which it was. Out: their number, and the first of them as spans. Its size is fixed.

use super::verdict::Span;

/// How many spans are kept. Later ones are only counted, and the last span's end tells how far they go.
const SPANS_MAX: usize = 8;

/// The seconds of one cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seconds {
    spans: Vec<Span>,
    pub(super) doubtful: u64,
    pub(super) invalid: u64,
    /// The value of the worst second.
    pub(super) worst: f64,
}

impl Seconds {
    /// The value of a second, and whether it is above the limits.
    pub(super) fn note(&mut self, second: u64, value: f64, is_doubtful: bool, is_invalid: bool) {
        self.worst = self.worst.max(value);
        self.invalid += u64::from(is_invalid);
        if !is_doubtful && !is_invalid {
            return;
        }
        self.doubtful += 1;
        let full = self.spans.len() == SPANS_MAX;
        match self.spans.last_mut() {
            Some(last) if last.to_s == second || full => last.to_s = second + 1,
            _ => self.spans.push(Span { from_s: second, to_s: second + 1 }),
        }
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        self.spans.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_in_a_row_are_one_span_and_the_spans_are_bounded() {
        let mut seconds = Seconds::default();
        for second in [3, 4, 5, 9] {
            seconds.note(second, 0.5, true, false);
        }
        seconds.note(10, 0.1, false, false);
        assert_eq!(seconds.spans(), [Span { from_s: 3, to_s: 6 }, Span { from_s: 9, to_s: 10 }]);
        assert_eq!((seconds.doubtful, seconds.invalid, seconds.worst), (4, 0, 0.5));
        (10..1000).map(|step| step * 2).for_each(|second| seconds.note(second, 0.9, true, true));
        assert_eq!((seconds.spans().len(), seconds.invalid), (SPANS_MAX, 990));
        assert_eq!(seconds.spans().last().map(|last| last.to_s), Some(1999));
    }
}
