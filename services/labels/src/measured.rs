//! What meters measured of flows, for reports: the rates in the words of agents.
//!
//! ```text
//!   an agent's word about a flow to its own VNIC ──on_rate, on_end──> rates ──fill──> the flows of a slice
//! ```
//!
//! In: words that are judged already. Out: rates. Labels and caps never depend on them: those follow nominal rates.

use labels_contract::{Flow, Hose};
use std::collections::BTreeMap;

/// The most rates. What is measured of further flows is not noted, and reports show their nominal rates.
const RATES_MAX: usize = 1 << 20;

/// Rates in bit/s by the numbers of the receiver and the sender.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    rates: BTreeMap<(u32, u32), u64>,
}

impl Measured {
    /// A meter has this rate now. It says so again when the rate changes by a tenth.
    pub fn on_rate(&mut self, from: u32, to: u32, rate_bps: u64) {
        if self.rates.len() < RATES_MAX || self.rates.contains_key(&(to, from)) {
            self.rates.insert((to, from), rate_bps);
        }
    }

    /// The flow is idle.
    pub fn on_end(&mut self, from: u32, to: u32) {
        self.rates.remove(&(to, from));
    }

    /// Forgets what was measured at these receivers.
    pub fn forget(&mut self, is_of: impl Fn(u32) -> bool) {
        self.rates.retain(|(to, _), _| !is_of(*to));
    }

    /// Adds the rates to the flows of a slice.
    pub fn fill(&self, hose: &Hose, flows: &mut [Flow]) {
        let number = |name: &str| hose.vnics.get(name)?.number;
        for flow in flows.iter_mut().filter(|flow| flow.counts) {
            let (Some(from), Some(to)) = (number(&flow.from), number(&flow.to)) else { continue };
            flow.measured_bps = self.rates.get(&(to, from)).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use labels_contract::Vnic;

    #[test]
    fn a_rate_is_shown_until_its_flow_ends_or_its_agent_goes() {
        let vnic = |number| Vnic { rate_bps: 8, number: Some(number), agent: Some(number) };
        let vnics = [("E".to_owned(), vnic(1)), ("F".to_owned(), vnic(2)), ("G".to_owned(), vnic(3))];
        let hose = Hose { vnics: vnics.into(), ..Hose::default() };
        let flow = |to: &str, counts| Flow {
            from: "E".to_owned(),
            to: to.to_owned(),
            links: Vec::new(),
            rules: 1,
            counts,
            rate_bps: 8,
            cap_bps: None,
            measured_bps: None,
        };
        let shown = |measured: &Measured| {
            let mut flows = [flow("F", true), flow("G", true), flow("G", false)];
            measured.fill(&hose, &mut flows);
            flows.map(|flow| flow.measured_bps)
        };
        let mut measured = Measured::default();
        measured.on_rate(1, 2, 5);
        measured.on_rate(1, 3, 6);
        measured.on_rate(2, 1, 7);
        assert_eq!(shown(&measured), [Some(5), Some(6), None], "a flow that does not count is silent");
        measured.on_rate(1, 2, 4);
        measured.on_end(1, 3);
        assert_eq!(shown(&measured), [Some(4), None, None]);
        measured.forget(|to| to == 2);
        assert_eq!(shown(&measured), [None; 3]);
    }
}
