//! The parts of Figure 3 in a network of their own: a node with a hundred slices, and agents on three servers.
//!
//! ```text
//!   frames ──> bridge (fig3.py) ──> burnet edge, three times ──> burnet run: labels ──> 100 slices ──> controllers (tenants.rs)
//!   emulated switches with the rules of the first slice ─────────────┘
//! ```
//!
//! In: how many rounds. Out: what was seen, in seconds since 1970, by one clock. It judges nothing. The frames of the servers cross a bridge of Linux, and
//! the slices' rules are in emulated switches: nothing else of it is emulated.

use super::bare;
use super::tenants::{Tenants, now_s};
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node};
use emulator::{Handle, SwitchOptions, Topology};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first slice sends. The others see the same link.
pub(super) const OTHERS: usize = 99;
const CAPACITY_KBPS: u32 = 10_000;
/// The rates of both flows, in kb/s.
const RATES_KBPS: [u32; 2] = [8_000, 2_000];
/// The tag of the first slice, as `fig3.py` has it.
const TAG: usize = 100;
const AGENTS: &str = "10.9.0.254:6656";
const SERVERS: [&str; 3] = ["s1", "s2", "r"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Increases are spread over a second, and a label has a notice in 100 ms at most.
const SPREAD: Duration = Duration::from_millis(1_300);
/// A class stays for ten seconds after the last packet, and a flow counts for two. Then a flow is new again.
const FORGOTTEN: Duration = Duration::from_secs(13);
/// How long each flow is watched.
const WATCHED_S: f64 = 0.5;
const SCRIPT: &str = include_str!("../../../labels/fig3.py");

/// What a flow's beginning gave.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Begun {
    /// The flow.
    pub flow: Option<usize>,
    /// Time, what, and which flow.
    pub events: Vec<(f64, String, usize)>,
    /// When each of the other controllers was told.
    pub told_s: Vec<f64>,
    /// When the service of labels had computed the label of each other slice, as that slice says.
    #[serde(default)]
    pub labels_s: Vec<f64>,
}

/// What the part has seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// For each change of a rule: from the flow mod until each of the other controllers was told, in seconds.
    pub rules_s: Vec<Vec<f64>>,
    /// The same for processes that only pass a wake-up on.
    #[serde(default)]
    pub bare_s: Vec<Vec<f64>>,
    /// The first flow of each round, alone, and then the second.
    pub rounds: Vec<[Begun; 2]>,
}

/// Runs it.
///
/// # Errors
/// A process does not start, or something does not happen in time.
pub(super) fn run(is_short: bool) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    let lab = Lab::new(&own.with_file_name("burnet"), is_short)?;
    let mut seen = Seen { bare_s: bare::measure(OTHERS, lab.times(20, 3))?, ..Seen::default() };
    let mut world = World::start(&lab)?;
    for number in 0..lab.times(100, 3) {
        lab.say(&format!("rule {}", number + 1));
        seen.rules_s.push(world.rule()?);
    }
    world.start_agents()?;
    for number in 0..lab.times(10, 1) {
        lab.say(&format!("round {}", number + 1));
        seen.rounds.push(world.round()?);
    }
    serde_json::to_string(&seen).map_err(|error| error.to_string())
}

struct World {
    tenants: Tenants,
    node: Node,
    _network: Handle,
    servers: Servers,
    burnet: PathBuf,
    agents: Vec<Ended>,
}

/// A child that ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _over = self.0.kill();
        let _over = self.0.wait();
    }
}

