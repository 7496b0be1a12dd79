//! One run of the testbed: hosts, node, switch, Redis, clients.
//!
//! In: what the switch is, and what the clients do. Out: what was seen, and what the meter says of the run. It judges nothing.

use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::bounded::{self, Killed, Printed};
use super::capture::{Delay, Delays, Plan as CapturePlan};
use super::clients::{Plan as ClientsPlan, Report};
use super::sandbox::{PATIENCE, Sandbox};
use super::slow_hosts;
use crate::lab::Lab;
use crate::models::virtual_bed::{Seen, TIMEOUT};
use emulator::RuleTimeouts;

const CONTROL_PORT: u16 = 6653;
const PROXY: &str = "127.0.0.1:6650";
const SERVER: &str = "10.0.0.2:6379";
const PORTS: [&str; 2] = ["s1-eth1", "s1-eth2"];
/// What is run. The first two are not on every machine with Open vSwitch.
const TOOLS: [&str; 8] =
    ["redis-server", "ethtool", "ip", "tc", "unshare", "nsenter", "ovs-vswitchd", "ovs-vsctl"];
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const LOOK: Duration = Duration::from_millis(100);

/// What drops SYNs of hosts in slow motion.
const NFT: &str = "nft";
/// Clients that wait at once, if the experiment does not say.
const OPEN_MAX: usize = 2000;
/// After this time of the switch, it has done what storing the value left it to do.
const PAUSE_MS: u64 = 500;
/// A node's time-outs in milliseconds, as it has them by default. In slow motion they are longer.
const NODE_TIMES_MS: [(&str, u32); 3] =
    [("echo_interval_ms", 5_000), ("echo_timeout_ms", 15_000), ("handshake_timeout_ms", 10_000)];

/// The switch of a run.
#[derive(Clone, Debug)]
pub enum Device {
    /// Burnet's software switch at the interfaces, with a profile: its text.
    Native(String),
    /// Open vSwitch alone.
    Ovs,
    /// Open vSwitch behind the proxy, with a profile and a model: `full` or `paper`.
    Proxied(String, &'static str),
}

/// What the clients of a run do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The time between two clients.
    pub every: Duration,
    /// For how long clients begin.
    pub lasts: Duration,
    /// What begins earlier is not counted.
    pub counted_from: Duration,
    /// The value that each asks for.
    pub value_bytes: usize,
    /// After this time, a query has failed.
    pub timeout: Duration,
    /// How many may be open at once. More do not begin.
    pub open_max: usize,
    /// The time-outs of rules.
    pub rules: RuleTimeouts,
    /// How many times slower than the switch this runs. All other times here are those of the clock.
    pub slow_motion: u32,
    /// Processes that only use a core, beside the run.
    pub busy_loops: usize,
    /// The seed of what the switch leaves to chance. With one seed for all runs, a switch would differ from itself by nothing.
    pub seed: u64,
}

impl Load {
    /// A run in real time, with POX's rules and nothing beside it.
    pub fn in_real_time(
        every: Duration,
        lasts: Duration,
        counted_from: Duration,
        value_bytes: usize,
    ) -> Load {
        Load {
            every,
            lasts,
            counted_from,
            value_bytes,
            timeout: TIMEOUT,
            open_max: OPEN_MAX,
            rules: RuleTimeouts::POX,
            slow_motion: 1,
            busy_loops: 0,
            seed: 1,
        }
    }

    /// The node's configuration. As POX: a rule for each flow, and packets wait in the switch until their rule releases them.
    fn node(&self) -> String {
        let times: String = NODE_TIMES_MS
            .iter()
            .map(|(key, ms)| format!("{key} = {}\n", ms.saturating_mul(self.slow_motion.max(1))))
            .collect();
        let RuleTimeouts { idle_s, hard_s } = self.rules;
        format!(
            "[southbound]\nmiss_send_len = 128\n{times}[app.learning-switch.settings]\nmatch = \"flow\"\n\
             idle_timeout_s = {idle_s}\nhard_timeout_s = {hard_s}\n"
        )
    }
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was seen.
    pub seen: Seen,
    /// What the meter says, and why. Open vSwitch alone has no meter.
    pub validity: Option<(String, Vec<String>)>,
    /// Frames that were not captured, and directions of the control channel that could not be read.
    pub unread: u64,
}

