//! Runs the access list in a process of its own.

burnet_sdk::main!(acl::Acl);
