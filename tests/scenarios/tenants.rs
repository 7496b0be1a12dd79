//! Three tenants with different controllers on one Mininet with a loop: os-ken by 1.0, Burnet by 1.3, and Open vSwitch's test
//! controller. Their hosts have the same addresses. What hosts receive is captured.

use std::path::PathBuf;
use std::time::Duration;
use system_tests::certificates::Certificates;
use system_tests::mininet::{Controller, Mininet, lost_pings};
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, os_ken, scenario, stand_in};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";

/// A ring of three switches. At each, port 1 leads to the blue host, 2 to the red, and 3 to the green. Ports 4 and 5 lead to other switches.
const TOPOLOGY: &str = r#"
from mininet.topo import Topo

class Tenants(Topo):
    def build(self):
        switches = [self.addSwitch('s%d' % number) for number in (1, 2, 3)]
        for number, switch in enumerate(switches, 1):
            for tenant in ('b', 'r', 'g'):
                mac = '00:00:00:00:00:%02x' % number
                self.addLink(self.addHost(tenant + str(number), ip='10.0.0.%d' % number, mac=mac), switch)
        self.addLink('s1', 's2', 4, 4)
        self.addLink('s2', 's3', 5, 4)
        self.addLink('s3', 's1', 5, 5)

topos = {'tenants': Tenants}
"#;

const ONE_TWO: &str = "s1:4-s2:4";
const TWO_THREE: &str = "s2:5-s3:4";
const THREE_ONE: &str = "s3:5-s1:5";

/// A tenant. Controllers that only learn addresses need a tree; Burnet takes the whole ring.
struct Tenant {
    name: &'static str,
    host: char,
    controller: u16,
    port: u16,
    tag: u16,
    links: &'static [&'static str],
    version: &'static str,
}

const BLUE: Tenant = Tenant {
    name: "blue",
    host: 'b',
    controller: 6701,
    port: 1,
    tag: 10,
    links: &[ONE_TWO, TWO_THREE, THREE_ONE],
    version: "1.3",
};
const RED: Tenant = Tenant {
    name: "red",
    host: 'r',
    controller: 6702,
    port: 2,
    tag: 20,
    links: &[ONE_TWO, TWO_THREE],
    version: "1.0",
};
const GREEN: Tenant = Tenant {
    name: "green",
    host: 'g',
    controller: 6703,
    port: 3,
    tag: 30,
    links: &[ONE_TWO, THREE_ONE],
    version: "1.3",
};
const ALL: [&Tenant; 3] = [&BLUE, &RED, &GREEN];

impl Tenant {
    fn section(&self) -> String {
        let Tenant { name, controller, tag, port, links, .. } = self;
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:{controller}']\nisolation = 'vlan'\ntag = {tag}\n\
             own_ports = ['s1:{port}', 's2:{port}', 's3:{port}']\nlinks = {links:?}\n"
        )
    }

    /// The bytes of its pings, in hexadecimal.
    fn pattern(&self) -> String {
        format!("{:02x}c{:x}", self.tag, self.port).repeat(4)
    }

    /// An address that no host has, for which only hosts of this tenant ask.
    fn nobody(&self) -> String {
        format!("10.0.0.{}", 100 + self.port)
    }

    /// A network of IPv6 that only this tenant uses.
    fn network_6(&self) -> String {
        format!("fd00:{}:", self.tag)
    }

    fn hosts(&self) -> [String; 3] {
        [1, 2, 3].map(|number| format!("{}{number}", self.host))
    }

    /// Waits until its controller has all switches.
    fn wait(&self, node: &mut Node<'_>) -> Result<()> {
        node.wait_until("the tenant is connected", |node| {
            let state = node.ask(&["slice", "show", self.name])?;
            let switches = state["switches"].as_array().cloned().unwrap_or_default();
            let speaks = |switch: &serde_json::Value| switch["controllers"][0]["version"] == self.version;
            Ok(switches.len() == 3 && switches.iter().all(speaks))
        })
    }

    /// Gives its hosts addresses of IPv6 of their own.
    fn address_6(&self, mininet: &mut Mininet) -> Result<()> {
        for (number, host) in (1..).zip(self.hosts()) {
            let address = format!("{}:{number}/64", self.network_6());
            mininet.at_host(&host, &format!("ip -6 addr add {address} dev {host}-eth0 nodad"))?;
        }
        Ok(())
    }

    /// Its hosts reach each other, and ask for one that is not there, by IPv4 and by IPv6.
    fn ping(&self, mininet: &mut Mininet) -> Result<()> {
        for from in self.hosts() {
            for to in 1..=3 {
                let words = format!("ping -n -c 4 -i 0.2 -W 2 -p {} 10.0.0.{to}", self.pattern());
                let printed = mininet.at_host(&from, &words)?;
                // The first packets of a pair can come before its rules.
                if lost_pings(&printed).is_none_or(|lost| lost > 2) {
                    return Err(format!("{from} does not reach 10.0.0.{to}: {printed}"));
                }
            }
            mininet.at_host(&from, &format!("ping -n -c 1 -W 1 {}", self.nobody()))?;
            mininet.at_host(&from, &format!("ping -n -c 1 -W 1 {}:99", self.network_6()))?;
        }
        Ok(())
    }
}

