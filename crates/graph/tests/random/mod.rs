//! Random networks and changes from a seed, and slow answers that are plainly right.
//!
//! In: a seed. Out: links, and what an exhaustive search says. It uses nothing of the crate but its types.

#![allow(dead_code, reason = "each test uses a part of it")]

use flow::{DatapathId, PortNo};
use view::{ConnectPoint, Link, LinkId, LinkKind, LinkState};

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
}

/// One direction of a cable between two switches.
pub fn link(from: u64, to: u64, cable: u32) -> Link {
    let point = |switch, peer: u64| ConnectPoint {
        switch: DatapathId(switch),
        port: PortNo(u32::try_from(peer).expect("it is there") * 8 + cable + 1),
    };
    Link {
        id: LinkId { from: point(from, to), to: point(to, from) },
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps: 1_000_000,
        latency_us: Some(100),
        since_ms: 0,
        annotations: Default::default(),
    }
}

/// A random network: some cables, each with both directions, with random latencies and capacities.
pub fn network(random: &mut Random, switches: u64, cables: u64) -> Vec<Link> {
    let mut links = Vec::new();
    for _ in 0..cables {
        let (one, two) = (random.below(switches), random.below(switches));
        if one == two {
            continue;
        }
        let mut there = link(one, two, u32::try_from(random.below(2)).expect("it is there"));
        there.latency_us = Some(random.below(9) + 1);
        there.capacity_kbps = random.below(3) * 1_000_000;
        there.annotations.insert("cost".to_owned(), (random.below(5) + 1).to_string());
        let mut back = there.clone();
        back.id = there.id.reversed();
        for link in [there, back] {
            links.retain(|other: &Link| other.id != link.id);
            links.push(link);
        }
    }
    links
}

/// Every path without a repeated switch, as indices of links.
pub fn simple_paths(links: &[Link], from: u64, to: u64) -> Vec<Vec<usize>> {
    let (mut found, mut path) = (Vec::new(), Vec::new());
    extend(links, DatapathId(from), DatapathId(to), &mut vec![DatapathId(from)], &mut path, &mut found);
    found
}

fn extend(
    links: &[Link],
    at: DatapathId,
    to: DatapathId,
    seen: &mut Vec<DatapathId>,
    path: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    if at == to {
        return found.push(path.clone());
    }
    for (number, link) in links.iter().enumerate() {
        let next = link.id.to.switch;
        if link.state == LinkState::Up && link.id.from.switch == at && !seen.contains(&next) {
            seen.push(next);
            path.push(number);
            extend(links, next, to, seen, path, found);
            seen.pop();
            path.pop();
        }
    }
}
