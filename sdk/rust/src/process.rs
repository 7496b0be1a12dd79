//! The loop of an app in its own process: events come from the rings, and commands go into them.
//!
//! ```text
//!   monitor ──Welcome, descriptors──> run ──> [ port of worker 0 … n: control events, then packet-ins ] ──> the app
//!                                        └─if it serves switches apart─> one thread and one instance for each port
//! ```
//!
//! In: the welcome message of the monitor, then events. Out: commands, and an exit code. After the start it reads only its ports, and the
//! messages of the monitor to a service. It ends when the monitor ends.

use crate::listener::Listener;
use crate::monitor_line::MonitorLine;
use crate::stale_packet_ins::StalePacketIns;
use abi::event::kind;
use abi::{Frame, ZoneId};
use burnet_sdk_core::instance::Instance;
use burnet_sdk_core::{App, Settings};
use monitor_channel::channel::Channel;
use monitor_channel::protocol::{ToZone, split_ports};
use ring::{AppEnd, MAX_FRAME_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::fmt::Display;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{SendError, channel};
use std::thread::Builder;
use std::time::Instant;
use zone::guest::Guest;

/// Maximum number of events that are taken from one port in one turn. Then the kernel gets the commands, and the next port has its turn.
/// One wake-up serves many events, and the first command of a burst is not late.
const EVENTS_PER_TURN: usize = 256;

/// An app that never sleeps looks for messages of the monitor once in so many turns.
const TURNS_PER_LOOK: u64 = 256;

/// After so many bytes of commands, the kernel gets them before the turn ends. So the kernel works while the app serves further events.
const UNPUBLISHED_BYTES_MAX: usize = 16 << 10;

/// Runs an app in this process until its zone ends. For [`crate::main!`].
///
/// Exit codes: 0 if the node ended the zone, 2 if the app refuses its settings, 1 for all other errors. The error is written to
/// standard error, which the monitor keeps.
pub fn run<A: App>() -> ExitCode {
    let served = welcome().map_err(ProcessError::with(1)).and_then(|welcome| {
        let Welcome { settings, ports, line, .. } = welcome;
        let start = Instance::<A>::start_guest;
        let apart = ports.len() > 1
            && Settings::from_json(&settings).is_ok_and(|said| A::serves_switches_apart(&said));
        if apart {
            serve_apart(&settings, ports, start)
        } else {
            serve(&settings, ports, Some(line), start, &mut |wait| wait())
        }
    });
    exit_code(served)
}

/// As [`run`], for a [`Guest`]. `start` creates it from its settings, a JSON object, and appends its first commands.
pub fn run_guest<G: Guest>(start: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<G, String>) -> ExitCode {
    exit_code(serve_guest(start, &mut |wait| wait()))
}

pub(crate) fn exit_code(served: Result<(), ProcessError>) -> ExitCode {
    ExitCode::from(said_and_done(served))
}

/// Prints the error, if there is one. Returns the exit code.
fn said_and_done(served: Result<(), ProcessError>) -> u8 {
    let Err(ProcessError { exit_code, reason }) = served else { return 0 };
    eprintln!("{reason}");
    exit_code
}

/// Why a process zone ended although the node did not end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessError {
    /// The exit code of the process: 2 if the app refuses its settings, otherwise 1.
    pub exit_code: u8,
    /// A sentence for standard error.
    pub reason: String,
}

impl ProcessError {
    pub(crate) fn with(exit_code: u8) -> impl Fn(String) -> ProcessError {
        move |reason| ProcessError { exit_code, reason }
    }
}

/// Called for each wait for events. It must call its argument once, which waits. An interpreter lets its other threads run during the
/// wait.
pub type SleepHook<'a> = &'a mut dyn FnMut(&mut (dyn FnMut() + Send));

/// A [`SleepHook`] that the process keeps.
type BoxedSleepHook<'a> = Box<dyn FnMut(&mut (dyn FnMut() + Send)) + 'a>;

/// As [`run_guest`], but it returns the error, so that the caller decides how the process exits.
///
/// # Errors
/// [`ProcessError`], unless the node ended the zone.
pub fn serve_guest<G: Guest>(
    start: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<G, String>,
    sleep_hook: SleepHook<'_>,
) -> Result<(), ProcessError> {
    let Welcome { settings, ports, line, .. } = welcome().map_err(ProcessError::with(1))?;
    serve(&settings, ports, Some(line), start, sleep_hook)
}

