//! Package files.
#![no_main]

#[path = "../checks/package.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::package_file(bytes));
