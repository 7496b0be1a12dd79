//! The arguments of `burnet emulate`.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use emulator::{FailMode, Versions};

use super::agents::AgentArgs;
use super::bound::BoundArgs;
use super::played::PlayedArgs;
use super::proxied::ProxyArgs;
use config::first_address;

/// The default port of a controller (OpenFlow 1.3.5, 6.3.3).
const PORT: u16 = 6653;

/// The default time limit for the switches to connect.
const WAIT_S: u32 = 30;

const EXAMPLES: &str = "\
Examples:
  burnet emulate --topo tree,3 --ping-all                      against a node on this machine; exit code 0 if all pings come back
  burnet emulate --topo linear,8 --controller 10.0.0.1:6653    stays up until Ctrl-C and shows what happens
  burnet emulate --topo fattree,4 --ping-all                   has loops: floods follow a spanning tree, unless --spanning-tree off
  burnet emulate --scenario examples/link-failure/scenario.toml
  burnet emulate --topo tree,2 --ping-all --pcap control=openflow.pcap --pcap h1=h1.pcap
  burnet emulate --topo Abilene.graphml --propagation --ping-all
  burnet emulate --custom mytopo.py --topo mytopo,3 --ping-all
  burnet emulate --bind s1-eth1,s1-eth2 --dpid 1               one switch on this machine's interfaces, as in Mininet
  burnet emulate --topo linear,2 --profile hp-procurve-j9451a --profile s2=my.toml --ping-all
  burnet emulate --profile fulcrum-monaco --proxy 127.0.0.1:6650 --tap 1=s1-eth1,2=s1-eth2
                                                               plays a profile before a real Open vSwitch
  burnet emulate --topo single,4 --version 1.0 --ping-all --json | jq .pings.received";

/// `burnet emulate`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmulateArgs {
    /// The network: a shape in Mininet's words (tree,3; linear,8; ring,4; fattree,4; leafspine,4,2,8; random,20,3,7 …), a file of the
    /// Topology Zoo (FILE.graphml) or of topohub (FILE.json), or with --custom a name in that file
    #[arg(long, value_name = "TOPOLOGY", default_value = "tree,2")]
    pub topo: String,
    /// Take --topo from this Python file, written for Mininet's --custom; Mininet need not be installed
    #[arg(long, value_name = "FILE.py")]
    pub custom: Option<PathBuf>,
    /// Links of FILE.graphml and FILE.json delay as light in fibre does between the places of their ends
    #[arg(long, conflicts_with = "custom")]
    pub propagation: bool,
    /// The controller of the switches [default: 127.0.0.1:6653] (repeat for more)
    #[arg(long = "controller", value_name = "ADDR[:PORT]")]
    pub controllers: Vec<ControllerAddress>,
    /// Flood only along a spanning tree, as switches with STP do; auto: with --ping-all, if the network has loops; off: for controllers
    /// that break loops themselves
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_value = "auto", default_missing_value = "on")]
    pub spanning_tree: SpanningTree,
    /// The version of OpenFlow that the switches offer
    #[arg(long, value_name = "VERSION", default_value = "both")]
    pub version: EmulatedVersions,
    /// Play the scenario in this TOML file; exit code 0 only if all that it expects holds
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["ping_all", "topo", "custom", "propagation"])]
    pub scenario: Option<PathBuf>,
    /// The switch on interfaces of this machine.
    #[command(flatten)]
    pub bound: BoundArgs,
    /// The profiles that switches play.
    #[command(flatten)]
    pub played: PlayedArgs,
    /// Playing a profile before a real switch.
    #[command(flatten)]
    pub proxied: ProxyArgs,
    /// The agents of servers.
    #[command(flatten)]
    pub agents: AgentArgs,
    /// What switches do while no controller is connected: drop what has no rule, or be learning switches
    #[arg(long, value_name = "MODE", default_value = "secure")]
    pub fail_mode: EmulatedFailMode,
    /// Every host pings every other; exit code 0 only if all pings come back
    #[arg(long)]
    pub ping_all: bool,
    /// With --ping-all: stay up afterwards until Ctrl-C, with hosts that a controller has seen
    #[arg(long, requires = "ping_all")]
    pub stay: bool,
    /// Write the frames that pass a port to a pcap file: s1-eth1=FILE or h1=FILE; s1=FILE or control=FILE for the
    /// OpenFlow messages of one switch or of all (repeat for more)
    #[arg(long = "pcap", value_name = "PORT=FILE")]
    pub pcaps: Vec<PcapWish>,
    /// How many seconds the switches may take to be connected before --ping-all or a scenario gives up
    #[arg(long = "wait", value_name = "SECONDS", default_value_t = WAIT_S, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub wait_s: u32,
    /// After how many seconds a ping is lost
    #[arg(long = "ping-timeout", value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub ping_timeout_s: u32,
    /// Print at the end whether the machine has kept up with the network, so that its times can be believed
    #[arg(long)]
    pub validity: bool,
    /// The same, and exit code 1 if it has not
    #[arg(long)]
    pub strict: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