/// Serves these ports with one instance, in the calling thread.
fn serve<G: Guest>(
    settings: &[u8],
    ports: Vec<AppEnd>,
    line: Option<MonitorLine>,
    start: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<G, String>,
    sleep_hook: SleepHook<'_>,
) -> Result<(), ProcessError> {
    let (mut process, mut guest) = Process::start(settings, ports, line, start, Box::new(sleep_hook))?;
    process.serve_until_told_to_end(&mut guest).map_err(ProcessError::with(1))
}

/// Serves each port with its own instance, in its own thread. The first thread that ends also ends the process, because an app without one
/// of its instances would ignore some switches. If a thread cannot be started, the calling thread serves its port.
fn serve_apart<G: Guest>(
    settings: &[u8],
    ports: Vec<AppEnd>,
    start: fn(&[u8], &mut Vec<u8>) -> Result<G, String>,
) -> Result<(), ProcessError> {
    std::thread::scope(|scope| {
        let mut mine = Vec::new();
        for (worker, port) in ports.into_iter().enumerate() {
            // The thread receives its port after it has started.
            let (hand, taken) = channel::<AppEnd>();
            let serve_it = move || {
                if let Ok(port) = taken.recv() {
                    end_as_it_ended(|| serve(settings, vec![port], None, start, &mut |wait| wait()));
                }
            };
            let name = format!("worker-{worker}");
            if worker == 0 || Builder::new().name(name).spawn_scoped(scope, serve_it).is_err() {
                mine.push(port);
            } else if let Err(SendError(port)) = hand.send(port) {
                mine.push(port);
            }
        }
        end_as_it_ended(|| serve(settings, mine, None, start, &mut |wait| wait()))
    })
}

/// Ends the process with the result of one of its threads. A panic has already printed its message.
fn end_as_it_ended(served: impl FnOnce() -> Result<(), ProcessError>) -> ! {
    let code = match catch_unwind(AssertUnwindSafe(served)) {
        Ok(served) => said_and_done(served).into(),
        Err(_) => PANICKED,
    };
    std::process::exit(code)
}

/// The exit code of Rust's own `main` after a panic.
const PANICKED: i32 = 101;

/// What the monitor sends first.
pub(crate) struct Welcome {
    pub(crate) settings: Vec<u8>,
    pub(crate) ports: Vec<AppEnd>,
    pub(crate) line: MonitorLine,
    pub(crate) listeners: Vec<Listener>,
}

/// Waits for the welcome message.
pub(crate) fn welcome() -> Result<Welcome, String> {
    monitor_channel::child::die_with_parent()
        .map_err(in_words("it cannot follow the end of its parent process"))?;
    let channel = Channel::from_stdin()
        .map_err(in_words("it was not started by a Burnet node; start it with `burnet run --app`"))?;
    let mut received =
        channel.receive::<ToZone>().map_err(in_words("the monitor sent no welcome message"))?;
    let ToZone::Welcome { zone, settings, ports, listeners, writes_region, .. } = received.message else {
        return Err("the monitor sent another message in place of the welcome message".to_owned());
    };
    let region = received.fds.pop_if(|_| writes_region);
    // A service serves its streams without it too. The monitor hands out no region that has no writer.
    let region = region.and_then(|fd| match crate::regions::written(&fd) {
        Ok(region) => Some(region),
        Err(why) => {
            eprintln!("its table is not in shared memory: {why}");
            None
        }
    });
    let sockets = received.fds.split_off(received.fds.len().saturating_sub(listeners.len()));
    let listeners = Listener::all(&listeners, sockets)
        .map_err(in_words("a socket on which it listens cannot be used"))?;
    let ports =
        split_ports(received.fds, ports)?.into_iter().map(AppEnd::attach).collect::<Result<Vec<_>, _>>();
    Ok(Welcome {
        settings: serde_json::to_vec(&settings).map_err(in_words("its settings cannot be passed on"))?,
        ports: ports.map_err(in_words("a port could not be attached"))?,
        line: MonitorLine::new(channel, region, ZoneId(zone)),
        listeners,
    })
}

