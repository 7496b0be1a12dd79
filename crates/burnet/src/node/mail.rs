//! What the control thread and the workers say to each other.
//!
//! Both ways are bounded queues: the control thread never waits for a worker (what does not fit is said to have failed), and a worker
//! never waits for the control thread (what does not fit is tried again in its next turn). Never carries packets.

use abi::ZoneId;
use abi::event::SoftLimit;
use flow::DatapathId;
use kernel::{Grant, PuntCounters};
use mio::net::TcpStream;
use monitor::ZoneCounts;
use ring::PortFds;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, TrySendError, sync_channel};
use zone::trusted::TrustedCode;

/// Letters that may wait for one worker. Connections make most of them: this many may come in while a worker does one turn.
const WORKER_INBOX: usize = 4096;

/// Letters that may wait for the control thread.
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
        /// Of each switch, what was dropped of its packet-ins.
        punts: Vec<(DatapathId, PuntCounters)>,
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
    /// A worker has ended as it was told to.
    Ended,
}

/// The control thread's way to one worker, and to know that it moves.
#[derive(Clone)]
pub struct WorkerLine {
    letters: SyncSender<ToWorker>,
    waker: Arc<mio::Waker>,
    turns: Arc<AtomicU64>,
}

impl WorkerLine {
    /// A line to a worker whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (WorkerLine, WorkerPost) {
        let (letters, inbox) = sync_channel(WORKER_INBOX);
        let turns = Arc::new(AtomicU64::new(0));
        (WorkerLine { letters, waker, turns: turns.clone() }, WorkerPost { inbox, turns })
    }

    /// Sends a letter, or gives it back if the worker's box is full or it is gone.
    pub fn send(&self, letter: ToWorker) -> Result<(), ToWorker> {
        self.letters.try_send(letter).map_err(|error| match error {
            TrySendError::Full(letter) | TrySendError::Disconnected(letter) => letter,
        })?;
        // It fails only if the worker's poll is gone, and then so is the worker.
        let _ = self.waker.wake();
        Ok(())
    }

    /// How many turns the worker has done.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

/// A worker's end of its line.
pub struct WorkerPost {
    inbox: Receiver<ToWorker>,
    turns: Arc<AtomicU64>,
}

impl WorkerPost {
    /// The next letter, if there is one.
    pub fn next(&self) -> Option<ToWorker> {
        self.inbox.try_recv().ok()
    }

    /// The worker has begun another turn.
    pub fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// A worker's way to the control thread.
#[derive(Clone)]
pub struct ControlLine {
    letters: SyncSender<FromWorker>,
    waker: Arc<mio::Waker>,
}

impl ControlLine {
    /// A line to the control thread, whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (ControlLine, Receiver<FromWorker>) {
        let (letters, inbox) = sync_channel(CONTROL_INBOX);
        (ControlLine { letters, waker }, inbox)
    }

    /// Sends a letter without waiting; a full box gives it back.
    pub fn send(&self, letter: FromWorker) -> Result<(), FromWorker> {
        self.letters.try_send(letter).map_err(|error| match error {
            TrySendError::Full(letter) | TrySendError::Disconnected(letter) => letter,
        })?;
        let _ = self.waker.wake();
        Ok(())
    }

    /// Sends the last letter of a thread, which may wait.
    pub fn send_last(&self, letter: FromWorker) -> Result<(), SendError<FromWorker>> {
        self.letters.send(letter)?;
        let _ = self.waker.wake();
        Ok(())
    }
}
