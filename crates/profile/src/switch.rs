//! Which switch a profile is about, and how a switch is recognised by what it reports.

use std::fmt;

/// Patterns by which a profile recognises switches.
pub const RECOGNITIONS_MAX: usize = 16;

/// A version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenFlowVersion {
    /// OpenFlow 1.0.
    V10,
    /// OpenFlow 1.3.
    V13,
}

impl OpenFlowVersion {
    /// All of them.
    pub const ALL: [OpenFlowVersion; 2] = [OpenFlowVersion::V10, OpenFlowVersion::V13];

    /// As people write it.
    pub const fn text(self) -> &'static str {
        match self {
            OpenFlowVersion::V10 => "1.0",
            OpenFlowVersion::V13 => "1.3",
        }
    }
}

impl fmt::Display for OpenFlowVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What a switch reports of itself (OpenFlow 1.3.5, A.3.5.1: OFPMP_DESC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Description<'a> {
    /// `mfr_desc`.
    pub manufacturer: &'a str,
    /// `hw_desc`.
    pub hardware: &'a str,
    /// `sw_desc`.
    pub software: &'a str,
}

/// A pattern of descriptions. A text that ends in `*` stands for all texts that begin so. An empty text stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recognition {
    /// `mfr_desc`.
    pub manufacturer: String,
    /// `hw_desc`.
    pub hardware: String,
    /// `sw_desc`.
    pub software: String,
}

impl Recognition {
    /// How well a description fits: None if it does not; otherwise a number that is higher for a more precise pattern.
    pub fn fits(&self, description: &Description<'_>) -> Option<usize> {
        let manufacturer = text_fits(&self.manufacturer, description.manufacturer)?;
        let hardware = text_fits(&self.hardware, description.hardware)?;
        let software = text_fits(&self.software, description.software)?;
        Some(manufacturer + hardware + software)
    }
}

/// The length of the pattern counts, and a whole text counts one more than its prefix.
fn text_fits(pattern: &str, text: &str) -> Option<usize> {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start).then_some(start.len()),
        None if pattern.is_empty() => Some(0),
        None => (pattern == text).then_some(pattern.len() + 1),
    }
}

/// Which switch it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Switch {
    /// Who made it.
    pub vendor: String,
    /// The model.
    pub hardware: String,
    /// The version of its firmware.
    pub firmware: String,
    /// The rate of its ports. None: any.
    pub link_bits_per_s: Option<f64>,
    /// The versions of OpenFlow that it speaks. Empty: any.
    pub openflow: Vec<OpenFlowVersion>,
    /// By which descriptions it is recognised. One that fits is enough.
    pub recognised_by: Vec<Recognition>,
}

impl Switch {
    /// How well a description fits: None if it does not; otherwise the most precise pattern counts.
    pub fn recognises(&self, description: &Description<'_>) -> Option<usize> {
        self.recognised_by.iter().filter_map(|pattern| pattern.fits(description)).max()
    }
}
