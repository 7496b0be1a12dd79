//! The arguments of `burnet bench`, as types.
//!
//! In: arguments. Out: what to measure, or an error in the arguments (exit code 2). It measures nothing.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use load::{Counting, HOSTS_MAX, Hosts, LoadOptions, Mode, SWITCHES_MAX};
use openflow::Version;

use super::target::{Address, Target};
use burnet::cli::CommandError;
use config::OpenFlowVersion;

/// A round is long enough to measure something, and short enough that its counters do not overflow.
const SECONDS: std::ops::RangeInclusive<f64> = 0.01..=3600.0;
/// More threads than any machine of today has cores are a mistake.
const THREADS_MAX: u16 = 256;
/// Rounds of a run; their results are all kept.
const ROUNDS_MAX: u32 = 10_000;
/// A host has a series of queries of its own, of which a network has at most 256.
const PROFILED_SWITCHES_MAX: i64 = 256;
/// The defaults of cbench: 16 loops of which one is warm-up, 100,000 addresses.
const CBENCH_ROUNDS: u32 = 15;
const CBENCH_HOSTS: u32 = 100_000;

/// The parts of `burnet bench suite`, in their order.
pub const PARTS: [&str; 9] =
    ["throughput", "zones", "one-switch", "latency", "scaling", "memory", "start", "overload", "services"];

/// `burnet bench`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct BenchArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// The measurements, and the peer to compare with.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum BenchCommand {
    /// Send packet-ins from many switches to a controller, and count and time its answers
    #[command(after_help = SOUTHBOUND_EXAMPLES)]
    Southbound(SouthboundArgs),
    /// Measure two controllers in turn, round by round, and print their ratio
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Measure calls from one app to another, beside the wake-ups that they need
    #[command(after_help = SERVICES_EXAMPLES)]
    Services(ServicesArgs),
    /// Measure Burnet itself, all its figures in one run beside what was asked of them
    #[command(after_help = SUITE_EXAMPLES)]
    Suite(SuiteArgs),
    /// Emulate a network on an idle and on a starved machine, and print how often the meter of runs notices
    #[command(after_help = METER_EXAMPLES)]
    Meter(MeterArgs),
    /// Emulate many switches with a profile, each under a load of new flows, and print whether this machine keeps up
    #[command(after_help = PROFILES_EXAMPLES)]
    Profiles(ProfilesArgs),
    /// Answer each packet-in with a ready flow mod: what generator and machine can do at most
    #[command(after_help = SINK_EXAMPLES)]
    Sink(SinkArgs),
}

const SOUTHBOUND_EXAMPLES: &str = "\
Examples:
  burnet bench southbound                                        16 switches, as many packet-ins as the controller takes
  burnet bench southbound --mode latency --switches 1            one packet-in at a time
  burnet bench southbound --mode latency --rate 50000 --json     50,000 a second, and how long each takes
  burnet bench southbound --like-cbench --target 10.0.0.1:6633   what cbench measures, in its words

Exit code 1 if a switch could not connect or was lost, or if nothing was answered; the figures are printed all the same.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  burnet bench compare 127.0.0.1:6653 sink
  burnet bench compare node:learning-switch node:learning-switch=trusted --mode latency
  burnet bench compare node:learning-switch 'ovs-testcontroller ptcp:{port}'

Exit code 1 if a figure of either is not what was asked for.";

const SUITE_EXAMPLES: &str = "\
Examples:
  burnet bench suite                                   some minutes; nothing else should run beside it
  burnet bench suite --only throughput --only latency
  burnet bench suite --json > figures.json

Exit code 1 if something could not be measured; a figure that is not reached fails nothing.";

const SERVICES_EXAMPLES: &str = "\
Examples:
  burnet bench services                            some seconds; nothing else should run beside it
  burnet bench services --queries 3000000 --json

Exit code 1 if a call failed; a figure that is not reached fails nothing.";

const METER_EXAMPLES: &str = "\
Examples:
  burnet bench meter                         some minutes; nothing else should run beside it
  burnet bench meter --runs 3 --seconds 3

