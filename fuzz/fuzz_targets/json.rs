//! A message in JSON.
#![no_main]

#[path = "../checks/openflow.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::json(bytes));
