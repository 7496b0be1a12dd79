//! Mininet in a sandbox, and the results of its hosts' pings.
//!
//! In: a topology, the kind of switches, a version, then commands at Mininet's prompt. Out: how many pings were
//! answered. If the switches are Open vSwitch's, it must run in the same sandbox.

use crate::sandbox::Sandbox;
use crate::{Result, Version};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// `linear,8` starts in about ten seconds on a busy machine. Every lost ping takes a second more.
const LIMIT: Duration = Duration::from_secs(120);

/// Before it adds hosts, Mininet checks by telnet whether the controller listens. On a busy machine telnet sometimes
/// never ends. Then Mininet is started again; at that point it has not configured the switches yet.
const ATTEMPTS: u32 = 3;

/// Time limit for that check. It normally takes a tenth of a second.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// The pings that a round may lose before it is repeated.
const LOST_MAX: u32 = 2;

/// The controller of Mininet's switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// A controller on this TCP port of 127.0.0.1. Mininet waits until all switches are connected.
    Tcp(u16),
    /// None, until a test runs `ovs-vsctl set-controller`.
    None,
}

/// The kind of Mininet's switches, and their OpenFlow version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switches<'a> {
    /// Open vSwitch's, on its user-space datapath.
    OpenVSwitch(Version),
    /// Burnet's own, by its class for Mininet.
    Burnet(Version),
    /// The same, playing the profile in this file.
    BurnetPlaying(Version, &'a Path),
    /// Open vSwitch's behind the proxy, which plays the profile in this file.
    Proxied(Version, &'a Path),
}

impl Switches<'_> {
    /// The argument of `--switch`.
    fn argument(self) -> String {
        match self {
            Switches::OpenVSwitch(version) => format!("ovsk,datapath=user,protocols={}", version.in_ovs()),
            Switches::Burnet(version) => format!("burnet,protocols={}", version.in_ovs()),
            Switches::BurnetPlaying(version, profile) => {
                format!("burnet,profile={},protocols={}", profile.display(), version.in_ovs())
            }
            Switches::Proxied(version, profile) => {
                let (profile, version) = (profile.display(), version.in_ovs());
                format!("profiled,datapath=user,profile={profile},protocols={version}")
            }
        }
    }
}

/// The Python classes, as they are distributed.
const BURNET_SWITCH: &str = include_str!("../../deploy/mininet/burnet_switch.py");

/// A topology that Mininet does not have.
const RING: &str = r#"
from mininet.topo import Topo

class Ring(Topo):
    def build(self, count=4):
        switches = [self.addSwitch('s%d' % number) for number in range(1, count + 1)]
        for number, switch in enumerate(switches, 1):
            host = self.addHost('h%d' % number, ip='10.0.0.%d' % number, mac='00:00:00:00:00:%02x' % number)
            self.addLink(host, switch)
        for one, two in zip(switches, switches[1:] + switches[:1]):
            self.addLink(one, two)

topos = {'ring': Ring}
"#;

/// A running Mininet at its prompt.
pub struct Mininet {
    child: Child,
    /// Its process id inside the sandbox.
    pid: String,
    stdin: ChildStdin,
    lines: Receiver<String>,
    heard: String,
}

/// The result of `pingall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pingall {
    /// How many pings were sent: each host to each other one.
    pub sent: u32,
    /// How many were answered.
    pub received: u32,
}

impl Mininet {
    /// Starts `topology`, such as `tree,2`, on Open vSwitch's user-space datapath.
    pub fn start(
        sandbox: &Sandbox,
        topology: &str,
        version: Version,
        controller: Controller,
    ) -> Result<Mininet> {
        Mininet::start_with(sandbox, topology, Switches::OpenVSwitch(version), controller)
    }

    /// The same with either kind of switches.
    pub fn start_with(
        sandbox: &Sandbox,
        topology: &str,
        switches: Switches<'_>,
        controller: Controller,
    ) -> Result<Mininet> {
        Mininet::try_to_start(sandbox, (topology, None), switches, controller)
    }

    /// A ring of so many Open vSwitches of 1.3, each with one host. `h1` has the address 00:00:00:00:00:01 and is at `s1`.
    pub fn start_ring(sandbox: &Sandbox, switches: u32, controller: Controller) -> Result<Mininet> {
        Mininet::start_class(sandbox, &format!("ring,{switches}"), RING, controller)
    }

