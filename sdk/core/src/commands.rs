//! What a handler commands: frames put together in a buffer that is kept, so that commanding allocates nothing once it is warm.
//!
//! Never sends: the zone does, when the handler has returned.

use crate::calls::Calls;
use crate::stream::TICKET_OF_STREAM;
use abi::command::{
    Ask, Command, FlowMod, Log, PacketOut, PortMod, Publish, QueryAnswer, StatsRequest, Subscribe, What,
    write,
};
use abi::event::PacketIn;
use abi::service::{Form, at_home, home_for};
use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter, write_match};
use flow::{DatapathId, PortNo};
use store_contract::Op;

/// The number by which a command's receipt or answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may stop working.
    Warning,
    /// Good to know.
    Information,
    /// For the app's author.
    Debugging,
}

/// Where a handler puts its commands. A command that would be longer than a frame can be is left out and counted.
#[derive(Debug, Default)]
pub struct Commands {
    pub(crate) frames: Vec<u8>,
    actions: Vec<u8>,
    last_ticket: u64,
    too_long: u64,
    pub(crate) calls: Calls,
    pub(crate) for_monitor: Vec<Vec<u8>>,
}

const NO_SWITCH: DatapathId = DatapathId(0);

impl Commands {
    /// An empty buffer.
    pub fn new() -> Self {
        Commands::default()
    }

