//! The leases of one pool: which client has which address until when.
//!
//! ```text
//!   client, wish, time ──> offer: its own address, the wished one, a new one, or the one that has been free longest
//!   client, address, time ──> take: the address is the client's
//! ```
//!
//! In: clients, addresses, the time in milliseconds since 1970. Out: addresses, or the reason why there is none. It reads no frame and
//! keeps nothing beyond the pool's size.

use crate::settings::Pool;
use burnet_sdk::MacAddr;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;

/// How long an offered address is kept for its client.
pub const OFFER_MS: u64 = 30_000;

/// How long an address is not offered after a client has declined it, because another host seems to use it.
pub const DECLINED_MS: u64 = 3_600_000;

/// A lease, as it is kept in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The client. `None`: a client has declined the address.
    pub mac: Option<MacAddr>,
    /// When it ends.
    pub until_ms: u64,
}

/// The leases of a pool.
#[derive(Debug)]
pub struct Leases {
    pool: Pool,
    fixed: BTreeSet<Ipv4Addr>,
    leases: HashMap<Ipv4Addr, Lease>,
    by_client: HashMap<MacAddr, Ipv4Addr>,
    by_end: BTreeSet<(u64, Ipv4Addr)>,
    /// The first address that nobody has had yet.
    unused: u32,
}

impl Leases {
    /// No leases yet.
    pub fn new(pool: Pool) -> Leases {
        let fixed = pool.fixed.values().copied().collect();
        let unused = pool.first.to_bits();
        Leases {
            pool,
            fixed,
            leases: HashMap::new(),
            by_client: HashMap::new(),
            by_end: BTreeSet::new(),
            unused,
        }
    }

    /// What the clients are told.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The client's address, if its lease or an offer still runs.
    pub fn held(&self, mac: MacAddr, now_ms: u64) -> Option<Ipv4Addr> {
        let address = self.by_client.get(&mac).copied()?;
        self.leases.get(&address).filter(|lease| lease.until_ms > now_ms).map(|_| address)
    }

    /// An address for this client, which is kept for it for [`OFFER_MS`]. `None`: the pool is exhausted.
    pub fn offer(&mut self, mac: MacAddr, wants: Option<Ipv4Addr>, now_ms: u64) -> Option<Ipv4Addr> {
        if let Some(fixed) = self.pool.fixed.get(&mac) {
            return Some(*fixed);
        }
        let before = self.by_client.get(&mac).copied();
        let address = before
            .filter(|address| self.is_for(mac, *address, now_ms))
            .or_else(|| wants.filter(|address| self.is_for(mac, *address, now_ms)))
            .or_else(|| self.next_unused())
            .or_else(|| self.longest_free(now_ms))?;
        let runs_until_ms =
            self.leases.get(&address).filter(|lease| lease.mac == Some(mac)).map_or(0, |it| it.until_ms);
        self.set(address, Lease { mac: Some(mac), until_ms: runs_until_ms.max(now_ms + OFFER_MS) });
        Some(address)
    }

    /// Whether the client may have this address now.
    pub fn is_for(&self, mac: MacAddr, address: Ipv4Addr, now_ms: u64) -> bool {
        if let Some(fixed) = self.pool.fixed.get(&mac) {
            return *fixed == address;
        }
        let in_range =
            (self.pool.first..=self.pool.last).contains(&address) && !self.fixed.contains(&address);
        let lease = self.leases.get(&address);
        in_range && lease.is_none_or(|lease| lease.mac == Some(mac) || lease.until_ms <= now_ms)
    }

    /// The lease that the client gets with this address. [`Leases::set`] makes it.
    pub fn lease(&self, mac: MacAddr, now_ms: u64) -> Lease {
        Lease { mac: Some(mac), until_ms: now_ms + u64::from(self.pool.lease_s) * 1_000 }
    }

    /// Sets a lease, in place of one that the address or its client had.
    pub fn set(&mut self, address: Ipv4Addr, lease: Lease) {
        self.unlink(address);
        if let Some(mac) = lease.mac
            && let Some(former) = self.by_client.get(&mac).copied()
        {
            // The client has another address now. The former one is free at once.
            self.end(former);
        }
        if let Some(mac) = lease.mac {
            self.by_client.insert(mac, address);
        }
        self.by_end.insert((lease.until_ms, address));
        self.leases.insert(address, lease);
    }

    /// Ends a lease. The address is free at once, and nobody's.
    pub fn end(&mut self, address: Ipv4Addr) {
        if self.unlink(address) {
            self.set(address, Lease { mac: None, until_ms: 0 });
        }
    }

    /// Takes a lease out of the maps, and says whether there was one.
    fn unlink(&mut self, address: Ipv4Addr) -> bool {
        let Some(lease) = self.leases.remove(&address) else { return false };
        self.by_end.remove(&(lease.until_ms, address));
        if let Some(mac) = lease.mac
            && self.by_client.get(&mac) == Some(&address)
        {
            self.by_client.remove(&mac);
        }
        true
    }

    /// How many leases and offers run; for tests.
    #[cfg(test)]
    pub fn running(&self, now_ms: u64) -> usize {
        let ended = self.by_end.range(..=(now_ms, Ipv4Addr::BROADCAST)).count();
        self.by_end.len() - ended
    }

