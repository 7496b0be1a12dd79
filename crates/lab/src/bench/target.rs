//! What is measured: a running controller, or a peer that is started for it and ends with it.
//!
//! ```text
//!   ADDR:PORT                    runs already
//!   sink                         a sink, as a child
//!   node:APP[=trusted]           a node with this app, as a child
//!   PROGRAM … {port} …           any program, as a child; it is to listen on that port of 127.0.0.1
//! ```
//!
//! Never measures.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::own_node::{OwnNode, as_written, free_address};
use burnet::cli::CommandError;
use config::{AppArgument, LogLevel};

/// How long a program may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Between looks whether it does.
const LOOK: Duration = Duration::from_millis(20);
/// What stands for the port in a program's arguments.
const PORT: &str = "{port}";

/// How a sink's first line begins; the address follows.
pub const LISTENS_ON: &str = "the sink listens on ";

/// An address and a port; a name is looked up once, when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "write ADDRESS:PORT, as in 127.0.0.1:6653 or [::1]:6653";
        let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {wanted}"))?;
        found.next().map(Address).ok_or_else(|| format!("it has no address; {wanted}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A controller that runs already.
    Running(Address),
    /// A sink.
    Sink,
    /// A node with this app.
    Node(AppArgument),
    /// A program and its arguments.
    Program(Vec<String>),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "sink" {
            return Ok(Target::Sink);
        }
        if let Some(app) = text.strip_prefix("node:") {
            return app.parse().map(Target::Node).map_err(|error| format!("{error}"));
        }
        if text.contains(PORT) {
            return Ok(Target::Program(text.split_whitespace().map(str::to_owned).collect()));
        }
        text.parse().map(Target::Running).map_err(|error: String| {
            format!("{error}; or write sink, node:APP[=trusted], or a command line with {PORT} in it")
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Running(address) => address.fmt(f),
            Target::Sink => f.write_str("sink"),
            Target::Node(app) => write!(f, "node:{}", as_written(app)),
            Target::Program(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// A target that listens. What was started for it ends with this value.
pub struct OpenTarget {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The node, if the target is one that was started here.
    pub node: Option<OwnNode>,
    _program: Option<Ended>,
}

/// A child that ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It was started to be measured; it has nothing to finish.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Target {
    /// Starts what is to be started, and waits until it listens.
    ///
    /// # Errors
    /// What did not start, or did not listen in time.
    pub fn open(&self) -> Result<OpenTarget, CommandError> {
        match self {
            Target::Running(address) => Ok(OpenTarget { address: address.0, node: None, _program: None }),
            Target::Sink => start_sink(),
            Target::Node(app) => {
                let node = OwnNode::start(std::slice::from_ref(app), LogLevel::Error)?;
                let address = node.wait_until_it_listens()?;
                Ok(OpenTarget { address, node: Some(node), _program: None })
            }
            Target::Program(words) => start_program(words),
        }
    }
}

fn start_sink() -> Result<OpenTarget, CommandError> {
    let trouble =
        |error: std::io::Error| CommandError::DidNotWork(format!("the sink cannot be started: {error}"));
    let own = std::env::current_exe().map_err(trouble)?;
    let mut command = Command::new(own);
    command.args(["bench", "sink", "--listen", "127.0.0.1:0", "--die-with-parent"]);
    let mut sink = Ended(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(trouble)?);
    let mut line = String::new();
    if let Some(out) = sink.0.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(trouble)?;
    }
    let address = line.trim_end().strip_prefix(LISTENS_ON).and_then(|address| address.parse().ok());
    let address = address.ok_or_else(|| {
        CommandError::DidNotWork("the sink ended before it listened; standard error says why".to_owned())
    })?;
    Ok(OpenTarget { address, node: None, _program: Some(sink) })
}

fn start_program(words: &[String]) -> Result<OpenTarget, CommandError> {
    let address = free_address()?;
    let mut words = words.iter().map(|word| word.replace(PORT, &address.port().to_string()));
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().map_err(|error| {
        CommandError::Usage(format!("{program} cannot be started ({error}): name a program that can"))
    })?;
    let mut child = Ended(child);
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        if let Ok(Some(status)) = child.0.try_wait() {
            return Err(CommandError::DidNotWork(format!("{program} ended before it listened: {status}")));
        }
        if began.elapsed() > START_PATIENCE {
            let seconds = START_PATIENCE.as_secs();
            return Err(CommandError::DidNotWork(format!(
                "{program} did not listen on {address} within {seconds} s"
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(OpenTarget { address, node: None, _program: Some(child) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_target_is_refused_with_what_would_be_one() {
        for text in ["", "sunk", "127.0.0.1", "node:", "node:hub=safe"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        let refused = "sunk".parse::<Target>().unwrap_err();
        assert!(refused.contains("or write sink, node:APP[=trusted]"), "{refused}");
    }

    #[test]
    fn targets_are_told_apart_by_how_they_are_written() {
        let check = |text: &str, expected: &str| {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            assert_eq!(format!("{target:?}").split(['(', ' ']).next(), Some(expected), "{text}");
        };
        check("127.0.0.1:6653", "Running");
        check("[::1]:6653", "Running");
        check("sink", "Sink");
        check("node:learning-switch=trusted", "Node");
        check("ovs-testcontroller ptcp:{port}", "Program");
    }

    #[test]
    fn what_cannot_be_started_is_said() {
        let target: Target = "/nonexistent/controller {port}".parse().unwrap();
        let refused = target.open().err().unwrap();
        assert!(refused.to_string().contains("/nonexistent/controller cannot be started"), "{refused}");
        let target: Target = "false {port}".parse().unwrap();
        let refused = target.open().err().unwrap();
        assert!(refused.to_string().contains("false ended before it listened"), "{refused}");
    }
}
