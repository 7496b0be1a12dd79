//! The connections of all operators: which are accepted, whose request is next, and which are closed.
//!
//! In: streams, answers, the time. Out: one request at a time, in turn. Each operator has at most one open request. It
//! never parses a request.

use super::operator_line::{Operator, Peer};
use super::operator_queries::OperatorId;
use mio::net::UnixStream;
use operator::contract::Answer;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Bound::{Excluded, Unbounded};

/// How many operators may be connected. A further connection is closed at once.
pub const OPERATORS_MAX: usize = 64;

/// Bytes of answers that all operators together may leave unread. Above it, the next answer is an error, until
/// operators have read some.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// All connected operators.
pub struct Operators<Stream = UnixStream> {
    connected: BTreeMap<OperatorId, Operator<Stream>>,
    next: OperatorId,
    /// The operator whose request was taken last.
    last: OperatorId,
}

impl<Stream: Read + Write> Operators<Stream> {
    /// Creates an empty set; the first operator gets this number.
    pub fn new(first: OperatorId) -> Self {
        Operators { connected: BTreeMap::new(), next: first, last: first }
    }

    /// Adds an operator that has connected. `register` registers the connection under its number, and returns whether
    /// that worked.
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

    /// The operator has sent data, or accepts more of its answer.
    pub fn hear(&mut self, operator_id: OperatorId) {
        if let Some(operator) = self.connected.get_mut(&operator_id) {
            operator.hear();
        }
    }

    /// The peer of an operator.
    pub fn peer(&self, operator_id: OperatorId) -> Peer {
        self.connected.get(&operator_id).map(|operator| operator.peer).unwrap_or_default()
    }

    /// The next request, of the next operator in turn. It must be answered before that operator's next request is
    /// returned.
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

    /// Sends the answer to an operator's request. The operator may be gone.
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

    /// Removes the operators that are done, and those that do not read their answers. Returns their numbers.
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

    /// Operators that have each sent this request and read nothing.
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

    /// Longer than a socket accepts.
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
