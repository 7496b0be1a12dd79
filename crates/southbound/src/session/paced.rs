//! Commands that wait for a slow switch, and receipts that wait for its data plane.
//!
//! ```text
//!   send ──may go──> the switch             barrier reply ──later──> programmed
//!     └──else──> Pacer ──on_time──> the switch
//! ```
//!
//! Packet-outs without a buffer and statistics wait only behind a barrier of their own zone, and role requests never.
//! [`crate::pacer`] decides what goes when. A command gets its transaction id when it goes, so that barriers and errors find it in the
//! order on the wire.

use super::Session;
use super::held::{Held, HeldKind, Paced};
use crate::bundles::{End, Outcome, Support};
use crate::counters::Counters;
use crate::fault::Refused;
use crate::pacer::{Concern, Pacer, RuleChange, SharedChange, Waiting};
use crate::receipts::Tag;
use crate::reply_watch::{Traffic, Watch};
use crate::requests::Asked;
use crate::switch_pace::{PaceSnapshot, SwitchPace};
use crate::translate::{command, statistics};
use crate::turn::{SessionOutput, SouthboundEvent, Turn};
use abi::command::What;
use abi::{Command, ZoneId};
use openflow::Version;
use std::sync::Arc;

/// What a bundle adds to the bytes of each of its flow mods: the header of the message that holds it (extension 230).
const BUNDLE_ADD_BYTES: usize = 24;

/// The requests to open and to close a bundle.
const BUNDLE_CONTROL_BYTES: usize = 2 * 24;

/// Where in a message its transaction id is.
const XID: std::ops::Range<usize> = 4..8;

/// What a command uses of the rate, and what it changes. `None`: it waits only behind a barrier.
fn waits(command: &Command<'_>, cookie: u64, version: Version) -> Option<(u32, Concern, HeldKind)> {
    Some(match &command.what {
        What::FlowMod(it) => {
            (1, Concern::Rules(vec![RuleChange::of(it, cookie, version)]), HeldKind::FlowMod)
        }
        What::GroupMod(it) => (1, Concern::Shared(SharedChange::of_group(it)), HeldKind::Other),
        What::MeterMod(it) => (1, Concern::Shared(SharedChange::of_meter(it)), HeldKind::Other),
        What::PortMod(_) => (0, Concern::Nothing, HeldKind::Other),
        What::PacketOut(it) if it.buffer_id.is_some() => (0, Concern::Nothing, HeldKind::PacketOut),
        What::Barrier => (0, Concern::Nothing, HeldKind::Barrier),
        _ => return None,
    })
}

/// The same behind a barrier. `None`: it is no message to a switch.
fn waits_behind_barrier(command: &Command<'_>) -> Option<(u32, Concern, HeldKind)> {
    let kind = match &command.what {
        What::PacketOut(_) => HeldKind::PacketOut,
        What::StatsRequest(request) => HeldKind::Statistics(request.multipart),
        _ => return None,
    };
    Some((0, Concern::Nothing, kind))
}

impl Session {
    /// Treats the switch like this from now on. If no pace is set any more, what waits goes at once.
    pub fn set_pace(&mut self, to: Option<Arc<SwitchPace>>, now_ms: u64) {
        let rate = to.as_ref().and_then(|to| to.rate);
        let order = to.as_ref().map(|to| to.order).unwrap_or_default();
        let (mut pacer, watch) = self.paced.take().map_or((None, None), |paced| (paced.pacer, paced.watch));
        match (&mut pacer, rate) {
            (Some(pacer), Some(rate)) => pacer.change(rate, order, now_ms),
            (Some(pacer), None) => pacer.end_rate(now_ms),
            (None, Some(rate)) => pacer = Some(Pacer::new(rate, order, now_ms)),
            (None, None) => {}
        }
        let expected = to.as_ref().and_then(|to| to.replies);
        let goes_on = watch.filter(|watch| Some(watch.expected()) == expected.as_ref());
        let watch = goes_on.or_else(|| Some(Watch::new(expected?, self.round_trip_ms)));
        self.put_paced(Paced { of: to, pacer, watch });
    }

