//! The commands of a handler, as frames in a reused buffer. After the first calls, a command allocates nothing.
//!
//! The zone sends the frames after the handler returned.

use crate::calls::Calls;
use crate::shared_view::{NotShared, SharedView};
use crate::stream::TICKET_OF_STREAM;
use crate::view_follower::ViewFollower;
use abi::ZoneId;
pub use abi::command::BUNDLE_MAX;
use abi::command::{
    Ask, Command, FlowMod, Log, PacketOut, PortMod, Publish, QueryAnswer, StatsRequest, Subscribe, What,
    write,
};
use abi::event::PacketIn;
use abi::header::HEADER_LEN;
use abi::service::{Form, at_home, home_for};
use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter, write_match};
use flow::{DatapathId, ErrorCode, PortNo};
use std::time::Duration;
use store_contract::{Changes, Op};
use view::{Key, Kind, Object, Snapshot};
use zone::region::WriteRegion;

/// The number that identifies the receipt or the answer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An error: a function does not work.
    Error,
    /// A warning: a function may stop working.
    Warning,
    /// Information.
    Information,
    /// Debugging output for the app's author.
    Debugging,
}

/// The command buffer of a handler. A command that is longer than a frame is left out and counted.
#[derive(Debug, Default)]
pub struct Commands {
    pub(crate) frames: Vec<u8>,
    actions: Vec<u8>,
    last_ticket: u64,
    too_long: u64,
    pub(crate) calls: Calls,
    pub(crate) for_monitor: Vec<Vec<u8>>,
    pub(crate) wake_after: Option<Duration>,
    pub(crate) view: ViewFollower,
    pub(crate) shared: SharedView,
    pub(crate) own_zone: Option<ZoneId>,
    /// Where a service writes its table for other apps.
    pub(crate) region: Option<Box<dyn WriteRegion>>,
}

const NO_SWITCH: DatapathId = DatapathId(0);

