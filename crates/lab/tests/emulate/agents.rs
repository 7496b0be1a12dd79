//! A whole node, an emulated network with agents at its hosts, and two slices on an overbooked link, while the service of labels is down.

use emulator::{Emulation, FlowId, FlowSpec, Handle, SwitchOptions, Topology, Versions};
use lab::emulate::{AgentArgs, AgentsAtWork};
use serde_json::Value;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

/// What the service takes for the capacity of the link. The cable carries more: without caps, both flows get more than theirs.
const CAPACITY_MBPS: f64 = 6.0;
const CABLE_KBPS: u64 = 10_000;

/// The slices with the promised rates. Their shares of the link are the caps: 8 and 10 eighteenths.
const SLICES: [(&str, u32, f64); 2] = [("blue", 10, 8.0), ("red", 20, 10.0)];

/// How long the service is down. A cap that nobody repeats would end after three seconds, and the rates of the flows would rise.
const DOWN: Duration = Duration::from_secs(9);

/// The time over which rates are measured.
const LOOK: Duration = Duration::from_secs(2);

fn burnet() -> Bed {
    Bed::new(Path::new(env!("CARGO_BIN_EXE_burnet-lab")).with_file_name("burnet"))
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn cap_mbps(slice: usize) -> f64 {
    let sum: f64 = SLICES.iter().map(|(_, _, rate)| rate).sum();
    CAPACITY_MBPS * SLICES[slice].2 / sum
}

/// The hosts of a slice: on the first switch, and on the second.
fn hosts(slice: usize) -> [String; 2] {
    [1, 2].map(|switch| format!("h{}s{switch}", slice + 1))
}

struct World {
    bed: Bed,
    node: Node,
    network: Arc<Handle>,
    _agents: AgentsAtWork,
    _tenants: Vec<Node>,
}

impl World {
    fn new() -> World {
        let bed = burnet();
        let tenants: Vec<Node> =
            SLICES.iter().map(|_| burnet().node().app("learning-switch").start_ready()).collect();
        let mut topology: Topology = "linear,2,2".parse().unwrap();
        topology.links.iter_mut().for_each(|link| link.quality.rate_bits_per_s = Some(CABLE_KBPS * 1_000));
        let (service, rest) = (free(), free());
        let keys: String = (1u8..=4).map(|of| format!("{of} {}\n", format!("{of:02x}").repeat(32))).collect();
        let keys = bed.file("keys", &keys);
        std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let slices: String = (0..SLICES.len()).map(|at| slice(at, &tenants[at], &topology)).collect();
        let config = format!(
            "[network]\nservices = ['discovery', 'labels', 'northbound']\n[network.northbound]\nlisten = ['{rest}']\n\
             [network.labels]\nlisten = ['{service}']\nkeys = '{}'\nlink_rate = '{CAPACITY_MBPS}M'\n{slices}",
            keys.display()
        );
        let node = bed.node().config(&config).log("info").start_ready();
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Arc::new(Emulation::start(&topology, node.address(), &options).unwrap());
        network.wait_connected(PATIENCE).unwrap();
        let (agents, agent_keys) = (Some(bed.file("slices.toml", &slices)), Some(keys));
        let agent_rate = "100M".parse().unwrap();
        let arguments = AgentArgs { agents, agent_keys, agent_service: Some(service), agent_rate };
        let agents = arguments.plan(&topology).unwrap().unwrap().start(network.clone()).unwrap();
        let world = World { bed, node, network, _agents: agents, _tenants: tenants };
        for slice in 0..SLICES.len() {
            let [from, to] = hosts(slice);
            world.node.wait("the hosts of a slice reach each other", |_| world.ping(&from, &to));
        }
        world
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    /// What the flows get, in Mbit/s, while something else is done.
    fn rates(&self, flows: [FlowId; 2], mut meanwhile: impl FnMut()) -> [f64; 2] {
        let delivered = || flows.map(|flow| self.network.flow_report(flow).unwrap().delivered_bytes as f64);
        let (before, began) = (delivered(), Instant::now());
        while began.elapsed() < LOOK {
            meanwhile();
            std::thread::sleep(Duration::from_millis(10));
        }
        let (after, took) = (delivered(), began.elapsed().as_secs_f64());
        [0, 1].map(|at| (after[at] - before[at]) * 8.0 / 1e6 / took)
    }

    /// The labels of red, and whether they are stale. None: the service does not answer.
    fn labels(&self) -> Option<(Value, bool)> {
        let done = self.bed.run(&["slice", "labels", "red", "--json"]);
        let mut labels: Value = serde_json::from_slice(&done.stdout).ok()?;
        Some((labels["items"].take(), labels["stale"].as_bool()?))
    }

    fn wait_fresh(&self, what: &str) -> Value {
        let mut labels = Value::Null;
        self.node.wait(what, |_| match self.labels() {
            Some((items, false)) => {
                labels = items;
                true
            }
            _ => false,
        });
        labels
    }

    /// What `burnet slice watch red` prints from now on.
    fn watch(&self) -> Watch {
        let path = self.bed.path("watched");
        let to = File::create(&path).unwrap();
        let mut command = self.bed.burnet();
        command.args(["slice", "watch", "red"]).stdin(Stdio::null()).stdout(to).stderr(Stdio::null());
        Watch { child: command.spawn().unwrap(), path }
    }
}

/// A slice with a VNIC on each switch, each on the server of an agent of its own.
fn slice(at: usize, tenant: &Node, topology: &Topology) -> String {
    let (name, tag, rate) = SLICES[at];
    let vnics = hosts(at).into_iter().enumerate().map(|(end, host)| {
        let mac = topology.hosts.iter().find(|it| it.name == host).unwrap().mac;
        let number = 2 * at + end + 1;
        format!(
            "V{number} = {{ port = 's{}:{}', rate = '{rate}M', number = {number}, mac = '{mac}', agent = {number} }}\n",
            end + 1,
            at + 1
        )
    });
    format!(
        "[slice.{name}]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = {tag}\nlinks = ['s1:3-s2:3']\n[slice.{name}.vnics]\n{}",
        tenant.address(),
        vnics.collect::<String>()
    )
}

struct Watch {
    child: Child,
    path: std::path::PathBuf,
}

impl Watch {
    /// Whether the last line about all labels says this.
    fn says(&self, words: &str) -> bool {
        let text = std::fs::read_to_string(&self.path).unwrap();
        text.lines().rfind(|line| line.starts_with("labels/red ")).is_some_and(|line| line.contains(words))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stalled machine can make a rate too low for a while. No stall makes it too high.
fn is_above(rates: [f64; 2]) -> bool {
    (0..2).any(|slice| rates[slice] > 1.1 * cap_mbps(slice))
}

fn are_near(rates: [f64; 2]) -> bool {
    !is_above(rates) && (0..2).all(|slice| rates[slice] > 0.9 * cap_mbps(slice))
}

#[test]
fn rates_stay_and_labels_are_stale_while_the_service_of_labels_is_down() {
    let world = World::new();
    let flow = |slice: usize| {
        let [from, to] = hosts(slice);
        world.network.start_flow(FlowSpec::udp(&from, &to, 9_300_000)).unwrap()
    };
    let flows = [flow(0), flow(1)];
    world.node.wait("both flows are held to their caps", |_| are_near(world.rates(flows, || ())));
    let before = world.wait_fresh("all slices have reported");
    assert!(before.as_array().is_some_and(|labels| labels.len() == 2), "{before}");
    let watch = world.watch();
    world.node.wait("the watch begins", |_| watch.says("stale=false"));

    let (began, mut killed, mut seen) = (Instant::now(), 0, Vec::new());
    // The node starts it again, longer after each time: it never lives for long.
    while began.elapsed() < DOWN {
        let rates = world.rates(flows, || {
            if let Some(pid) = world.node.pid_of("labels") {
                kill(pid);
                killed += 1;
            }
        });
        seen.push(rates);
        assert!(!is_above(rates), "without the service, the flows get {seen:?} Mbit/s");
        assert!(watch.says("stale=true"), "the labels of a service that is gone are marked");
    }
    assert!(killed >= 2, "the service was not down");
    assert!(seen.into_iter().any(are_near), "the flows do not send");

    let after = world.wait_fresh("the slices rebuild what the service knows");
    world.node.wait("the watch goes on", |_| watch.says("stale=false"));
    world.node.wait("both flows have their caps again", |_| {
        let rates = world.rates(flows, || ());
        assert!(!is_above(rates), "while the service learns the flows again, they get {rates:?} Mbit/s");
        let flows = world.bed.run(&["slice", "flows", "red", "--json"]).stdout;
        let flows: Value = serde_json::from_slice(&flows).unwrap_or_default();
        let has_cap = |flow: &Value| flow["cap_bps"].is_u64();
        are_near(rates) && flows["items"].as_array().is_some_and(|flows| flows.iter().any(has_cap))
    });
    world.node.wait("the labels are the same again", |_| world.labels().is_some_and(|(it, _)| it == before));
    drop(after);
}
