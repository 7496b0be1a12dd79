//! Reads switches no faster than the apps read their packet-ins and answers.
//!
//! In: a switch that has sent data. Out: how much to read now, or that the switch waits; `crate::pauses` and
//! `crate::unread_answers` decide that.
//! Connections before the end of their handshake, and ends of connections, never wait. Packet-ins from before apps knew
//! a switch are passed on in the same way. The worker reads the switch again when apps have received all of them.

use super::{EVENTS_PER_TURN, Worker};
use crate::dispatch::Dispatch;
use crate::pauses::{Reading, Subscriber};
use flow::DatapathId;
use mio::Token;
use southbound::Ready;

/// How much is read of a connection before the end of its handshake. The data behind the last handshake message is no
/// more than any ring takes.
const NOT_UP_BYTES: usize = 4 << 10;

impl Worker {
    /// Wakes the switches that no longer need to wait for apps.
    pub(super) fn unpause(&mut self) {
        if !self.southbound.has_paused() {
            return;
        }
        let Worker { southbound, dispatch, read_bytes, now_ms, .. } = self;
        southbound.unpause(|datapath| dispatch.reading(datapath, *read_bytes, *now_ms) != Reading::NotYet);
    }

    /// Passes on the buffered packet-ins of switches that apps know by now, as far as the apps have space. It passes on
    /// a part of each switch's, and of at least one switch in a turn.
    pub(super) fn hand_on_held(&mut self) {
        let mut pieces = 0;
        for _ in 0..self.dispatch.held.switches() {
            let Some(datapath) = self.dispatch.held.next_after(self.handed_on_last) else { return };
            if pieces > 0 && self.dispatch.heard >= EVENTS_PER_TURN {
                return;
            }
            self.handed_on_last = datapath;
            if self.dispatch.kernel.is_held(datapath) {
                continue;
            }
            let has_room = self.dispatch.room_of_receivers(datapath, self.read_bytes, self.now_ms);
            if let Reading::Now(bytes) = has_room {
                pieces += 1;
                self.dispatch.hand_on(datapath, bytes);
                self.after_read(Some(datapath));
            }
        }
    }

    /// Whether buffered packet-ins wait for space in apps' rings.
    pub(super) fn has_to_hand_on(&self) -> bool {
        self.dispatch.held.has_any_but(|datapath| self.dispatch.kernel.is_held(datapath))
    }

    /// Reads a ready connection, as far as there is space for its events. Returns whether it was read.
    pub(super) fn read_if_room(&mut self, token: Token, ready: Ready) -> bool {
        let switch = self.southbound.switch_of(token);
        if !self.has_room(switch) {
            self.southbound.pause(token, ready);
            return false;
        }
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.on_ready(token, ready, *now_ms, &mut |event| dispatch.hear(event));
        self.after_read(switch);
        true
    }

    /// The same for the connection whose turn is next.
    pub(super) fn read_next_if_room(&mut self) -> bool {
        let switch = self.southbound.next_switch();
        if !self.has_room(switch) {
            self.southbound.pause_next();
            return false;
        }
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.resume(*now_ms, &mut |event| dispatch.hear(event));
        self.after_read(switch);
        true
    }

    fn has_room(&mut self, switch: Option<DatapathId>) -> bool {
        let Some(datapath) = switch else {
            self.southbound.read_at_most(NOT_UP_BYTES);
            return true;
        };
        match self.dispatch.reading(datapath, self.read_bytes, self.now_ms) {
            Reading::Now(bytes) => {
                self.southbound.read_at_most(bytes);
                true
            }
            Reading::NotYet => false,
        }
    }

    fn after_read(&mut self, switch: Option<DatapathId>) {
        self.dispatch.report_ready();
        let Dispatch { kernel, pauses, unread_answers, heard_packets, has_packets, now_ms, .. } =
            &mut self.dispatch;
        // The data that was read may have ended it.
        if let Some(datapath) = switch.filter(|datapath| kernel.is_up(*datapath)) {
            pauses.on_read(datapath, has_packets.then_some(heard_packets));
            unread_answers.on_read(datapath, *now_ms);
        }
        heard_packets.clear();
        *has_packets = false;
        let waited = std::mem::take(&mut self.dispatch.waited);
        if waited > 0 {
            self.southbound.on_waited(waited);
        }
        self.serve_trusted();
        let Worker { southbound, dispatch, now_ms, .. } = self;
        southbound.flush_last_read(*now_ms, &mut |event| dispatch.hear(event));
    }
}

impl Dispatch {
    /// Whether to read this switch now, and at most how many bytes. A switch whose answer is pending is always read:
    /// the answer comes after the data that it has already sent.
    fn reading(&mut self, datapath: DatapathId, mut bytes: usize, now_ms: u64) -> Reading {
        let is_held = self.kernel.is_held(datapath);
        if !is_held && !self.unread_answers.is_empty() {
            match self.room_for_answers(datapath, bytes, now_ms) {
                Reading::Now(most) => bytes = most,
                Reading::NotYet => return Reading::NotYet,
            }
        }
        match self.held.has(datapath) {
            true if !is_held => Reading::NotYet,
            true if self.held.is_full(datapath) && self.kernel.is_passed_over(datapath) => Reading::NotYet,
            _ if is_held => Reading::Now(bytes),
            _ => self.room_of_receivers(datapath, bytes, now_ms),
        }
    }

    /// Whether the apps that this switch answers have read its earlier answers, and how many bytes to read.
    #[cold]
    fn room_for_answers(&mut self, datapath: DatapathId, bytes: usize, now_ms: u64) -> Reading {
        let Dispatch { zones, unread_answers, .. } = self;
        let is_behind = |zone| zones.get(zone).is_some_and(|end| end.is_behind());
        match unread_answers.decide(datapath, is_behind, bytes, now_ms) {
            Some(bytes) => Reading::Now(bytes),
            None => Reading::NotYet,
        }
    }

    /// Whether the receivers of this switch's events have space, and for how many bytes.
    fn room_of_receivers(&mut self, datapath: DatapathId, bytes: usize, now_ms: u64) -> Reading {
        let Dispatch { kernel, zones, pauses, subscribers, .. } = self;
        pauses.subscribers(datapath, kernel.receivers_of_packets(), subscribers);
        if !subscribers.iter().any(|zone| zones.get(zone).is_some_and(|end| !end.is_trusted())) {
            return Reading::Now(bytes);
        }
        let others = kernel.receivers_of_switches().any(|zone| !subscribers.contains(zone));
        let looked_at = subscribers.iter().filter_map(|zone| {
            let end = zones.get(zone)?;
            let (room, standstill_ms) = (end.room_for_packet_ins(datapath), end.standstill_ms(now_ms));
            Some(Subscriber { zone, room, standstill_ms })
        });
        pauses.decide(datapath, looked_at, others, bytes, now_ms)
    }
}
