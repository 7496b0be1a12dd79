//! Runs the app `multipath` in a process of its own.

burnet_sdk::main!(multipath::Multipath);
