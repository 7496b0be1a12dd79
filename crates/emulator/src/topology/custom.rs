//! Mininet's `--custom` files: topologies as Python classes.
//!
//! ```text
//!   FILE.py, NAME[,ARGUMENTS] ──> python3 with custom_driver.py ──JSON──> Topology
//! ```
//!
//! The file is the operator's own program. It runs with the operator's rights, as with `mn`. Its output is checked
//! anyway, because mistakes are easy. Mininet need not be installed.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flow::{DatapathId, MacAddr, PortNo};
use serde::Deserialize;

use super::Topology;
use super::bounds::Size;
use super::file::NotATopologyFile;
use super::graph::BadText;
use super::plan::{Node, Plan};
use crate::link::LinkQuality;

/// How long a file may take to build its network. A file that takes longer is probably waiting for something that
/// never comes.
pub const CUSTOM_PATIENCE: Duration = Duration::from_secs(20);

/// The most bytes that are read of its output. The largest allowed network has less than a tenth.
const ANSWER_MAX_BYTES: u64 = 128 * 1024 * 1024;

/// The interval between checks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Mininet counts queues in packets. These are full packets with their headers.
const PACKET_BYTES: u64 = 1514;

/// The largest port number that is valid in both versions (1.0's OFPP_MAX).
const PORT_MAX: u32 = 0xff00;

const DRIVER: &str = include_str!("custom_driver.py");

/// A topology in a `--custom` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTopology {
    /// The file.
    pub file: PathBuf,
    /// The key in its `topos`, with arguments after it, as in `mn --topo`: `mytopo,3,n=2`.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum Answer {
    Failed { error: Failure },
    Drawn(Drawn),
}

#[derive(Deserialize)]
struct Failure {
    line: Option<u32>,
    message: String,
}

#[derive(Deserialize)]
struct Drawn {
    switches: Vec<DrawnSwitch>,
    hosts: Vec<DrawnHost>,
    links: Vec<DrawnLink>,
}

#[derive(Deserialize)]
struct DrawnSwitch {
    name: String,
    dpid: Option<String>,
}

#[derive(Deserialize)]
struct DrawnHost {
    name: String,
    ip: Option<String>,
    mac: Option<String>,
}

#[derive(Deserialize)]
struct DrawnLink {
    one: String,
    two: String,
    port1: i64,
    port2: i64,
    options: HashMap<String, String>,
}

impl CustomTopology {
    /// Runs the file and returns the network that it builds. Nodes are numbered as in Mininet: a host without an
    /// address gets the next one of 10.0.0.0/8. A switch without a datapath id gets the number in its name.
    ///
    /// # Errors
    ///
    /// * python3 is missing.
    /// * The file fails (with its line), takes longer than [`CUSTOM_PATIENCE`], or has no such topology.
    /// * The network is invalid: the message says why.
    pub fn read(&self) -> Result<Topology, NotATopologyFile> {
        self.run()
            .and_then(|drawn| drawn.topology().map_err(said))
            .map_err(|bad| NotATopologyFile::new(&self.file, bad))
    }

    fn run(&self) -> Result<Drawn, BadText> {
        // A missing file has a better message here than from Python.
        std::fs::File::open(&self.file).map_err(|error| said(format!("it cannot be read: {error}")))?;
        let mut child = start(&self.file, &self.name)?;
        let answer = answer(&mut child);
        // It has ended, or it must end now.
        let _ = child.kill();
        let _ = child.wait();
        match serde_json::from_slice(&answer?) {
            Ok(Answer::Drawn(drawn)) => Ok(drawn),
            Ok(Answer::Failed { error }) => Err(BadText { line: error.line, why: error.message }),
            Err(_) => Err(said("it ended python3 before its network was drawn")),
        }
    }
}

fn said(why: impl Into<String>) -> BadText {
    BadText { line: None, why: why.into() }
}

fn start(file: &Path, name: &str) -> Result<Child, BadText> {
    Command::new("python3")
        .args(["-B", "-c", DRIVER])
        .arg(file)
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            said(format!("python3 is needed for files of Mininet's, and cannot be started: {error}"))
        })
}