    /// Begins a rule for a switch: an add in table 0 of priority 0, of every packet, that never times out and drops.
    #[inline]
    pub fn rule(&mut self, datapath: DatapathId) -> FlowBuilder<'_> {
        let start = self.frames.len();
        self.frames.reserve(USUAL_RULE_LEN);
        self.frames.extend_from_slice(&[0; write::RULE_HEAD_LEN]);
        let (matching_len, has_instructions, is_sent) = (0, false, false);
        FlowBuilder {
            datapath,
            fields: FlowMod::ADD,
            start,
            matching_len,
            has_instructions,
            is_sent,
            commands: self,
        }
    }

    /// Begins a packet to be sent by a switch.
    #[inline]
    pub fn packet_out(&mut self, datapath: DatapathId) -> PacketOutBuilder<'_, 'static> {
        self.actions.clear();
        PacketOutBuilder { datapath, buffer_id: None, in_port: PortNo::CONTROLLER, data: &[], commands: self }
    }

    /// Asks a switch for statistics: `multipart` is an `ofp_multipart_type`, `body` the body of such a request of OpenFlow 1.3.
    pub fn request_stats(&mut self, datapath: DatapathId, multipart: u16, body: &[u8]) -> Ticket {
        self.ticketed(datapath, false, What::StatsRequest(StatsRequest { multipart, body }))
    }

    /// Changes a port.
    pub fn change_port(&mut self, datapath: DatapathId, change: PortMod) -> Ticket {
        self.ticketed(datapath, true, What::PortMod(change))
    }

    /// Gets a receipt when the switch has done everything before it.
    pub fn barrier(&mut self, datapath: DatapathId) -> Ticket {
        self.ticketed(datapath, true, What::Barrier)
    }

    /// Any command, for what has no function of its own here; with a receipt.
    pub fn command(&mut self, datapath: DatapathId, what: What<'_>) -> Ticket {
        self.ticketed(datapath, true, what)
    }

    /// Publishes on a topic, named from coarse to fine: `host.moved`.
    pub fn publish(&mut self, topic: &str, payload: &[u8]) {
        self.plain(What::Publish(Publish { topic, payload }));
    }

    /// Asks a service. The answer comes to [`crate::App::on_query_reply`] with this ticket, whole, or a status that says why there is none; what the
    /// kernel refuses, for want of a capability, comes to [`crate::App::on_receipt`].
    pub fn query(&mut self, service: &str, payload: &[u8]) -> Ticket {
        self.ask(&Ask::query(service, payload))
    }

    /// A query or a stream with a deadline and a credit of the app's own. The deadline of a stream is for its first part.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Ticket {
        let number = self.next_ticket().0;
        let number = if ask.form == Form::Stream { number | TICKET_OF_STREAM } else { number };
        // Calls to one service stay in order: they all go by the same worker.
        let ticket = Ticket(at_home(home_for(ask.service), number));
        if ask.form == Form::Stream {
            self.calls.follow(ticket.0, ask.credit_bytes);
        }
        self.push(&Command {
            datapath: NO_SWITCH,
            ticket: ticket.0,
            wants_receipt: true,
            what: What::Query(*ask),
        });
        ticket
    }

    /// Follows a stream of a service: a snapshot, then each change. What comes of it comes to [`crate::App::on_stream`] with this ticket; what the kernel
    /// refuses, for want of a capability, comes to [`crate::App::on_receipt`].
    pub fn follow(&mut self, service: &str, payload: &[u8]) -> Ticket {
        self.ask(&Ask { form: Form::Stream, ..Ask::query(service, payload) })
    }

    /// Does not wait for the answer to a query any more, or follows a stream no longer; nothing more comes.
    pub fn cancel(&mut self, query: Ticket) {
        self.calls.unfollow(query.0);
        let what = What::QueryCancel;
        self.push(&Command { datapath: NO_SWITCH, ticket: query.0, wants_receipt: false, what });
    }

    /// Answers a query, whole (`more` false) or in parts, of any length: what is beyond the caller's credit waits here until it grants more.
    /// `status` 0 means that it is an answer; other numbers are the service's own. An answer that came too late, twice, or to no query comes back to
    /// [`crate::App::on_receipt`] as refused.
    pub fn answer(&mut self, query: Ticket, status: u16, more: bool, payload: &[u8]) {
        let Commands { calls, frames, too_long, .. } = self;
        let written = calls.answer(frames, query.0, &QueryAnswer { status, more, payload });
        *too_long += u64::from(!written);
    }

    /// Asks for the value of a key of the store. As with all that is asked of the store, the answer comes to [`crate::App::on_query_reply`] with
    /// this ticket and a status of [`mod@crate::store::status`].
    pub fn store_get(&mut self, key: &str) -> Ticket {
        self.ask_store(Op::Get, key, &[])
    }

    /// Keeps a value under a key of the store, as the app's own: it is on disk when the answer says that it is done.
    pub fn store_put(&mut self, key: &str, value: &[u8]) -> Ticket {
        self.ask_store(Op::Put, key, value)
    }

    /// Takes a key out of the store.
    pub fn store_delete(&mut self, key: &str) -> Ticket {
        self.ask_store(Op::Delete, key, &[])
    }

    /// Asks for the keys of the store that begin so and come behind `after`, which is empty for all of them, in their order. The answer comes in
    /// parts, each of which [`crate::store::keys`] reads; if its last has the status MORE_KEYS, one asks again behind the last key.
    pub fn store_list(&mut self, prefix: &str, after: &str) -> Ticket {
        self.ask_store(Op::List, prefix, after.as_bytes())
    }

    fn ask_store(&mut self, op: Op, key: &str, value: &[u8]) -> Ticket {
        self.query(store_contract::SERVICE, &store_contract::Ask { op, key, value }.to_bytes())
    }

    /// Writes a line into the node's log, under the app's name.
    pub fn log(&mut self, level: Level, text: &str) {
        self.plain(What::Log(Log { level: level as u8, text }));
    }

    /// Tells the monitor something; only a service of the node is heard.
    #[doc(hidden)]
    pub fn tell_monitor(&mut self, message: &impl serde::Serialize) {
        // Plain data: JSON can always say it.
        self.for_monitor.extend(serde_json::to_vec(message));
    }

    /// What the monitor was told so far, as JSON; for tests of services.
    #[doc(hidden)]
    pub fn told_monitor(&self) -> Vec<String> {
        self.for_monitor.iter().map(|told| String::from_utf8_lossy(told).into_owned()).collect()
    }

    /// What was commanded so far, as frames one after the other; for what puts a zone together by hand.
    pub fn frames(&self) -> &[u8] {
        &self.frames
    }

    /// How many commands were left out since they would have been too long.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    pub(crate) fn subscribe(&mut self, interests: &crate::app::Interests) {
        let mut packets = Vec::new();
        write_match(&interests.subscribed(), &mut packets);
        self.plain(What::Subscribe(Subscribe { events: interests.events, packets: &packets }));
    }

    fn plain(&mut self, what: What<'_>) {
        self.push(&Command { datapath: NO_SWITCH, ticket: 0, wants_receipt: false, what });
    }

    fn ticketed(&mut self, datapath: DatapathId, wants_receipt: bool, what: What<'_>) -> Ticket {
        let ticket = self.next_ticket();
        self.push(&Command { datapath, ticket: ticket.0, wants_receipt, what });
        ticket
    }

    #[inline]
    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    fn push(&mut self, command: &Command<'_>) {
        self.too_long += u64::from(!write::command(&mut self.frames, command));
    }
}

