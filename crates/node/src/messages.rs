//! The messages between the control thread and the workers.
//!
//! Both directions are bounded queues. The control thread never waits for a worker: if the queue is full, the operation
//! fails. A worker never waits for the control thread: if the queue is full, it tries again in its next turn. No packets
//! are sent here.

use abi::ZoneId;
use abi::event::SoftLimit;
use audit_contract::Record;
use config::NodeLimits;
use flow::DatapathId;
use kernel::zone_set::MAX_ZONE;
use kernel::{Grant, NodeRates, OfSwitch};
use mio::net::TcpStream;
use monitor_channel::ZoneCounts;
use ring::PortFds;
use southbound::SouthboundConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, TrySendError, sync_channel};
use zone::trusted::TrustedCode;

/// Messages that may wait for one worker. Connections make most of them: this many may come in while a worker does one turn.
const WORKER_INBOX: usize = 4096;

/// Of these, commands that zones gave to other workers; the rest is for connections, zones and the operator.
const FORWARDED_MAX: u32 = WORKER_INBOX as u32 / 4 * 3;

/// How much of them one zone may have waiting, in bytes of its commands; one alone may be longer.
const FORWARDED_BYTES_PER_ZONE: u32 = 512 << 10;

/// What a message costs its zone beside the command's bytes, so that many short ones are bounded too.
const PER_MESSAGE_BYTES: u32 = 1 << 10;

/// Messages that may wait for the control thread.
const CONTROL_INBOX: usize = 1024;

/// To a worker.
pub enum ToWorker {
    /// A switch has connected.
    Adopt(TcpStream, SocketAddr),
    /// A process zone is there.
    AttachZone {
        /// Its number.
        zone: ZoneId,
        /// Its app.
        app: String,
        /// Which start of it.
        generation: u64,
        /// This worker's end of its port.
        port: PortFds,
        /// What it may do.
        grant: Box<Grant>,
        /// And how much of it in a second, at all workers together.
        rates: Arc<NodeRates>,
    },
    /// A trusted app is to run.
    LoadTrusted {
        /// Its number.
        zone: ZoneId,
        /// Its name.
        app: String,
        /// Its code.
        code: TrustedCode,
        /// Its settings, a JSON object.
        settings: Vec<u8>,
        /// What it may do.
        grant: Box<Grant>,
        /// And how much of it in a second, at all workers together.
        rates: Arc<NodeRates>,
    },
    /// An app that runs may do this from now on. `generation` is 0 for a trusted app.
    Regrant {
        /// Its number.
        zone: ZoneId,
        /// Which start of it.
        generation: u64,
        /// What it may do.
        grant: Box<Grant>,
        /// And how much of it in a second, at all workers together.
        rates: Arc<NodeRates>,
    },
    /// The configuration has changed.
    Reconfigure {
        /// How sessions are held from now on.
        southbound: Box<SouthboundConfig>,
        /// What switches and apps may have.
        limits: NodeLimits,
    },
    /// A zone is over. `generation` is 0 for a trusted app.
    DetachZone {
        /// Its number.
        zone: ZoneId,
        /// Which start of it.
        generation: u64,
    },
    /// A command that a zone gave to another worker, for a switch that this one serves.
    Forward {
        /// Whose.
        zone: ZoneId,
        /// The command frame.
        frame: Vec<u8>,
    },
    /// The operator asks for a switch's flow entries.
    AskFlows {
        /// Of which switch.
        datapath: DatapathId,
        /// By which the answer is known.
        ticket: u64,
    },
    /// How much do zones use? Said as often as it is measured, and lost if there is no room: the next is as good.
    CountZones,
    /// A zone is to hear that it passes a soft limit, or does not any more.
    TellSoftLimit {
        /// Which zone.
        zone: ZoneId,
        /// Which start of it.
        generation: u64,
        /// What.
        limit: SoftLimit,
    },
    /// The operator asks for what is counted.
    AskCounts {
        /// By which the answer is known.
        ticket: u64,
    },
    /// Say goodbye to the switches, and end.
    Shutdown,
}

