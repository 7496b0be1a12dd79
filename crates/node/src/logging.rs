//! The log: lines with the time on standard error, for people and for log collectors.
//!
//! The output of commands for the operator is not log text, and is not written here.

use config::LogLevel;
use operator::visible::Visible;
use std::io::IsTerminal;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that overrides the configured level.
const VARIABLE: &str = "BURNET_LOG";

/// Starts the log of this process. `$BURNET_LOG` overrides the configured level: a level, or levels by target (`info,southbound=trace`).
/// Called again, it does nothing.
pub fn start(level: LogLevel) {
    let filter = filter(std::env::var(VARIABLE).ok().as_deref(), level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Visible(std::io::stderr()))
        .with_ansi(std::io::stderr().is_terminal());
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// The filter for log lines. An invalid variable is ignored.
fn filter(variable: Option<&str>, level: LogLevel) -> Targets {
    let asked = variable.filter(|text| !text.trim().is_empty()).and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| level.as_str().parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn check(variable: Option<&str>, target: &str, level: Level, expected: bool) {
        let filter = filter(variable, LogLevel::Info);
        assert_eq!(filter.would_enable(target, &level), expected, "{variable:?}: {target} {level}");
    }

    #[test]
    fn a_variable_that_cannot_be_read_leaves_the_configured_level() {
        for variable in [None, Some(""), Some("southbound=loud"), Some("a=b=c")] {
            check(variable, "southbound", Level::INFO, true);
            check(variable, "southbound", Level::DEBUG, false);
        }
    }

    #[test]
    fn levels_hold_for_all_or_by_target() {
        check(Some("warn"), "kernel", Level::INFO, false);
        check(Some("info,southbound=trace"), "southbound::session", Level::TRACE, true);
        check(Some("info,southbound=trace"), "node", Level::DEBUG, false);
        check(Some("southbound=trace"), "node", Level::ERROR, false);
    }
}
