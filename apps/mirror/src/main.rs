//! Runs the app `mirror` in a process of its own.

burnet_sdk::main!(mirror::Mirror);
