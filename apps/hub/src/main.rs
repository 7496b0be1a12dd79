//! Runs the hub in a process of its own.

burnet_sdk::main!(hub::Hub);