    /// A barrier was sent, with this transaction id.
    #[inline]
    pub(super) fn barrier_sent(&mut self, now_ms: u64) {
        self.receipts.barrier_sent(now_ms);
        if self.paced.is_some() {
            self.watch_barrier(now_ms);
        }
    }

    #[cold]
    fn watch_barrier(&mut self, now_ms: u64) {
        let (at, xid) = (self.traffic(), self.receipts.last_xid());
        let is_quiet = self.requests.waiting() == 0 && self.bundles.are_over();
        if let Some(watch) = self.paced.as_mut().and_then(|paced| paced.watch.as_mut()) {
            watch.on_barrier(xid, at, is_quiet, now_ms);
        }
    }

    /// A barrier reply came: tells the node if the switch has left its profile.
    pub(super) fn watch_reply(&mut self, xid: u32, turn: &mut Turn<'_>) {
        let (at, datapath) = (self.traffic(), self.identity.datapath);
        let Some(Paced { of: Some(of), watch: Some(watch), .. }) = self.paced.as_deref_mut() else { return };
        if let Some(departure) = watch.on_reply(xid, at, turn.now_ms) {
            let left = SouthboundEvent::LeftProfile { datapath, profile: &of.profile, departure: &departure };
            (turn.sink)(SessionOutput::Out(left));
        }
    }

    fn traffic(&self) -> Traffic {
        let Counters { messages_out, flow_mods, messages_in, .. } = self.counters;
        Traffic { messages_out, flow_mods, messages_in }
    }

    /// How the switch is treated by a profile.
    pub fn pace(&self) -> Option<&Arc<SwitchPace>> {
        self.paced.as_ref()?.of.as_ref()
    }

    /// How much later than the switch says a rule is in the data plane.
    pub(super) fn programmed_after_ms(&self) -> u64 {
        self.pace().map_or(0, |of| of.programmed_after_ms)
    }

    /// The same for the operator, with what waits.
    pub fn pace_snapshot(&self) -> Option<PaceSnapshot> {
        let of = self.pace()?;
        let pacer = self.pacer();
        Some(PaceSnapshot {
            profile: of.profile.clone(),
            waiting: pacer.map_or(0, Pacer::waiting),
            wait_ms: pacer.map_or(0, Pacer::wait_ms),
        })
    }

    /// Whether commands wait here that the switch has not got.
    pub fn holds_commands(&self) -> bool {
        self.pacer().is_some_and(|pacer| pacer.waiting() > 0)
    }

    /// When [`Self::on_time`] may have something to do. `None`: nothing waits.
    pub fn due_ms(&self) -> Option<u64> {
        let command = self.pacer().and_then(Pacer::due_ms);
        command.into_iter().chain(self.receipts.due_ms()).min()
    }

    /// Whether a pace is set, so that no command may pass without [`Self::send_paced`].
    pub(super) fn has_pacer(&self) -> bool {
        self.pacer().is_some()
    }

    fn pacer(&self) -> Option<&Pacer<Held>> {
        self.paced.as_ref()?.pacer.as_ref()
    }

    /// Keeps it, unless nothing is left of it.
    fn put_paced(&mut self, mut paced: Paced) {
        let has_rate = paced.of.as_ref().is_some_and(|of| of.rate.is_some());
        if !has_rate && paced.pacer.as_ref().is_some_and(|pacer| pacer.waiting() == 0) {
            paced.pacer = None;
        }
        if paced.pacer.is_some() {
            // A copy of a prepared rule would pass the queue.
            self.template = None;
        }
        self.paced = (paced.of.is_some() || paced.pacer.is_some()).then(|| Box::new(paced));
    }

