//! Runs the DHCP server in a process of its own.

burnet_sdk::main!(dhcp::Dhcp);
