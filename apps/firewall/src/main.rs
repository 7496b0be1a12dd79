//! Runs the firewall in a process of its own.

burnet_sdk::main!(firewall::Firewall);
