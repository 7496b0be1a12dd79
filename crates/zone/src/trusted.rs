//! A trusted app. It runs inside the kernel process with the operator's approval, and is called through the C table.
//!
//! ```text
//!   event frames ──> TrustedApp::on_events ──(C table)──> the app ──> command frames
//! ```
//!
//! Nothing isolates the kernel from a trusted app. Some errors are still caught. A panic is caught on the app's side
//! and reported here as a [`TrustedFault`]. A table of another version is refused. Commands get the same checks as
//! those of other apps. After a fault the app is never called again.

use abi::table::{AppTable, CommandSink, TABLE_SYMBOL, TABLE_VERSION, status};
use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes of commands one batch of events may cause. More is a fault of the app. A batch is at most what one
/// read of a socket returns, so a correct app never gets near this bound.
pub const MAX_COMMAND_BYTES: usize = 16 << 20;

/// An app's code, from which instances are created.
#[derive(Clone)]
pub struct TrustedCode {
    table: AppTable,
    /// Keeps the code mapped while an instance lives.
    library: Option<Arc<libloading::Library>>,
}

/// A fault of a trusted app. The app is not called again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedFault {
    /// The shared object could not be loaded.
    NotLoaded {
        /// Its path.
        path: PathBuf,
        /// The loader's error.
        why: String,
    },
    /// Its table has another version.
    OtherVersion {
        /// The version of its table.
        version: u32,
    },
    /// Its table is shorter than this version requires.
    ShortTable {
        /// The size in the table, in bytes.
        size: u32,
    },
    /// It pushed commands with a null address.
    NoFrames,
    /// The instance was not created. The text is the app's reason, or empty.
    NotCreated(String),
    /// It panicked.
    Panicked,
    /// It sent more than [`MAX_COMMAND_BYTES`] of commands.
    TooManyCommands,
    /// It could not read its events, or returned an unknown status.
    BadStatus(i32),
}

impl fmt::Display for TrustedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustedFault::NotLoaded { path, why } => {
                write!(f, "{} could not be loaded: {why}", path.display())
            }
            TrustedFault::OtherVersion { version } => {
                write!(
                    f,
                    "it was built for version {version} of the app table, and this node has {TABLE_VERSION}; rebuild it"
                )
            }
            TrustedFault::ShortTable { size } => {
                let needed = size_of::<AppTable>();
                write!(
                    f,
                    "its app table has {size} bytes, and version {TABLE_VERSION} has {needed}; rebuild it"
                )
            }
            TrustedFault::NoFrames => f.write_str("it passed commands at address 0"),
            TrustedFault::NotCreated(said) if said.is_empty() => f.write_str("it did not start"),
            TrustedFault::NotCreated(said) => write!(f, "it failed to start: {said}"),
            TrustedFault::Panicked => f.write_str("it panicked"),
            TrustedFault::TooManyCommands => {
                write!(f, "it passed more than {MAX_COMMAND_BYTES} bytes of commands at once")
            }
            TrustedFault::BadStatus(status) => write!(f, "it returned the status {status}"),
        }
    }
}

impl std::error::Error for TrustedFault {}

impl TrustedCode {
    /// Code that is compiled into this binary.
    pub fn built_in(table: AppTable) -> TrustedCode {
        TrustedCode { table, library: None }
    }

    /// Code in a shared object that exports its table. The operator must trust the file: loading it runs its
    /// initialisers.
    pub fn load(path: &Path) -> Result<TrustedCode, TrustedFault> {
        let not_loaded = |error: libloading::Error| TrustedFault::NotLoaded {
            path: path.to_owned(),
            why: error.to_string(),
        };
        // SAFETY: the operator trusts this object, and so allows its initialisers to run.
        let library = unsafe { libloading::Library::new(path) }.map_err(not_loaded)?;
        // SAFETY: by contract the symbol is a static of type AppTable. Its version and size are checked before any
        // other field.
        let table = unsafe { library.get::<*const AppTable>(TABLE_SYMBOL) }.map_err(not_loaded)?;
        // SAFETY: the version is the first word of the table in every version. A static is aligned and lives as long
        // as the library.
        let version = unsafe { (&raw const (**table).version).read() };
        if version != TABLE_VERSION {
            return Err(TrustedFault::OtherVersion { version });
        }
        // SAFETY: the size is the second word of every table of this version, even if the table is too short.
        let size = unsafe { (&raw const (**table).size).read() };
        if usize::try_from(size).is_ok_and(|size| size < size_of::<AppTable>()) {
            return Err(TrustedFault::ShortTable { size });
        }
        // SAFETY: a table of this version and at least this size has this layout. Bytes behind it are not read.
        let table = unsafe { **table };
        Ok(TrustedCode { table, library: Some(Arc::new(library)) })
    }

