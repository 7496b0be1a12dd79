//! A load on controllers: switches that send packet-ins, directly or through a slice, round by round in turn.
//!
//! ```text
//!   load (switches) ──packet-ins──> a controller                        rounds A B A B … ──> the ratio of each pair
//!                  ──packet-ins──> a node, slice "blue" ──> a controller
//! ```
//!
//! In: what each side is, and the mode. Out: rates and latencies of both. Speeds of a machine vary, so only pairs of consecutive rounds are
//! compared. Each side has a controller of its own.

use crate::lab::Lab;
use crate::node::{Kind, Node};
use lab::bench::target::{OpenTarget, Target};
use load::{Counting, Hosts, Load, LoadOptions, Mode, RoundReport};
use openflow::Version;
use serde::Serialize;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Hosts of each switch.
pub(super) const HOSTS: u32 = 100;
/// Ports of a switch of the load.
pub(super) const PORTS: u32 = 4;
/// How long switches may take to connect, and their hosts to be known.
const PATIENCE: Duration = Duration::from_secs(20);
/// A limit that nobody reaches. Near one, the kernel asks a switch how many rules it has, and a switch that floods answers late.
const LIMITS: &str = "rules = 1000000000\n";

/// The learning switch of os-ken, as its users begin with.
const OS_KEN_APP: &str = include_str!("../../../../crates/emulator/tests/running/os_ken_app.py");

/// A tenant's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    /// The sink of `burnet bench`.
    Sink,
    /// Open vSwitch's test controller.
    OfOpenVSwitch,
    /// A learning switch of os-ken.
    OsKen,
}

impl Controller {
    /// Starts it on a free port. On `core`: it has no other one.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(super) fn start(self, lab: &Lab, core: Option<usize>) -> Result<OpenTarget, String> {
        let words = self.words(lab)?;
        let words = match core {
            Some(core) => [vec!["taskset".to_owned(), "-c".to_owned(), core.to_string()], words].concat(),
            None => words,
        };
        Target::Program(words).open().map_err(|error| error.to_string())
    }

    fn words(self, lab: &Lab) -> Result<Vec<String>, String> {
        Ok(match self {
            Controller::Sink => {
                let laboratory = lab.beside("burnet-lab").ok_or("burnet-lab is not beside the binary")?;
                let words = ["bench", "sink", "--die-with-parent", "--listen", "127.0.0.1:{port}"];
                [vec![laboratory.display().to_string()], words.map(str::to_owned).into()].concat()
            }
            Controller::OfOpenVSwitch => {
                ["ovs-testcontroller", "--verbose=OFF", "--unixctl=none", "ptcp:{port}:127.0.0.1"]
                    .map(str::to_owned)
                    .into()
            }
            Controller::OsKen => {
                let python = python().ok_or("python3 has no os-ken (pip install os-ken)")?;
                let file = std::env::temp_dir().join(format!("burnet-os-ken-{}.py", std::process::id()));
                std::fs::write(&file, OS_KEN_APP).map_err(|error| format!("no app of os-ken: {error}"))?;
                let python = python.to_string_lossy().into_owned();
                vec![python, "-B".to_owned(), file.display().to_string(), "{port}".to_owned()]
            }
        })
    }
}

/// The Python that has os-ken: the given one, or the system's.
fn python() -> Option<OsString> {
    let python = std::env::var_os("BURNET_OTHERS_PYTHON").unwrap_or_else(|| "python3".into());
    let mut import = Command::new(&python);
    import.args(["-c", "import os_ken"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success()).then_some(python)
}

/// What a load is sent to. All that was started for it ends with this value.
pub(super) struct Side {
    pub(super) load: Load,
    _node: Option<Node>,
    _controller: Option<OpenTarget>,
}

impl Side {
    /// A controller, without a node before it.
    pub(super) fn direct(
        lab: &Lab,
        controller: Controller,
        core: Option<usize>,
        switches: u16,
    ) -> Result<Side, String> {
        let target = controller.start(lab, core)?;
        Ok(Side { load: connected(target.address, switches, 1)?, _node: None, _controller: Some(target) })
    }

    /// A controller behind a slice. `more` are further lines of the slice's section, and `sections` further ones.
    pub(super) fn slice(
        lab: &Lab,
        (controller, core): (Controller, Option<usize>),
        switches: u16,
        (more, sections): (&str, &str),
    ) -> Result<Side, String> {
        let target = controller.start(lab, core)?;
        let (controller, ports) = (target.address, ports(switches));
        let section = slice(&Slice { name: "blue", tag: 10, controller, ports: &ports, more });
        let configuration = format!("[node]\nlog = \"error\"\n{section}{sections}");
        let node = Node::start(lab, Kind::Burnet, &configuration)?;
        let address = node.wait(&["slice.blue"])?;
        let load = connected(address, switches, 1)?;
        Ok(Side { load, _node: Some(node), _controller: Some(target) })
    }

    /// An app in a process zone with the packets and ports of such a slice.
    pub(super) fn app(lab: &Lab, switches: u16) -> Result<Side, String> {
        let ports: Vec<String> = (1..=PORTS).map(|port| port.to_string()).collect();
        let (ports, entering) = (ports.join(", "), (1..=PORTS).map(|port| format!("'in_port={port}'")));
        let entering = entering.collect::<Vec<_>>().join(", ");
        let configuration = format!(
            "[node]\nlog = \"error\"\n[app.learning-switch]\n[app.learning-switch.capabilities]\n\
             'view.read' = true\n'packet.in' = {{ match = [{entering}] }}\n\
             'packet.out' = {{ ports = [{ports}, 'FLOOD'] }}\n\
             'rule.write' = {{ match = ['dl_vlan=10'], own_ports = [{ports}], tables = [0], priority = [1, 65535], ports = [{ports}] }}\n"
        );
        let node = Node::start(lab, Kind::Burnet, &configuration)?;
        let address = node.wait(&["learning-switch"])?;
        let load = connected(address, switches, 1)?;
        Ok(Side { load, _node: Some(node), _controller: None })
    }

    /// One round.
    pub(super) fn round(&mut self, mode: Mode, length: Duration) -> Round {
        Round::of(&self.load.round(mode, length))
    }
}

/// What one round has given.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Round {
    pub per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub unanswered: u64,
}