/// What is missing on this machine for a run, as a sentence.
fn is_missing(slow_motion: u32) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("the testbed needs root: it makes network namespaces".to_owned());
    }
    let is_there = |tool: &str| FOLDERS.iter().any(|folder| PathBuf::from(folder).join(tool).is_file());
    let slowed = (slow_motion > 1).then_some(NFT);
    let missing: Vec<&str> = TOOLS.into_iter().chain(slowed).filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        return Some(format!(
            "{} not found: apt install redis-server ethtool iproute2 openvswitch-switch nftables",
            missing.join(", ")
        ));
    }
    slowed.and_then(|_| slow_hosts::is_missing())
}

/// Runs clients over a switch.
///
/// # Errors
/// Something does not begin, or ends early: what it said.
pub fn run(lab: &Lab, device: &Device, load: &Load) -> Result<Outcome, String> {
    if let Some(missing) = is_missing(load.slow_motion) {
        return Err(missing);
    }
    let mut bed = Bed { children: Killed::default(), sandbox: Sandbox::new()?, lab };
    bed.make_hosts(load.slow_motion)?;
    let capture = bed.start_capture()?;
    bed.start_node(load)?;
    let player = bed.start_switch(device, load)?;
    bed.wait_for("a switch", |bed| {
        bed.ask(&["switches", "--json"]).is_some_and(|text| text.contains("of:"))
    })?;
    bed.start_redis()?;
    let mut busy = Killed::default();
    for _ in 0..load.busy_loops {
        busy.0.push(busy_loop(load)?);
    }
    let report = bed.run_clients(load)?;
    drop(busy);
    let delays = capture.finish()?;
    let validity = player.map(|player| bed.finish(player)).transpose()?.flatten();
    let unread = delays.dropped + u64::try_from(delays.broken).unwrap_or(u64::MAX);
    Ok(Outcome { seen: seen(&report, &delays, load), validity, unread })
}

/// What is counted of a run.
fn seen(report: &Report, delays: &Delays, load: &Load) -> Seen {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let counted: Vec<_> =
        report.queries.iter().filter(|query| query.began_us >= us(load.counted_from)).collect();
    let completion_us: Vec<f64> = counted.iter().filter_map(|query| query.took_us).collect();
    let from = report.began_unix_us.saturating_add(us(load.counted_from));
    let until = report.began_unix_us.saturating_add(us(load.lasts));
    let within = |all: &[Delay]| -> Vec<f64> {
        let counted = all.iter().filter(|delay| (from..until).contains(&delay.from_unix_us));
        counted.map(|delay| delay.took_us).collect()
    };
    Seen {
        failed: counted.len() - completion_us.len(),
        completion_us,
        ingress_us: within(&delays.ingress),
        egress_us: within(&delays.egress),
        skipped: report.skipped,
        flow_mods: delays.flow_mods,
        refused: delays.refused,
        setups_per_s: 0.0,
    }
}

/// The processes of a run.
struct Bed<'a> {
    /// These are processes of `nsenter`. What runs inside ends with the namespaces.
    children: Killed,
    sandbox: Sandbox,
    lab: &'a Lab,
}

/// A process that says what it found at its end.
struct Player {
    child: Killed,
    /// The file with its process id within the namespaces.
    pid: PathBuf,
}

/// The capture, which ends when its input does.
struct Capture {
    child: Killed,
    printed: Printed,
}

impl Capture {
    fn finish(mut self) -> Result<Delays, String> {
        self.child.0.iter_mut().for_each(|child| drop(child.stdin.take()));
        // What it printed decides, not how it ended.
        let text = self.printed.next("the capture", PATIENCE)?;
        serde_json::from_str(&text).map_err(|why| format!("the capture says {text:?}: {why}"))
    }
}