/// The longest time until a wake-up: a day.
pub const WAKE_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Commands {
    /// An empty buffer.
    pub fn new() -> Self {
        Commands::default()
    }

    /// The number of this app's zone, which is the owner in the cookies of its rules. It is known from the first event on, in a process
    /// zone with one instance.
    pub fn own_zone(&self) -> Option<ZoneId> {
        self.own_zone
    }

    /// Lets a service of the node write whole frames of commands. Their tickets are its own: it must not mix them with those of other
    /// functions here.
    #[doc(hidden)]
    pub fn write_frames(&mut self) -> &mut Vec<u8> {
        &mut self.frames
    }

    /// Starts a rule for a switch. The default is an add in table 0, with priority 0, for all packets, without timeouts or actions.
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

    /// Sends flow mods that the switch applies all together, or not at all. `write` adds them, in order. No packet sees a part of them.
    ///
    /// [`crate::App::on_receipt`] gets one receipt with this ticket for all of them. If one is refused or fails, none is applied, and the
    /// reason names it. A switch without bundles refuses with OFPBRC_BAD_EXPERIMENTER ([`NO_BUNDLES`]): then send the flow mods alone.
    ///
    /// A flow mod of the app that is sent before the receipt may be applied before the bundle. An app has one bundle under way to a switch.
    /// A bundle has at most [`BUNDLE_MAX`] flow mods. It cannot have a rule of priority 0, release a buffered packet, or change a rule of
    /// another app. A bundle that is empty or too long is left out and counted.
    pub fn bundle(&mut self, datapath: DatapathId, write: impl FnOnce(&mut BundleBuilder<'_>)) -> Ticket {
        let (ticket, start) = (self.next_ticket(), self.frames.len());
        self.frames.extend_from_slice(&[0; HEADER_LEN]);
        write(&mut BundleBuilder { datapath, commands: self });
        let written = write::finish_bundle(&mut self.frames, start, datapath, ticket.0);
        self.too_long += u64::from(!written);
        ticket
    }

    /// Starts a packet-out.
    #[inline]
    pub fn packet_out(&mut self, datapath: DatapathId) -> PacketOutBuilder<'_, 'static> {
        self.actions.clear();
        PacketOutBuilder { datapath, buffer_id: None, in_port: PortNo::CONTROLLER, data: &[], commands: self }
    }

    /// Requests statistics. `multipart` is an `ofp_multipart_type`, `body` the body of this request in OpenFlow 1.3. [`crate::QUEUE_CONFIG`] and
    /// [`crate::ROLE`] request what is no multipart message.
    pub fn request_stats(&mut self, datapath: DatapathId, multipart: u16, body: &[u8]) -> Ticket {
        self.ticketed(datapath, false, What::StatsRequest(StatsRequest { multipart, body }))
    }

    /// Changes a port.
    pub fn change_port(&mut self, datapath: DatapathId, change: PortMod) -> Ticket {
        self.ticketed(datapath, true, What::PortMod(change))
    }

    /// Requests a receipt when the switch has processed all earlier commands.
    pub fn barrier(&mut self, datapath: DatapathId) -> Ticket {
        self.ticketed(datapath, true, What::Barrier)
    }

    /// Sends any command, with a receipt. For commands without their own function here.
    pub fn command(&mut self, datapath: DatapathId, what: What<'_>) -> Ticket {
        self.ticketed(datapath, true, what)
    }

    /// A command with a ticket that the SDK did not give, and with a receipt; for apps that test the kernel.
    #[doc(hidden)]
    pub fn command_as(&mut self, ticket: Ticket, what: What<'_>) {
        self.push(&Command { datapath: NO_SWITCH, ticket: ticket.0, wants_receipt: true, what });
    }

    /// Publishes on a topic. Its name goes from general to specific: `host.moved`.
    pub fn publish(&mut self, topic: &str, payload: &[u8]) {
        self.publish_on(&Publish { topic, retain: false, payload });
    }

    /// Publishes on a topic, and apps that subscribe later get this value at once, until the next one is retained or this app ends. An empty payload removes the
    /// value.
    pub fn publish_retained(&mut self, topic: &str, payload: &[u8]) {
        self.publish_on(&Publish { topic, retain: true, payload });
    }

    fn publish_on(&mut self, publish: &Publish<'_>) {
        // What is published on one topic stays in order: it all goes by the same worker.
        let ticket = at_home(home_for(publish.topic), 0);
        self.push(&Command {
            datapath: NO_SWITCH,
            ticket,
            wants_receipt: false,
            what: What::Publish(*publish),
        });
    }

    /// Calls a service. [`crate::App::on_query_reply`] gets the whole answer with this ticket, or a status with the reason why there is none.
    /// If the kernel refuses the command, [`crate::App::on_receipt`] gets the reason.
    pub fn query(&mut self, service: &str, payload: &[u8]) -> Ticket {
        self.ask(&Ask::query(service, payload))
    }

    /// A call with its own deadline and credit. The deadline of a stream is for its first part.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Ticket {
        let number = self.next_ticket().0;
        let number = if ask.form == Form::Stream { number | TICKET_OF_STREAM } else { number };
        // Calls to one service stay in order: all use the same worker.
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

    /// Follows a stream of a service: a snapshot, then each change. [`crate::App::on_stream`] gets the updates with this ticket.
    /// If the kernel refuses the command, [`crate::App::on_receipt`] gets the reason.
    pub fn follow(&mut self, service: &str, payload: &[u8]) -> Ticket {
        self.ask(&Ask { form: Form::Stream, ..Ask::query(service, payload) })
    }

    /// The present network view, as far as the app follows it ([`crate::Interests::view`]). It costs a few counts, and does not
    /// change while the app holds it.
    pub fn view(&self) -> Snapshot {
        self.view.view().clone()
    }

    /// Whether the view is complete, and its changes arrive. While a service is away, its part of the view is as it was.
    pub fn view_is_current(&self) -> bool {
        self.view.is_current()
    }

    /// The network view in shared memory, as far as the app may read it. It has the same objects as the streams, and costs this app no
    /// memory of its own.
    pub fn shared_view(&self) -> &SharedView {
        &self.shared
    }

    /// An object of [`crate::Interests::shared_view`]: from shared memory, or from the streams where the SDK follows them instead.
    ///
    /// # Errors
    /// [`NotShared`]: neither has it now. The next call may succeed.
    pub fn object(&self, key: Key) -> Result<Option<Object>, NotShared> {
        match self.shared.get(key) {
            Ok(record) => Ok(record.map(|record| record.object)),
            Err(why) if !self.has_stream_of(key.kind()) => Err(why),
            Err(_) => Ok(self.view.view().get(key).map(|record| record.object.clone())),
        }
    }

    /// Whether the streams show all objects of this kind.
    fn has_stream_of(&self, kind: Kind) -> bool {
        self.view.follows(kind) && self.view.is_current()
    }

    /// All objects of a kind of [`crate::Interests::shared_view`], as they were at one moment.
    ///
    /// # Errors
    /// As [`Commands::object`].
    pub fn objects(&self, kind: Kind) -> Result<Vec<Object>, NotShared> {
        match self.shared.records(&[kind]) {
            Ok(records) => Ok(records.into_iter().map(|record| record.object).collect()),
            Err(why) if !self.has_stream_of(kind) => Err(why),
            Err(_) => Ok(self.view.view().records(kind).map(|record| record.object.clone()).collect()),
        }
    }

    /// Writes a record of a service's table into shared memory, or removes it, if the node has made some for this service. Returns
    /// whether the record is there. If not, readers are told, and follow the stream. Call it from the first event on.
    #[doc(hidden)]
    pub fn share(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        match (&mut self.region, value) {
            (Some(region), Some(value)) => region.put(key, value),
            (Some(region), None) => {
                region.remove(key);
                true
            }
            (None, _) => true,
        }
    }

    /// What was shared since the last call belongs together.
    #[doc(hidden)]
    pub fn settle_shared(&mut self) {
        if let Some(region) = &mut self.region {
            region.settle();
        }
    }

    /// Opens the streams of the view whose time has come.
    pub(crate) fn open_view(&mut self, now_ms: u64) {
        let mut view = std::mem::take(&mut self.view);
        view.open_due(now_ms, |service, question| self.follow(service, question).0);
        self.view = view;
    }

    /// Follows these kinds too, from the next tick on.
    pub(crate) fn follow_also(&mut self, kinds: &[Kind]) {
        for ticket in self.view.add(kinds) {
            self.cancel(Ticket(ticket));
        }
    }

    /// Cancels a call or a stream. Nothing more comes for this ticket.
    pub fn cancel(&mut self, query: Ticket) {
        self.calls.cancel(query.0);
        let what = What::QueryCancel;
        self.push(&Command { datapath: NO_SWITCH, ticket: query.0, wants_receipt: false, what });
    }

    /// Answers a call, in one piece (`more` false) or in parts of any length. Data beyond the caller's credit is buffered until it grants more.
    /// `status` 0 means success; the service defines other numbers. If the call is over or does not exist, [`crate::App::on_receipt`]
    /// reports the answer as refused.
    pub fn answer(&mut self, query: Ticket, status: u16, more: bool, payload: &[u8]) {
        let Commands { calls, frames, too_long, .. } = self;
        let written = calls.answer(frames, query.0, &QueryAnswer { status, more, payload });
        *too_long += u64::from(!written);
    }

    /// Requests the value of a key from the store. As for all store calls, [`crate::App::on_query_reply`] gets the answer with
    /// this ticket and a status of [`mod@crate::store::status`].
    pub fn store_get(&mut self, key: &str) -> Ticket {
        self.ask_store(Op::Get, key, &[])
    }

    /// Stores a value under a key. The value is on disk when the answer reports success. The app becomes the owner of the key.
    pub fn store_put(&mut self, key: &str, value: &[u8]) -> Ticket {
        self.ask_store(Op::Put, key, value)
    }

    /// Deletes a key from the store.
    pub fn store_delete(&mut self, key: &str) -> Ticket {
        self.ask_store(Op::Delete, key, &[])
    }

    /// Makes several changes at once: all of them or none. It is one call to the store, and not one for each change.
    pub fn store_change_all(&mut self, changes: &Changes) -> Ticket {
        self.ask_store(Op::ChangeAll, "", changes.as_bytes())
    }

    /// Lists the keys with this prefix that come after `after`, in order. An empty `after` lists from the first key. The answer comes in
    /// parts, which [`crate::store::keys`] reads. If the status is MORE_KEYS, call again with the last key as `after`.
    pub fn store_list(&mut self, prefix: &str, after: &str) -> Ticket {
        self.ask_store(Op::List, prefix, after.as_bytes())
    }

    fn ask_store(&mut self, op: Op, key: &str, value: &[u8]) -> Ticket {
        self.query(store_contract::SERVICE, &store_contract::Ask { op, key, value }.to_bytes())
    }

    /// Requests a wake-up after this time: [`crate::App::on_wake`]. An app has one wake-up at a time. A later request replaces an
    /// earlier one, so request the time of your next deadline. A longer time than [`WAKE_AFTER_MAX`] is cut to it. Only a process zone
    /// has wake-ups. An app that also runs trusted uses [`crate::App::on_tick`].
    pub fn wake_after(&mut self, after: Duration) {
        self.wake_after = Some(after.min(WAKE_AFTER_MAX));
    }

    /// Writes a line to the node's log, with the app's name.
    pub fn log(&mut self, level: Level, text: &str) {
        self.plain(What::Log(Log { level: level as u8, text }));
    }

    /// Sends a message to the monitor. The monitor reads only services of the node.
    #[doc(hidden)]
    pub fn tell_monitor(&mut self, message: &impl serde::Serialize) {
        // Plain data can always be written as JSON.
        self.for_monitor.extend(serde_json::to_vec(message));
    }

    /// The messages to the monitor so far, as JSON; for tests of services.
    #[doc(hidden)]
    pub fn told_monitor(&self) -> Vec<String> {
        self.for_monitor.iter().map(|told| String::from_utf8_lossy(told).into_owned()).collect()
    }

    /// The command frames so far, one after the other; for code that implements a zone.
    pub fn frames(&self) -> &[u8] {
        &self.frames
    }

    /// How many commands were left out because they were too long.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    pub(crate) fn subscribe(&mut self, interests: &crate::app::Interests) {
        let mut packets = Vec::new();
        write_match(&interests.subscribed(), &mut packets);
        self.plain(What::Subscribe(Subscribe { events: interests.subscribed_events(), packets: &packets }));
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

/// The error in the receipt of a bundle that a switch without bundles refuses: OFPBRC_BAD_EXPERIMENTER.
pub const NO_BUNDLES: ErrorCode = ErrorCode { kind: 1, code: 3 };

/// The flow mods of a bundle under construction.
pub struct BundleBuilder<'c> {
    datapath: DatapathId,
    commands: &'c mut Commands,
}

impl BundleBuilder<'_> {
    /// Starts a flow mod for the bundle's switch, as [`Commands::rule`] does. It has no receipt of its own.
    pub fn rule(&mut self) -> FlowBuilder<'_> {
        self.commands.rule(self.datapath)
    }
}