/// Its whole output, if it ends in time.
fn answer(child: &mut Child) -> Result<Vec<u8>, BadText> {
    let stdout = child.stdout.take();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Unreadable output is not valid JSON.
        let _ = stdout.map(|stdout| stdout.take(ANSWER_MAX_BYTES).read_to_end(&mut bytes));
        bytes
    });
    let began = Instant::now();
    while !reading.is_finished() {
        if began.elapsed() > CUSTOM_PATIENCE {
            let seconds = CUSTOM_PATIENCE.as_secs();
            return Err(said(format!("it has not built its network within the limit of {seconds} s")));
        }
        std::thread::sleep(LOOK);
    }
    reading.join().map_err(|_| said("its answer cannot be read"))
}

impl Drawn {
    fn topology(self) -> Result<Topology, String> {
        let size = Size {
            switches: Some(self.switches.len()),
            hosts: Some(self.hosts.len()),
            links: Some(self.links.len()),
        };
        if let Some(why) = size.why_not() {
            return Err(why);
        }
        let mut plan = Plan::default();
        let mut nodes = HashMap::new();
        self.add_switches(&mut plan, &mut nodes)?;
        self.add_hosts(&mut plan, &mut nodes)?;
        let mut taken = HashSet::new();
        for link in &self.links {
            let mut end = |name: &str, port: i64| {
                let node = *nodes.get(name).ok_or_else(|| format!("a link to '{name}', which is neither"))?;
                let port = port_of(name, node, port)?;
                match taken.insert((name.to_owned(), port)) {
                    true => Ok((node, port)),
                    false if matches!(node, Node::Host(_)) => {
                        Err(format!("host {name} has several links, and an emulated host has one"))
                    }
                    false => Err(format!("two links are at port {port} of {name}")),
                }
            };
            let (one, two) = (end(&link.one, link.port1)?, end(&link.two, link.port2)?);
            let quality = quality(&link.options)
                .map_err(|why| format!("the link between {} and {}: {why}", link.one, link.two))?;
            plan.link_at(one, two, quality);
        }
        Ok(plan.finish())
    }

    fn add_switches(&self, plan: &mut Plan, nodes: &mut HashMap<String, Node>) -> Result<(), String> {
        let mut ids: HashMap<u64, &str> = HashMap::new();
        for switch in &self.switches {
            let id = datapath_id(switch)?;
            if let Some(other) = ids.insert(id.0, &switch.name) {
                return Err(format!("switches {other} and {} have the same datapath id {id}", switch.name));
            }
            nodes.insert(switch.name.clone(), plan.switch_as(switch.name.clone(), id));
        }
        Ok(())
    }

    fn add_hosts(&self, plan: &mut Plan, nodes: &mut HashMap<String, Node>) -> Result<(), String> {
        let mut addresses: HashMap<Ipv4Addr, &str> = HashMap::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let number = index as u32 + 1;
            let address = match &host.ip {
                None => Ipv4Addr::from(0x0a00_0000 + number),
                Some(text) => {
                    let address = text.split_once('/').map_or(text.as_str(), |(address, _)| address);
                    address
                        .parse()
                        .map_err(|_| format!("host {} has the IPv4 address '{text}'", host.name))?
                }
            };
            let mac = match &host.mac {
                None => MacAddr::from_u64(u64::from(number)),
                Some(text) => text
                    .parse()
                    .map_err(|_| format!("host {} has the Ethernet address '{text}'", host.name))?,
            };
            if let Some(other) = addresses.insert(address, &host.name) {
                return Err(format!("hosts {other} and {} have the same address {address}", host.name));
            }
            nodes.insert(host.name.clone(), plan.host_at(host.name.clone(), mac, address));
        }
        Ok(())
    }
}

/// The hexadecimal number in the file, or otherwise the first number in the name, as in Mininet.
fn datapath_id(switch: &DrawnSwitch) -> Result<DatapathId, String> {
    let name = &switch.name;
    let number = match &switch.dpid {
        Some(text) => {
            let digits: String = text.chars().filter(|digit| *digit != ':').collect();
            let digits = digits.strip_prefix("0x").unwrap_or(&digits);
            u64::from_str_radix(digits, 16).map_err(|_| format!("switch {name} has the dpid '{text}'"))?
        }
        None => {
            let digits = name.split(|letter: char| !letter.is_ascii_digit()).find(|part| !part.is_empty());
            let none = || format!("switch {name} has no dpid and no number in its name");
            digits.and_then(|digits| digits.parse().ok()).ok_or_else(none)?
        }
    };
    Ok(DatapathId(number))
}