impl Round {
    pub(super) fn of(report: &RoundReport) -> Round {
        let times = report.latencies.percentiles();
        let (p50_us, p99_us) = times.map_or((0.0, 0.0), |times| (times.p50_us, times.p99_us));
        Round { per_s: report.responses_per_s(), p50_us, p99_us, unanswered: report.unanswered() }
    }
}

/// A section `[slice.NAME]`.
pub(super) struct Slice<'a> {
    pub name: &'a str,
    pub tag: u16,
    pub controller: SocketAddr,
    pub ports: &'a str,
    pub more: &'a str,
}

/// The section of a slice with ports of its own.
pub(super) fn slice(it: &Slice<'_>) -> String {
    let Slice { name, tag, controller, ports, more } = it;
    format!(
        "[slice.{name}]\ncontrollers = ['{controller}']\nisolation = 'vlan'\ntag = {tag}\nown_ports = [{ports}]\n{more}\
         [slice.{name}.limits]\n{LIMITS}"
    )
}

/// All ports of the first switches.
fn ports(switches: u16) -> String {
    let ports = (1..=switches).flat_map(|switch| (1..=PORTS).map(move |port| format!("'s{switch}:{port}'")));
    ports.collect::<Vec<_>>().join(", ")
}

/// A load whose switches are connected, and whose hosts the controller knows.
pub(super) fn connected(target: SocketAddr, switches: u16, first_datapath: u64) -> Result<Load, String> {
    let options = LoadOptions {
        target,
        switches,
        first_datapath,
        version: Version::V1_3,
        hosts: Hosts::Ring(HOSTS),
        counting: Counting::FlowMods,
        threads: 1,
        // On two cores, a generator that waits in a loop would be what the others wait for.
        sleeps: true,
    };
    let mut load = Load::start(&options).map_err(|error| error.to_string())?;
    let there = load.connect(PATIENCE).switches;
    if there < usize::from(switches) {
        let faults = load.take_faults();
        return Err(format!("{there} of {switches} switches are connected: {}", faults.reasons.join("; ")));
    }
    let began = Instant::now();
    loop {
        let learned = load.learn(Duration::from_secs(2));
        if learned.announced > 0 && learned.answered >= learned.announced {
            return Ok(load);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{} of {} hosts are known", learned.answered, learned.announced));
        }
    }
}

/// Rounds of two sides in turn.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Pairs {
    pub a: Vec<Round>,
    pub b: Vec<Round>,
}

impl Pairs {
    /// One pair does not count: tables and caches fill.
    pub(super) fn measure(
        a: &mut Side,
        b: &mut Side,
        mode: Mode,
        (rounds, length): (usize, Duration),
    ) -> Pairs {
        let mut pairs = Pairs::default();
        for number in 0..=rounds {
            let (one, other) = (a.round(mode, length), b.round(mode, length));
            if number > 0 {
                pairs.a.push(one);
                pairs.b.push(other);
            }
        }
        pairs
    }

    /// A quotient of each pair: the first side by the second. A pair whose second side has nothing has none: [`Pairs::without_answers`] counts it.
    pub(super) fn ratios(&self, of: fn(&Round) -> f64) -> Vec<f64> {
        let pairs = self.a.iter().zip(&self.b).filter(|(_, b)| of(b) > 0.0);
        pairs.map(|(a, b)| of(a) / of(b)).collect()
    }

    /// How many rounds of each side had no answer at all.
    pub(super) fn without_answers(&self) -> [usize; 2] {
        [&self.a, &self.b].map(|side| side.iter().filter(|round| round.per_s == 0.0).count())
    }

    /// A difference of each pair: the first side without the second.
    pub(super) fn differences(&self, of: fn(&Round) -> f64) -> Vec<f64> {
        self.a.iter().zip(&self.b).map(|(a, b)| of(a) - of(b)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_without_answers_on_the_second_side_has_no_ratio_and_is_counted() {
        let rounds = |rates: [f64; 3]| rates.map(|per_s| Round { per_s, ..Round::default() }).to_vec();
        let pairs = Pairs { a: rounds([6.0, 0.0, 5.0]), b: rounds([3.0, 4.0, 0.0]) };
        assert_eq!(pairs.ratios(|round| round.per_s), [2.0, 0.0]);
        assert_eq!(pairs.without_answers(), [1, 1]);
    }
}
