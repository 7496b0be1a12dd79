//! The switches that are up on all workers. It allows one session for each datapath id, and limits the number of
//! connections.
//!
//! If a connection claims an id that another session has, the claim waits while that session is probed
//! ([`crate::probe`]).
//!
//! Workers share it. It is locked when a connection opens or closes, and when a switch goes up, goes down or changes
//! its ports. It is also locked when the operator asks, and when an app commands a switch of another worker. It is
//! never locked for a packet of a worker's own switches. It holds no connection.

use crate::binding::{Binding, Bindings, Bound, NotBound, Table};
use crate::certificate::{Certificate, Fingerprint};
use crate::occupancy::{ConnectionCaps, NoRoom, Occupancy};
use crate::origin::Origin;
use crate::probe::{Probe, Verdict};
use abi::event::PortRecord;
use flow::DatapathId;
use openflow::Version;
use openflow::message::SwitchDesc;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A switch that is up.
#[derive(Clone, Debug)]
pub struct SwitchRecord {
    /// The datapath id.
    pub datapath: DatapathId,
    /// The worker that holds its session.
    pub worker: usize,
    /// The address that it connected from.
    pub peer: SocketAddr,
    /// Whether it uses TLS.
    pub tls: bool,
    /// The OpenFlow version of the session.
    pub version: Version,
    /// The number of its flow tables.
    pub n_tables: u8,
    /// How many packets it can buffer.
    pub n_buffers: u32,
    /// Its description, if it sent one.
    pub desc: Option<SwitchDesc>,
    /// Its ports, sorted by number.
    pub ports: Vec<PortRecord>,
    /// When it went up, by the workers' clock in milliseconds.
    pub since_ms: u64,
}

/// The session that already has a claimed datapath id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The address that it connected from.
    pub by: SocketAddr,
    /// When it went up, in milliseconds.
    pub since_ms: u64,
}

/// All switches that are up, and the counts of all connections.
#[derive(Debug)]
pub struct Roster {
    inner: Mutex<Inner>,
    /// Increases with each change that a claim may wait for. So a worker can check without the lock.
    stirred: AtomicU64,
    /// Increases with each change of the pins, for the code that stores them.
    pinned: AtomicU64,
}

/// The present result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// No session has the id.
    Free,
    /// Another session has the id and is being probed. The claim waits.
    Waits,
    /// Another session has the id and is alive.
    Taken(Taken),
    /// The id is bound to another certificate.
    NotBound(NotBound),
}

#[derive(Debug)]
struct Inner {
    switches: HashMap<DatapathId, Holder>,
    occupancy: Occupancy,
    bindings: Bindings,
    /// Switches to probe, with their workers. Each is in the list at most once.
    challenged: Vec<(usize, DatapathId)>,
}

/// The session that has a datapath id.
#[derive(Debug)]
struct Holder {
    record: SwitchRecord,
    probe: Probe,
}

impl Roster {
    /// Starts without switches. The limits come from the configuration.
    pub fn new(caps: ConnectionCaps) -> Self {
        let inner = Inner {
            switches: HashMap::new(),
            occupancy: Occupancy::new(caps),
            bindings: Bindings::default(),
            challenged: Vec::new(),
        };
        Roster { inner: Mutex::new(inner), stirred: AtomicU64::new(0), pinned: AtomicU64::new(0) }
    }

    /// Sets other limits for new connections. Existing connections stay, even above the limits.
    pub fn limit(&self, caps: ConnectionCaps) {
        self.lock().occupancy.limit(caps);
    }

    /// Counts an accepted connection, as one with an unfinished handshake.
    ///
    /// # Errors
    /// There is no room for it. It is not counted.
    pub fn connect(&self, address: IpAddr) -> Result<(), NoRoom> {
        self.lock().occupancy.connect(Origin::of(address))
    }

    /// The handshake of a connection ended without a switch going up.
    pub fn finish_handshake(&self, address: IpAddr) {
        self.lock().occupancy.finish_handshake(Origin::of(address));
    }

    /// A connection closed whose handshake was finished.
    pub fn disconnect(&self, address: IpAddr) {
        self.lock().occupancy.disconnect(Origin::of(address));
    }

