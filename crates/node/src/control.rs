//! The control thread of the kernel process: accepts switches, talks with the monitor and with the operator.
//!
//! ```text
//!   monitor  ──ToKernel──>   ┌─────────┐ ──ToWorker──> workers
//!   monitor  <─FromKernel──  │ control │ <─FromWorker── workers
//!   operator ──Question──>   │         │ ──Answer──> operator
//!   switches ──connect──>    └─────────┘
//! ```
//!
//! It waits only in its poll, touches no packet, and says to the monitor that the node is alive only if every worker has moved.

mod loading;
mod owning;
mod pinning;
mod reloading;
mod sessions;
mod starting;

use super::accepting::Accepting;
use super::call_tracker::CallTracker;
use super::loader::Loader;
use super::messages::{ControlSender, FromWorker, ToWorker, WorkerSender};
use super::operator_line::Peer;
use super::operator_queries::{OperatorId, OperatorQueries};
use super::operators::{OPERATORS_MAX, Operators};
use super::pending_messages::PendingMessages;
use super::pins::PinFile;
use super::running_packages::RunningPackages;
use super::shortfalls::Shortfalls;
use super::socket::OperatorSocket;
use super::usage::{UsageTotals, soft_limit};
use super::worker::now_unix_ms;
use crate::descriptors;
use crate::loader::LoadCode;
use abi::ZoneId;
use config::{AppGrant, Config};
use flow::DatapathId;
use kernel::{Claims, Grant, NodeRates};
use mio::net::UnixStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use monitor_channel::channel::{Channel, ChannelError};
use monitor_channel::protocol::{ALIVE_INTERVAL_MS, AUDIT_RECORDS_MAX, FromKernel, ToKernel, split_ports};
use monitor_channel::record::Record;
use monitor_channel::{AppRole, AppStatus, Ending, KernelStatus, SAMPLE_INTERVAL_MS, Verb, ZoneKind};
use operator::contract::{Answer, NodeView, Question};
use ring::Board;
use sessions::southbound_config;
use southbound::{Listeners, Roster};
use starting::start_workers;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

const MONITOR: Token = Token(0);
const WORKERS: Token = Token(1);
const OPERATORS: Token = Token(2);
/// Listening sockets have tokens from here.
const FIRST_LISTENER: usize = 16;
/// Operators' connections have tokens from here.
const FIRST_OPERATOR: usize = 1024;

/// Questions of operators that are looked at in one turn, of all of them together. More wait for the next, which follows at once.
const QUESTIONS_PER_TURN: usize = 16;

/// Messages for the monitor that may wait before what comes again, and then records, are left out.
const TO_MONITOR_MAX: usize = 256;

/// How long workers may take to say goodbye to their switches.
const GOODBYE: Duration = Duration::from_secs(2);

/// What ends the kernel process before it has begun: the exit code and one sentence.
struct Fatal(u8, String);

/// The kernel process: `burnet kernel`. Finds its monitor on standard input.
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
    match start(&channel, load_code).and_then(|control| control.serve(&channel).map_err(ours)) {
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

/// What there is to say of a worker's thread that is over.
fn how_it_ended(ended: std::thread::Result<io::Result<()>>) -> String {
    match ended {
        Ok(Ok(())) => "no end was requested".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(said), _) => format!("it panicked: {said}"),
            (_, Some(said)) => format!("it panicked: {said}"),
            _ => "it panicked".to_owned(),
        },
    }
}

fn ours(error: io::Error) -> Fatal {
    Fatal(1, format!("the kernel process cannot continue: {error}"))
}