impl EmulateArgs {
    /// The name of the network, as the operator gave it.
    pub(super) fn name(&self) -> String {
        let scenario = self.scenario.as_ref().map(|file| file.display().to_string());
        scenario.or_else(|| self.bound.name()).unwrap_or_else(|| self.topo.clone())
    }

    /// Whether the summary has what the meter says.
    pub(super) fn is_metered(&self) -> bool {
        self.validity || self.strict
    }

    /// The first of the options that say something about connections or real time, of which virtual time has none.
    pub(super) fn without_effect_in_virtual_time(&self) -> Option<&'static str> {
        let options = [
            ("--controller", !self.controllers.is_empty()),
            ("--pcap", !self.pcaps.is_empty()),
            ("--version", self.version != EmulatedVersions::Both),
            ("--fail-mode", self.fail_mode != EmulatedFailMode::Secure),
            ("--wait", self.wait_s != WAIT_S),
            ("--validity", self.validity),
            ("--strict", self.strict),
        ];
        options.into_iter().find(|(_, is_said)| *is_said).map(|(option, _)| option)
    }
}

/// What to capture, and the file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapWish {
    /// A port (`s1-eth1`), a host, a switch or `control`.
    pub what: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for PcapWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((what, file)) if !what.is_empty() && !file.is_empty() => {
                Ok(PcapWish { what: what.to_owned(), file: file.into() })
            }
            _ => Err(format!(
                "'{text}' names no port and file: write s1-eth1=FILE, h1=FILE, s1=FILE or control=FILE"
            )),
        }
    }
}

/// The versions that emulated switches offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmulatedVersions {
    /// Only 1.0.
    #[value(name = "1.0")]
    V1_0,
    /// Only 1.3.
    #[value(name = "1.3")]
    V1_3,
    /// Both; the controller chooses.
    #[value(name = "both")]
    Both,
}

impl From<EmulatedVersions> for Versions {
    fn from(versions: EmulatedVersions) -> Versions {
        match versions {
            EmulatedVersions::V1_0 => Versions::Only10,
            EmulatedVersions::V1_3 => Versions::Only13,
            EmulatedVersions::Both => Versions::Both,
        }
    }
}

/// Whether floods follow a spanning tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpanningTree {
    /// If a scenario says so, or if all hosts ping all in a network with loops.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What emulated switches do while no controller is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmulatedFailMode {
    /// They go on by their rules and drop what has none.
    Secure,
    /// They are learning switches.
    Standalone,
}

impl From<EmulatedFailMode> for FailMode {
    fn from(mode: EmulatedFailMode) -> FailMode {
        match mode {
            EmulatedFailMode::Secure => FailMode::Secure,
            EmulatedFailMode::Standalone => FailMode::Standalone,
        }
    }
}

/// The address of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerAddress(pub SocketAddr);

impl Default for ControllerAddress {
    fn default() -> Self {
        ControllerAddress((Ipv4Addr::LOCALHOST, PORT).into())
    }
}

/// The error for an invalid address of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAController(String);

/// `ADDRESS`, `ADDRESS:PORT`, `[IPV6-ADDRESS]:PORT`, with a host's name in place of the address; `tcp:` before it, as Open vSwitch writes it, is taken off.
impl FromStr for ControllerAddress {
    type Err = NotAController;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = text.strip_prefix("tcp:").unwrap_or(text);
        let whole = place.parse().ok();
        let address = whole.or_else(|| Some(SocketAddr::new(place.parse().ok()?, PORT)));
        let named = || first_address(place).or_else(|| first_address(&format!("{place}:{PORT}")));
        address.or_else(named).map(ControllerAddress).ok_or_else(|| NotAController(text.to_owned()))
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NotAController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no controller's address: write ADDRESS:PORT, for example 127.0.0.1:{PORT}", self.0)
    }
}

impl std::error::Error for NotAController {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_port() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:6653"),
            ("10.0.0.1:6633", "10.0.0.1:6633"),
            ("tcp:10.0.0.1:6633", "10.0.0.1:6633"),
            ("::1", "[::1]:6653"),
            ("[::1]:1", "[::1]:1"),
            ("localhost:6633", "127.0.0.1:6633"),
            ("localhost", "127.0.0.1:6653"),
        ] {
            assert_eq!(text.parse::<ControllerAddress>().unwrap().to_string(), expected);
        }
        for text in
            ["", "6653", "localhost:", "localhost:65536", "127.0.0.1:65536", "tcp:", "no.such.host.invalid:1"]
        {
            let refused = text.parse::<ControllerAddress>().unwrap_err().to_string();
            assert!(refused.contains("write ADDRESS:PORT"), "{refused}");
        }
    }
}
