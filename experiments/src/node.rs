//! A node under test: `burnet run` as a child on a free port, with requests to its operator's socket.
//!
//! In: a configuration. Out: the node's answers, as JSON. The node ends when this value is dropped. Start it only
//! from the main thread: Linux kills the child when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::lab::Lab;

/// How long a node may take until it listens, and an app until it serves.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long the node may take to end before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// The time between two requests while waiting.
const PAUSE: Duration = Duration::from_millis(10);

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
#[derive(Debug)]
pub struct Node {
    child: RefCell<Child>,
    folder: PathBuf,
}

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
        let folder = own_folder()?;
        let trouble = |error: std::io::Error| format!("the node cannot be started: {error}");
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
        command
            .args(["run", "--grant-all", "--die-with-parent", "--listen", &free_address()?, "--socket"])
            .arg(folder.join("socket"));
        command.arg("--state").arg(folder.join("state")).arg("--config").arg(folder.join("burnet.toml"));
        if kind == Kind::Monolithic {
            command.arg("--monolithic");
        }
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map_err(trouble)?;
        Ok(Node { child: RefCell::new(child), folder })
    }

    /// Waits until it listens and these apps serve. Returns its address.
    ///
    /// # Errors
    ///
    /// It ended or did not start: a message with the end of its log.
    pub fn wait(&self, apps: &[&str]) -> Result<SocketAddr, String> {
        let began = Instant::now();
        while began.elapsed() < START_PATIENCE && !self.has_ended() {
            if let Ok(node) = self.ask(&json!("node"))
                && let Some(address) = node["node"]["listen"][0].as_str().and_then(|text| text.parse().ok())
                && apps.iter().all(|app| self.serves(app))
            {
                return Ok(address);
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("the node did not come up; its log ends: {}", self.end_of_log()))
    }

    /// Whether its monitor has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(self.child.borrow_mut().try_wait(), Ok(None))
    }

    /// The process id of its monitor, the parent of all its processes.
    pub fn pid(&self) -> u32 {
        self.child.borrow().id()
    }

    /// The folder with its configuration, socket and log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A connection to its operator's socket, for frequent requests.
    ///
    /// # Errors
    ///
    /// Nothing listens there.
    pub fn line(&self) -> Result<OperatorLine, String> {
        OperatorLine::to(&self.folder.join("socket"))
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
        let bytes = std::fs::read(self.folder.join("node.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn end_of_log(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        let began = Instant::now();
        if matches!(child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        while matches!(child.try_wait(), Ok(None)) {
            if began.elapsed() > END_PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
            }
            std::thread::sleep(PAUSE);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
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

/// An address with a port that was free a moment ago. It is not port 0, because a restarted kernel must listen on the
/// same port.
fn free_address() -> Result<String, String> {
    let listener =
        std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.to_string()).map_err(|error| format!("no free port: {error}"))
}

fn own_folder() -> Result<PathBuf, String> {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("burnet-experiment-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("no folder for the node: {error}"))?;
    Ok(folder)
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
