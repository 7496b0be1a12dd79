//! What must hold for any file of a switch profile. The fuzz target calls it with what it finds, and a test of the profile crate with what
//! was kept (`corpus/profile_file`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use profile::Profile;
use profile::file::PROBLEMS_MAX;

/// A profile that is read is written, and read again as itself. A file that is refused has at least one problem, each with a line.
pub fn profile_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Profile::parse("fuzz", text) {
        Ok(profile) => {
            let written = profile.to_toml().expect("what was read is written");
            assert_eq!(Profile::parse("fuzz", &written).as_ref(), Ok(&profile), "{written}");
            rises(&profile);
        }
        Err(bad) => {
            assert!((1..=PROBLEMS_MAX).contains(&bad.problems.len()));
            let lines = text.lines().count().max(1);
            for problem in bad.problems.iter().filter(|problem| problem.file == "fuzz") {
                let line = problem.line as usize;
                assert!((1..=lines + 1).contains(&line), "{problem}");
            }
        }
    }
}

/// Delays have no negative value, and a higher quantile is not lower.
fn rises(profile: &Profile) {
    for table in [&profile.delay.ingress_us, &profile.cpu.add.service_us] {
        let values: Vec<f64> = (0..=20).map(|step| table.at(f64::from(step) / 20.0)).collect();
        assert!(values[0] >= 0.0 && values.windows(2).all(|pair| pair[0] <= pair[1]), "{values:?}");
    }
}
