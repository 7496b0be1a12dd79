//! The control thread of the kernel process: accepts switches, and communicates with the monitor and the operator.
//!
//! ```text
//!   monitor  ──ToKernel──>   ┌─────────┐ ──ToWorker──> workers
//!   monitor  <─FromKernel──  │ control │ <─FromWorker── workers
//!   operator ──Question──>   │         │ ──Answer──> operator
//!   switches ──connect──>    └─────────┘
//! ```
//!
//! It waits only in its poll, and handles no packet. It reports to the monitor that the node is alive only if every
//! worker has made progress.

mod answering;
mod loading;
mod owning;
mod pinning;
mod reloading;
mod sessions;
mod withdrawn;

use super::accepting::Accepting;
use super::call_tracker::CallTracker;
use super::fatal::Fatal;
use super::loader::Loader;
use super::messages::{ControlSender, FromWorker, ToWorker};
use super::monitor_queue::MonitorQueue;
use super::operator_queries::OperatorQueries;
use super::operators::Operators;
use super::pins::PinFile;
use super::running_packages::RunningPackages;
use super::shortfalls::Shortfalls;
use super::socket::OperatorSocket;
use super::usage::{UsageTotals, soft_limit};
use super::worker::now_unix_ms;
use super::workers::{SharedByWorkers, Workers};
use crate::descriptors;
use crate::loader::LoadCode;
use abi::ZoneId;
use audit_contract::Record;
use config::{AppGrant, Config};
use kernel::{Claims, Grant, NodeRates};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use monitor_channel::channel::{Channel, ChannelError};
use monitor_channel::protocol::{ALIVE_INTERVAL_MS, FaultCause, FromKernel, ToKernel, split_ports};
use monitor_channel::{AppStatus, Ending, KernelStatus, SAMPLE_INTERVAL_MS, ZoneKind};
use ring::Board;
use sessions::southbound_config;
use southbound::{Listeners, Roster};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use withdrawn::WithdrawnFile;

const MONITOR: Token = Token(0);
const WORKERS: Token = Token(1);
const OPERATORS: Token = Token(2);
/// Tokens of listening sockets start here.
const FIRST_LISTENER: usize = 16;
/// Tokens of operators' connections start here.
const FIRST_OPERATOR: usize = 1024;

/// The kernel process: `burnet kernel`. Its standard input is the channel to the monitor.
pub fn run(load_code: LoadCode) -> ExitCode {
    let channel = match monitor_channel::child::die_with_parent()
        .map_err(ChannelError::Io)
        .and_then(|()| Channel::from_stdin())
    {
        Ok(channel) => channel,
        Err(error) => {
            eprintln!("the kernel process is started by `burnet run`, not by hand: {error}");
            return ExitCode::from(2);
        }
    };
    descriptors::take_what_is_allowed();
    match start(&channel, load_code).and_then(|control| control.serve(&channel).map_err(Fatal::of_system)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fatal(exit_code, message)) => {
            let fatal = FromKernel::Fatal { exit_code, message: message.clone() };
            if channel.try_send(&fatal, &[]).is_err() {
                eprintln!("{message}");
            }
            ExitCode::from(exit_code)
        }
    }
}

fn start(channel: &Channel, load_code: LoadCode) -> Result<Control, Fatal> {
    let received = channel
        .receive::<ToKernel>()
        .map_err(|error| Fatal(1, format!("the monitor sent nothing: {error}")))?;
    let ToKernel::Configure { config, owners_follow } = received.message else {
        return Err(Fatal(1, "the first message of the monitor was not the configuration".to_owned()));
    };
    // Without a board, only one thing is missing: the monitor cannot see which app a crash occurred in.
    let board = received.fds.first().and_then(|fd| Board::open(fd).ok()).map(Arc::new);
    let config: Config = serde_json::from_value(config)
        .map_err(|error| Fatal(1, format!("the configuration cannot be read: {error}")))?;
    crate::logging::start(config.node.log);
    let claims = owning::receive(channel, owners_follow)?;
    Control::new(&config, board, Arc::new(claims), load_code)
}

