//! Where a command goes: the switch is connected to this worker, or to another one.
//!
//! ```text
//!   command ──find──> Here: this worker's kernel decides, counts and refuses
//!              └────> Worker(n): the same frame, in the queue of worker n, which finds the route again
//! ```
//!
//! In: a command frame, and whether this worker has the switch. Out: the route, and frames in the queues of other workers. It decides nothing about
//! a command, and counts nothing. An app does not know which worker has a switch. A switch of another node is one more route here.
//!
//! A switch can move or disconnect while a command waits in a queue. Then the next worker finds another route, or none: a switch that no
//! worker has counts as here, so exactly one kernel decides on each command.

use super::messages::WorkerSender;
use abi::command::kind;
use abi::{Frame, ZoneId};
use flow::DatapathId;
use southbound::Roster;
use std::sync::Arc;

/// Where the switch of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// At this worker, or nowhere, or the command is for no switch.
    Here,
    /// At the worker with this number.
    Worker(usize),
}

/// The routes from one worker.
pub struct Routes {
    own: usize,
    /// The senders to all workers, this one included, by number.
    pub(super) workers: Vec<WorkerSender>,
    pub(super) roster: Arc<Roster>,
}

impl Routes {
    pub fn new(own: usize, workers: Vec<WorkerSender>, roster: Arc<Roster>) -> Routes {
        Routes { own, workers, roster }
    }

    /// The route of a command. It costs no lock unless the switch is not here.
    #[inline]
    pub fn find(&self, frame: &Frame<'_>, is_here: impl FnOnce(DatapathId) -> bool) -> Route {
        if self.workers.len() == 1 || !is_for_switch(frame.header.kind.get()) || is_here(frame.datapath()) {
            return Route::Here;
        }
        self.look_up(frame.datapath())
    }

    #[cold]
    fn look_up(&self, datapath: DatapathId) -> Route {
        // This worker's kernel may not know yet that one of its own switches has connected or disconnected.
        match self.roster.worker_of(datapath) {
            Some(worker) if worker != self.own && worker < self.workers.len() => Route::Worker(worker),
            _ => Route::Here,
        }
    }

    /// Puts a command into another worker's queue. `false`: the queue, or this zone's part of it, is full.
    pub fn forward(&self, worker: usize, zone: ZoneId, frame: &Frame<'_>) -> bool {
        self.workers.get(worker).is_some_and(|sender| sender.forward(zone, frame.bytes))
    }
}

/// Whether commands of this kind are for a switch.
#[inline]
fn is_for_switch(kind: u16) -> bool {
    matches!(
        kind,
        kind::PACKET_OUT
            | kind::FLOW_MOD
            | kind::GROUP_MOD
            | kind::METER_MOD
            | kind::PORT_MOD
            | kind::STATS_REQUEST
            | kind::BARRIER
            | kind::BUNDLE
    )
}