    /// Creates an instance from its settings, a JSON object. [`TrustedApp::take_commands`] returns its first
    /// commands.
    pub fn start(&self, settings: &[u8]) -> Result<TrustedApp, TrustedFault> {
        let mut commands = Collected::default();
        let instance = (self.table.create)(settings.as_ptr(), settings.len(), commands.sink());
        if instance.is_null() {
            return Err(TrustedFault::NotCreated(logged(&commands.frames)));
        }
        Ok(TrustedApp { code: self.clone(), instance, commands, faulty: false })
    }
}

/// The commands that an app has pushed through its sink.
#[derive(Default)]
struct Collected {
    frames: Vec<u8>,
    overflowed: bool,
    /// The app passed the address 0 with a length.
    from_nowhere: bool,
}

impl Collected {
    fn sink(&mut self) -> CommandSink {
        CommandSink { context: (&raw mut *self).cast(), push }
    }
}

extern "C" fn push(context: *mut c_void, frames: *const u8, length: usize) {
    // SAFETY: `context` is the `Collected` of the present call, which borrows it until that call returns.
    let collected = unsafe { &mut *context.cast::<Collected>() };
    if collected.frames.len().saturating_add(length) > MAX_COMMAND_BYTES {
        collected.overflowed = true;
        return;
    }
    // In C an empty list often has a null pointer.
    if length == 0 {
        return;
    }
    if frames.is_null() {
        collected.from_nowhere = true;
        return;
    }
    // SAFETY: the table's contract: `length` readable bytes that do not change during this call. The address is not
    // null.
    collected.frames.extend_from_slice(unsafe { std::slice::from_raw_parts(frames, length) });
}

/// One instance of a trusted app. Belongs to one worker.
pub struct TrustedApp {
    code: TrustedCode,
    instance: *mut c_void,
    commands: Collected,
    faulty: bool,
}

impl TrustedApp {
    /// Passes whole event frames to the app, one after the other. [`TrustedApp::take_commands`] returns its commands.
    pub fn on_events(&mut self, frames: &[u8]) -> Result<(), TrustedFault> {
        if self.faulty {
            return Err(TrustedFault::Panicked);
        }
        let status =
            (self.code.table.on_events)(self.instance, frames.as_ptr(), frames.len(), self.commands.sink());
        let fault = match status {
            status::OK if self.commands.overflowed => TrustedFault::TooManyCommands,
            status::OK if self.commands.from_nowhere => TrustedFault::NoFrames,
            status::OK => return Ok(()),
            status::PANICKED => TrustedFault::Panicked,
            other => TrustedFault::BadStatus(other),
        };
        self.faulty = true;
        Err(fault)
    }

    /// Swaps the commands since the last call into `frames`. The old content is dropped, and its memory is used
    /// again.
    pub fn take_commands(&mut self, frames: &mut Vec<u8>) {
        frames.clear();
        std::mem::swap(frames, &mut self.commands.frames);
    }
}

impl Drop for TrustedApp {
    fn drop(&mut self) {
        // After a panic the instance is in an unknown state, so it is leaked and not dropped.
        if !self.faulty {
            (self.code.table.destroy)(self.instance);
        }
        if self.faulty {
            // The leaked instance may still refer to its code.
            std::mem::forget(self.code.library.take());
        }
    }
}