struct Control {
    poll: Poll,
    listeners: Listeners,
    /// The operators' socket comes last, after the sockets for switches.
    accepting: Accepting,
    socket: OperatorSocket,
    operators: Operators,
    /// Whether requests wait for the next turn.
    more_questions: bool,
    workers: Workers,
    from_workers: Receiver<FromWorker>,
    roster: Arc<Roster>,
    pins: PinFile,
    withdrawn: WithdrawnFile,
    queries: OperatorQueries,
    apps: Vec<AppStatus>,
    packages: RunningPackages,
    shortfalls: Shortfalls,
    usage: UsageTotals,
    next_count_ms: u64,
    kernel: Option<KernelStatus>,
    safe_mode: Option<Ending>,
    /// The part of the last configuration that could not be applied, for the answer that follows.
    left_of_reload: Option<String>,
    loader: Loader,
    to_monitor: MonitorQueue,
    claims: Arc<Claims>,
    epoch: Instant,
}

impl Control {
    fn new(
        config: &Config,
        board: Option<Arc<Board>>,
        claims: Arc<Claims>,
        load_code: LoadCode,
    ) -> Result<Control, Fatal> {
        let southbound = southbound_config(config)?;
        let specs: Vec<_> = config.southbound.listen.iter().map(|place| place.0).collect();
        let mut listeners = Listeners::bind(&specs).map_err(|error| Fatal(2, error.to_string()))?;
        let mut socket = OperatorSocket::bind(&config.node.socket).map_err(|said| Fatal(2, said))?;
        let poll = Poll::new().map_err(Fatal::of_system)?;
        listeners.register(poll.registry(), FIRST_LISTENER).map_err(Fatal::of_system)?;
        poll.registry()
            .register(&mut socket.listener, OPERATORS, Interest::READABLE)
            .map_err(Fatal::of_system)?;
        let waker = Arc::new(Waker::new(poll.registry(), WORKERS).map_err(Fatal::of_system)?);
        let (control_line, from_workers) = ControlSender::new(waker);
        let roster = Arc::new(Roster::new(southbound.caps()));
        let pins = PinFile::open(config.node.records.as_deref(), &roster).map_err(|said| Fatal(2, said))?;
        let epoch = Instant::now();
        let shared = SharedByWorkers { roster, control: control_line, epoch, board, claims };
        let mut workers = Workers::start(config, &southbound, &shared)?;
        // Before the first connection.
        let mut withdrawn = WithdrawnFile::open(config.node.records.as_deref());
        let left = withdrawn.left(config);
        workers.tell_all(|| ToWorker::Withdraw(left.clone()));
        let SharedByWorkers { roster, control, board, claims, .. } = shared;
        for address in listeners.addresses() {
            tracing::info!("listening for switches on {address}");
        }
        Ok(Control {
            poll,
            accepting: Accepting::new(listeners.len() + 1),
            listeners,
            socket,
            operators: Operators::new(FIRST_OPERATOR),
            more_questions: false,
            workers,
            from_workers,
            roster,
            pins,
            withdrawn,
            queries: OperatorQueries::default(),
            apps: Vec::new(),
            packages: RunningPackages::new(config.packages.clone()),
            shortfalls: Shortfalls::default(),
            usage: UsageTotals::new(&config.apps, config.southbound.workers.into()),
            next_count_ms: 0,
            kernel: None,
            safe_mode: None,
            left_of_reload: None,
            loader: Loader::new(CallTracker::of_control(board), control, load_code),
            to_monitor: MonitorQueue::new(FromKernel::Ready),
            claims,
            epoch,
        })
    }

