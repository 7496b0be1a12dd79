//! Files of switch profiles.
#![no_main]

#[path = "../checks/profile.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::profile_file(bytes));
