//! A node that a command starts for itself, as a child process on a free port. It ends with the command.
//!
//! In: the apps. Out: the node's address, once its apps have subscribed. It never touches a running node.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burnet::cli::CommandError;
use burnet::laboratory::find_program;
use config::{AppArgument, AppReference, LogLevel};
use monitor::ZoneKind;
use operator::client;
use operator::contract::{Answer, AppView, Question};

/// How long the node may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long the node may take to end before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The name of its log file, in its folder.
const LOG: &str = "node.log";

/// The address on which it listens: a free port.
pub const SOMEWHERE: &str = "127.0.0.1:0";

/// The program of a node.
const NODE: &str = "burnet";

/// A node that ends when this value is dropped.
pub struct OwnNode {
    child: Mutex<Child>,
    folder: PathBuf,
    socket: PathBuf,
}

impl OwnNode {
    /// Starts a node on a free port with this log level.
    ///
    /// # Errors
    ///
    /// A process or its folder cannot be made.
    pub fn start(apps: &[AppArgument], log: LogLevel) -> Result<OwnNode, CommandError> {
        OwnNode::start_with(SOMEWHERE, false, apps, log)
    }

    /// Starts a node on a free port with a configuration that is made for its folder. It logs to a file there:
    /// [`OwnNode::log`].
    ///
    /// # Errors
    ///
    /// As [`OwnNode::start`].
    pub fn start_configured(configuration: impl FnOnce(&Path) -> String) -> Result<OwnNode, CommandError> {
        let trouble =
            |error: std::io::Error| CommandError::DidNotWork(format!("no files for the node: {error}"));
        let folder = own_folder()?;
        let file = folder.join("burnet.toml");
        std::fs::write(&file, configuration(&folder)).map_err(trouble)?;
        let log = std::fs::File::create(folder.join(LOG)).map_err(trouble)?;
        OwnNode::spawn(folder, |command| {
            // The configuration names the state folder, if there is one, and must not be overridden by the variable.
            command.env_remove("BURNET_STATE");
            command.args(["--listen", SOMEWHERE, "--config"]).arg(&file).stderr(log);
        })
    }

    /// Its own folder, which is deleted with it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The log file of a node of [`OwnNode::start_configured`].
    pub fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Starts a node that listens on this address. If `grant_all` is set, apps without a manifest get the usual grants.
    ///
    /// # Errors
    ///
    /// As [`OwnNode::start`].
    pub fn start_with(
        listen: &str,
        grant_all: bool,
        apps: &[AppArgument],
        log: LogLevel,
    ) -> Result<OwnNode, CommandError> {
        OwnNode::start_by(None, listen, grant_all, apps, log)
    }

    /// The same with the settings of a file. Its addresses do not count: the node listens on this one.
    ///
    /// # Errors
    ///
    /// As [`OwnNode::start`].
    pub fn start_by(
        config: Option<&Path>,
        listen: &str,
        grant_all: bool,
        apps: &[AppArgument],
        log: LogLevel,
    ) -> Result<OwnNode, CommandError> {
        OwnNode::spawn(own_folder()?, |command| {
            command.args(["--listen", listen, "--log", log.as_str()]);
            command.args(grant_all.then_some("--grant-all"));
            if let Some(file) = config {
                command.arg("--config").arg(file);
            }
            for app in apps {
                command.arg("--app").arg(as_written(app));
            }
        })
    }

    fn spawn(folder: PathBuf, arguments: impl FnOnce(&mut Command)) -> Result<OwnNode, CommandError> {
        let mut command = Command::new(burnet()?);
        command.arg("run");
        // Its incidents must not go to the records of the machine's own node.
        command.arg("--records").arg(folder.join("records"));
        arguments(&mut command);
        OwnNode::run(folder, command)
    }

