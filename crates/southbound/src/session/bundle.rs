//! Bundles of flow mods: what is written to the switch for them, and what their apps are told.
//!
//! It never decides whether a flow mod is allowed. [`crate::bundles`] decides the next step.

use super::Session;
use crate::bundles::{Begun, End, Outcome, Step, Support};
use crate::fault::{NO_BUNDLES, Refused, no_bundles};
use crate::receipts::Tag;
use crate::translate::command;
use crate::translate::error::{canonical_code, describe};
use crate::turn::{SessionOutput, SouthboundEvent, Turn};
use abi::command::What;
use abi::event::write;
use abi::{Command, Receipt};
use flow::{BadInput, ErrorCode};
use openflow::message::{
    BUNDLE_ATOMIC, BUNDLE_CLOSE_REQUEST, BUNDLE_COMMIT_REQUEST, BUNDLE_DISCARD_REQUEST, BUNDLE_OPEN_REQUEST,
    BUNDLE_ORDERED, BundleControl, ErrorMessage, ONF_BUNDLE_CONTROL, ONF_EXPERIMENTER,
};
use openflow::{Body, HEADER_LEN, Message, Version};

/// Flow mods may depend on the order in which the app gave them.
const FLAGS: u16 = BUNDLE_ATOMIC | BUNDLE_ORDERED;

const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };

