//! The folder of a test, and the program that is tested.
//!
//! In: the program's path. Out: paths and commands. It starts nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test, shared by its nodes. It is removed with the last clone.
#[derive(Clone, Debug)]
pub struct Bed(Rc<Owned>);

#[derive(Debug)]
struct Owned {
    folder: PathBuf,
    program: PathBuf,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Bed {
    /// An empty folder for tests of this program: `Bed::new(env!("CARGO_BIN_EXE_burnet"))`.
    pub fn new(program: impl AsRef<Path>) -> Bed {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-bed-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Bed(Rc::new(Owned { folder, program: program.as_ref().to_owned() }))
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.folder.join(name)
    }

    /// The state folder of the bed's nodes.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// The operator's socket of the bed's node; one node at a time.
    pub fn socket(&self) -> PathBuf {
        self.path("node.sock")
    }

    /// The log of the bed's node: all that it writes to standard output and standard error.
    pub fn log(&self) -> PathBuf {
        self.path("node.log")
    }

    /// Writes a file into the folder, in place of one of that name.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A program or shared object of the examples, which `cargo test` builds beside the tested program.
    pub fn example(&self, name: &str) -> PathBuf {
        self.0.program.with_file_name("examples").join(name)
    }

    /// The tested program, with the bed's state folder and socket, and nothing of the tester's environment that changes what it does.
    pub fn burnet(&self) -> Command {
        let mut command = Command::new(&self.0.program);
        command
            .env_remove("BURNET_LOG")
            .env("BURNET_STATE", self.state())
            .env("BURNET_SOCKET", self.socket());
        command.stdin(Stdio::null());
        command
    }

    /// Runs the tested program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.burnet().args(arguments).output().unwrap()
    }
}
