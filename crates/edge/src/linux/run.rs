//! The loop of an agent on Linux.
//!
//! In: a [`Config`], a UDP socket, the label service, and [`Orders`] while it runs. Out: what it did to the interface and to its peers; lines in the log. It decides
//! nothing: [`Agent`] does.
//!
//! It begins by removing what an earlier run left, and ends by removing what it made. A run that is killed leaves its classes in place until
//! the next start or [`clean`].

use super::agents::{Agents, mac_of};
use super::classes::Classes;
use super::counters::{Counter, Reader};
use super::device::{Device, Root};
use super::line::Line;
use super::program::{self, Trouble, io_trouble};
use super::readings::Readings;
use super::ruleset;
use super::tc::{self, Tc};
use super::timer::{Timer, now_ns};
use crate::agent::{Agent, Commands, Event, Settings};
use crate::shaper::{Change, Deed, Place};
use crate::vnic::{AgentId, Directory, Flow};
use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::fd::AsRawFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SOCKET: Token = Token(0);
const TIMER: Token = Token(1);
const TC: Token = Token(2);
const SERVICE: Token = Token(3);

/// The most datagrams that are read before the time is looked at again. The rest waits in the socket.
const DATAGRAMS_PER_TURN: usize = 256;

/// A datagram that is longer than allowed is seen to be so.
const RECEIVE_BYTES: usize = crate::protocol::DATAGRAM_MAX + 1;

/// How long the loop sleeps at most, so that it sees new orders.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often the log says that agents lie, in nanoseconds.
const LOG_INTERVAL_NS: u64 = 1_000_000_000;

/// What an agent on Linux is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface to the network.
    pub device: Device,
    /// The settings of the pure half.
    pub settings: Settings,
    /// The VNICs.
    pub directory: Directory,
    /// Where peers listen. A peer without an address gets nothing.
    pub addresses: BTreeMap<AgentId, SocketAddr>,
    /// Where the label service listens, by TCP. None: nothing is reported.
    pub service: Option<SocketAddr>,
}

/// What another thread tells an agent that runs.
#[derive(Debug, Default)]
pub struct Orders {
    is_over: AtomicBool,
    directory: Mutex<Option<Directory>>,
}

impl Orders {
    /// The agent ends within 50 ms and removes what it made.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The VNICs are these now. Flows of VNICs that stay go on, and are counted on. Of two lists that follow each other at once, the last counts.
    pub fn replace_directory(&self, directory: Directory) {
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
    }

    fn new_directory(&self) -> Option<Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs an agent until it is told to end.
///
/// # Errors
///
/// It cannot begin (no privilege, a missing program, a kernel without HTB, an interface that is taken), or a part of it failed later. What it
/// made is removed in any case.
pub fn run(config: &Config, socket: std::net::UdpSocket, orders: &Orders) -> Result<(), Trouble> {
    clean(&config.device)?;
    let result = Running::begin(config, socket).and_then(|mut running| running.turn(orders));
    let cleaned = clean(&config.device);
    result.and(cleaned)
}

/// Removes what this program made on an interface, in this or an earlier run.
///
/// # Errors
///
/// Programs are missing or not permitted, or another program shapes on this interface. Then nothing is changed.
pub fn clean(device: &Device) -> Result<(), Trouble> {
    let name = device.to_string();
    let shown = program::run("tc", &["qdisc", "show", "dev", &name], "")?;
    if device.root(&shown)? == Root::Ours {
        program::run("tc", &["qdisc", "del", "dev", &name, "root"], "")?;
    }
    program::run("nft", &["-f", "-"], &ruleset::removal(device)).map(drop)
}

struct Running<'a> {
    config: &'a Config,
    agent: Agent,
    socket: UdpSocket,
    line: Option<Line>,
    poll: Poll,
    timer: Timer,
    reader: Reader,
    readings: Readings,
    classes: Classes,
    tc: Tc,
    /// The batch that tc has: for each line its place, and whether it removes something.
    batch: Vec<(Place, bool)>,
    agents: Agents,
    /// The sets with counters.
    sets: Vec<String>,
    counters: Vec<Counter>,
    logged_ns: u64,
}

impl<'a> Running<'a> {
    fn begin(config: &'a Config, socket: std::net::UdpSocket) -> Result<Self, Trouble> {
        let Config { device, settings, directory, .. } = config;
        let agent = Agent::new(now_ns(), settings.clone(), directory.clone())?;
        let classes = Classes::new(device.clone(), settings.nic_bps);
        let own = socket.local_addr().map_err(io_trouble("reading the socket's address"))?;
        let shown = program::run("ip", &["-o", "link", "show", "dev", &device.to_string()], "")?;
        let peers: Vec<SocketAddr> = config.addresses.values().copied().collect();
        let agents = Agents::new(mac_of(&shown), own, &peers);
        program::run("tc", &["-batch", "-"], &(classes.setup(&agents).join("\n") + "\n"))?;
        program::run("nft", &["-f", "-"], &ruleset::ruleset(device, directory, settings.me, &agents))?;
        let reader = Reader::open(device.table())?;
        let tc = Tc::start()?;
        socket.set_nonblocking(true).map_err(io_trouble("preparing the socket"))?;
        let mut socket = UdpSocket::from_std(socket);
        let (poll, timer) = (Poll::new().map_err(io_trouble("making a poll"))?, Timer::new()?);
        let register = |token, descriptor: i32| {
            let mut source = SourceFd(&descriptor);
            poll.registry()
                .register(&mut source, token, Interest::READABLE)
                .map_err(io_trouble("making a poll"))
        };
        register(TIMER, timer.descriptor().as_raw_fd())?;
        register(TC, tc.output().as_raw_fd())?;
        let readable = Interest::READABLE;
        poll.registry().register(&mut socket, SOCKET, readable).map_err(io_trouble("making a poll"))?;
        Ok(Running {
            config,
            agent,
            socket,
            line: config.service.map(Line::new),
            poll,
            timer,
            reader,
            readings: Readings::default(),
            classes,
            tc,
            batch: Vec::new(),
            agents,
            sets: ruleset::sets(directory, settings.me),
            counters: Vec::new(),
            logged_ns: 0,
        })
    }

