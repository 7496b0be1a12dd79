//! Random numbers from a seed, and rates by a slow method that is plainly the definition.
//!
//! In: a seed; capacities and flows. Out: numbers; rates. It uses nothing of the crate.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;

/// A generator of numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    pub fn number(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).expect("it is below")
    }
}

/// A side of a VNIC: its number, and whether it sends.
type Side = (u32, bool);

/// Max-min shares in whole bit/s. In each round, the sides whose flows get the least by an even division give it to all of their flows.
pub fn shares(capacities: &BTreeMap<u32, u64>, flows: &[(u32, u32)]) -> BTreeMap<(u32, u32), u64> {
    let mut rates = BTreeMap::new();
    loop {
        let sides = |flow: &(u32, u32)| [(flow.0, true), (flow.1, false)];
        let open: Vec<_> = flows.iter().filter(|flow| !rates.contains_key(*flow)).collect();
        let even = |side: Side| {
            let own = |flow: &&(u32, u32)| sides(flow).contains(&side);
            let used: u64 = rates.iter().filter(|(flow, _)| own(flow)).map(|(_, rate)| rate).sum();
            let count = open.iter().filter(|flow| own(flow)).count() as u64;
            (capacities[&side.0] - used) / count
        };
        let Some(least) = open.iter().flat_map(|flow| sides(flow)).map(even).min() else { return rates };
        let limited = open.iter().filter(|flow| sides(flow).into_iter().any(|side| even(side) == least));
        let new: Vec<_> = limited.map(|flow| (**flow, least)).collect();
        rates.extend(new);
    }
}