    fn next_unused(&mut self) -> Option<Ipv4Addr> {
        while self.unused <= self.pool.last.to_bits() {
            let address = Ipv4Addr::from_bits(self.unused);
            self.unused += 1;
            if !self.fixed.contains(&address) && !self.leases.contains_key(&address) {
                return Some(address);
            }
        }
        None
    }

    /// The address whose lease ended first. One that was given back comes before all others.
    fn longest_free(&self, now_ms: u64) -> Option<Ipv4Addr> {
        // A static lease that a client had before the settings named it is in the map too.
        let mut ended = self.by_end.range(..=(now_ms, Ipv4Addr::BROADCAST)).map(|(_, address)| *address);
        ended.find(|address| {
            (self.pool.first..=self.pool.last).contains(address) && !self.fixed.contains(address)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR_MS: u64 = 3_600_000;

    fn address(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn mac(last: u8) -> MacAddr {
        MacAddr([0, 0, 0, 0, 0, last])
    }

    /// Addresses 10 to 13, of which 12 is fixed, and 50 fixed outside of the range.
    fn leases() -> Leases {
        Leases::new(Pool {
            network: address(0),
            mask: Ipv4Addr::new(255, 255, 255, 0),
            first: address(10),
            last: address(13),
            gateway: None,
            dns: Vec::new(),
            domain: None,
            lease_s: 3_600,
            fixed: [(mac(200), address(12)), (mac(201), address(50))].into(),
        })
    }

    fn take(leases: &mut Leases, client: u8, now_ms: u64) -> Option<Ipv4Addr> {
        let address = leases.offer(mac(client), None, now_ms)?;
        let lease = leases.lease(mac(client), now_ms);
        leases.set(address, lease);
        Some(address)
    }

    #[test]
    fn a_pool_gives_each_address_once_and_then_none() {
        let mut leases = leases();
        let given: Vec<_> = (1..=4).map(|client| take(&mut leases, client, 0)).collect();
        assert_eq!(given, [Some(address(10)), Some(address(11)), Some(address(13)), None]);
        assert_eq!(take(&mut leases, 200, 0), Some(address(12)), "a static lease");
        assert_eq!(leases.running(1), 4);
        assert_eq!(take(&mut leases, 4, HOUR_MS), Some(address(10)), "the lease of the first is over");
    }

    #[test]
    fn a_client_gets_its_address_again_even_after_its_lease() {
        let mut leases = leases();
        take(&mut leases, 1, 0);
        take(&mut leases, 2, 0);
        assert_eq!(leases.offer(mac(2), Some(address(10)), 5), Some(address(11)));
        assert_eq!(leases.offer(mac(2), None, 2 * HOUR_MS), Some(address(11)));
        assert_eq!(
            (leases.held(mac(2), 2 * HOUR_MS), leases.held(mac(1), 2 * HOUR_MS)),
            (Some(address(11)), None)
        );
    }

    #[test]
    fn an_offer_is_kept_for_its_client_for_a_short_time() {
        let mut leases = leases();
        assert_eq!(leases.offer(mac(1), Some(address(13)), 0), Some(address(13)));
        assert!(!leases.is_for(mac(2), address(13), OFFER_MS - 1));
        assert!(leases.is_for(mac(2), address(13), OFFER_MS));
        assert!(!leases.is_for(mac(2), address(12), 0) && !leases.is_for(mac(2), address(50), 0));
        assert!(leases.is_for(mac(201), address(50), 0) && !leases.is_for(mac(201), address(10), 0));
    }

    #[test]
    fn an_address_that_was_given_back_can_be_given_again() {
        let mut leases = leases();
        let _ = (1..=3).filter_map(|client| take(&mut leases, client, 0)).count();
        leases.end(address(11));
        assert_eq!(take(&mut leases, 4, 1), Some(address(11)));
        leases.set(address(11), Lease { mac: None, until_ms: DECLINED_MS + 1 });
        assert_eq!(take(&mut leases, 4, 1), None, "somebody else has it");
    }

    proptest! {
        /// No address is leased to two clients at one time, and a client holds one address at most.
        #[test]
        fn no_two_clients_hold_one_address(steps in proptest::collection::vec((1..8_u8, 10..15_u8, 0..4_u8, 0..HOUR_MS), 0..200)) {
            let mut leases = leases();
            let mut now_ms = 0;
            let mut holds: HashMap<u8, (Ipv4Addr, u64)> = HashMap::new();
            for (client, wish, what, ms) in steps {
                match what {
                    0 => now_ms += ms,
                    1 => {
                        if let Some((held, _)) = holds.remove(&client) {
                            leases.end(held);
                        }
                    }
                    _ => {
                        let offered = leases.offer(mac(client), Some(address(wish)), now_ms);
                        holds.retain(|_, (_, until_ms)| *until_ms > now_ms);
                        let Some(offered) = offered else {
                            prop_assert!(leases.running(now_ms) >= 3, "it is not exhausted");
                            continue;
                        };
                        prop_assert!(holds.iter().all(|(other, (held, _))| *other == client || *held != offered));
                        let lease = leases.lease(mac(client), now_ms);
                        leases.set(offered, lease);
                        holds.insert(client, (offered, lease.until_ms));
                    }
                }
            }
        }
    }
}
