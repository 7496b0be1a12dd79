//! `burnet demo`: starts a node and an emulated network on this machine, without privileges, and shows what they do.
//!
//! ```text
//!   this process:  emulated switches and hosts ──TCP, 127.0.0.1──> a node of its own (`burnet run`, a child)
//!                                                                    └── REST and the web page, 127.0.0.1:8181
//! ```
//!
//! There are two demos. `wan` shows a wide area network whose intents go on while links fail. `pings` shows one app that
//! controls a small network. Neither touches a network interface or leaves anything behind: the node ends with the demo.

mod pings;
mod plan;
mod reroute;
mod rest;
mod seen;
mod wan;

use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;
use clap::Args;
use config::{AppArgument, OpenFlowVersion};
use emulator::{SwitchOptions, Topology, Versions};
use node::descriptors;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// How long connecting all switches may take.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// How long it waits for an event before it checks signals again.
const LOOK: Duration = Duration::from_millis(20);

/// The network of the demo: 22 switches in 21 cities of Europe.
const WAN: &str = "zoo,BtEurope";

/// The network if only an app is named.
const SMALL: &str = "tree,2";

const EXAMPLES: &str = "\
Examples:
  burnet demo                              a wide area network with intents, traffic and failing links; until Ctrl-C
  burnet demo --once                       check all of that in half a minute: exit code 0 only if it holds
  burnet demo --topo zoo,Abilene --rest 127.0.0.1:8282
  burnet demo --topo tree,2                four hosts on three switches, with the app learning-switch
  burnet demo --once --app hub=trusted";

/// `burnet demo`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// End when everything has been checked once: exit code 0 only if all of it held
    #[arg(long)]
    pub once: bool,
    /// The network: zoo,NAME for the services of the network and the web page; any other of burnet emulate for one app. Default
    /// zoo,BtEurope, or tree,2 with --app
    #[arg(long, value_name = "TOPOLOGY")]
    pub topo: Option<DemoNetwork>,
    /// Where the REST interface and the web page are, with zoo,NAME [default: 127.0.0.1:8181; port 0: any free port]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub rest: Option<SocketAddr>,
    /// The version of OpenFlow that the switches speak
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    pub version: OpenFlowVersion,
    /// The app that controls the network, as in burnet run (repeat for more) [default: learning-switch; not for zoo,NAME]
    #[arg(long = "app", value_name = "NAME[=trusted]")]
    pub apps: Vec<AppArgument>,
    /// As in burnet run
    #[arg(long)]
    pub grant_all: bool,
}

/// The network of a demo.
#[derive(Clone, Debug, PartialEq)]
pub enum DemoNetwork {
    /// A network of the Topology Zoo, whose links have the delay of their length.
    Wan(Topology),
    /// Any other network.
    Other(Topology),
}

impl FromStr for DemoNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let topology: Topology =
            text.parse().map_err(|error: emulator::topology::NotATopology| error.to_string())?;
        let name = text.strip_prefix("zoo,");
        Ok(match name.and_then(|name| Topology::zoo(name, true)) {
            Some(wan) => DemoNetwork::Wan(wan),
            None => DemoNetwork::Other(topology),
        })
    }
}

impl DemoArgs {
    /// The network that these arguments mean: a wide area network is for the demo of the services, any other for that of one app.
    fn network(&self) -> Result<DemoNetwork, CommandError> {
        let default = if self.apps.is_empty() { WAN } else { SMALL };
        let network = self.topo.clone().map_or_else(|| default.parse().map_err(CommandError::Usage), Ok)?;
        match (network, self.rest) {
            (DemoNetwork::Wan(topology), _) if self.apps.is_empty() => Ok(DemoNetwork::Wan(topology)),
            (_, Some(rest)) => Err(CommandError::Usage(format!(
                "--rest {rest} has no effect here: leave it out. Only the demo of zoo,NAME without --app has a REST interface"
            ))),
            (DemoNetwork::Wan(topology) | DemoNetwork::Other(topology), None) => {
                Ok(DemoNetwork::Other(topology))
            }
        }
    }

    fn options(&self) -> SwitchOptions {
        let versions = match self.version {
            OpenFlowVersion::V1_0 => Versions::Only10,
            OpenFlowVersion::V1_3 => Versions::Only13,
        };
        SwitchOptions { versions, ..SwitchOptions::default() }
    }
}

/// Carries out `burnet demo`. The exit code is 0 if everything that it checks held.
pub fn demo(args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let stop = StopSignal::listen()?;
    descriptors::take_what_is_allowed();
    match args.network()? {
        DemoNetwork::Wan(topology) => wan::wan(args, topology, stop),
        DemoNetwork::Other(topology) => pings::pings(args, &topology, &stop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(topo: Option<&str>, app: Option<&str>) -> DemoArgs {
        DemoArgs {
            once: true,
            topo: topo.map(|topo| topo.parse().unwrap()),
            rest: None,
            version: OpenFlowVersion::V1_3,
            apps: app.map(|app| app.parse().unwrap()).into_iter().collect(),
            grant_all: false,
        }
    }

    /// The number of switches, and whether it is a wide area network.
    fn check(topo: Option<&str>, app: Option<&str>, expected: (usize, bool)) {
        let found = match args(topo, app).network().unwrap() {
            DemoNetwork::Wan(topology) => (topology.switches.len(), true),
            DemoNetwork::Other(topology) => (topology.switches.len(), false),
        };
        assert_eq!(found, expected, "{topo:?} {app:?}");
    }

    #[test]
    fn the_network_follows_from_the_arguments() {
        check(None, None, (22, true));
        check(Some("zoo,abilene"), None, (11, true));
        check(None, Some("hub"), (3, false));
        check(Some("zoo,abilene"), Some("hub"), (11, false));
        check(Some("tree,2"), None, (3, false));
        assert!("zoo,nowhere".parse::<DemoNetwork>().unwrap_err().contains("BtEurope"));
    }

    #[test]
    fn a_rest_address_without_a_rest_interface_is_refused() {
        let rest = "127.0.0.1:0".parse().ok();
        let refused = DemoArgs { rest, ..args(Some("tree,2"), None) }.network().unwrap_err().to_string();
        assert!(refused.contains("--rest 127.0.0.1:0 has no effect here"), "{refused}");
    }
}
