//! The time: claims are decided, silent hosts are asked, and what does not answer is removed.
//!
//! ```text
//!   seen ─── 70 % of expiry_s ───> probe ── 10 % ──> probe ── 10 % ──> probe ── 10 % ──> gone
//! ```
//!
//! In: the time. Out: effects, and when to be called again. A host at a switch that is down can neither be seen nor asked, so its time
//! waits. A look at a host that has been seen meanwhile sets only its next time.

use super::{Effect, Engine};
use crate::bounds::{PROBES_BEFORE_EXPIRY, PROBES_PER_S_MAX};
use crate::table::Entry;
use view::HostId;

/// The part of `expiry_s` between two probes.
const PROBE_PART: u64 = 10;

/// The time after which the probes that may be sent are as many as before.
const REFILL_MS: u64 = 1_000;

impl Engine {
    /// When [`Engine::on_time`] has something to do.
    pub fn next_due(&self) -> Option<u64> {
        let look_ms = self.table.first_due().map(|(due_ms, _)| match self.probes_left {
            0 => due_ms.max(self.probes_refilled_ms + REFILL_MS),
            _ => due_ms,
        });
        [look_ms, self.claims.next_due(), self.edges.next_due()].into_iter().flatten().min()
    }

    /// The time has passed.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        let lost = self.edges.on_time(now_ms);
        self.remove_learned(lost, out);
        self.examine_claims(now_ms, out);
        if now_ms.saturating_sub(self.probes_refilled_ms) >= REFILL_MS {
            (self.probes_left, self.probes_refilled_ms) = (PROBES_PER_S_MAX, now_ms);
        }
        while self.probes_left > 0
            && let Some((due_ms, id)) = self.table.first_due()
            && due_ms <= now_ms
        {
            self.look_at(id, now_ms, out);
        }
    }

    /// When a host is looked at that was just seen.
    pub(super) fn first_look(&self, now_ms: u64) -> Option<u64> {
        (self.settings.expiry_s != 0).then(|| now_ms + self.expiry_ms() - self.probe_interval_ms() * PROBES)
    }

    fn expiry_ms(&self) -> u64 {
        self.settings.expiry_s * 1_000
    }

    fn probe_interval_ms(&self) -> u64 {
        self.expiry_ms() / PROBE_PART
    }

    fn look_at(&mut self, id: HostId, now_ms: u64, out: &mut Vec<Effect>) {
        let interval_ms = self.probe_interval_ms();
        let (expiry_ms, quiet_ms) = (self.expiry_ms(), self.expiry_ms() - interval_ms * PROBES);
        let Some(entry) = self.table.get(id) else { return };
        if self.edges.is_down(entry.at.switch) {
            return self.table.set_due(id, Some(now_ms + interval_ms));
        }
        self.ask_or_drop_addresses(id, quiet_ms, now_ms, out);
        let Some(entry) = self.table.get(id) else { return };
        let is_silent = now_ms.saturating_sub(entry.seen_ms) >= expiry_ms;
        if is_silent && entry.addresses.is_empty() {
            self.counts.expired += 1;
            return self.forget(id, out);
        }
        let next_ms = next_look(entry, quiet_ms, expiry_ms).max(now_ms + interval_ms);
        self.table.set_due(id, Some(next_ms));
    }

    /// Asks for each address that was not seen for long. One that did not answer several times is dropped.
    fn ask_or_drop_addresses(&mut self, id: HostId, quiet_ms: u64, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(entry) = self.table.get_mut(id) else { return };
        let (at, before) = (entry.at, out.len());
        let mut dropped = Vec::new();
        for address in &mut entry.addresses {
            if now_ms.saturating_sub(address.seen_ms) < quiet_ms {
                continue;
            }
            if address.unanswered >= PROBES_BEFORE_EXPIRY {
                dropped.push(address.address);
            } else {
                address.unanswered += 1;
                out.push(Effect::Probe { at, host: id, address: address.address });
            }
        }
        let asked = out.len() - before;
        self.counts.probes += asked as u64;
        self.probes_left = self.probes_left.saturating_sub(u32::try_from(asked).unwrap_or(u32::MAX));
        for address in &dropped {
            self.table.remove_address(id, *address);
        }
        let stays = self.table.get(id).is_some_and(|entry| !entry.addresses.is_empty());
        if !dropped.is_empty() && stays {
            self.tell(id, out);
        }
    }
}

const PROBES: u64 = PROBES_BEFORE_EXPIRY as u64;

/// When something about a host can be due, if it is not seen until then.
fn next_look(entry: &Entry, quiet_ms: u64, expiry_ms: u64) -> u64 {
    let of_addresses = entry.addresses.iter().map(|address| address.seen_ms + quiet_ms);
    of_addresses.min().unwrap_or(entry.seen_ms + expiry_ms)
}