    /// Sends a command, or lets it wait.
    #[cold]
    #[inline(never)]
    pub(super) fn send_paced(
        &mut self,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        let version = self.version;
        let Some(pacer) = self.paced.as_mut().and_then(|paced| paced.pacer.as_mut()) else {
            return self.send_now(command, cookie, tag, waiting, turn);
        };
        let behind_barrier = || pacer.has_barrier(tag.zone).then(|| waits_behind_barrier(command)).flatten();
        let Some((cost, concern, kind)) = waits(command, cookie, version).or_else(behind_barrier) else {
            return self.send_now(command, cookie, tag, waiting, turn);
        };
        if pacer.may_go_now(tag.zone, cost, &concern, turn.now_ms) {
            self.send_now(command, cookie, tag, waiting, turn)?;
            self.spend(cost);
            return Ok(());
        }
        let mut message = Vec::new();
        let written = command::append(version, 0, &command.what, cookie, &mut message);
        let held = written.and_then(|()| {
            let what = Held { messages: vec![message], tag, wants_receipt: command.wants_receipt, kind };
            self.hold(what, cost, concern, turn.now_ms)
        });
        self.counters.refused += u64::from(held.is_err());
        held
    }

    /// Lets a bundle wait, if it must. `false`: it may go now, and [`Self::spend`] follows.
    pub(super) fn hold_bundle(
        &mut self,
        flow_mods: &[Command<'_>],
        tag: Tag,
        wants_receipt: bool,
        now_ms: u64,
    ) -> Result<bool, Refused> {
        let version = self.version;
        let Some(pacer) = self.paced.as_mut().and_then(|paced| paced.pacer.as_mut()) else {
            return Ok(false);
        };
        let change = |command: &Command<'_>| match &command.what {
            What::FlowMod(it) => Ok(RuleChange::of(it, it.cookie, version)),
            _ => Err(Refused::NotForSwitches),
        };
        let concern = Concern::Rules(flow_mods.iter().map(change).collect::<Result<_, _>>()?);
        // There are at most as many as a bundle of the abi has.
        let cost = flow_mods.len() as u32;
        if pacer.may_go_now(tag.zone, cost, &concern, now_ms) {
            return Ok(false);
        }
        let mut messages = Vec::with_capacity(flow_mods.len());
        for command in flow_mods {
            let What::FlowMod(it) = command.what else { return Err(Refused::NotForSwitches) };
            let mut message = Vec::new();
            command::append(version, 0, &command.what, it.cookie, &mut message)?;
            messages.push(message);
        }
        self.hold(Held { messages, tag, wants_receipt, kind: HeldKind::Bundle }, cost, concern, now_ms)?;
        self.bundles.hold(now_ms);
        Ok(true)
    }

    fn hold(&mut self, what: Held, cost: u32, concern: Concern, now_ms: u64) -> Result<(), Refused> {
        let Some(pacer) = self.paced.as_mut().and_then(|paced| paced.pacer.as_mut()) else { return Ok(()) };
        let own: usize = what.messages.iter().map(Vec::len).sum();
        let of_bundle = BUNDLE_CONTROL_BYTES + what.messages.len() * BUNDLE_ADD_BYTES;
        let bytes = own + if what.kind == HeldKind::Bundle { of_bundle } else { 0 };
        let zone = what.tag.zone;
        pacer.check_room(zone, bytes).map_err(Refused::PacedQueueFull)?;
        let is_barrier = what.kind == HeldKind::Barrier;
        pacer.hold(Waiting { what, zone, cost, concern, is_barrier, bytes }, now_ms);
        Ok(())
    }

    /// A command went without waiting.
    pub(super) fn spend(&mut self, cost: u32) {
        if let Some(pacer) = self.paced.as_mut().and_then(|paced| paced.pacer.as_mut()) {
            pacer.spend(cost);
        }
    }

    /// Whether a bundle of this zone waits.
    pub(super) fn holds_bundle_of(&self, zone: ZoneId) -> bool {
        let mut waiting = self.pacer().into_iter().flat_map(Pacer::iter);
        waiting.any(|it| it.what.kind == HeldKind::Bundle && it.zone == zone)
    }

    /// The time is right for some of what waits: sends it, and reports what the data plane has by now. The switch has not accepted
    /// `waiting` bytes yet.
    pub fn on_time(&mut self, waiting: usize, turn: &mut Turn<'_>) {
        let mut programmed = Vec::new();
        self.receipts.on_due(turn.now_ms, |tag| programmed.push(tag));
        programmed.into_iter().for_each(|tag| self.tell_programmed(tag, turn));
        // It is put back below.
        let Some(mut paced) = self.paced.take() else { return };
        if let Some(pacer) = &mut paced.pacer {
            let before = turn.out.len();
            loop {
                let used = waiting + turn.out.len() - before;
                let Some(it) = pacer.next(turn.now_ms, |it| self.may_go(it, used)) else {
                    break;
                };
                self.send_held(it.what, turn);
            }
        }
        self.put_paced(*paced);
    }

