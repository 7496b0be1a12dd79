//! One switch connection as a state machine: messages in, bytes and effects out.
//!
//! ```text
//!              hello                features reply            (1.3) port descriptions
//!   AwaitHello ─────> AwaitFeatures ──────────────> AwaitPorts ───────────────────> Identified ──admitted──> Up
//! ```
//!
//! In: a message's bytes and the time. Out: messages appended for the switch, [`crate::turn::SessionOutput`]s, or the
//! [`SessionEnd`]. Never does I/O, never asks for the time, and knows no other session: whether a datapath id may come up is
//! asked between `Identified` and `Up`.

mod command;
mod handshake;
mod live;
mod role;
mod template;
#[cfg(test)]
mod tests;

use self::template::Template;
use crate::config::{RoleWanted, SouthboundConfig, Versions};
use crate::counters::Counters;
use crate::fault::{Fault, SessionEnd};
use crate::hello;
use crate::receipts::Receipts;
use crate::requests::Requests;
use crate::roles::{ControllerRole, Roles};
use crate::translate::error::error_message;
use crate::turn::{Turn, message_name};
use abi::OpenFlowVersion;
use abi::event::PortRecord;
use flow::{BadInput, DatapathId, ErrorCode};
use openflow::error::{BAD_LEN, HELLO_INCOMPATIBLE};
use openflow::message::SwitchDesc;
use openflow::{Body, HEADER_LEN, Header, Message, Version};
use std::collections::BTreeMap;

/// Ports of one switch that are known. Further ones are left out, with a line in the log: what all of them need must fit one
/// frame of the `abi` (128 KiB).
pub const MAX_PORTS: usize = 4000;

/// Damaged messages in [`DAMAGE_WINDOW_MS`] after which a session is ended: a switch with a bug lives on, a flood does not.
const MAX_DAMAGED: u32 = 64;
const DAMAGE_WINDOW_MS: u64 = 60_000;

/// Errors sent to one switch in a second; further ones are counted only, so that rubbish is not answered by as much rubbish.
const ERRORS_PER_SECOND: u32 = 16;

/// A hello longer than this is not read: a bitmap of every version there could be takes 40 bytes.
const MAX_HELLO_LEN: usize = 1024;

/// How much of a message goes back in an error (1.3.5, 7.5.4: at least 64 bytes).
const ERROR_DATA_LEN: usize = 64;

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Our hello is out.
    AwaitHello,
    /// The version is clear; the features are asked for.
    AwaitFeatures,
    /// 1.3: the ports are asked for.
    AwaitPorts,
    /// All is known; somebody must say whether the datapath id may come up.
    Identified,
    /// Events and commands flow.
    Up,
}

/// What a message led to, besides its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The session goes on.
    On,
    /// The handshake is over: [`Session::admit`] it, or [`Session::refuse`] it.
    Identified,
}

/// What a switch says of itself when it comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub datapath: DatapathId,
    /// How many packets it can keep.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
}

/// What is wanted of a session, its time-outs and its bounds, from the configuration.
#[derive(Clone, Copy, Debug)]
struct Limits {
    versions: Versions,
    role: RoleWanted,
    echo_interval_ms: u64,
    echo_timeout_ms: u64,
    handshake_timeout_ms: u64,
    receipt_timeout_ms: u64,
    request_timeout_ms: u64,
    max_output_bytes: usize,
}

/// So many in a span of time, and then no more until it is over.
#[derive(Clone, Copy, Debug)]
struct Window {
    began_ms: u64,
    count: u32,
}