Exit code 1 if a run could not be made; what the meter says of runs fails nothing.";

const PROFILES_EXAMPLES: &str = "\
Examples:
  burnet bench profiles                                              200 switches for half a minute; nothing else should run beside it
  burnet bench profiles --virtual-time --switches 100 --seconds 3600
  burnet bench profiles --switches 400 --slow-motion 10              too many for real time, so ten times slower

Exit code 1 if the run could not be made; what the meter says of it fails nothing.";

const SINK_EXAMPLES: &str = "\
Examples:
  burnet bench sink --listen 127.0.0.1:6699 &
  burnet bench southbound --target 127.0.0.1:6699";

/// `burnet bench southbound`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SouthboundArgs {
    /// The controller
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6653")]
    pub target: Address,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
}

/// `burnet bench compare`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct CompareArgs {
    /// ADDR:PORT, or what is started for it: sink, node:APP[=trusted], or a command line with {port} in it
    pub a: Target,
    /// The second controller to compare with, in the same form
    pub b: Target,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
}

/// `burnet bench services`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ServicesArgs {
    /// Queries one at a time, for the latency
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    pub alone: u32,
    /// Queries with 128 under way, for the rate
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub queries: u32,
    /// Entries of 100 bytes of the stream
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub entries: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet bench suite`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SuiteArgs {
    /// Only this part (repeat for more)
    #[arg(long, value_name = "PART", value_parser = PARTS)]
    pub only: Vec<String>,
    /// Seconds of a round
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,
    /// Rounds of each target
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    pub rounds: u32,
    /// Print the progress on standard error each second, even if that is not a terminal
    #[arg(long)]
    pub progress: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet bench meter`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct MeterArgs {
    /// Runs of each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    pub runs: u32,
    /// Seconds of a run
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=3600))]
    pub seconds: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet bench profiles`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct ProfilesArgs {
    /// The profile of all switches: the name of a built-in one, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "quanta-lb4g")]
    pub profile: String,
    /// Switches, each with two hosts of its own
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=PROFILED_SWITCHES_MAX))]
    pub switches: u16,
    /// How many rules a second each switch is to set up: two for each query of its host
    #[arg(long, value_name = "PER_SECOND", default_value_t = 40.0, value_parser = rules_per_s)]
    pub rules_per_s: f64,
    /// Seconds of the run
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// In virtual time: print how long the run took
    #[arg(long)]
    pub virtual_time: bool,
    /// Let the switches be N times slower, and ask N times less often; times are printed as without it. TCP's timers are not slowed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub slow_motion: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The load of a measurement.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct LoadArgs {
    /// Switches that connect
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=i64::from(SWITCHES_MAX)))]
    pub switches: u16,
    /// Hosts of each switch, by their Ethernet addresses [default: 1000; like cbench: 100000]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTS_MAX)))]
    pub hosts: Option<u32>,
    /// As many packet-ins as go, or one at a time from each switch
    #[arg(long, value_name = "MODE", default_value = "throughput")]
    pub mode: ModeName,
    /// In latency mode: so many packet-ins a second from all switches together, and each timed from when it was due
    #[arg(long, value_name = "PER_SECOND", value_parser = positive)]
    pub rate: Option<f64>,
    /// In throughput mode: no more than so many packet-ins a second from all switches together, as behind a link that carries no more
    #[arg(long, value_name = "PER_SECOND", value_parser = positive)]
    pub at_most: Option<f64>,
    /// Seconds of a round
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,
    /// Rounds that count [default: 10; like cbench: 15]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    pub rounds: Option<u32>,
    /// Rounds before them that do not count
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(ROUNDS_MAX)))]
    pub warmup: u32,
    /// The version of OpenFlow that the switches speak [default: 1.0]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<OpenFlowVersion>,
    /// What counts as an answer: what names a packet-in's buffer, as in cbench every flow mod that adds and every packet-out, or only these flow mods
    /// [default: buffers; like cbench: messages]
    #[arg(long, value_name = "WHAT")]
    pub count: Option<CountingName>,
    /// Threads that share the switches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(THREADS_MAX)))]
    pub threads: u16,
    /// Seconds in which all switches must be connected, and then again in which their hosts must be learned
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    pub patience: f64,
    /// cbench's traffic, counting and lines: one destination per switch, OpenFlow 1.0
    #[arg(long)]
    pub like_cbench: bool,
    /// Print the progress on standard error each second, even if that is not a terminal
    #[arg(long)]
    pub progress: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `burnet bench sink`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SinkArgs {
    /// The address to listen on; port 0 chooses a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6699")]
    pub listen: Address,
    /// End when the process that started it ends; for programs that run a sink of their own
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
}

/// The mode of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// As many packet-ins as go.
    Throughput,
    /// One at a time from each switch, or a fixed rate.
    Latency,
}

/// Which messages count as answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountingName {
    /// Messages that name a buffer.
    Buffers,
    /// As in cbench.
    Messages,
    /// Flow mods that add.
    FlowMods,
}

impl Default for ServicesArgs {
    /// As if no option were given.
    fn default() -> Self {
        ServicesArgs { alone: 10_000, queries: 300_000, entries: 1_000_000, json: false }
    }
}

impl Default for LoadArgs {
    /// The defaults.
    fn default() -> Self {
        LoadArgs {
            switches: 16,
            hosts: None,
            mode: ModeName::Throughput,
            rate: None,
            at_most: None,
            seconds: 1.0,
            rounds: None,
            warmup: 1,
            version: None,
            count: None,
            threads: 1,
            patience: 10.0,
            like_cbench: false,
            progress: false,
            json: false,
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if f64::is_finite(number) && number > 0.0 => Ok(number),
        _ => Err("a number above 0 is wanted".to_owned()),
    }
}

/// Two queries of a host are at least 0.1 ms apart.
const RULES_PER_S: std::ops::RangeInclusive<f64> = 0.01..=10_000.0;

fn rules_per_s(text: &str) -> Result<f64, String> {
    let wanted = || format!("a number from {} to {} is wanted", RULES_PER_S.start(), RULES_PER_S.end());
    positive(text).ok().filter(|rate| RULES_PER_S.contains(rate)).ok_or_else(wanted)
}

fn seconds(text: &str) -> Result<f64, String> {
    positive(text)
        .ok()
        .filter(|seconds| SECONDS.contains(seconds))
        .ok_or_else(|| format!("a number of seconds from {} to {} is wanted", SECONDS.start(), SECONDS.end()))
}

impl LoadArgs {
    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), CommandError> {
        let refuse = |sentence: &str| Err(CommandError::Usage(sentence.to_owned()));
        if self.rate.is_some() && self.mode != ModeName::Latency {
            return refuse("a fixed rate is timed: --rate goes with --mode latency");
        }
        if self.at_most.is_some() && self.mode != ModeName::Throughput {
            return refuse("--at-most limits the rate on a link, so it needs --mode throughput");
        }
        if self.like_cbench && self.version == Some(OpenFlowVersion::V1_3) {
            return refuse("cbench speaks OpenFlow 1.0 alone: --like-cbench does not go with --version 1.3");
        }
        if self.like_cbench && self.rate.is_some() {
            return refuse("cbench has no fixed rate: --like-cbench does not go with --rate");
        }
        if matches!(self.count, Some(CountingName::Messages | CountingName::FlowMods)) && self.rate.is_some()
        {
            return refuse("only buffers show which packet-in is answered, so --rate needs --count buffers");
        }
        if !self.like_cbench && self.hosts() < 2 {
            return refuse("each host sends to the next: --hosts must be 2 at least");
        }
        Ok(())
    }

    /// The load on this controller.
    pub fn options(&self, target: SocketAddr) -> LoadOptions {
        let (hosts, counting) = if self.like_cbench {
            (Hosts::OneDestination(self.hosts()), CountingName::Messages)
        } else {
            (Hosts::Ring(self.hosts()), CountingName::Buffers)
        };
        LoadOptions {
            target,
            switches: self.switches,
            first_datapath: 1,
            version: match self.version {
                Some(OpenFlowVersion::V1_3) => Version::V1_3,
                Some(OpenFlowVersion::V1_0) | None => Version::V1_0,
            },
            hosts,
            counting: match self.count.unwrap_or(counting) {
                CountingName::Buffers => Counting::Buffers,
                CountingName::Messages => Counting::Messages,
                CountingName::FlowMods => Counting::FlowMods,
            },
            threads: usize::from(self.threads.min(self.switches)),
            sleeps: false,
        }
    }

    /// The mode of its rounds.
    pub fn mode(&self) -> Mode {
        match (self.mode, self.rate) {
            (ModeName::Throughput, _) => self.at_most.map_or(Mode::Throughput, Mode::AtMost),
            (ModeName::Latency, None) => Mode::Latency,
            (ModeName::Latency, Some(per_s)) => Mode::Rate(per_s),
        }
    }

    /// Hosts of each switch.
    pub fn hosts(&self) -> u32 {
        self.hosts.unwrap_or(if self.like_cbench { CBENCH_HOSTS } else { 1000 })
    }

    /// Rounds that count.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.like_cbench { CBENCH_ROUNDS } else { 10 })
    }

    /// The length of a round.
    pub fn round_length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The time limits of connecting and learning.
    pub fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: BenchCommand,
    }

    fn load(line: &str) -> LoadArgs {
        let words = ["bench", "southbound"].into_iter().chain(line.split_whitespace());
        match Line::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}")).command {
            BenchCommand::Southbound(args) => args.load,
            other => panic!("{other:?}"),
        }
    }

    fn contradicts(line: &str, expected: &str) {
        let refused = load(line).check().unwrap_err();
        assert!(matches!(refused, CommandError::Usage(_)), "{line}");
        assert!(refused.to_string().contains(expected), "{line}: {refused}");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        contradicts("--rate 5", "--mode latency");
        contradicts("--at-most 5 --mode latency", "--mode throughput");
        contradicts("--like-cbench --version 1.3", "1.0 alone");
        contradicts("--like-cbench --mode latency --rate 5", "no fixed rate");
        contradicts("--mode latency --rate 5 --count messages", "--count buffers");
        contradicts("--hosts 1", "2 at least");
        load("--hosts 1 --like-cbench").check().unwrap();
    }

    #[test]
    fn what_is_no_number_of_its_kind_is_refused() {
        for (option, expected) in [
            ("--switches=0", "1..=65535"),
            ("--hosts=0", "1..="),
            ("--seconds=0", "from 0.01 to 3600"),
            ("--seconds=nan", "from 0.01 to 3600"),
            ("--rate=-1", "above 0"),
            ("--rounds=0", "1..="),
            ("--target=6653", "ADDRESS:PORT"),
            ("--version=1.4", "1.0, 1.3"),
        ] {
            let refused = Line::try_parse_from(["bench", "southbound", option]).err();
            let text = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains(expected), "{option}: {text}");
        }
    }

    #[test]
    fn cbenchs_defaults_are_cbenchs() {
        let args = load("--like-cbench");
        let options = args.options(([127, 0, 0, 1], 6633).into());
        assert_eq!((args.rounds(), args.warmup, args.seconds), (15, 1, 1.0));
        assert_eq!(options.hosts, Hosts::OneDestination(100_000));
        assert_eq!((options.counting, options.version), (Counting::Messages, Version::V1_0));
    }

    #[test]
    fn what_is_not_said_is_as_in_the_help() {
        assert_eq!(load(""), LoadArgs::default());
    }

    #[test]
    fn a_rate_is_a_mode_of_its_own() {
        assert_eq!(load("").mode(), Mode::Throughput);
        assert_eq!(load("--at-most 5e4").mode(), Mode::AtMost(50_000.0));
        assert_eq!(load("--mode latency").mode(), Mode::Latency);
        assert_eq!(load("--mode latency --rate 5e4").mode(), Mode::Rate(50_000.0));
    }

    #[test]
    fn there_are_no_more_threads_than_switches() {
        let options = load("--switches 2 --threads 8").options(([127, 0, 0, 1], 1).into());
        assert_eq!(options.threads, 2);
    }
}
