//! Runs the app `forwarding` in a process of its own.

burnet_sdk::main!(forwarding::Forwarding);
