//! In which seconds of a run a cause was present.
//!
//! In: each second, in order, in which it was. Out: their number, and the first of them as spans. Its size is fixed.

use std::time::Duration;

use super::verdict::Span;

/// How many spans are kept. Later ones are only counted, and the last span's end tells how far they go.
const SPANS_MAX: usize = 8;

/// A value of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Since the run began.
    pub(super) second: u64,
    pub(super) value: f64,
    /// For how long the value was measured. It can be longer than a second.
    pub(super) time: Duration,
}

/// The seconds of one cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seconds {
    spans: Vec<Span>,
    /// In how many values it was present.
    pub(super) doubtful: u64,
    /// The time of the values above the limit.
    pub(super) invalid: Duration,
    /// The value of the worst second.
    pub(super) worst: f64,
}

impl Seconds {
    /// A value, and whether it is above the limits. Two values may be of the same second.
    pub(super) fn note(&mut self, of: Value, is_doubtful: bool, is_invalid: bool) {
        let Value { second, value, time } = of;
        self.worst = self.worst.max(value);
        if is_invalid {
            self.invalid += time;
        }
        if !is_doubtful && !is_invalid {
            return;
        }
        self.doubtful += 1;
        let full = self.spans.len() == SPANS_MAX;
        match self.spans.last_mut() {
            Some(last) if last.to_s >= second || full => last.to_s = last.to_s.max(second + 1),
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

    fn of(second: u64, value: f64) -> Value {
        Value { second, value, time: Duration::from_secs(1) }
    }

    #[test]
    fn seconds_in_a_row_are_one_span_and_the_spans_are_bounded() {
        let mut seconds = Seconds::default();
        for second in [3, 4, 5, 9] {
            seconds.note(of(second, 0.5), true, false);
        }
        seconds.note(of(10, 0.1), false, false);
        assert_eq!(seconds.spans(), [Span { from_s: 3, to_s: 6 }, Span { from_s: 9, to_s: 10 }]);
        assert_eq!((seconds.doubtful, seconds.invalid, seconds.worst), (4, Duration::ZERO, 0.5));
        (10..1000).map(|step| step * 2).for_each(|second| seconds.note(of(second, 0.9), true, true));
        assert_eq!((seconds.spans().len(), seconds.invalid), (SPANS_MAX, Duration::from_secs(990)));
        assert_eq!(seconds.spans().last().map(|last| last.to_s), Some(1999));
    }

    #[test]
    fn two_values_of_a_second_are_one_span() {
        let mut seconds = Seconds::default();
        [3, 4, 4, 3].into_iter().for_each(|second| seconds.note(of(second, 0.5), true, true));
        assert_eq!(seconds.spans(), [Span { from_s: 3, to_s: 5 }]);
    }
}