fn port_of(name: &str, node: Node, port: i64) -> Result<PortNo, String> {
    match node {
        // A host has one port, whatever its number in the file.
        Node::Host(_) => Ok(PortNo(0)),
        Node::Switch(_) => {
            let port = u32::try_from(port).ok().filter(|port| (1..=PORT_MAX).contains(port));
            port.map(PortNo).ok_or_else(|| format!("a port of switch {name} is not between 1 and {PORT_MAX}"))
        }
    }
}

/// The parameters of `TCLink`: `bw` in Mbit/s, `delay` as text or in microseconds, `loss` in per cent,
/// `max_queue_size` in packets.
fn quality(options: &HashMap<String, String>) -> Result<LinkQuality, String> {
    let mut words = Vec::new();
    for (option, value) in options {
        words.push(match option.as_str() {
            "bw" => format!("bw={value}"),
            "loss" => format!("loss={value}"),
            "delay" if value.ends_with(|last: char| last.is_ascii_digit()) => format!("delay={value}us"),
            "delay" => format!("delay={value}"),
            _ => {
                let packets = value.parse::<u64>().map_err(|_| format!("max_queue_size is '{value}'"))?;
                format!("queue={}", packets.saturating_mul(PACKET_BYTES))
            }
        });
    }
    if words.is_empty() {
        return Ok(LinkQuality::default());
    }
    words.join(",").parse().map_err(|error: crate::link::NotALinkQuality| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Reads a topology from a file with this text. All machines that run the tests have python3.
    fn read(text: &str, name: &str) -> Result<Topology, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("burnet-custom-{}-{number}.py", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let result = CustomTopology { file: file.clone(), name: name.into() }.read();
        std::fs::remove_file(&file).unwrap();
        let named = format!("{}", file.display());
        result.map_err(|error| error.to_string().replace(&named, "FILE"))
    }

    /// A file whose topology `t` is built by these lines.
    fn building(lines: &[&str]) -> String {
        let body: String = lines.iter().map(|line| format!("        {line}\n")).collect();
        format!(
            "from mininet.topo import Topo\nclass T(Topo):\n    def build(self, n=1):\n{body}topos = {{'t': T}}\n"
        )
    }

    #[track_caller]
    fn check_refused(lines: &[&str], expected: &str) {
        assert_eq!(read(&building(lines), "t").unwrap_err(), expected);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        assert_eq!(read("x = 1\n1 +\n", "t").unwrap_err(), "FILE, line 2: SyntaxError: invalid syntax");
        check_refused(&["pass", "frob()"], "FILE, line 5: NameError: name 'frob' is not defined");
        check_refused(
            &["self.addLink('a', 'b')"],
            "FILE, line 4: KeyError: \"a link to 'a', which has not been added\"",
        );
        assert_eq!(read(&building(&["pass"]), "u").unwrap_err(), "FILE: it has no topology 'u'; it has t");
        let none = "FILE: it has no topos = {'NAME': ...}, by which Mininet finds its topologies";
        assert_eq!(read("x = 1", "t").unwrap_err(), none);
        assert_eq!(read("import sys; sys.exit(3)", "t").unwrap_err(), "FILE, line 1: SystemExit: 3");
        assert_eq!(
            read("import os; os._exit(3)", "t").unwrap_err(),
            "FILE: it ended python3 before its network was drawn"
        );
        let missing = CustomTopology { file: "/nowhere.py".into(), name: "t".into() }.read().unwrap_err();
        assert!(missing.to_string().starts_with("/nowhere.py: it cannot be read"), "{missing}");
    }

    #[test]
    fn a_network_that_cannot_be_is_refused() {
        let host = "self.addHost('h1')";
        check_refused(&["pass"], "FILE: it has no switch or no host");
        check_refused(
            &[host, "self.addSwitch('edge')"],
            "FILE: switch edge has no dpid and no number in its name",
        );
        check_refused(
            &[host, "self.addSwitch('s1')", "self.addSwitch('s2', dpid='1')"],
            "FILE: switches s1 and s2 have the same datapath id of:0000000000000001",
        );
        let two = ["a = self.addSwitch('s1')", "b = self.addHost('h1')"];
        let with = |lines: &[&'static str]| [&two, lines].concat();
        check_refused(
            &with(&["self.addLink(a, b)", "self.addLink(a, b)"]),
            "FILE: host h1 has several links, and an emulated host has one",
        );
        check_refused(
            &with(&["self.addLink(a, b, port1=0)"]),
            "FILE: a port of switch s1 is not between 1 and 65280",
        );
        check_refused(
            &with(&["self.addLink(a, b, bw=-1)"]),
            "FILE: the link between s1 and h1: 'bw=-1' is no quality of a link: '-1' is not a number; write words like \
             delay=5ms,rate=10M,queue=100k,loss=1%",
        );
        check_refused(
            &with(&["self.addHost('h2', ip='10.0.0.1/8')"]),
            "FILE: hosts h1 and h2 have the same address 10.0.0.1",
        );
    }

    #[test]
    fn names_ports_options_and_addresses_are_mininets() {
        let text = building(&[
            "print('this is not the answer')",
            "a, b = self.addSwitch('s10'), self.addSwitch('s9', dpid='00:00:00:00:00:00:01:00')",
            "for i in range(n):",
            "    self.addLink(self.addHost('h%d' % (i + 1)), a)",
            "x = self.addHost('h0', ip='192.168.0.7/24', mac='02:00:00:00:00:07')",
            "self.addLink(x, b, port2=7, bw=10, delay='5ms', loss=1, max_queue_size=100)",
            "self.addLink(a, b, delay=20)",
        ]);
        let topology = read(&text, "t,n=2").unwrap();
        let switches: Vec<_> = topology.switches.iter().map(|s| (s.name.as_str(), s.datapath_id.0)).collect();
        assert_eq!(switches, [("s9", 0x100), ("s10", 10)]);
        let hosts: Vec<_> = topology.hosts.iter().map(|h| (h.name.as_str(), h.address.to_string())).collect();
        let expected = [("h0", "192.168.0.7"), ("h1", "10.0.0.2"), ("h2", "10.0.0.3")];
        assert_eq!(hosts, expected.map(|(name, address)| (name, address.to_owned())));
        assert_eq!(topology.hosts[0].mac.to_string(), "02:00:00:00:00:07");
        let tuned = topology.links[topology.links_between("h0", "s9")[0]];
        assert_eq!(tuned.two, super::super::Endpoint::Switch { index: 0, port: PortNo(7) });
        assert_eq!(tuned.quality.to_string(), "delay=5ms,rate=10M,queue=151400,loss=1%");
        let trunk = topology.links[topology.links_between("s9", "s10")[0]];
        assert_eq!(trunk.quality.delay, Duration::from_micros(20));
    }

    #[test]
    fn what_mininet_has_besides_is_there_and_does_nothing() {
        let text = "from mininet.net import Mininet\nfrom mininet.node import OVSSwitch, RemoteController\n\
                    from mininet.link import TCLink\nfrom mininet.log import setLogLevel, info\nimport mininet.cli\n\
                    from mininet.topolib import TreeTopo, TorusTopo\nfrom mininet.topo import LinearTopo\n\
                    from mininet.util import irange\nclass Mine(OVSSwitch):\n    pass\nsetLogLevel('info')\n\
                    topos = {'t': lambda depth: TreeTopo(depth=depth, fanout=len(irange(1, 3))),\n\
                    'o': lambda: TorusTopo(3, 4), 'l': LinearTopo}\n\
                    if __name__ == '__main__':\n    Mininet(topo=1).start()\n";
        for (name, same) in [("t,2", "tree,2,3"), ("o", "torus,3,4"), ("l,3", "linear,3")] {
            let drawn = read(text, name).unwrap();
            let same: Topology = same.parse().unwrap();
            assert_eq!((&drawn.switches, drawn.hosts.len()), (&same.switches, same.hosts.len()), "{name}");
            let ends = |topology: &Topology| {
                let end = |link: &super::super::Link| {
                    [link.one, link.two].map(|end| topology.owner(end).to_owned())
                };
                let mut ends: Vec<_> = topology.links.iter().map(end).collect();
                ends.sort();
                ends
            };
            assert_eq!(ends(&drawn), ends(&same), "{name}");
        }
    }
}
