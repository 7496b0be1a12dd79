//! Manifests of apps.
#![no_main]

#[path = "../checks/package.rs"]
#[allow(dead_code, reason = "each target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::app_manifest(bytes));
