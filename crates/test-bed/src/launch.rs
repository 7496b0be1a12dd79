//! How a node is started: its configuration, its arguments, its log.
//!
//! In: what a test wants of a node. Out: the node. It waits only for the process.

use crate::folder::Bed;
use crate::node::Node;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A node that is still to be started: with no app, at a free port of 127.0.0.1, logging errors alone.
#[derive(Debug)]
pub struct Launch {
    bed: Bed,
    listen: String,
    level: String,
    command: Command,
}

impl Bed {
    /// A node in this folder, which is still to be started.
    pub fn node(&self) -> Launch {
        Launch::new(self.clone())
    }

    /// `burnet slice run` with this file, which is still to be started.
    pub fn slices(&self, text: &str) -> Launch {
        let file = self.file("slices.toml", text);
        let mut command = self.burnet();
        command.args(["slice", "run", "--die-with-parent"]).arg(file);
        Launch::of(self.clone(), command)
    }
}

impl Launch {
    fn new(bed: Bed) -> Launch {
        let mut command = bed.burnet();
        command.args(["run", "--die-with-parent"]);
        Launch::of(bed, command)
    }

    fn of(bed: Bed, command: Command) -> Launch {
        Launch { bed, listen: "127.0.0.1:0".to_owned(), level: "error".to_owned(), command }
    }

    /// Writes this as `burnet.toml`, which the node reads.
    #[must_use]
    pub fn config(mut self, text: &str) -> Launch {
        let file = self.bed.file("burnet.toml", text);
        self.command.arg("--config").arg(file);
        self
    }

    /// Further arguments of `burnet run`.
    #[must_use]
    pub fn args<A: AsRef<std::ffi::OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Launch {
        self.command.args(arguments);
        self
    }

    /// An app, by its name or path, with `=trusted` behind it or not.
    #[must_use]
    pub fn app(self, app: &str) -> Launch {
        self.args(["--app", app])
    }

    /// An app that is a program of the examples.
    #[must_use]
    pub fn example(self, name: &str) -> Launch {
        let program = self.bed.example(name);
        self.args([Path::new("--app"), &program])
    }

    /// Where it listens for switches, for a node that is to be found again after a restart.
    #[must_use]
    pub fn listen(mut self, address: impl ToString) -> Launch {
        self.listen = address.to_string();
        self
    }

    /// How much it logs.
    #[must_use]
    pub fn log(mut self, level: &str) -> Launch {
        self.level = level.to_owned();
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Launch {
        self.command.env(name, value);
        self
    }

    /// Runs it by another program, which gets the node's program and arguments behind its own: `unshare --mount`.
    #[must_use]
    pub fn within(mut self, mut other: Command) -> Launch {
        other.arg(self.command.get_program()).args(self.command.get_args());
        other.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.command = other;
        self
    }

    /// Starts it. It may not answer yet.
    pub fn start(mut self) -> Node {
        let log = File::options().create(true).append(true).open(self.bed.log()).unwrap();
        self.command.args(["--listen", &self.listen, "--log", &self.level]);
        self.command.stdout(log.try_clone().unwrap()).stderr(log);
        Node::new(self.command.spawn().unwrap(), self.bed)
    }

    /// Starts it, and waits until each of its apps runs and has subscribed, or has failed once.
    pub fn start_ready(self) -> Node {
        let node = self.start();
        node.wait_ready();
        node
    }
}
