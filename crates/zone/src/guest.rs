//! The app's side of the C table: makes an [`AppTable`] from a Rust type.
//!
//! ```text
//!   kernel ──create, on_events, destroy──> extern "C" functions here ──> Guest::start, Guest::on_events
//! ```
//!
//! A panic of the app is caught here and never crosses the table. This module does not read events.

use crate::region::Region;
pub use abi::table::AppTable;
use abi::table::{CommandSink, TABLE_VERSION, status};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An app as its zone sees it: it takes events and returns commands, both as frames.
pub trait Guest: Sized {
    /// Creates the app from its settings, a JSON object. Its first commands are appended to `commands`. An error is a
    /// sentence for the operator.
    fn start(settings: &[u8], commands: &mut Vec<u8>) -> Result<Self, String>;

    /// The number of the zone, before the first event. The table has no such function.
    fn on_zone(&mut self, _zone: abi::ZoneId) {}

    /// Takes whole event frames, one after the other, and appends its commands.
    fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed>;

    /// The same, but it may stop when its commands should be passed on. Returns how many bytes of the events it has
    /// taken. The caller repeats the call for the rest.
    fn on_some_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<usize, abi::Malformed> {
        self.on_events(events, commands).map(|()| events.len())
    }

    /// The app has taken all events that waited at one worker, or many of them. Appends its commands for that worker.
    /// The table has no such function, because a trusted app gets its events in batches.
    fn on_caught_up(&mut self, _commands: &mut Vec<u8>) {}

    /// After how much time to wake the app, if it has requested that since the last call. The table has no such
    /// function.
    fn take_wake(&mut self) -> Option<Duration> {
        None
    }

    /// The requested time has passed. Appends the app's commands.
    fn on_wake(&mut self, _commands: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    /// Whether it is a service that exchanges messages with the monitor.
    fn serves_monitor(&self) -> bool {
        false
    }

    /// Takes a message of the monitor, in the form of its socket, and appends its commands.
    fn on_monitor(&mut self, _message: &[u8], _commands: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    /// The zone has shared memory with the tables of a service, or has it no more. The table has no such function: only a
    /// process zone has such memory.
    fn on_region(&mut self, _region: Region) {}

    /// Messages for the monitor since the last call, in order.
    fn take_for_monitor(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

/// An instance behind the table: the app, and a reused buffer for its commands.
struct Instance<G> {
    guest: G,
    commands: Vec<u8>,
}

/// The table of an app. For a shared object: a `static` of it, exported as [`abi::table::TABLE_SYMBOL`].
pub const fn table<G: Guest>() -> AppTable {
    AppTable {
        version: TABLE_VERSION,
        // A table is a few dozen bytes.
        size: size_of::<AppTable>() as u32,
        create: create::<G>,
        on_events: on_events::<G>,
        destroy: destroy::<G>,
    }
}

/// Exports a table from a shared object, under the name that a node looks up.
#[macro_export]
macro_rules! export_app {
    ($table:expr) => {
        #[allow(unsafe_code, reason = "the one symbol by which a node finds the app; a name of its own, so it clashes with nothing")]
        #[doc = "The table of this app."]
        #[unsafe(no_mangle)]
        pub static BURNET_APP: $crate::guest::AppTable = $table;
    };
}

/// The bytes that a caller passes. A null address is an empty list, as in C.
///
/// # Safety
/// Otherwise `length` bytes at `start` must be readable and must not change during `'a`.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if length == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; the address is not null.
    unsafe { std::slice::from_raw_parts(start, length) }
}

extern "C" fn create<G: Guest>(settings: *const u8, length: usize, sink: CommandSink) -> *mut c_void {
    // SAFETY: the table's contract: `length` readable bytes that stay as they are during this call.
    let settings = unsafe { bytes(settings, length) };
    let mut commands = Vec::new();
    let started = catch_unwind(AssertUnwindSafe(|| G::start(settings, &mut commands)));
    let guest = match started {
        Ok(Ok(guest)) => guest,
        Ok(Err(refusal)) => {
            say(&refusal, sink);
            return std::ptr::null_mut();
        }
        Err(_) => return std::ptr::null_mut(),
    };
    hand_over(&mut commands, sink);
    Box::into_raw(Box::new(Instance { guest, commands })).cast()
}

extern "C" fn on_events<G: Guest>(
    app: *mut c_void,
    frames: *const u8,
    length: usize,
    sink: CommandSink,
) -> i32 {
    // SAFETY: the table's contract: `app` came from `create` of this same table, was not destroyed, and is used by one thread at a
    // time.
    let instance = unsafe { &mut *app.cast::<Instance<G>>() };
    // SAFETY: the table's contract: `length` readable bytes that stay as they are during this call.
    let frames = unsafe { bytes(frames, length) };
    let Instance { guest, commands } = instance;
    // After a panic the instance is in an unknown state; the contract is that it is not called again.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut rest = frames;
        loop {
            let taken = guest.on_some_events(rest, commands)?;
            rest = rest.get(taken..).unwrap_or_default();
            if rest.is_empty() || taken == 0 {
                return Ok::<(), abi::Malformed>(());
            }
            // In small pieces, so that the buffer stays in the processor's nearest cache.
            hand_over(commands, sink);
        }
    }));
    hand_over(commands, sink);
    match done {
        Ok(Ok(())) => status::OK,
        Ok(Err(_)) => status::MALFORMED,
        Err(_) => status::PANICKED,
    }
}

extern "C" fn destroy<G: Guest>(app: *mut c_void) {
    // SAFETY: the table's contract: `app` came from `create` of this same table and is not used again.
    let instance = unsafe { Box::from_raw(app.cast::<Instance<G>>()) };
    // A panic while it is dropped has no consequence.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
}

fn hand_over(commands: &mut Vec<u8>, sink: CommandSink) {
    if !commands.is_empty() {
        (sink.push)(sink.context, commands.as_ptr(), commands.len());
        commands.clear();
    }
}

fn say(refusal: &str, sink: CommandSink) {
    let mut commands = Vec::new();
    let what = abi::command::What::Log(abi::command::Log { level: 0, text: refusal });
    let command = abi::Command { datapath: flow::DatapathId(0), ticket: 0, wants_receipt: false, what };
    abi::command::write::command(&mut commands, &command);
    hand_over(&mut commands, sink);
}
