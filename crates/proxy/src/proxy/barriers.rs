//! The barriers of a session: what the switch has confirmed, and which answers wait for that.
//!
//! In: messages for the switch, answers of the model and of the switch. Out: when the switch must be asked, and which answers may leave.
//! It sends nothing.

use std::collections::VecDeque;

/// How many messages the switch may have to confirm at most. Above it, the proxy does nothing until the switch has confirmed some, and the
/// controller is not read. One message of the controller may become more messages than this.
const UNCONFIRMED_MAX: u64 = 8192;
/// The switch is asked after so many messages, even if no barrier waits.
const ASK_AFTER: u64 = UNCONFIRMED_MAX / 8;
/// How many questions may be on their way. Above it, the proxy does nothing until one is answered.
pub(crate) const QUESTIONS_MAX: usize = 1024;
/// How many bytes may wait behind answers. Above it, the proxy does nothing until an answer has left.
const LATER_MAX_BYTES: usize = 1 << 20;

/// An answer of the target that waits for the switch.
#[derive(Debug)]
struct Answer {
    /// Behind which message.
    behind: u64,
    /// The transaction id of the barrier.
    xid: u32,
    /// What the proxy says of later messages: whole messages.
    later: Vec<u8>,
}

/// The barriers of a session.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// How many messages have gone to the switch, how many of them it was asked to confirm, and how many it has confirmed.
    sent: u64,
    asked: u64,
    confirmed: u64,
    /// Questions on their way, and those that the switch has answered.
    questions: usize,
    answers: u64,
    /// The controller's barriers in the model.
    in_model: usize,
    /// Answered by the model. As many as messages are held.
    answered: VecDeque<Answer>,
    /// Bytes behind the answers.
    later_bytes: usize,
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
        self.answered.push_back(Answer { behind: self.sent, xid, later: Vec::new() });
    }

    /// Takes an answer that the switch has confirmed, with what follows it.
    pub(super) fn take_confirmed(&mut self) -> Option<(u32, Vec<u8>)> {
        let confirmed = self.confirmed;
        let Answer { xid, later, .. } = self.answered.pop_front_if(|answer| answer.behind <= confirmed)?;
        self.later_bytes -= later.len();
        Some((xid, later))
    }

    /// The proxy says something of a message that came behind all barriers that are answered. If an answer waits, it is said behind it, or
    /// else now.
    pub(super) fn say_behind(&mut self, now: &mut Vec<u8>, say: impl FnOnce(&mut Vec<u8>)) {
        let Some(Answer { later, .. }) = self.answered.back_mut() else { return say(now) };
        let before = later.len();
        say(later);
        self.later_bytes += later.len() - before;
    }

    /// Up to which message the switch must be asked now, so that all that it says of later messages comes behind its answer: a barrier of
    /// the controller has its place here.
    pub(super) fn question_here(&mut self) -> Option<u64> {
        if self.sent == self.asked {
            return None;
        }
        (self.asked, self.questions) = (self.sent, self.questions + 1);
        Some(self.sent)
    }

    /// Up to which message the switch must be asked now, before a barrier of the controller has its place: so that the answer comes sooner, or
    /// because much is not confirmed.
    pub(super) fn question_ahead(&mut self) -> Option<u64> {
        let is_wanted = self.questions == 0 && (self.in_model > 0 || !self.answered.is_empty());
        if is_wanted { self.question_here() } else { self.question_of_much() }
    }

    /// Up to which message the switch must be asked now because much is not confirmed, whether or not a barrier waits.
    pub(super) fn question_of_much(&mut self) -> Option<u64> {
        if self.sent - self.asked >= ASK_AFTER { self.question_here() } else { None }
    }

    /// The switch has confirmed all messages up to this one.
    pub(super) fn on_confirmed(&mut self, behind: u64) {
        self.confirmed = self.confirmed.max(behind);
        self.questions = self.questions.saturating_sub(1);
        self.answers += 1;
    }

    /// How many questions the switch has answered, if some are on their way.
    pub(super) fn answers_before_owed(&self) -> Option<u64> {
        (self.questions > 0).then_some(self.answers)
    }

    /// How many messages have gone to the switch.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the switch has confirmed this message.
    pub(super) fn has_confirmed(&self, message: u64) -> bool {
        self.confirmed >= message
    }

    /// Whether the switch has so much to confirm that nothing more may go to it.
    pub(super) fn is_full(&self) -> bool {
        self.sent - self.confirmed >= UNCONFIRMED_MAX
            || self.questions >= QUESTIONS_MAX
            || self.later_bytes > LATER_MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xid_of(confirmed: Option<(u32, Vec<u8>)>) -> Option<u32> {
        confirmed.map(|(xid, _)| xid)
    }

    #[test]
    fn an_answer_waits_for_the_messages_before_it_and_for_no_others() {
        let mut barriers = Barriers::default();
        barriers.on_sent();
        assert_eq!(barriers.question_ahead(), None, "nobody waits");
        barriers.on_request();
        assert_eq!((barriers.question_ahead(), barriers.question_ahead()), (Some(1), None));
        barriers.on_answer(7);
        assert_eq!(barriers.question_here(), None, "it was asked ahead");
        barriers.on_sent();
        assert_eq!(barriers.take_confirmed(), None);
        barriers.on_confirmed(1);
        assert_eq!(xid_of(barriers.take_confirmed()), Some(7));
        assert_eq!((barriers.take_confirmed(), barriers.question_ahead()), (None, None));
    }

    #[test]
    fn an_answer_behind_what_is_confirmed_leaves_at_once() {
        let mut barriers = Barriers::default();
        barriers.on_request();
        barriers.on_answer(7);
        assert_eq!(xid_of(barriers.take_confirmed()), Some(7));
    }

    #[test]
    fn what_is_said_of_later_messages_follows_the_last_answer() {
        let (mut barriers, mut now) = (Barriers::default(), Vec::new());
        barriers.say_behind(&mut now, |out| out.push(1));
        barriers.on_sent();
        barriers.on_answer(7);
        barriers.say_behind(&mut now, |out| out.extend([2, 3]));
        assert_eq!((&now[..], barriers.question_here()), (&[1][..], Some(1)));
        barriers.on_confirmed(1);
        assert_eq!((barriers.take_confirmed(), barriers.later_bytes), (Some((7, vec![2, 3])), 0));
    }

    #[test]
    fn the_switch_is_asked_while_much_is_not_confirmed() {
        let mut barriers = Barriers::default();
        let asked: Vec<u64> = (0..UNCONFIRMED_MAX)
            .filter_map(|_| {
                assert!(!barriers.is_full());
                barriers.on_sent();
                barriers.question_ahead()
            })
            .collect();
        assert_eq!((asked.len(), asked[0], barriers.is_full()), (8, ASK_AFTER, true));
        barriers.on_confirmed(ASK_AFTER);
        assert!(!barriers.is_full());
    }
}
