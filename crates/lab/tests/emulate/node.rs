//! A node for an emulated network to connect to, and `burnet emulate` beside it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use test_bed::Bed;

/// A node.
pub struct Node {
    _node: test_bed::Node,
    /// Where it listens for switches.
    pub address: String,
}

/// The laboratory, without variables of the environment that change what it does.
pub fn burnet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet-lab"));
    command.env_remove("BURNET_SOCKET").env_remove("BURNET_LOG").stdin(Stdio::null());
    command
}

impl Node {
    /// With the learning switch.
    pub fn start() -> Node {
        Node::start_with(&["--app", "learning-switch"])
    }

    /// With these arguments of `burnet run`.
    pub fn start_with(arguments: &[&str]) -> Node {
        // A build of the whole workspace puts it beside the laboratory; of this package alone, `cargo build --package burnet` does.
        let bed = Bed::new(Path::new(env!("CARGO_BIN_EXE_burnet-lab")).with_file_name("burnet"));
        let node = bed.node().args(arguments).start_ready();
        Node { address: node.address().to_string(), _node: node }
    }

    /// `burnet emulate` against this node.
    pub fn emulate(&self, arguments: &[&str]) -> Output {
        burnet().args(["emulate", "--controller", &self.address]).args(arguments).output().unwrap()
    }
}

/// What a command printed where its result goes.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it printed beside that.
pub fn complained(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