fn write_config(sandbox: &Sandbox, tenants: &[&Tenant]) -> Result<String> {
    write_slices(sandbox, &tenants.iter().map(|tenant| tenant.section()).collect::<String>())
}

fn write_slices(sandbox: &Sandbox, text: &str) -> Result<String> {
    let file = sandbox.folder().join("slices.toml");
    std::fs::write(&file, text).map_err(|error| format!("no configuration: {error}"))?;
    Ok(file.display().to_string())
}

fn capture(sandbox: &Sandbox, host: &str) -> PathBuf {
    sandbox.folder().join(format!("{host}.pcap"))
}

fn begin_captures(sandbox: &Sandbox, mininet: &mut Mininet) -> Result<()> {
    for host in ALL.iter().flat_map(|tenant| tenant.hosts()) {
        let file = capture(sandbox, &host);
        let words = format!("dumpcap -q -P -i {host}-eth0 -w {} > /dev/null 2>&1 &", file.display());
        mininet.at_host(&host, &words)?;
        // Until the file has its header, packets are not captured.
        let is_begun =
            format!("for i in $(seq 100); do test -s {} && break; sleep 0.1; done", file.display());
        mininet.at_host(&host, &is_begun)?;
    }
    Ok(())
}

/// The type of LLDP, and that of BDDP: what controllers find links with.
const OF_CONTROLLERS: [&str; 2] = ["type 0x88cc", "type 0x8942"];

/// What tshark says of a host's captured frames: for each its type, the addresses that ARP and IPv6 ask for, and the bytes of a ping.
fn captured(sandbox: &Sandbox, host: &str) -> Result<String> {
    let file = capture(sandbox, host).display().to_string();
    let names = ["eth.type", "arp.dst.proto_ipv4", "icmpv6.nd.ns.target_address", "data.data"];
    let fields = names.iter().flat_map(|name| ["-e", *name]);
    let words: Vec<&str> = ["-n", "-r", &file, "-T", "fields"].into_iter().chain(fields).collect();
    // The last frame of a capture that goes on can be cut off; tshark says so and fails.
    let answer = sandbox.run(Duration::from_secs(60), "tshark", &words)?;
    Ok(answer.text.lines().map(|line| format!("type {line}\n")).collect())
}