impl World {
    fn start(lab: &Lab) -> Result<World, String> {
        let tenants = Tenants::listen()?;
        let folder = lab::own_node::own_folder().map_err(|error| error.to_string())?;
        let servers = Servers::start(&folder)?;
        let of_node = write(&folder, "node.keys", &keys(&[1, 2, 3]))?;
        write(&folder, "agents.keys", &keys(&[0, 1, 2, 3]))?;
        let slices = slices(&tenants);
        write(&folder, "slices.toml", &slices)?;
        let configuration = format!(
            "[node]\nlog = 'info'\n[network]\nservices = ['discovery', 'labels']\n[network.labels]\nlink_rate = '10M'\nlisten = ['{AGENTS}']\n\
             keys = '{}'\n{slices}",
            of_node.display()
        );
        let node = Node::start(lab, Kind::Burnet, &configuration)?;
        let address = node.wait(&["slice.blue", "labels", "slice.t099"])?;
        let mut topology: Topology = "linear,2,2".parse().map_err(|error| format!("{error}"))?;
        topology.links.iter_mut().for_each(|link| {
            link.quality.rate_bits_per_s = Some(u64::from(CAPACITY_KBPS) * 1_000);
        });
        let network = network::begin(&topology, address, SwitchOptions::default())?;
        network.wait_connected(PATIENCE).map_err(|error| error.to_string())?;
        let mut world = World {
            tenants,
            node,
            _network: network,
            servers,
            burnet: lab.burnet.clone(),
            agents: Vec::new(),
        };
        world.wait(CAPACITY_KBPS).map_err(|why| format!("{why}; {}", world.end_of_log()))?;
        for (matching, actions) in
            [("in_port=3,dl_dst=02:00:00:00:00:03", "1"), ("in_port=3,dl_dst=02:00:00:00:00:04", "2")]
        {
            world.tenants.rule(2, true, matching, &format!("output:{actions}"))?;
        }
        // The first labels were notices too: one more within 100 ms of them would wait.
        sleep(SPREAD);
        Ok(world)
    }

    fn end_of_log(&self) -> String {
        let log = self.node.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    }

    /// Waits until all other controllers have this label.
    fn wait(&mut self, label_kbps: u32) -> Result<Vec<f64>, String> {
        self.tenants.wait(1, label_kbps, OTHERS, PATIENCE)
    }

    /// A rule gives the first flow a path, and is removed again.
    fn rule(&mut self) -> Result<Vec<f64>, String> {
        let at_s = self.tenants.rule(1, true, "in_port=1", "output:3")?;
        let told_s = self.wait(CAPACITY_KBPS - RATES_KBPS[0])?;
        self.tenants.rule(1, false, "in_port=1", "output:3")?;
        self.wait(CAPACITY_KBPS)?;
        sleep(SPREAD);
        Ok(told_s.into_iter().map(|told| told - at_s).collect())
    }

