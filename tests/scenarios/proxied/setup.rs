//! A bridge of Open vSwitch with two hosts, and the proxy before it.
//!
//! In: a version of OpenFlow, and what is played. Out: round trips of pings, and the proxy's summary. The controller is each scenario's own.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use system_tests::node::binary;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version};

/// Where a controller listens, and where the proxy does.
pub const LISTEN: &str = "127.0.0.1:6653";
pub const PROXY: &str = "127.0.0.1:6650";
/// Ends a hang only.
pub const LIMIT: Duration = Duration::from_secs(90);

/// The proxy, which ends with its sandbox.
pub struct Proxied<'s> {
    sandbox: &'s Sandbox,
    child: Child,
    pid_file: std::path::PathBuf,
}

impl<'s> Proxied<'s> {
    /// Plays a profile, given as the text of its file, before the switch of [`two_hosts`].
    pub fn start(sandbox: &'s Sandbox, text: &str) -> Result<Proxied<'s>> {
        let profile = sandbox.folder().join("played.toml");
        fs::write(&profile, text).map_err(|error| format!("cannot write {}: {error}", profile.display()))?;
        let pid_file = sandbox.folder().join("proxy.pid");
        let mut command = sandbox.command("sh");
        command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(&pid_file).arg(binary()?);
        command.args(["emulate", "--profile"]).arg(&profile);
        command.args(["--proxy", PROXY, "--tap", "1=s1-eth1,2=s1-eth2", "--controller", LISTEN]);
        command.args(["--json", "--validity"]);
        command.stdout(sandbox.log("summary")?).stderr(sandbox.log("proxy")?);
        let child = command.spawn().map_err(|error| format!("cannot run the proxy: {error}"))?;
        let proxied = Proxied { sandbox, child, pid_file };
        proxied.wait_for("is played before the switch")?;
        Ok(proxied)
    }

    /// Waits until it has said this.
    pub fn wait_for(&self, text: &str) -> Result<()> {
        let began = Instant::now();
        while !self.sandbox.read_log("proxy").contains(text) {
            if began.elapsed() > LIMIT {
                return Err(format!("the proxy does not say `{text}`"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends it, and returns its summary.
    pub fn finish(mut self) -> Result<Value> {
        let pid = fs::read_to_string(&self.pid_file).map_err(|error| format!("no process id: {error}"))?;
        self.sandbox.must(LIMIT, "kill", &["-TERM", pid.trim()])?;
        self.child.wait().map_err(|error| format!("cannot wait for the proxy: {error}"))?;
        let text = self.sandbox.read_log("summary");
        serde_json::from_str(&text).map_err(|error| format!("no summary ({error}): {text}"))
    }
}

/// A bridge with two hosts in namespaces of their own, 10.0.0.1 and 10.0.0.2.
pub fn two_hosts(sandbox: &Sandbox, switch: &OpenVSwitch<'_>, version: Version) -> Result<()> {
    let ip = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        sandbox.must(LIMIT, "ip", &words)
    };
    switch.add_bridge("s1")?;
    switch.vsctl(&["set", "bridge", "s1", "fail_mode=secure", &format!("protocols={}", version.in_ovs())])?;
    for host in 1..=2 {
        ip(&format!("netns add h{host}"))?;
        ip(&format!("link add s1-eth{host} type veth peer name eth0 netns h{host}"))?;
        ip(&format!("link set s1-eth{host} up"))?;
        ip(&format!("netns exec h{host} sysctl -q -w net.ipv6.conf.all.disable_ipv6=1"))?;
        ip(&format!("-n h{host} addr add 10.0.0.{host}/24 dev eth0"))?;
        ip(&format!("-n h{host} link set eth0 up"))?;
        let (port, number) = (format!("s1-eth{host}"), format!("ofport_request={host}"));
        switch.vsctl(&["add-port", "s1", &port, "--", "set", "interface", &port, &number])?;
        sandbox.must(
            LIMIT,
            "sysctl",
            &["-q", "-w", &format!("net.ipv6.conf.s1-eth{host}.disable_ipv6=1")],
        )?;
    }
    Ok(())
}

/// The round trips of pings from host 1 to host 2, in milliseconds, in their order.
pub fn ping(sandbox: &Sandbox, count: u32) -> Result<Vec<f64>> {
    let count = count.to_string();
    // A busy machine may need more than a tenth of a second for the first.
    let words = ["netns", "exec", "h1", "ping", "-c", &count, "-i", "0.3", "-W", "5", "10.0.0.2"];
    let answer = sandbox.run(LIMIT, "ip", &words)?;
    let word = |line: &str, key: &str| line.split(key).nth(1)?.split(' ').next().map(str::to_owned);
    let mut trips: Vec<(u32, f64)> = answer
        .text
        .lines()
        .filter_map(|line| Some((word(line, "icmp_seq=")?.parse().ok()?, word(line, "time=")?.parse().ok()?)))
        .collect();
    // The answer to the first may come after that to the second.
    trips.sort_by_key(|(sequence, _)| *sequence);
    Ok(trips.into_iter().map(|(_, trip)| trip).collect())
}

/// An error if it does not hold.
pub fn expect(holds: bool, what: &str, found: &impl std::fmt::Debug) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
}

/// Writes a program of a test where it can be seen inside. Returns its path.
pub fn kept(sandbox: &Sandbox, name: &str, text: &str) -> Result<PathBuf> {
    let path = sandbox.folder().join(name);
    std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}
