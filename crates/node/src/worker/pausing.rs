//! Reading switches no faster than the apps that hear them take their packet-ins.
//!
//! In: which switch has sent something. Out: how much of it is read now, or that it waits. What is waited for is decided in
//! `crate::pauses`; connections that are not up, and ends of connections, never wait. What a switch sent before apps knew it is handed on in
//! the same way, and the switch is read again when all of that is with the apps.

use super::{EVENTS_PER_TURN, Worker};
use crate::dispatch::Dispatch;
use crate::pauses::{Reading, Subscriber};
use flow::DatapathId;
use mio::Token;
use southbound::Ready;

/// How much is read of a connection that is not up. What may stand behind the last message of its handshake is not more than any ring takes.
const NOT_UP_BYTES: usize = 4 << 10;

impl Worker {
    /// Readies the switches that waited for apps and need not any more.
    pub(super) fn unpause(&mut self) {
        if !self.southbound.has_paused() {
            return;
        }
        let Worker { southbound, dispatch, read_bytes, now_ms, .. } = self;
        southbound.unpause(|datapath| dispatch.reading(datapath, *read_bytes, *now_ms) != Reading::NotYet);
    }

    /// What is kept of switches that apps know by now goes to them, as far as they have room: a piece of each switch, of one at least in a turn.
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

    /// Whether packet-ins are kept that wait for room with apps.
    pub(super) fn has_to_hand_on(&self) -> bool {
        self.dispatch.held.has_any_but(|datapath| self.dispatch.kernel.is_held(datapath))
    }

    /// Reads a connection that is ready, as far as there is room for what it says: whether it was read.
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
        let Dispatch { kernel, pauses, heard_packets, has_packets, .. } = &mut self.dispatch;
        // It may have ended by what was read.
        if let Some(datapath) = switch.filter(|datapath| kernel.is_up(*datapath)) {
            pauses.on_read(datapath, has_packets.then_some(heard_packets));
        }
        heard_packets.clear();
        *has_packets = false;
        let waited = std::mem::take(&mut self.dispatch.waited);
        if waited > 0 {
            self.southbound.on_waited(waited);
        }
        self.serve_trusted();
    }
}

impl Dispatch {
    /// Whether this switch is read now, and how many bytes of it at most. One whose answer is waited for is read in any case: the answer comes
    /// behind what it has sent.
    fn reading(&mut self, datapath: DatapathId, bytes: usize, now_ms: u64) -> Reading {
        let is_held = self.kernel.is_held(datapath);
        match self.held.has(datapath) {
            true if !is_held => Reading::NotYet,
            true if self.held.is_full(datapath) && self.kernel.is_passed_over(datapath) => Reading::NotYet,
            _ if is_held => Reading::Now(bytes),
            _ => self.room_of_receivers(datapath, bytes, now_ms),
        }
    }

    /// Whether those who hear this switch have room, and for how many bytes of it.
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
