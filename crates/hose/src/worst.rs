//! The worst traffic that a hose can put on one link.
//!
//! ```text
//!   maximise  sum of share(i,j) * traffic(i,j)   where the traffic of each sender and of each receiver is at most its rate
//! ```
//!
//! This is a transportation problem. VNICs at one switch share their paths, so a place stands for all of them. The method is that of successive
//! shortest paths: each step sends as much as possible along the way that gains most, and may take back what it sent before. The gains fall, so what
//! is still to come is never more than the last gain times what is left. That is the bound at which the search stops, if it needs too many steps.
//!
//! If all shares are whole (one path for each pair) and all senders reach all receivers over the link, the result is the lesser of both sums of rates.
//!
//! In: rates of places, shares. Out: bit/s, exact to 1 bit/s or a bound that is safe. It knows no capacities.

use crate::routing::{Part, WHOLE};

/// The maximum number of steps for one link. At the bound, the result is an upper bound.
pub const STEPS_MAX: usize = 2_000;

/// The worst traffic on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// In bit/s.
    pub load_bps: u64,
    /// Whether some traffic reaches it. `false`: it is an upper bound.
    pub is_exact: bool,
}

/// A pair of places, and what is sent between them.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    share: i64,
    sent_bps: u64,
}

/// The worst traffic of a hose with these rates by place, in bit/s.
pub fn worst(parts: &[Part], rates_bps: &[u64]) -> Worst {
    let bound = bound(parts, rates_bps);
    if greedy(parts, rates_bps) == bound {
        return Worst { load_bps: in_bps(bound), is_exact: true };
    }
    Search::new(parts, rates_bps).run(bound)
}

/// A sum of shares of bit/s. What is below one bit/s is left out: it is rounding, or too little to matter.
fn in_bps(load: u128) -> u64 {
    u64::try_from(load / u128::from(WHOLE)).unwrap_or(u64::MAX)
}

fn product(share: u64, rate_bps: u64) -> u128 {
    u128::from(share) * u128::from(rate_bps)
}

/// No sender can put more on the link than its rate times its greatest share, and no receiver can draw more.
fn bound(parts: &[Part], rates_bps: &[u64]) -> u128 {
    let (mut sent, mut received) = (vec![0; rates_bps.len()], vec![0; rates_bps.len()]);
    for Part { from, to, share } in parts {
        let (sent, received): (&mut u64, &mut u64) = (&mut sent[*from as usize], &mut received[*to as usize]);
        (*sent, *received) = ((*sent).max(*share), (*received).max(*share));
    }
    let sum = |shares: &[u64]| shares.iter().zip(rates_bps).map(|(share, rate)| product(*share, *rate)).sum();
    let (sent, received): (u128, u128) = (sum(&sent), sum(&received));
    sent.min(received)
}

/// What is reached by filling the pairs with the greatest shares first. In the usual fabrics it is the bound.
fn greedy(parts: &[Part], rates_bps: &[u64]) -> u128 {
    let mut order: Vec<&Part> = parts.iter().collect();
    order.sort_by_key(|part| std::cmp::Reverse(part.share));
    let (mut supply, mut demand) = (rates_bps.to_vec(), rates_bps.to_vec());
    let mut load = 0;
    for Part { from, to, share } in order {
        let (supply, demand) = (&mut supply[*from as usize], &mut demand[*to as usize]);
        let amount = (*supply).min(*demand);
        (*supply, *demand) = (*supply - amount, *demand - amount);
        load += product(*share, amount);
    }
    load
}

/// The best way from senders with something left to one place, as a gain and the last edge.
type Reached = Option<(i64, Option<usize>)>;

struct Search {
    edges: Vec<Edge>,
    /// By place: what it can still send, and what it can still receive.
    supply: Vec<u64>,
    demand: Vec<u64>,
    /// By place: the best way to its sending side, and to its receiving side.
    senders: Vec<Reached>,
    receivers: Vec<Reached>,
}

