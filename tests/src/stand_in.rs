//! Open vSwitch's own test controller, in Burnet's place. If a scenario fails with Burnet and passes with this,
//! Burnet is at fault and not the network.
//!
//! In: where to listen. Out: a learning controller, until its sandbox ends.

use crate::Result;
use crate::certificates::Certificates;
use crate::sandbox::Sandbox;
use std::time::Duration;

/// Time limit: it listens or refuses at once.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts it on TCP port `port`. It listens when this returns.
pub fn start(sandbox: &Sandbox, port: u16) -> Result<()> {
    run(sandbox, &[&format!("ptcp:{port}:127.0.0.1")])
}

/// The same with mutual TLS.
pub fn start_tls(sandbox: &Sandbox, port: u16, certificates: &Certificates) -> Result<()> {
    let [key, certificate, authority] = certificates.of_controller();
    let listen = format!("pssl:{port}:127.0.0.1");
    run(sandbox, &[&listen, "--private-key", &key, "--certificate", &certificate, "--ca-cert", &authority])
}

fn run(sandbox: &Sandbox, words: &[&str]) -> Result<()> {
    let log = format!("--log-file={}", sandbox.folder().join("stand-in.log").display());
    let daemon = ["--detach", "--no-chdir", "--pidfile", &log];
    sandbox.must(LIMIT, "ovs-testcontroller", &[words, &daemon].concat()).map(drop)
}
