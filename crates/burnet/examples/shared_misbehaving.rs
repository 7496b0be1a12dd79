//! The misbehaving app as a shared object. Tests use it inside the kernel process, where the built-in one may not
//! run.

burnet_sdk::shared_object!(misbehaving::Misbehaving);
