//! A node under test, with requests to its operator's socket.
//!
//! In: a configuration. Out: the node's answers, as JSON. The node ends when this value is dropped. Start it only
//! from the main thread, which outlives it ([`OwnNode::run`]).

use lab::own_node::{OwnNode, free_address, own_folder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::lab::Lab;

/// How long an answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// In a configuration, this stands for the node's own folder, with `burnet.toml` and `node.log`.
pub const FOLDER: &str = "FOLDER";

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A normal node.
    Burnet,
    /// The baseline: every app runs in the kernel process, and nothing is restarted.
    Monolithic,
}

/// A node that ends when this value is dropped.
pub struct Node(OwnNode);

impl Node {
    /// Starts a node with this configuration, in which [`FOLDER`] stands for the node's own folder.
    ///
    /// # Errors
    ///
    /// It cannot be started: a message.
    pub fn start(lab: &Lab, kind: Kind, configuration: &str) -> Result<Node, String> {
        Node::start_within(lab, kind, configuration, None)
    }

    /// The same, but each of its processes may have only this much memory (RLIMIT_DATA), like the heap of a virtual
    /// machine.
    ///
    /// # Errors
    ///
    /// As [`Node::start`].
    pub fn start_within(
        lab: &Lab,
        kind: Kind,
        configuration: &str,
        memory_bytes: Option<u64>,
    ) -> Result<Node, String> {
        let trouble = |error: std::io::Error| format!("the node cannot be started: {error}");
        let folder = own_folder().map_err(|error| error.to_string())?;
        let configuration = configuration.replace(FOLDER, &folder.display().to_string());
        std::fs::write(folder.join("burnet.toml"), configuration).map_err(trouble)?;
        let log = std::fs::File::create(folder.join("node.log")).map_err(trouble)?;
        let mut command = match memory_bytes {
            None => Command::new(&lab.burnet),
            Some(bytes) => {
                let mut shell = Command::new("sh");
                let script = format!("ulimit -d {} && exec \"$0\" \"$@\"", bytes / 1024);
                shell.args(["-c", &script]).arg(&lab.burnet);
                shell
            }
        };
        // Not port 0, because a restarted kernel must listen on the same port.
        let address = free_address().map_err(|error| error.to_string())?.to_string();
        command.args(["run", "--grant-all", "--listen", &address]);
        command.arg("--state").arg(folder.join("state")).arg("--config").arg(folder.join("burnet.toml"));
        command.args((kind == Kind::Monolithic).then_some("--monolithic"));
        command.stdout(Stdio::null()).stderr(log);
        OwnNode::run(folder, command).map(Node).map_err(|error| error.to_string())
    }

    /// Waits until it listens and these apps serve. Returns its address.
    ///
    /// # Errors
    ///
    /// It ended or did not start: a message with the end of its log.
    pub fn wait(&self, apps: &[&str]) -> Result<SocketAddr, String> {
        let address = self.0.wait_until_it_listens_with(apps);
        address.map_err(|error| format!("{error}; its log ends: {}", self.end_of_log()))
    }

    /// Whether its monitor has ended.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// The process id of its monitor, the parent of all its processes.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// The folder with its configuration, socket and log.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// Its operator's socket.
    pub fn socket(&self) -> &Path {
        self.0.socket()
    }

    /// A connection to its operator's socket, for frequent requests.
    ///
    /// # Errors
    ///
    /// Nothing listens there.
    pub fn line(&self) -> Result<OperatorLine, String> {
        OperatorLine::to(self.0.socket())
    }

    /// Sends one request.
    ///
    /// # Errors
    ///
    /// It does not answer, or refuses the request.
    pub fn ask(&self, question: &Value) -> Result<Value, String> {
        self.line()?.ask(question)
    }

    /// The node's answer about an app.
    pub fn app(&self, name: &str) -> Option<Value> {
        app_in(self.ask(&json!("apps")).ok()?, name)
    }

    /// Whether an app runs and has subscribed.
    pub fn serves(&self, name: &str) -> bool {
        self.app(name).is_some_and(|app| serves(&app))
    }

    /// `restart`, `stop` or `start` for an app.
    ///
    /// # Errors
    /// As [`Node::ask`].
    pub fn tell(&self, app: &str, verb: &str) -> Result<(), String> {
        self.ask(&json!({"app": {"app": app, "verb": verb}})).map(drop)
    }

    /// The node's log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.0.log()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn end_of_log(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    }
}

/// An app in the answer to `"apps"`.
pub fn app_in(apps: Value, name: &str) -> Option<Value> {
    apps["apps"].as_array()?.iter().find(|app| app["status"]["app"] == name).cloned()
}

/// Whether the node reports that an app runs and has subscribed, which is its first command.
pub fn serves(app: &Value) -> bool {
    app["status"]["state"] == "running" && app["commands"].as_u64().is_some_and(|commands| commands > 0)
}

/// Kills a process of the node.
///
/// # Errors
///
/// It has ended.
pub fn kill(pid: u64) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("there is no process to kill")?;
    kill_process(pid, Signal::KILL).map_err(|error| format!("the process cannot be killed: {error}"))
}

/// The clock with which the node dates what it reports.
pub fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

/// An open connection to a node's operator's socket: one line for each request, one for each answer.
#[derive(Debug)]
pub struct OperatorLine(BufReader<UnixStream>);

impl OperatorLine {
    fn to(socket: &Path) -> Result<OperatorLine, String> {
        let stream =
            UnixStream::connect(socket).map_err(|error| format!("the node does not answer: {error}"))?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE)).map_err(|error| error.to_string())?;
        Ok(OperatorLine(BufReader::new(stream)))
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    ///
    /// It does not answer, or refuses the request.
    pub fn ask(&mut self, question: &Value) -> Result<Value, String> {
        let trouble = |error: std::io::Error| format!("the node does not answer: {error}");
        self.0.get_mut().write_all(format!("{question}\n").as_bytes()).map_err(trouble)?;
        let mut answer = String::new();
        self.0.read_line(&mut answer).map_err(trouble)?;
        let answer: Value =
            serde_json::from_str(&answer).map_err(|error| format!("the node's answer: {error}"))?;
        match answer.get("refused").and_then(Value::as_str) {
            Some(why) => Err(why.to_owned()),
            None => Ok(answer),
        }
    }
}