/// The first line that an app wrote to the log.
fn logged(frames: &[u8]) -> String {
    let Ok((frame, _)) = abi::Frame::split(frames) else { return String::new() };
    match abi::Command::read(&frame).map(|command| command.what) {
        Ok(abi::command::What::Log(log)) => log.text.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{Guest, table};

    /// Returns its events as commands, and acts as their first byte says.
    struct Echo;

    impl Guest for Echo {
        fn start(settings: &[u8], commands: &mut Vec<u8>) -> Result<Self, String> {
            if settings == b"{}" {
                commands.extend_from_slice(b"started");
                Ok(Echo)
            } else {
                Err("it takes no settings".to_owned())
            }
        }

        fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed> {
            match events {
                b"panic" => panic!("as asked"),
                b"garbage" => Err(abi::Malformed { offset: 0, reason: "as asked" }),
                b"flood" => {
                    commands.resize(MAX_COMMAND_BYTES + 1, 0);
                    Ok(())
                }
                _ => {
                    commands.extend_from_slice(events);
                    Ok(())
                }
            }
        }
    }

    fn started() -> TrustedApp {
        TrustedCode::built_in(table::<Echo>()).start(b"{}").unwrap()
    }

    fn commands(app: &mut TrustedApp) -> Vec<u8> {
        let mut frames = b"old".to_vec();
        app.take_commands(&mut frames);
        frames
    }

    fn check_fault(events: &[u8], expected: TrustedFault) {
        let mut app = started();
        assert_eq!(app.on_events(events), Err(expected));
        assert!(app.on_events(b"more").is_err(), "it was called again");
    }

    #[test]
    fn an_app_that_panics_is_caught_and_not_called_again() {
        check_fault(b"panic", TrustedFault::Panicked);
    }

    #[test]
    fn an_app_that_cannot_read_or_floods_is_at_fault() {
        check_fault(b"garbage", TrustedFault::BadStatus(status::MALFORMED));
        check_fault(b"flood", TrustedFault::TooManyCommands);
    }

    #[test]
    fn settings_that_an_app_refuses_are_told() {
        let refused = TrustedCode::built_in(table::<Echo>()).start(b"[]").err();
        assert_eq!(refused, Some(TrustedFault::NotCreated("it takes no settings".to_owned())));
    }

    #[test]
    fn a_file_that_is_no_shared_object_is_refused_by_name() {
        let refused = TrustedCode::load(Path::new("/etc/hostname")).err().unwrap();
        assert!(refused.to_string().starts_with("/etc/hostname could not be loaded"), "{refused}");
    }

    /// The error for an object whose table begins with this version and size, and has nothing behind them.
    fn refusal_of_table(version: u32, size: usize) -> Option<TrustedFault> {
        let folder =
            std::env::temp_dir().join(format!("burnet-table-{}-{version}-{size}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, object) = (folder.join("table.c"), folder.join("table.so"));
        let text = format!("struct {{ unsigned version, size; }} BURNET_APP = {{ {version}, {size} }};\n");
        std::fs::write(&source, text).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let made = compiler.args(["-shared", "-fPIC", "-o"]).arg(&object).arg(&source).status().unwrap();
        assert!(made.success(), "cc makes what rustc links with it");
        let refusal = TrustedCode::load(&object).err();
        std::fs::remove_dir_all(&folder).unwrap();
        refusal
    }

    #[test]
    fn a_table_that_is_shorter_than_what_is_read_of_it_is_refused_in_a_sentence() {
        let short = size_of::<AppTable>() - 1;
        for size in [0, 8, short] {
            let refusal = refusal_of_table(TABLE_VERSION, size);
            assert_eq!(refusal, Some(TrustedFault::ShortTable { size: size as u32 }));
            assert!(refusal.unwrap().to_string().contains(&format!("its app table has {size} bytes")));
        }
        let other = TABLE_VERSION + 1;
        assert_eq!(refusal_of_table(other, 8), Some(TrustedFault::OtherVersion { version: other }));
    }

    /// Imitates an app in C: it pushes the address and length that its events contain.
    extern "C" fn create_in_c(settings: *const u8, length: usize, _: CommandSink) -> *mut c_void {
        assert!(!settings.is_null() || length == 0);
        std::ptr::dangling_mut::<u8>().cast()
    }

    extern "C" fn push_in_c(_: *mut c_void, events: *const u8, length: usize, sink: CommandSink) -> i32 {
        (sink.push)(sink.context, std::ptr::null(), 0);
        if length > 0 && !events.is_null() {
            (sink.push)(sink.context, std::ptr::null(), length);
        }
        status::OK
    }

    extern "C" fn destroy_in_c(_: *mut c_void) {}

    #[test]
    fn nothing_at_the_address_0_is_an_empty_list_and_something_there_is_a_fault() {
        let table = AppTable {
            version: TABLE_VERSION,
            size: size_of::<AppTable>() as u32,
            create: create_in_c,
            on_events: push_in_c,
            destroy: destroy_in_c,
        };
        let mut app = TrustedCode::built_in(table).start(b"{}").unwrap();
        app.on_events(&[]).unwrap();
        assert_eq!(commands(&mut app), b"");
        assert_eq!(app.on_events(b"x"), Err(TrustedFault::NoFrames));
    }

    #[test]
    fn a_guest_takes_nothing_at_the_address_0_as_an_empty_list() {
        let table = table::<Echo>();
        let mut kept = Collected::default();
        // It refuses empty settings with a message.
        assert!((table.create)(std::ptr::null(), 0, kept.sink()).is_null());
        let instance = (table.create)(b"{}".as_ptr(), 2, kept.sink());
        assert_eq!((table.on_events)(instance, std::ptr::null(), 0, kept.sink()), status::OK);
        (table.destroy)(instance);
    }

    #[test]
    fn what_it_commands_is_taken_once() {
        let mut app = started();
        assert_eq!(commands(&mut app), b"started");
        app.on_events(b"one").unwrap();
        app.on_events(b"two").unwrap();
        assert_eq!(commands(&mut app), b"onetwo");
        assert_eq!(commands(&mut app), b"");
    }
}
