//! One switch connection as a state machine: it takes messages, and returns bytes and effects.
//!
//! ```text
//!              hello                features reply            (1.3) port descriptions
//!   AwaitHello ─────> AwaitFeatures ──────────────> AwaitPorts ───────────────────> Identified ──admitted──> Up
//! ```
//!
//! In: a message's bytes and the time. Out: messages appended for the switch, [`crate::turn::SessionOutput`]s, or the
//! [`SessionEnd`]. It never does I/O, reads no clock, and knows no other session. Between `Identified` and `Up`, its
//! owner decides whether the datapath id may be used.

mod bundle;
mod command;
mod handshake;
mod held;
mod live;
mod paced;
mod role;
mod template;
#[cfg(test)]
mod tests;

use self::held::Paced;
use self::template::Template;
use crate::bundles::Bundles;
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

/// The limit of known ports of one switch. Further ports are ignored, with a line in the log: the data of all ports
/// must fit one frame of the `abi` (128 KiB).
pub const MAX_PORTS: usize = 4000;

/// Malformed messages in [`DAMAGE_WINDOW_MS`] after which the session ends: a switch with a bug survives, a flood does
/// not.
const MAX_DAMAGED: u32 = 64;
const DAMAGE_WINDOW_MS: u64 = 60_000;

/// Errors sent to one switch per second. Further ones are only counted, so that garbage does not cause as much garbage.
const ERRORS_PER_SECOND: u32 = 16;

/// The longest accepted hello: a bitmap of all possible versions takes 40 bytes.
const MAX_HELLO_LEN: usize = 1024;

/// How many bytes of a message an error returns (1.3.5, 7.5.4: at least 64 bytes).
const ERROR_DATA_LEN: usize = 64;

/// An identified switch that has not described itself for this long does not, in milliseconds. It is far longer than a round trip.
const DESCRIPTION_MS: u64 = 2_000;

/// The stage of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Our hello was sent.
    AwaitHello,
    /// The version is negotiated; the features were requested.
    AwaitFeatures,
    /// 1.3: the ports were requested.
    AwaitPorts,
    /// The handshake is complete. The session waits for the decision whether its datapath id may be used.
    Identified,
    /// Events and commands are exchanged.
    Up,
}

/// The result of a message, besides its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The session continues.
    On,
    /// The handshake is over: [`Session::admit`] it, or [`Session::refuse`] it.
    Identified,
}

/// The identity that a switch reports when it connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub datapath: DatapathId,
    /// How many packets it can buffer.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
}

/// The settings of a session, its timeouts and its bounds, from the configuration.
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
    miss_send_len: u16,
}

/// Counts events in a time span, up to a maximum.
#[derive(Clone, Copy, Debug)]
struct Window {
    began_ms: u64,
    count: u32,
}

impl Window {
    /// Counts one more. Returns whether it is still within `max`.
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
    /// Whether the switch has refused to describe itself.
    is_undescribed: bool,
    /// Whether ports or description have changed since the last check.
    facts_changed: bool,
    /// The message of the last prepared rule.
    template: Option<Box<Template>>,
    /// How long the switch took to answer the request for its features.
    round_trip_ms: u64,
    /// What a profile says of the switch, and the commands that wait because of it.
    paced: Option<Box<Paced>>,
    receipts: Receipts,
    requests: Requests,
    bundles: Bundles,
    roles: Roles,
    /// Whether the switch has closed its side: only data on its way will arrive.
    is_closing: bool,
    counters: Counters,
    sequence: u64,
    /// Reused for the match of each flow removed.
    match_tlvs: Vec<u8>,
    /// The transaction that the handshake waits for.
    awaited_xid: u32,
    desc_xid: u32,
    state_since_ms: u64,
    last_heard_ms: u64,
    echo_sent: bool,
    /// Whether the session was probed outside the echo interval, and nothing has arrived since.
    is_probed: bool,
    damage: Window,
    errors: Window,
}

