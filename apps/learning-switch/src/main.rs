//! Runs the learning switch in a process of its own.

burnet_sdk::main!(learning_switch::LearningSwitch);
