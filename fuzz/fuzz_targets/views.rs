//! The hot messages read in place, against the same messages decoded.
#![no_main]

#[path = "../checks/openflow.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::views(bytes));