    fn now_ms(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    fn serve(mut self, channel: &Channel) -> io::Result<()> {
        let monitor_fd = channel.as_fd().as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&monitor_fd), MONITOR, Interest::READABLE)?;
        let mut events = Events::with_capacity(256);
        let mut next_alive_ms = 0;
        while !self.workers.are_over() {
            let timeout = if self.accepting.is_urgent() || self.more_questions {
                Duration::ZERO
            } else {
                Duration::from_millis(ALIVE_INTERVAL_MS / 2)
            };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.hear_monitor(channel);
            self.hear_workers();
            self.workers.check()?;
            for event in &events {
                match event.token() {
                    OPERATORS => self.accepting.push(self.listeners.len()),
                    Token(token) if token >= FIRST_OPERATOR => self.operators.hear(token),
                    Token(token) if token >= FIRST_LISTENER => self.accepting.push(token - FIRST_LISTENER),
                    _ => {}
                }
            }
            self.accept();
            self.answer_operators();
            if self.now_ms() >= next_alive_ms && self.workers.have_all_moved() {
                next_alive_ms = self.now_ms() + ALIVE_INTERVAL_MS;
                self.packages.write_down();
                self.to_monitor.push(FromKernel::Alive);
            }
            self.give_up_loading();
            self.count_zones();
            owning::tell(&self.claims, &mut self.to_monitor);
            self.pins.keep(&self.roster);
            self.withdrawn.keep();
            self.to_monitor.send(channel);
        }
        self.socket.remove();
        self.pins.finish(&self.roster);
        self.withdrawn.finish();
        self.workers.join();
        Ok(())
    }

    fn accept(&mut self) {
        for index in self.accepting.take(self.now_ms()) {
            let more = match index < self.listeners.len() {
                true => self.accept_switches(index),
                false => self.accept_operators(),
            };
            if more {
                self.accepting.push(index);
            }
        }
    }

    fn accept_switches(&mut self, index: usize) -> bool {
        let Control { listeners, workers, .. } = self;
        listeners.accept(index, |stream, peer| workers.adopt(stream, peer))
    }

    fn hear_monitor(&mut self, channel: &Channel) {
        loop {
            match channel.try_receive::<ToKernel>() {
                Ok(received) => self.on_monitor(received.message, received.fds),
                Err(ChannelError::NotNow) => return,
                Err(error) => {
                    tracing::error!("the connection to the monitor is lost ({error}): the node ends");
                    return self.workers.end();
                }
            }
        }
    }

    fn on_monitor(&mut self, message: ToKernel, fds: Vec<OwnedFd>) {
        match message {
            ToKernel::Configure { .. } | ToKernel::Owned { .. } => {}
            ToKernel::AttachZone { zone, app, generation, ports, grant } => match AppGrant::read(grant) {
                Ok(grant) => {
                    self.tell_grant(&app, &grant);
                    self.attach(zone, app, generation, fds, ports, &grant.to_kernel());
                }
                Err(reason) => self.to_monitor.push(not_attached(app, generation, reason)),
            },
            ToKernel::DetachZone { zone, app, generation, reason } => {
                tracing::info!("app {app}: its zone is detached: {reason}");
                self.workers.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation });
            }
            ToKernel::LoadTrusted { zone, app, source, settings, grant } => {
                if let Err(reason) = self.load_trusted(zone, app.clone(), source, &settings, grant) {
                    self.to_monitor.push(FromKernel::TrustedFault { app, reason });
                }
            }
            ToKernel::UnloadTrusted { zone, app, reason } => {
                tracing::info!("app {app} is unloaded: {reason}");
                self.loader.forget(zone);
                self.workers.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation: 0 });
            }
            ToKernel::Regrant { zone, app, generation, grant } => self.regrant(zone, &app, generation, grant),
            ToKernel::Reconfigure { config } => self.reconfigure(config),
            ToKernel::Reloaded { ticket, refused, done, left } => {
                self.on_reloaded(ticket, refused, done, left)
            }
            ToKernel::StoreSaved { ticket, trouble } => self.queries.on_saved(ticket, trouble),
            ToKernel::AppAdded { app, limits, about } => {
                self.packages.add(&app, about);
                self.usage.add(app, limits);
            }
            ToKernel::Apps { apps, kernel, safe_mode } => {
                self.packages.on_apps(&apps);
                self.safe_mode = safe_mode;
                self.apps = apps;
                self.kernel = Some(kernel);
            }
            ToKernel::Resources { zones, node } => self.usage.on_usage(zones, node),
            ToKernel::SoftLimit { zone, generation, excess } => {
                // One of its ports is enough, or one instance: a trusted app has those of its last start alone.
                let is_meant = |app: &&AppStatus| app.zone == zone && app.generation == generation;
                let app = self.apps.iter().find(is_meant);
                let is_trusted = app.is_some_and(|app| app.kind == ZoneKind::Trusted);
                let (generation, limit) = (if is_trusted { 0 } else { generation }, soft_limit(&excess));
                if !self.workers.tell(0, ToWorker::TellSoftLimit { zone: ZoneId(zone), generation, limit }) {
                    tracing::warn!(
                        zone,
                        "the app is not informed about its soft limit: the queue of its worker is full"
                    );
                }
            }
            ToKernel::Shutdown => self.workers.end(),
        }
    }

    /// Updates an app's grant at all workers.
    fn tell_grant(&mut self, app: &str, grant: &AppGrant) {
        self.to_monitor.push_records(vec![
            Record::new(now_unix_ms(), "granted", "kernel", grant.in_words()).of_app(app),
        ]);
    }

    /// Gives each worker its port of a process zone. If a worker cannot take it, the monitor restarts the app.
    fn attach(
        &mut self,
        zone: u16,
        app: String,
        generation: u64,
        fds: Vec<OwnedFd>,
        ports: u16,
        grant: &Grant,
    ) {
        let ports = split_ports(fds, ports).and_then(|ports| {
            let (came, needed) = (ports.len(), self.workers.len());
            if came == needed {
                Ok(ports)
            } else {
                Err(format!("the monitor sent {came} ports for {needed} workers"))
            }
        });
        let ports = match ports {
            Ok(ports) => ports,
            Err(reason) => return self.to_monitor.push(not_attached(app, generation, reason)),
        };
        let all = Arc::new(NodeRates::new(grant.quotas(), self.now_ms()));
        for (worker, port) in ports.into_iter().enumerate() {
            let rates = all.clone();
            let (zone, app_name, grant) = (ZoneId(zone), app.clone(), Box::new(grant.clone()));
            let message = ToWorker::AttachZone { zone, app: app_name, generation, port, grant, rates };
            if !self.workers.tell_now(worker, message) {
                let reason = "a worker could not take its port".to_owned();
                self.to_monitor.push(not_attached(app.clone(), generation, reason));
            }
        }
    }

    fn hear_workers(&mut self) {
        self.workers.send_pending();
        while let Ok(message) = self.from_workers.try_recv() {
            match message {
                FromWorker::ZoneFault { app, generation, cause, reason } => {
                    tracing::warn!("app {app}: {reason}");
                    self.to_monitor.push(FromKernel::ZoneFault { app, generation, cause, reason });
                }
                FromWorker::TrustedFault { app, reason } => {
                    tracing::warn!("trusted app {app}: {reason}");
                    self.to_monitor.push(FromKernel::TrustedFault { app, reason });
                }
                FromWorker::SwitchLeftProfile(left) => self.to_monitor.push_if_room(left.into_message()),
                FromWorker::ToNode(frame) => self.queries.on_frame(&frame),
                FromWorker::Counts { ticket, sessions, zones, switches } => {
                    self.queries.on_counts(ticket, sessions, zones, switches)
                }
                FromWorker::ZonesCounted { worker, zones } => {
                    if let Some(zones) = self.usage.on_counted(worker, zones) {
                        self.to_monitor.push_if_room(FromKernel::Counts { zones });
                    }
                }
                FromWorker::NoFlows { ticket, reason } => self.queries.on_trouble(ticket, &reason),
                FromWorker::Audit(records) => {
                    let is_packaged = |app: &str| self.packages.view(app).is_some();
                    let lines = self.shortfalls.hear(&records, is_packaged);
                    lines.iter().for_each(|line| tracing::warn!("{line}"));
                    self.to_monitor.push_records(records);
                }
                FromWorker::Line { app, generation, line } => {
                    self.to_monitor.push_if_room(FromKernel::Line { app, generation, line });
                }
                FromWorker::Loaded { zone, number, loaded } => self.on_loaded(zone, number, loaded),
                FromWorker::Withdrawn(ids) => {
                    let left = self.withdrawn.on_done(ids);
                    self.workers.tell_all(|| ToWorker::Withdraw(left.clone()));
                }
                FromWorker::Ended => self.workers.on_ended(),
            }
        }
    }

    /// Lets the workers count their zones at the monitor's interval.
    fn count_zones(&mut self) {
        if self.now_ms() < self.next_count_ms {
            return;
        }
        self.next_count_ms = self.now_ms() + SAMPLE_INTERVAL_MS;
        for worker in 0..self.workers.len() {
            // A worker with a full queue is asked again next time.
            let _ = self.workers.tell_now(worker, ToWorker::CountZones);
        }
    }
}

/// The node could not connect a zone.
fn not_attached(app: String, generation: u64, reason: String) -> FromKernel {
    FromKernel::ZoneFault { app, generation, cause: FaultCause::NotAttached, reason }
}
