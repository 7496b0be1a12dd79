//! How far the reading of a switch's tables is, and what the last reading found.
//!
//! In: nothing. Out: types; `reading` changes them.

/// How long a reading may take, and how long without a part of an answer, while others wait.
const TURN_MS: u64 = 10_000;
const SILENCE_MS: u64 = 3_000;

/// The longest turn of a switch that needed more than its earlier turns.
const TURN_MS_MAX: u64 = 600_000;

/// The reading of one switch.
#[derive(Debug)]
pub struct Progress {
    /// The tables are to be read as soon as there is room for one more reading.
    pub is_wanted: bool,
    /// The switch waits in the line for its reading.
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
    /// When the reading began.
    pub began_ms: u64,
    /// When the last part of an answer came.
    pub heard_ms: u64,
    /// How long it may take while others wait.
    turn_ms: u64,
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
            began_ms: 0,
            heard_ms: 0,
            turn_ms: TURN_MS,
        }
    }
}

impl Progress {
    /// Whether a reading is under way.
    pub fn is_under_way(&self) -> bool {
        self.tickets.iter().any(Option::is_some)
    }

    /// Whether an earlier turn was too short for it.
    pub fn is_slow(&self) -> bool {
        self.turn_ms > TURN_MS
    }

    /// Whether its turn is over, if others wait.
    pub fn is_over(&self, now_ms: u64) -> bool {
        let is_silent = now_ms >= self.heard_ms.max(self.began_ms) + SILENCE_MS;
        self.is_under_way() && (is_silent || now_ms >= self.began_ms + self.turn_ms)
    }

    /// Its next turn is longer.
    pub fn lengthen(&mut self) {
        self.turn_ms = (self.turn_ms * 2).min(TURN_MS_MAX);
    }

    /// It was read in its turn.
    pub fn end(&mut self) {
        self.count += 1;
        self.turn_ms = TURN_MS;
        self.foreign[0] = self.foreign[1];
    }

    /// Gives up the reading that is under way.
    pub fn stop(&mut self) {
        self.tickets = [None; 3];
        self.is_wanted = false;
        self.not_before_ms = 0;
    }
}
