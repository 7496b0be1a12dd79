//! All connections of the switches to their controllers: which to read, write, check, open and close next.
//!
//! ```text
//!   sockets that are ready, the time ──> Connections ──> bytes of messages; whom to probe; what to close, with the reason
//!   messages to send ──────────────────>     └─────────> bytes out
//! ```
//!
//! It never decodes a message and never touches the network.

use flow::BadInput;
use mio::{Registry, Token};
use openflow::Message;
use software_switch::ControllerId;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::connection::{Connection, Due, Received};
use super::counters::Counters;
use crate::network::Channel;

/// How many connections to one controller may be in their handshake. Thousands at once would look like an attack, and
/// be refused. The others wait. A controller counts a connection a little longer than the switch does. A Burnet node
/// allows 256.
const GREETINGS_AT_ONCE: usize = 128;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 * 1024;

/// The connections, each with its index: those of the first switch to all controllers, then those of the second, and
/// so on.
#[derive(Debug)]
pub(super) struct Connections {
    controllers: Vec<SocketAddr>,
    all: Vec<Connection>,
    /// The read buffer of all connections, so that idle ones need none.
    scratch: Vec<u8>,
    /// Connections with more bytes than were read at once. Each is in it once.
    unread: BTreeSet<usize>,
    /// Connections of switches that read nothing, since their CPU is far behind.
    paused: BTreeSet<usize>,
    /// The paused connection that was read last.
    resumed_last: usize,
    /// Connections with unsent bytes.
    unsent: Vec<usize>,
    /// Connections to close, with the reason, once their bytes are sent.
    closing: Vec<(usize, String)>,
    /// When to check each connection next. Each is in it once.
    looks: BTreeSet<(Duration, usize)>,
    look_at: Vec<Duration>,
    /// For each controller: connections in their handshake, and connections that wait to begin it.
    greeting: Vec<BTreeSet<usize>>,
    in_line: Vec<BTreeSet<usize>>,
}

