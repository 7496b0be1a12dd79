//! Figure 1a on Mininet with all that the paper has: Open vSwitch, a node with both slices, a controller of each tenant, and an agent on each server.
//!
//! ```text
//!   mininet (fig4.py) <──> Open vSwitch <──OpenFlow 1.3──> burnet run <──OpenFlow 1.0──> multipath.py of red, of blue
//!        │ s5-eth3 … s8-eth3                                   ↑ TCP
//!        └── nftables, HTB ── burnet edge, four times ─────────┘
//! ```
//!
//! In: how tenants choose paths, requests for Mininet, questions for the node. Out: answers. It needs root. All is in namespaces of its own, and ends
//! with this process.

use crate::lab::Lab;
use crate::models::testbed::bounded::{Killed, run};
use crate::models::testbed::sandbox::{PATIENCE, Sandbox};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The Python with os-ken, if it is not the system's.
const PYTHON: &str = "BURNET_OTHERS_PYTHON";
/// Where the node listens for agents.
const AGENTS: &str = "127.0.0.1:6656";
/// The switches in servers. An agent has the number of its switch.
const SERVERS: [u32; 4] = [5, 6, 7, 8];
/// A tenant's rules end after ten seconds without a packet, and a flow two seconds after its last packet.
const QUIET: Duration = Duration::from_secs(14);
/// The Python that Debian has built Mininet for. Another one may be first in the path.
const MININET_PYTHON: &str = "/usr/bin/python3";
/// How long Mininet takes to make the network on a busy machine.
const MININET: Duration = Duration::from_secs(120);

const FILES: [(&str, &str); 4] = [
    ("fig4.py", include_str!("../../labels/fig4.py")),
    ("fig1a.py", include_str!("../../../examples/slices/fig1a.py")),
    ("multipath.py", include_str!("../../../examples/slices/multipath.py")),
    ("choice.py", include_str!("../../../examples/slices/choice.py")),
];

/// A tenant: its name, its controller's port, its tag, its links, and its VNICs with port, Mb/s and the last byte of the address.
type Tenant =
    (&'static str, u16, u16, &'static [&'static str], &'static [(&'static str, &'static str, u32, u32)]);

const SPINES: [&str; 4] = ["s3:1-s1:1", "s4:1-s1:2", "s3:2-s2:1", "s4:2-s2:2"];
const TENANTS: [Tenant; 2] = [
    ("red", 6701, 101, &["s5:3-s3:3", "s7:3-s4:3"], &[("A", "s5:1", 8, 1), ("B", "s7:1", 8, 4)]),
    (
        "blue",
        6702,
        102,
        &["s5:3-s3:3", "s6:3-s3:4", "s7:3-s4:3", "s8:3-s4:4"],
        &[("E", "s6:1", 10, 3), ("F", "s8:1", 10, 6), ("C", "s5:2", 2, 2), ("D", "s7:2", 2, 5)],
    ),
];

/// All processes.
pub struct Bed<'a> {
    /// These are processes of `nsenter`. What runs inside ends with the namespaces.
    children: Killed,
    sandbox: Sandbox,
    mininet: Option<(ChildStdin, Receiver<String>)>,
    lab: &'a Lab,
}

