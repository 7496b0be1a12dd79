//! Connections that wait for a time: their commands wait because their switch is slow, or their receipts until its data plane has the
//! rules.
//!
//! In: the time. Out: messages in the outputs of switches, receipts, and what a profile says of a switch that connects.

use super::{Next, Sink, Southbound};
use crate::connection::Connection;
use crate::pacer::RuleChange;
use crate::turn::SouthboundEvent;
use abi::ZoneId;
use flow::DatapathId;

impl Southbound {
    /// When [`Southbound::on_time`] may have something to do. `None`: no connection waits for a time.
    pub fn due_ms(&self) -> Option<u64> {
        let sessions = self.timed.iter().filter_map(|slot| self.connections.get(*slot));
        sessions.filter_map(|connection| connection.session.due_ms()).min()
    }

    /// Lets commands go whose time has come, and reports what is in the data plane by now. Call it once in each turn. If no connection
    /// waits for a time, it costs one comparison.
    #[inline]
    pub fn on_time(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        if !self.timed.is_empty() {
            self.on_due(now_ms, sink);
        }
    }

    #[cold]
    fn on_due(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        let mut slots = std::mem::replace(&mut self.timed, std::mem::take(&mut self.spare));
        // A connection that has ended may have left its slot to another.
        slots.sort_unstable();
        slots.dedup();
        for slot in slots.drain(..) {
            let Some(connection) = self.connections.get_mut(slot).filter(|it| it.is_timed) else { continue };
            connection.is_timed = false;
            match connection.session.due_ms() {
                None => {}
                Some(due_ms) if due_ms > now_ms => {
                    connection.is_timed = true;
                    self.timed.push(slot);
                }
                Some(_) => self.with(slot, sink, |connection, resources| {
                    let waiting = connection.outbox.len();
                    connection.with_turn(resources, |session, turn| session.on_time(waiting, turn));
                    Next::Flush
                }),
            }
        }
        self.spare = slots;
    }

    /// The rules that flow mods may add, and that wait for this switch because it is slow. Its statistics do not have them yet.
    pub fn waiting_rules(&self, datapath: DatapathId) -> impl Iterator<Item = (ZoneId, &RuleChange)> {
        let slot = self.connections.slot_of(datapath);
        let connection = slot.and_then(|slot| self.connections.get(slot));
        connection.into_iter().flat_map(|connection| connection.session.waiting_rules())
    }

    /// Looks up how all switches are treated, when each is flushed next.
    pub(super) fn pace_anew(&mut self) {
        for slot in 0..self.connections.slots() {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.is_to_pace = true;
            }
            self.connections.mark_dirty(slot);
        }
    }

    /// Looks up how a switch is treated. Reports it if that is another way than before.
    #[cold]
    pub(super) fn settle_pace(&self, connection: &mut Connection, sink: &mut Sink<'_>) {
        connection.is_to_pace = false;
        let session = &mut connection.session;
        let datapath = session.identity().datapath;
        let pace = self.config.paces.of(datapath, session.desc());
        if pace.as_ref() == session.pace() {
            return;
        }
        let entries = |of: Option<&crate::SwitchPace>| of.and_then(|of| of.entries);
        let before = entries(session.pace().map(|pace| &**pace));
        let after = entries(pace.as_deref());
        if let Some(pace) = &pace {
            tracing::info!(%datapath, profile = %pace.profile, "the profile applies to the switch");
        }
        session.set_pace(pace, self.now_ms);
        if before != after {
            sink(SouthboundEvent::Entries { datapath, entries: after });
        }
    }
}