/// From a worker.
pub enum FromWorker {
    /// A process zone broke the rules.
    ZoneFault {
        /// Its app.
        app: String,
        /// Which start of it.
        generation: u64,
        /// What it did.
        reason: String,
    },
    /// A trusted app panicked, or did not start.
    TrustedFault {
        /// Its app.
        app: String,
        /// What it did.
        reason: String,
    },
    /// A frame for the node itself: a part of an answer that the operator waits for.
    ToNode(Vec<u8>),
    /// What is counted at this worker.
    Counts {
        /// The question's.
        ticket: u64,
        /// Of each session that is up.
        sessions: Vec<southbound::SessionSnapshot>,
        /// Of each zone.
        zones: Vec<ZoneCounts>,
        /// What is kept of each switch.
        switches: Vec<OfSwitch>,
    },
    /// What is counted of each zone at this worker.
    ZonesCounted {
        /// The worker's number.
        worker: usize,
        /// Of each zone that is attached.
        zones: Vec<ZoneCounts>,
    },
    /// The flow entries cannot be had.
    NoFlows {
        /// The question's.
        ticket: u64,
        /// Why.
        reason: String,
    },
    /// What was refused here.
    Audit(Vec<Record>),
    /// A line that an app wrote into the node's log, for its own.
    Line {
        /// Its app.
        app: String,
        /// Which start of it.
        generation: u64,
        /// The line, fit to be written.
        line: String,
    },
    /// Code of a trusted app, from the thread that loads it.
    Loaded {
        /// Its zone.
        zone: u16,
        /// Which load of it.
        number: u64,
        /// The code, or why there is none.
        loaded: Result<TrustedCode, String>,
    },
    /// A worker has ended as it was told to.
    Ended,
}

/// The control thread's way to one worker, and to know that it moves.
#[derive(Clone)]
pub struct WorkerSender {
    messages: SyncSender<ToWorker>,
    waker: Arc<mio::Waker>,
    turns: Arc<AtomicU64>,
    forwarded: Arc<Forwarded>,
}

/// What waits in a worker's box of commands that zones gave to other workers. Counted without a lock by all of them.
#[derive(Debug)]
struct Forwarded {
    messages: AtomicU32,
    bytes_of_zones: [AtomicU32; MAX_ZONE as usize + 1],
}

impl Forwarded {
    fn new() -> Self {
        Forwarded {
            messages: AtomicU32::new(0),
            bytes_of_zones: [const { AtomicU32::new(0) }; MAX_ZONE as usize + 1],
        }
    }

    /// Takes room for a command of this zone, if it has any left.
    fn take(&self, zone: ZoneId, frame: &[u8]) -> bool {
        let Some(of_zone) = self.bytes_of_zones.get(usize::from(zone.0)) else { return false };
        let cost = cost_of(frame);
        let (before, messages) =
            (of_zone.fetch_add(cost, Ordering::Relaxed), self.messages.fetch_add(1, Ordering::Relaxed));
        let fits = before == 0 || before.saturating_add(cost) <= FORWARDED_BYTES_PER_ZONE;
        if fits && messages < FORWARDED_MAX {
            return true;
        }
        self.give_back(zone, frame);
        false
    }

    fn give_back(&self, zone: ZoneId, frame: &[u8]) {
        if let Some(of_zone) = self.bytes_of_zones.get(usize::from(zone.0)) {
            of_zone.fetch_sub(cost_of(frame), Ordering::Relaxed);
            self.messages.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A frame's length is 32 bits at most, and far less in truth.
fn cost_of(frame: &[u8]) -> u32 {
    u32::try_from(frame.len()).unwrap_or(u32::MAX / 2).saturating_add(PER_MESSAGE_BYTES)
}

impl WorkerSender {
    /// A line to a worker whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (WorkerSender, WorkerReceiver) {
        let (messages, inbox) = sync_channel(WORKER_INBOX);
        let (turns, forwarded) = (Arc::new(AtomicU64::new(0)), Arc::new(Forwarded::new()));
        let inbox = WorkerReceiver { inbox, turns: turns.clone(), forwarded: forwarded.clone() };
        (WorkerSender { messages, waker, turns, forwarded }, inbox)
    }

    /// Sends a message, or gives it back if the worker's box is full or it is gone.
    pub fn send(&self, message: ToWorker) -> Result<(), ToWorker> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        })?;
        // It fails only if the worker's poll is gone, and then so is the worker.
        let _ = self.waker.wake();
        Ok(())
    }

    /// Sends a command of a zone's for a switch that the worker serves: whether it went. A zone that has its share waiting there has to wait,
    /// and takes no room from others.
    pub fn forward(&self, zone: ZoneId, frame: &[u8]) -> bool {
        if !self.forwarded.take(zone, frame) {
            return false;
        }
        let sent = self.send(ToWorker::Forward { zone, frame: frame.to_vec() }).is_ok();
        if !sent {
            self.forwarded.give_back(zone, frame);
        }
        sent
    }

    /// How many turns the worker has done.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

