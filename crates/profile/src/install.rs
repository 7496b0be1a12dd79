//! The install buffer: where rules wait between the CPU and the hardware table.

/// What happens to a rule that finds the buffer full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferFull {
    /// The CPU waits until there is place.
    #[default]
    Wait,
    /// The rule goes to the software table.
    Spill,
    /// The switch sends the error OFPFMFC_TABLE_FULL.
    Refuse,
}

/// The install buffer. Every `batch_rules / rate_per_s` seconds it gives up to `batch_rules` to the hardware, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Install {
    /// How many rules wait at most.
    pub size_rules: u32,
    /// How many rules a second it gives to the hardware at most.
    pub rate_per_s: f64,
    /// How many it gives at once.
    pub batch_rules: u32,
    /// What happens when it is full.
    pub when_full: BufferFull,
}

impl Default for Install {
    /// One rule a second, one at a time.
    fn default() -> Self {
        Install { size_rules: 1, rate_per_s: 1.0, batch_rules: 1, when_full: BufferFull::Wait }
    }
}

impl Install {
    /// The time from one batch to the next.
    pub fn period_us(&self) -> f64 {
        1e6 * f64::from(self.batch_rules) / self.rate_per_s
    }
}
