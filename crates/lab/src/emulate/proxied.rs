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
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use emulator::SEED_DEFAULT;
use emulator::profiles::{self, ProfileWish};
use emulator::validity::{DelayPair, Delays, Validity, Verdict};
use flow::PortNo;
use profile::Profile;
use proxy::run::{OWED_MAX, ProxyRun, RunOptions};
use proxy::{Counters, Method, Settings, Way};
use serde::Serialize;

use super::played::PlayedArgs;
use crate::machine_reading::MachineReader;
use crate::printing::print;
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::json;
use burnet::commands::stop_signal::StopSignal;

/// How long a turn waits before it looks for a signal.
const LOOK: Duration = Duration::from_millis(20);
/// The quantiles of delays that are shown.
const SHOWN: [(&str, f64); 5] = [("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
/// JSON has the quantiles at these many steps from 0 to 1, for pictures of distributions.
const STEPS: u32 = 100;

/// Playing a profile before a real switch.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ProxyArgs {
    /// Emulate no switch, but play --profile before a real one that connects here, on its way to the controller
    #[arg(
        long,
        value_name = "ADDR:PORT",
        requires = "profiles",
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
    fn options(
        &self,
        played: &PlayedArgs,
        controllers: &[SocketAddr],
    ) -> Result<Option<RunOptions>, CommandError> {
        let Some(listen) = self.proxy else { return Ok(None) };
        let [ProfileWish { switch: None, profile }] = played.profiles.as_slice() else {
            return Err(CommandError::Usage(
                "--proxy serves one switch: give it one --profile NAME|FILE, without SWITCH=".to_owned(),
            ));
        };
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
        let read = |name: &str| profiles::read(name, Path::new("")).map_err(CommandError::Usage);
        let (profile, base) = (read(profile)?, read(&self.base)?);
        let seed = played.seed.unwrap_or(SEED_DEFAULT);
        Ok(Some(RunOptions {
            listen,
            controller: *controller,
            taps: self.taps.iter().map(|tap| (tap.port, tap.interface.clone())).collect(),
            settings: Settings { profile, base, method, seed, slow_motion: played.slow_motion },
            owed_max: OWED_MAX,
        }))
    }
}

/// What an operator must know before the run.
fn foretold(options: &RunOptions) -> Vec<String> {
    let Settings { profile, base, method, slow_motion, .. } = &options.settings;
    if options.settings.is_null() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (what, found) in [
        ("packet-ins", options.settings.ingress_shortfall()),
        ("packets that flow mods and packet-outs send", options.settings.egress_shortfall()),
    ] {
        if found.share > 0.0 {
            lines.push(format!(
                "{} is faster than {} with {what}: {found} come too late",
                profile.name, base.name
            ));
        }
    }
    if options.taps.is_empty() {
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
    if *slow_motion > 1 {
        lines.push(slow_motion_line(*slow_motion, *method));
    }
    lines
}

/// What is slowed, and what is not.
fn slow_motion_line(factor: u32, method: Method) -> String {
    let (slowed, own) = match method {
        Method::Full => ("delays and time-outs", ""),
        Method::Paper => ("delays", ", the switch's own time-outs"),
    };
    format!(
        "slow motion: {slowed} are {factor} times as long, and the delays below are scaled back; not slowed: the timers of hosts (TCP's \
         retransmission, ARP), the rates of links{own}, the controller"
    )
}

/// The result of a run.
#[derive(Debug, Serialize)]
struct ProxySummary {
    profile: String,
    base: String,
    slow_motion: u32,
    ran_ms: f64,
    counters: ProxyCounted,
    /// What the switch itself took for packet-ins whose packets taps have seen. `None` if there was none.
    switch: Option<DelaysSeen>,
    /// From a packet at a port to its packet-in.
    ingress: Option<DelaysSeen>,
    /// From a message of the controller to when the switch got it.
    egress: Option<DelaysSeen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<Verdict>,
}

/// Delays, at even steps from the shortest to the longest.
#[derive(Debug, Serialize)]
struct DelaysSeen {
    count: u64,
    /// What the model wanted. `None`: no model decides them.
    #[serde(skip_serializing_if = "Option::is_none")]
    meant_ms: Option<Vec<f64>>,
    /// What they were.
    actual_ms: Vec<f64>,
}

impl DelaysSeen {
    /// The delays of one way, in the time of the target.
    fn new(delays: &Delays) -> Option<Self> {
        let at = |step| delays.quantile(f64::from(step) / f64::from(STEPS));
        let pairs: Vec<DelayPair> = (0..=STEPS).map(at).collect::<Option<_>>()?;
        let ms = |of: fn(&DelayPair) -> Duration| {
            pairs.iter().map(|pair| of(pair).as_secs_f64() * 1000.0).collect::<Vec<_>>()
        };
        let (meant_ms, actual_ms) = (Some(ms(|pair| pair.meant)), ms(|pair| pair.actual));
        Some(DelaysSeen { count: delays.count(), meant_ms, actual_ms })
    }

    /// Delays that no model asked for.
    fn unasked(delays: &Delays) -> Option<Self> {
        Some(DelaysSeen { meant_ms: None, ..Self::new(delays)? })
    }

    /// One line.
    fn text(&self) -> String {
        let shown = SHOWN.map(|(name, share)| {
            let at =
                |of: &[f64]| of.get((share * f64::from(STEPS)).round() as usize).copied().unwrap_or_default();
            let meant = self.meant_ms.as_ref().map(|meant| format!(" (meant {:.2})", at(meant)));
            format!("{name} {:.2} ms{}", at(&self.actual_ms), meant.unwrap_or_default())
        });
        format!("{} delays: {}", self.count, shown.join(", "))
    }
}

/// The counters of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct ProxyCounted {
    sessions: u64,
    packet_ins: u64,
    packet_ins_late: u64,
    packet_ins_unseen: u64,
    packet_ins_stale: u64,
    packet_ins_above_limit: u64,
    packet_ins_queue_full: u64,
    packet_ins_no_room: u64,
    packets_not_kept: u64,
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
            packet_ins_stale: of.packet_ins_stale,
            packet_ins_above_limit: of.packet_ins_above_limit,
            packet_ins_queue_full: of.packet_ins_queue_full,
            packet_ins_no_room: of.packet_ins_no_room,
            packets_not_kept: of.packets_not_kept,
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
        let slow = match self.slow_motion {
            1 => String::new(),
            factor => format!(", {factor} times slower"),
        };
        writeln!(
            f,
            "played      {} before {}, {:.1} s{slow}",
            self.profile,
            self.base,
            self.ran_ms / 1000.0
        )?;
        writeln!(f, "sessions    {}", of.sessions)?;
        writeln!(
            f,
            "packet-ins  {} sent; {} of them later than the target would, {} with a drawn delay since no tap saw the packet",
            of.packet_ins, of.packet_ins_late, of.packet_ins_unseen,
        )?;
        writeln!(
            f,
            "lost        {} packet-ins above the target's limit, {} at its full queue, {} because the proxy was full",
            of.packet_ins_above_limit, of.packet_ins_queue_full, of.packet_ins_no_room,
        )?;
        let ways = [("switch", &self.switch), ("ingress", &self.ingress), ("egress", &self.egress)];
        for (name, delays) in ways {
            if let Some(delays) = delays {
                writeln!(f, "{name:<10}  {}", delays.text())?;
            }
        }
        writeln!(
            f,
            "rules       {} refused by the target, {} evicted, {} expired, {} in software without a meter",
            of.refused, of.evicted, of.expired, of.unmetered
        )?;
        self.write_trouble(f)?;
        if let Some(verdict) = &self.validity {
            writeln!(f, "validity    {}", verdict.to_string().replace('\n', "\n            "))?;
        }
        Ok(())
    }
}