    fn turn(&mut self, orders: &Orders) -> Result<(), Trouble> {
        let mut events = Events::with_capacity(16);
        while !orders.is_over.load(Ordering::Relaxed) {
            if let Some(directory) = orders.new_directory() {
                self.replace(directory)?;
            }
            self.timer.set(self.agent.next_due_ns())?;
            match self.poll.poll(&mut events, Some(PATIENCE)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(Trouble::Io { what: "waiting", error });
                }
                _ => {}
            }
            // Edges are reported once. So all sources are read in each turn until they are empty, or the turn is over.
            self.receive()?;
            self.hear_service()?;
            self.confirm()?;
            if now_ns() >= self.agent.next_due_ns() {
                self.end_interval()?;
            }
        }
        Ok(())
    }

    /// The VNICs are others: the table is replaced in one step. What it counted until then is read before.
    fn replace(&mut self, directory: Directory) -> Result<(), Trouble> {
        self.count()?;
        let Config { device, settings, .. } = self.config;
        let text = ruleset::ruleset(device, &directory, settings.me, &self.agents);
        program::run("nft", &["-f", "-"], &text)?;
        self.readings = Readings::default();
        self.sets = ruleset::sets(&directory, settings.me);
        self.event(Event::Directory(directory))
    }

    fn receive(&mut self) -> Result<(), Trouble> {
        let mut buffer = [0; RECEIVE_BYTES];
        for _ in 0..DATAGRAMS_PER_TURN {
            match self.socket.recv_from(&mut buffer) {
                Ok((read, _)) => {
                    let datagram = buffer.get(..read).unwrap_or_default();
                    self.event(Event::Datagram(datagram))?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A peer's port that is closed is reported at the next call. It says nothing about this socket.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Trouble::Io { what: "receiving datagrams", error }),
            }
        }
        Ok(())
    }

    /// Takes what the label service said.
    fn hear_service(&mut self) -> Result<(), Trouble> {
        let Some(mut line) = self.line.take() else { return Ok(()) };
        line.dial(now_ns(), self.poll.registry(), SERVICE)?;
        let mut datagrams = Vec::new();
        line.turn(|datagram| datagrams.push(datagram.to_vec()));
        self.line = Some(line);
        datagrams.iter().try_for_each(|datagram| self.event(Event::Datagram(datagram)))
    }

    /// Takes what tc said about the last batch.
    fn confirm(&mut self) -> Result<(), Trouble> {
        let Some(failed) = self.tc.on_readable()? else { return Ok(()) };
        let batch = std::mem::take(&mut self.batch);
        let mut places = BTreeSet::new();
        for (line, said) in failed {
            if let Some((place, is_removal)) = batch.get(line)
                && !(*is_removal && tc::is_gone(&said))
            {
                tracing::warn!("tc could not shape {place:?}: {said}; it is tried again in a second");
                places.insert(*place);
            }
        }
        let places: Vec<Place> = places.into_iter().collect();
        self.event(Event::Shaped(&places))
    }

    fn end_interval(&mut self) -> Result<(), Trouble> {
        self.count()?;
        self.event(Event::Time)
    }

    fn count(&mut self) -> Result<(), Trouble> {
        self.counters.clear();
        for set in &self.sets {
            self.reader.read(set, &mut self.counters)?;
        }
        let directory = self.agent.directory();
        let bytes = |counter: Counter| {
            let flow = directory.flow(counter.vlan, counter.source, counter.destination)?;
            Some((flow, counter.frame_bytes()))
        };
        let grown = self.readings.grown(now_ns(), &self.counters);
        let bytes: Vec<(Flow, u64)> = grown.into_iter().filter_map(bytes).collect();
        self.event(Event::Bytes(&bytes))
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), Trouble> {
        let mut commands = Commands::default();
        self.agent.on_event(now_ns(), event, &mut commands);
        for (peer, datagram) in &commands.datagrams {
            if let Some(line) = self.line.as_mut().filter(|_| Some(*peer) == self.config.settings.service) {
                line.send(datagram);
            } else if let Some(address) = self.config.addresses.get(peer) {
                // The protocol stands the loss of a datagram, for whatever reason.
                let _ = self.socket.send_to(datagram, *address);
            }
        }
        self.log(&commands);
        self.shape(&commands.changes)
    }

    fn log(&mut self, commands: &Commands) {
        let now = now_ns();
        if let Some(refusal) = commands.refusals.first()
            && now.saturating_sub(self.logged_ns) >= LOG_INTERVAL_NS
        {
            self.logged_ns = now;
            let refused = self.agent.counts().refused;
            tracing::warn!(target: "edge::incident", refused, "{refusal}");
        }
    }

    fn shape(&mut self, changes: &[Change]) -> Result<(), Trouble> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for change in changes {
            let found = self.classes.lines(change, self.agent.directory()).unwrap_or_default();
            self.batch.extend(found.iter().map(|_| (change.place, change.deed == Deed::Remove)));
            lines.extend(found);
        }
        self.tc.send(&lines)
    }
}
