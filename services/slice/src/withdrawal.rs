//! The end of a slice that the operator removes: its rules leave the switches before its process ends.
//!
//! ```text
//!   Withdraw ──> one delete to each switch that is up ──> receipts ──> Answer::Withdrawn
//! ```
//!
//! In: which deletes were sent, and their receipts. Out: the switches that keep rules, once all receipts are there. It sends nothing.

use burnet_sdk::{Outcome, Ticket};
use flow::DatapathId;
use std::collections::BTreeMap;

/// The deletes on their way, and what came of the others. There are as many as switches.
#[derive(Debug, Default)]
pub(crate) struct Withdrawal {
    asked: BTreeMap<Ticket, DatapathId>,
    kept: Vec<(DatapathId, String)>,
}

impl Withdrawal {
    /// A delete was sent to this switch.
    pub(crate) fn sent(&mut self, ticket: Ticket, datapath: DatapathId) {
        self.asked.insert(ticket, datapath);
    }

    /// A switch is not connected, so it keeps its rules.
    pub(crate) fn away(&mut self, datapath: DatapathId) {
        self.kept.push((datapath, "it is not connected".to_owned()));
    }

    /// A receipt came.
    pub(crate) fn on_receipt(&mut self, ticket: Ticket, outcome: Outcome, reason: &str) {
        let Some(datapath) = self.asked.remove(&ticket) else { return };
        if outcome != Outcome::Programmed {
            self.kept.push((datapath, reason.to_owned()));
        }
    }

    /// The switches that keep rules, with the reasons. `None`: receipts are missing.
    pub(crate) fn result(&self) -> Option<Vec<(DatapathId, String)>> {
        self.asked.is_empty().then(|| self.kept.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_with_the_last_receipt_and_names_what_stays() {
        let mut withdrawal = Withdrawal::default();
        withdrawal.sent(Ticket(1), DatapathId(1));
        withdrawal.sent(Ticket(2), DatapathId(2));
        withdrawal.away(DatapathId(3));
        withdrawal.on_receipt(Ticket(9), Outcome::Programmed, "");
        withdrawal.on_receipt(Ticket(1), Outcome::Programmed, "");
        assert_eq!(withdrawal.result(), None);
        withdrawal.on_receipt(Ticket(2), Outcome::Refused, "it speaks OpenFlow 1.0");
        let kept = [(DatapathId(3), "it is not connected"), (DatapathId(2), "it speaks OpenFlow 1.0")];
        assert_eq!(withdrawal.result(), Some(kept.map(|(switch, why)| (switch, why.to_owned())).to_vec()));
    }
}