    /// Runs a command that starts a node, and adds the arguments that make the node this process's own. It deletes the
    /// folder at the end. Start it only from a thread that outlives it: Linux kills the child when the thread that
    /// started it ends (prctl(2), PR_SET_PDEATHSIG).
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub fn run(folder: PathBuf, mut command: Command) -> Result<OwnNode, CommandError> {
        let socket = folder.join("burnet.sock");
        command.arg("--die-with-parent").arg("--socket").arg(&socket).stdin(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| CommandError::DidNotWork(format!("the node cannot be started: {error}")))?;
        Ok(OwnNode { child: Mutex::new(child), folder, socket })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its monitor has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(self.child().try_wait(), Ok(None))
    }

    /// The operator's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process id of its monitor, the parent of its other processes.
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// Waits until it listens and its apps run. Returns its address.
    ///
    /// # Errors
    ///
    /// It has ended, or did not start in time.
    pub fn wait_until_it_listens(&self) -> Result<SocketAddr, CommandError> {
        self.wait_until_it_listens_with(&[])
    }

    /// The same, but only these apps must run. If none are given, all must.
    ///
    /// # Errors
    ///
    /// As [`OwnNode::wait_until_it_listens`].
    pub fn wait_until_it_listens_with(&self, apps: &[&str]) -> Result<SocketAddr, CommandError> {
        let began = Instant::now();
        loop {
            if let Ok(Answer::Node(node)) = client::ask(&self.socket, &Question::Node)
                && let Some(address) = node.listen.first().and_then(|address| address.parse().ok())
                && apps_run(&self.socket, apps)
            {
                return Ok(address);
            }
            if self.has_ended() {
                return Err(CommandError::DidNotWork(
                    "the node ended before it listened; its log says why".to_owned(),
                ));
            }
            if began.elapsed() > START_PATIENCE {
                return Err(CommandError::DidNotWork(
                    "the node did not start in time; its log has the reason".to_owned(),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The program `burnet`, beside this one or in `$PATH`.
///
/// # Errors
///
/// It is not installed.
pub fn burnet() -> Result<PathBuf, CommandError> {
    find_program(NODE).ok_or_else(|| {
        CommandError::Usage(format!(
            "the program {NODE} is neither beside burnet-lab nor in PATH: install it, from a checkout with \
             `cargo install --path crates/burnet`"
        ))
    })
}

/// A port of 127.0.0.1 that was free a moment ago.
///
/// # Errors
///
/// No port is free.
pub fn free_address() -> Result<SocketAddr, CommandError> {
    let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    found.map_err(|error| CommandError::DidNotWork(format!("no port is free: {error}")))
}

/// A folder that no other node uses.
///
/// # Errors
///
/// It cannot be made.
pub fn own_folder() -> Result<PathBuf, CommandError> {
    // One process may have several nodes.
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("burnet-own-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| CommandError::DidNotWork(format!("no folder for the node's socket: {error}")))?;
    Ok(folder)
}

fn apps_run(socket: &Path, wanted: &[&str]) -> bool {
    let Ok(Answer::Apps(apps)) = client::ask(socket, &Question::Apps) else { return false };
    let runs = |app: &AppView| app.status.state == monitor::AppState::Running && app.commands > 0;
    if wanted.is_empty() {
        return apps.iter().all(runs);
    }
    // A node that has just started may not list its apps yet.
    wanted.iter().all(|name| apps.iter().any(|app| app.status.app == *name && runs(app)))
}

/// An app in the form of the command line.
pub fn as_written(app: &AppArgument) -> String {
    let which = match &app.which {
        AppReference::Name(name) => name.clone(),
        AppReference::Path(path) => path.display().to_string(),
    };
    match app.zone {
        Some(ZoneKind::Trusted) => which + "=trusted",
        _ => which,
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        let began = Instant::now();
        if !self.has_ended() {
            let pid = rustix::process::Pid::from_child(&self.child());
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        while !self.has_ended() {
            if began.elapsed() > END_PATIENCE {
                let mut child = self.child();
                let _ = child.kill();
                let _ = child.wait();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
