//! The leases in the store: loaded at the start, written before a client learns of them.
//!
//! In: answers of the store. Out: calls to it, and what they brought. It knows no pool.

use crate::leases::Lease;
use burnet_sdk::store::{keys, status};
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// How the keys begin. The rest is the address.
const PREFIX: &str = "dhcp/";

/// Values that are read at one time: a part of the calls that an app may have open.
const READS_MAX: usize = 32;

/// How often the store is asked again, a second apart, if it is not there. It may start later than this app.
const ATTEMPTS: u32 = 10;

/// The loading of the leases.
#[derive(Debug, Default)]
pub struct Loading {
    list: Option<Ticket>,
    reading: HashMap<Ticket, Ipv4Addr>,
    to_read: VecDeque<Ipv4Addr>,
    after: Option<String>,
    is_retry: bool,
    failures: u32,
    has_ended: bool,
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

impl Loading {
    /// Begins, or goes on behind the last key.
    pub fn start(&mut self, out: &mut Commands) {
        self.is_retry = false;
        self.list = Some(out.store_list(PREFIX, self.after.as_deref().unwrap_or_default()));
    }

    /// Whether all leases are there, or none can be.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// A second has passed.
    pub fn on_tick(&mut self, out: &mut Commands) {
        if self.is_retry {
            self.start(out);
        }
    }

    /// An answer.
    pub fn hear(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> Loaded {
        let ticket = Ticket(reply.ticket);
        if self.list.take_if(|list| *list == ticket).is_some() {
            return self.hear_list(reply, out);
        }
        let Some(address) = self.reading.remove(&ticket) else { return Loaded::NotMine };
        match reply.status {
            status::DONE | status::NOT_FOUND => self.go_on(out),
            _ => return self.fail(reply),
        }
        let lease = serde_json::from_slice(reply.payload).ok().filter(|_| reply.status == status::DONE);
        lease.map_or(Loaded::Nothing, |lease| Loaded::Lease(address, lease))
    }

    /// The kernel refused a call: the app has no grant for the store.
    pub fn refused(&mut self, ticket: Ticket, reason: &str) -> Loaded {
        match self.list == Some(ticket) || self.reading.contains_key(&ticket) {
            true => self.end(reason),
            false => Loaded::NotMine,
        }
    }

    fn hear_list(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> Loaded {
        if !matches!(reply.status, status::DONE | status::MORE_KEYS) {
            return self.fail(reply);
        }
        let listed: Vec<&str> = keys(reply.payload).collect();
        let addresses = listed.iter().filter_map(|key| key.strip_prefix(PREFIX)?.parse::<Ipv4Addr>().ok());
        self.to_read.extend(addresses);
        self.after = listed.last().map(|key| (*key).to_owned()).filter(|_| reply.status == status::MORE_KEYS);
        self.go_on(out);
        Loaded::Nothing
    }

    fn go_on(&mut self, out: &mut Commands) {
        while self.reading.len() < READS_MAX
            && let Some(address) = self.to_read.pop_front()
        {
            self.reading.insert(out.store_get(&key_of(address)), address);
        }
        if self.reading.is_empty() {
            match self.after {
                Some(_) => self.start(out),
                None => self.has_ended = true,
            }
        }
    }

    fn fail(&mut self, reply: &QueryReply<'_>) -> Loaded {
        let failures = self.failures + 1;
        if failures < ATTEMPTS {
            *self = Loading { is_retry: true, failures, ..Loading::default() };
            return Loaded::Nothing;
        }
        self.end(&why(reply))
    }

    fn end(&mut self, reason: &str) -> Loaded {
        *self = Loading { has_ended: true, ..Loading::default() };
        Loaded::NoStore(reason.to_owned())
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

/// Why the store did not do it.
pub fn why(reply: &QueryReply<'_>) -> String {
    let known = match reply.status {
        status::STORE_FULL => "the store is full",
        status::FAILED => "the store's disk failed; the node's log says why",
        query_status::NO_SUCH_SERVICE => "this node has no store",
        _ => "the store did not answer",
    };
    match String::from_utf8_lossy(reply.payload) {
        reason if reason.is_empty() => known.to_owned(),
        reason => format!("{known}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(ticket: Ticket, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket: ticket.0, status, more: false, payload }
    }

    #[test]
    fn a_store_that_never_comes_is_given_up_with_the_reason() {
        let (mut loading, mut out) = (Loading::default(), Commands::new());
        loading.start(&mut out);
        for attempt in 1..=ATTEMPTS {
            let ticket = loading.list.unwrap();
            let heard = loading.hear(&reply(ticket, query_status::NO_SUCH_SERVICE, b""), &mut out);
            let last = attempt == ATTEMPTS;
            assert_eq!(heard == Loaded::NoStore("this node has no store".to_owned()), last);
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
        let ticket = loading.list.unwrap();
        assert_eq!(loading.hear(&reply(ticket, status::DONE, &list), &mut out), Loaded::Nothing);
        let lease = Lease { mac: Some(burnet_sdk::MacAddr([0, 0, 0, 0, 0, 7])), until_ms: 5 };
        let mut tickets: Vec<_> =
            loading.reading.iter().map(|(ticket, address)| (*address, *ticket)).collect();
        tickets.sort_unstable();
        let heard = loading.hear(&reply(tickets[0].1, status::DONE, &value_of(&lease)), &mut out);
        assert_eq!(heard, Loaded::Lease(Ipv4Addr::new(10, 0, 0, 7), lease));
        assert!(!loading.has_ended());
        assert_eq!(loading.hear(&reply(tickets[1].1, status::DONE, b"{"), &mut out), Loaded::Nothing);
        assert!(loading.has_ended());
    }
}
