//! Commands for the switch, with the records that match its answers to them.
//!
//! It never decides whether a command is allowed. It only decides whether the version can express it, and whether there
//! is space to wait for its answer.

use super::Session;
use super::template::{RULE_MAX_BYTES, Template};
use crate::fault::Refused;
use crate::receipts::Tag;
use crate::requests::Asked;
use crate::translate::{command, statistics};
use crate::turn::Turn;
use abi::command::What;
use abi::prepared::{PreparedRule, RULE_LEN};
use abi::{Command, ZoneId};

impl Session {
    /// Appends a command for the switch, which has not accepted `waiting` bytes yet. A flow mod gets this cookie.
    ///
    /// # Errors
    /// Why it was not sent. Then nothing was appended, and the session continues.
    pub fn send(
        &mut self,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        if self.paced.is_some() {
            return self.send_paced(command, cookie, tag, waiting, turn);
        }
        self.send_now(command, cookie, tag, waiting, turn)
    }

    /// The same, whatever the pace of the switch.
    pub(super) fn send_now(
        &mut self,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        let sent = self
            .check_room(command, tag.zone, waiting)
            .and_then(|()| self.append(command, cookie, tag, waiting, turn));
        self.counters.refused += u64::from(sent.is_err());
        sent
    }

    /// The same for a prepared rule. Only the first rule of a shape is built; the others are copies with their own
    /// values.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline(always)]
    pub fn send_rule(
        &mut self,
        rule: PreparedRule<'_>,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        let has_room = waiting + RULE_MAX_BYTES <= self.for_apps_bytes()
            && (!rule.wants_receipt || self.receipts.has_room(tag.zone));
        if let Some(template) = self.template.as_deref()
            && template.is_of(&rule)
            && has_room
        {
            let before = turn.out.len();
            if template.write(&rule, self.receipts.next_xid(), turn.out) {
                self.counted_out(turn.out.len() - before);
                self.receipts.sent(tag, rule.wants_receipt);
                self.counters.flow_mods += 1;
                return Ok(());
            }
        }
        self.send_first(rule.bytes, rule.shape, rule.cookie, tag, waiting, turn)
    }

    /// Sends the first rule of a shape, and a rule that cannot be a copy.
    #[cold]
    #[inline(never)]
    fn send_first(
        &mut self,
        bytes: &[u8; RULE_LEN],
        shape: u64,
        cookie: u64,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        // It is built here again, so that in other cases the rule stays in registers.
        let rule = PreparedRule::of(bytes, shape, cookie);
        let Some(command) = rule.command() else { return Err(Refused::NotForSwitches) };
        let before = turn.out.len();
        self.send(&command, rule.cookie, tag, waiting, turn)?;
        if !self.has_pacer()
            && let Some(template) = Template::of(&rule, &turn.out[before..])
        {
            self.template = Some(Box::new(template));
        }
        Ok(())
    }

    #[inline]
    fn check_room(&self, command: &Command<'_>, zone: ZoneId, waiting: usize) -> Result<(), Refused> {
        match command.what {
            What::PacketOut(_) if waiting > self.limits.max_output_bytes / 2 => Err(Refused::SlowReader),
            What::StatsRequest(_) if !self.requests.has_room(zone) => {
                Err(Refused::TooManyRequests(self.requests.waiting()))
            }
            What::StatsRequest(_) => Ok(()),
            _ if command.wants_receipt && !self.receipts.has_room(zone) => {
                Err(Refused::TooManyOutstanding(self.receipts.outstanding()))
            }
            _ => Ok(()),
        }
    }

    /// How many bytes may wait, including an app's command. The rest is for the node's own messages, so that apps
    /// cannot fill the output and end the session.
    pub(super) fn for_apps_bytes(&self) -> usize {
        self.limits.max_output_bytes / 4 * 3
    }

    fn append(
        &mut self,
        command: &Command<'_>,
        cookie: u64,
        tag: Tag,
        waiting: usize,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refused> {
        let before = turn.out.len();
        let xid = self.receipts.next_xid();
        command::append(self.version, xid, &command.what, cookie, turn.out)?;
        if tag.zone != ZoneId::KERNEL && waiting + turn.out.len() - before > self.for_apps_bytes() {
            turn.out.truncate(before);
            return Err(Refused::SlowReader);
        }
        self.counted_out(turn.out.len() - before);
        let wants_receipt = command.wants_receipt;
        match command.what {
            What::StatsRequest(request) => {
                self.receipts.sent(tag, false);
                let multipart = request.multipart;
                let on_the_wire = statistics::on_the_wire(self.version, multipart);
                self.requests.sent(xid, Asked { tag, wants_receipt, multipart }, on_the_wire, turn.now_ms);
            }
            What::Barrier => {
                self.receipts.sent(tag, wants_receipt);
                if self.receipts.wants_barrier() {
                    self.barrier_sent(turn.now_ms);
                }
            }
            _ => self.receipts.sent(tag, wants_receipt),
        }
        match command.what {
            What::PacketOut(_) => self.counters.packet_outs += 1,
            What::FlowMod(_) => self.counters.flow_mods += 1,
            _ => {}
        }
        Ok(())
    }
}
