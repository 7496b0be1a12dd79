//! The connections of all operators: which are accepted, whose request is next, and which are closed.
//!
//! In: streams, answers, the time. Out: one request at a time, in turn. Each operator has at most one open request. Never
//! parses a request.

use super::operator_line::{Operator, Peer};
use super::operator_queries::OperatorId;
use mio::net::UnixStream;
use operator::contract::Answer;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Bound::{Excluded, Unbounded};

/// Operators at once. One more is closed when it comes.
pub const OPERATORS_MAX: usize = 64;

/// Bytes of answers that all operators together may leave unread. Beyond it the next answer is a refusal, until some of it has been read.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// All operators that are connected.
pub struct Operators<Stream = UnixStream> {
    connected: BTreeMap<OperatorId, Operator<Stream>>,
    next: OperatorId,
    /// Whose question was taken last.
    last: OperatorId,
}

impl<Stream: Read + Write> Operators<Stream> {
    /// None yet; the first will be known by this number.
    pub fn new(first: OperatorId) -> Self {
        Operators { connected: BTreeMap::new(), next: first, last: first }
    }

    /// One more has connected, and is registered under its number with `register`, which says whether that worked.
    pub fn adopt(
        &mut self,
        mut stream: Stream,
        peer: Peer,
        register: impl FnOnce(&mut Stream, OperatorId) -> bool,
    ) {
        let operator_id = self.next;
        if self.connected.len() < OPERATORS_MAX && register(&mut stream, operator_id) {
            self.next += 1;
            self.connected.insert(operator_id, Operator::new(stream, peer));
        }
    }

    /// It has said something, or takes more of its answer.
    pub fn hear(&mut self, operator_id: OperatorId) {
        if let Some(operator) = self.connected.get_mut(&operator_id) {
            operator.hear();
        }
    }

    /// Who that is.
    pub fn peer(&self, operator_id: OperatorId) -> Peer {
        self.connected.get(&operator_id).map(|operator| operator.peer).unwrap_or_default()
    }

    /// The next question, of the operator after the last one. It is to be answered before that operator's next one
    /// comes.
    pub fn next_question(&mut self) -> Option<(OperatorId, Vec<u8>)> {
        let after = (Excluded(self.last), Unbounded);
        let operator_id = {
            let has_question = |(_, operator): &(&OperatorId, &Operator<Stream>)| operator.has_question();
            let (operator_id, _) = self
                .connected
                .range(after)
                .find(has_question)
                .or_else(|| self.connected.range(..=self.last).find(has_question))?;
            *operator_id
        };
        self.last = operator_id;
        let line = self.connected.get_mut(&operator_id)?.next_line()?;
        Some((operator_id, line))
    }

    /// The answer to the question of an operator, who may be gone.
    pub fn answer(&mut self, operator_id: OperatorId, answer: &Answer) {
        let unread: usize = self.connected.values().map(Operator::unread_bytes).sum();
        let Some(operator) = self.connected.get_mut(&operator_id) else { return };
        if unread > UNREAD_BYTES_MAX {
            let why = format!(
                "operators have not read {unread} bytes of answers, and the limit is {UNREAD_BYTES_MAX}; try again"
            );
            return operator.answer(&Answer::Refused(why));
        }
        operator.answer(answer);
    }

    /// Parts with those that are done, and with those that read nothing of what waits for them: who that was.
    pub fn part(&mut self, now_ms: u64) -> Vec<OperatorId> {
        let mut parted = Vec::new();
        self.connected.retain(|operator_id, operator| {
            let stuck = operator.is_stuck(now_ms);
            if stuck {
                tracing::warn!(
                    "an operator's connection ({}) is closed: it does not read its answer",
                    operator.peer
                );
            }
            let stays = !stuck && !operator.is_done();
            if !stays {
                parted.push(*operator_id);
            }
            stays
        });
        parted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Operators who have each asked so much and read nothing.
    fn operators(asked: &[&str]) -> (Operators<UnixStream>, Vec<UnixStream>) {
        let (mut operators, mut others) = (Operators::new(0), Vec::new());
        for (operator_id, asked) in asked.iter().enumerate() {
            let (mut other, own) = UnixStream::pair().unwrap();
            own.set_nonblocking(true).unwrap();
            other.write_all(asked.as_bytes()).unwrap();
            operators.adopt(own, Peer::default(), |_, _| true);
            operators.hear(operator_id);
            others.push(other);
        }
        (operators, others)
    }

    /// Longer than a socket takes.
    fn long_answer() -> Answer {
        Answer::Refused("x".repeat(UNREAD_BYTES_MAX / 8))
    }

    #[test]
    fn operators_are_answered_in_turn() {
        let (mut operators, _others) = operators(&["a\nb\n", "c\n", "d\n"]);
        let mut heard = Vec::new();
        while let Some((operator_id, line)) = operators.next_question() {
            heard.push(String::from_utf8(line).unwrap());
            operators.answer(operator_id, &Answer::Done);
        }
        assert_eq!(heard, ["c", "d", "a", "b"]);
    }

    #[test]
    fn what_all_leave_unread_is_bounded() {
        let many = vec!["a\n"; OPERATORS_MAX + 1];
        let (mut operators, _others) = operators(&many);
        let answer = long_answer();
        for _ in 0..OPERATORS_MAX {
            let (operator_id, _) = operators.next_question().unwrap();
            operators.answer(operator_id, &answer);
        }
        assert!(operators.next_question().is_none(), "one more than there may be was not let in");
        let unread: usize = operators.connected.values().map(Operator::unread_bytes).sum();
        assert!(unread > UNREAD_BYTES_MAX && unread < UNREAD_BYTES_MAX / 4 * 5, "{unread}");
    }

    #[test]
    fn who_reads_nothing_is_parted_with_and_the_others_stay() {
        let (mut operators, _others) = operators(&["a\n", "b\n"]);
        let (stuck, _) = operators.next_question().unwrap();
        operators.answer(stuck, &long_answer());
        assert!(operators.part(0).is_empty());
        assert_eq!(operators.part(60_000), [stuck]);
        assert!(operators.next_question().is_some_and(|(operator_id, _)| operator_id != stuck));
    }
}
