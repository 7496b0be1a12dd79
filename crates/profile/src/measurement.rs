//! What a probe says about its own measurement: whether it finished, what it left out, and how well the profile fits.

/// Values that were not measured, in a file.
pub const NOT_MEASURED_MAX: usize = 200;

/// Judged parts in a file.
pub const FITS_MAX: usize = 200;

/// A value that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotMeasured {
    /// What: a key of the profile, or words.
    pub what: String,
    /// Why.
    pub why: String,
}

/// How well a part of the profile fits samples that were held back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    /// Which part: a key of the profile, or words.
    pub what: String,
    /// How many samples were held back.
    pub samples: u32,
    /// Their KS distance to the profile.
    pub ks: f64,
    /// The largest distance that counts as good.
    pub ks_limit: f64,
}

impl Fit {
    /// Whether the profile describes what was seen.
    pub fn is_good(&self) -> bool {
        self.ks <= self.ks_limit
    }
}

/// The measurement behind a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The switch left or the probe was stopped before the end.
    pub incomplete: bool,
    /// What was not measured.
    pub not_measured: Vec<NotMeasured>,
    /// How well it fits.
    pub fits: Vec<Fit>,
}
