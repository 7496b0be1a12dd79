//! The streams of a switch and a controller through the proxy.
#![no_main]

#[path = "../checks/proxy.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::proxy_stream(bytes));
