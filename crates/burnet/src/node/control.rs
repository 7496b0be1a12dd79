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

use super::client;
use super::desk::{Asker, Desk};
use super::mail::{ControlLine, FromWorker, ToWorker, WorkerLine};
use super::operator::{Answer, LINE_BYTES_MAX, NodeView, Question};
use super::worker::{WAKER_TOKEN, Worker, WorkerSetup};
use crate::apps;
use crate::config::{AppGrant, Config, OpenFlowVersion, Role};
use abi::ZoneId;
use flow::DatapathId;
use kernel::Grant;
use mio::net::{UnixListener, UnixStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use monitor::channel::{Channel, ChannelError};
use monitor::protocol::{ALIVE_INTERVAL_MS, FromKernel, ToKernel, split_ports};
use monitor::{AppStatus, KernelStatus, Verb};
use southbound::tls::{TlsFiles, load};
use southbound::{Listeners, RoleWanted, Roster, SouthboundConfig, Versions};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
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

/// Operators at once. One more is closed when it comes.
const OPERATORS_MAX: usize = 64;

/// Bytes of answers that one operator may leave unread before its connection is closed.
const UNREAD_BYTES_MAX: usize = 256 << 20;

/// How long workers may take to say goodbye to their switches.
const GOODBYE: Duration = Duration::from_secs(2);

/// What ends the kernel process before it has begun: the exit code and one sentence.
struct Fatal(u8, String);

/// The kernel process: `burnet kernel`. Finds its monitor on standard input.
pub fn run() -> ExitCode {
    let channel = match monitor::child::die_with_parent()
        .map_err(ChannelError::Io)
        .and_then(|()| Channel::from_stdin())
    {
        Ok(channel) => channel,
        Err(error) => {
            eprintln!("the kernel process is started by `burnet run`, not by hand: {error}");
            return ExitCode::from(2);
        }
    };
    match start(&channel).and_then(|control| control.serve(&channel).map_err(ours)) {
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

fn ours(error: io::Error) -> Fatal {
    Fatal(1, format!("the kernel process cannot go on: {error}"))
}

fn start(channel: &Channel) -> Result<Control, Fatal> {
    let received = channel
        .receive::<ToKernel>()
        .map_err(|error| Fatal(1, format!("the monitor said nothing: {error}")))?;
    let ToKernel::Configure { config } = received.message else {
        return Err(Fatal(1, "the monitor did not begin with the configuration".to_owned()));
    };
    let config: Config = serde_json::from_value(config)
        .map_err(|error| Fatal(1, format!("the configuration cannot be read: {error}")))?;
    crate::logging::start(config.node.log);
    Control::new(&config)
}

struct Operator {
    stream: UnixStream,
    read: Vec<u8>,
    unread: Vec<u8>,
    /// Whether an answer is being waited for: the next question is looked at when it is there.
    waiting: bool,
    finished: bool,
}

struct Control {
    poll: Poll,
    listeners: Listeners,
    /// Listening sockets that have more connections than a turn takes.
    accepting: Vec<usize>,
    socket: UnixListener,
    socket_path: std::path::PathBuf,
    operators: HashMap<Asker, Operator>,
    next_operator: Asker,
    workers: Vec<WorkerLine>,
    threads: Vec<std::thread::JoinHandle<io::Result<()>>>,
    next_worker: usize,
    from_workers: Receiver<FromWorker>,
    roster: Arc<Roster>,
    desk: Desk,
    apps: Vec<AppStatus>,
    kernel: Option<KernelStatus>,
    turns_seen: Vec<u64>,
    to_monitor: Vec<FromKernel>,
    epoch: Instant,
    ending: Option<Instant>,
    ended_workers: usize,
}

impl Control {
    fn new(config: &Config) -> Result<Control, Fatal> {
        let southbound = southbound_config(config)?;
        let specs: Vec<_> = config.southbound.listen.iter().map(|place| place.0).collect();
        let mut listeners = Listeners::bind(&specs).map_err(|error| Fatal(2, error.to_string()))?;
        let mut socket = bind_operators(&config.node.socket)?;
        let poll = Poll::new().map_err(ours)?;
        listeners.register(poll.registry(), FIRST_LISTENER).map_err(ours)?;
        poll.registry().register(&mut socket, OPERATORS, Interest::READABLE).map_err(ours)?;
        let waker = Arc::new(Waker::new(poll.registry(), WORKERS).map_err(ours)?);
        let (control_line, from_workers) = ControlLine::new(waker);
        let roster = Arc::new(Roster::new(southbound.max_connections, southbound.max_half_open_per_address));
        let epoch = Instant::now();
        let (workers, threads) =
            start_workers(config.southbound.workers, &southbound, &roster, &control_line, epoch)
                .map_err(ours)?;
        for address in listeners.addresses() {
            tracing::info!("listening for switches on {address}");
        }
        Ok(Control {
            poll,
            listeners,
            accepting: Vec::new(),
            socket,
            socket_path: config.node.socket.clone(),
            operators: HashMap::new(),
            next_operator: FIRST_OPERATOR,
            turns_seen: vec![0; workers.len()],
            workers,
            threads,
            next_worker: 0,
            from_workers,
            roster,
            desk: Desk::default(),
            apps: Vec::new(),
            kernel: None,
            to_monitor: vec![FromKernel::Ready],
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
            let timeout = if self.accepting.is_empty() {
                Duration::from_millis(ALIVE_INTERVAL_MS / 2)
            } else {
                Duration::ZERO
            };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.hear_monitor(channel);
            self.hear_workers();
            for event in &events {
                match event.token() {
                    OPERATORS => self.accept_operators(),
                    Token(token) if token >= FIRST_OPERATOR => self.hear_operator(token),
                    Token(token) if token >= FIRST_LISTENER => self.accepting.push(token - FIRST_LISTENER),
                    _ => {}
                }
            }
            self.accept_switches();
            self.answer_operators();
            if self.now_ms() >= next_alive_ms && self.every_worker_moved() {
                next_alive_ms = self.now_ms() + ALIVE_INTERVAL_MS;
                self.to_monitor.push(FromKernel::Alive);
            }
            self.tell_monitor(channel);
        }
        let _ = std::fs::remove_file(&self.socket_path);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        Ok(())
    }

    fn is_over(&self) -> bool {
        let overdue = self.ending.is_some_and(|since| since.elapsed() > GOODBYE);
        self.ended_workers == self.workers.len() || overdue
    }

    fn every_worker_moved(&mut self) -> bool {
        let turns: Vec<_> = self.workers.iter().map(WorkerLine::turns).collect();
        let moved = turns.iter().zip(&self.turns_seen).all(|(now, before)| now != before);
        if moved {
            self.turns_seen = turns;
        }
        moved
    }

    fn accept_switches(&mut self) {
        for index in std::mem::take(&mut self.accepting) {
            let Control { listeners, workers, next_worker, .. } = self;
            let more = listeners.accept(index, |stream, peer| {
                let line = &workers[*next_worker % workers.len()];
                *next_worker += 1;
                if line.send(ToWorker::Adopt(stream, peer)).is_err() {
                    tracing::warn!(%peer, "connection closed: the worker has more to do than it can take on");
                }
            });
            if more {
                self.accepting.push(index);
            }
        }
    }

    fn hear_monitor(&mut self, channel: &Channel) {
        loop {
            match channel.try_receive::<ToKernel>() {
                Ok(received) => self.on_monitor(received.message, received.fds),
                Err(ChannelError::NotNow) => return,
                Err(error) => {
                    tracing::error!("the monitor is gone ({error}): the node ends");
                    return self.end();
                }
            }
        }
    }

    fn on_monitor(&mut self, message: ToKernel, fds: Vec<OwnedFd>) {
        match message {
            ToKernel::Configure { .. } => {}
            ToKernel::AttachZone { zone, app, generation, ports, grant } => match AppGrant::read(grant) {
                Ok(grant) => self.attach(zone, app, generation, fds, ports, &grant.to_kernel()),
                Err(reason) => self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason }),
            },
            ToKernel::DetachZone { zone, app, generation, reason } => {
                tracing::info!("app {app}: its zone is detached: {reason}");
                self.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation });
            }
            ToKernel::LoadTrusted { zone, app, source, settings, grant } => {
                match apps::trusted_code(&source).and_then(|code| Ok((code, AppGrant::read(grant)?))) {
                    Ok((code, grant)) => {
                        let grant = Box::new(grant.to_kernel());
                        let settings = serde_json::to_vec(&settings).unwrap_or_default();
                        self.tell_all(|| ToWorker::LoadTrusted {
                            zone: ZoneId(zone),
                            app: app.clone(),
                            code: code.clone(),
                            settings: settings.clone(),
                            grant: grant.clone(),
                        });
                    }
                    Err(reason) => self.to_monitor.push(FromKernel::TrustedFault { app, reason }),
                }
            }
            ToKernel::UnloadTrusted { zone, app, reason } => {
                tracing::info!("app {app} is unloaded: {reason}");
                self.tell_all(|| ToWorker::DetachZone { zone: ZoneId(zone), generation: 0 });
            }
            ToKernel::Apps { apps, kernel } => {
                self.apps = apps;
                self.kernel = Some(kernel);
            }
            ToKernel::Shutdown => self.end(),
        }
    }

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
            if came == needed { Ok(ports) } else { Err(format!("{came} ports came for {needed} workers")) }
        });
        let ports = match ports {
            Ok(ports) => ports,
            Err(reason) => return self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason }),
        };
        for (line, port) in self.workers.iter().zip(ports) {
            let (zone, app_name, grant) = (ZoneId(zone), app.clone(), Box::new(grant.clone()));
            let letter = ToWorker::AttachZone { zone, app: app_name, generation, port, grant };
            if line.send(letter).is_err() {
                let reason = "a worker could not take its port".to_owned();
                self.to_monitor.push(FromKernel::ZoneFault { app: app.clone(), generation, reason });
            }
        }
    }

    fn tell_all(&mut self, letter: impl Fn() -> ToWorker) {
        for line in &self.workers {
            if line.send(letter()).is_err() {
                tracing::error!("a worker's letter box is full: what was meant for it is lost");
            }
        }
    }

    fn end(&mut self) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.tell_all(|| ToWorker::Shutdown);
        }
    }

    fn hear_workers(&mut self) {
        while let Ok(letter) = self.from_workers.try_recv() {
            match letter {
                FromWorker::ZoneFault { app, generation, reason } => {
                    tracing::warn!("app {app}: {reason}");
                    self.to_monitor.push(FromKernel::ZoneFault { app, generation, reason });
                }
                FromWorker::TrustedFault { app, reason } => {
                    tracing::warn!("trusted app {app}: {reason}");
                    self.to_monitor.push(FromKernel::TrustedFault { app, reason });
                }
                FromWorker::ToNode(frame) => self.desk.on_frame(&frame),
                FromWorker::Counts { ticket, sessions, zones } => {
                    self.desk.on_counts(ticket, sessions, zones)
                }
                FromWorker::NoFlows { ticket, reason } => self.desk.on_trouble(ticket, &reason),
                FromWorker::Ended => self.ended_workers += 1,
            }
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

    fn accept_operators(&mut self) {
        while let Ok((mut stream, _)) = self.socket.accept() {
            let token = self.next_operator;
            let registered = self.poll.registry().register(
                &mut stream,
                Token(token),
                Interest::READABLE | Interest::WRITABLE,
            );
            if self.operators.len() >= OPERATORS_MAX || registered.is_err() {
                continue;
            }
            self.next_operator += 1;
            let operator =
                Operator { stream, read: Vec::new(), unread: Vec::new(), waiting: false, finished: false };
            self.operators.insert(token, operator);
        }
    }

    fn hear_operator(&mut self, asker: Asker) {
        if let Some(operator) = self.operators.get_mut(&asker) {
            operator.hear();
            self.take_question(asker);
        }
    }

    /// Looks at the next question of an operator who is not waiting for an answer.
    fn take_question(&mut self, asker: Asker) {
        let Some(line) = self.operators.get_mut(&asker).and_then(Operator::next_line) else { return };
        let answer = match serde_json::from_slice::<Question>(&line) {
            Ok(question) => self.ask(asker, question),
            Err(error) => Some(Answer::Refused(format!("that is no question: {error}"))),
        };
        match (answer, self.operators.get_mut(&asker)) {
            (Some(answer), Some(operator)) => operator.say(&answer),
            (None, Some(operator)) => operator.waiting = true,
            (_, None) => {}
        }
    }

    /// Answers at once, or opens the question and answers later.
    fn ask(&mut self, asker: Asker, question: Question) -> Option<Answer> {
        if !self.desk.has_room() {
            return Some(Answer::Refused(
                "too many questions wait for an answer already; ask again".to_owned(),
            ));
        }
        let now_ms = self.now_ms();
        match question {
            Question::Node => Some(Answer::Node(self.node_view())),
            Question::Switches => {
                let ticket =
                    self.desk.open_switches(asker, self.roster.switches(), self.workers.len(), now_ms);
                self.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Apps => {
                let ticket = self.desk.open_apps(asker, self.apps.clone(), self.workers.len(), now_ms);
                self.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Flows { datapath } => self.ask_flows(asker, datapath),
            Question::App { app, verb } => Some(self.ask_for_app(app, verb)),
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
        }
    }

    fn ask_flows(&mut self, asker: Asker, wanted: Option<DatapathId>) -> Option<Answer> {
        let switches = self.roster.switches();
        let datapaths: Vec<_> = switches
            .iter()
            .map(|record| record.datapath)
            .filter(|datapath| wanted.is_none_or(|wanted| wanted == *datapath))
            .collect();
        if let (Some(wanted), true) = (wanted, datapaths.is_empty()) {
            return Some(Answer::Refused(format!(
                "{wanted} is not connected; `burnet switches` lists those that are"
            )));
        }
        for (datapath, ticket) in self.desk.open_flows(asker, &datapaths, self.now_ms()) {
            let line = self.roster.worker_of(datapath).and_then(|worker| self.workers.get(worker));
            let asked = line.map(|line| line.send(ToWorker::AskFlows { datapath, ticket }));
            if !matches!(asked, Some(Ok(()))) {
                self.desk.on_trouble(ticket, "it is gone");
            }
        }
        None
    }

    fn ask_for_app(&mut self, app: String, verb: Verb) -> Answer {
        if !self.apps.iter().any(|status| status.app == app) {
            return Answer::Refused(format!(
                "there is no app {app} on this node; `burnet app list` lists those that are"
            ));
        }
        self.to_monitor.push(FromKernel::Operator { app, verb });
        Answer::Done
    }

    fn answer_operators(&mut self) {
        let now_ms = self.now_ms();
        for (asker, answer) in self.desk.take_answers(now_ms) {
            let answer = self.with_owners(answer);
            if let Some(operator) = self.operators.get_mut(&asker) {
                operator.waiting = false;
                operator.say(&answer);
            }
        }
        let askers: Vec<_> = self.operators.keys().copied().collect();
        for asker in askers {
            self.take_question(asker);
            if let Some(operator) = self.operators.get_mut(&asker)
                && operator.is_done()
            {
                self.operators.remove(&asker);
                self.desk.forget(asker);
            }
        }
    }

    /// Puts the names of apps in the place of the numbers of their zones.
    fn with_owners(&self, mut answer: Answer) -> Answer {
        let Answer::Flows(switches) = &mut answer else { return answer };
        for flow in switches.iter_mut().flat_map(|switch| &mut switch.flows) {
            flow.owner = match flow.owner.parse::<u16>() {
                Ok(0) => "kernel".to_owned(),
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

impl Operator {
    /// Reads what is there. A line that is too long, or an end, finishes it.
    fn hear(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return self.finished = true,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return self.finished = true,
            }
            if self.read.len() > LINE_BYTES_MAX {
                self.read.clear();
                self.say(&Answer::Refused(format!("a question has at most {LINE_BYTES_MAX} bytes")));
                return self.finished = true;
            }
        }
        self.write();
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        if self.waiting {
            return None;
        }
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    fn say(&mut self, answer: &Answer) {
        match serde_json::to_vec(answer) {
            Ok(line) => self.unread.extend_from_slice(&line),
            Err(error) => tracing::error!("an answer could not be written: {error}"),
        }
        self.unread.push(b'\n');
        self.write();
    }

    fn write(&mut self) {
        while !self.unread.is_empty() {
            match self.stream.write(&self.unread) {
                Ok(count) => drop(self.unread.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return self.give_up(),
            }
        }
        if self.unread.len() > UNREAD_BYTES_MAX {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.unread.clear();
        self.finished = true;
    }

    fn is_done(&self) -> bool {
        self.finished && !self.waiting && self.unread.is_empty()
    }
}

type Threads = Vec<std::thread::JoinHandle<io::Result<()>>>;

fn start_workers(
    count: u16,
    southbound: &SouthboundConfig,
    roster: &Arc<Roster>,
    control: &ControlLine,
    epoch: Instant,
) -> io::Result<(Vec<WorkerLine>, Threads)> {
    let mut polls = Vec::new();
    let mut lines = Vec::new();
    for _ in 0..count {
        let poll = Poll::new()?;
        let (line, post) = WorkerLine::new(Arc::new(Waker::new(poll.registry(), WAKER_TOKEN)?));
        polls.push((poll, post));
        lines.push(line);
    }
    let mut threads = Vec::new();
    for (number, (poll, post)) in polls.into_iter().enumerate() {
        let (southbound, roster, control, peers) =
            (southbound.clone(), roster.clone(), control.clone(), lines.clone());
        let body = move || {
            pin(number);
            Worker::new(WorkerSetup { number, poll, southbound, roster, post, control, peers, epoch })?.run()
        };
        threads.push(std::thread::Builder::new().name(format!("worker-{number}")).spawn(body)?);
    }
    Ok((lines, threads))
}

/// Keeps a worker on one core, so that its sessions stay in that core's caches. A machine with fewer cores than workers shares them out.
fn pin(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    // With one core there is nothing to choose.
    if cores.len() < 2 {
        return;
    }
    let mut own = CpuSet::new();
    own.set(cores[number % cores.len()]);
    if let Err(error) = sched_setaffinity(None, &own) {
        tracing::debug!(worker = number, "the worker is not pinned to a core: {error}");
    }
}

fn southbound_config(config: &Config) -> Result<SouthboundConfig, Fatal> {
    let given = &config.southbound;
    let tls = given.tls.as_ref().map(|tls| {
        load(&TlsFiles {
            certificate: tls.certificate.clone(),
            private_key: tls.private_key.clone(),
            client_ca: tls.ca_certificate.clone(),
        })
    });
    Ok(SouthboundConfig {
        versions: Versions {
            v1_0: given.versions.contains(&OpenFlowVersion::V1_0),
            v1_3: given.versions.contains(&OpenFlowVersion::V1_3),
        },
        role: role_wanted(given.role, given.role_generation_id),
        echo_interval_ms: given.echo_interval_ms,
        echo_timeout_ms: given.echo_timeout_ms,
        handshake_timeout_ms: given.handshake_timeout_ms,
        max_connections: given.max_connections,
        tls: tls.transpose().map_err(|error| Fatal(2, error.to_string()))?,
        tls_required: given.tls.as_ref().is_some_and(|tls| tls.required),
        ..SouthboundConfig::default()
    })
}

fn role_wanted(role: Role, generation_id: u64) -> RoleWanted {
    match role {
        Role::NoChange => RoleWanted::NoChange,
        Role::Equal => RoleWanted::Equal,
        Role::Master => RoleWanted::Master { generation_id },
        Role::Slave => RoleWanted::Slave { generation_id },
    }
}

/// Binds the operator's socket: for its owner and group only, in place of one that a dead node left.
fn bind_operators(path: &Path) -> Result<UnixListener, Fatal> {
    let cannot = |error: io::Error| {
        Fatal(
            2,
            format!(
                "the operator's socket {} cannot be had ({error}): name another with --socket PATH",
                path.display()
            ),
        )
    };
    if path.exists() {
        if client::ask(path, &Question::Node).is_ok() {
            let message = format!(
                "a node answers at {} already: stop it, or name another socket with --socket PATH",
                path.display()
            );
            return Err(Fatal(2, message));
        }
        std::fs::remove_file(path).map_err(cannot)?;
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    let socket = UnixListener::bind(path).map_err(cannot)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(cannot)?;
    Ok(socket)
}
