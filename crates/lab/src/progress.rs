//! The line of progress of a run of several parts.
//!
//! Pure: the time is an argument.

use std::time::Duration;

/// Which part begins, of how many, and how long the rest may take if it takes as long as what is done.
pub fn progress(done: usize, total: usize, name: &str, elapsed: Duration) -> String {
    let left = u32::try_from(done).ok().filter(|done| *done > 0).map(|done| {
        let rest = u32::try_from(total).unwrap_or(u32::MAX).saturating_sub(done);
        let left_s = (elapsed / done).saturating_mul(rest).as_secs();
        format!(", about {} min {} s left", left_s / 60, left_s % 60)
    });
    format!("{} of {total}: {name}{}", done + 1, left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_known_once_a_part_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(progress(0, 8, "cold", seconds(9)), "1 of 8: cold");
        assert_eq!(progress(2, 8, "cold", seconds(50)), "3 of 8: cold, about 2 min 30 s left");
    }
}
