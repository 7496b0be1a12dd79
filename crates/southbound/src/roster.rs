//! Which switches are up, on all workers: one session for a datapath id, and how many connections there may be.
//!
//! Workers share it. It is locked when a connection comes or goes, when a switch comes up, goes or changes its ports, when the operator
//! asks, and when an app commands a switch that another worker has, to learn which. Never for a packet of a worker's own switches. Never holds a
//! connection.

use abi::event::PortRecord;
use flow::DatapathId;
use openflow::Version;
use openflow::message::SwitchDesc;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A switch that is up.
#[derive(Clone, Debug)]
pub struct SwitchRecord {
    /// Which.
    pub datapath: DatapathId,
    /// The worker that holds its session.
    pub worker: usize,
    /// Where it connected from.
    pub peer: SocketAddr,
    /// Whether by TLS.
    pub tls: bool,
    /// The version that was agreed on.
    pub version: Version,
    /// How many tables it has.
    pub n_tables: u8,
    /// How many packets it can keep.
    pub n_buffers: u32,
    /// What it says that it is, if it did.
    pub desc: Option<SwitchDesc>,
    /// Its ports, by number.
    pub ports: Vec<PortRecord>,
    /// When it came up, by the workers' clock.
    pub since_ms: u64,
}

/// Why a connection is closed as soon as it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// So many connections are open, which is the cap.
    Connections(usize),
    /// So many connections from this address have not finished their handshake, which is the cap.
    HalfOpen(usize),
}

/// The session that already has a datapath id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where that session connected from.
    pub by: SocketAddr,
    /// When it came up.
    pub since_ms: u64,
}

/// All switches that are up, and all connections counted.
#[derive(Debug)]
pub struct Roster {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    switches: HashMap<DatapathId, SwitchRecord>,
    connections: usize,
    max_connections: usize,
    max_half_open_per_address: usize,
    /// No larger than `connections`.
    half_open: HashMap<IpAddr, usize>,
}

impl Roster {
    /// Nobody is here yet. The caps are the configuration's.
    pub fn new(max_connections: usize, max_half_open_per_address: usize) -> Self {
        let inner = Inner { max_connections, max_half_open_per_address, ..Inner::default() };
        Roster { inner: Mutex::new(inner) }
    }

    /// Other caps, for connections from now on. Those that are there stay, however many.
    pub fn limit(&self, max_connections: usize, max_half_open_per_address: usize) {
        let mut inner = self.lock();
        (inner.max_connections, inner.max_half_open_per_address) =
            (max_connections, max_half_open_per_address);
    }

    /// A connection was accepted: counts it, as half-open.
    ///
    /// # Errors
    /// That there is no room for it; it is not counted then.
    pub fn connect(&self, address: IpAddr) -> Result<(), NoRoom> {
        let mut inner = self.lock();
        if inner.connections >= inner.max_connections {
            return Err(NoRoom::Connections(inner.max_connections));
        }
        let half_open = inner.half_open.get(&address).copied().unwrap_or(0);
        if half_open >= inner.max_half_open_per_address {
            return Err(NoRoom::HalfOpen(inner.max_half_open_per_address));
        }
        inner.half_open.insert(address, half_open + 1);
        inner.connections += 1;
        Ok(())
    }

    /// A connection is closed; `half_open` if its handshake never ended.
    pub fn disconnect(&self, address: IpAddr, half_open: bool) {
        let mut inner = self.lock();
        inner.connections = inner.connections.saturating_sub(1);
        if half_open {
            inner.finish_handshake(address);
        }
    }

    /// A switch has finished its handshake and comes up.
    ///
    /// # Errors
    /// The first session with its datapath id, which lives on.
    pub fn join(&self, record: SwitchRecord) -> Result<(), Taken> {
        let mut inner = self.lock();
        if let Some(first) = inner.switches.get(&record.datapath) {
            return Err(Taken { by: first.peer, since_ms: first.since_ms });
        }
        inner.finish_handshake(record.peer.ip());
        inner.switches.insert(record.datapath, record);
        Ok(())
    }

    /// A switch that was up is gone.
    pub fn leave(&self, datapath: DatapathId) {
        self.lock().switches.remove(&datapath);
    }

    /// A switch that is up has other ports now, or said what it is.
    pub fn update(&self, datapath: DatapathId, ports: Vec<PortRecord>, desc: Option<SwitchDesc>) {
        if let Some(record) = self.lock().switches.get_mut(&datapath) {
            record.ports = ports;
            record.desc = desc;
        }
    }

    /// The worker that holds a switch's session.
    pub fn worker_of(&self, datapath: DatapathId) -> Option<usize> {
        self.lock().switches.get(&datapath).map(|record| record.worker)
    }

    /// Every switch that is up, by datapath id.
    pub fn switches(&self) -> Vec<SwitchRecord> {
        let mut switches: Vec<_> = self.lock().switches.values().cloned().collect();
        switches.sort_by_key(|record| record.datapath);
        switches
    }

    /// Connections that are open, switches that are not up yet included.
    pub fn connections(&self) -> usize {
        self.lock().connections
    }

    /// Each change below is whole before anything can panic, so a poisoned lock guards nothing broken.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn finish_handshake(&mut self, address: IpAddr) {
        if let Some(count) = self.half_open.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.half_open.remove(&address);
            }
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Connections(cap) => write!(f, "{cap} connections are open, which is max_connections"),
            NoRoom::HalfOpen(cap) => write!(
                f,
                "{cap} connections from this address have not finished their handshake, which is max_half_open_per_address"
            ),
        }
    }
}

impl std::error::Error for NoRoom {}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the datapath id is in use by the session with {}", self.by)
    }
}

impl std::error::Error for Taken {}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn record(datapath: u64, port: u16) -> SwitchRecord {
        SwitchRecord {
            datapath: DatapathId(datapath),
            worker: 0,
            peer: peer(port),
            tls: false,
            version: Version::V1_3,
            n_tables: 254,
            n_buffers: 0,
            desc: None,
            ports: Vec::new(),
            since_ms: 5,
        }
    }

    #[test]
    fn a_second_session_with_the_same_id_is_refused_and_the_first_lives_on() {
        let roster = Roster::new(10, 10);
        roster.join(record(1, 1000)).unwrap();
        assert_eq!(roster.join(record(1, 2000)), Err(Taken { by: peer(1000), since_ms: 5 }));
        assert_eq!(roster.switches().len(), 1);
        roster.leave(DatapathId(1));
        assert_eq!(roster.join(record(1, 2000)), Ok(()));
    }

    #[test]
    fn connections_are_capped() {
        let roster = Roster::new(2, 10);
        let address = peer(0).ip();
        assert_eq!(roster.connect(address), Ok(()));
        assert_eq!(roster.connect(address), Ok(()));
        assert_eq!(roster.connect(address), Err(NoRoom::Connections(2)));
        roster.disconnect(address, true);
        assert_eq!(roster.connect(address), Ok(()));
    }

    #[test]
    fn half_open_connections_of_one_address_are_capped() {
        let roster = Roster::new(10, 1);
        let other = IpAddr::from([127, 0, 0, 2]);
        assert_eq!(roster.connect(peer(0).ip()), Ok(()));
        assert_eq!(roster.connect(peer(0).ip()), Err(NoRoom::HalfOpen(1)));
        assert_eq!(roster.connect(other), Ok(()));
        roster.join(record(1, 1000)).unwrap();
        assert_eq!(roster.connect(peer(0).ip()), Ok(()));
    }
}
