//! How far the reading of a switch's tables is, and what the last reading found.
//!
//! In: nothing. Out: types; `reading` changes them.

/// The reading of one switch.
#[derive(Debug)]
pub struct Progress {
    /// The tables are to be read as soon as there is room for one more reading.
    pub is_wanted: bool,
    /// The switch waits in the queue of new sessions for its reading.
    pub is_queued: bool,
    /// Which readings mark what they saw with a set bit: every second one.
    pub parity: bool,
    /// The tickets of the answers that are not complete: rules, groups, meters.
    pub tickets: [Option<u64>; 3],
    /// Whether rules come back with the instructions with which they were sent. Some switches write them in another way.
    pub rules_exact: bool,
    /// The same for groups and meters.
    pub others_exact: bool,
    /// Rules of other owners in the last reading, and in the present one.
    pub foreign: [u64; 2],
    /// Complete readings.
    pub count: u64,
    /// Entries that a reading found missing or changed.
    pub repaired: u64,
    /// After a failed reading, none begins before.
    pub not_before_ms: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            is_wanted: false,
            is_queued: false,
            parity: false,
            tickets: [None; 3],
            rules_exact: true,
            others_exact: true,
            foreign: [0; 2],
            count: 0,
            repaired: 0,
            not_before_ms: 0,
        }
    }
}

impl Progress {
    /// Whether a reading is under way.
    pub fn is_under_way(&self) -> bool {
        self.tickets.iter().any(Option::is_some)
    }

    /// Gives up the reading that is under way.
    pub fn stop(&mut self) {
        self.tickets = [None; 3];
        self.is_wanted = false;
        self.not_before_ms = 0;
    }
}