/// Enough for most rules.
const USUAL_RULE_LEN: usize = 192;

/// A rule under construction, in the command buffer. It has no effect until one of the `send` functions is called.
#[must_use = "the rule has no effect until it is sent"]
pub struct FlowBuilder<'c> {
    datapath: DatapathId,
    fields: FlowMod<'static>,
    /// Its offset in the frames. There are its head, which is written last, its match, and its instructions.
    start: usize,
    matching_len: usize,
    has_instructions: bool,
    is_sent: bool,
    commands: &'c mut Commands,
}

/// A rule that was not sent is removed from the buffer.
impl Drop for FlowBuilder<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_sent {
            self.commands.frames.truncate(self.start);
        }
    }
}

/// The used values of `ofp_flow_mod_command` and `ofp_flow_mod_flags`.
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;
const SEND_FLOW_REMOVED: u16 = 1;

impl FlowBuilder<'_> {
    /// Adds to the match: `|m| { m.field(Field::EthDst, mac); }`.
    #[inline]
    pub fn matching(mut self, write: impl FnOnce(&mut MatchWriter<'_>)) -> Self {
        let before = self.commands.frames.len();
        write(&mut MatchWriter::new(&mut self.commands.frames));
        self.take_matching(before);
        self
    }

    /// Moves the bytes that were appended after this length into the match, before the instructions.
    ///
    /// Always inlined: otherwise an app with two rules keeps its builder in memory, which costs each rule 85 instructions.
    #[inline(always)]
    fn take_matching(&mut self, before: usize) {
        let added = self.commands.frames.len() - before;
        if self.has_instructions {
            let behind = self.start + write::RULE_HEAD_LEN + self.matching_len;
            self.commands.frames[behind..].rotate_right(added);
        }
        self.matching_len += added;
    }

    /// Adds canonical bytes to the match.
    #[inline]
    pub fn matching_bytes(mut self, bytes: &[u8]) -> Self {
        let before = self.commands.frames.len();
        self.commands.frames.extend_from_slice(bytes);
        self.take_matching(before);
        self
    }

    /// Adds canonical bytes to the instructions.
    #[inline]
    pub fn instruction_bytes(mut self, bytes: &[u8]) -> Self {
        self.has_instructions = true;
        self.commands.frames.extend_from_slice(bytes);
        self
    }

    /// Sends the packets out of this port, as [`Self::apply`] with one output does.
    #[inline]
    pub fn output(mut self, port: PortNo) -> Self {
        self.has_instructions = true;
        let [p0, p1, p2, p3] = port.0.to_be_bytes();
        // OFPIT_APPLY_ACTIONS with one OFPAT_OUTPUT and max_len 0 (1.3.5, 7.2.4 and 7.2.5).
        self.commands.frames.extend_from_slice(&[
            0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, p0, p1, p2, p3, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        self
    }

    /// Applies these actions in order: `|a| { a.output(port, 0); }`.
    #[inline]
    pub fn apply(mut self, write: impl FnOnce(&mut ActionWriter<'_>)) -> Self {
        self.has_instructions = true;
        InstructionWriter::new(&mut self.commands.frames).apply_actions(write);
        self
    }

    /// Adds other instructions than [`Self::apply`].
    #[inline]
    pub fn instructions(mut self, write: impl FnOnce(&mut InstructionWriter<'_>)) -> Self {
        self.has_instructions = true;
        write(&mut InstructionWriter::new(&mut self.commands.frames));
        self
    }

    /// The priority; the highest matching rule applies.
    #[inline]
    pub fn priority(mut self, priority: u16) -> Self {
        self.fields.priority = priority;
        self
    }

    /// The table id, for switches with several tables.
    #[inline]
    pub fn table(mut self, table_id: u8) -> Self {
        self.fields.table_id = table_id;
        self
    }

    /// The app's part of the cookie, 48 bits.
    #[inline]
    pub fn cookie(mut self, cookie: u64) -> Self {
        self.fields.cookie = cookie;
        self
    }

    /// The idle timeout in seconds; 0: none.
    #[inline]
    pub fn idle_timeout_s(mut self, seconds: u16) -> Self {
        self.fields.idle_timeout_s = seconds;
        self
    }

    /// The hard timeout in seconds; 0: none.
    #[inline]
    pub fn hard_timeout_s(mut self, seconds: u16) -> Self {
        self.fields.hard_timeout_s = seconds;
        self
    }

    /// Requests an event when the rule is removed.
    #[inline]
    pub fn tell_when_removed(mut self) -> Self {
        self.fields.flags |= SEND_FLOW_REMOVED;
        self
    }

    /// Sends the buffered packet of the switch through the new rule.
    #[inline]
    pub fn buffer(mut self, buffer_id: Option<u32>) -> Self {
        self.fields.buffer_id = buffer_id;
        self
    }

    /// Modifies the rule with the same match and priority, instead of adding one.
    pub fn modify(mut self) -> Self {
        self.fields.command = MODIFY_STRICT;
        self
    }

    /// Deletes the rule with the same match and priority, instead of adding one.
    pub fn delete(mut self) -> Self {
        self.fields.command = DELETE_STRICT;
        self
    }

    /// Deletes all rules of this app within the match, in all tables.
    pub fn delete_within(mut self) -> Self {
        self.fields.command = DELETE;
        self.fields.table_id = 0xff;
        self
    }

    /// For deletes: only rules with this output port.
    #[inline]
    pub fn out_port(mut self, port: PortNo) -> Self {
        self.fields.out_port = port;
        self
    }

    /// For deletes: only rules of the app whose cookie has this value in the bits of the mask.
    #[inline]
    pub fn with_cookie(mut self, cookie: u64, mask: u64) -> Self {
        (self.fields.cookie, self.fields.cookie_mask) = (cookie, mask);
        self
    }

    /// Sends the command.
    #[inline]
    pub fn send(self) {
        self.finish(false);
    }

    /// Sends the command, and requests a receipt.
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

/// A packet-out under construction. It has no effect until one of the `send` functions is called. Without an action, the packet is dropped.
#[must_use = "the packet has no effect until it is sent"]
pub struct PacketOutBuilder<'c, 'd> {
    datapath: DatapathId,
    buffer_id: Option<u32>,
    in_port: PortNo,
    data: &'d [u8],
    commands: &'c mut Commands,
}

impl<'c> PacketOutBuilder<'c, '_> {
    /// The unchanged packet of a packet-in: from the switch's buffer if it has a buffer id, otherwise its bytes.
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

    /// A frame that the app wrote.
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

    /// The input port. `FLOOD` and `ALL` do not send to this port.
    #[inline]
    pub fn in_port(mut self, port: PortNo) -> Self {
        self.in_port = port;
        self
    }

    /// Sends it out of this port. Call it again for further ports.
    #[inline]
    pub fn output(self, port: PortNo) -> Self {
        self.actions(|actions| {
            actions.output(port, 0);
        })
    }

    /// Adds actions, in order.
    #[inline]
    pub fn actions(self, write: impl FnOnce(&mut ActionWriter<'_>)) -> Self {
        write(&mut ActionWriter::new(&mut self.commands.actions));
        self
    }

    /// Sends the command.
    #[inline]
    pub fn send(self) {
        self.finish(false);
    }

    /// Sends the command, and requests a receipt.
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
