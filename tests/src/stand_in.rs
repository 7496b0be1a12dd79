//! Open vSwitch's own test controller, in Burnet's place. If a scenario fails with Burnet and passes with this,
//! Burnet is at fault and not the network.
//!
//! In: where to listen. Out: a learning controller, until its sandbox ends.

use crate::certificates::Certificates;
use crate::sandbox::Sandbox;
use crate::{Result, Version};
use std::time::Duration;

/// Time limit: it listens or refuses at once.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts it on TCP port `port`. It listens when this returns.
pub fn start(sandbox: &Sandbox, port: u16) -> Result<()> {
    run(sandbox, port, &[&format!("ptcp:{port}:127.0.0.1")])
}

/// The same with one version of OpenFlow. Several can run at different ports.
pub fn start_version(sandbox: &Sandbox, port: u16, version: Version) -> Result<()> {
    run(sandbox, port, &[&format!("ptcp:{port}:127.0.0.1"), "-O", version.in_ovs()])
}

/// The same with mutual TLS.
pub fn start_tls(sandbox: &Sandbox, port: u16, certificates: &Certificates) -> Result<()> {
    let [key, certificate, authority] = certificates.of_controller();
    let listen = format!("pssl:{port}:127.0.0.1");
    let words: [&str; 7] =
        [&listen, "--private-key", &key, "--certificate", &certificate, "--ca-cert", &authority];
    run(sandbox, port, &words)
}

fn run(sandbox: &Sandbox, port: u16, words: &[&str]) -> Result<()> {
    let file = |end: &str| sandbox.folder().join(format!("stand-in-{port}.{end}")).display().to_string();
    let (log, pid) = (format!("--log-file={}", file("log")), format!("--pidfile={}", file("pid")));
    let daemon = ["--detach", "--no-chdir", &pid, &log];
    sandbox.must(LIMIT, "ovs-testcontroller", &[words, &daemon].concat()).map(drop)
}
