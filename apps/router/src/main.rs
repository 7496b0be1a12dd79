//! Runs the app `router` in a process of its own.

burnet_sdk::main!(router::Router);
