//! What must hold for datagrams of agents and for counters of nftables. The fuzz target calls it with what it finds, and a test of the edge
//! crate with what was kept (`corpus/edge_datagram`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use edge::agent::{Agent, Commands, Event, Peer, Settings};
use edge::linux::parse_counters;
use edge::meter::FLOWS_MAX;
use edge::protocol::{Key, read, write};
use edge::shaper::CHANGES_MAX;
use edge::vnic::{AgentId, Directory};

/// The key of both agents.
pub fn key() -> Key {
    Key([7; 32])
}

/// A datagram: what is read is written as the same bytes, but for the signature. An agent that gets it, signed or not, answers within bounds.
pub fn edge_datagram(bytes: &[u8]) {
    if let Ok(envelope) = read(bytes) {
        let written = write(&envelope.header, &envelope.message, &key());
        let signed = bytes.len() - 16;
        assert_eq!(written[..signed], bytes[..signed]);
        hear(&written);
    }
    hear(bytes);
    let mut counters = Vec::new();
    parse_counters(bytes, &mut counters);
    assert!(counters.len() <= FLOWS_MAX);
    counters.iter().for_each(|counter| assert!(counter.frame_bytes() >= counter.bytes));
}

/// Agent 2 gets a datagram, twice.
fn hear(bytes: &[u8]) {
    let mut settings = Settings::for_nic(AgentId(2), 10_000_000, 0xb);
    settings.service = Some(AgentId(1));
    settings.peers = vec![Peer { agent: AgentId(1), key: key() }];
    let mut agent = Agent::new(0, settings, Directory::default()).expect("settings that are right");
    for _ in 0..2 {
        let mut out = Commands::default();
        agent.on_event(1, Event::Datagram(bytes), &mut out);
        assert!(out.datagrams.len() <= 65 && out.refusals.len() <= 8 && out.changes.len() <= CHANGES_MAX);
    }
    assert!(agent.counts().refused <= 2 * 75, "{:?}", agent.counts());
}
