//! The layout of the C function table of a trusted app, built in or from a shared object.
//!
//! A shared object exports a static of type [`AppTable`] with the name [`TABLE_SYMBOL`]. A new layout gets a new
//! [`TABLE_VERSION`]. A table of another version is refused when it is loaded.

use std::ffi::c_void;

/// The version of [`AppTable`]'s layout and of the frames. Version 1 had kinds of frames for single services.
pub const TABLE_VERSION: u32 = 2;

/// The name of the static that a shared object exports.
pub const TABLE_SYMBOL: &str = "BURNET_APP";

/// The return values of a callback.
pub mod status {
    /// Success.
    pub const OK: i32 = 0;
    /// The app panicked; the panic was caught before it crossed the table. It is not called again.
    pub const PANICKED: i32 = 1;
    /// The passed frames were malformed. It is the kernel's fault.
    pub const MALFORMED: i32 = 2;
    /// The app refused its settings. It passed the reason to the sink as a log command.
    pub const BAD_SETTINGS: i32 = 3;
}

/// The receiver of an app's commands: a function of the kernel and its context.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandSink {
    /// Passed back to `push` unchanged.
    pub context: *mut c_void,
    /// Takes a sequence of whole command frames, `length` bytes from `frames`, and copies it. An app may call it only
    /// during the callback that got the sink.
    pub push: extern "C" fn(context: *mut c_void, frames: *const u8, length: usize),
}

/// The functions that create, call and destroy a trusted app.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AppTable {
    /// [`TABLE_VERSION`].
    pub version: u32,
    /// [`size_of`] this table, to detect a shorter one.
    pub size: u32,
    /// Creates an instance from its settings (a JSON object, UTF-8, `length` bytes). Null means failure.
    pub create: extern "C" fn(settings: *const u8, length: usize, sink: CommandSink) -> *mut c_void,
    /// Passes a sequence of whole event frames. Returns one of [`status`].
    pub on_events:
        extern "C" fn(app: *mut c_void, frames: *const u8, length: usize, sink: CommandSink) -> i32,
    /// Destroys the instance. Not called after a panic.
    pub destroy: extern "C" fn(app: *mut c_void),
}
