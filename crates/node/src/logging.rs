//! The log: lines on standard error, with the time, for people and for whatever collects them.
//!
//! Operator text (what a command prints) is not log text and does not come here.

use config::LogLevel;
use operator::visible::Visible;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts the log of this process. `$BURNET_LOG` (in tracing's filter syntax, `southbound=trace`) goes before the configured level.
/// Called again, it does nothing.
pub fn start(level: LogLevel) {
    let filter = EnvFilter::try_from_env("BURNET_LOG").unwrap_or_else(|_| EnvFilter::new(level.as_str()));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Visible(std::io::stderr()))
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
