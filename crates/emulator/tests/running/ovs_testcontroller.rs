//! Tests with `ovs-testcontroller`, Open vSwitch's learning switch. Skipped by name if it is not installed.

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than any step takes. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The controller's process and the folder of its sockets.
struct Controller {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Controller {
    /// Starts one on a free port. `None` if it is not installed.
    fn start(protocol: &str) -> Option<Controller> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let folder =
            std::env::temp_dir().join(format!("burnet-emulator-{}-{}", std::process::id(), address.port()));
        std::fs::create_dir_all(&folder).unwrap();
        let started = Command::new("ovs-testcontroller")
            .env("OVS_RUNDIR", &folder)
            .env("OVS_LOGDIR", &folder)
            .arg("--no-chdir")
            .arg(format!("--unixctl={}", folder.join("control").display()))
            .args(["-O", protocol, "-vconsole:off", "-vsyslog:off"])
            .arg(format!("ptcp:{}:127.0.0.1", address.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(process) => Some(Controller { process, folder, address }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::fs::remove_dir_all(&folder).unwrap();
                None
            }
            Err(error) => panic!("ovs-testcontroller does not start: {error}"),
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn check_ping_all(test: &str, topology: &str, versions: Versions, protocol: &str) {
    let Some(controller) = Controller::start(protocol) else {
        eprintln!(
            "left out: {test}: ovs-testcontroller is not installed (package openvswitch-testcontroller)"
        );
        return;
    };
    let topology: Topology = topology.parse().unwrap();
    for n_buffers in [0, 256] {
        let options = SwitchOptions { versions, n_buffers, ..SwitchOptions::default() };
        let network = Emulation::start(&topology, controller.address, &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        let report = network.ping_all(PATIENCE);
        assert!(
            report.is_complete(),
            "{versions:?}, {n_buffers} buffers: {report}; {:?}",
            report.lost().next()
        );
        let counters = network.counters();
        assert!(counters.flow_mods > 0, "it learns, so it adds rules: {counters:?}");
        assert_eq!((counters.errors, counters.bad_messages), (0, 0), "{counters:?}");
    }
}

#[test]
fn a_tree_in_1_0() {
    check_ping_all("a_tree_in_1_0", "tree,2", Versions::Only10, "OpenFlow10");
}

#[test]
fn a_tree_in_1_3() {
    check_ping_all("a_tree_in_1_3", "tree,2", Versions::Only13, "OpenFlow13");
}

#[test]
fn a_line_that_speaks_both() {
    check_ping_all("a_line_that_speaks_both", "linear,4", Versions::Both, "OpenFlow10,OpenFlow13");
}
