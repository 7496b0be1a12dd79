//! What an agent is told at its start.
//!
//! Plain values, and the defaults that follow from the rate of a NIC.

use crate::protocol::Key;
use crate::vnic::{AgentId, RATE_MAX_BPS};
use std::fmt;

/// The part of a NIC that receivers leave free, in thousandths. Without it, a full link would hide that more is sent.
pub const HEADROOM_PERMILLE: u64 = 20;

/// The shortest interval, for 10 Gb/s and more: as EyeQ has it.
pub const INTERVAL_MIN_NS: u64 = 200_000;

/// The longest interval, for 10 Mb/s and less: three of them must pass in 200 ms.
pub const INTERVAL_MAX_NS: u64 = 40_000_000;

/// How many of the largest frames an interval has at full rate. One frame more or less is then an error of 3 %.
const FRAMES_PER_INTERVAL: u64 = 33;

/// The bits of the largest frame.
const FRAME_BITS: u64 = 1514 * 8;

/// The most peers of an agent. Each takes a few hundred bytes, and a greeting at the start.
pub const PEERS_MAX: usize = 4096;

/// Another agent, or the label service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number.
    pub agent: AgentId,
    /// The key of the link with it.
    pub key: Key,
}

/// The settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its number.
    pub me: AgentId,
    /// The label service, which is a peer too.
    pub service: Option<AgentId>,
    /// The rate of the NIC, in each direction.
    pub nic_bps: u64,
    /// The part of the NIC that stays free, in thousandths.
    pub headroom_permille: u64,
    /// The time between two readings of the meter.
    pub interval_ns: u64,
    /// A random number of this start, not 0.
    pub session: u64,
    /// With whom it speaks.
    pub peers: Vec<Peer>,
}

/// Why settings are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSettings {
    /// The rate of the NIC is 0 or too high.
    Nic(u64),
    /// More than half of the NIC would stay free.
    Headroom(u64),
    /// The interval is shorter than 10 µs or longer than a second.
    Interval(u64),
    /// More than [`PEERS_MAX`].
    Peers(usize),
    /// A peer is there twice, or is this agent.
    Peer(AgentId),
    /// The label service is no peer.
    Service(AgentId),
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSettings::Nic(rate) => {
                write!(f, "a NIC of {rate} b/s is not possible; it must be from 1 to {RATE_MAX_BPS}")
            }
            BadSettings::Headroom(part) => {
                write!(f, "a headroom of {part} thousandths is not possible; at most 500 are")
            }
            BadSettings::Interval(ns) => {
                write!(f, "an interval of {ns} ns is not possible; it must be from 10 us to 1 s")
            }
            BadSettings::Peers(count) => write!(f, "{count} peers; at most {PEERS_MAX} are possible"),
            BadSettings::Peer(agent) => write!(f, "{agent} is a peer twice, or is this agent itself"),
            BadSettings::Service(agent) => {
                write!(f, "the label service, {agent}, has no key: add it to the peers")
            }
        }
    }
}

impl std::error::Error for BadSettings {}

impl Settings {
    /// The settings for a NIC, with defaults, and without peers.
    pub fn for_nic(me: AgentId, nic_bps: u64, session: u64) -> Self {
        Settings {
            me,
            service: None,
            nic_bps,
            headroom_permille: HEADROOM_PERMILLE,
            interval_ns: interval_for(nic_bps),
            session,
            peers: Vec::new(),
        }
    }

    /// What a receiver may get of the NIC.
    pub(super) fn capacity_bps(&self) -> u64 {
        self.nic_bps / 1000 * (1000 - self.headroom_permille) + self.nic_bps % 1000
    }

    pub(super) fn check(&self) -> Result<(), BadSettings> {
        if !(1..=RATE_MAX_BPS).contains(&self.nic_bps) {
            return Err(BadSettings::Nic(self.nic_bps));
        }
        if self.headroom_permille > 500 {
            return Err(BadSettings::Headroom(self.headroom_permille));
        }
        if !(10_000..=1_000_000_000).contains(&self.interval_ns) {
            return Err(BadSettings::Interval(self.interval_ns));
        }
        if self.peers.len() > PEERS_MAX {
            return Err(BadSettings::Peers(self.peers.len()));
        }
        let mut agents: Vec<AgentId> = self.peers.iter().map(|peer| peer.agent).collect();
        agents.push(self.me);
        agents.sort_unstable();
        if let Some(pair) = agents.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BadSettings::Peer(pair[0]));
        }
        match self.service.filter(|service| agents.binary_search(service).is_err() || *service == self.me) {
            Some(service) => Err(BadSettings::Service(service)),
            None => Ok(()),
        }
    }
}

/// The interval for the rate of a NIC: long enough that single frames do not matter.
pub fn interval_for(nic_bps: u64) -> u64 {
    let frames_ns = FRAMES_PER_INTERVAL * FRAME_BITS * 1_000_000_000 / nic_bps.max(1);
    frames_ns.clamp(INTERVAL_MIN_NS, INTERVAL_MAX_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_refused_with_the_value() {
        let good = Settings::for_nic(AgentId(1), 10_000_000, 1);
        let check = |settings: Settings, expected: &str| {
            assert_eq!(settings.check().unwrap_err().to_string(), expected);
        };
        let peer = |id| Peer { agent: AgentId(id), key: Key([0; 32]) };
        check(
            Settings { nic_bps: 0, ..good.clone() },
            "a NIC of 0 b/s is not possible; it must be from 1 to 1000000000000",
        );
        check(
            Settings { headroom_permille: 501, ..good.clone() },
            "a headroom of 501 thousandths is not possible; at most 500 are",
        );
        check(
            Settings { interval_ns: 9, ..good.clone() },
            "an interval of 9 ns is not possible; it must be from 10 us to 1 s",
        );
        check(
            Settings { peers: vec![peer(2), peer(2)], ..good.clone() },
            "agent 2 is a peer twice, or is this agent itself",
        );
        check(
            Settings { peers: vec![peer(1)], ..good.clone() },
            "agent 1 is a peer twice, or is this agent itself",
        );
        check(
            Settings { service: Some(AgentId(9)), ..good.clone() },
            "the label service, agent 9, has no key: add it to the peers",
        );
        assert_eq!(good.check(), Ok(()));
    }

    #[test]
    fn the_interval_follows_the_rate() {
        let ms = |nic_bps| interval_for(nic_bps) as f64 / 1e6;
        assert_eq!([ms(10_000_000), ms(100_000_000), ms(10_000_000_000)], [39.9696, 3.99696, 0.2]);
    }
}