/// Room for most rules.
const USUAL_RULE_LEN: usize = 192;

/// A rule that is being put together, in the place where it will be sent from. Nothing happens before one of the `send`s.
#[must_use = "a rule does nothing before it is sent"]
pub struct FlowBuilder<'c> {
    datapath: DatapathId,
    fields: FlowMod<'static>,
    /// Where it begins in the frames: its head, of which the bytes are written last, then its match, then its instructions.
    start: usize,
    matching_len: usize,
    has_instructions: bool,
    is_sent: bool,
    commands: &'c mut Commands,
}

/// One that is not sent leaves nothing behind.
impl Drop for FlowBuilder<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_sent {
            self.commands.frames.truncate(self.start);
        }
    }
}

/// `ofp_flow_mod_command` and `ofp_flow_mod_flags` as far as they are used here.
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;
const SEND_FLOW_REMOVED: u16 = 1;

impl FlowBuilder<'_> {
    /// Which packets: `|m| { m.field(Field::EthDst, mac); }`. Called again, it adds.
    #[inline]
    pub fn matching(mut self, write: impl FnOnce(&mut MatchWriter<'_>)) -> Self {
        let before = self.commands.frames.len();
        write(&mut MatchWriter::new(&mut self.commands.frames));
        self.take_matching(before);
        self
    }

    /// What was appended since the frames were so long is of its match, which stands before the instructions.
    #[inline]
    fn take_matching(&mut self, before: usize) {
        let added = self.commands.frames.len() - before;
        if self.has_instructions {
            let behind = self.start + write::RULE_HEAD_LEN + self.matching_len;
            self.commands.frames[behind..].rotate_right(added);
        }
        self.matching_len += added;
    }

    /// A match that is in canonical bytes already. Called again, it adds.
    #[inline]
    pub fn matching_bytes(mut self, bytes: &[u8]) -> Self {
        let before = self.commands.frames.len();
        self.commands.frames.extend_from_slice(bytes);
        self.take_matching(before);
        self
    }

    /// Instructions that are in canonical bytes already.
    #[inline]
    pub fn instruction_bytes(mut self, bytes: &[u8]) -> Self {
        self.has_instructions = true;
        self.commands.frames.extend_from_slice(bytes);
        self
    }

    /// Out of this port, as they are: what [`Self::apply`] of one output does.
    #[inline]
    pub fn output(mut self, port: PortNo) -> Self {
        self.has_instructions = true;
        let [p0, p1, p2, p3] = port.0.to_be_bytes();
        // OFPIT_APPLY_ACTIONS with one OFPAT_OUTPUT (1.3.5, 7.2.4 and 7.2.5), of which nothing goes to the controller.
        self.commands.frames.extend_from_slice(&[
            0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, p0, p1, p2, p3, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        self
    }

    /// What is done with them, at once and in order: `|a| { a.output(port, 0); }`.
    #[inline]
    pub fn apply(mut self, write: impl FnOnce(&mut ActionWriter<'_>)) -> Self {
        self.has_instructions = true;
        InstructionWriter::new(&mut self.commands.frames).apply_actions(write);
        self
    }

    /// Instructions beside or in place of [`Self::apply`].
    #[inline]
    pub fn instructions(mut self, write: impl FnOnce(&mut InstructionWriter<'_>)) -> Self {
        self.has_instructions = true;
        write(&mut InstructionWriter::new(&mut self.commands.frames));
        self
    }

    /// The higher wins.
    #[inline]
    pub fn priority(mut self, priority: u16) -> Self {
        self.fields.priority = priority;
        self
    }

    /// The table, for switches that have several.
    #[inline]
    pub fn table(mut self, table_id: u8) -> Self {
        self.fields.table_id = table_id;
        self
    }

    /// The app's own mark on the rule; 48 bits of it.
    #[inline]
    pub fn cookie(mut self, cookie: u64) -> Self {
        self.fields.cookie = cookie;
        self
    }

    /// The rule goes after so many seconds without a packet; 0: never.
    #[inline]
    pub fn idle_timeout_s(mut self, seconds: u16) -> Self {
        self.fields.idle_timeout_s = seconds;
        self
    }

    /// The rule goes after so many seconds; 0: never.
    #[inline]
    pub fn hard_timeout_s(mut self, seconds: u16) -> Self {
        self.fields.hard_timeout_s = seconds;
        self
    }

    /// Tell the app when the rule goes.
    #[inline]
    pub fn tell_when_removed(mut self) -> Self {
        self.fields.flags |= SEND_FLOW_REMOVED;
        self
    }

    /// Send the packet that the switch keeps through the new rule.
    #[inline]
    pub fn buffer(mut self, buffer_id: Option<u32>) -> Self {
        self.fields.buffer_id = buffer_id;
        self
    }

    /// Change the actions of this very rule (same match, same priority) in place of adding one.
    pub fn modify(mut self) -> Self {
        self.fields.command = MODIFY_STRICT;
        self
    }

    /// Delete this very rule (same match, same priority) in place of adding one.
    pub fn delete(mut self) -> Self {
        self.fields.command = DELETE_STRICT;
        self
    }

    /// Delete all of the app's own rules within the match, in all tables.
    pub fn delete_within(mut self) -> Self {
        self.fields.command = DELETE;
        self.fields.table_id = 0xff;
        self
    }

    /// For deletes: only rules that send to this port.
    #[inline]
    pub fn out_port(mut self, port: PortNo) -> Self {
        self.fields.out_port = port;
        self
    }

    /// Commands it.
    #[inline]
    pub fn send(self) {
        self.finish(false);
    }

    /// Commands it, and asks for a receipt.
    #[inline]
    pub fn send_with_receipt(self) -> Ticket {
        self.finish(true)
    }

    #[inline]
    fn finish(mut self, wants_receipt: bool) -> Ticket {
        self.is_sent = true;
        let ticket = self.commands.next_ticket();
        let of = (self.datapath, ticket.0, wants_receipt);
        let frames = &mut self.commands.frames;
        let written = write::finish_rule(frames, self.start, self.matching_len, of, &self.fields);
        self.commands.too_long += u64::from(!written);
        ticket
    }
}

/// A packet that is being put together. Nothing happens before one of the `send`s; without an action it is dropped.
#[must_use = "a packet goes nowhere before it is sent"]
pub struct PacketOutBuilder<'c, 'd> {
    datapath: DatapathId,
    buffer_id: Option<u32>,
    in_port: PortNo,
    data: &'d [u8],
    commands: &'c mut Commands,
}

impl<'c> PacketOutBuilder<'c, '_> {
    /// The packet of a packet-in, as it came: from the switch's buffer if it is there, else its bytes.
    #[inline]
    pub fn packet<'e>(self, packet: &PacketIn<'e>) -> PacketOutBuilder<'c, 'e> {
        PacketOutBuilder {
            datapath: self.datapath,
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            data: if packet.buffer_id.is_some() { &[] } else { packet.data },
            commands: self.commands,
        }
    }

    /// A frame of the app's own making.
    #[inline]
    pub fn frame<'e>(self, frame: &'e [u8]) -> PacketOutBuilder<'c, 'e> {
        PacketOutBuilder {
            datapath: self.datapath,
            buffer_id: None,
            in_port: self.in_port,
            data: frame,
            commands: self.commands,
        }
    }

    /// The port by which it is taken to have come in: `FLOOD` and `ALL` leave that one out.
    #[inline]
    pub fn in_port(mut self, port: PortNo) -> Self {
        self.in_port = port;
        self
    }

    /// Out of this port. Called again: out of that one as well.
    #[inline]
    pub fn output(self, port: PortNo) -> Self {
        self.actions(|actions| {
            actions.output(port, 0);
        })
    }

    /// More actions, in order.
    #[inline]
    pub fn actions(self, write: impl FnOnce(&mut ActionWriter<'_>)) -> Self {
        write(&mut ActionWriter::new(&mut self.commands.actions));
        self
    }

    /// Commands it.
    #[inline]
    pub fn send(self) {
        self.finish(false);
    }

    /// Commands it, and asks for a receipt.
    #[inline]
    pub fn send_with_receipt(self) -> Ticket {
        self.finish(true)
    }

    #[inline]
    fn finish(self, wants_receipt: bool) -> Ticket {
        let PacketOutBuilder { datapath, buffer_id, in_port, data, commands } = self;
        let ticket = commands.next_ticket();
        let Commands { frames, actions, too_long, .. } = commands;
        let what = What::PacketOut(PacketOut { buffer_id, in_port, actions, data });
        let written = write::command(frames, &Command { datapath, ticket: ticket.0, wants_receipt, what });
        *too_long += u64::from(!written);
        ticket
    }
}
