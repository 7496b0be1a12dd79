//! Runs the misbehaving app in a process of its own.

burnet_sdk::main!(misbehaving::Misbehaving);