impl Session {
    /// Appends flow mods that the switch applies all together, or not at all. It has not accepted `waiting` bytes yet.
    /// The commands are flow mods with the cookies that they get.
    ///
    /// # Errors
    /// Why nothing is sent. Then nothing was appended, and the session continues.
    pub fn send_bundle(
        &mut self,
        flow_mods: &[Command<'_>],
        tag: Tag,
        wants_receipt: bool,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        self.check_bundle(tag, turn.now_ms)?;
        let before = turn.out.len();
        let begun = self.begin_bundle(flow_mods, tag, wants_receipt, waiting, turn);
        if begun.is_err() {
            turn.out.truncate(before);
            self.counters.refused += 1;
        }
        begun
    }

    /// Whether a bundle of this zone may begin now. A refusal is counted.
    ///
    /// # Errors
    /// Why not: the switch has no bundles, as many are under way as may be, or bundles have been under way for too long.
    pub fn check_bundle(&mut self, tag: Tag, now_ms: u64) -> Result<(), Refused> {
        let may_begin = self.may_begin_bundle(tag, now_ms);
        self.counters.refused += u64::from(may_begin.is_err());
        may_begin
    }

    fn may_begin_bundle(&self, tag: Tag, now_ms: u64) -> Result<(), Refused> {
        if self.version != Version::V1_3 {
            return Err(Refused::NoBundles(format!("OpenFlow {} has none", self.version)));
        }
        if let Support::None(why) = self.bundles.support() {
            return Err(Refused::NoBundles(why.clone()));
        }
        // Its receipt may wait for the data plane, beside those of commands.
        if self.programmed_after_ms() > 0 && !self.receipts.has_room(tag.zone) {
            return Err(Refused::TooManyOutstanding(self.receipts.outstanding()));
        }
        let has_room = self.bundles.has_room(tag.zone, now_ms) && !self.holds_bundle_of(tag.zone);
        if has_room { Ok(()) } else { Err(Refused::TooManyBundles) }
    }

    /// Appends a bundle, or lets it wait if its switch is paced.
    fn begin_bundle(
        &mut self,
        flow_mods: &[Command<'_>],
        tag: Tag,
        wants_receipt: bool,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        if self.hold_bundle(flow_mods, tag, wants_receipt, turn.now_ms)? {
            return Ok(());
        }
        let version = self.version;
        let write = |number: usize, xid: u32, out: &mut Vec<u8>| {
            let what = &flow_mods[number].what;
            let What::FlowMod(it) = what else { return Err(Refused::NotForSwitches) };
            command::append(version, xid, what, it.cookie, out)
        };
        self.append_bundle(flow_mods.len(), write, tag, wants_receipt, waiting, turn)?;
        // There are at most as many as a bundle of the abi has.
        self.spend(flow_mods.len() as u32);
        Ok(())
    }

    /// Appends a bundle of this many flow mods. `write` appends one with a transaction id.
    pub(super) fn append_bundle(
        &mut self,
        count: usize,
        write: impl Fn(usize, u32, &mut Vec<u8>) -> Result<(), Refused>,
        tag: Tag,
        wants_receipt: bool,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        let (id, first_xid) = (self.bundles.next_id(), self.receipts.next_xid());
        let mut others = Vec::new();
        for number in 0..count {
            let xid = self.receipts.next_xid();
            openflow::write::bundle_add(xid, id, FLAGS, &mut others, |out| write(number, xid, out))?;
        }
        let xid = self.receipts.next_xid();
        openflow::write::bundle_control(xid, id, BUNDLE_CLOSE_REQUEST, FLAGS, &mut others);
        let before = turn.out.len();
        openflow::write::bundle_control(first_xid, id, BUNDLE_OPEN_REQUEST, FLAGS, turn.out);
        if waiting + turn.out.len() - before + others.len() > self.for_apps_bytes() {
            return Err(Refused::SlowReader);
        }
        self.counted_out(turn.out.len() - before);
        // There are at most as many as a bundle of the abi has.
        let count = count as u32;
        let begun = Begun { id, tag, wants_receipt, first_xid, count };
        let others = self.bundles.begin(begun, others, turn.now_ms);
        self.counters.flow_mods += u64::from(count);
        self.append_written(&others, turn);
        Ok(())
    }

    /// Appends whole messages, and counts them.
    fn append_written(&mut self, messages: &[u8], turn: &mut Turn<'_>) {
        // They were written here: their lengths are right.
        let _ = openflow::stream::cut(messages, |message| {
            self.counted_out(message.len());
            true
        });
        turn.out.extend_from_slice(messages);
    }

    /// A message of an experimenter. Those about bundles are for this session, and the others for apps.
    pub(super) fn on_experimenter(&mut self, message: &[u8], turn: &mut Turn<'_>) -> Result<(), BadInput> {
        let [a, b, c, d] = ONF_EXPERIMENTER.to_be_bytes();
        let [e, f, g, h] = ONF_BUNDLE_CONTROL.to_be_bytes();
        let is_of_bundle =
            message.get(HEADER_LEN..).is_some_and(|it| it.starts_with(&[a, b, c, d, e, f, g, h]));
        if self.version == Version::V1_3
            && is_of_bundle
            && let Body::BundleControl(reply) = Message::decode(message)?.body
        {
            self.on_bundle_reply(&reply, turn);
            return Ok(());
        }
        let body = message.get(HEADER_LEN..).unwrap_or_default();
        let word = |at: usize| Some(u32::from_be_bytes(*body.get(at..)?.first_chunk()?));
        let exp_type = match word(4) {
            // A vendor message of 1.0 has what its vendor likes behind the number.
            None if self.version == Version::V1_0 => Some(0),
            number => number,
        };
        let (Some(experimenter), Some(exp_type)) = (word(0), exp_type) else {
            // Too short for what the specification says, and of no consequence.
            self.counters.unasked += 1;
            return Ok(());
        };
        let (datapath, sequence) = (self.identity.datapath, self.next_sequence());
        let data = body.get(8..).unwrap_or_default();
        let event = abi::event::Experimenter { datapath, experimenter, exp_type, data };
        turn.event(|frame| write::experimenter(frame, sequence, &event));
        Ok(())
    }

    fn on_bundle_reply(&mut self, reply: &BundleControl, turn: &mut Turn<'_>) {
        match self.bundles.on_reply(reply) {
            Some(step) => self.take_bundle_step(step, turn),
            None => self.counters.unasked += 1,
        }
    }

    /// The switch's error, if it is about a bundle. Returns whether it is.
    pub(super) fn on_bundle_error(&mut self, xid: u32, error: &ErrorMessage, turn: &mut Turn<'_>) -> bool {
        let Some(step) = self.bundles.on_error(xid, error) else { return false };
        self.take_bundle_step(step, turn);
        true
    }

    fn take_bundle_step(&mut self, step: Step, turn: &mut Turn<'_>) {
        match step {
            Step::Nothing => {}
            Step::Send(messages) => self.append_written(&messages, turn),
            Step::Commit(id) => {
                let xid = self.request_of_bundle(id, BUNDLE_COMMIT_REQUEST, turn);
                self.bundles.committed(id, xid);
            }
            Step::Over(outcome, to_discard) => self.end_bundle(&outcome, to_discard, turn),
            Step::Late => self.tell_over(turn),
        }
    }

    fn request_of_bundle(&mut self, id: u32, control: u16, turn: &mut Turn<'_>) -> u32 {
        let (before, xid) = (turn.out.len(), self.receipts.next_xid());
        openflow::write::bundle_control(xid, id, control, FLAGS, turn.out);
        self.counted_out(turn.out.len() - before);
        xid
    }

    pub(super) fn end_bundle(&mut self, outcome: &Outcome, to_discard: Option<u32>, turn: &mut Turn<'_>) {
        if let Some(id) = to_discard {
            self.request_of_bundle(id, BUNDLE_DISCARD_REQUEST, turn);
        }
        self.tell_outcome(outcome, turn);
        if !outcome.may_come {
            self.tell_over(turn);
        }
    }

    /// Tells the kernel that the switch applies nothing of a bundle any more.
    fn tell_over(&self, turn: &mut Turn<'_>) {
        let datapath = self.identity.datapath;
        (turn.sink)(SessionOutput::Out(SouthboundEvent::BundleOver { datapath }));
    }

    /// Tells the app how its bundle ended: by its receipt, or else by an event if it failed.
    fn tell_outcome(&mut self, outcome: &Outcome, turn: &mut Turn<'_>) {
        let Outcome { tag, wants_receipt, count, .. } = *outcome;
        let words = |error: &ErrorMessage| describe(Version::V1_3, error);
        let (result, error, reason) = match &outcome.end {
            End::Programmed => (abi::Outcome::Programmed, NO_ERROR, String::new()),
            End::NoBundles(why) => (abi::Outcome::Refused, NO_BUNDLES, no_bundles(why)),
            End::Failed(None, error) => {
                (abi::Outcome::Failed, canonical_code(Version::V1_3, error), words(error))
            }
            End::Failed(Some(number), error) => {
                let reason = format!("flow mod {number} of {count} in the bundle: {}", words(error));
                (abi::Outcome::Failed, canonical_code(Version::V1_3, error), reason)
            }
            End::Unknown(why) => (abi::Outcome::Unknown, NO_ERROR, (*why).to_owned()),
        };
        let (datapath, sequence, ticket) = (self.identity.datapath, self.next_sequence(), tag.ticket);
        let later_ms = self.programmed_after_ms();
        if wants_receipt && result == abi::Outcome::Programmed && later_ms > 0 {
            return self.receipts.hold_programmed(tag, turn.now_ms.saturating_add(later_ms));
        }
        let reason = reason.as_str();
        turn.tell(tag, |frame| {
            if wants_receipt {
                let receipt = Receipt { ticket, outcome: result, error, reason };
                write::receipt(frame, sequence, datapath, &receipt)
            } else if result == abi::Outcome::Programmed {
                false
            } else {
                let event = abi::event::SwitchError { datapath, error, ticket, reason };
                write::switch_error(frame, sequence, &event)
            }
        });
    }

    /// Gives up bundles that the switch did not answer in time.
    pub(super) fn give_up_late_bundles(&mut self, turn: &mut Turn<'_>) {
        while let Some((outcome, to_discard)) =
            self.bundles.on_tick(turn.now_ms, self.limits.receipt_timeout_ms)
        {
            self.end_bundle(&outcome, to_discard, turn);
        }
    }
}