    /// Whether something else than the pace holds a command.
    fn may_go(&self, it: &Waiting<Held>, used: usize) -> bool {
        let most =
            if it.zone == ZoneId::KERNEL { self.limits.max_output_bytes } else { self.for_apps_bytes() };
        let Held { wants_receipt, kind, .. } = it.what;
        let has_room = match kind {
            HeldKind::Bundle => self.bundles.may_send(it.zone),
            HeldKind::Statistics(_) => self.requests.has_room(it.zone),
            _ => !wants_receipt || self.receipts.has_room(it.zone),
        };
        used + it.bytes <= most && has_room
    }

    fn send_held(&mut self, held: Held, turn: &mut Turn<'_>) {
        let Held { messages, tag, wants_receipt, kind } = held;
        if kind == HeldKind::Bundle {
            return self.send_held_bundle(&messages, tag, wants_receipt, turn);
        }
        for message in messages {
            let xid = self.receipts.next_xid();
            append_with_xid(&message, xid, turn.out);
            self.counted_out(message.len());
            if let HeldKind::Statistics(multipart) = kind {
                self.receipts.sent(tag, false);
                let on_the_wire = statistics::on_the_wire(self.version, multipart);
                self.requests.sent(xid, Asked { tag, wants_receipt, multipart }, on_the_wire, turn.now_ms);
            } else {
                self.receipts.sent(tag, wants_receipt);
            }
        }
        match kind {
            HeldKind::Barrier if self.receipts.wants_barrier() => self.receipts.barrier_sent(turn.now_ms),
            HeldKind::FlowMod => self.counters.flow_mods += 1,
            HeldKind::PacketOut => self.counters.packet_outs += 1,
            HeldKind::Barrier | HeldKind::Statistics(_) | HeldKind::Other | HeldKind::Bundle => {}
        }
    }

    fn send_held_bundle(&mut self, messages: &[Vec<u8>], tag: Tag, wants_receipt: bool, turn: &mut Turn<'_>) {
        if let Support::None(why) = self.bundles.support() {
            // It has said so to another bundle, while this one waited.
            let end = End::NoBundles(why.clone());
            // There are at most as many as a bundle of the abi has.
            let count = messages.len() as u32;
            self.bundles.held_went();
            let outcome = Outcome { tag, wants_receipt, count, end, may_come: false };
            return self.end_bundle(&outcome, None, turn);
        }
        let write = |number: usize, xid: u32, out: &mut Vec<u8>| {
            append_with_xid(&messages[number], xid, out);
            Ok(())
        };
        // `may_go` has found the room, and nothing is left to translate.
        let begun = self.append_bundle(messages.len(), write, tag, wants_receipt, 0, turn);
        debug_assert_eq!(begun, Ok(()));
        self.bundles.held_went();
    }

    /// The rules that flow mods may add and that wait, with their zones.
    pub fn waiting_rules(&self) -> impl Iterator<Item = (ZoneId, &RuleChange)> {
        let waiting = self.pacer().into_iter().flat_map(Pacer::iter);
        let rules = waiting.flat_map(|it| it.concern.rules().iter().map(|rule| (it.zone, rule)));
        rules.filter(|(_, rule)| rule.may_add_to().is_some())
    }

    /// The session has ended: the commands that wait and want a receipt.
    pub(super) fn end_paced(&mut self) -> Vec<Tag> {
        let pacer = self.paced.take().and_then(|paced| paced.pacer);
        let all = pacer.map(|mut pacer| pacer.take_all()).unwrap_or_default();
        all.into_iter().filter(|it| it.what.wants_receipt).map(|it| it.what.tag).collect()
    }
}

/// Appends a message, and enters its transaction id.
fn append_with_xid(message: &[u8], xid: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(message);
    if let Some(place) = out[start..].get_mut(XID) {
        place.copy_from_slice(&xid.to_be_bytes());
    }
}
