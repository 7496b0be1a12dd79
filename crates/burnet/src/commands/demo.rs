//! `burnet demo`: a node and a small emulated network on this machine, without privileges, and what happens between them.
//!
//! ```text
//!   this process:  emulated switches and hosts ──TCP, 127.0.0.1──> a node of its own (`burnet run`, a child)
//! ```
//!
//! Never touches a network interface, and leaves nothing behind: the node ends with the demo.

use crate::apps;
use crate::cli::{CommandError, DemoArgs, RunArgs};
use crate::config::{AppArgument, Config, OpenFlowVersion, Surroundings};
use crate::node::client;
use crate::node::operator::{Answer, Question};
use emulator::{Emulation, Event, Handle, Observer, PingReport, SwitchOptions, Versions};
use monitor::ZoneKind;
use openflow::message::FlowMod;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
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

/// Lines of one kind that are shown one by one; of what comes after, only the count.
const LINES_OF_A_KIND: u64 = 12;

/// Between rounds of pings while the demo stays up.
const ROUND: Duration = Duration::from_secs(5);

/// Runs it. Exit code 0 if all pairs have pinged.
pub fn demo(args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let stop = monitor::shutdown_signals()
        .map_err(|error| CommandError::DidNotWork(format!("signals cannot be listened to: {error}")))?;
    let mut stage = Stage::new();
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
    let report = stage.ping_all(&network, &observer);
    let complete = report.is_complete();
    if !args.once {
        stage.stay_up(&network, &observer, File::from(stop));
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

/// What is shown, line by line.
struct Stage {
    began: Instant,
    packet_ins: u64,
    flow_mods: u64,
    colours: bool,
}

impl Stage {
    fn new() -> Self {
        Stage { began: Instant::now(), packet_ins: 0, flow_mods: 0, colours: std::io::stdout().is_terminal() }
    }

    fn say(&self, line: &str) {
        let time = self.began.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        // Whoever closed the output does not want to see more; the demo goes on.
        let _ = if self.colours {
            writeln!(out, "\x1b[2m{time:8.3}s\x1b[0m  {line}")
        } else {
            writeln!(out, "{time:8.3}s  {line}")
        };
    }

    /// All pairs ping, and what happens is shown meanwhile.
    fn ping_all(&mut self, network: &Handle, observer: &Observer) -> PingReport {
        let report = std::thread::scope(|scope| {
            let pings = scope.spawn(|| network.ping_all(PING_PATIENCE));
            while !pings.is_finished() {
                if let Ok(event) = observer.next_within(Duration::from_millis(20)) {
                    self.show(&event);
                }
            }
            pings.join().unwrap_or_default()
        });
        while let Ok(event) = observer.try_next() {
            self.show(&event);
        }
        let counters = network.counters();
        self.say(&format!(
            "{report}; {} packet-ins, {} flow mods, {} packet-outs",
            counters.packet_ins, counters.flow_mods, counters.packet_outs
        ));
        report
    }

    /// Pings again and again until a signal comes.
    fn stay_up(&mut self, network: &Handle, observer: &Observer, mut stop: File) {
        self.say("it stays up until Ctrl-C");
        let (stopped, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _ = stop.read(&mut [0]);
            let _ = stopped.send(());
        });
        while wait.recv_timeout(ROUND).is_err() {
            self.ping_all(network, observer);
        }
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::SwitchConnected { datapath_id, version, .. } => {
                self.say(&format!("{datapath_id} connected, OpenFlow {version}"));
            }
            Event::SwitchDisconnected { datapath_id, why, .. } => {
                self.say(&format!("{datapath_id} disconnected: {why}"))
            }
            Event::PacketIn { datapath_id, in_port, total_len, buffered, .. } => {
                self.packet_ins += 1;
                let kept = if *buffered { ", kept by the switch" } else { "" };
                let line = format!("OFPT_PACKET_IN   {datapath_id} port {in_port}, {total_len} bytes{kept}");
                self.one_of_many(self.packet_ins, &line);
            }
            Event::FlowMod { datapath_id, flow_mod } => {
                self.flow_mods += 1;
                self.one_of_many(
                    self.flow_mods,
                    &format!("OFPT_FLOW_MOD    {datapath_id} {}", rule(flow_mod)),
                );
            }
            Event::ErrorSent { datapath_id, kind, code } => {
                self.say(&format!("OFPT_ERROR       {datapath_id} type {kind} code {code}"));
            }
            Event::PingOk { from, to, round_trip } => {
                self.say(&format!("{from} -> {to}  {:.3} ms", round_trip.as_secs_f64() * 1000.0));
            }
            Event::PingLost { from, to } => self.say(&format!("{from} -> {to}  lost")),
            _ => {}
        }
    }

    fn one_of_many(&self, number: u64, line: &str) {
        match number {
            0..=LINES_OF_A_KIND => self.say(line),
            number if number == LINES_OF_A_KIND + 1 => self.say("… (further ones are only counted)"),
            _ => {}
        }
    }
}

fn rule(flow_mod: &FlowMod) -> String {
    let matching = flow::text::match_to_string(&flow_mod.matching);
    let actions = flow::text::instructions_to_string(&flow_mod.instructions);
    format!("priority={} {matching} actions={actions}", flow_mod.priority)
}
