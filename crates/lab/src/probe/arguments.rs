//! The arguments of `burnet probe`.
//!
//! In: words of the command line, and the day. Out: the options of a probe, or an error that names the wrong word. It opens nothing.

use burnet::cli::CommandError;
use clap::{Args, ValueEnum};
use flow::PortNo;
use openflow::Version;
use probe::{Options, Part, TestPort};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Characters of a profile's name at most.
const NAME_CHARS: usize = 60;
/// The most rules that a probe can look at.
const TABLE_MAX: i64 = 250_000;
/// A day. A switch whose rate is not known well enough by then is not worth a longer probe.
const MINUTES_MAX: u64 = 1440;
const MINUTE_NS: u64 = 60_000_000_000;

const EXAMPLES: &str = "\
Examples:
  burnet probe --port 1=veth1 --port 2=veth2 --out my.toml
  burnet probe --listen 127.0.0.1:6653 --port 1=eth1 --port 2=eth2 --out my.toml --clear
  burnet probe --port 1=veth1 --port 2=veth2 --out my.toml --resume
  burnet probe --port 1=veth1 --port 2=veth2 --out my.toml --measure delays,table

The switch must have no other controller. docs/guide/probe.md tells how to connect it.";

/// `burnet probe`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProbeArgs {
    /// Where the switch connects to: a port of this machine, or an address and a port
    #[arg(long, value_name = "PORT|ADDRESS:PORT", default_value = "6653")]
    pub listen: ListenAt,
    /// A port of the switch and the interface behind it. Twice: frames enter at the first and leave at the second
    #[arg(long = "port", value_name = "NUMBER=INTERFACE", required = true)]
    pub ports: Vec<ProbePort>,
    /// The file for the profile. Its name without the ending becomes the profile's name
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Remove the rules that are in the switch. Otherwise a switch with rules is refused
    #[arg(long)]
    pub clear: bool,
    /// Go on where a probe with the same arguments ended early, from FILE.resume
    #[arg(long)]
    pub resume: bool,
    /// The most rules that the probe adds
    #[arg(long, value_name = "RULES", default_value_t = 70_000, value_parser = clap::value_parser!(u32).range(100..=TABLE_MAX))]
    pub table_max: u32,
    /// How long the probe takes at most, if four fillings of the table do not take longer. More time makes rates more exact
    #[arg(long, value_name = "MINUTES", default_value_t = 5, value_parser = clap::value_parser!(u64).range(5..=MINUTES_MAX))]
    pub minutes: u64,
    /// The versions of OpenFlow that the probe offers
    #[arg(long, value_enum, default_value_t = ProbeVersion::Both)]
    pub version: ProbeVersion,
    /// Measure these parts only
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,…")]
    pub measure: Vec<MeasuredPart>,
}

/// The offered versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProbeVersion {
    /// 1.0 and 1.3
    Both,
    /// 1.0 alone
    #[value(name = "1.0")]
    V10,
    /// 1.3 alone
    #[value(name = "1.3")]
    V13,
}

