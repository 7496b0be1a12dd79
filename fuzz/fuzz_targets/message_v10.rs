//! A message of OpenFlow 1.0 of any type.
#![no_main]

#[path = "../checks/openflow.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::message_v10(bytes));
