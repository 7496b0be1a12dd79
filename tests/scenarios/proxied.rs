//! A real Open vSwitch behind the proxy: it is the switch of the profile, and not Open vSwitch, that controller and hosts meet.

use serde_json::Value;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};
use system_tests::node::{Node, binary};
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

const LISTEN: &str = "127.0.0.1:6653";
const PROXY: &str = "127.0.0.1:6650";
/// Ends a hang only.
const LIMIT: Duration = Duration::from_secs(90);

/// Each way takes a while, and the table has room for four rules.
const PROFILE: &str = r#"
schema = 1
name = "small"
about = "A slow switch with four rules."

[switch]
vendor = "Small Switches"
hardware = "S4"
firmware = "1"

[delay]
ingress_us = [[0, 10000], [0.5, 15000], [1, 30000]]
egress_us = [[0, 5000], [1, 9000]]

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 4

[source]
"*" = { assumed = "for a test" }
"#;

/// The shortest delay of each way in the profile, and how often a ping pays each: there and back.
const SHORTEST_MS: f64 = 2.0 * (10.0 + 5.0);

/// The proxy, which ends with its sandbox.
struct Proxied<'s> {
    sandbox: &'s Sandbox,
    child: Child,
    pid_file: std::path::PathBuf,
}

impl<'s> Proxied<'s> {
    fn start(sandbox: &'s Sandbox) -> Result<Proxied<'s>> {
        let profile = sandbox.folder().join("small.toml");
        fs::write(&profile, PROFILE)
            .map_err(|error| format!("cannot write {}: {error}", profile.display()))?;
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

    fn wait_for(&self, text: &str) -> Result<()> {
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
    fn finish(mut self) -> Result<Value> {
        let pid = fs::read_to_string(&self.pid_file).map_err(|error| format!("no process id: {error}"))?;
        self.sandbox.must(LIMIT, "kill", &["-TERM", pid.trim()])?;
        self.child.wait().map_err(|error| format!("cannot wait for the proxy: {error}"))?;
        let text = self.sandbox.read_log("summary");
        serde_json::from_str(&text).map_err(|error| format!("no summary ({error}): {text}"))
    }
}

/// A bridge with two hosts in namespaces of their own, 10.0.0.1 and 10.0.0.2.
fn two_hosts(sandbox: &Sandbox, switch: &OpenVSwitch<'_>, version: Version) -> Result<()> {
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
fn ping(sandbox: &Sandbox, count: u32) -> Result<Vec<f64>> {
    let count = count.to_string();
    let words = ["netns", "exec", "h1", "ping", "-c", &count, "-i", "0.1", "-W", "5", "10.0.0.2"];
    let answer = sandbox.run(LIMIT, "ip", &words)?;
    let trips =
        answer.text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    let trips: Vec<f64> = trips.collect();
    let sequence: Vec<u32> = answer
        .text
        .lines()
        .filter_map(|line| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    if sequence.is_sorted() {
        Ok(trips)
    } else {
        Err(format!("pings came in another order: {}", answer.text))
    }
}

/// A node with an app, and a switch behind the proxy.
fn with_app(
    name: &str,
    version: Version,
    app: &str,
    body: impl FnOnce(&Sandbox, &OpenVSwitch<'_>) -> Result<()>,
    check: impl FnOnce(&Value) -> Result<()>,
) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        two_hosts(sandbox, &switch, version)?;
        let mut node = Node::start(sandbox, &["--app", app, "--listen", LISTEN])?;
        let proxied = Proxied::start(sandbox)?;
        switch.set_controller(&format!("tcp:{PROXY}"))?;
        node.wait_for_switches(1)?;
        node.wait_for_app(app)?;
        body(sandbox, &switch)?;
        let summary = proxied.finish()?;
        println!("{name}: {summary}");
        check(&summary)?;
        node.stop()
    });
}

fn expect(holds: bool, what: &str, found: &impl std::fmt::Debug) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
}

/// Every ping goes by way of the controller, there and back.
fn pings_by_a_hub(name: &str, version: Version) {
    const PINGS: u32 = 50;
    with_app(
        name,
        version,
        "hub",
        |sandbox, _| {
            let mut trips = ping(sandbox, PINGS)?;
            expect(trips.len() == PINGS as usize, "pings are missing", &trips)?;
            let shortest = trips.iter().copied().fold(f64::INFINITY, f64::min);
            expect(shortest >= SHORTEST_MS, "a packet was faster than the profile", &shortest)?;
            trips.sort_by(f64::total_cmp);
            println!("{name}: round trips p50 {} ms, p90 {} ms", trips[25], trips[45]);
            Ok(())
        },
        |summary| {
            let counters = &summary["counters"];
            expect(counters["sessions"] == 1, "sessions", counters)?;
            expect(counters["packet_ins"].as_u64() >= Some(2 * u64::from(PINGS)), "packet-ins", counters)?;
            // Whether a tap has seen a frame does not depend on time, except for a machine that stands still for a second.
            expect(counters["packet_ins_unseen"].as_u64() <= Some(4), "taps saw too few", counters)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn pings_take_the_profiles_time_by_1_0() {
    pings_by_a_hub("proxied-hub-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn pings_take_the_profiles_time_by_1_3() {
    pings_by_a_hub("proxied-hub-1.3", Version::V1_3);
}

/// The learning switch adds rules, which then carry the pings.
fn pings_by_rules(name: &str, version: Version) {
    with_app(
        name,
        version,
        "learning-switch",
        |sandbox, switch| {
            let trips = ping(sandbox, 20)?;
            println!("{name}: round trips {trips:?}");
            expect(trips.len() == 20, "pings are missing", &trips)?;
            let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
            let own: Vec<&str> = rules.lines().filter(|line| line.contains("actions=")).collect();
            expect((1..=4).contains(&own.len()), "four rules fit", &own)?;
            expect(own.iter().all(|rule| !rule.contains("timeout")), "the model ends rules", &own)?;
            Ok(())
        },
        |summary| {
            let counters = &summary["counters"];
            expect(counters["sessions"] == 1 && counters["own_errors"] == 0, "counters", counters)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn rules_come_into_the_switch_by_1_0() {
    pings_by_rules("proxied-rules-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn rules_come_into_the_switch_by_1_3() {
    pings_by_rules("proxied-rules-1.3", Version::V1_3);
}