/// A worker's end of its line.
pub struct WorkerReceiver {
    inbox: Receiver<ToWorker>,
    turns: Arc<AtomicU64>,
    forwarded: Arc<Forwarded>,
}

impl WorkerReceiver {
    /// The next message, if there is one.
    pub fn next(&self) -> Option<ToWorker> {
        let message = self.inbox.try_recv().ok()?;
        if let ToWorker::Forward { zone, frame } = &message {
            self.forwarded.give_back(*zone, frame);
        }
        Some(message)
    }

    /// The worker has begun another turn.
    pub fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// A worker's way to the control thread.
#[derive(Clone)]
pub struct ControlSender {
    messages: SyncSender<FromWorker>,
    waker: Arc<mio::Waker>,
}

impl ControlSender {
    /// A line to the control thread, whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (ControlSender, Receiver<FromWorker>) {
        let (messages, inbox) = sync_channel(CONTROL_INBOX);
        (ControlSender { messages, waker }, inbox)
    }

    /// Sends a message without waiting; a full box gives it back.
    pub fn send(&self, message: FromWorker) -> Result<(), FromWorker> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        })?;
        let _ = self.waker.wake();
        Ok(())
    }

    /// Has the control thread look at what there is beside messages.
    pub fn wake(&self) {
        let _ = self.waker.wake();
    }

    /// Sends the last message of a thread, which may wait.
    pub fn send_last(&self, message: FromWorker) -> Result<(), SendError<FromWorker>> {
        self.messages.send(message)?;
        let _ = self.waker.wake();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> (WorkerSender, WorkerReceiver, mio::Poll) {
        let poll = mio::Poll::new().unwrap();
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
        let (line, inbox) = WorkerSender::new(waker);
        (line, inbox, poll)
    }

    fn forwarded(line: &WorkerSender, zone: u16, frame: &[u8]) -> usize {
        (0..10_000).take_while(|_| line.forward(ZoneId(zone), frame)).count()
    }

    #[test]
    fn no_zone_takes_anothers_room_in_a_workers_box() {
        let (line, inbox, _poll) = line();
        assert_eq!(forwarded(&line, 1, &[0; 24]), 500);
        assert_eq!(forwarded(&line, 2, &[0; 24]), 500);
        assert_eq!(forwarded(&line, 1024, &[0; 24]), 0, "there is no such zone");
        assert!(matches!(inbox.next(), Some(ToWorker::Forward { zone: ZoneId(1), .. })));
        assert_eq!(forwarded(&line, 1, &[0; 24]), 1);
    }

    #[test]
    fn all_zones_together_leave_room_for_what_the_node_says() {
        let (line, inbox, _poll) = line();
        let all: usize = (1..=MAX_ZONE).map(|zone| forwarded(&line, zone, &[])).sum();
        assert_eq!(all, FORWARDED_MAX as usize);
        assert!(line.send(ToWorker::AskCounts { ticket: 1 }).is_ok());
        while inbox.next().is_some() {}
        assert_eq!(forwarded(&line, 1, &[]), 512);
    }

    #[test]
    fn a_command_that_is_longer_than_a_share_goes_alone() {
        let (line, _post, _poll) = line();
        assert_eq!(forwarded(&line, 1, &vec![0; 1 << 20]), 1);
    }
}
