//! `burnet demo`: a node and a small emulated network on this machine, without privileges, and what happens between them.
//!
//! ```text
//!   this process:  emulated switches and hosts ──TCP, 127.0.0.1──> a node of its own (`burnet run`, a child)
//! ```
//!
//! Never touches a network interface, and leaves nothing behind: the node ends with the demo.

use super::stage::{Stage, StopSignal};
use crate::apps;
use crate::cli::{CommandError, DemoArgs, RunArgs};
use crate::config::{AppArgument, Config, OpenFlowVersion, Surroundings};
use crate::node::client;
use crate::node::operator::{Answer, Question};
use emulator::{Emulation, Handle, Observer, PingReport, SwitchOptions, Versions};
use monitor::ZoneKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long the node may take to listen, and then the switches to be connected.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// How long one ping may take. The first ones wait for the app to learn.
const PING_PATIENCE: Duration = Duration::from_secs(3);

/// How long the node may take to end before it is made to.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Between rounds of pings while the demo stays up.
const ROUND: Duration = Duration::from_secs(5);

/// Runs it. Exit code 0 if all pairs have pinged.
pub fn demo(args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let stop = StopSignal::listen()?;
    let mut stage = Stage::on_stdout();
    // What cannot be run is refused here, where it was asked for, and not after waiting for a node that refuses it.
    let asked = RunArgs { apps: args.apps.clone(), ..RunArgs::default() };
    Config::load(&asked, &Surroundings::of_this_process()?, &apps::NAMES)?;
    let mut node = Node::start(args)?;
    let address = node.wait_until_it_listens()?;
    stage.say(&format!(
        "a node listens on {address}; ask it: burnet switches --socket {}",
        node.socket.display()
    ));
    let version = match args.version {
        OpenFlowVersion::V1_0 => Versions::Only10,
        OpenFlowVersion::V1_3 => Versions::Only13,
    };
    let options = SwitchOptions { versions: version, ..SwitchOptions::default() };
    let network = Emulation::start(&args.topo, address, &options).map_err(|error| {
        CommandError::DidNotWork(format!("the emulated network cannot be started: {error}"))
    })?;
    let observer = network.observer();
    stage.say(&format!("{} switches and {} hosts are emulated", network.switches(), network.hosts()));
    network.wait_connected(START_PATIENCE).map_err(|error| CommandError::DidNotWork(error.to_string()))?;
    let complete = ping_all(&mut stage, &network, &observer).is_complete();
    if !args.once {
        stage.say("it stays up until Ctrl-C");
        while !stop.came_within(ROUND) {
            ping_all(&mut stage, &network, &observer);
        }
    }
    network.stop();
    drop(node);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The node of the demo: a child that ends with this value.
struct Node {
    child: Child,
    folder: PathBuf,
    socket: PathBuf,
}

impl Node {
    fn start(args: &DemoArgs) -> Result<Node, CommandError> {
        let trouble =
            |what: &str, error: std::io::Error| CommandError::DidNotWork(format!("{what}: {error}"));
        let folder = std::env::temp_dir().join(format!("burnet-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|error| trouble("no folder for the node's socket", error))?;
        let socket = folder.join("burnet.sock");
        let own =
            std::env::current_exe().map_err(|error| trouble("the program cannot find itself", error))?;
        let mut command = Command::new(own);
        command
            .args(["run", "--listen", "127.0.0.1:0", "--log", "warn", "--die-with-parent", "--socket"])
            .arg(&socket);
        for app in &args.apps {
            command.arg("--app").arg(app_argument(app));
        }
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| trouble("the node cannot be started", error))?;
        Ok(Node { child, folder, socket })
    }

    fn wait_until_it_listens(&mut self) -> Result<SocketAddr, CommandError> {
        let began = Instant::now();
        loop {
            if let Ok(Answer::Node(node)) = client::ask(&self.socket, &Question::Node)
                && let Some(address) = node.listen.first().and_then(|address| address.parse().ok())
                && apps_run(&self.socket)
            {
                return Ok(address);
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return Err(CommandError::DidNotWork(
                    "the node ended before it listened; its log says why".to_owned(),
                ));
            }
            if began.elapsed() > START_PATIENCE {
                return Err(CommandError::DidNotWork(
                    "the node did not come up in time; its log says why".to_owned(),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn apps_run(socket: &Path) -> bool {
    let Ok(Answer::Apps(apps)) = client::ask(socket, &Question::Apps) else { return false };
    !apps.is_empty()
        && apps.iter().all(|app| app.status.state == monitor::AppState::Running && app.commands > 0)
}

fn app_argument(app: &AppArgument) -> String {
    let which = match &app.which {
        crate::config::AppReference::Name(name) => name.clone(),
        crate::config::AppReference::Path(path) => path.display().to_string(),
    };
    match app.zone {
        Some(ZoneKind::Trusted) => which + "=trusted",
        _ => which,
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        );
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > END_PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// All pairs ping, and what happens is shown meanwhile.
fn ping_all(stage: &mut Stage, network: &Handle, observer: &Observer) -> PingReport {
    let report = std::thread::scope(|scope| {
        let pings = scope.spawn(|| network.ping_all(PING_PATIENCE));
        while !pings.is_finished() {
            if let Ok(event) = observer.next_within(Duration::from_millis(20)) {
                stage.show(&event);
            }
        }
        pings.join().unwrap_or_default()
    });
    stage.show_all(observer);
    let counters = network.counters();
    stage.say(&format!(
        "{report}; {} packet-ins, {} flow mods, {} packet-outs",
        counters.packet_ins, counters.flow_mods, counters.packet_outs
    ));
    report
}