impl ProxySummary {
    /// What did not go as the target would do it, and is not its fault.
    fn write_trouble(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.counters;
        for (count, what) in [
            (of.messages_lost, "messages of the controller lost, as the target would lose them"),
            (
                of.packets_not_kept,
                "packets not kept, because the proxy was full: the controller got them whole",
            ),
            (
                of.packet_ins_stale,
                "packet-ins kept from the controller, because the target had the rule: they went back through the switch's tables",
            ),
            (of.own_errors, "errors of the switch about the proxy's own messages"),
        ] {
            if count > 0 {
                writeln!(f, "trouble     {count} {what}")?;
            }
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
    played: &PlayedArgs,
    shown: Shown,
    controllers: &[SocketAddr],
    stop: &StopSignal,
) -> Result<Option<ExitCode>, CommandError> {
    let Some(options) = args.options(played, controllers)? else { return Ok(None) };
    let Profile { name, about, .. } = options.settings.profile.clone();
    let (base, slow_motion) = (options.settings.base.name.clone(), options.settings.slow_motion);
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
    if verdict.is_none() && (shown.validity || shown.strict) {
        stage.say("no switch and controller were connected: nothing was judged");
    }
    let is_believed = verdict.as_ref().is_some_and(|verdict| verdict.validity != Validity::Invalid);
    let summary = ProxySummary {
        profile: name,
        base,
        slow_motion,
        ran_ms: stage.elapsed().as_secs_f64() * 1000.0,
        counters: run.counters().into(),
        switch: DelaysSeen::unasked(run.base_delays()),
        ingress: DelaysSeen::new(run.delays(Way::Ingress)),
        egress: DelaysSeen::new(run.delays(Way::Egress)),
        validity: verdict.filter(|_| shown.validity),
    };
    print(&if shown.json { json(&summary)? } else { summary.to_string() })?;
    Ok(Some(if shown.strict && !is_believed { ExitCode::from(1) } else { ExitCode::SUCCESS }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(taps: &[&str]) -> ProxyArgs {
        ProxyArgs {
            proxy: Some("127.0.0.1:0".parse().unwrap()),
            taps: taps.iter().map(|text| text.parse().unwrap()).collect(),
            base: "ovs-3.1".to_owned(),
            model: PlayedModel::Full,
        }
    }

    const CONTROLLER: [SocketAddr; 1] =
        [SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6653)];

    fn played(profiles: &[&str]) -> PlayedArgs {
        PlayedArgs {
            profiles: profiles.iter().map(|text| text.parse().unwrap()).collect(),
            slow_motion: 1,
            seed: Some(7),
        }
    }

    fn options(profile: &str, taps: &[&str]) -> RunOptions {
        proxied(taps).options(&played(&[profile]), &CONTROLLER).unwrap().unwrap()
    }

    fn refused(profiles: &[&str], taps: &[&str], controllers: &[SocketAddr], expected: &str) {
        let error = proxied(taps).options(&played(profiles), controllers).unwrap_err().to_string();
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
        refused(&["null"], &["1=a", "1=b"], &CONTROLLER, "twice");
        refused(&["null"], &["1=a", "2=a"], &CONTROLLER, "twice");
        refused(&["none"], &[], &CONTROLLER, "neither a file nor a built-in profile");
        refused(&["null"], &[], &[CONTROLLER[0]; 2], "one controller");
        refused(&["s1=null"], &[], &CONTROLLER, "without SWITCH=");
        refused(&["null", "tango-1"], &[], &CONTROLLER, "one --profile");
        let options = options("hp-procurve-j9451a", &["1=a"]);
        assert_eq!((options.taps.len(), options.settings.base.name.as_str()), (1, "ovs-3.1"));
        assert_eq!(options.settings.seed, 7);
    }

    #[test]
    fn the_result_says_what_was_lost_and_how_long_packets_took() {
        let mut delays = Delays::default();
        for ms in 1..=100 {
            let (meant, actual) = (Duration::from_millis(ms), Duration::from_millis(2 * ms));
            delays.add(DelayPair { meant, actual });
        }
        let summary = ProxySummary {
            profile: "hp".to_owned(),
            base: "ovs-3.1".to_owned(),
            slow_motion: 10,
            ran_ms: 2500.0,
            counters: Counters {
                packet_ins: 7,
                packet_ins_above_limit: 3,
                packets_not_kept: 2,
                ..Counters::default()
            }
            .into(),
            switch: DelaysSeen::unasked(&delays),
            ingress: DelaysSeen::new(&delays),
            egress: DelaysSeen::new(&Delays::default()),
            validity: None,
        };
        let text = summary.to_string();
        for expected in [
            "played      hp before ovs-3.1, 2.5 s, 10 times slower\n",
            "packet-ins  7 sent; 0 of them later than the target would",
            "lost        3 packet-ins above the target's limit, 0 at its full queue, 0 because the proxy was full\n",
            "switch      100 delays: p10 20.",
            "ingress     100 delays: p10 20.",
            " (meant 10.",
            "trouble     2 packets not kept",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains("egress"), "{text}");
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["ingress"]["actual_ms"].as_array().map(Vec::len), Some(101));
        assert!(json["switch"].get("meant_ms").is_none() && json["egress"].is_null());
    }

    #[test]
    fn it_is_said_before_the_run_what_cannot_be_met() {
        let said = |profile: &str, taps: &[&str]| foretold(&options(profile, taps)).join("\n");
        assert_eq!(said("null", &[]), "");
        let hp = said("hp-procurve-j9451a", &[]);
        assert!(hp.contains("no port is tapped") && hp.contains("share a meter"), "{hp}");
        let mut fast = options("null", &["1=a"]);
        fast.settings.profile.delay.ingress_us = profile::Quantiles::constant(2.0);
        let said = foretold(&fast).join("\n");
        fast.settings.slow_motion = 10_000;
        let slowed = foretold(&fast).join("\n");
        assert!(!slowed.contains("null is faster than ovs-3.1 with packet-ins"), "{slowed}");
        assert!(
            slowed.contains("10000 times as long")
                && slowed.contains("not slowed: the timers of hosts (TCP's")
        );
        assert!(said.contains("null is faster than ovs-3.1 with packet-ins: 100 % of them"), "{said}");
    }
}