impl Session {
    /// Creates a session for a new connection. It sends nothing before [`Session::open`].
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
                miss_send_len: config.miss_send_len,
            },
            state: State::AwaitHello,
            version: config.versions.highest(),
            identity: Identity::default(),
            ports: BTreeMap::new(),
            desc: None,
            is_undescribed: false,
            facts_changed: false,
            template: None,
            round_trip_ms: 0,
            paced: None,
            receipts: Receipts::new(config.max_outstanding),
            requests: Requests::new(config.max_requests),
            bundles: Bundles::default(),
            roles: Roles::default(),
            is_closing: false,
            counters: Counters::default(),
            // The numbers of a reconnecting switch start above its old ones: no session sends 2²⁰ events in a
            // millisecond.
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

    /// Applies other timeouts from now on; the negotiated version and the role stay.
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
            miss_send_len: config.miss_send_len,
        };
    }

    /// The stage of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// The negotiated version; before the hello, the highest that we offer.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The identity that the switch reported; zeros before [`State::Identified`].
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Its ports, by number.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = &PortRecord> {
        self.ports.values()
    }

    /// The switch's description (OFPMP_DESC), once it has arrived.
    pub fn desc(&self) -> Option<&SwitchDesc> {
        self.desc.as_ref()
    }

    /// Whether an identified switch may still describe itself.
    pub fn awaits_description(&self, now_ms: u64) -> bool {
        let waited_ms = now_ms.saturating_sub(self.state_since_ms);
        self.desc.is_none() && !self.is_undescribed && waited_ms < DESCRIPTION_MS
    }

    /// The role that the switch last confirmed for this controller; `None` if none was requested or confirmed.
    pub fn role(&self) -> Option<ControllerRole> {
        self.roles.confirmed()
    }

    /// Whether ports or description have changed since the last call.
    pub fn take_facts_changed(&mut self) -> bool {
        std::mem::take(&mut self.facts_changed)
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Commands that wait for their receipt.
    pub fn outstanding(&self) -> usize {
        self.receipts.outstanding()
    }

    /// The switch has closed its side: the unread data was sent before, and its packet-ins are dropped.
    pub fn on_peer_closed(&mut self) {
        self.is_closing = true;
    }

    /// Sends the hello.
    pub fn open(&mut self, turn: &mut Turn<'_>) {
        let xid = self.receipts.next_xid();
        self.write(hello::ours(self.limits.versions, xid), turn);
    }

    /// Bytes have arrived, whatever they are: the peer is alive.
    pub fn heard(&mut self, bytes: usize, now_ms: u64) {
        self.counters.bytes_in += bytes as u64;
        self.last_heard_ms = now_ms;
        self.echo_sent = false;
        self.is_probed = false;
    }

    /// Takes one message, as it was split from the stream.
    ///
    /// # Errors
    /// The end of the session. The last messages for the switch have been appended.
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
            // From here on, the stream cannot be split any more.
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

    /// Checks an incomplete message: if it cannot be a hello, the session does not wait for the rest.
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

    /// Handles the passed time: sends echo requests, and gives up what was not answered in time.
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

    /// Asks the switch at once whether it is alive, because another connection claims its datapath id.
    pub fn probe(&mut self, turn: &mut Turn<'_>) {
        self.is_probed = true;
        self.echo_sent = true;
        self.say(Body::EchoRequest(Vec::new()), turn);
    }

    /// Whether it was probed, and nothing has arrived since.
    pub fn is_probed(&self) -> bool {
        self.is_probed
    }

    /// The switch may go up: reports it, and requests the configured role from the switch.
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

    /// The switch may not go up: sends it the reason (OFPET_HELLO_FAILED, OFPHFC_EPERM, which may contain a sentence).
    pub fn refuse(&mut self, fault: Fault, reason: String, turn: &mut Turn<'_>) -> SessionEnd {
        const NOT_PERMITTED: ErrorCode = ErrorCode { kind: HELLO_INCOMPATIBLE.kind, code: 1 };
        self.send_error(self.awaited_xid, NOT_PERMITTED, reason.as_bytes(), turn);
        SessionEnd::refusal(fault, reason)
    }

    /// The session has ended: reports the pending results, and that the switch is gone.
    pub fn on_end(&mut self, reason: &str, turn: &mut Turn<'_>) {
        if self.state != State::Up {
            return;
        }
        let mut owed = Vec::new();
        self.receipts.on_end(|tag| owed.push(tag));
        self.requests.on_end(|tag| owed.push(tag));
        self.roles.on_end(|tag| owed.push(tag));
        owed.extend(self.bundles.on_end());
        owed.extend(self.end_paced());
        owed.into_iter().for_each(|tag| self.tell_unknown(tag, reason, turn));
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        turn.event(|frame| abi::event::write::switch_down(frame, sequence, datapath));
    }

    /// The turn has ended: sends a barrier for the commands that need receipts.
    pub fn on_turn_end(&mut self, turn: &mut Turn<'_>) {
        if self.receipts.wants_barrier() {
            let (before, xid) = (turn.out.len(), self.receipts.next_xid());
            openflow::write::barrier_request(self.version, xid, turn.out);
            self.counted_out(turn.out.len() - before);
            self.barrier_sent(turn.now_ms);
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

    /// Sends a message of ours, and returns its transaction id.
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

    /// A message with a valid header and malformed content: sends an error, drops the message and counts it.
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

    /// Input after which the session cannot continue: sends an error.
    fn fatal(&mut self, message: &[u8], bad: BadInput, turn: &mut Turn<'_>) -> SessionEnd {
        self.counters.damaged += 1;
        self.complain(message, &bad, turn);
        SessionEnd::by_input(bad)
    }

    /// Sends the protocol's error for bad input. It never answers an error with an error.
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