impl Search {
    fn new(parts: &[Part], rates_bps: &[u64]) -> Search {
        let edges = parts.iter().map(|part| Edge {
            from: part.from as usize,
            to: part.to as usize,
            // WHOLE at most.
            share: part.share as i64,
            sent_bps: 0,
        });
        let nothing = vec![None; rates_bps.len()];
        Search {
            edges: edges.collect(),
            supply: rates_bps.to_vec(),
            demand: rates_bps.to_vec(),
            senders: nothing.clone(),
            receivers: nothing,
        }
    }

    fn run(mut self, bound: u128) -> Worst {
        let mut load: u128 = 0;
        let mut gain = 0;
        for _ in 0..STEPS_MAX {
            self.reach();
            let Some((place, best)) = self.best() else {
                return Worst { load_bps: in_bps(load), is_exact: true };
            };
            // Positive. The first is a share, and later ones are not greater.
            gain = best as u64;
            load += product(gain, self.send(place));
            if load >= bound {
                return Worst { load_bps: in_bps(load), is_exact: true };
            }
        }
        let left = |rates: &[u64]| rates.iter().map(|rate| u128::from(*rate)).sum::<u128>();
        let rest = left(&self.supply).min(left(&self.demand));
        let load_bps = in_bps(bound.min(load.saturating_add(u128::from(gain).saturating_mul(rest))));
        Worst { load_bps, is_exact: false }
    }

    /// Finds the best way to each side. There is no circle with a gain, so each is found after as many rounds as there are places.
    fn reach(&mut self) {
        for (sender, supply) in self.senders.iter_mut().zip(&self.supply) {
            *sender = (*supply > 0).then_some((0, None));
        }
        self.receivers.fill(None);
        for _ in 0..=self.senders.len() {
            let mut has_changed = false;
            for (number, edge) in self.edges.iter().enumerate() {
                let (sender, receiver) = (&mut self.senders[edge.from], &mut self.receivers[edge.to]);
                if let Some((gain, _)) = *sender {
                    has_changed |= improve(receiver, gain + edge.share, number);
                }
                if let Some((gain, _)) = receiver.filter(|_| edge.sent_bps > 0) {
                    has_changed |= improve(sender, gain - edge.share, number);
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// The place that can still receive and is reached with the greatest gain.
    fn best(&self) -> Option<(usize, i64)> {
        let reached = self.receivers.iter().zip(&self.demand).enumerate();
        let open = reached.filter(|(_, (_, demand))| **demand > 0);
        let gains = open.filter_map(|(place, (way, _))| Some((place, (*way)?.0)));
        gains.filter(|(_, gain)| *gain > 0).max_by_key(|(place, gain)| (*gain, std::cmp::Reverse(*place)))
    }

    /// Sends as much as possible along the best way to a place. Returns how much that is.
    fn send(&mut self, place: usize) -> u64 {
        let (way, first) = self.way(place);
        let taken_back =
            way.iter().filter(|(_, is_back)| *is_back).map(|(edge, _)| self.edges[*edge].sent_bps);
        let amount = taken_back.min().unwrap_or(u64::MAX).min(self.demand[place]).min(self.supply[first]);
        for (edge, is_back) in way {
            let sent_bps = &mut self.edges[edge].sent_bps;
            *sent_bps = if is_back { *sent_bps - amount } else { *sent_bps + amount };
        }
        self.demand[place] -= amount;
        self.supply[first] -= amount;
        amount
    }

    /// The edges of the best way to a place, last to first, with whether each takes back; and the sender where it begins.
    fn way(&self, place: usize) -> (Vec<(usize, bool)>, usize) {
        let (mut way, mut receiver) = (Vec::new(), place);
        loop {
            let Some((_, Some(there))) = self.receivers[receiver] else { return (way, receiver) };
            way.push((there, false));
            let sender = self.edges[there].from;
            let Some((_, Some(back))) = self.senders[sender] else { return (way, sender) };
            way.push((back, true));
            receiver = self.edges[back].to;
        }
    }
}

fn improve(reached: &mut Reached, gain: i64, edge: usize) -> bool {
    let is_better = reached.is_none_or(|(known, _)| gain > known);
    if is_better {
        *reached = Some((gain, Some(edge)));
    }
    is_better
}