impl Window {
    /// Counts one more; whether it is still within `max`.
    fn count(&mut self, now_ms: u64, span_ms: u64, max: u32) -> bool {
        if now_ms.saturating_sub(self.began_ms) >= span_ms {
            *self = Window { began_ms: now_ms, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= max
    }
}

/// One switch connection.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    state: State,
    version: Version,
    identity: Identity,
    ports: BTreeMap<u32, PortRecord>,
    desc: Option<SwitchDesc>,
    /// Whether ports or description changed since somebody last looked.
    facts_changed: bool,
    /// The message of the rule that was prepared last.
    template: Option<Box<Template>>,
    receipts: Receipts,
    requests: Requests,
    roles: Roles,
    /// Whether the switch sends no more than what is on its way.
    is_closing: bool,
    counters: Counters,
    sequence: u64,
    /// Reused for the match of each flow removed.
    match_tlvs: Vec<u8>,
    /// The transaction on which the handshake waits.
    awaited_xid: u32,
    desc_xid: u32,
    state_since_ms: u64,
    last_heard_ms: u64,
    echo_sent: bool,
    /// Whether it was asked out of turn whether it lives, and nothing came yet.
    is_probed: bool,
    damage: Window,
    errors: Window,
}

impl Session {
    /// A session with whoever just connected. Nothing is sent before [`Session::open`].
    pub fn new(config: &SouthboundConfig, now_ms: u64) -> Self {
        let quiet = Window { began_ms: now_ms, count: 0 };
        Session {
            limits: Limits {
                versions: config.versions,
                role: config.role,
                echo_interval_ms: config.echo_interval_ms,
                echo_timeout_ms: config.echo_timeout_ms,
                handshake_timeout_ms: config.handshake_timeout_ms,
                receipt_timeout_ms: config.receipt_timeout_ms,
                request_timeout_ms: config.request_timeout_ms,
                max_output_bytes: config.max_output_bytes,
            },
            state: State::AwaitHello,
            version: config.versions.highest(),
            identity: Identity::default(),
            ports: BTreeMap::new(),
            desc: None,
            facts_changed: false,
            template: None,
            receipts: Receipts::new(config.max_outstanding),
            requests: Requests::new(config.max_requests),
            roles: Roles::default(),
            is_closing: false,
            counters: Counters::default(),
            // A switch that comes back goes on above its old numbers: no session sends 2²⁰ events in a millisecond.
            sequence: now_ms << 20,
            match_tlvs: Vec::new(),
            awaited_xid: 0,
            desc_xid: 0,
            state_since_ms: now_ms,
            last_heard_ms: now_ms,
            echo_sent: false,
            is_probed: false,
            damage: quiet,
            errors: quiet,
        }
    }

