//! The C table by which a trusted app is called, built in or from a shared object: the layout, and nothing that calls it.
//!
//! A shared object exports a static of type [`AppTable`] by the name [`TABLE_SYMBOL`]. Never changes in place: a new layout gets a new
//! [`TABLE_VERSION`], and a table of another version is refused when it is loaded.

use std::ffi::c_void;

/// The version of [`AppTable`]'s layout and of the frames. Version 1 had kinds of frames for single services.
pub const TABLE_VERSION: u32 = 2;

/// The name of the static that a shared object exports.
pub const TABLE_SYMBOL: &str = "BURNET_APP";

/// What a callback says of how it ended.
pub mod status {
    /// All is well.
    pub const OK: i32 = 0;
    /// The app panicked; the panic was caught before it crossed the table. It is not called again.
    pub const PANICKED: i32 = 1;
    /// What was handed to it could not be read. It is the kernel's fault.
    pub const MALFORMED: i32 = 2;
    /// The app did not accept its settings; the reason was given through the sink as a log command.
    pub const BAD_SETTINGS: i32 = 3;
}

/// Where an app puts its commands: the kernel's function, and the kernel's context for it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandSink {
    /// Handed back to `push` unchanged.
    pub context: *mut c_void,
    /// Takes whole command frames, one after the other, `length` bytes from `frames`; copies them before it returns. Called only
    /// during the callback that the sink was handed to.
    pub push: extern "C" fn(context: *mut c_void, frames: *const u8, length: usize),
}

/// How a trusted app is made, called and let go.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AppTable {
    /// [`TABLE_VERSION`].
    pub version: u32,
    /// [`size_of`] this table, so that a shorter one is noticed.
    pub size: u32,
    /// Makes an instance from its settings (a JSON object, UTF-8, `length` bytes). Null means that it did not come to be.
    pub create: extern "C" fn(settings: *const u8, length: usize, sink: CommandSink) -> *mut c_void,
    /// Hands over whole event frames, one after the other. Returns one of [`status`].
    pub on_events:
        extern "C" fn(app: *mut c_void, frames: *const u8, length: usize, sink: CommandSink) -> i32,
    /// Lets the instance go. Not called after a panic.
    pub destroy: extern "C" fn(app: *mut c_void),
}
