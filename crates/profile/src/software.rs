//! The software flow table: rules that the CPU forwards by, slowly.

use crate::quantiles::Quantiles;

/// When a rule goes to the software table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum SoftwareUse {
    /// Always: the switch has no hardware table.
    #[default]
    Only,
    /// When the hardware table or the install buffer is full, and they spill.
    WhenFull,
    /// Also when adds come faster than a rate: a token bucket. An add without a token goes to software.
    AboveRate {
        /// Adds a second that go to hardware.
        rate_per_s: f64,
        /// How many may come at once after a silence.
        burst_rules: u32,
    },
}

/// In which order rules move to hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromotionOrder {
    /// The one that was added first.
    #[default]
    Oldest,
    /// The one that was added last.
    Newest,
    /// The one with the most packets.
    MostUsed,
    /// The one whose last packet is the shortest ago.
    MostRecentlyUsed,
    /// The one with the highest priority.
    HighestPriority,
    /// Any.
    Random,
}

/// The shortest time between two promotions. A shorter one would be no period that a probe could tell from none.
pub const PROMOTION_PERIOD_MIN_US: f64 = 1000.0;
/// How many rules a promotion moves at most. Each is searched among all rules in software.
pub const PROMOTION_BATCH_MAX: u32 = 4096;

/// The engine that moves rules from software to hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promotion {
    /// From one run to the next. At least [`PROMOTION_PERIOD_MIN_US`].
    pub period_us: f64,
    /// How many rules move in a run, if the hardware has place for them. At most [`PROMOTION_BATCH_MAX`].
    pub batch_rules: u32,
    /// Which first.
    pub order: PromotionOrder,
}

/// The software flow table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Software {
    /// When a rule goes there.
    pub when: SoftwareUse,
    /// How many rules it has. Above it, the switch sends the error OFPFMFC_TABLE_FULL. None: no bound was seen.
    pub entries: Option<u32>,
    /// The probe stopped before it found the end: there are `entries` or more.
    pub at_least: bool,
    /// What the rules there forward together, in bits a second. None: the links are slower.
    pub forward_bits_per_s: Option<f64>,
    /// What they forward together, in packets a second. None: no bound was seen.
    pub forward_packets_per_s: Option<f64>,
    /// How much longer a packet takes than in hardware.
    pub forward_us: Quantiles,
    /// How rules move to hardware. None: they stay.
    pub promotion: Option<Promotion>,
}

impl Software {
    /// The number of rules above which an add is refused. None: none is known, also if there are `at_least` so many.
    pub fn bound(&self) -> Option<u32> {
        self.entries.filter(|_| !self.at_least)
    }
}