fn start(channel: &Channel, load_code: LoadCode) -> Result<Control, Fatal> {
    let received = channel
        .receive::<ToKernel>()
        .map_err(|error| Fatal(1, format!("the monitor sent nothing: {error}")))?;
    let ToKernel::Configure { config, owners_follow } = received.message else {
        return Err(Fatal(1, "the first message of the monitor was not the configuration".to_owned()));
    };
    // Without one everything else works, and the monitor does not know whom a crash was in.
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
    /// The operators' socket is the last, after those of the switches.
    accepting: Accepting,
    socket: OperatorSocket,
    operators: Operators,
    /// Whether questions wait for the next turn.
    more_questions: bool,
    workers: Vec<WorkerSender>,
    threads: Threads,
    pending: PendingMessages<ToWorker>,
    next_worker: usize,
    from_workers: Receiver<FromWorker>,
    roster: Arc<Roster>,
    pins: PinFile,
    queries: OperatorQueries,
    apps: Vec<AppStatus>,
    packages: RunningPackages,
    shortfalls: Shortfalls,
    usage: UsageTotals,
    next_count_ms: u64,
    kernel: Option<KernelStatus>,
    safe_mode: Option<Ending>,
    /// What of the configuration that was read last could not hold, for the answer that follows.
    left_of_reload: Option<String>,
    loader: Loader,
    turns_seen: Vec<u64>,
    to_monitor: Vec<FromKernel>,
    claims: Arc<Claims>,
    epoch: Instant,
    ending: Option<Instant>,
    ended_workers: usize,
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
        let poll = Poll::new().map_err(ours)?;
        listeners.register(poll.registry(), FIRST_LISTENER).map_err(ours)?;
        poll.registry().register(&mut socket.listener, OPERATORS, Interest::READABLE).map_err(ours)?;
        let waker = Arc::new(Waker::new(poll.registry(), WORKERS).map_err(ours)?);
        let (control_line, from_workers) = ControlSender::new(waker);
        let roster = Arc::new(Roster::new(southbound.caps()));
        let pins = PinFile::open(config.node.records.as_deref(), &roster).map_err(|said| Fatal(2, said))?;
        let epoch = Instant::now();
        let (workers, threads) =
            start_workers(config, &southbound, &roster, &control_line, epoch, &board, &claims)
                .map_err(ours)?;
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
            turns_seen: vec![0; workers.len()],
            pending: PendingMessages::new(workers.len()),
            workers,
            threads,
            next_worker: 0,
            from_workers,
            roster,
            pins,
            queries: OperatorQueries::default(),
            apps: Vec::new(),
            packages: RunningPackages::new(config.packages.clone()),
            shortfalls: Shortfalls::default(),
            usage: UsageTotals::new(&config.apps, config.southbound.workers.into()),
            next_count_ms: 0,
            kernel: None,
            safe_mode: None,
            left_of_reload: None,
            loader: Loader::new(CallTracker::of_control(board), control_line, load_code),
            to_monitor: vec![FromKernel::Ready],
            claims,
            epoch,
            ending: None,
            ended_workers: 0,
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
        while !self.is_over() {
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
            self.look_at_workers()?;
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
            if self.now_ms() >= next_alive_ms && self.every_worker_moved() {
                next_alive_ms = self.now_ms() + ALIVE_INTERVAL_MS;
                self.packages.write_down();
                self.to_monitor.push(FromKernel::Alive);
            }
            self.give_up_loading();
            self.count_zones();
            self.tell_owners();
            self.pins.keep(&self.roster);
            self.tell_monitor(channel);
        }
        self.socket.remove();
        self.pins.finish(&self.roster);
        self.part_with_workers();
        Ok(())
    }

    /// If a worker ends unexpectedly, its switch sessions are lost, so the node restarts.
    fn look_at_workers(&mut self) -> io::Result<()> {
        if self.ending.is_some() {
            return Ok(());
        }
        let Some(number) = self.threads.iter().position(std::thread::JoinHandle::is_finished) else {
            return Ok(());
        };
        let why = how_it_ended(self.threads.swap_remove(number).join());
        Err(io::Error::other(format!("a worker ended unexpectedly: {why}")))
    }

    /// A worker that has not ended in its time is not waited for: it ends with the process.
    fn part_with_workers(self) {
        let (workers, ended) = (self.workers.len(), self.ended_workers);
        if ended < workers {
            let overdue = workers - ended;
            let patience_s = GOODBYE.as_secs();
            tracing::error!(
                "{overdue} of {workers} workers did not end within {patience_s} s; their switch connections are cut"
            );
        }
        let over = |thread: &std::thread::JoinHandle<_>| ended == workers || thread.is_finished();
        for thread in self.threads.into_iter().filter(over) {
            match thread.join() {
                Ok(Ok(())) => {}
                other => tracing::error!("a worker panicked: {}", how_it_ended(other)),
            }
        }
    }

    fn is_over(&self) -> bool {
        let overdue = self.ending.is_some_and(|since| since.elapsed() > GOODBYE);
        self.ended_workers == self.workers.len() || overdue
    }

    fn every_worker_moved(&mut self) -> bool {
        let turns: Vec<_> = self.workers.iter().map(WorkerSender::turns).collect();
        let moved = turns.iter().zip(&self.turns_seen).all(|(now, before)| now != before);
        if moved {
            self.turns_seen = turns;
        }
        moved
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
        let Control { listeners, workers, next_worker, .. } = self;
        listeners.accept(index, |stream, peer| {
            let line = &workers[*next_worker % workers.len()];
            *next_worker += 1;
            if line.send(ToWorker::Adopt(stream, peer)).is_err() {
                tracing::warn!(%peer, "connection closed: the worker is overloaded");
            }
        })
    }

    fn hear_monitor(&mut self, channel: &Channel) {
        loop {
            match channel.try_receive::<ToKernel>() {
                Ok(received) => self.on_monitor(received.message, received.fds),
                Err(ChannelError::NotNow) => return,
                Err(error) => {
                    tracing::error!("the connection to the monitor is lost ({error}): the node ends");
                    return self.end();
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
                Err(reason) => self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason }),
            },
            ToKernel::DetachZone { zone, app, generation, reason } => {
                tracing::info!("app {app}: its zone is detached: {reason}");
                self.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation });
            }
            ToKernel::LoadTrusted { zone, app, source, settings, grant } => {
                if let Err(reason) = self.load_trusted(zone, app.clone(), source, &settings, grant) {
                    self.to_monitor.push(FromKernel::TrustedFault { app, reason });
                }
            }
            ToKernel::UnloadTrusted { zone, app, reason } => {
                tracing::info!("app {app} is unloaded: {reason}");
                self.loader.forget(zone);
                self.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation: 0 });
            }
            ToKernel::Regrant { zone, app, generation, grant } => self.regrant(zone, &app, generation, grant),
            ToKernel::Reconfigure { config } => self.reconfigure(config),
            ToKernel::Reloaded { ticket, refused, done, left } => {
                self.on_reloaded(ticket, refused, done, left)
            }
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
                if !self.pending.push(0, ToWorker::TellSoftLimit { zone: ZoneId(zone), generation, limit }) {
                    tracing::warn!(
                        zone,
                        "the app is not informed about its soft limit: the queue of its worker is full"
                    );
                }
                self.pay();
            }
            ToKernel::Shutdown => self.end(),
        }
    }

    /// What an app may do from now on.
    fn tell_grant(&mut self, app: &str, grant: &AppGrant) {
        self.tell_records(vec![
            Record::new(now_unix_ms(), "granted", "kernel", grant.in_words()).of_app(app),
        ]);
    }

    /// To the service that keeps them. What a worker cannot take now the monitor tells again.
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
            Err(reason) => return self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason }),
        };
        let all = Arc::new(NodeRates::new(grant.quotas(), self.now_ms()));
        for (line, port) in self.workers.iter().zip(ports) {
            let rates = all.clone();
            let (zone, app_name, grant) = (ZoneId(zone), app.clone(), Box::new(grant.clone()));
            let message = ToWorker::AttachZone { zone, app: app_name, generation, port, grant, rates };
            if line.send(message).is_err() {
                let reason = "a worker could not take its port".to_owned();
                self.to_monitor.push(FromKernel::ZoneFault { app: app.clone(), generation, reason });
            }
        }
    }

    fn tell_all(&mut self, message: impl Fn() -> ToWorker) {
        for worker in 0..self.workers.len() {
            if !self.pending.push(worker, message()) {
                tracing::error!(worker, "a message to a worker is lost: its queue is full");
            }
        }
        self.pay();
    }

    /// Messages that did not fit into a worker's box are sent in a later turn.
    fn pay(&mut self) {
        let Control { pending, workers, .. } = self;
        pending.send(|worker, message| workers[worker].send(message));
    }

    fn end(&mut self) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.tell_all(|| ToWorker::Shutdown);
        }
    }

    fn hear_workers(&mut self) {
        self.pay();
        while let Ok(message) = self.from_workers.try_recv() {
            match message {
                FromWorker::ZoneFault { app, generation, reason } => {
                    tracing::warn!("app {app}: {reason}");
                    self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason });
                }
                FromWorker::TrustedFault { app, reason } => {
                    tracing::warn!("trusted app {app}: {reason}");
                    self.to_monitor.push(FromKernel::TrustedFault { app, reason });
                }
                FromWorker::ToNode(frame) => self.queries.on_frame(&frame),
                FromWorker::Counts { ticket, sessions, zones, switches } => {
                    self.queries.on_counts(ticket, sessions, zones, switches)
                }
                FromWorker::ZonesCounted { worker, zones } => {
                    if let Some(zones) = self.usage.on_counted(worker, zones)
                        && self.to_monitor.len() < TO_MONITOR_MAX
                    {
                        self.to_monitor.push(FromKernel::Counts { zones });
                    }
                }
                FromWorker::NoFlows { ticket, reason } => self.queries.on_trouble(ticket, &reason),
                FromWorker::Audit(records) => {
                    let is_packaged = |app: &str| self.packages.view(app).is_some();
                    let lines = self.shortfalls.hear(&records, is_packaged);
                    lines.iter().for_each(|line| tracing::warn!("{line}"));
                    self.tell_records(records);
                }
                FromWorker::Line { app, generation, line } => {
                    self.tell_line(FromKernel::Line { app, generation, line });
                }
                FromWorker::Loaded { zone, number, loaded } => self.on_loaded(zone, number, loaded),
                FromWorker::Ended => self.ended_workers += 1,
            }
        }
    }

    /// What an app says. A monitor that takes nothing does without.
    fn tell_line(&mut self, said: FromKernel) {
        if self.to_monitor.len() < TO_MONITOR_MAX {
            self.to_monitor.push(said);
        }
    }

    /// Lets the workers count their zones, as often as the monitor measures.
    fn count_zones(&mut self) {
        if self.now_ms() < self.next_count_ms {
            return;
        }
        self.next_count_ms = self.now_ms() + SAMPLE_INTERVAL_MS;
        for line in &self.workers {
            // A worker whose box is full is asked the next time.
            let _ = line.send(ToWorker::CountZones);
        }
    }

    /// Something for the records. If the monitor takes nothing for so long that too much waits, the newest are left out.
    fn tell_records(&mut self, mut records: Vec<Record>) {
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(AUDIT_RECORDS_MAX));
            if self.to_monitor.len() >= TO_MONITOR_MAX {
                return tracing::error!("audit records are lost: the monitor does not read them");
            }
            self.to_monitor.push(FromKernel::Audit { records });
            records = rest;
        }
    }

    /// What does not fit into the socket now is said in a later turn, in order.
    fn tell_monitor(&mut self, channel: &Channel) {
        let mut said = 0;
        for message in &self.to_monitor {
            match channel.try_send(message, &[]) {
                Err(ChannelError::NotNow) => break,
                _ => said += 1,
            }
        }
        self.to_monitor.drain(..said);
    }

    /// `true` if more may wait.
    fn accept_operators(&mut self) -> bool {
        for _ in 0..OPERATORS_MAX {
            match self.socket.listener.accept() {
                Ok((stream, _)) => self.adopt_operator(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    tracing::warn!("an operator's connection could not be accepted: {error}");
                    return false;
                }
            }
        }
        true
    }

    fn adopt_operator(&mut self, stream: UnixStream) {
        let registry = self.poll.registry();
        let peer = Peer::of(&stream);
        self.operators.adopt(stream, peer, |stream, operator_id| {
            registry.register(stream, Token(operator_id), Interest::READABLE | Interest::WRITABLE).is_ok()
        });
    }

    /// Looks at questions, in turn, until there are no more or the turn has had its share.
    fn take_questions(&mut self) {
        self.more_questions = false;
        for _ in 0..QUESTIONS_PER_TURN {
            // What waits is heard when there is room again.
            if !self.queries.has_room() {
                return;
            }
            let Some((operator_id, line)) = self.operators.next_question() else { return };
            let answer = match serde_json::from_slice::<Question>(&line) {
                Ok(question) => self.ask(operator_id, question),
                Err(error) => Some(Answer::Refused(format!("invalid request: {error}"))),
            };
            if let Some(answer) = answer {
                self.operators.answer(operator_id, &answer);
            }
        }
        self.more_questions = true;
    }

    /// Answers at once, or opens the question and answers later.
    fn ask(&mut self, operator_id: OperatorId, question: Question) -> Option<Answer> {
        let now_ms = self.now_ms();
        match question {
            Question::Node => Some(Answer::Node(self.node_view())),
            Question::Switches => {
                let ticket = self.queries.open_switches(
                    operator_id,
                    self.roster.switches(),
                    self.workers.len(),
                    now_ms,
                );
                self.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Apps => {
                let ticket =
                    self.queries.open_apps(operator_id, self.apps.clone(), self.workers.len(), now_ms);
                self.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Usage => Some(Answer::Usage(self.usage.view(&self.apps))),
            Question::Flows { datapath } => self.ask_flows(operator_id, datapath),
            Question::App { app, verb, why } => {
                let peer = self.operators.peer(operator_id);
                Some(self.ask_for_app(app, verb, why, peer))
            }
            Question::LeaveSafeMode => {
                let peer = self.operators.peer(operator_id);
                Some(self.leave_safe_mode(peer))
            }
            Question::Reload { app } => {
                let peer = self.operators.peer(operator_id);
                self.ask_reload(operator_id, app, peer)
            }
            Question::Pins => Some(self.pins_view()),
            Question::ForgetPin { datapath } => {
                let peer = self.operators.peer(operator_id);
                Some(self.forget_pin(datapath, peer))
            }
            Question::AddApp { app } => {
                let peer = self.operators.peer(operator_id);
                Some(self.add_app(app, peer))
            }
        }
    }

    fn node_view(&self) -> NodeView {
        let kernel = self.kernel.as_ref();
        NodeView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            listen: self.listeners.addresses().iter().map(ToString::to_string).collect(),
            workers: self.workers.len(),
            uptime_ms: self.now_ms(),
            kernel_restarts: kernel.map(|kernel| kernel.restarts).unwrap_or_default(),
            kernel_last_end: kernel.and_then(|kernel| kernel.last_end.as_ref()).map(|end| end.reason.clone()),
            switches: self.roster.switches().len(),
            connections: self.roster.connections(),
            safe_mode: self.safe_mode.clone(),
        }
    }

    fn ask_flows(&mut self, operator_id: OperatorId, wanted: Option<DatapathId>) -> Option<Answer> {
        let switches = self.roster.switches();
        let datapaths: Vec<_> = switches
            .iter()
            .map(|record| record.datapath)
            .filter(|datapath| wanted.is_none_or(|wanted| wanted == *datapath))
            .collect();
        if let (Some(wanted), true) = (wanted, datapaths.is_empty()) {
            return Some(Answer::Refused(format!(
                "{wanted} is not connected; `burnet switches` lists the connected switches"
            )));
        }
        for (datapath, ticket) in self.queries.open_flows(operator_id, &datapaths, self.now_ms()) {
            let line = self.roster.worker_of(datapath).and_then(|worker| self.workers.get(worker));
            let asked = line.map(|line| line.send(ToWorker::AskFlows { datapath, ticket }));
            if !matches!(asked, Some(Ok(()))) {
                self.queries.on_trouble(ticket, "it is gone");
            }
        }
        None
    }

    fn leave_safe_mode(&mut self, peer: Peer) -> Answer {
        if self.safe_mode.is_none() {
            return Answer::Refused("the node is not in safe mode".to_owned());
        }
        tracing::info!("the operator ends safe mode ({peer})");
        let asked = format!("leave safe mode ({peer})");
        self.tell_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked)]);
        self.to_monitor.push(FromKernel::LeaveSafeMode);
        Answer::Done
    }

    fn add_app(&mut self, app: String, peer: Peer) -> Answer {
        tracing::info!("app {app:?}: the operator adds it ({peer})");
        let asked = format!("add ({peer})");
        self.tell_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked).of_app(&app)]);
        self.to_monitor.push(FromKernel::AddApp { app });
        Answer::Done
    }

    fn ask_for_app(&mut self, app: String, verb: Verb, why: Option<String>, peer: Peer) -> Answer {
        let Some(status) = self.apps.iter().find(|status| status.app == app) else {
            let names: Vec<&str> = self.apps.iter().map(|status| status.app.as_str()).collect();
            return Answer::Refused(no_such_app(&app, &names));
        };
        if verb == Verb::Remove && self.packages.view(&app).is_none() {
            return Answer::Refused(format!(
                "{app} is in the configuration but not installed: remove it from the configuration"
            ));
        }
        if status.role == AppRole::Service && matches!(verb, Verb::Stop | Verb::Quarantine) {
            return Answer::Refused(format!(
                "{app} is a service of the node and cannot be stopped while the node runs; `burnet app restart {app}` restarts it"
            ));
        }
        tracing::info!("app {app}: {} by the operator ({peer})", verb.as_str());
        let asked = format!("{} ({peer})", verb.as_str());
        self.tell_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked).of_app(&app)]);
        self.to_monitor.push(FromKernel::Operator { app, verb, why });
        Answer::Done
    }

    fn answer_operators(&mut self) {
        let now_ms = self.now_ms();
        for (operator_id, answer) in self.queries.take_answers(now_ms) {
            let answer = self.with_owners(answer);
            self.operators.answer(operator_id, &answer);
        }
        self.take_questions();
        for operator_id in self.operators.part(now_ms) {
            self.queries.forget(operator_id);
        }
    }

    /// Puts the names of apps in the place of the numbers of their zones, and their packages beside them.
    fn with_owners(&self, mut answer: Answer) -> Answer {
        if let Answer::Apps(apps) = &mut answer {
            for app in apps.iter_mut() {
                app.package = self.packages.view(&app.status.app);
                app.shortfalls = self.shortfalls.of(&app.status.app);
                app.over = self.usage.over(app.status.zone);
                app.used = self.usage.last(&app.status);
            }
        }
        let Answer::Flows(switches) = &mut answer else { return answer };
        for flow in switches.iter_mut().flat_map(|switch| &mut switch.flows) {
            flow.owner = match flow.owner.parse::<u16>() {
                Ok(zone) => {
                    let app = self.apps.iter().find(|status| status.zone == zone);
                    app.map_or_else(|| format!("zone {zone}"), |status| status.app.clone())
                }
                Err(_) => continue,
            };
        }
        answer
    }
}

type Threads = Vec<std::thread::JoinHandle<io::Result<()>>>;

/// There is no such app on the node; which one may have been meant.
fn no_such_app(app: &str, names: &[&str]) -> String {
    let suggestion = package::toml_text::nearest(app, names)
        .map_or(String::new(), |near| format!(": did you mean {near}?"));
    format!("there is no app {app} on this node{suggestion}; `burnet app list` lists the apps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_worker_ended_is_told_in_its_own_words() {
        let check = |ended, expected: &str| assert_eq!(how_it_ended(ended), expected);
        check(Ok(Err(io::Error::other("no poll"))), "no poll");
        check(Err(Box::new("a bug")), "it panicked: a bug");
        check(Err(Box::new("another".to_owned())), "it panicked: another");
        check(Err(Box::new(7)), "it panicked");
        check(Ok(Ok(())), "no end was requested");
    }
}
