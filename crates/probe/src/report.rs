//! The short table at the end of a probe.
//!
//! In: a profile. Out: lines of text. It measures and computes nothing.

use profile::Profile;

/// The lines.
pub fn table(profile: &Profile) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let hardware = profile.hardware.iter().flat_map(|hardware| &hardware.capacities);
    for capacity in hardware {
        lines.push(("hardware table".to_owned(), format!("{} entries", capacity.entries)));
    }
    for left_out in &profile.measurement.not_measured {
        lines.push(("not measured".to_owned(), format!("{} ({})", left_out.what, left_out.why)));
    }
    lines.into_iter().map(|(what, value)| format!("{what:<16}{value}\n")).collect()
}