    fn start_agents(&mut self) -> Result<(), String> {
        for (server, number) in SERVERS.iter().zip(1..) {
            let peers = (1..=SERVERS.len()).filter(|peer| *peer != number);
            let peers: String = peers.map(|peer| format!("{peer} = '10.9.0.{peer}:6655'\n")).collect();
            let text = format!(
                "agent = {number}\ndevice = 'eth0'\nrate = '10M'\nlisten = '10.9.0.{number}:6655'\nslices = 'slices.toml'\n\
                 keys = 'agents.keys'\nservice = {{ address = '{AGENTS}' }}\n[peers]\n{peers}"
            );
            let folder = self.servers.folder.clone();
            let file = write(&folder, &format!("edge{number}.toml"), &text)?;
            let mut command = Command::new("ip");
            command.args(["netns", "exec", server]).arg(&self.burnet).arg("edge").arg(file);
            let log = std::fs::File::create(folder.join(format!("edge{number}.log")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.map_or(Stdio::null(), Stdio::from));
            let child = command.spawn().map_err(|error| format!("an agent cannot be run: {error}"))?;
            self.agents.push(Ended(child));
        }
        let began = Instant::now();
        while !(1..=3).all(|it| self.node.log().contains(&format!("agent {it} meters and shapes"))) {
            if began.elapsed() > PATIENCE {
                return Err(format!("the agents are not there: {}", self.end_of_log()));
            }
            sleep(Duration::from_millis(50));
        }
        // With agents, rules alone do not count.
        self.tenants.rule(1, true, "in_port=1", "output:3")?;
        self.tenants.rule(1, true, "in_port=2", "output:3")?;
        sleep(SPREAD);
        Ok(())
    }

    /// When the service had computed this label, for each other slice.
    fn labels_s(&self, label_kbps: u32) -> Result<Vec<f64>, String> {
        let mut command = Command::new(&self.burnet);
        command.args(["slice", "list", "--json", "--socket"]).arg(self.node.socket());
        let output = command.output().map_err(|error| format!("burnet cannot be run: {error}"))?;
        let listed: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
            format!("burnet slice list: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })?;
        let others = listed.as_array().into_iter().flatten().filter(|it| it["slice"] != "blue");
        let labels = others.flat_map(|it| it["detail"]["Ok"]["labels"].as_array().into_iter().flatten());
        let of_change = labels.filter(|it| it["label_kbps"] == label_kbps);
        Ok(of_change.filter_map(|it| Some(it["at_us"].as_f64()? / 1e6)).collect())
    }

    /// The first flow begins, and the second one later.
    fn round(&mut self) -> Result<[Begun; 2], String> {
        let mut begun = [Begun::default(), Begun::default()];
        let mut left = CAPACITY_KBPS;
        for (flow, for_s) in [(0, 4.0), (1, 1.5)] {
            let at_s = now_s();
            self.servers.ask(&json!({ "do": "send", "flow": flow, "for_s": for_s }))?;
            left -= RATES_KBPS[flow];
            let told_s = self.wait(left)?.into_iter().filter(|told| *told >= at_s).collect();
            let answer = self.servers.ask(&json!({ "do": "seen", "flow": flow, "within_s": WATCHED_S }))?;
            let events = serde_json::from_value(answer["events"].clone());
            let events = events.map_err(|error| format!("fig3.py says {answer}: {error}"))?;
            // Asked when all have been told, so that the question delays no notice.
            let labels_s = self.labels_s(left)?;
            begun[flow] = Begun { flow: Some(flow), events, told_s, labels_s };
            sleep(Duration::from_secs(1));
        }
        self.wait(CAPACITY_KBPS)?;
        sleep(FORGOTTEN);
        Ok(begun)
    }
}

/// `fig3.py`, which has the servers.
struct Servers {
    child: Ended,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _over = std::fs::remove_dir_all(&self.folder);
    }
}

impl Servers {
    fn start(folder: &Path) -> Result<Servers, String> {
        let script = write(folder, "fig3.py", SCRIPT)?;
        let mut command = Command::new("python3");
        command.arg("-B").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Ended(command.spawn().map_err(|error| format!("python3 cannot be run: {error}"))?);
        let pipes = child.0.stdin.take().zip(child.0.stdout.take());
        let (input, output) = pipes.ok_or("fig3.py has no input or output")?;
        let mut servers = Servers { child, input, output: BufReader::new(output), folder: folder.to_owned() };
        match servers.line()?.trim() {
            "ready" => Ok(servers),
            other => Err(format!("fig3.py says {other:?}")),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(1..) => Ok(line),
            _ => Err(format!("fig3.py has ended: {:?}", self.child.0.try_wait())),
        }
    }

    fn ask(&mut self, request: &Value) -> Result<Value, String> {
        writeln!(self.input, "{request}").map_err(|error| format!("fig3.py has ended: {error}"))?;
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("fig3.py says {line:?}: {error}"))
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    std::fs::write(&path, text).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(path)
}

fn keys(of: &[u32]) -> String {
    of.iter().map(|it| format!("{it} {}\n", "0f".repeat(32))).collect()
}

/// The slice with VNICs, and those that only see the link.
fn slices(tenants: &Tenants) -> String {
    let [first, others] = tenants.addresses;
    let vnic = |(name, port, kbps, number, agent): (&str, &str, u32, u32, u32)| {
        format!(
            "{name} = {{ port = '{port}', rate = '{kbps}k', number = {number}, mac = '02:00:00:00:00:0{number}', agent = {agent} }}\n"
        )
    };
    let vnics = [
        ("A", "s1:1", RATES_KBPS[0], 1, 1),
        ("C", "s1:2", RATES_KBPS[1], 2, 2),
        ("B", "s2:1", RATES_KBPS[0], 3, 3),
        ("D", "s2:2", RATES_KBPS[1], 4, 3),
    ];
    let slice = |name: &str, tag: usize, controller| {
        format!(
            "[slice.{name}]\ncontrollers = ['{controller}']\nisolation = 'vlan'\ntag = {tag}\nlabels = 'experimenter'\nlinks = ['s1:3-s2:3']\n"
        )
    };
    let first = slice("blue", TAG, first) + "[slice.blue.vnics]\n" + &vnics.map(vnic).concat();
    let others = (1..=OTHERS).map(|number| slice(&format!("t{number:03}"), number, others));
    first + &others.collect::<String>()
}