    /// A topology of Open vSwitches of 1.3 that this Python text defines.
    pub fn start_class(
        sandbox: &Sandbox,
        topology: &str,
        text: &str,
        controller: Controller,
    ) -> Result<Mininet> {
        let file = sandbox.folder().join("topology.py");
        std::fs::write(&file, text).map_err(|error| format!("no topology: {error}"))?;
        let kind = Switches::OpenVSwitch(Version::V1_3);
        let custom = file.display().to_string();
        Mininet::try_to_start(sandbox, (topology, Some(&custom)), kind, controller)
    }

    fn try_to_start(
        sandbox: &Sandbox,
        topology: (&str, Option<&str>),
        switches: Switches<'_>,
        controller: Controller,
    ) -> Result<Mininet> {
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            let mut mininet = Mininet::launch(sandbox, topology, switches, controller)?;
            match mininet.wait_for("*** Adding hosts", PROBE_LIMIT) {
                Ok(_) => return mininet.wait_for("*** Starting CLI", LIMIT).map(|_| mininet),
                Err(stuck) => reason = stuck,
            }
            // Not with Mininet's own clean-up, which would remove what the next attempt builds.
            sandbox.must(PROBE_LIMIT, "kill", &["-KILL", &mininet.pid])?;
        }
        Err(reason)
    }

    fn launch(
        sandbox: &Sandbox,
        (topology, custom): (&str, Option<&str>),
        switches: Switches<'_>,
        controller: Controller,
    ) -> Result<Mininet> {
        // nsenter reports its child's process id only outside, so the child prints its own.
        let mut command = sandbox.command("sh");
        command.args(["-c", "echo $$; exec \"$@\"", "sh", "mn", "--topo", topology]);
        if let Some(file) = custom {
            command.args(["--custom", file]);
        }
        if !matches!(switches, Switches::OpenVSwitch(_)) {
            // A copy, because files outside of the sandbox's folder may be hidden inside.
            let classes = sandbox.folder().join("burnet_switch.py");
            std::fs::write(&classes, BURNET_SWITCH).map_err(|error| format!("no classes: {error}"))?;
            command.arg("--custom").arg(&classes);
            command.env("BURNET_BINARY", crate::node::binary()?);
        }
        command.args(["--switch", &switches.argument()]);
        match controller {
            Controller::Tcp(port) => {
                command.args(["--controller", &format!("remote,ip=127.0.0.1,port={port}"), "--wait"])
            }
            Controller::None => command.args(["--controller", "none"]),
        };
        let (reader, writer) = std::io::pipe().map_err(|error| format!("no pipe: {error}"))?;
        let writer_too = writer.try_clone().map_err(|error| format!("no pipe: {error}"))?;
        command.stdin(Stdio::piped()).stdout(writer).stderr(writer_too);
        let mut child = command.spawn().map_err(|error| format!("cannot run mn: {error}"))?;
        let stdin = child.stdin.take().ok_or("mn without an input")?;
        let (lines, pid, heard) = (lines_of(reader), String::new(), String::new());
        let mut mininet = Mininet { child, pid, stdin, lines, heard };
        mininet.pid = mininet.wait_for("", PROBE_LIMIT)?;
        Ok(mininet)
    }

    /// Lets every host ping every other one.
    pub fn pingall(&mut self) -> Result<Pingall> {
        self.type_line("pingall")?;
        let line = self.wait_for("*** Results:", LIMIT)?;
        result_in(&line).ok_or(format!("not a result of pingall: {line}"))
    }

    /// The same, if some pings must be lost. `seconds` is the time limit for each.
    pub fn pingall_within(&mut self, seconds: u32) -> Result<Pingall> {
        self.type_line(&format!("pingall {seconds}"))?;
        let line = self.wait_for("*** Results:", LIMIT)?;
        result_in(&line).ok_or(format!("not a result of pingall: {line}"))
    }

    /// Lets every host ping every other one. An error unless `pings` were sent and all were answered.
    ///
    /// Each ping is one packet. A busy machine may lose one in the queues between its switches, whatever the controller does. So the
    /// round is repeated once if at most `LOST_MAX` were lost. A controller that loses packets loses more of the first round.
    pub fn all_reach_all(&mut self, pings: u32) -> Result<()> {
        let found = self.pingall()?;
        let is_nearly_all = found.sent == pings && found.received + LOST_MAX >= pings;
        let found = if found.received < pings && is_nearly_all { self.pingall()? } else { found };
        if found == (Pingall { sent: pings, received: pings }) {
            return Ok(());
        }
        Err(format!("not all of {pings} pings came back: {found:?}; mn said:\n{}", self.heard))
    }

    /// What the process of a switch has printed until now: that of Burnet's own, or its proxy, which ends with that.
    pub fn said_by(&mut self, switch: &str, is_proxy: bool) -> Result<String> {
        const END: &str = "that was all";
        let said = if is_proxy { "end_proxy" } else { "said" };
        let before = self.heard.len();
        self.type_line(&format!("py {switch}.{said}() + '\\n{END}'"))?;
        self.wait_for(END, LIMIT)?;
        Ok(self.heard[before..].to_owned())
    }

    /// What a shell command prints at a host, which ends before this returns.
    pub fn at_host(&mut self, host: &str, command: &str) -> Result<String> {
        const END: &str = "that was all";
        let before = self.heard.len();
        self.type_line(&format!("py {host}.cmd({command:?}) + '\\n{END}'"))?;
        self.wait_for(END, LIMIT)?;
        Ok(self.heard[before..].to_owned())
    }

    /// Takes a link down, or up.
    pub fn set_link(&mut self, one: &str, two: &str, up: bool) -> Result<()> {
        self.type_line(&format!("link {one} {two} {}", if up { "up" } else { "down" }))
    }

    /// Lets a host ping another so often, with this many milliseconds between two pings. What it prints goes to this file.
    pub fn begin_pings(
        &mut self,
        from: &str,
        to: &str,
        count: u32,
        spacing_ms: u32,
        file: &Path,
    ) -> Result<()> {
        let spacing = f64::from(spacing_ms) / 1_000.0;
        self.type_line(&format!(
            "{from} ping -n -i {spacing} -c {count} -W 1 {to} > {} 2>&1 &",
            file.display()
        ))
    }

    /// Ends the network normally.
    pub fn exit(mut self) -> Result<()> {
        self.type_line("exit")?;
        self.wait_for("completed in", LIMIT)?;
        self.child.wait().map(drop).map_err(|error| format!("cannot wait for mn: {error}"))
    }

    fn type_line(&mut self, line: &str) -> Result<()> {
        writeln!(self.stdin, "{line}")
            .map_err(|error| format!("mn does not listen ({error}): {}", self.heard))
    }

    /// Reads up to the line that contains `wanted`, for at most `limit`.
    fn wait_for(&mut self, wanted: &str, limit: Duration) -> Result<String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|_| {
                format!(
                    "mn did not come to `{wanted}` within {} s; it said:\n{}",
                    LIMIT.as_secs(),
                    self.heard
                )
            })?;
            self.heard.push_str(&line);
            self.heard.push('\n');
            if line.contains(wanted) {
                return Ok(line);
            }
        }
    }
}

