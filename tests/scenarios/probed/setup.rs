//! A bridge of Open vSwitch with two test interfaces, and a probe of it.
//!
//! In: a version of OpenFlow, and arguments of `burnet probe`. Out: its exit code, what it says, and the profile that it writes. What is true
//! of the switch is each scenario's own.

use profile::Profile;
use std::fs;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use system_tests::node::binary;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario_that_waits};

pub const CONTROLLER: &str = "tcp:127.0.0.1:6653";
/// Ends a hang only.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The size of its table.
pub const ENTRIES: u32 = 511;

/// `s1-eth1` and `s1-eth2` for the ports of a switch, with `veth1` and `veth2` at their other ends.
pub fn test_interfaces(sandbox: &Sandbox) -> Result<()> {
    for number in 1..=2 {
        let (inner, outer) = (format!("s1-eth{number}"), format!("veth{number}"));
        sandbox.must(LIMIT, "ip", &["link", "add", &inner, "type", "veth", "peer", "name", &outer])?;
        for end in [&inner, &outer] {
            // Without addresses, the machine itself sends nothing there.
            let setting = format!("net.ipv6.conf.{end}.disable_ipv6=1");
            sandbox.must(LIMIT, "sysctl", &["-q", "-w", &setting])?;
            sandbox.must(LIMIT, "ip", &["link", "set", end, "up"])?;
        }
    }
    Ok(())
}

/// A bridge `s1` whose ports 1 and 2 are `veth1` and `veth2`.
pub fn bridge(sandbox: &Sandbox, switch: &OpenVSwitch<'_>, version: Version) -> Result<()> {
    switch.add_bridge("s1")?;
    switch.vsctl(&["set", "bridge", "s1", "fail_mode=secure", &format!("protocols={}", version.in_ovs())])?;
    test_interfaces(sandbox)?;
    for number in 1..=2 {
        let (inner, request) = (format!("s1-eth{number}"), format!("ofport_request={number}"));
        switch.vsctl(&["add-port", "s1", &inner, "--", "set", "interface", &inner, &request])?;
    }
    Ok(())
}

pub fn limit_table(switch: &OpenVSwitch<'_>, policy: &str) -> Result<()> {
    let (entries, policy) = (format!("flow_limit={ENTRIES}"), format!("overflow_policy={policy}"));
    let create = ["--", "--id=@table", "create", "Flow_Table", &entries, &policy];
    switch.vsctl(&[&create[..], &["--", "set", "bridge", "s1", "flow_tables:0=@table"]].concat()).map(drop)
}

/// `burnet probe`, which ends with its sandbox.
pub struct Probing<'s> {
    sandbox: &'s Sandbox,
    child: Child,
}

impl<'s> Probing<'s> {
    pub fn start(sandbox: &'s Sandbox, words: &[&str]) -> Result<Probing<'s>> {
        for log in ["report.log", "probe.log"] {
            // What an earlier probe said.
            let _ = fs::remove_file(sandbox.folder().join(log));
        }
        let mut command = sandbox.command("sh");
        command
            .args(["-c", "echo $$ > \"$0\"; exec \"$@\""])
            .arg(sandbox.folder().join("probe.pid"))
            .arg(binary()?);
        command.args(["probe", "--port", "1=veth1", "--port", "2=veth2", "--out"]);
        command.arg(sandbox.folder().join("found.toml")).args(words);
        command.stdout(sandbox.log("report")?).stderr(sandbox.log("probe")?);
        let child = command.spawn().map_err(|error| format!("cannot run burnet probe: {error}"))?;
        Ok(Probing { sandbox, child })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|error| format!("cannot wait for the probe: {error}"))
    }

    pub fn wait_for(&mut self, text: &str) -> Result<()> {
        let began = Instant::now();
        while !self.sandbox.read_log("probe").contains(text) {
            if began.elapsed() > LIMIT || self.ended()?.is_some() {
                return Err(format!("the probe does not say `{text}`"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits for its end. Returns its exit code.
    pub fn finish(mut self) -> Result<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return status.code().ok_or_else(|| "the probe was killed".to_owned());
            }
            if began.elapsed() > LIMIT {
                return Err("the probe does not end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: &str) -> Result<()> {
        let pid = fs::read_to_string(self.sandbox.folder().join("probe.pid"));
        let pid = pid.map_err(|error| format!("no process id: {error}"))?;
        self.sandbox.must(LIMIT, "kill", &[signal, pid.trim()]).map(drop)
    }
}

pub fn found(sandbox: &Sandbox) -> Result<Profile> {
    let file = sandbox.folder().join("found.toml");
    let text =
        fs::read_to_string(&file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    Profile::parse("found.toml", &text).map_err(|bad| bad.to_string())
}

pub fn expect(holds: bool, what: &str, found: &impl std::fmt::Debug) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
}

/// Starts the switch as `prepare` says, then the probe, and lets `check` judge what it has found.
pub fn probed(
    name: &str,
    version: Version,
    words: &[&str],
    prepare: impl FnOnce(&Sandbox, &OpenVSwitch<'_>) -> Result<()>,
    check: impl FnOnce(&Sandbox, &OpenVSwitch<'_>, Probing<'_>) -> Result<()>,
) {
    scenario_that_waits(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        bridge(sandbox, &switch, version)?;
        switch.set_controller(CONTROLLER)?;
        prepare(sandbox, &switch)?;
        let mut probing = Probing::start(sandbox, words)?;
        probing.wait_for("waiting for the switch")?;
        check(sandbox, &switch, probing)?;
        println!("{name}: {}", sandbox.read_log("report"));
        Ok(())
    });
}

/// Whether what a time is found to be, in any unit, fits the one that is played by a wall clock. Nothing is played faster. On a loaded machine, all
/// becomes slower. How exactly a probe finds times is tested in virtual time (`probe::recovery`).
pub fn is_played(found: f64, played: f64) -> bool {
    /// What frames that wait at the beginning of a measurement take away.
    const LEAST: f64 = 0.75;
    /// Still far from a switch that does not play it, or plays another time.
    const MOST: f64 = 6.0;
    (LEAST..=MOST).contains(&(found / played))
}

/// The same for something in a second.
pub fn is_rate_played(found: f64, played: f64) -> bool {
    is_played(played, found)
}

/// No rule of the probe is left in the switch.
pub fn is_clean(switch: &OpenVSwitch<'_>, version: Version) -> Result<()> {
    let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
    expect(!rules.contains("cookie=0x6275726e"), "rules of the probe are left", &rules)
}
