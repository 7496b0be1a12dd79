//! The app's side of the C table: makes an [`AppTable`] of a Rust type.
//!
//! ```text
//!   kernel ──create, on_events, destroy──> extern "C" functions here ──> Guest::start, Guest::on_events
//! ```
//!
//! A panic of the app ends here: it never crosses the table. Never knows what an event says.

pub use abi::table::AppTable;
use abi::table::{CommandSink, TABLE_VERSION, status};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an app is to its zone: something that takes events and gives commands, as frames.
pub trait Guest: Sized {
    /// Comes to be from its settings, a JSON object. Its first commands go to `commands`. A refusal is a sentence for the operator.
    fn start(settings: &[u8], commands: &mut Vec<u8>) -> Result<Self, String>;

    /// Takes whole event frames, one after the other; appends its commands.
    fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed>;

    /// The same, until what it has commanded is worth to be handed over: how many bytes of the events it has taken. It is asked again for the others.
    fn on_some_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<usize, abi::Malformed> {
        self.on_events(events, commands).map(|()| events.len())
    }

    /// All that waited at one worker was taken, or many events of it; appends what follows for that worker. The table has no such function: a
    /// trusted app's events come together anyway.
    fn on_caught_up(&mut self, _commands: &mut Vec<u8>) {}

    /// Whether it is a service that the monitor tells something, or that tells the monitor something.
    fn serves_monitor(&self) -> bool {
        false
    }

    /// Takes a message of the monitor, as its socket carries it; appends its commands.
    fn on_monitor(&mut self, _message: &[u8], _commands: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    /// Messages for the monitor since this was last called, in order.
    fn take_for_monitor(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

/// An instance behind the table: the app, and a buffer for its commands that is kept.
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

/// Exports a table from a shared object, under the name by which a node looks for it.
#[macro_export]
macro_rules! export_app {
    ($table:expr) => {
        #[allow(unsafe_code, reason = "the one symbol by which a node finds the app; a name of its own, so it clashes with nothing")]
        #[doc = "The table of this app."]
        #[unsafe(no_mangle)]
        pub static BURNET_APP: $crate::guest::AppTable = $table;
    };
}

/// What a caller hands over; nothing at the address 0 is an empty list, as it is in C.
///
/// # Safety
/// Beyond that, `length` bytes at `start` can be read and stay as they are for `'a`.
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
    // A panic while it is let go is nobody's business any more.
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