/// A thread that reads lines, because a read from a pipe cannot be cancelled.
fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(std::result::Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// How many pings were lost, by what `ping` has printed at its end: `200 packets transmitted, 199 received, …`.
pub fn lost_pings(printed: &str) -> Option<u32> {
    let line = printed.lines().find(|line| line.contains("packets transmitted"))?;
    let mut numbers = line.split(", ").filter_map(|part| part.split(' ').next()?.parse::<u32>().ok());
    numbers.next()?.checked_sub(numbers.next()?)
}

/// Reads `*** Results: 0% dropped (12/12 received)`.
fn result_in(line: &str) -> Option<Pingall> {
    let (_, counts) = line.split_once('(')?;
    let (received, sent) = counts.split_once(" received")?.0.split_once('/')?;
    Some(Pingall { sent: sent.parse().ok()?, received: received.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(u32, u32)>) {
        let expected = expected.map(|(received, sent)| Pingall { sent, received });
        assert_eq!(result_in(line), expected, "{line}");
    }

    #[test]
    fn the_result_of_ping_is_read() {
        assert_eq!(lost_pings(""), None);
        assert_eq!(lost_pings("5 packets transmitted"), None);
        let text = "--- 10.0.0.3 ping statistics ---\n200 packets transmitted, 199 received, 0.5% packet loss, time 2012ms\n";
        assert_eq!(lost_pings(text), Some(1));
        assert_eq!(lost_pings("2 packets transmitted, 0 received, +2 errors, 100% packet loss"), Some(2));
    }

    #[test]
    fn the_result_of_pingall_is_read() {
        check("", None);
        check("*** Results: 0% dropped", None);
        check("*** Results: 0% dropped (/ received)", None);
        check("*** Results: 0% dropped (12/12 received)", Some((12, 12)));
        check("*** Results: 16% dropped (10/12 received)", Some((10, 12)));
    }
}