    /// Sets how ids are bound to certificates, for new sessions.
    pub fn bind(&self, binding: Binding, table: Table) {
        self.lock().bindings.set(binding, table);
    }

    /// Restores the pins of an earlier run.
    pub fn restore_pins(&self, pins: &[(DatapathId, Fingerprint)]) {
        let mut inner = self.lock();
        pins.iter().for_each(|(datapath, print)| inner.bindings.pin(*datapath, *print));
    }

    /// All pins, sorted by datapath id.
    pub fn pins(&self) -> Vec<(DatapathId, Fingerprint)> {
        self.lock().bindings.pins()
    }

    /// A number that changes when a pin is made, changed or deleted. It needs no lock.
    pub fn pinned(&self) -> u64 {
        self.pinned.load(Ordering::Acquire)
    }

    /// Deletes the pin of an id, and returns it. The next certificate that is used for the id is pinned.
    pub fn forget_pin(&self, datapath: DatapathId) -> Option<Fingerprint> {
        let forgotten = self.lock().bindings.forget(datapath);
        self.pinned.fetch_add(u64::from(forgotten.is_some()), Ordering::Release);
        forgotten
    }

    /// A switch that has finished its handshake claims its id since `claimed_ms`, with this certificate. If the claim
    /// is valid and another session has the id, that session is probed. The claim is repeated when
    /// [`Roster::stirred`] has changed or time has passed.
    pub fn claim(
        &self,
        datapath: DatapathId,
        shown: Option<&Certificate>,
        claimed_ms: u64,
        now_ms: u64,
    ) -> Claim {
        let mut inner = self.lock();
        let Inner { switches, challenged, bindings, .. } = &mut *inner;
        // An invalid claim must not cause a probe.
        if let Err(not_bound) = bindings.judge(datapath, shown) {
            return Claim::NotBound(not_bound);
        }
        let Some(holder) = switches.get_mut(&datapath) else { return Claim::Free };
        match holder.probe.on_claim(claimed_ms, now_ms) {
            Verdict::Lives => return Claim::Taken(holder.taken()),
            Verdict::Wait => {}
            Verdict::Ask => {
                challenged.push((holder.record.worker, datapath));
                self.stir();
            }
        }
        Claim::Waits
    }

    /// The switches of a worker that must be probed now.
    pub fn take_challenged(&self, worker: usize) -> Vec<DatapathId> {
        let mut inner = self.lock();
        inner.challenged.extract_if(.., |(of, _)| *of == worker).map(|(_, datapath)| datapath).collect()
    }

    /// A probed switch has sent a message.
    pub fn prove(&self, datapath: DatapathId, now_ms: u64) {
        if let Some(holder) = self.lock().switches.get_mut(&datapath) {
            holder.probe.on_answer(now_ms);
        }
        self.stir();
    }

    /// A number that changes when a claim may be decided or a switch must be probed. It needs no lock.
    pub fn stirred(&self) -> u64 {
        self.stirred.load(Ordering::Acquire)
    }

    fn stir(&self) {
        self.stirred.fetch_add(1, Ordering::Release);
    }

    /// A switch with a valid claim goes up. Its id is pinned to its certificate, unless another rule binds it.
    /// Returns what binds it.
    ///
    /// `None` if another connection was faster, with its session or its pin. Then the switch must claim again.
    pub fn join(&self, record: SwitchRecord, shown: Option<&Certificate>) -> Option<Bound> {
        let mut inner = self.lock();
        let datapath = record.datapath;
        let bound = inner.bindings.judge(datapath, shown).ok()?;
        if inner.switches.contains_key(&datapath) {
            return None;
        }
        let is_new = inner.bindings.note(datapath, shown, bound);
        self.pinned.fetch_add(u64::from(is_new), Ordering::Release);
        inner.occupancy.finish_handshake(Origin::of(record.peer.ip()));
        inner.switches.insert(datapath, Holder { record, probe: Probe::default() });
        Some(bound)
    }