/// The ports of this process, and its buffers.
pub(crate) struct Process<'a> {
    ports: Vec<AppEnd>,
    /// The port of each connected switch.
    homes: HashMap<u64, usize>,
    stale: StalePacketIns,
    event: Vec<u8>,
    commands: Vec<u8>,
    /// Bytes of commands in the rings that the kernel does not see yet.
    unpublished_bytes: usize,
    /// `None` for a further thread of an app.
    line: Option<MonitorLine>,
    /// Whether the app is a service with a duty for the monitor. The line brings its messages then, and otherwise shared memory.
    serves_monitor: bool,
    /// Whether to look at the line. Looking is a system call, so it happens after a sleep and once in many turns.
    looks_at_line: bool,
    turns: u64,
    /// When to wake the app.
    wake_at: Option<Instant>,
    sleep_hook: BoxedSleepHook<'a>,
}

impl<'a> Process<'a> {
    /// Starts the app with these ports.
    pub(crate) fn start<G: Guest>(
        settings: &[u8],
        ports: Vec<AppEnd>,
        line: Option<MonitorLine>,
        start: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<G, String>,
        sleep_hook: BoxedSleepHook<'a>,
    ) -> Result<(Process<'a>, G), ProcessError> {
        let mut commands = Vec::new();
        let mut guest = start(settings, &mut commands).map_err(ProcessError::with(2))?;
        if let Some(line) = &line {
            guest.on_zone(line.zone);
        }
        let mut process = Process {
            ports,
            homes: HashMap::new(),
            stale: StalePacketIns::default(),
            event: Vec::new(),
            commands,
            unpublished_bytes: 0,
            serves_monitor: guest.serves_monitor(),
            line,
            looks_at_line: true,
            turns: 0,
            wake_at: None,
            sleep_hook,
        };
        process.hear_regions(&mut guest);
        process.take_wake(&mut guest);
        Ok((process, guest))
    }
}

