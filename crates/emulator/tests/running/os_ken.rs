//! Tests with an app of os-ken, the most used controller framework in Python. Skipped by name if python3 has no
//! os-ken.

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any step takes. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The Python that has os-ken: the given one, or the system's.
fn python() -> OsString {
    std::env::var_os("BURNET_OTHERS_PYTHON").unwrap_or_else(|| "python3".into())
}

/// The os-ken app, which starts itself.
struct OsKen {
    process: Child,
    address: SocketAddr,
}

impl OsKen {
    /// Starts it on a free port. `None` if it is not installed.
    fn start() -> Option<OsKen> {
        let mut import = Command::new(python());
        import.args(["-c", "import os_ken"]).stdout(Stdio::null()).stderr(Stdio::null());
        if !import.status().is_ok_and(|status| status.success()) {
            return None;
        }
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let app = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/os_ken_app.py");
        let mut command = Command::new(python());
        command.args(["-B", app]).arg(address.port().to_string());
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let os_ken = OsKen { process, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < PATIENCE, "os-ken does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(os_ken)
    }
}

impl Drop for OsKen {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn check_ping_all(test: &str, topology: &str) {
    let Some(os_ken) = OsKen::start() else {
        eprintln!("left out: {test}: python3 has no os-ken (pip install os-ken)");
        return;
    };
    let topology: Topology = topology.parse().unwrap();
    let options = SwitchOptions { versions: Versions::Both, ..SwitchOptions::default() };
    let network = Emulation::start(&topology, os_ken.address, &options).unwrap();
    network.keep_spanning_tree();
    network.wait_connected(PATIENCE).unwrap();
    let report = network.ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}; {:?}", report.lost().next());
    let counters = network.counters();
    assert!(counters.flow_mods > 0, "it learns, so it adds rules: {counters:?}");
    assert_eq!((counters.errors, counters.bad_messages), (0, 0), "{counters:?}");
}

#[test]
fn a_tree() {
    check_ping_all("os_ken::a_tree", "tree,2");
}

#[test]
fn a_fat_tree_along_a_spanning_tree() {
    check_ping_all("os_ken::a_fat_tree_along_a_spanning_tree", "fattree,4");
}