impl Connections {
    /// The connections of this many switches. All are due at once.
    pub(super) fn new(switches: usize, controllers: &[SocketAddr]) -> Self {
        let count = switches * controllers.len();
        Connections {
            controllers: controllers.to_vec(),
            all: (0..count as u64).map(Connection::new).collect(),
            scratch: vec![0; READ_BYTES],
            unread: BTreeSet::new(),
            paused: BTreeSet::new(),
            resumed_last: 0,
            unsent: Vec::new(),
            closing: Vec::new(),
            looks: (0..count).map(|index| (Duration::ZERO, index)).collect(),
            look_at: vec![Duration::ZERO; count],
            greeting: vec![BTreeSet::new(); controllers.len()],
            in_line: vec![BTreeSet::new(); controllers.len()],
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The switch and the controller of a connection.
    pub(super) fn channel(&self, index: usize) -> Channel {
        let controllers = self.controllers.len();
        Channel { switch: index / controllers, controller: ControllerId(index % controllers) }
    }

    /// The index of a connection.
    pub(super) fn index(&self, at: Channel) -> usize {
        at.switch * self.controllers.len() + at.controller.0
    }

    /// The address of a connection's controller.
    pub(super) fn address(&self, at: Channel) -> SocketAddr {
        self.controllers[at.controller.0]
    }

    /// The connections of a switch, in the order of its controllers.
    pub(super) fn of_switch(&self, switch: usize) -> &[Connection] {
        let first = switch * self.controllers.len();
        &self.all[first..first + self.controllers.len()]
    }

    /// Whether a connection is open.
    pub(super) fn is_open(&self, index: usize) -> bool {
        self.all[index].is_open()
    }

    /// Whether the controller has asked what the switch is.
    pub(super) fn is_known(&self, index: usize) -> bool {
        self.all[index].known_since.is_some()
    }

    /// The connections that had more bytes than were read at once.
    pub(super) fn take_unread(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.unread)
    }

    /// Whether any connection had more bytes than were read at once.
    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Reads a connection again in the next turn.
    pub(super) fn read_on(&mut self, index: usize) {
        self.unread.insert(index);
    }

    /// The poll says that the controller has closed a connection, perhaps behind bytes that were not read yet.
    pub(super) fn on_ending(&mut self, index: usize) {
        if let Some(connection) = self.all.get_mut(index).filter(|connection| connection.is_open()) {
            connection.is_ending = true;
        }
    }

    /// Reads a connection no further until its switch takes messages again. One that the controller has closed ends, since its end would otherwise stay
    /// unseen until then. What was not read is forgotten, as all messages with which the CPU has not begun.
    pub(super) fn pause(&mut self, index: usize) {
        if self.all[index].is_ending {
            self.close_later(index, "the controller closed the connection".to_owned());
        } else {
            self.paused.insert(index);
        }
    }

    /// A connection stays paused, as long as anything waits in it.
    pub(super) fn stay_paused(&mut self, index: usize, now: Duration) {
        if self.all[index].look_unread(now) {
            self.pause(index);
        }
    }

    /// The connections that were paused. Each in its turn: the first is the one behind the one that was read last.
    pub(super) fn take_paused(&mut self) -> Vec<usize> {
        let later = self.paused.split_off(&(self.resumed_last + 1));
        let earlier = std::mem::take(&mut self.paused);
        later.into_iter().chain(earlier).collect()
    }

    /// A connection that was paused is read.
    pub(super) fn note_resumed(&mut self, index: usize) {
        self.resumed_last = index;
    }

    /// Reads available bytes, up to a bound.
    pub(super) fn read(&mut self, index: usize) -> io::Result<Received> {
        self.all[index].read(&mut self.scratch)
    }

    /// Passes each whole message to `take`, until it returns that it wants no more.
    pub(super) fn cut(&mut self, index: usize, take: impl FnMut(&[u8]) -> bool) -> Result<(), BadInput> {
        self.all[index].cut(take)
    }

    /// A whole message has arrived.
    pub(super) fn heard(&mut self, index: usize, now: Duration) {
        self.all[index].heard(now);
    }

    /// The controller has asked what the switch is, which ends the handshake.
    pub(super) fn known(&mut self, index: usize, now: Duration) {
        self.all[index].known(now);
        self.end_greeting(index);
    }

    /// A socket is writable. Returns whether this has opened the connection.
    pub(super) fn on_writable(&mut self, index: usize) -> bool {
        let Some(connection) = self.all.get_mut(index) else { return false };
        match connection.on_writable() {
            Ok(opened) => {
                self.unsent.push(index);
                opened
            }
            Err(error) => {
                self.close_later(index, error.to_string());
                false
            }
        }
    }

    /// Queues a message. Returns whether it will be sent: packet-ins are dropped if too many bytes are unsent.
    pub(super) fn push(
        &mut self,
        index: usize,
        message: &Message,
        is_packet_in: bool,
        counters: &Counters,
    ) -> bool {
        let connection = &mut self.all[index];
        if !connection.is_open() {
            return false;
        }
        if is_packet_in && !connection.has_room_for_packet_ins() {
            counters.packet_ins_dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        match connection.push(message) {
            Ok(()) => self.unsent.push(index),
            Err(why) => {
                self.close_later(index, why);
                return false;
            }
        }
        true
    }

    /// Sends as many bytes as the sockets take.
    pub(super) fn flush(&mut self) {
        self.unsent.sort_unstable();
        self.unsent.dedup();
        for index in self.unsent.drain(..) {
            if let Err(error) = self.all[index].flush() {
                self.closing.push((index, error.to_string()));
            }
        }
    }

    /// Closes a connection at the end of this turn.
    pub(super) fn close_later(&mut self, index: usize, why: String) {
        self.closing.push((index, why));
    }

    /// The connections to close now, each once, even if there are several reasons. The switch's own reason comes first.
    pub(super) fn take_closing(&mut self, by_switch: Vec<(usize, String)>) -> Vec<(usize, String)> {
        let mut closing = by_switch;
        closing.append(&mut self.closing);
        closing.sort_by_key(|(index, _)| *index);
        closing.dedup_by_key(|(index, _)| *index);
        closing
    }

    /// Closes a connection. Returns when the next attempt is.
    pub(super) fn close(
        &mut self,
        index: usize,
        why: String,
        registry: &Registry,
        now: Duration,
    ) -> Duration {
        let retry_in = self.all[index].close(why, registry, now);
        self.paused.remove(&index);
        self.look(index, now + retry_in);
        self.end_greeting(index);
        retry_in
    }

    fn end_greeting(&mut self, index: usize) {
        let controller = self.channel(index).controller.0;
        self.greeting[controller].remove(&index);
    }

    /// Sets when a connection is checked next.
    fn look(&mut self, index: usize, at: Duration) {
        self.looks.remove(&(self.look_at[index], index));
        self.look_at[index] = at;
        self.looks.insert((at, index));
    }

    /// When the next connection must be checked.
    pub(super) fn next_look(&self) -> Option<Duration> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Checks the connections whose time has come: begins to connect, and gives up silent controllers. Returns the
    /// connections that need an echo request. `is_on`: whether a switch is on.
    pub(super) fn check_due(
        &mut self,
        now: Duration,
        registry: &Registry,
        counters: &Counters,
        is_on: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut to_probe = Vec::new();
        while let Some((_, index)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            let Channel { switch, controller } = self.channel(index);
            let silent = match self.all[index].due(now) {
                Due::Connect if is_on(switch) => {
                    self.in_line[controller.0].insert(index);
                    None
                }
                Due::Nothing | Due::Connect => None,
                Due::Probe => {
                    self.all[index].probed();
                    to_probe.push(index);
                    None
                }
                Due::GiveUp => Some("the controller sends nothing"),
                Due::GiveUpGreeting => Some("the controller never asks what the switch is"),
            };
            if let Some(why) = silent {
                counters.silences.fetch_add(1, Ordering::Relaxed);
                self.close_later(index, why.to_owned());
            }
            self.look(index, self.all[index].next_look(now));
        }
        self.connect_next(now, registry, counters);
        to_probe
    }

    fn connect_next(&mut self, now: Duration, registry: &Registry, counters: &Counters) {
        for (controller, to) in self.controllers.iter().enumerate() {
            while self.greeting[controller].len() < GREETINGS_AT_ONCE
                && let Some(index) = self.in_line[controller].pop_first()
            {
                self.greeting[controller].insert(index);
                counters.attempts.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = self.all[index].connect(*to, Token(index), registry, now) {
                    self.closing.push((index, error.to_string()));
                }
            }
        }
    }
}
