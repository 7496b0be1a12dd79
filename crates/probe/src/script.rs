//! What a phase asks for and what it gets: a script of steps, and the record of what happened at each.
//!
//! Plain data. A step sends a message, a test frame, or both. Its answer is a reply, a packet-in or a test frame that comes back. The
//! estimators of the phases are functions of records.

use crate::flows::TestFlow;
use crate::rules::RuleForm;
use flow::PortNo;
use openflow::Body;

/// The bound on steps of a script: a look at each rule of the largest table that a probe fills. The engine cuts a longer script off.
pub const STEPS_MAX: usize = 1 << 18;

/// A second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// A millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// When a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the start of the script, or at once if that is past.
    At(u64),
    /// So long after an earlier step has ended, and when fewer steps are open than the script's window.
    After(u64),
}

/// What ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing: it is over when it is sent.
    Sent,
    /// The reply to its message, or an error.
    Reply,
    /// The packet-in with its test frame.
    PacketIn,
    /// Its test frame comes out of the switch, or its message gets an error.
    Frame,
}

/// How the probe answers a packet-in.
#[derive(Clone, Copy, Debug)]
pub enum AnswerWith {
    /// A rule for the flow. It releases the buffered packet.
    Rule(RuleForm),
    /// A packet-out. It releases the buffered packet, or carries it.
    PacketOut(PortNo),
}

/// The test frames of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// None.
    None,
    /// One of this length, into this port.
    One {
        /// The port.
        into: PortNo,
        /// The length.
        bytes: usize,
    },
    /// Again and again into this port until one comes out as fast as through hardware, or some have come out. All watched flows take
    /// turns.
    Watch {
        /// The port.
        into: PortNo,
        /// The length.
        bytes: usize,
    },
    /// The message itself carries one with this number of bytes.
    InMessage {
        /// The length.
        bytes: usize,
        /// The port by which it leaves.
        out: PortNo,
    },
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// When it starts.
    pub when: When,
    /// The message that it sends.
    pub message: Option<Body>,
    /// The flow of its test frames.
    pub flow: Option<TestFlow>,
    /// Its test frames.
    pub frames: Frames,
    /// What ends it.
    pub until: Until,
    /// How a packet-in is answered.
    pub answer: Option<AnswerWith>,
}

impl Step {
    /// A message without an answer.
    pub fn send(when: When, message: Body) -> Self {
        Step {
            when,
            message: Some(message),
            flow: None,
            frames: Frames::None,
            until: Until::Sent,
            answer: None,
        }
    }

    /// A message that has a reply.
    pub fn ask(when: When, message: Body) -> Self {
        Step { until: Until::Reply, ..Step::send(when, message) }
    }

    /// A barrier.
    pub fn barrier(when: When) -> Self {
        Step::ask(when, Body::BarrierRequest)
    }

    /// A flow mod for a flow, whose rule is watched until it forwards.
    pub fn watched(when: When, message: Body, flow: TestFlow, frames: Frames) -> Self {
        Step { when, message: Some(message), flow: Some(flow), frames, until: Until::Frame, answer: None }
    }

    /// One test frame.
    pub fn frame(when: When, flow: TestFlow, into: PortNo, bytes: usize, until: Until) -> Self {
        Step {
            when,
            message: None,
            flow: Some(flow),
            frames: Frames::One { into, bytes },
            until,
            answer: None,
        }
    }

    /// A packet-out.
    pub fn packet_out(when: When, flow: TestFlow, out: PortNo, bytes: usize) -> Self {
        let frames = Frames::InMessage { bytes, out };
        Step { when, message: None, flow: Some(flow), frames, until: Until::Frame, answer: None }
    }
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The steps, in the order of their start.
    pub steps: Vec<Step>,
    /// How many steps may be open when one with [`When::After`] starts.
    pub window: usize,
    /// How long a step waits for its answer.
    pub patience_ns: u64,
    /// How long the script waits after its last step, for what comes late.
    pub settle_ns: u64,
    /// No step starts after so many have ended without a frame. None: all start.
    pub failures_max: Option<usize>,
}

impl Script {
    /// These steps, one after another.
    pub fn new(steps: Vec<Step>, patience_ns: u64) -> Self {
        Script { steps, window: 1, patience_ns, settle_ns: 0, failures_max: None }
    }

    /// The same with so many steps open at once.
    pub fn with_window(self, window: usize) -> Self {
        Script { window, ..self }
    }

    /// The same, ended when so many steps have ended without a frame.
    pub fn stop_after(self, failures: usize) -> Self {
        Script { failures_max: Some(failures), ..self }
    }

    /// The same with a wait after the last step.
    pub fn with_settle(self, settle_ns: u64) -> Self {
        Script { settle_ns, ..self }
    }
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When its last part came.
    pub at_ns: u64,
    /// How many flow entries it had.
    pub entries: u32,
    /// The packets that these entries have counted.
    pub packets: u64,
}

/// An error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When it came.
    pub at_ns: u64,
    /// Its type, in the version's own numbers.
    pub kind: u16,
    /// Its code.
    pub code: u16,
}

/// A packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInSeen {
    /// When it came.
    pub at_ns: u64,
    /// How many bytes of the packet it had.
    pub bytes: usize,
    /// Its buffer id.
    pub buffer_id: u32,
}

/// A test frame that came out of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSeen {
    /// When the probe had sent it into the switch.
    pub sent_ns: u64,
    /// When it arrived.
    pub at_ns: u64,
    /// At which port.
    pub port: PortNo,
}

/// What happened at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When it started. None: the script ended before.
    pub sent_ns: Option<u64>,
    /// The reply.
    pub reply: Option<Reply>,
    /// The error.
    pub error: Option<Refusal>,
    /// The first packet-in.
    pub packet_in: Option<PacketInSeen>,
    /// When the probe answered it.
    pub answered_ns: Option<u64>,
    /// The first test frame that came out.
    pub frame: Option<FrameSeen>,
    /// When the last test frame before that one was sent, which did not come out before it. Only for watched rules.
    pub lost_ns: Option<u64>,
    /// The shortest transit of its frames.
    pub fastest_ns: Option<u64>,
    /// How many test frames it sent, and how many came out.
    pub frames: (u32, u32),
    /// When the switch reported that the rule of its flow was removed.
    pub removed_ns: Option<u64>,
    /// Whether it is over.
    pub has_ended: bool,
}

impl Outcome {
    /// From the start of the step to its reply.
    pub fn reply_after_ns(&self) -> Option<u64> {
        Some(self.reply?.at_ns.saturating_sub(self.sent_ns?))
    }

    /// From the start of the step to its packet-in.
    pub fn packet_in_after_ns(&self) -> Option<u64> {
        Some(self.packet_in?.at_ns.saturating_sub(self.sent_ns?))
    }

    /// From the start of the step, or the answer to its packet-in, to the frame.
    pub fn frame_after_ns(&self) -> Option<u64> {
        Some(self.frame?.at_ns.saturating_sub(self.answered_ns.or(self.sent_ns)?))
    }

    /// How long the fastest frame was in the switch. One slow frame is no slow rule.
    pub fn transit_ns(&self) -> Option<u64> {
        self.fastest_ns
    }
}

/// What happened at all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When the script started.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// By step.
    pub outcomes: Vec<Outcome>,
}
