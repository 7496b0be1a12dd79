//! How long a node is without what crashed: prints how soon a crashed app is noticed and back, and a killed kernel has its switches back.
//!
//! ```text
//!   cargo build --release -p burnet && cargo run --release -p burnet --example recovery [ROUNDS]
//! ```
//!
//! In: how many rounds. Out: the distribution of each time, in milliseconds. It starts nodes of its own on a port of this machine, and
//! fails if rules in the switches did not outlive the kernel process. It never fails for a time.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use burnet::node::client;
use burnet::node::operator::{Answer, AppView, Question};
use emulator::{Emulation, SwitchOptions, Topology, Versions};
use monitor::{AppState, Verb};
use rustix::process::{Pid, Signal, kill_process};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The longest that anything may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// As many as the experiments' network has.
const SWITCHES: usize = 16;

const APP: &str = "learning-switch";

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map(|rounds| rounds.parse()).transpose()?.unwrap_or(20);
    let (mut noticed, mut back) = (Vec::new(), Vec::new());
    let node = Node::start(free_port()?)?;
    for _ in 0..rounds {
        let (noticed_ms, back_ms) = crash_the_app(&node)?;
        noticed.push(noticed_ms);
        back.push(back_ms);
    }
    drop(node);
    print("crashed app noticed", noticed);
    print("crashed app back", back);
    let kernels: Vec<(f64, f64)> = (0..rounds).map(|_| kill_the_kernel()).collect::<Result<_>>()?;
    let (listens, switches) = kernels.into_iter().unzip();
    print("killed kernel answers", listens);
    print(&format!("killed kernel has {SWITCHES} switches back"), switches);
    Ok(())
}

/// Kills the app's own process. When the monitor noticed, and when the app had subscribed again.
fn crash_the_app(node: &Node) -> Result<(f64, f64)> {
    // Its failures are forgotten, so that each is the first.
    let old = node.app()?.ok_or("the app is gone")?.status.generation;
    node.ask(&Question::App { app: APP.to_owned(), verb: Verb::Restart, why: None })?;
    let again = |app: &AppView| settled(app) && app.status.generation > old;
    let before = node.until(|node| Ok(node.app()?.filter(again)))?.status;
    let launcher = before.pid.ok_or("it has no process")?;
    // Below the launcher is init, and below that the app; without namespaces the launcher has become the app.
    let mut app = launcher;
    while let Some(below) = child_of(app) {
        app = below;
    }
    let (wall, began) = (unix_ms(), Instant::now());
    kill(app)?;
    node.until(|node| {
        Ok(node.app()?.filter(|app| app.status.generation > before.generation && settled(app)))
    })?;
    let back = ms(began);
    let end = node.app()?.and_then(|app| app.status.last_end).ok_or("nobody noticed")?;
    Ok((end.unix_ms as f64 - wall, back))
}

fn settled(app: &AppView) -> bool {
    app.status.state == AppState::Running && app.commands > 0
}

/// Kills the kernel process of a fresh node. When its successor answered, and when all switches were up.
fn kill_the_kernel() -> Result<(f64, f64)> {
    let node = Node::start(free_port()?)?;
    let topology: Topology = format!("linear,{SWITCHES}").parse().map_err(|error| format!("{error:?}"))?;
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&topology, format!("127.0.0.1:{}", node.port).parse()?, &options)?;
    network.wait_connected(PATIENCE)?;
    node.until(|node| Ok((node.switches()? == SWITCHES).then_some(())))?;
    network.ping_all(PATIENCE);
    let before = node.rules()?;
    let pid = node.kernel()?;
    let began = Instant::now();
    kill(pid)?;
    node.until(|node| Ok(node.kernel().ok().filter(|now| *now != pid)))?;
    let answers = ms(began);
    node.until(|node| Ok((node.switches().unwrap_or(0) == SWITCHES).then_some(())))?;
    let switches = ms(began);
    let after = node.rules()?;
    for (rule, lived_s) in &before {
        let lives_on = after.iter().any(|(other, now_s)| other == rule && now_s >= lived_s);
        if !lives_on {
            return Err(format!("a rule did not outlive the kernel process: {rule}").into());
        }
    }
    Ok((answers, switches))
}

fn print(what: &str, mut times_ms: Vec<f64>) {
    times_ms.sort_by(f64::total_cmp);
    let at = |part: f64| times_ms[((times_ms.len() - 1) as f64 * part).round() as usize];
    println!(
        "{what:36} {:4} times   min {:7.1} ms   median {:7.1} ms   90 % {:7.1} ms   max {:7.1} ms",
        times_ms.len(),
        at(0.0),
        at(0.5),
        at(0.9),
        at(1.0)
    );
}

struct Node {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Node {
    fn start(port: u16) -> Result<Node> {
        let folder = std::env::temp_dir().join(format!("burnet-recovery-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        // Examples are built into a folder beside the binary.
        let binary = std::env::current_exe()?.with_file_name("../burnet");
        let mut command = Command::new(binary);
        command.args(["run", "--log", "error", "--die-with-parent", "--app", APP, "--listen"]);
        command.arg(format!("127.0.0.1:{port}")).arg("--socket").arg(folder.join("n.sock"));
        let child =
            command.arg("--records").arg(&folder).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let node = Node { child, folder, port };
        node.until(|node| Ok(node.app().ok().flatten().filter(settled)))?;
        Ok(node)
    }

    fn ask(&self, question: &Question) -> Result<Answer> {
        Ok(client::ask(&self.folder.join("n.sock"), question)?)
    }

    /// As soon as there is one; asked about a thousand times a second.
    fn until<T>(&self, mut found: impl FnMut(&Node) -> Result<Option<T>>) -> Result<T> {
        let began = Instant::now();
        loop {
            if let Ok(Some(found)) = found(self) {
                return Ok(found);
            }
            if began.elapsed() > PATIENCE {
                return Err("it did not come to be".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn app(&self) -> Result<Option<AppView>> {
        match self.ask(&Question::Apps)? {
            Answer::Apps(apps) => Ok(apps.into_iter().find(|app| app.status.app == APP)),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn kernel(&self) -> Result<u32> {
        match self.ask(&Question::Node)? {
            Answer::Node(node) => Ok(node.pid),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn switches(&self) -> Result<usize> {
        match self.ask(&Question::Node)? {
            Answer::Node(node) => Ok(node.switches),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// The rules of apps in all switches, and how long each has lived.
    fn rules(&self) -> Result<Vec<(String, f64)>> {
        let Answer::Flows(switches) = self.ask(&Question::Flows { datapath: None })? else {
            return Err("no flows".into());
        };
        let mut rules = Vec::new();
        for switch in switches {
            for flow in switch.flows.into_iter().filter(|flow| flow.owner == APP) {
                let rule = format!("{} {} {} {}", switch.datapath, flow.cookie, flow.matching, flow.actions);
                rules.push((rule, flow.duration_s));
            }
        }
        Ok(rules)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A child of a process. Every process is looked at, since not every Linux lists children.
fn child_of(pid: u32) -> Option<u32> {
    let is_child = |candidate: &u32| {
        let stat = fs::read_to_string(format!("/proc/{candidate}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(pid)
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.find(is_child)
}

fn kill(pid: u32) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(pid)?).ok_or("no process")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0
}
