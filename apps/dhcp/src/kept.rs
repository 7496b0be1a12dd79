//! The leases in the store: loaded at the start, written before a client learns of them.
//!
//! In: answers of the store. Out: calls to it, and what they brought. It knows no pool.

use crate::leases::Lease;
use burnet_sdk::{Commands, QueryReply, StoreLoader, Ticket};
use std::net::Ipv4Addr;

/// How the keys begin. The rest is the address.
const PREFIX: &str = "dhcp/";

/// How often the store is asked, a second apart, if it is not there. It may start later than this app.
const ATTEMPTS: u32 = 10;

/// The loading of the leases.
#[derive(Debug)]
pub struct Loading {
    loader: StoreLoader,
    is_retry: bool,
    failures: u32,
    has_given_up: bool,
}

/// What an answer of the store means for the loading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The answer is to another call.
    NotMine,
    /// Nothing yet.
    Nothing,
    /// A lease.
    Lease(Ipv4Addr, Lease),
    /// This node keeps no leases, for this reason.
    NoStore(String),
}

impl Default for Loading {
    fn default() -> Loading {
        Loading { loader: StoreLoader::new(PREFIX), is_retry: false, failures: 0, has_given_up: false }
    }
}

impl Loading {
    /// Begins at the first key.
    pub fn start(&mut self, out: &mut Commands) {
        self.is_retry = false;
        self.loader.start(out);
    }

    /// Whether all leases are there, or none can be.
    pub fn has_ended(&self) -> bool {
        self.has_given_up || self.loader.is_complete()
    }

    /// A second has passed.
    pub fn on_tick(&mut self, out: &mut Commands) {
        if self.is_retry {
            self.start(out);
        }
    }

    /// An answer.
    pub fn hear(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> Loaded {
        match self.loader.on_reply(reply, out) {
            burnet_sdk::Loaded::NotMine => Loaded::NotMine,
            burnet_sdk::Loaded::Nothing => Loaded::Nothing,
            burnet_sdk::Loaded::Value(key, value) => {
                let address = key.strip_prefix(PREFIX).and_then(|address| address.parse().ok());
                let lease = address.zip(serde_json::from_slice(value).ok());
                lease.map_or(Loaded::Nothing, |(address, lease)| Loaded::Lease(address, lease))
            }
            burnet_sdk::Loaded::Failed(why) => self.fail(&why),
        }
    }

    /// The kernel refused a call: the app has no grant for the store. Then it does not try again.
    pub fn refused(&mut self, ticket: Ticket, reason: &str) -> Loaded {
        match self.loader.on_refusal(ticket, reason) {
            burnet_sdk::Loaded::Failed(why) => self.give_up(&why),
            _ => Loaded::NotMine,
        }
    }

    fn fail(&mut self, why: &str) -> Loaded {
        self.failures += 1;
        if self.failures < ATTEMPTS {
            self.is_retry = true;
            return Loaded::Nothing;
        }
        self.give_up(why)
    }

    fn give_up(&mut self, why: &str) -> Loaded {
        self.has_given_up = true;
        Loaded::NoStore(why.to_owned())
    }
}

/// The key of an address.
pub fn key_of(address: Ipv4Addr) -> String {
    format!("{PREFIX}{address}")
}

/// The value of a lease.
pub fn value_of(lease: &Lease) -> Vec<u8> {
    // Plain data can always be written as JSON.
    serde_json::to_vec(lease).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::query_status;
    use burnet_sdk::store::status;

    fn reply(ticket: u64, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket, status, more: false, payload }
    }

    /// Gives this answer to the call that is under way, whatever its ticket.
    fn answer(loading: &mut Loading, out: &mut Commands, status: u16, payload: &[u8]) -> Loaded {
        // Tickets count up from the first one.
        let first = Commands::new().store_get("first").0;
        let mut heard = (first..first + 100).map(|ticket| loading.hear(&reply(ticket, status, payload), out));
        heard.find(|heard| *heard != Loaded::NotMine).unwrap()
    }

    #[test]
    fn a_store_that_never_comes_is_given_up_with_the_reason() {
        let (mut loading, mut out) = (Loading::default(), Commands::new());
        loading.start(&mut out);
        for attempt in 1..=ATTEMPTS {
            let heard = answer(&mut loading, &mut out, query_status::NO_SUCH_SERVICE, b"");
            let last = attempt == ATTEMPTS;
            assert_eq!(matches!(heard, Loaded::NoStore(_)), last, "{heard:?}");
            assert_eq!(loading.has_ended(), last);
            loading.on_tick(&mut out);
        }
    }

    #[test]
    fn leases_are_loaded_and_damaged_ones_are_left_out() {
        let (mut loading, mut out) = (Loading::default(), Commands::new());
        loading.start(&mut out);
        let list =
            [[13, 0].as_slice(), b"dhcp/10.0.0.7", &[13, 0], b"dhcp/10.0.0.8", &[6, 0], b"dhcp/x"].concat();
        assert_eq!(answer(&mut loading, &mut out, status::DONE, &list), Loaded::Nothing);
        let lease = Lease { mac: Some(burnet_sdk::MacAddr([0, 0, 0, 0, 0, 7])), until_ms: 5 };
        let heard = answer(&mut loading, &mut out, status::DONE, &value_of(&lease));
        assert!(matches!(heard, Loaded::Lease(_, same) if same == lease), "{heard:?}");
        assert!(!loading.has_ended());
        assert_eq!(answer(&mut loading, &mut out, status::DONE, b"{"), Loaded::Nothing);
        assert_eq!(answer(&mut loading, &mut out, status::DONE, b"{"), Loaded::Nothing);
        assert!(loading.has_ended());
    }
}
