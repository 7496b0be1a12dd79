//! The misbehaving app as a shared object, for the baseline alone: there it runs inside the kernel, as an app of a monolithic controller does.

burnet_sdk::shared_object!(misbehaving::Misbehaving);
