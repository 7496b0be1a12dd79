//! The role of this controller at the switch (1.3.5, 6.3.4 and 7.3.9): requests it, and handles the answers.
//!
//! It does not choose the role, and never repeats a request. After an error of the switch, the previous role stays,
//! and the session continues.

use super::{Session, TYPE_ERROR};
use crate::config::RoleWanted;
use crate::fault::Refused;
use crate::receipts::Tag;
use crate::roles::{ControllerRole, RoleAsked};
use crate::translate::error::describe;
use crate::translate::statistics::ReplyPart;
use crate::turn::{Turn, message_name};
use abi::command::ROLE;
use flow::BadInput;
use openflow::error::BAD_ROLE;
use openflow::message::{ErrorMessage, Role};
use openflow::{Body, Header, Message, Version};

/// A role comes in one message.
const ONLY_ROLE: ReplyPart = ReplyPart { multipart: ROLE, more: false };

/// OFPT_ROLE_REPLY, for people.
const ROLE_REPLY: &str = "OFPT_ROLE_REPLY";

/// OFPET_ROLE_REQUEST_FAILED (1.3.5, 7.5.4.12) and its codes.
const ROLE_REQUEST_FAILED: u16 = 11;
const STALE: u16 = 0;
const UNSUPPORTED: u16 = 1;

impl Session {
    /// Requests a role from the switch. The zone in the tag gets a receipt: `programmed` after the switch confirms
    /// the role, `failed` with the switch's error, or `unknown` without an answer.
    ///
    /// # Errors
    /// Why the request was not sent. The session continues. OpenFlow 1.0 has no roles.
    pub fn request_role(&mut self, role: Role, tag: Tag, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let sent = self.ask_for_role(role, Some(tag), turn);
        self.counters.refused += u64::from(sent.is_err());
        sent
    }

    /// Asks for the role that the configuration wants, if it wants one and the version has roles.
    pub(super) fn ask_for_wanted_role(&mut self, turn: &mut Turn<'_>) {
        if self.limits.role == RoleWanted::NoChange || self.version == Version::V1_0 {
            return;
        }
        if let Err(refused) = self.ask_for_role(self.limits.role.request(), None, turn) {
            turn.line("OFPT_ROLE_REQUEST", &format!("Burnet could not write its own message: {refused}"));
        }
    }

    fn ask_for_role(&mut self, role: Role, by: Option<Tag>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if !self.roles.has_room() {
            return Err(Refused::TooManyRoleRequests(self.roles.waiting()));
        }
        let (before, xid) = (turn.out.len(), self.receipts.next_xid());
        openflow::write::role_request(self.version, xid, role.role, role.generation_id, turn.out)
            .map_err(Refused::Unwritable)?;
        self.counted_out(turn.out.len() - before);
        if let Some(tag) = by {
            self.receipts.sent(tag, false);
        }
        let role = ControllerRole::from_number(role.role);
        self.roles.sent(xid, RoleAsked { by, role }, turn.now_ms);
        Ok(())
    }

    pub(super) fn on_role_reply(
        &mut self,
        header: &Header,
        message: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), BadInput> {
        let Some(asked) = self.roles.on_answer(header.xid) else {
            // An app may have asked which role it is.
            return self.on_part(header, message, ONLY_ROLE, turn);
        };
        match read_reply(message) {
            Ok(role) => {
                self.roles.confirm(role);
                self.on_role_confirmed(asked, role, turn);
                Ok(())
            }
            Err(bad) => {
                self.role_is_unknown(asked, "the switch's role reply could not be read", turn);
                Err(bad)
            }
        }
    }

    fn on_role_confirmed(&mut self, asked: RoleAsked, role: ControllerRole, turn: &mut Turn<'_>) {
        match (asked.role, asked.by) {
            (Some(wanted), _) if wanted != role => {
                let reason = format!("the role {wanted} was requested, and the switch answered {role}");
                self.role_is_unknown(asked, &reason, turn);
            }
            (_, Some(tag)) => self.tell_programmed(tag, turn),
            (_, None) => {}
        }
    }

    /// The switch answered a role request with an error: the role that held before still holds.
    pub(super) fn on_role_error(
        &mut self,
        asked: RoleAsked,
        version: Version,
        error: &ErrorMessage,
        turn: &mut Turn<'_>,
    ) {
        let text = format!("{}: {}", describe(version, error), meaning(error));
        turn.line(message_name(version, TYPE_ERROR), &text);
        if let Some(tag) = asked.by {
            self.tell_failed(tag, true, version, error, &text, turn);
        }
    }

    /// The result of a request is unknown. The zone that asked is notified. If the session itself asked, the log has
    /// a line.
    pub(super) fn role_is_unknown(&mut self, asked: RoleAsked, reason: &str, turn: &mut Turn<'_>) {
        match asked.by {
            Some(tag) => self.tell_unknown(tag, reason, turn),
            None => turn.line(ROLE_REPLY, reason),
        }
    }
}

fn read_reply(message: &[u8]) -> Result<ControllerRole, BadInput> {
    let number = match Message::decode(message)?.body {
        Body::RoleReply(reply) => reply.role,
        // The session looked at the type before.
        _ => openflow::message::ROLE_NOCHANGE,
    };
    ControllerRole::from_number(number).ok_or_else(|| {
        let message = format!("{number} is not a role of a controller");
        BadInput { offset: openflow::HEADER_LEN, field: "role", error: BAD_ROLE, message: message.into() }
    })
}

/// What an error says of the request, for the operator.
fn meaning(error: &ErrorMessage) -> &'static str {
    match (error.kind, error.code) {
        (ROLE_REQUEST_FAILED, STALE) => {
            "another controller requested a role with a higher generation id; the role is unchanged"
        }
        (ROLE_REQUEST_FAILED, UNSUPPORTED) => "the switch cannot change roles; the role is unchanged",
        _ => "the role is unchanged",
    }
}
