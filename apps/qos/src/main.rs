//! Runs the app `qos` in a process of its own.

burnet_sdk::main!(qos::Qos);
