//! `burnet emulate --proxy`: plays a profile before a real switch.
//!
//! ```text
//!   arguments ──> ProxyRun ⇄ switch, controller, taps
//!                    └──> what is said before, notices, the counters and the validity at the end
//! ```
//!
//! It never starts a switch or a controller, and emulates no network.

use std::fmt;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use emulator::validity::{Validity, Verdict};
use flow::PortNo;
use profile::Profile;
use proxy::run::{ProxyRun, RunOptions};
use proxy::{Counters, Method, Settings};
use serde::Serialize;

use crate::machine_reading::MachineReader;
use crate::profiles;
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::json;
use burnet::commands::stop_signal::StopSignal;

/// How long a turn waits before it looks for a signal.
const LOOK: Duration = Duration::from_millis(20);
/// The seed of all draws, so that two runs draw the same.
const SEED: u64 = 1;

/// Playing a profile before a real switch.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ProxyArgs {
    /// The profile of the switch to imitate: a built-in name (hp-procurve-j9451a, fulcrum-monaco …) or FILE.toml
    #[arg(long, value_name = "NAME|FILE", requires = "proxy")]
    pub profile: Option<String>,
    /// Emulate no switch, but play --profile before a real one that connects here, on its way to the controller
    #[arg(
        long,
        value_name = "ADDR:PORT",
        requires = "profile",
        conflicts_with_all = ["topo", "custom", "propagation", "scenario", "ping_all", "pcaps", "bind", "version", "fail_mode", "spanning_tree"]
    )]
    pub proxy: Option<SocketAddr>,
    /// The interfaces of the real switch's ports, to see how long it takes for a packet-in (needs root)
    #[arg(long = "tap", value_name = "PORT=IF", value_delimiter = ',', requires = "proxy")]
    pub taps: Vec<TapWish>,
    /// The profile of the real switch, as it was measured
    #[arg(long, value_name = "NAME|FILE", default_value = "ovs-3.1", requires = "proxy")]
    pub base: String,
    /// What is played: the whole model, or the two delays of the switch-models paper alone
    #[arg(long, value_name = "MODEL", default_value = "full", requires = "proxy")]
    pub model: PlayedModel,
}

/// What is played of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlayedModel {
    /// The whole model.
    Full,
    /// The two delays of the paper.
    Paper,
}

/// A port of the switch and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapWish {
    /// The port.
    pub port: PortNo,
    /// The interface.
    pub interface: String,
}

/// `PORT=IF`.
impl FromStr for TapWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("'{text}' is not PORT=IF: write for example 1=s1-eth1");
        let (port, interface) = text.split_once('=').ok_or_else(wrong)?;
        let is_port = |port: &u32| (1..=PortNo::MAX.0).contains(port);
        let port = port.parse().ok().filter(is_port).ok_or_else(wrong)?;
        if interface.is_empty() {
            return Err(wrong());
        }
        Ok(TapWish { port: PortNo(port), interface: interface.to_owned() })
    }
}

impl ProxyArgs {
    /// Where the switch connects, and what is played there, if a proxy is requested.
    fn options(&self, controllers: &[SocketAddr]) -> Result<Option<RunOptions>, CommandError> {
        let (Some(listen), Some(profile)) = (self.proxy, &self.profile) else { return Ok(None) };
        let [controller] = controllers else {
            return Err(CommandError::Usage(format!(
                "--proxy serves one controller, and --controller is given {} times",
                controllers.len()
            )));
        };
        for (index, tap) in self.taps.iter().enumerate() {
            let is_same = |other: &TapWish| other.port == tap.port || other.interface == tap.interface;
            if self.taps[..index].iter().any(is_same) {
                return Err(CommandError::Usage(format!(
                    "--tap names port {} or {} twice",
                    tap.port, tap.interface
                )));
            }
        }
        let method = match self.model {
            PlayedModel::Full => Method::Full,
            PlayedModel::Paper => Method::Paper,
        };
        let (profile, base) = (profiles::read(profile)?, profiles::read(&self.base)?);
        Ok(Some(RunOptions {
            listen,
            controller: *controller,
            taps: self.taps.iter().map(|tap| (tap.port, tap.interface.clone())).collect(),
            settings: Settings { profile, base, method, seed: SEED },
        }))
    }
}

