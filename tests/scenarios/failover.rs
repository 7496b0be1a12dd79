//! A ring of Open vSwitches in Mininet: a ping goes on through a link that fails, by a restored and by a protected intent.

use serde_json::Value;
use std::time::{Duration, Instant};
use system_tests::mininet::{Controller, Mininet, lost_pings};
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, scenario};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";

/// A ring of four has eight links, each direction by itself.
const SWITCHES: u32 = 4;
const LINKS: usize = 8;

/// A ping each 10 ms, for three seconds. The link fails after the first of them.
const PINGS: u32 = 300;
const SPACING_MS: u32 = 10;
const BEFORE_FAILURE: Duration = Duration::from_secs(1);

/// How often the link fails. The bound is for the median: a busy machine may delay one of them.
const FAILURES: usize = 5;

/// The most pings that a failure may cost. The test prints how many each failure cost. Without another path, all remaining pings are lost.
/// If the node notices the failure only by missing probes, more than a hundred are lost.
const LOST_RESTORED_MAX: u32 = 20;
/// Captures of all ports showed where each lost ping ends: it enters the switch at the failed link and leaves by no port. After Linux has closed
/// a port, Open vSwitch sends to it until it notices. That took about 7 ms on an idle machine, and 14 to 28 ms at a load of ten on two cores.
/// So a ping each 10 ms loses none or one, or up to three. Pings behind the failure turn back, and none of them was lost.
const LOST_PROTECTED_MAX: u32 = 3;

/// Time limit for three seconds of pings.
const LIMIT: Duration = Duration::from_secs(60);

const CONFIG: &str = "[network]\n[app.proxy-arp]\n";

/// The members of the answer of a command that lists things.
fn list(node: &Node<'_>, words: &[&str]) -> Result<Vec<Value>> {
    Ok(node.ask(words)?.as_array().cloned().unwrap_or_default())
}

fn wait_links(node: &mut Node<'_>) -> Result<()> {
    node.wait_until("all links are up", |node| {
        let links = list(node, &["links"])?;
        Ok(links.iter().filter(|link| link["state"] == "up").count() == LINKS)
    })
}

fn wait_installed(node: &mut Node<'_>) -> Result<()> {
    node.wait_until("the intent is installed, and nothing is missing", |node| {
        let intents = list(node, &["intents"])?;
        Ok(intents.iter().all(|intent| intent["state"] == "installed" && intent["reason"].is_null()))
    })
}

/// The switches at both ends of the first link of the intent's present path.
fn first_trunk(node: &Node<'_>) -> Result<(String, String)> {
    let paths = list(node, &["paths"])?;
    // The way there has the number 0, and its backup a letter behind it.
    let is_working = |path: &&Value| path["id"].as_str().is_some_and(|id| id.ends_with(".0"));
    let path = paths.iter().find(is_working).ok_or("there is no path")?;
    let link = path["links"][0].as_str().ok_or("the path has no link")?;
    let name = |point: &str| {
        let id = point.split('/').next()?.strip_prefix("of:")?;
        Some(format!("s{}", u64::from_str_radix(id, 16).ok()?))
    };
    let (one, two) = link.split_once('-').ok_or("a link has two ends")?;
    name(one).zip(name(two)).ok_or(format!("odd ends: {link}"))
}

/// How many pings are lost when the link on the path fails.
fn lost_by_a_failure(
    sandbox: &Sandbox,
    node: &Node<'_>,
    mininet: &mut Mininet,
    number: usize,
) -> Result<u32> {
    let (one, two) = first_trunk(node)?;
    let file = sandbox.folder().join(format!("ping-{number}.txt"));
    mininet.begin_pings("h1", "h3", PINGS, SPACING_MS, &file)?;
    std::thread::sleep(BEFORE_FAILURE);
    mininet.set_link(&one, &two, false)?;
    let deadline = Instant::now() + LIMIT;
    let lost = loop {
        let printed = std::fs::read_to_string(&file).unwrap_or_default();
        if let Some(lost) = lost_pings(&printed) {
            break lost;
        }
        if Instant::now() > deadline {
            return Err(format!("ping does not end: {printed}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    mininet.set_link(&one, &two, true)?;
    Ok(lost)
}

/// The median of the pings that are lost by one failure of a link is at most `bound`.
fn check(name: &str, options: &[&str], bound: u32) {
    scenario(name, |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let config = sandbox.folder().join("burnet.toml");
        std::fs::write(&config, CONFIG).map_err(|error| format!("no configuration: {error}"))?;
        let config = config.display().to_string();
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN, "--log", "info"])?;
        let mut mininet = Mininet::start_ring(sandbox, SWITCHES, Controller::Tcp(PORT))?;
        wait_links(&mut node)?;
        // Each host asks for another one, and is known from then on.
        mininet.pingall_within(1)?;
        node.wait_until(
            "all hosts are known",
            |node| Ok(list(node, &["hosts"])?.len() == SWITCHES as usize),
        )?;
        let add = ["intents", "add", "00:00:00:00:00:01", "00:00:00:00:00:03", "--wait"];
        node.ask(&[&add, options].concat())?;
        let mut lost = Vec::new();
        for number in 0..FAILURES {
            wait_links(&mut node)?;
            wait_installed(&mut node)?;
            lost.push(lost_by_a_failure(sandbox, &node, &mut mininet, number)?);
        }
        println!("{name}: pings lost by each failure, at {SPACING_MS} ms spacing: {lost:?}");
        lost.sort_unstable();
        let median = lost[FAILURES / 2];
        if median > bound {
            return Err(format!("more than {bound} pings are lost by a failure: {lost:?}"));
        }
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn a_restored_intent_gets_another_path_when_a_link_fails() {
    check("failover-restored", &[], LOST_RESTORED_MAX);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn the_switches_protect_an_intent_when_a_link_fails() {
    check("failover-protected", &["--protected"], LOST_PROTECTED_MAX);
}
