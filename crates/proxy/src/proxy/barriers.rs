//! The barriers of a session: what the switch has confirmed, and which answers wait for that.
//!
//! In: messages for the switch, answers of the model and of the switch. Out: when the switch must be asked, and which answers may leave.
//! It sends nothing.

use std::collections::VecDeque;

/// The barriers of a session.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// How many messages have gone to the switch, and how many of them it has confirmed.
    sent: u64,
    confirmed: u64,
    /// Whether the switch is asked already. It is asked once at a time: the next question is about all that was sent until then.
    is_asked: bool,
    /// The controller's barriers in the model.
    in_model: usize,
    /// Answered by the model: behind which message, and the transaction id. As many as messages are held.
    answered: VecDeque<(u64, u32)>,
}

impl Barriers {
    /// A message that changes the switch has gone to it.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// The controller has sent a barrier.
    pub(super) fn on_request(&mut self) {
        self.in_model += 1;
    }

    /// The target has lost a barrier.
    pub(super) fn on_lost(&mut self) {
        self.in_model = self.in_model.saturating_sub(1);
    }

    /// The target answers a barrier with this transaction id.
    pub(super) fn on_answer(&mut self, xid: u32) {
        self.in_model = self.in_model.saturating_sub(1);
        self.answered.push_back((self.sent, xid));
    }

    /// Takes an answer that the switch has confirmed.
    pub(super) fn take_confirmed(&mut self) -> Option<u32> {
        let confirmed = self.confirmed;
        self.answered.pop_front_if(|(behind, _)| *behind <= confirmed).map(|(_, xid)| xid)
    }

    /// Up to which message the switch must be asked now, while a barrier waits.
    pub(super) fn question(&mut self) -> Option<u64> {
        let is_wanted = self.in_model > 0 || !self.answered.is_empty();
        if !is_wanted || self.is_asked || self.sent == self.confirmed {
            return None;
        }
        self.is_asked = true;
        Some(self.sent)
    }

    /// The switch has confirmed all messages up to this one.
    pub(super) fn on_confirmed(&mut self, behind: u64) {
        self.confirmed = self.confirmed.max(behind);
        self.is_asked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_waits_for_the_messages_before_it_and_for_no_others() {
        let mut barriers = Barriers::default();
        barriers.on_sent();
        assert_eq!(barriers.question(), None, "nobody waits");
        barriers.on_request();
        assert_eq!((barriers.question(), barriers.question()), (Some(1), None));
        barriers.on_answer(7);
        barriers.on_sent();
        assert_eq!(barriers.take_confirmed(), None);
        barriers.on_confirmed(1);
        assert_eq!((barriers.take_confirmed(), barriers.take_confirmed()), (Some(7), None));
        assert_eq!(barriers.question(), None);
    }

    #[test]
    fn an_answer_behind_what_is_confirmed_leaves_at_once() {
        let mut barriers = Barriers::default();
        barriers.on_request();
        barriers.on_answer(7);
        assert_eq!(barriers.take_confirmed(), Some(7));
    }
}