/// What an operator must know before the run.
fn foretold(options: &RunOptions) -> Vec<String> {
    let Settings { profile, base, .. } = &options.settings;
    let mut lines = Vec::new();
    for (what, found) in [
        ("packet-ins", options.settings.ingress_shortfall()),
        ("packets that flow mods and packet-outs send", options.settings.egress_shortfall()),
    ] {
        if found.share > 0.0 && !options.settings.is_null() {
            lines.push(format!(
                "{} is faster than {} with {what}: {found} come too late",
                profile.name, base.name
            ));
        }
    }
    if options.taps.is_empty() && !options.settings.is_null() {
        lines.push(format!(
            "no port is tapped: the switch's own part of each packet-in's delay is drawn from the profile {}",
            base.name
        ));
    }
    if options.settings.meters_software() {
        lines.push(
            "rules in software share a meter with OpenFlow 1.3; with 1.0 they forward at full rate"
                .to_owned(),
        );
    }
    lines
}

/// The result of a run.
#[derive(Debug, Serialize)]
struct ProxySummary {
    profile: String,
    base: String,
    ran_ms: f64,
    counters: ProxyCounted,
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<Verdict>,
}

/// The counters of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct ProxyCounted {
    sessions: u64,
    packet_ins: u64,
    packet_ins_late: u64,
    packet_ins_unseen: u64,
    packet_ins_above_limit: u64,
    packet_ins_queue_full: u64,
    packet_ins_no_room: u64,
    messages_lost: u64,
    refused: u64,
    evicted: u64,
    expired: u64,
    unmetered: u64,
    frames_forgotten: u64,
    own_errors: u64,
}

impl From<Counters> for ProxyCounted {
    fn from(of: Counters) -> Self {
        ProxyCounted {
            sessions: of.sessions,
            packet_ins: of.packet_ins,
            packet_ins_late: of.packet_ins_late,
            packet_ins_unseen: of.packet_ins_unseen,
            packet_ins_above_limit: of.packet_ins_above_limit,
            packet_ins_queue_full: of.packet_ins_queue_full,
            packet_ins_no_room: of.packet_ins_no_room,
            messages_lost: of.messages_lost,
            refused: of.refused,
            evicted: of.evicted,
            expired: of.expired,
            unmetered: of.unmetered,
            frames_forgotten: of.frames_forgotten,
            own_errors: of.own_errors,
        }
    }
}

impl fmt::Display for ProxySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.counters;
        writeln!(f, "played      {} before {}, {:.1} s", self.profile, self.base, self.ran_ms / 1000.0)?;
        writeln!(f, "sessions    {}", of.sessions)?;
        writeln!(
            f,
            "packet-ins  {}; {} later than the target's; {} seen by no tap; lost: {} above the limit, {} queue full, {} without room here",
            of.packet_ins,
            of.packet_ins_late,
            of.packet_ins_unseen,
            of.packet_ins_above_limit,
            of.packet_ins_queue_full,
            of.packet_ins_no_room,
        )?;
        writeln!(
            f,
            "rules       {} refused, {} evicted, {} expired, {} in software without a meter",
            of.refused, of.evicted, of.expired, of.unmetered
        )?;
        if of.messages_lost + of.own_errors > 0 {
            let (lost, errors) = (of.messages_lost, of.own_errors);
            writeln!(
                f,
                "trouble     {lost} messages lost, {errors} errors of the switch about the proxy's own messages"
            )?;
        }
        if let Some(verdict) = &self.validity {
            writeln!(f, "validity    {}", verdict.to_string().replace('\n', "\n            "))?;
        }
        Ok(())
    }
}

/// How the result is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// As JSON.
    pub(super) json: bool,
    /// With what the meter says.
    pub(super) validity: bool,
    /// Whether an invalid run has exit code 1.
    pub(super) strict: bool,
}