    /// Other time-outs hold from now on; the version and the role stay as they were agreed.
    pub fn reconfigure(&mut self, config: &SouthboundConfig) {
        self.limits = Limits {
            versions: self.limits.versions,
            role: self.limits.role,
            echo_interval_ms: config.echo_interval_ms,
            echo_timeout_ms: config.echo_timeout_ms,
            handshake_timeout_ms: config.handshake_timeout_ms,
            receipt_timeout_ms: config.receipt_timeout_ms,
            request_timeout_ms: config.request_timeout_ms,
            max_output_bytes: config.max_output_bytes,
        };
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// The version that is spoken; before the hello, the highest that we offer.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What the switch said of itself; zeros before [`State::Identified`].
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Its ports, by number.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = &PortRecord> {
        self.ports.values()
    }

    /// What the switch says that it is (OFPMP_DESC), once it did.
    pub fn desc(&self) -> Option<&SwitchDesc> {
        self.desc.as_ref()
    }

    /// The role that the switch last said that this controller has; `None` if it was not asked, or has not answered.
    pub fn role(&self) -> Option<ControllerRole> {
        self.roles.confirmed()
    }

    /// Whether ports or description changed since this was last asked.
    pub fn take_facts_changed(&mut self) -> bool {
        std::mem::take(&mut self.facts_changed)
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Commands that wait for their receipt.
    pub fn outstanding(&self) -> usize {
        self.receipts.outstanding()
    }

    /// The switch has closed its end: what is still to be read is what it sent before, and its packet-ins are nobody's any more.
    pub fn on_peer_closed(&mut self) {
        self.is_closing = true;
    }

    /// Says hello.
    pub fn open(&mut self, turn: &mut Turn<'_>) {
        let xid = self.receipts.next_xid();
        self.write(hello::ours(self.limits.versions, xid), turn);
    }

    /// So many bytes came, whatever they are: the peer lives.
    pub fn heard(&mut self, bytes: usize, now_ms: u64) {
        self.counters.bytes_in += bytes as u64;
        self.last_heard_ms = now_ms;
        self.echo_sent = false;
        self.is_probed = false;
    }

    /// Takes one message, as it was cut from the stream.
    ///
    /// # Errors
    /// The end of the session. What is to be said to the switch first has been appended.
    #[inline]
    pub fn on_message(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<Step, SessionEnd> {
        self.counters.messages_in += 1;
        if self.state == State::Up && self.take_usual_packet_in(message, turn) {
            return Ok(Step::On);
        }
        self.on_other_message(message, turn)
    }

    #[inline(never)]
    fn on_other_message(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<Step, SessionEnd> {
        let header = match Header::read(message) {
            Ok(header) => header,
            // From here on the stream cannot be cut any more.
            Err(bad) => return Err(self.fatal(message, bad, turn)),
        };
        if self.state == State::AwaitHello {
            return self.on_first_message(&header, message, turn);
        }
        if header.version != self.version && header.kind > TYPE_ERROR {
            return Err(self.wrong_version(&header, message, turn));
        }
        if self.state == State::Up {
            return self.on_live_message(&header, message, turn).map(|()| Step::On);
        }
        self.on_handshake_message(&header, message, turn)
    }

    /// Looks at a message that is not whole yet: one that cannot be a hello is not waited for.
    ///
    /// # Errors
    /// The end of the session.
    pub fn on_partial(&mut self, partial: &[u8], turn: &mut Turn<'_>) -> Result<(), SessionEnd> {
        if self.state != State::AwaitHello || partial.len() < HEADER_LEN {
            return Ok(());
        }
        let Ok(header) = Header::read(partial) else { return Ok(()) };
        if header.kind != TYPE_HELLO {
            return Err(self.before_hello(&header, partial, turn));
        }
        if usize::from(header.length) > MAX_HELLO_LEN {
            let message = format!("a hello of {} bytes; {MAX_HELLO_LEN} are read", header.length);
            let bad = BadInput { offset: 2, field: "length", error: BAD_LEN, message: message.into() };
            return Err(self.fatal(partial, bad, turn));
        }
        Ok(())
    }

    /// Time went by: echo requests, and what did not come in time.
    ///
    /// # Errors
    /// The end of the session.
    pub fn on_tick(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionEnd> {
        if self.state != State::Up {
            return self.check_handshake(turn.now_ms);
        }
        self.give_up_late(turn);
        let silent_ms = turn.now_ms.saturating_sub(self.last_heard_ms);
        if silent_ms >= self.limits.echo_timeout_ms {
            let reason =
                format!("the switch was silent for {silent_ms} ms and did not answer an echo request");
            return Err(SessionEnd::new(Fault::Network, reason));
        }
        if silent_ms >= self.limits.echo_interval_ms && !self.echo_sent {
            self.echo_sent = true;
            self.say(Body::EchoRequest(Vec::new()), turn);
        }
        Ok(())
    }

    /// Asks the switch at once whether it lives, since somebody claims its datapath id.
    pub fn probe(&mut self, turn: &mut Turn<'_>) {
        self.is_probed = true;
        self.echo_sent = true;
        self.say(Body::EchoRequest(Vec::new()), turn);
    }

    /// Whether it was asked so, and nothing came yet.
    pub fn is_probed(&self) -> bool {
        self.is_probed
    }

    /// The switch may come up: says so, and asks the switch for the role that is wanted.
    pub fn admit(&mut self, turn: &mut Turn<'_>) {
        self.enter(State::Up, turn.now_ms);
        let ports: Vec<PortRecord> = self.ports.values().copied().collect();
        let Identity { datapath, n_buffers, n_tables } = self.identity;
        let openflow = match self.version {
            Version::V1_0 => OpenFlowVersion::V1_0,
            _ => OpenFlowVersion::V1_3,
        };
        let up = abi::event::SwitchUp { datapath, n_buffers, n_tables, openflow, ports: &ports };
        let sequence = self.next_sequence();
        turn.event(|frame| abi::event::write::switch_up(frame, sequence, &up));
        self.ask_for_wanted_role(turn);
    }

    /// The switch may not come up: tells it why (OFPET_HELLO_FAILED, OFPHFC_EPERM, which may hold a sentence).
    pub fn refuse(&mut self, fault: Fault, reason: String, turn: &mut Turn<'_>) -> SessionEnd {
        const NOT_PERMITTED: ErrorCode = ErrorCode { kind: HELLO_INCOMPATIBLE.kind, code: 1 };
        self.send_error(self.awaited_xid, NOT_PERMITTED, reason.as_bytes(), turn);
        SessionEnd::refusal(fault, reason)
    }

    /// The session is over: what is still owed is told, and that the switch is gone.
    pub fn on_end(&mut self, reason: &str, turn: &mut Turn<'_>) {
        if self.state != State::Up {
            return;
        }
        let mut owed = Vec::new();
        self.receipts.on_end(|tag| owed.push(tag));
        self.requests.on_end(|tag| owed.push(tag));
        self.roles.on_end(|tag| owed.push(tag));
        owed.into_iter().for_each(|tag| self.tell_unknown(tag, reason, turn));
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        turn.event(|frame| abi::event::write::switch_down(frame, sequence, datapath));
    }

    /// The turn is over: a barrier for the commands that want receipts.
    pub fn on_turn_end(&mut self, turn: &mut Turn<'_>) {
        if self.receipts.wants_barrier() {
            let (before, xid) = (turn.out.len(), self.receipts.next_xid());
            openflow::write::barrier_request(self.version, xid, turn.out);
            self.counted_out(turn.out.len() - before);
            self.receipts.barrier_sent(turn.now_ms);
        }
    }

    fn enter(&mut self, state: State, now_ms: u64) {
        self.state = state;
        self.state_since_ms = now_ms;
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Sends a message of ours; its transaction id.
    fn say(&mut self, body: Body, turn: &mut Turn<'_>) -> u32 {
        let xid = self.receipts.next_xid();
        self.write(Message { version: self.version, xid, body }, turn);
        xid
    }

    fn write(&mut self, message: Message, turn: &mut Turn<'_>) {
        let before = turn.out.len();
        match message.encode(turn.out) {
            Ok(()) => self.counted_out(turn.out.len() - before),
            Err(refused) => {
                turn.line("OFPT_ERROR", &format!("Burnet could not write its own message: {refused}"))
            }
        }
    }

    fn counted_out(&mut self, bytes: usize) {
        self.counters.messages_out += 1;
        self.counters.bytes_out += bytes as u64;
    }

    /// Answers an echo request with its own payload.
    fn echo(&mut self, header: &Header, message: &[u8], turn: &mut Turn<'_>) {
        const ECHO_REPLY: u8 = 3;
        turn.out.extend_from_slice(&Header { kind: ECHO_REPLY, version: self.version, ..*header }.to_bytes());
        turn.out.extend_from_slice(&message[HEADER_LEN..]);
        self.counted_out(message.len());
    }

    /// A message that was well framed and could not be read: an error goes back, the message is dropped and counted.
    fn damaged(&mut self, message: &[u8], bad: BadInput, turn: &mut Turn<'_>) -> Result<(), SessionEnd> {
        self.counters.damaged += 1;
        self.complain(message, &bad, turn);
        turn.line_at(self.name_of(message), &bad);
        if self.damage.count(turn.now_ms, DAMAGE_WINDOW_MS, MAX_DAMAGED) {
            return Ok(());
        }
        let reason = format!("more than {MAX_DAMAGED} malformed messages within a minute; the last: {bad}");
        Err(SessionEnd::new(Fault::Switch, reason))
    }

    /// Input after which the session cannot go on: an error goes back.
    fn fatal(&mut self, message: &[u8], bad: BadInput, turn: &mut Turn<'_>) -> SessionEnd {
        self.counters.damaged += 1;
        self.complain(message, &bad, turn);
        SessionEnd::by_input(bad)
    }

    /// Sends the error that the protocol has for bad input. An error is never answered by an error.
    fn complain(&mut self, message: &[u8], bad: &BadInput, turn: &mut Turn<'_>) {
        if message.get(1) == Some(&TYPE_ERROR) || !self.errors.count(turn.now_ms, 1000, ERRORS_PER_SECOND) {
            return;
        }
        let xid = message.get(4..8).and_then(|xid| xid.try_into().ok()).map_or(0, u32::from_be_bytes);
        self.send_error(xid, bad.error, &message[..message.len().min(ERROR_DATA_LEN)], turn);
    }

    fn send_error(&mut self, xid: u32, error: ErrorCode, data: &[u8], turn: &mut Turn<'_>) {
        self.counters.errors_out += 1;
        self.write(error_message(self.version, xid, error, data), turn);
    }

    fn name_of(&self, message: &[u8]) -> &'static str {
        message_name(self.version, message.get(1).copied().unwrap_or(u8::MAX))
    }
}

/// OFPT_HELLO, the same number in every version.
const TYPE_HELLO: u8 = 0;
/// OFPT_ERROR, the same number in every version.
const TYPE_ERROR: u8 = 1;