impl Process<'_> {
    fn serve_until_told_to_end<G: Guest>(&mut self, guest: &mut G) -> Result<(), String> {
        self.subscribe_everywhere()?;
        self.tell_monitor(guest);
        loop {
            match self.turn(guest)? {
                Turn::Idle => self.sleep()?,
                Turn::Busy => {}
                Turn::ToldToEnd => return Ok(()),
            }
        }
    }

    /// Serves some of the waiting events, and a deadline that has passed. It never waits.
    pub(crate) fn turn<G: Guest>(&mut self, guest: &mut G) -> Result<Turn, String> {
        self.hear_regions(guest);
        let mut idle = self.hear_monitor(guest)? && !self.wake_if_due(guest)?;
        for port in 0..self.ports.len() {
            match self.serve(port, guest)? {
                Served::All(count) => idle &= count == 0,
                Served::ToldToEnd => return Ok(Turn::ToldToEnd),
            }
        }
        self.tell_monitor(guest);
        self.take_wake(guest);
        Ok(if idle { Turn::Idle } else { Turn::Busy })
    }

    /// Hands the app the shared memory that the monitor has told of.
    fn hear_regions<G: Guest>(&mut self, guest: &mut G) {
        self.turns = self.turns.wrapping_add(1);
        let is_time = std::mem::take(&mut self.looks_at_line) || self.turns.is_multiple_of(TURNS_PER_LOOK);
        let line = self.line.as_mut().filter(|_| is_time && !self.serves_monitor);
        line.map(MonitorLine::take_regions)
            .unwrap_or_default()
            .into_iter()
            .for_each(|region| guest.on_region(region));
    }

    /// A message of the monitor may wait: the caller's loop was awake for a reason that is not known here.
    pub(crate) fn look_at_line(&mut self) {
        self.looks_at_line = !self.serves_monitor && self.line.as_ref().is_some_and(MonitorLine::is_readable);
    }

    /// Notes when to wake the app, if it has requested another time.
    pub(crate) fn take_wake<G: Guest>(&mut self, guest: &mut G) {
        if let Some(after) = guest.take_wake() {
            self.wake_at = Instant::now().checked_add(after);
        }
    }

    /// When to wake the app.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Wakes the app if the time has come. Returns whether it has. Commands for no switch and no call go through the first port.
    fn wake_if_due<G: Guest>(&mut self, guest: &mut G) -> Result<bool, String> {
        if self.wake_at.is_none_or(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.wake_at = None;
        guest.on_wake(&mut self.commands)?;
        self.give(0)?;
        self.publish();
        Ok(true)
    }

    /// Sends commands that no event caused. Commands for no switch and no call go through the first port.
    pub(crate) fn act(&mut self, act: impl FnOnce(&mut Vec<u8>)) -> Result<(), String> {
        act(&mut self.commands);
        self.give(0)?;
        self.publish();
        Ok(())
    }

    /// These descriptors are readable when events or messages wait.
    pub(crate) fn wake_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let monitor = self.line.as_ref().and_then(MonitorLine::fd);
        self.ports.iter().map(AppEnd::wake_fd).chain(monitor)
    }

    /// Passes messages of the monitor to the service. Returns whether there were none. Commands for no switch and no call go through the
    /// first port.
    fn hear_monitor<G: Guest>(&mut self, guest: &mut G) -> Result<bool, String> {
        let Some(line) = self.line.as_mut().filter(|_| self.serves_monitor) else { return Ok(true) };
        let told = line.take();
        for message in &told {
            guest.on_monitor(message, &mut self.commands)?;
            self.give(0)?;
        }
        self.publish();
        Ok(told.is_empty())
    }

    fn tell_monitor<G: Guest>(&mut self, guest: &mut G) {
        if let Some(line) = &mut self.line {
            line.tell(guest.take_for_monitor());
        }
    }

    /// Sends the first commands to every worker, because each worker has its own kernel and subscriptions.
    pub(crate) fn subscribe_everywhere(&mut self) -> Result<(), String> {
        let commands = std::mem::take(&mut self.commands);
        for port in 0..self.ports.len() {
            self.push(port, &commands)?;
        }
        self.publish();
        Ok(())
    }

    /// Takes events of one port, and sends the resulting commands.
    fn serve<G: Guest>(&mut self, port: usize, guest: &mut G) -> Result<Served, String> {
        let mut served = 0;
        while served < EVENTS_PER_TURN {
            let taken = self.ports[port].pop_into(&mut self.event);
            if !taken.map_err(in_words("the kernel broke the rules of the port"))? {
                break;
            }
            let frame = Frame::read(&self.event).map_err(in_words("the kernel sent a malformed frame"))?;
            served += 1;
            if self.stale.is_stale(&frame) {
                continue;
            }
            let told_to_end = frame.header.kind.get() == kind::SHUTDOWN;
            if self.ports.len() > 1 {
                remember_home(&mut self.homes, frame.header, port);
            }
            guest
                .on_events(&self.event, &mut self.commands)
                .map_err(in_words("the kernel sent a malformed event"))?;
            self.give(port)?;
            if self.unpublished_bytes > UNPUBLISHED_BYTES_MAX {
                self.publish();
            }
            if told_to_end {
                self.catch_up(port, guest)?;
                self.publish();
                return Ok(Served::ToldToEnd);
            }
        }
        if served > 0 {
            self.catch_up(port, guest)?;
        }
        self.publish();
        Ok(Served::All(served))
    }

    fn catch_up<G: Guest>(&mut self, port: usize, guest: &mut G) -> Result<(), String> {
        guest.on_caught_up(&mut self.commands);
        self.give(port)
    }

    /// Sends each command to a worker. A command for a switch goes to that switch's worker, and a command for a call to the call's worker.
    /// All others go to the worker that sent the event.
    fn give(&mut self, came_from: usize) -> Result<(), String> {
        let mut commands = std::mem::take(&mut self.commands);
        if self.ports.len() == 1 {
            self.push(came_from, &commands)?;
        } else {
            let mut rest = commands.as_slice();
            while !rest.is_empty() {
                let (frame, others) =
                    Frame::split(rest).map_err(in_words("the app wrote a malformed frame"))?;
                let home = home_of_call(frame.header).map(|home| usize::from(home) % self.ports.len());
                let home = home.or_else(|| self.homes.get(&frame.header.datapath.get()).copied());
                self.push(home.unwrap_or(came_from), frame.bytes)?;
                rest = others;
            }
        }
        commands.clear();
        self.commands = commands;
        Ok(())
    }

    /// Writes whole frames into a port. If the ring is full, it waits: an app that sends faster than the kernel reads is slowed down.
    fn push(&mut self, port: usize, mut frames: &[u8]) -> Result<(), String> {
        self.unpublished_bytes += frames.len();
        while !frames.is_empty() {
            let (frame, rest) = Frame::split(frames).map_err(in_words("the app wrote a malformed frame"))?;
            while self.ports[port].producer.push(&[frame.bytes]).is_err() {
                self.wait_for_room(port, frame.bytes.len())?;
            }
            frames = rest;
        }
        Ok(())
    }

    fn wait_for_room(&mut self, port: usize, length: usize) -> Result<(), String> {
        let AppEnd { producer, .. } = &mut self.ports[port];
        producer.publish();
        if let Some(fault) = producer.fault() {
            return Err(format!("the kernel broke the rules of the port: {fault}"));
        }
        if length > MAX_FRAME_BYTES {
            return Err("the app wrote a frame that is longer than its ring".to_owned());
        }
        if producer.about_to_wait(length) {
            self.poll_ports(None)?;
        }
        Ok(())
    }

    fn publish(&mut self) {
        self.unpublished_bytes = 0;
        self.ports.iter_mut().for_each(|port| port.producer.publish());
    }

    /// Sleeps until a port has events, or a deadline has passed.
    fn sleep(&mut self) -> Result<(), String> {
        if self.about_to_sleep() {
            self.poll_ports(self.wake_at)?;
        }
        self.awake()
    }

    /// Tells the kernel to wake this process for the next event. `false` if events wait already.
    pub(crate) fn about_to_sleep(&mut self) -> bool {
        let mut all_asleep = true;
        for port in &mut self.ports {
            all_asleep &= port.about_to_sleep();
        }
        all_asleep
    }

    /// As [`Process::awake`], by what the caller has seen of each of [`Process::wake_fds`]: whether it is readable. What is not needs no system call.
    pub(crate) fn awake_by(&mut self, is_readable: &[bool]) -> Result<(), String> {
        for (port, is_readable) in self.ports.iter_mut().zip(is_readable) {
            match is_readable {
                true => port.drain_wake().map_err(in_words("the wake-up of a port could not be read"))?,
                false => port.awake(),
            }
        }
        self.looks_at_line |= is_readable.get(self.ports.len()).copied().unwrap_or_default();
        Ok(())
    }

    /// Tells the kernel that this process is awake.
    pub(crate) fn awake(&mut self) -> Result<(), String> {
        for port in &mut self.ports {
            port.drain_wake().map_err(in_words("the wake-up of a port could not be read"))?;
        }
        Ok(())
    }

    fn poll_ports(&mut self, until: Option<Instant>) -> Result<(), String> {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        // A wake-up is at most a day away.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut waits: Vec<_> =
            self.ports.iter().map(|port| PollFd::from_borrowed_fd(port.wake_fd(), PollFlags::IN)).collect();
        waits.extend(self.line.as_ref().and_then(MonitorLine::poll_fd));
        let mut woken = Ok(0);
        (self.sleep_hook)(&mut || woken = poll(&mut waits, timeout.as_ref()));
        match woken {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("it cannot wait for events: {error}")),
        }
        let line = waits.get(self.ports.len()).is_some_and(|line| !line.revents().is_empty());
        drop(waits);
        self.looks_at_line |= line;
        for port in &mut self.ports {
            port.drain_wake().map_err(in_words("the wake-up of a port could not be read"))?;
        }
        Ok(())
    }
}

