//! Agents of two servers on one Mininet, as `burnet edge` runs them: what nftables counts there decides what another tenant is told.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use system_tests::mininet::{Controller, Mininet};
use system_tests::node::{Node, binary};
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario, stand_in};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";
const BLUE: u16 = 6701;
const RED: u16 = 6702;
const AGENTS: &str = "127.0.0.1:6656";
const CAPACITY_KBPS: u64 = 10_000;
const BLUE_KBPS: u64 = 8_000;
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// At each of two switches, port 1 leads to the blue host, 2 to the red one, and 3 to the other switch, which is the network.
const TOPOLOGY: &str = r#"
from mininet.topo import Topo

class Servers(Topo):
    def build(self):
        switches = [self.addSwitch('s%d' % number) for number in (1, 2)]
        for number, switch in enumerate(switches, 1):
            for place, tenant in enumerate(('b', 'r')):
                mac = '00:00:00:00:00:%02x' % (number + 2 * place)
                self.addLink(self.addHost(tenant + str(number), ip='10.0.0.%d' % number, mac=mac), switch)
        self.addLink('s1', 's2', 3, 3)

topos = {'servers': Servers}
"#;

fn write(folder: &Path, name: &str, text: &str) -> Result<String> {
    let file = folder.join(name);
    std::fs::write(&file, text).map_err(|error| format!("no {name}: {error}"))?;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&file, private).map_err(|error| format!("{name}: {error}"))?;
    Ok(file.display().to_string())
}

/// The node's file, the slices alone, and the keys.
fn write_config(folder: &Path) -> Result<String> {
    let line = |of: &u32| format!("{of} {}\n", "0f".repeat(32));
    let of_agents: String = [1, 2].iter().map(line).collect();
    let keys = write(folder, "node.keys", &of_agents)?;
    // Agents also have the key of the service.
    write(folder, "keys", &(of_agents + &line(&0)))?;
    let vnic = |name: &str, of: u32| {
        format!(
            "{name} = {{ port = 's{of}:1', rate = '8M', number = {of}, mac = '00:00:00:00:00:0{of}', agent = {of} }}\n"
        )
    };
    let slices = format!(
        "[slice.blue]\ncontrollers = ['127.0.0.1:{BLUE}']\nisolation = 'vlan'\ntag = 10\nlinks = ['s1:3-s2:3']\n\
         [slice.blue.vnics]\n{}{}\
         [slice.red]\ncontrollers = ['127.0.0.1:{RED}']\nisolation = 'vlan'\ntag = 20\nlinks = ['s1:3-s2:3']\n\
         own_ports = ['s1:2', 's2:2']\n",
        vnic("E", 1),
        vnic("F", 2)
    );
    write(folder, "slices.toml", &slices)?;
    let node =
        format!("[network]\n[network.labels]\nlisten = ['{AGENTS}']\nkeys = '{keys}'\nlink_rate = '10M'\n");
    write(folder, "burnet.toml", &(node + &slices))
}

fn start_agent(sandbox: &Sandbox, of: u32) -> Result<Child> {
    let other = 3 - of;
    let text = format!(
        "agent = {of}\ndevice = 's{of}-eth3'\nrate = '10M'\nlisten = '127.0.0.1:666{of}'\nslices = 'slices.toml'\nkeys = 'keys'\n\
         service = {{ address = '{AGENTS}' }}\n[peers]\n{other} = '127.0.0.1:666{other}'\n"
    );
    let (file, name) = (write(sandbox.folder(), &format!("edge{of}.toml"), &text)?, format!("edge{of}"));
    // nsenter knows the process id from outside only, so the process tells its own.
    let mut command = sandbox.command("sh");
    command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(pid_file(sandbox, of)).arg(binary()?);
    command.args(["edge", &file]).stdout(sandbox.log(&name)?).stderr(sandbox.log(&name)?);
    command.spawn().map_err(|error| format!("no agent: {error}"))
}

fn pid_file(sandbox: &Sandbox, of: u32) -> PathBuf {
    sandbox.folder().join(format!("edge{of}.pid"))
}

/// Ends an agent as systemd would, and waits.
fn end_agent(sandbox: &Sandbox, of: u32, mut agent: Child) -> Result<()> {
    let pid =
        std::fs::read_to_string(pid_file(sandbox, of)).map_err(|error| format!("agent {of}: {error}"))?;
    sandbox.must(LIMIT, "kill", &["-TERM", pid.trim()])?;
    match agent.wait() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("agent {of} ended so: {other:?}")),
    }
}

/// The label of red for the direction in which E sends to F.
fn label(node: &Node<'_>) -> Result<Option<u64>> {
    let labels = node.ask(&["slice", "labels", "red"])?;
    let items = labels["items"].as_array().cloned().unwrap_or_default();
    let from_s1 =
        |item: &&Value| item["link"].as_str().is_some_and(|it| it.starts_with("of:0000000000000001/3"));
    Ok(items.iter().find(from_s1).and_then(|item| item["label_kbps"].as_u64()))
}

fn wait_label(node: &mut Node<'_>, what: &str, expected: u64) -> Result<()> {
    node.wait_until(what, |node| match label(node)? {
        Some(label) if label == expected => Ok(true),
        other => Err(format!("{other:?} instead of {expected}")),
    })
}

#[test]
#[ignore = "needs root, Open vSwitch, Mininet, nftables and iproute2"]
fn labels_follow_what_agents_meter() {
    scenario("edge", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        stand_in::start_version(sandbox, BLUE, Version::V1_3)?;
        stand_in::start_version(sandbox, RED, Version::V1_3)?;
        let config = write_config(sandbox.folder())?;
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN])?;
        let mut mininet = Mininet::start_class(sandbox, "servers", TOPOLOGY, Controller::Tcp(PORT))?;
        node.wait_for_switches(2)?;
        let pings = sandbox.folder().join("pings");
        mininet.begin_pings("b1", "10.0.0.2", 10_000, 50, &pings)?;
        let left = CAPACITY_KBPS - BLUE_KBPS;
        wait_label(&mut node, "without agents, rules count", left)?;
        let agents = [start_agent(sandbox, 1)?, start_agent(sandbox, 2)?];
        node.wait_for_log("agent 1 meters and shapes")?;
        node.wait_for_log("agent 2 meters and shapes")?;
        wait_label(&mut node, "the meter sees pings", left)?;
        mininet.at_host("b1", "kill $(jobs -p); wait")?;
        wait_label(&mut node, "the meter sees nothing any more", CAPACITY_KBPS)?;
        mininet.begin_pings("b1", "10.0.0.2", 10_000, 50, &pings)?;
        wait_label(&mut node, "the meter sees pings again", left)?;
        let shaped = sandbox.must(LIMIT, "tc", &["class", "show", "dev", "s1-eth3"])?;
        if !shaped.contains("htb") {
            return Err(format!("s1-eth3 is not shaped: {shaped}"));
        }
        node.kill_app("labels")?;
        wait_label(&mut node, "the agents tell the new process", left)?;
        (1..).zip(agents).try_for_each(|(of, agent)| end_agent(sandbox, of, agent))?;
        let left_behind = sandbox.must(LIMIT, "tc", &["qdisc", "show", "dev", "s1-eth3"])?;
        if left_behind.contains("htb") {
            return Err(format!("an agent left its classes: {left_behind}"));
        }
        mininet.exit()?;
        node.stop()
    });
}
