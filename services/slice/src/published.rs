//! What a slice published last on a topic, so that it publishes changes only, and not too often.
//!
//! In: values, and the time. Out: a value, when it is due and differs from the last one. It publishes nothing.

/// The value that was published last.
#[derive(Debug)]
pub(crate) struct Published<T> {
    last: Option<T>,
    interval_ms: u64,
    due_ms: u64,
}

impl<T: PartialEq> Published<T> {
    /// Nothing was published. From now on, it may be in such intervals, in milliseconds.
    pub(crate) fn each(interval_ms: u64) -> Published<T> {
        Published { last: None, interval_ms, due_ms: 0 }
    }

    /// Whether it is time for [`Published::put`].
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.due_ms
    }

    /// The value is this now. Returns what to publish: nothing, if it is the same as the last one.
    pub(crate) fn put(&mut self, now_ms: u64, value: T) -> Option<&T> {
        self.due_ms = now_ms + self.interval_ms;
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        Some(self.last.insert(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_change_is_not_published_again_and_nothing_is_too_often() {
        let mut published = Published::each(2_000);
        let mut check = |now_ms: u64, value: usize, expected: bool| {
            let is_published = published.is_due(now_ms) && published.put(now_ms, value).is_some();
            assert_eq!(is_published, expected, "{now_ms} {value}");
        };
        check(0, 1, true);
        check(1, 2, false);
        check(1_999, 2, false);
        check(2_000, 2, true);
        check(4_000, 2, false);
        check(6_000, 1, true);
    }
}