impl Bed<'_> {
    /// Starts all, and waits until each host reaches the one that it will send to, and then until rules and flows of that are over.
    ///
    /// # Errors
    /// A program is missing, fails, or is not ready in time. The error says which.
    pub fn start<'a>(lab: &'a Lab, choose: &str) -> Result<Bed<'a>, String> {
        let mut bed = Bed { children: Killed::default(), sandbox: Sandbox::new()?, mininet: None, lab };
        FILES.iter().try_for_each(|(name, text)| bed.write(name, text).map(drop))?;
        bed.start_switches()?;
        bed.start_node()?;
        bed.start_tenants(choose)?;
        bed.start_mininet()?;
        bed.wait_for("both slices have all switches", |bed| {
            let connected = |(name, _, _, links, _): &Tenant| {
                let state = bed.ask(&["slice", "show", name]).unwrap_or_default();
                let switches = state["switches"].as_array().cloned().unwrap_or_default();
                switches.len() == 4 + links.len()
                    && switches.iter().all(|it| it["controllers"][0]["version"] == "1.0")
            };
            TENANTS.iter().all(connected)
        })?;
        SERVERS.iter().try_for_each(|server| bed.start_agent(*server))?;
        bed.wait_for("the agents are there", |bed| {
            let log = bed.sandbox.log_of("node");
            SERVERS.iter().all(|server| log.contains(&format!("agent {server} meters and shapes")))
        })?;
        for (from, to) in [("a", "b"), ("e", "f"), ("c", "d")] {
            bed.reach(from, to)?;
        }
        std::thread::sleep(QUIET);
        Ok(bed)
    }

    /// Begins a request of Mininet. The answer is [`Bed::answer`].
    ///
    /// # Errors
    /// Mininet has ended.
    pub fn begin(&mut self, request: &Value) -> Result<(), String> {
        let written = self.mininet.as_mut().is_some_and(|(input, _)| writeln!(input, "{request}").is_ok());
        if written { Ok(()) } else { Err(self.sandbox.failed("Mininet", "mininet")) }
    }

    /// The answer of Mininet.
    ///
    /// # Errors
    /// It does not come in time, or cannot be read.
    pub fn answer(&mut self, limit: Duration) -> Result<Value, String> {
        let failed = || self.sandbox.failed("Mininet", "mininet");
        let (_, lines) = self.mininet.as_ref().ok_or_else(failed)?;
        let line = lines.recv_timeout(limit).map_err(|_| failed())?;
        serde_json::from_str(&line).map_err(|error| format!("Mininet says {line:?}: {error}"))
    }

    /// The answer of `burnet WORDS --json`. `None`: there is none now.
    pub fn ask(&self, words: &[&str]) -> Option<Value> {
        let mut command = self.sandbox.command("ask", &self.lab.burnet).ok()?;
        let (text, status) = run(command.args(words).arg("--json"), "the question", PATIENCE).ok()?;
        status.success().then(|| serde_json::from_str(&text).ok())?
    }

    /// The links of a tenant's flow, if it has rules.
    pub fn path(&self, tenant: &str, from: &str, to: &str) -> Option<Vec<String>> {
        let flows = self.ask(&["slice", "flows", tenant])?;
        let mut flows = flows["items"].as_array()?.iter();
        let flow = flows.find(|flow| flow["from"] == from && flow["to"] == to)?;
        Some(flow["links"].as_array()?.iter().filter_map(|link| Some(link.as_str()?.to_owned())).collect())
    }

    fn reach(&mut self, from: &str, to: &str) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.begin(&json!({ "do": "reach", "from": from, "to": to }))?;
            if self.answer(PATIENCE)?["ok"] == true {
                return Ok(());
            }
        }
        Err(format!("{from} does not reach {to}: {}", self.sandbox.failed("the node", "node")))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.sandbox.folder().join(name);
        let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        std::fs::write(&path, text).map_err(failed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(path)
    }

    fn start_switches(&self) -> Result<(), String> {
        let folder = self.sandbox.folder().display().to_string();
        for line in [
            format!("ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema"),
            format!(
                "ovsdb-server {folder}/conf.db --remote=punix:/run/openvswitch/db.sock --detach --no-chdir --pidfile"
            ),
            "ovs-vsctl --no-wait init".to_owned(),
            "ovs-vswitchd --detach --no-chdir --pidfile".to_owned(),
        ] {
            self.sandbox.must(&line)?;
        }
        Ok(())
    }

    fn start_node(&mut self) -> Result<(), String> {
        let line = |number: &u32| format!("{number} {}\n", "0f".repeat(32));
        let of_agents: String = SERVERS.iter().map(line).collect();
        let keys = self.write("node.keys", &of_agents)?;
        // Agents also have the key of the service.
        self.write("keys", &(of_agents + &line(&0)))?;
        let slices = slices();
        self.write("slices.toml", &slices)?;
        let labels = format!(
            "[network.labels]\nlink_rate = '10M'\nlisten = ['{AGENTS}']\nkeys = '{}'\n",
            keys.display()
        );
        let config = self.write("burnet.toml", &format!("[network]\n{labels}{slices}"))?;
        let mut command = self.sandbox.command("node", &self.lab.burnet)?;
        command.args(["run", "--listen", "127.0.0.1:6653", "--config"]).arg(config);
        command.env("BURNET_STATE", self.sandbox.folder().join("state"));
        self.spawn(command, "the node")?;
        self.wait_for("the node", |bed| bed.ask(&["switches"]).is_some())
    }

    fn start_tenants(&mut self, choose: &str) -> Result<(), String> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        for (name, port, _, _, vnics) in &TENANTS {
            let line =
                |(_, _, rate, mac): &(&str, &str, u32, u32)| format!("00:00:00:00:00:{mac:02x} {rate}M\n");
            let rates = self.write(&format!("{name}.txt"), &vnics.iter().map(line).collect::<String>())?;
            let mut command = self.sandbox.command(name, &python)?;
            command.arg("-B").arg(self.sandbox.folder().join("multipath.py")).arg(port.to_string());
            command.args(["--choose", choose, "--vnics"]).arg(rates);
            self.spawn(command, "a tenant's controller")?;
        }
        Ok(())
    }

    fn start_mininet(&mut self) -> Result<(), String> {
        let mut command = self.sandbox.command("mininet", MININET_PYTHON)?;
        let file = |name| self.sandbox.folder().join(name);
        command.arg("-B").arg(file("fig4.py")).arg(file("fig1a.py")).arg("6653");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("Mininet cannot be run: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        self.children.0.push(child);
        let (input, output) = input.zip(output).ok_or("Mininet has no input or output")?;
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map(|line| send.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        let ready = lines.recv_timeout(MININET);
        self.mininet = Some((input, lines));
        match ready {
            Ok(line) if line == "ready" => Ok(()),
            _ => Err(self.sandbox.failed("Mininet", "mininet")),
        }
    }

    fn start_agent(&mut self, server: u32) -> Result<(), String> {
        let peers = SERVERS.iter().filter(|peer| **peer != server);
        let peers: String = peers.map(|peer| format!("{peer} = '127.0.0.1:666{peer}'\n")).collect();
        let text = format!(
            "agent = {server}\ndevice = 's{server}-eth3'\nrate = '10M'\nlisten = '127.0.0.1:666{server}'\n\
             slices = 'slices.toml'\nkeys = 'keys'\nservice = {{ address = '{AGENTS}' }}\n[peers]\n{peers}"
        );
        let file = self.write(&format!("edge{server}.toml"), &text)?;
        let mut command = self.sandbox.command(&format!("edge{server}"), &self.lab.burnet)?;
        command.arg("edge").arg(file).env("BURNET_LOG", "info,edge=debug");
        self.spawn(command, "an agent")
    }

    fn spawn(&mut self, mut command: std::process::Command, what: &str) -> Result<(), String> {
        self.children.0.push(command.spawn().map_err(|error| format!("{what} cannot be run: {error}"))?);
        Ok(())
    }

    fn wait_for(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Result<(), String> {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > PATIENCE {
                return Err(format!("not in time: {what}; {}", self.sandbox.failed("the node", "node")));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// The slices file.
fn slices() -> String {
    let of_tenant = |(name, port, tag, links, vnics): &Tenant| {
        let links: Vec<&str> = SPINES.iter().chain(*links).copied().collect();
        let vnic = |(name, port, rate, mac): &(&str, &str, u32, u32)| {
            let agent = &port[1..2];
            format!(
                "{name} = {{ port = '{port}', rate = '{rate}M', number = {mac}, mac = '00:00:00:00:00:{mac:02x}', agent = {agent} }}\n"
            )
        };
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:{port}']\nisolation = 'vlan'\ntag = {tag}\nlabels = 'paper'\nlinks = {links:?}\n\
             [slice.{name}.vnics]\n{}",
            vnics.iter().map(vnic).collect::<String>()
        )
    };
    TENANTS.iter().map(of_tenant).collect()
}
