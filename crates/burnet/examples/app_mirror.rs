//! The app `mirror` of the folder `apps`, for tests of whole nodes. It runs by the app's own manifest.

burnet_sdk::main!(mirror::Mirror);
