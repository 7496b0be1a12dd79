//! Datapath ids that two sessions claim: who has one is asked whether he lives, and who claims one waits for that.
//!
//! ```text
//!   a new session ──claim──> Roster ──challenged──> worker of the old one: echo request, now
//!   a new session <──joins── Roster <──leave─────── nothing for PROBE_MS: the old one is ended
//!                 <─refused─        <──prove─────── anything came: it lives
//! ```
//!
//! Never decides whether a claim is good: [`crate::probe`] does.

use super::{Next, Sink, Southbound};
use crate::fault::{Fault, SessionEnd};
use crate::probe::PROBE_MS;
use flow::DatapathId;

/// Claims that wait are looked at this often, if nothing happens before.
const LOOK_MS: u64 = 5;

/// A switch that was asked whether it lives.
#[derive(Debug)]
pub(super) struct Probed {
    datapath: DatapathId,
    /// Since when the question is out: the turn behind the one that it was asked in, however long that took.
    out_since_ms: Option<u64>,
}

/// What is known of a switch that was asked.
enum Liveness {
    /// It lives.
    Alive,
    /// It is gone.
    Dead(SessionEnd),
    /// Nothing came yet.
    Unknown,
}

impl Southbound {
    /// Asks switches whether they live whose ids others claim, ends those that do not, and has those come up whose ids are free. Once in each turn,
    /// when what was ready has been read. It costs one look at a number unless two sessions claim an id.
    pub fn settle(&mut self, now_ms: u64, sink: &mut Sink<'_>) {
        self.now_ms = now_ms;
        if !self.probed.is_empty() {
            self.judge_probed(sink);
        }
        let stirred = self.roster.stirred();
        if stirred != self.stirred {
            self.stirred = stirred;
            let challenged = self.roster.take_challenged(self.worker);
            challenged.into_iter().for_each(|datapath| self.probe(datapath, sink));
        } else if now_ms.saturating_sub(self.claims_seen_ms) < LOOK_MS {
            return;
        }
        if !self.claiming.is_empty() {
            self.claims_seen_ms = now_ms;
            self.claim_again(sink);
        }
    }

    fn probe(&mut self, datapath: DatapathId, sink: &mut Sink<'_>) {
        let Some(slot) = self.by_datapath.get(&datapath).copied() else { return };
        self.probed.push(Probed { datapath, out_since_ms: None });
        self.with(slot, sink, |connection, resources| {
            connection.with_turn(resources, |session, turn| session.probe(turn));
            Next::Flush
        });
    }

    /// Whether somebody waits for an id, or was asked whether he lives: then [`Southbound::settle`] is to be called every ten milliseconds, since
    /// `probe::CLAIM_MS` leaves no more for it.
    pub fn has_claims(&self) -> bool {
        !self.claiming.is_empty() || !self.probed.is_empty()
    }

    /// A switch is gone.
    pub(super) fn forget_probe(&mut self, datapath: DatapathId) {
        self.probed.retain(|probed| probed.datapath != datapath);
    }

    fn judge_probed(&mut self, sink: &mut Sink<'_>) {
        for mut probed in std::mem::take(&mut self.probed) {
            let Some(slot) = self.by_datapath.get(&probed.datapath).copied() else { continue };
            match self.liveness(slot, &mut probed) {
                Liveness::Alive => self.roster.prove(probed.datapath, self.now_ms),
                Liveness::Dead(end) => self.with(slot, sink, |_, _| Next::End(end)),
                Liveness::Unknown => self.probed.push(probed),
            }
        }
    }

    /// Bytes that wait since it was not its turn are a sign of life too: what they say would be known if there had been time for them.
    fn liveness(&self, slot: usize, probed: &mut Probed) -> Liveness {
        let Some(connection) = self.slots.get(slot).and_then(Option::as_ref) else {
            return Liveness::Unknown;
        };
        if connection.peer_closed {
            return Liveness::Dead(SessionEnd::new(Fault::Network, "the switch closed the connection"));
        }
        if !connection.session.is_probed() || connection.has_unread() {
            return Liveness::Alive;
        }
        let since_ms = *probed.out_since_ms.get_or_insert(self.now_ms);
        if self.now_ms.saturating_sub(since_ms) < PROBE_MS {
            return Liveness::Unknown;
        }
        let reason = format!(
            "the switch did not answer an echo request within {PROBE_MS} ms, and another session claims its datapath id"
        );
        Liveness::Dead(SessionEnd::new(Fault::Network, reason))
    }

    fn claim_again(&mut self, sink: &mut Sink<'_>) {
        for slot in std::mem::take(&mut self.claiming) {
            let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else { continue };
            connection.is_claiming = false;
            self.with(slot, sink, |connection, resources| {
                connection.claim_again(resources).map_or_else(Next::End, |()| Next::Flush)
            });
        }
    }
}
