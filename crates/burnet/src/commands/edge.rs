//! `burnet edge`: the agent on a server, from its start to its end.
//!
//! In: parsed options. Out: what the agent does to the interface and to its peers, and lines in the log. It decides nothing: the crate `edge` does.

use super::stop_signal::StopSignal;
use crate::cli::CommandError;
use crate::cli::edge::EdgeArgs;
use crate::edge_file::EdgeFile;
use config::LogLevel;
use edge::Orders;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often the end of the agent is looked for while no signal comes.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the agent until a signal comes.
pub fn edge(args: &EdgeArgs) -> Result<ExitCode, CommandError> {
    let file = EdgeFile::read(&args.file).map_err(CommandError::Usage)?;
    if args.clean {
        let device = file.device().map_err(CommandError::Usage)?;
        return edge::clean(&device).map(|()| ExitCode::SUCCESS).map_err(not_done);
    }
    // Random, so that what was recorded in an earlier run is refused.
    let session = RandomState::new().build_hasher().finish().max(1);
    let config = file.config(session).map_err(CommandError::Usage)?;
    if args.check {
        return Ok(ExitCode::SUCCESS);
    }
    node::logging::start(LogLevel::Info);
    let signal = StopSignal::listen()?;
    let socket = UdpSocket::bind(file.listen)
        .map_err(|error| not_done(format!("listen: {}: {error}", file.listen)))?;
    let orders = Arc::new(Orders::default());
    let (its_orders, me) = (Arc::clone(&orders), config.settings.me);
    let agent = std::thread::spawn(move || edge::run(&config, socket, &its_orders));
    tracing::info!("{me} runs on {}", file.listen);
    while !agent.is_finished() && !signal.came_within(LOOK_INTERVAL) {}
    orders.end();
    match agent.join() {
        Ok(ended) => ended.map(|()| ExitCode::SUCCESS).map_err(not_done),
        Err(_) => Err(not_done("the agent failed; `burnet edge FILE --clean` removes what it made")),
    }
}

fn not_done(why: impl ToString) -> CommandError {
    CommandError::DidNotWork(why.to_string())
}
