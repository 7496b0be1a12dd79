//! The app that does harm as a shared object, so that tests can run it inside the kernel process, where the binary's own is not let.

burnet_sdk::shared_object!(misbehaving::Misbehaving);
