//! Open vSwitch for one trial: a database and a switch of its own, in a folder and a network namespace of its own.
//!
//! ```text
//!   node <──TCP── Relay <──Unix socket── ovs-vswitchd: s1 ── s2, s3 (patch ports)      in its own network namespace
//!                                            h1 … h4 at ports of s2 and s3, each a Unix socket ──> Hosts, in this process
//! ```
//!
//! The datapath is the user-space one with the ports that Open vSwitch's own tests use (`--enable-dummy`): no device and no module of the
//! machine. What is running already is never touched; each process is ended by its number, and Linux ends it if this one is killed.

mod daemons;
mod hosts;
mod relay;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use openflow::Version;

use daemons::Daemons;
pub use daemons::SWITCHES;
use hosts::Hosts;
pub use hosts::Ping;
use relay::Relays;

use super::arrivals::Arrivals;

/// What is needed and not there, as a sentence; nothing if all is.
pub fn is_missing() -> Option<String> {
    daemons::is_missing()
}

/// The running switches and their hosts.
pub struct Network {
    // In the order in which they end: hosts and relays hang on the switches' sockets.
    hosts: Hosts,
    relays: Relays,
    _daemons: Daemons,
}

impl Network {
    /// Starts them. What comes to hosts is noted there.
    ///
    /// # Errors
    /// A process did not start, and what it said.
    pub fn start(version: Version, controller: SocketAddr, arrivals: &Arc<Arrivals>) -> io::Result<Network> {
        // One process may have several.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-ovs-{}-{number}", std::process::id()));
        let daemons = Daemons::start(folder)?;
        let relays = Relays::start(daemons.folder(), controller)?;
        daemons.configure(version)?;
        let hosts = Hosts::connect(daemons.folder(), arrivals)?;
        Ok(Network { hosts, relays, _daemons: daemons })
    }

    /// Sessions with the node that ended.
    pub fn connections_lost(&self) -> u64 {
        self.relays.lost()
    }

    /// Sends a ping; nothing if there is no such host.
    pub fn begin_ping(&self, from: &str, to: &str, until: Instant) -> Option<Ping> {
        self.hosts.begin_ping(from, to, until)
    }
}
