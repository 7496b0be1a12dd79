//! A running Burnet in a sandbox.
//!
//! In: arguments for `burnet run`, as an operator types them. Out: the answers of the other subcommands. The binary
//! is the one that `BURNET_BINARY` names, or the one that Cargo built beside this test.

use crate::Result;
use crate::sandbox::Sandbox;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a subcommand, which asks over a Unix socket and gets an answer at once.
const LIMIT: Duration = Duration::from_secs(30);

/// Time limit of waiting, long enough for a loaded machine. Beyond it the event will not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two checks. It only limits the load of waiting.
const PAUSE: Duration = Duration::from_millis(100);

/// `burnet run`. It ends with its sandbox, or normally by [`Node::stop`].
pub struct Node<'s> {
    sandbox: &'s Sandbox,
    binary: String,
    /// Where it listens for subcommands. None: at the default of the sandbox's `/run`.
    socket: Option<String>,
    child: Child,
    /// Its process id inside the sandbox.
    pid: String,
}

impl<'s> Node<'s> {
    /// Starts `burnet run` with `words` and waits until it answers.
    pub fn start(sandbox: &'s Sandbox, words: &[&str]) -> Result<Node<'s>> {
        Node::launch(sandbox, "burnet", None, words)
    }

    /// The same for a further node of the sandbox, with a socket, a log and a state folder of its own.
    pub fn start_another(sandbox: &'s Sandbox, name: &str, words: &[&str]) -> Result<Node<'s>> {
        let socket = format!("/run/{name}.sock");
        Node::launch(sandbox, name, Some(socket.clone()), &[words, &["--socket", &socket]].concat())
    }

    fn launch(sandbox: &'s Sandbox, name: &str, socket: Option<String>, words: &[&str]) -> Result<Node<'s>> {
        let binary = binary()?.display().to_string();
        let pid_file = sandbox.folder().join(format!("{name}.pid"));
        // nsenter has its child's process id from outside only, so the child tells its own.
        let mut command = sandbox.command("sh");
        command
            .args(["-c", "echo $$ > \"$0\"; exec \"$@\""])
            .arg(&pid_file)
            .args([&binary, "run"])
            .args(words);
        let state = socket.as_ref().map_or("state".to_owned(), |_| format!("{name}.state"));
        command.env("BURNET_STATE", sandbox.folder().join(state));
        command.stdin(Stdio::null()).stdout(sandbox.log(name)?).stderr(sandbox.log(name)?);
        let child = command.spawn().map_err(|error| format!("cannot run {binary}: {error}"))?;
        let mut node = Node { sandbox, binary, socket, child, pid: String::new() };
        node.wait_until("the node answers", |node| Ok(node.ask(&["switches"]).is_ok()))?;
        node.pid = std::fs::read_to_string(pid_file).unwrap_or_default().trim().to_owned();
        Ok(node)
    }

    /// The answer of `burnet WORDS --json`.
    pub fn ask(&self, words: &[&str]) -> Result<Value> {
        let text = self.printed(&[words, &["--json"]].concat())?;
        serde_json::from_str(&text).map_err(|error| format!("not JSON ({error}): {text}"))
    }

    /// Lets it read its configuration again.
    pub fn reload(&self) -> Result<()> {
        self.printed(&["reload"]).map(drop)
    }

    fn printed(&self, words: &[&str]) -> Result<String> {
        let mut words = words.to_vec();
        if let Some(socket) = &self.socket {
            words.extend(["--socket", socket]);
        }
        self.sandbox.must(LIMIT, &self.binary, &words)
    }

    /// Waits until `count` switches have a session.
    pub fn wait_for_switches(&mut self, count: usize) -> Result<()> {
        self.wait_until("its switches are up", |node| {
            Ok(node.ask(&["switches"])?.as_array().is_some_and(|switches| switches.len() == count))
        })
    }

    /// Waits until the report of `burnet switches` about its only switch fulfils the condition.
    pub fn wait_for_switch(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        self.wait_until(what, |node| match node.ask(&["switches"])?.as_array().map(Vec::as_slice) {
            Some([switch]) if holds(switch) => Ok(true),
            other => Err(format!("{other:?}")),
        })
    }

    /// Waits until its log contains `text`.
    pub fn wait_for_log(&mut self, text: &str) -> Result<()> {
        self.wait_until(&format!("`{text}` in its log"), |node| {
            Ok(node.sandbox.read_log("burnet").contains(text))
        })
    }

    /// Kills the app's process with signal 9, and waits until a new process serves.
    pub fn kill_app(&mut self, app: &str) -> Result<()> {
        let before = self.app_process(app)?.ok_or(format!("{app} has no process"))?;
        self.sandbox.must(LIMIT, "kill", &["-KILL", &before])?;
        self.wait_until("the app runs again", |node| {
            Ok(node.app_process(app)?.is_some_and(|process| process != before))
        })
    }

    /// The report of `burnet app list` about an app.
    pub fn app(&self, app: &str) -> Result<Value> {
        let apps = self.ask(&["app", "list"])?;
        let found = apps.as_array().into_iter().flatten().find(|known| known["status"]["app"] == app);
        found.cloned().ok_or(format!("{app} is not in {apps}"))
    }

    /// Waits until an app has subscribed to events, so that it will receive them.
    pub fn wait_for_app(&mut self, app: &str) -> Result<()> {
        self.wait_until("the app has subscribed", |node| Ok(serves(&node.app(app)?)))
    }

    /// The process id of an app in a process zone, once it serves.
    fn app_process(&self, app: &str) -> Result<Option<String>> {
        let app = self.app(app)?;
        Ok(app["status"]["pid"].as_u64().filter(|_| serves(&app)).map(|pid| pid.to_string()))
    }

    /// Asks it to end, as systemd would, and waits. An error unless its exit code is 0.
    pub fn stop(mut self) -> Result<()> {
        self.sandbox.must(LIMIT, "kill", &["-TERM", &self.pid])?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|error| format!("cannot wait: {error}"))? {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("burnet run ended with {status}"))
                };
            }
            std::thread::sleep(PAUSE);
        }
        Err("burnet run did not end at SIGTERM".to_owned())
    }

    /// Waits until `holds` succeeds. After the time limit, returns the error of the last try.
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Node<'s>) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = holds(self);
            if answer == Ok(true) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("before {what}, burnet run ended with {status}"));
            }
            if Instant::now() > deadline {
                return Err(format!("not within {} s: {what} ({answer:?})", PATIENCE.as_secs()));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// An app's first command is its subscription.
fn serves(app: &Value) -> bool {
    app["status"]["state"] == "running" && app["commands"].as_u64().is_some_and(|commands| commands > 0)
}

/// The path of the binary.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("BURNET_BINARY") {
        return Ok(path.into());
    }
    let here = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let built = here.ancestors().nth(2).map(|folder| folder.join("burnet"));
    built
        .filter(|path| path.is_file())
        .ok_or("no burnet beside this test: cargo build --package burnet".to_owned())
}