/// The result of a turn.
pub(crate) enum Turn {
    /// No events waited.
    Idle,
    /// Events were served, and more may wait.
    Busy,
    /// The node ends the zone.
    ToldToEnd,
}

/// The result of a turn of one port.
enum Served {
    /// This many events were served.
    All(usize),
    /// The last event says that the node ends the zone.
    ToldToEnd,
}

/// The worker of a command for a call, or of a publication. All publications on one topic go through one worker, which numbers them.
fn home_of_call(header: &abi::header::Header) -> Option<u8> {
    use abi::command::kind::{PUBLISH, QUERY, QUERY_ANSWER, QUERY_CANCEL, QUERY_CREDIT};
    let has_home = matches!(header.kind.get(), PUBLISH | QUERY | QUERY_ANSWER | QUERY_CANCEL | QUERY_CREDIT);
    has_home.then(|| abi::service::home_of(header.sequence.get()))
}

/// Notes the port of a switch.
fn remember_home(homes: &mut HashMap<u64, usize>, header: &abi::header::Header, port: usize) {
    match header.kind.get() {
        kind::SWITCH_UP => drop(homes.insert(header.datapath.get(), port)),
        kind::SWITCH_DOWN => drop(homes.remove(&header.datapath.get())),
        _ => {}
    }
}

fn in_words<E: Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}