/// Each host has captured pings and questions of its own tenant, none of others, and nothing with which controllers find links.
fn check_captures(sandbox: &Sandbox) -> Result<()> {
    for of in ALL {
        for host in of.hosts() {
            let captured = captured(sandbox, &host)?;
            let count = |text: &str| captured.matches(text).count();
            if OF_CONTROLLERS.iter().any(|text| count(text) > 0) {
                return Err(format!("{host} received a frame with which a controller finds links"));
            }
            for tenant in ALL {
                let seen = [tenant.pattern(), tenant.nobody(), tenant.network_6()].map(|text| count(&text));
                let is_right = match of.name == tenant.name {
                    true => seen.iter().all(|count| *count > 0),
                    false => seen == [0; 3],
                };
                if !is_right {
                    let [pings, v4, v6] = seen;
                    let (name, questions) = (tenant.name, format!("{v4} and {v6} questions"));
                    return Err(format!(
                        "{host} received {pings} pings, and {questions} of IPv4 and IPv6, of {name}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Another slice goes and comes back. No ping of the blue one is lost.
fn come_and_go(sandbox: &Sandbox, node: &mut Node<'_>, mininet: &mut Mininet) -> Result<()> {
    let file = sandbox.folder().join("pings");
    mininet.begin_pings("b1", "10.0.0.3", 200, 20, &file)?;
    write_config(sandbox, &[&BLUE, &GREEN])?;
    node.reload()?;
    node.wait_until("the red slice is gone", |node| Ok(node.ask(&["slice", "show", "red"]).is_err()))?;
    write_config(sandbox, &ALL)?;
    node.reload()?;
    RED.wait(node)?;
    node.wait_until("the pings end", |_| {
        let printed = std::fs::read_to_string(&file).unwrap_or_default();
        match lost_pings(&printed) {
            Some(0) => Ok(true),
            Some(lost) => Err(format!("{lost} pings of the blue slice are lost: {printed}")),
            None => Ok(false),
        }
    })?;
    RED.ping(mininet)
}

#[test]
#[ignore = "needs root, Open vSwitch, Mininet and os-ken"]
fn three_kinds_of_controllers_share_a_ring() {
    let Some(python) = os_ken::python() else {
        eprintln!("left out: tenants: python3 has no os-ken (pip install os-ken)");
        return;
    };
    scenario("tenants", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let blue_listen = format!("127.0.0.1:{}", BLUE.controller);
        let words = ["--listen", &blue_listen, "--network", "--app", "forwarding", "--grant-all"];
        let mut blue = Node::start_another(sandbox, "blue", &words)?;
        os_ken::start(sandbox, &python, os_ken::LEARNING_1_0, RED.controller)?;
        stand_in::start_version(sandbox, GREEN.controller, Version::V1_3)?;
        let config = write_config(sandbox, &ALL)?;
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN])?;
        let mut mininet = Mininet::start_class(sandbox, "tenants", TOPOLOGY, Controller::Tcp(PORT))?;
        node.wait_for_switches(3)?;
        ALL.iter().try_for_each(|tenant| tenant.wait(&mut node))?;
        blue.wait_until("the tenant has found the links of its ring", |blue| {
            Ok(blue.ask(&["links"])?.as_array().is_some_and(|links| links.len() == 6))
        })?;
        ALL.iter().try_for_each(|tenant| tenant.address_6(&mut mininet))?;
        begin_captures(sandbox, &mut mininet)?;
        ALL.iter().try_for_each(|tenant| tenant.ping(&mut mininet))?;
        come_and_go(sandbox, &mut node, &mut mininet)?;
        check_captures(sandbox)?;
        mininet.exit()?;
        blue.stop()?;
        node.stop()
    });
}

/// The slice and os-ken show each other certificates of one authority. Its tenant's network works as without TLS.
#[test]
#[ignore = "needs root, Open vSwitch, Mininet and os-ken"]
fn a_tenant_with_os_ken_over_mutual_tls() {
    let Some(python) = os_ken::python() else {
        eprintln!("left out: tenants: python3 has no os-ken (pip install os-ken)");
        return;
    };
    scenario("tenant-tls", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let certificates = Certificates::make(sandbox)?;
        let app = os_ken::LEARNING_1_0;
        os_ken::start_tls(sandbox, &python, app, RED.controller, &certificates.of_controller())?;
        let [key, certificate, authority] = certificates.of_switch();
        let tls = format!(
            "[slice.red.tls]\ncertificate = '{certificate}'\nprivate_key = '{key}'\nca_certificate = '{authority}'\n"
        );
        let config = write_slices(sandbox, &(RED.section() + &tls))?;
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN])?;
        let mut mininet = Mininet::start_class(sandbox, "tenants", TOPOLOGY, Controller::Tcp(PORT))?;
        node.wait_for_switches(3)?;
        RED.wait(&mut node)?;
        RED.ping(&mut mininet)?;
        mininet.exit()?;
        node.stop()
    });
}