    /// A switch is down.
    pub fn leave(&self, datapath: DatapathId) {
        let mut inner = self.lock();
        inner.switches.remove(&datapath);
        inner.challenged.retain(|(_, challenged)| *challenged != datapath);
        drop(inner);
        self.stir();
    }

    /// A switch that is up has changed its ports, or sent its description.
    pub fn update(&self, datapath: DatapathId, ports: Vec<PortRecord>, desc: Option<SwitchDesc>) {
        if let Some(Holder { record, .. }) = self.lock().switches.get_mut(&datapath) {
            record.ports = ports;
            record.desc = desc;
        }
    }

    /// The worker that has a switch's session.
    pub fn worker_of(&self, datapath: DatapathId) -> Option<usize> {
        self.lock().switches.get(&datapath).map(|holder| holder.record.worker)
    }

    /// Every switch that is up, sorted by datapath id.
    pub fn switches(&self) -> Vec<SwitchRecord> {
        let mut switches: Vec<_> =
            self.lock().switches.values().map(|holder| holder.record.clone()).collect();
        switches.sort_by_key(|record| record.datapath);
        switches
    }

    /// Open connections, including those of switches that are not up yet.
    pub fn connections(&self) -> usize {
        self.lock().occupancy.connections()
    }

    /// Each change below is complete before anything can panic, so the data behind a poisoned lock is consistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    fn taken(&self) -> Taken {
        Taken { by: self.record.peer, since_ms: self.record.since_ms }
    }
}

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

    fn roster() -> Roster {
        Roster::new(ConnectionCaps { all: 10, per_address: 10, half_open_per_address: 10 })
    }

    #[test]
    fn a_second_session_with_the_same_id_does_not_come_up_while_the_first_is() {
        let roster = roster();
        assert_eq!(roster.join(record(1, 1000), None), Some(Bound::Free));
        assert_eq!(roster.join(record(1, 2000), None), None);
        assert_eq!(roster.switches().len(), 1);
        roster.leave(DatapathId(1));
        assert_eq!(roster.join(record(1, 2000), None), Some(Bound::Free));
    }

    #[test]
    fn who_may_not_have_an_id_has_nobody_asked_for_it() {
        let roster = roster();
        let certificate =
            |text: &str| Certificate { fingerprint: Fingerprint::of(text.as_bytes()), names: Vec::new() };
        let (mine, other) = (certificate("mine"), certificate("other"));
        roster.bind(Binding::Pin, Table::default());
        let before = roster.pinned();
        assert_eq!(roster.join(record(1, 1000), Some(&mine)), Some(Bound::Pinned));
        assert_ne!(roster.pinned(), before);
        for shown in [None, Some(&other)] {
            assert!(matches!(roster.claim(DatapathId(1), shown, 0, 0), Claim::NotBound(_)));
            assert_eq!(roster.join(record(1, 2000), shown), None);
        }
        assert_eq!(roster.take_challenged(0), []);
        assert_eq!(roster.claim(DatapathId(1), Some(&mine), 0, 0), Claim::Waits);
        assert_eq!(roster.forget_pin(DatapathId(1)), Some(mine.fingerprint));
        assert_eq!((roster.forget_pin(DatapathId(1)), roster.pins()), (None, Vec::new()));
    }

    #[test]
    fn the_worker_of_the_one_who_has_an_id_is_told_once_to_ask_him() {
        let roster = roster();
        roster.join(record(1, 1000), None).unwrap();
        let before = roster.stirred();
        assert_eq!(roster.claim(DatapathId(1), None, 50, 50), Claim::Waits);
        assert_eq!(roster.claim(DatapathId(1), None, 51, 51), Claim::Waits);
        assert_ne!(roster.stirred(), before);
        assert_eq!(roster.take_challenged(7), []);
        assert_eq!(roster.take_challenged(0), [DatapathId(1)]);
        assert_eq!(roster.take_challenged(0), []);
        roster.prove(DatapathId(1), 60);
        assert_eq!(
            roster.claim(DatapathId(1), None, 50, 61),
            Claim::Taken(Taken { by: peer(1000), since_ms: 5 })
        );
        roster.leave(DatapathId(1));
        assert_eq!(roster.claim(DatapathId(1), None, 51, 62), Claim::Free);
    }
}
