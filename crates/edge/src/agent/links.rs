//! The links of an agent: greeting, checking, and signing.
//!
//! In: datagrams, messages to send, and time. Out: datagrams, messages that are genuine, and refusals. It knows no VNIC.

use super::settings::Settings;
use crate::protocol::link::{Link, Opened, Refusal};
use crate::protocol::{self, Message};
use crate::vnic::AgentId;
use std::collections::{BTreeMap, BTreeSet};

/// How often a peer that does not answer is greeted.
const HELLO_INTERVAL_NS: u64 = 100_000_000;

/// … and how often after [`EAGER_HELLOS`] of these.
const PATIENT_INTERVAL_NS: u64 = 2_000_000_000;

/// How many greetings come quickly.
const EAGER_HELLOS: u32 = 20;

/// A genuine message.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) peer: AgentId,
    pub(super) message: Message,
    pub(super) is_new_session: bool,
}

#[derive(Debug)]
pub(super) struct Links {
    links: BTreeMap<AgentId, Greeted>,
    /// Who got a welcome in this interval. A second one must wait, so that old hellos cannot make this agent flood its peer.
    welcomed: BTreeSet<AgentId>,
}

#[derive(Debug)]
struct Greeted {
    link: Link,
    hellos: u32,
    next_ns: u64,
}

impl Links {
    pub(super) fn new(settings: &Settings) -> Self {
        let link = |peer: &super::settings::Peer| Greeted {
            link: Link::new(settings.me, peer.agent, peer.key.clone(), settings.session),
            hellos: 0,
            next_ns: 0,
        };
        let links = settings.peers.iter().map(|peer| (peer.agent, link(peer))).collect();
        Links { links, welcomed: BTreeSet::new() }
    }

    /// An interval has ended: greets peers that are not up.
    pub(super) fn greet(&mut self, now_ns: u64, out: &mut Vec<(AgentId, Vec<u8>)>) {
        self.welcomed.clear();
        for (peer, greeted) in &mut self.links {
            if greeted.link.is_up() || now_ns < greeted.next_ns {
                continue;
            }
            out.push((*peer, greeted.link.hello()));
            greeted.hellos = greeted.hellos.saturating_add(1);
            let pause = if greeted.hellos < EAGER_HELLOS { HELLO_INTERVAL_NS } else { PATIENT_INTERVAL_NS };
            greeted.next_ns = now_ns.saturating_add(pause);
        }
    }

    /// A datagram has come.
    pub(super) fn open(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<(AgentId, Vec<u8>)>,
    ) -> Result<Option<Heard>, Refusal> {
        let from = protocol::read(bytes).map_err(Refusal::Malformed)?.header.from;
        let link = &mut self.links.get_mut(&from).ok_or(Refusal::Stranger(from))?.link;
        match link.open(bytes)? {
            Opened::Hello { session } => {
                if self.welcomed.insert(from) {
                    out.push((from, link.welcome(session)));
                }
                Ok(None)
            }
            Opened::Message { message, is_new_session } => {
                Ok(Some(Heard { peer: from, message, is_new_session }))
            }
        }
    }

    /// Sends a message, if the peer is up.
    pub(super) fn send(&mut self, to: AgentId, message: &Message, out: &mut Vec<(AgentId, Vec<u8>)>) {
        let sealed = self.links.get_mut(&to).and_then(|greeted| greeted.link.seal(message));
        out.extend(sealed.map(|bytes| (to, bytes)));
    }

    pub(super) fn knows(&self, agent: AgentId) -> bool {
        self.links.contains_key(&agent)
    }
}
