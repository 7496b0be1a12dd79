//! The log lines of switch sessions: one for each session that went up, ended or was refused, and one for each bad
//! message.
//!
//! It writes no line for a packet, and no more lines of one peer than [`LineLimit`] allows.

use crate::connection::Connection;
use crate::fault::{Fault, NotAdopted, SessionEnd};
use crate::line_limit::LineLimit;
use crate::origin::Origin;
use crate::session::State;
use crate::turn::Line;
use flow::DatapathId;
use std::net::SocketAddr;

/// A switch is up.
pub fn up(limit: &mut LineLimit, now_ms: u64, connection: &Connection) {
    let Some(kept_back) = pass(limit, now_ms, connection.peer) else { return };
    let session = &connection.session;
    let identity = session.identity();
    tracing::info!(
        peer = %connection.peer,
        datapath = %identity.datapath,
        version = %session.version(),
        tls = connection.is_tls(),
        certificate = connection.fingerprint().map(tracing::field::display),
        bound = connection.bound.filter(|_| connection.is_tls()).map(tracing::field::display),
        tables = identity.n_tables,
        buffers = identity.n_buffers,
        ports = session.ports().len(),
        kept_back,
        "switch up"
    );
}

/// The limits of lines about the end of sessions. A refused peer tries again and again, so lines about it have
/// separate limits.
#[derive(Debug)]
pub struct EndLimits {
    turned_away: LineLimit,
    twins: LineLimit<DatapathId>,
}

impl Default for EndLimits {
    fn default() -> Self {
        EndLimits { turned_away: LineLimit::of_turned_away(), twins: LineLimit::of_turned_away() }
    }
}

/// A session ended.
pub fn end(
    limit: &mut LineLimit,
    limits: &mut EndLimits,
    now_ms: u64,
    connection: &Connection,
    end: &SessionEnd,
) {
    let Some(kept_back) = pass(limit, now_ms, connection.peer) else { return };
    let (peer, session) = (connection.peer, &connection.session);
    let (field, offset) = end.place.unzip();
    let (fault, datapath) = (end.fault, session.identity().datapath);
    match session.state() {
        State::Up if fault == Fault::Operator => {
            tracing::info!(%peer, %datapath, %fault, kept_back, "switch down: {}", end.reason);
        }
        State::Up => {
            tracing::warn!(%peer, %datapath, %fault, field, offset, kept_back, "switch down: {}", end.reason);
        }
        State::Identified if end.is_refusal => {
            if let Some(before) = limits.twins.pass(datapath, now_ms) {
                let refused_before = Some(before).filter(|count| *count > 0);
                tracing::error!(%peer, %datapath, %fault, refused_before, "switch refused: {}", end.reason);
            }
        }
        _ if end.is_refusal => {
            if let Some(refused_before) = pass(&mut limits.turned_away, now_ms, peer) {
                tracing::warn!(%peer, %fault, refused_before, "connection refused: {}", end.reason);
            }
        }
        _ => {
            tracing::warn!(%peer, %fault, field, offset, kept_back, "no switch connected: {}", end.reason);
        }
    }
}

/// An accepted connection was closed at once.
pub fn not_adopted(limit: &mut LineLimit, now_ms: u64, peer: SocketAddr, refused: &NotAdopted) {
    if let Some(kept_back) = pass(limit, now_ms, peer) {
        tracing::warn!(%peer, kept_back, "connection refused: {refused}");
    }
}

/// A switch is held back.
pub fn held(limit: &mut LineLimit, now_ms: u64, connection: &Connection) {
    let Some(kept_back) = pass(limit, now_ms, connection.peer) else { return };
    let (peer, datapath) = (connection.peer, connection.session.identity().datapath);
    tracing::warn!(
        %peer,
        %datapath,
        kept_back,
        "it sends events faster than the apps read them; the node reads from it more slowly, so that none is lost"
    );
}

/// A line that a session reports about a message.
pub fn line(limit: &mut LineLimit, now_ms: u64, peer: SocketAddr, line: &Line<'_>) {
    let Some(kept_back) = pass(limit, now_ms, peer) else { return };
    let (field, offset) = line.place.unzip();
    tracing::warn!(%peer, openflow = line.message, field, offset, kept_back, "{}", line.text);
}

/// Whether a line may be written, with the number of lines that were suppressed before it, if any.
fn pass(limit: &mut LineLimit, now_ms: u64, peer: SocketAddr) -> Option<Option<u32>> {
    limit.pass(Origin::of(peer.ip()), now_ms).map(|kept_back| Some(kept_back).filter(|count| *count > 0))
}