impl ProbeVersion {
    fn offered(self) -> Vec<Version> {
        match self {
            ProbeVersion::Both => vec![Version::V1_0, Version::V1_3],
            ProbeVersion::V10 => vec![Version::V1_0],
            ProbeVersion::V13 => vec![Version::V1_3],
        }
    }
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeasuredPart {
    /// What the idle switch needs for each type of message
    Delays,
    /// Packet-outs and packet-ins at saturation, and the limit of packet-ins
    Rates,
    /// What a barrier reply means
    Barriers,
    /// Rules a second
    SetUp,
    /// What modifies, deletes and statistics cost
    Changes,
    /// How often the switch looks for expired rules
    Timeouts,
    /// How many packets it keeps
    Buffers,
    /// The size of the table, and what happens when it is full
    Table,
    /// The cost of adds by the order of priorities
    Orders,
    /// Delays at five rates and under polling, which judge the profile
    Loads,
    /// The size of the table for other kinds of matches
    Matches,
}

impl MeasuredPart {
    fn part(self) -> Part {
        match self {
            MeasuredPart::Delays => Part::Delays,
            MeasuredPart::Rates => Part::Rates,
            MeasuredPart::Barriers => Part::Barriers,
            MeasuredPart::SetUp => Part::SetUp,
            MeasuredPart::Changes => Part::Changes,
            MeasuredPart::Timeouts => Part::Timeouts,
            MeasuredPart::Buffers => Part::Buffers,
            MeasuredPart::Table => Part::Table,
            MeasuredPart::Orders => Part::Orders,
            MeasuredPart::Loads => Part::Loads,
            MeasuredPart::Matches => Part::Matches,
        }
    }
}

/// An address to listen at. A port alone means all addresses of IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAt(pub SocketAddr);

impl FromStr for ListenAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse() {
            return Ok(ListenAt(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))));
        }
        let address =
            text.parse().map_err(|_| format!("{text} is neither a port nor an address and a port"))?;
        Ok(ListenAt(address))
    }
}

/// `1=veth1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePort(pub TestPort);

impl FromStr for ProbePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no port and interface: expected NUMBER=INTERFACE, such as 1=veth1");
        let (number, interface) = text.split_once('=').ok_or_else(wrong)?;
        let number: u32 = number.parse().map_err(|_| wrong())?;
        if interface.is_empty() || !(1..=PortNo::MAX.0).contains(&number) {
            return Err(wrong());
        }
        Ok(ProbePort(TestPort { port: PortNo(number), interface: interface.to_owned() }))
    }
}

impl ProbeArgs {
    /// The options of the probe.
    pub(super) fn options(&self) -> Result<Options, CommandError> {
        let [first, second] = self.ports.as_slice() else {
            let count = self.ports.len();
            return Err(CommandError::Usage(format!("--port is given {count} times; expected two ports")));
        };
        if first.0.port == second.0.port || first.0.interface == second.0.interface {
            return Err(CommandError::Usage("both --port name the same port or interface".to_owned()));
        }
        let ports = [first.0.clone(), second.0.clone()];
        let asked: Vec<Part> = self.measure.iter().map(|part| part.part()).collect();
        let parts = Part::ALL.into_iter().filter(|part| asked.is_empty() || asked.contains(part)).collect();
        Ok(Options {
            versions: self.version.offered(),
            clear: self.clear,
            table_max: self.table_max,
            time_max_ns: self.minutes * MINUTE_NS,
            parts,
            ..Options::real(&profile_name(&self.out), &today(), ports)
        })
    }
}

/// A profile's name has lower-case letters, digits, `.` and `-`.
fn profile_name(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let allowed = |letter: char| {
        if letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '.' { letter } else { '-' }
    };
    let name: String = stem.chars().map(allowed).take(NAME_CHARS).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "probed".to_owned() } else { name }
}

fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut text = monitor::records::time_text(u64::try_from(since.as_millis()).unwrap_or(0));
    text.truncate("2026-11-25".len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_ports_are_named() {
        for wrong in ["", "veth1", "1=", "0=veth1", "x=veth1"] {
            assert!(wrong.parse::<ProbePort>().is_err(), "{wrong}");
        }
        assert_eq!("2=veth2".parse::<ProbePort>().unwrap().0.port, PortNo(2));
    }

    #[test]
    fn a_port_alone_is_an_address_too() {
        assert_eq!("6653".parse::<ListenAt>().unwrap().0.to_string(), "0.0.0.0:6653");
        assert_eq!("[::1]:6654".parse::<ListenAt>().unwrap().0.to_string(), "[::1]:6654");
        assert!("localhost".parse::<ListenAt>().is_err());
    }

    #[test]
    fn a_file_gives_a_name_that_a_profile_can_have() {
        for (file, name) in
            [("/x/My Switch.toml", "my-switch"), ("hp.5406.toml", "hp.5406"), ("--.toml", "probed")]
        {
            assert_eq!(profile_name(Path::new(file)), name);
        }
    }
}
