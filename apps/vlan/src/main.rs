//! Runs the static networks in a process of its own.

burnet_sdk::main!(vlan::Vlan);
