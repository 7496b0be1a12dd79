//! What the meter says of a run.
//!
//! In: nothing. Out: types, and their text. It judges nothing.

use serde::Serialize;
use std::fmt;

/// Whether the figures of a run can be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// The machine kept up.
    #[default]
    Valid,
    /// It did for the most part. Repeat the run if the figures matter.
    Doubtful,
    /// It did not. The figures show the machine and not the network.
    Invalid,
}

/// Why a run is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The mean of the delays is not the meant one.
    MeanShift,
    /// The delays are distributed otherwise than meant.
    Distance,
    /// Open vSwitch was slower than the target.
    BaseSlower,
    /// Releases were late.
    Late,
    /// The machine lost frames.
    Lost,
    /// The host took processor time away from this virtual machine.
    Steal,
    /// Our threads waited for a core.
    RunQueue,
    /// The cores were too busy.
    Processor,
    /// The machine could not be read.
    Unread,
}

/// Some seconds of a run in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The second in which it begins, since the run began.
    pub from_s: u64,
    /// The second in which it ends, not included.
    pub to_s: u64,
}

/// One cause with what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// What it makes of the run.
    pub validity: Validity,
    /// The value, as a share: of the mean, of the releases, or of the worst second. The distance is a number from 0 to 1.
    pub value: f64,
    /// The limit above which it is doubtful.
    pub limit: f64,
    /// The first seconds in which the cause was present. Empty if no single second shows it.
    pub when: Vec<Span>,
    /// In how many seconds it was present.
    pub seconds: u64,
}

/// What the meter says of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The worst of the findings.
    pub validity: Validity,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// How many seconds the run took.
    pub seconds: u64,
    /// How many releases were seen.
    pub releases: u64,
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Validity::Valid => "valid",
            Validity::Doubtful => "doubtful",
            Validity::Invalid => "invalid",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, limit) = (self.value * 100.0, self.limit * 100.0);
        match self.cause {
            Cause::MeanShift => write!(f, "delays are {value:+.1} % off on average (limit {limit:.0} %)"),
            Cause::Distance => write!(
                f,
                "the distribution of delays is {:.3} from what was meant (limit {:.3})",
                self.value, self.limit
            ),
            Cause::BaseSlower => {
                write!(f, "Open vSwitch was slower than the target for {value:.1} % (limit {limit:.0} %)")
            }
            Cause::Late => write!(f, "{value:.1} % of the releases were late (limit {limit:.0} %)"),
            Cause::Lost => {
                write!(f, "the machine lost frames, {value:.2} % of the releases (limit {limit:.1} %)")
            }
            Cause::Steal => {
                write!(f, "the host took {value:.0} % of the processor time (limit {limit:.0} %)")
            }
            Cause::RunQueue => {
                write!(f, "our threads waited for a core for {value:.0} % of a second (limit {limit:.0} %)")
            }
            Cause::Processor => write!(f, "the cores were {value:.0} % busy (limit {limit:.0} %)"),
            Cause::Unread => write!(f, "the readings of the machine are missing"),
        }?;
        if let Some(first) = self.when.first() {
            let (seconds, last) = (self.seconds, self.when.last().unwrap_or(first));
            write!(f, ", in {seconds} seconds between {} s and {} s", first.from_s, last.to_s)?;
        }
        Ok(())
    }
}

/// One line, and a line for each finding.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} s and {} releases", self.validity, self.seconds, self.releases)?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n{}: {finding}", finding.validity))
    }
}
