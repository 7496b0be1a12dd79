//! The commands about the log of who did what, as types.
//!
//! It only parses. `commands::audit` carries the command out.

use audit::line::Hash;
use clap::{Args, Subcommand};
use package::moment::Moment;

use super::package::StateArgs;

const EXAMPLES: &str = "\
Examples:
  burnet audit                              the whole log
  burnet audit --app my-app --refused       what the node refused to my-app
  burnet audit --what operator --since 1d
  burnet audit --follow --json | jq .text
  burnet audit verify --head 3f1c…          with a hash that you stored elsewhere";

/// `burnet audit`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct AuditArgs {
    /// The subcommand. Without one, the records are shown.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// Which records.
    #[command(flatten)]
    pub shown: AuditShowArgs,
}

/// What else may be asked of it.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum AuditCommand {
    /// Check that every record is unaltered; exit code 1 if one is not
    Verify(AuditVerifyArgs),
}

/// Which records are shown, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct AuditShowArgs {
    /// Only records about this app
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// Only records of this kind (refused, denied, started, ended …), or of this actor (app, switch, operator, monitor, kernel, audit)
    #[arg(long, value_name = "WORD")]
    pub what: Option<String>,
    /// Only from this time: 2027-01-31, 2027-01-31T12:00:00Z, or an age such as 90s, 15m, 2h, 7d
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,
    /// Only refusals: refused commands, denied calls, refused or disconnected switches
    #[arg(long)]
    pub refused: bool,
    /// Follow the log until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Print the records as stored: one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Where the log is.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet audit verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct AuditVerifyArgs {
    /// Check that the log still has the record with this hash; this detects records that were removed at its end
    #[arg(long, value_name = "HASH")]
    pub head: Option<Hash>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the log is.
    #[command(flatten)]
    pub state: StateArgs,
}

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// From this moment.
    At(Moment),
    /// So many seconds ago.
    Seconds(u64),
}

impl Since {
    /// In milliseconds since the Unix epoch.
    pub fn unix_ms(self, now_ms: u64) -> u64 {
        match self {
            Since::At(moment) => moment.unix_s().saturating_mul(1_000),
            Since::Seconds(seconds) => now_ms.saturating_sub(seconds.saturating_mul(1_000)),
        }
    }
}

/// Reads a moment, or how long ago.
///
/// # Errors
/// A sentence for the operator.
pub fn since(text: &str) -> Result<Since, String> {
    for (unit, seconds) in [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)] {
        if let Some(count) = text.strip_suffix(unit).and_then(|count| count.parse::<u32>().ok()) {
            return Ok(Since::Seconds(u64::from(count) * seconds));
        }
    }
    text.parse().map(Since::At).map_err(|error: String| format!("{error}, or an age such as 15m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u64, &str>) {
        match (since(text), expected) {
            (Ok(since), Ok(expected)) => assert_eq!(since.unix_ms(1_000_000), expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (got, expected) => panic!("{text}: {got:?} and not {expected:?}"),
        }
    }

    #[test]
    fn a_time_is_a_moment_or_so_long_ago() {
        check("yesterday", Err("\"yesterday\" is not a time"));
        check("-5m", Err("15m"));
        check("5", Err("15m"));
        check("90s", Ok(910_000));
        check("15m", Ok(100_000));
        check("1d", Ok(0));
        check("1970-01-01T00:00:07Z", Ok(7_000));
    }
}