/// Plays a profile before a real switch, if that is requested.
pub(super) fn play(
    args: &ProxyArgs,
    shown: Shown,
    controllers: &[SocketAddr],
    stop: &StopSignal,
) -> Result<Option<ExitCode>, CommandError> {
    let Some(options) = args.options(controllers)? else { return Ok(None) };
    let Profile { name, about, .. } = options.settings.profile.clone();
    let base = options.settings.base.name.clone();
    let mut stage = if shown.json { Stage::on_stderr() } else { Stage::on_stdout() };
    let mut run = ProxyRun::open(options.clone())
        .map_err(|error| CommandError::DidNotWork(format!("the proxy cannot be started: {error}")))?;
    let address = run.address()?;
    stage.say(&format!("{name} is played before the switch that connects to {address}: {about}"));
    stage.say(&format!("controller: {}", options.controller));
    foretold(&options).iter().for_each(|line| stage.say(line));
    let mut machine = MachineReader::new();
    while !stop.came_within(Duration::ZERO) {
        run.turn(LOOK)?;
        run.take_notices().iter().for_each(|notice| stage.say(&notice.to_string()));
        machine.look().into_iter().for_each(|reading| run.note_machine(reading));
    }
    machine.finish().into_iter().for_each(|reading| run.note_machine(reading));
    let verdict = run.verdict();
    let is_invalid = verdict.validity == Validity::Invalid;
    let summary = ProxySummary {
        profile: name,
        base,
        ran_ms: stage.elapsed().as_secs_f64() * 1000.0,
        counters: run.counters().into(),
        validity: shown.validity.then_some(verdict),
    };
    super::print(&if shown.json { json(&summary)? } else { summary.to_string() })?;
    Ok(Some(if shown.strict && is_invalid { ExitCode::from(1) } else { ExitCode::SUCCESS }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(profile: &str, taps: &[&str]) -> ProxyArgs {
        ProxyArgs {
            profile: Some(profile.to_owned()),
            proxy: Some("127.0.0.1:0".parse().unwrap()),
            taps: taps.iter().map(|text| text.parse().unwrap()).collect(),
            base: "ovs-3.1".to_owned(),
            model: PlayedModel::Full,
        }
    }

    const CONTROLLER: [SocketAddr; 1] =
        [SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6653)];

    fn refused(args: &ProxyArgs, controllers: &[SocketAddr], expected: &str) {
        let error = args.options(controllers).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_no_tap_is_refused() {
        for text in ["", "s1-eth1", "0=s1-eth1", "1=", "x=s1-eth1", "4294967295=s1-eth1"] {
            assert!(text.parse::<TapWish>().is_err(), "{text}");
        }
        assert_eq!("7=a=b".parse(), Ok(TapWish { port: PortNo(7), interface: "a=b".to_owned() }));
    }

    #[test]
    fn taps_profiles_and_controllers_are_checked_before_the_run() {
        refused(&proxied("null", &["1=a", "1=b"]), &CONTROLLER, "twice");
        refused(&proxied("null", &["1=a", "2=a"]), &CONTROLLER, "twice");
        refused(&proxied("none", &[]), &CONTROLLER, "neither a file nor a built-in profile");
        refused(&proxied("null", &[]), &[CONTROLLER[0]; 2], "one controller");
        let options = proxied("hp-procurve-j9451a", &["1=a"]).options(&CONTROLLER).unwrap().unwrap();
        assert_eq!((options.taps.len(), options.settings.base.name.as_str()), (1, "ovs-3.1"));
    }

    #[test]
    fn it_is_said_before_the_run_what_cannot_be_met() {
        let said = |profile, taps: &[&str]| {
            foretold(&proxied(profile, taps).options(&CONTROLLER).unwrap().unwrap()).join("\n")
        };
        assert_eq!(said("null", &[]), "");
        let hp = said("hp-procurve-j9451a", &[]);
        assert!(hp.contains("no port is tapped") && hp.contains("share a meter"), "{hp}");
        let mut fast = proxied("null", &["1=a"]).options(&CONTROLLER).unwrap().unwrap();
        fast.settings.profile.delay.ingress_us = profile::Quantiles::constant(1.0);
        let said = foretold(&fast).join("\n");
        assert!(said.contains("null is faster than ovs-3.1 with packet-ins: 100 % of them"), "{said}");
    }
}