impl Bed<'_> {
    fn make_hosts(&self, slow_motion: u32) -> Result<(), String> {
        let link = slow_hosts::link(slow_motion);
        for (number, port) in (1..).zip(PORTS) {
            let host = format!("h{number}");
            for line in [
                format!("ip netns add {host}"),
                format!("ip link add {port} type veth peer name eth0 netns {host}"),
                format!("sysctl -q -w net.ipv6.conf.{port}.disable_ipv6=1"),
                format!("ip netns exec {host} sysctl -q -w net.ipv6.conf.all.disable_ipv6=1"),
                format!("ip -n {host} addr add 10.0.0.{number}/24 dev eth0"),
                format!("ip -n {host} link set eth0 up"),
                format!("ip -n {host} link set lo up"),
                format!("ip link set {port} up"),
                // A switch in user space needs whole segments with their checksums.
                format!("ip netns exec {host} ethtool -K eth0 tx off tso off gso off"),
                format!("tc qdisc add dev {port} root {link}"),
                format!("ip netns exec {host} tc qdisc add dev eth0 root {link}"),
            ] {
                self.sandbox.must(&line)?;
            }
            for line in slow_hosts::commands(number, slow_motion) {
                self.sandbox.must(&line)?;
            }
            if slow_motion > 1 {
                let rules = self.write("slow.nft", &slow_hosts::rules(slow_motion))?;
                self.sandbox.must(&format!("ip netns exec {host} {NFT} -f {}", rules.display()))?;
            }
        }
        Ok(())
    }

    /// A command that does a part of the run with this program.
    fn part(&self, name: &str, before: &[&str], part: &str) -> Result<Command, String> {
        let own = std::env::current_exe().map_err(|why| format!("this program cannot find itself: {why}"))?;
        let own = own.display().to_string();
        let words: Vec<&str> = before.iter().copied().chain([own.as_str()]).collect();
        let mut command = self.sandbox.command(name, words[0])?;
        command.args(&words[1..]).args(["--part", part]);
        Ok(command)
    }

    fn start_capture(&self) -> Result<Capture, String> {
        let interfaces = PORTS.map(str::to_owned).to_vec();
        let plan = CapturePlan { interfaces, control_port: CONTROL_PORT };
        let plan = serde_json::to_string(&plan).map_err(|why| why.to_string())?;
        let mut command = self.part("capture", &[], &format!("models:capture:{plan}"))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("the capture cannot be run: {why}"))?;
        let printed = child.stdout.take().map(Printed::of).ok_or("the capture has no output")?;
        let capture = Capture { child: Killed(vec![child]), printed };
        if capture.printed.next("the capture", PATIENCE)?.trim() != "ready" {
            return Err(self.sandbox.failed("the capture", "capture"));
        }
        Ok(capture)
    }

    fn start_node(&mut self, load: &Load) -> Result<(), String> {
        let config = self.write("burnet.toml", &load.node())?;
        let mut command = self.sandbox.command("node", &self.lab.burnet)?;
        command.args(["run", "--listen", &format!("127.0.0.1:{CONTROL_PORT}"), "--config"]).arg(config);
        command.env("BURNET_STATE", self.sandbox.folder().join("state"));
        self.children.0.push(command.spawn().map_err(|why| format!("the node cannot be run: {why}"))?);
        self.wait_for("the node", |bed| bed.ask(&["switches", "--json"]).is_some())
    }

    /// The answer of a command of the operator.
    fn ask(&self, words: &[&str]) -> Option<String> {
        let mut command = self.sandbox.command("ask", &self.lab.burnet).ok()?;
        let (text, status) = bounded::run(command.args(words), "the question", PATIENCE).ok()?;
        status.success().then_some(text)
    }

    /// Without busy loops the emulator has a real-time priority, because a switch has a processor of its own.
    fn start_switch(&mut self, device: &Device, load: &Load) -> Result<Option<Player>, String> {
        let (urgent, slow) = (load.busy_loops == 0, load.slow_motion.max(1).to_string());
        let seed = load.seed.to_string();
        let controller = format!("127.0.0.1:{CONTROL_PORT}");
        match device {
            Device::Ovs => {
                self.start_ovs(&controller)?;
                Ok(None)
            }
            Device::Native(profile) => {
                let profile = self.write("profile.toml", profile)?.display().to_string();
                let bind = "s1-eth1=1,s1-eth2=2";
                let words = ["--bind", bind, "--version", "1.0", "--controller", &controller];
                let played = ["--profile", &profile, "--slow-motion", &slow, "--seed", &seed];
                self.start_player(&[&words[..], &played].concat(), urgent).map(Some)
            }
            Device::Proxied(profile, model) => {
                let profile = self.write("profile.toml", profile)?.display().to_string();
                let taps = "1=s1-eth1,2=s1-eth2";
                let words = ["--model", model, "--proxy", PROXY, "--tap", taps, "--controller", &controller];
                let played = ["--profile", &profile, "--slow-motion", &slow, "--seed", &seed];
                let player = self.start_player(&[&words[..], &played].concat(), urgent)?;
                self.wait_for("the proxy", |bed| bed.sandbox.log_of("player").contains("is played"))?;
                self.start_ovs(PROXY)?;
                Ok(Some(player))
            }
        }
    }

    fn start_player(&self, words: &[&str], urgent: bool) -> Result<Player, String> {
        let pid = self.sandbox.folder().join("player.pid");
        // nsenter knows the process id from outside only, so the process tells its own.
        let mut command = self.sandbox.command("player", "sh")?;
        command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(&pid);
        command.args(if urgent { &["chrt", "--fifo", "10"][..] } else { &[] }).arg(&self.lab.burnet);
        command.arg("emulate").args(words).args(["--validity", "--json"]);
        command.stdout(File::create(self.sandbox.folder().join("summary")).map_err(|why| why.to_string())?);
        let child = command.spawn().map_err(|why| format!("burnet emulate cannot be run: {why}"))?;
        Ok(Player { child: Killed(vec![child]), pid })
    }

    fn start_ovs(&self, controller: &str) -> Result<(), String> {
        let folder = self.sandbox.folder().display();
        for line in [
            format!("ovsdb-tool create {folder}/conf.db {SCHEMA}"),
            format!(
                "ovsdb-server {folder}/conf.db --remote=punix:/run/openvswitch/db.sock --detach --no-chdir --pidfile --log-file={folder}/ovsdb.log"
            ),
            "ovs-vsctl --no-wait init".to_owned(),
            format!("ovs-vswitchd --detach --no-chdir --pidfile --log-file={folder}/vswitchd.log"),
            "ovs-vsctl add-br s1 -- set bridge s1 datapath_type=netdev other_config:disable-in-band=true \
             fail_mode=secure protocols=OpenFlow10"
                .to_owned(),
            "ovs-vsctl add-port s1 s1-eth1 -- set interface s1-eth1 ofport_request=1".to_owned(),
            "ovs-vsctl add-port s1 s1-eth2 -- set interface s1-eth2 ofport_request=2".to_owned(),
            format!("ovs-vsctl set-controller s1 tcp:{controller}"),
        ] {
            self.sandbox.must(&line)?;
        }
        Ok(())
    }

    fn start_redis(&mut self) -> Result<(), String> {
        let mut command = self.sandbox.command("redis", "ip")?;
        command.args(["netns", "exec", "h2", "redis-server", "--port", "6379", "--bind", "0.0.0.0"]);
        command.args(["--protected-mode", "no", "--save", "", "--dir"]).arg(self.sandbox.folder());
        self.children.0.push(command.spawn().map_err(|why| format!("redis-server cannot be run: {why}"))?);
        Ok(())
    }

    fn run_clients(&self, load: &Load) -> Result<Report, String> {
        let whole = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let plan = ClientsPlan {
            address: SERVER.parse().map_err(|why| format!("{SERVER}: {why}"))?,
            every_us: whole(load.every),
            lasts_ms: whole(load.lasts) / 1000,
            value_bytes: load.value_bytes,
            timeout_ms: whole(load.timeout) / 1000,
            open_max: load.open_max,
            pause_ms: PAUSE_MS.saturating_mul(load.slow_motion.into()),
        };
        let plan = serde_json::to_string(&plan).map_err(|why| why.to_string())?;
        let inside = ["ip", "netns", "exec", "h1"];
        let mut command = self.part("clients", &inside, &format!("models:clients:{plan}"))?;
        let (text, _) = bounded::run(&mut command, "the clients", load.lasts + load.timeout + PATIENCE)?;
        serde_json::from_str(&text).map_err(|_| self.sandbox.failed("the clients", "clients"))
    }

    /// Ends the switch or proxy, and reads its summary.
    fn finish(&self, mut player: Player) -> Result<Option<(String, Vec<String>)>, String> {
        let pid = fs::read_to_string(&player.pid).map_err(|why| format!("no process id: {why}"))?;
        self.sandbox.must(&format!("kill -TERM {}", pid.trim()))?;
        for child in &mut player.child.0 {
            bounded::end_of(child, "burnet emulate", PATIENCE)?;
        }
        let text = fs::read_to_string(self.sandbox.folder().join("summary")).unwrap_or_default();
        let summary: Value =
            serde_json::from_str(&text).map_err(|_| self.sandbox.failed("burnet emulate", "player"))?;
        Ok(validity(&summary))
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&Self) -> bool) -> Result<(), String> {
        let began = Instant::now();
        while !is_there(self) {
            if began.elapsed() > PATIENCE {
                let logs = ["node", "player"].map(|name| self.sandbox.failed(name, name));
                return Err(format!("{what} does not come; {}", logs.join("; ")));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.sandbox.folder().join(name);
        fs::write(&path, text).map_err(|why| format!("{} cannot be written: {why}", path.display()))?;
        Ok(path)
    }
}

/// A process outside of the namespaces that only uses a core. If we are killed, it ends after a bounded time on that core.
fn busy_loop(load: &Load) -> Result<Child, String> {
    let most_s = (load.lasts + 2 * PATIENCE).as_secs();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -t {most_s}; while :; do :; done")]).stdin(Stdio::null());
    command.spawn().map_err(|why| format!("sh cannot be run: {why}"))
}

/// The word and the causes in a summary.
fn validity(summary: &Value) -> Option<(String, Vec<String>)> {
    let verdict = &summary["validity"];
    let causes = verdict["findings"].as_array().into_iter().flatten();
    let causes = causes.filter_map(|finding| finding["cause"].as_str().map(str::to_owned));
    Some((verdict["validity"].as_str()?.to_owned(), causes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::testbed::clients::Query;
    use serde_json::json;

    #[test]
    fn a_summary_without_a_verdict_has_no_validity() {
        assert_eq!(validity(&json!({})), None);
        let summary = json!({"validity": {"validity": "invalid", "findings": [{"cause": "run-queue"}]}});
        assert_eq!(validity(&summary), Some(("invalid".to_owned(), vec!["run-queue".to_owned()])));
    }

    #[test]
    fn in_slow_motion_a_node_waits_longer_for_a_switch() {
        let ms = Duration::from_millis(1);
        let real = Load::in_real_time(ms, ms, ms, 64);
        assert!(real.node().contains("echo_timeout_ms = 15000\n"));
        let rules = RuleTimeouts { idle_s: 10, hard_s: 0 };
        let slow = Load { slow_motion: 10, rules, ..real }.node();
        assert!(
            slow.contains("echo_timeout_ms = 150000\n") && slow.contains("hard_timeout_s = 0\n"),
            "{slow}"
        );
    }

    #[test]
    fn only_what_began_in_time_is_counted() {
        let query = |began_us, took_us| Query { began_us, took_us };
        let queries = vec![query(0, Some(1.0)), query(500, Some(2.0)), query(600, None)];
        let report = Report { began_unix_us: 10_000, queries, skipped: 3 };
        let delay = |from_unix_us| Delay { from_unix_us, took_us: 7.0 };
        let ingress = vec![delay(10_499), delay(10_500), delay(10_999), delay(11_000)];
        let delays = Delays { ingress, ..Delays::default() };
        let ms = Duration::from_millis(1);
        let load = Load::in_real_time(ms, ms, ms / 2, 64);
        let seen = seen(&report, &delays, &load);
        assert_eq!((seen.completion_us, seen.failed, seen.ingress_us.len()), (vec![2.0], 1, 2));
    }
}
