//! One connection of an operator: requests come in, answers go out, one line each.
//!
//! Never waits, and never parses a request. The connection is closed if the operator does not read an answer, or sends a
//! line that is too long. One request is open at a time. The next one is read after the answer was sent, so at most one
//! answer is buffered.

use nix::sys::socket::{getsockopt, sockopt};
use operator::contract::{Answer, LINE_BYTES_MAX};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;

/// How long an operator may read nothing of an answer before its connection is closed.
const STUCK_MS: u64 = 10_000;

/// The process that connected, as Linux saw it then (`SO_PEERCRED`, unix(7)). It may have passed the connection to
/// another process since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The user, if Linux reports it.
    pub uid: Option<u32>,
    /// The process; `None` if this node cannot see it.
    pub pid: Option<u32>,
}

impl Peer {
    /// The peer of a connection.
    pub fn of(stream: &impl AsFd) -> Peer {
        let Ok(said) = getsockopt(stream, sockopt::PeerCredentials) else { return Peer::default() };
        let pid = u32::try_from(said.pid()).ok().filter(|pid| *pid != 0);
        Peer { uid: Some(said.uid()), pid }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
        write!(f, "user {}, process {}", number(self.uid), number(self.pid))
    }
}

/// An operator.
pub struct Operator<Stream = mio::net::UnixStream> {
    stream: Stream,
    /// The peer.
    pub peer: Peer,
    /// At most a line's length and one read: complete lines that wait, and the start of another.
    read: Vec<u8>,
    /// Whether more data waits than there was space for.
    crowded: bool,
    unread: Vec<u8>,
    /// How much of `unread` has been written.
    written: usize,
    /// Whether an answer is pending.
    waiting: bool,
    finished: bool,
    /// How much was unread at the last check, and since when the amount is unchanged.
    stuck: Option<(usize, u64)>,
}

impl<Stream: Read + Write> Operator<Stream> {
    /// Creates the state of a new connection.
    pub fn new(stream: Stream, peer: Peer) -> Self {
        Operator {
            stream,
            peer,
            read: Vec::new(),
            crowded: false,
            unread: Vec::new(),
            written: 0,
            waiting: false,
            finished: false,
            stuck: None,
        }
    }

    /// Reads the available data, as far as there is space. A line that is too long, or the end of the data, ends the
    /// reading.
    pub fn hear(&mut self) {
        let mut bytes = [0; 4096];
        self.crowded = false;
        loop {
            if self.read.len() > LINE_BYTES_MAX {
                break self.is_full();
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return self.finished = true,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return self.finished = true,
            }
        }
        self.write();
    }

    fn is_full(&mut self) {
        self.crowded = self.read.contains(&b'\n');
        if !self.crowded {
            self.read.clear();
            self.say(&Answer::Refused(format!("a request has at most {LINE_BYTES_MAX} bytes")));
            self.finished = true;
        }
    }

    /// Whether a request can be handled: one has arrived, and the previous answer was sent.
    pub fn has_question(&self) -> bool {
        !self.waiting && self.unread.is_empty() && self.read.contains(&b'\n')
    }

    /// The next request, if the previous answer was sent. Its answer is pending from now on.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        if !self.has_question() {
            return None;
        }
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        self.waiting = true;
        if self.crowded {
            self.hear();
        }
        Some(line)
    }

    /// Sends the pending answer.
    pub fn answer(&mut self, answer: &Answer) {
        self.waiting = false;
        self.say(answer);
    }

    /// The bytes of an answer that the operator has not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.unread.len()
    }

    /// Whether the operator has read nothing of an answer for too long. Call it regularly.
    pub fn is_stuck(&mut self, now_ms: u64) -> bool {
        let left = self.unread.len() - self.written;
        let since = match self.stuck {
            _ if left == 0 => None,
            Some((before, since_ms)) if before == left => Some(since_ms),
            _ => Some(now_ms),
        };
        self.stuck = since.map(|since_ms| (left, since_ms));
        since.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= STUCK_MS)
    }

    fn say(&mut self, answer: &Answer) {
        match serde_json::to_writer(&mut self.unread, answer) {
            Ok(()) => self.unread.push(b'\n'),
            Err(error) => tracing::error!("an answer could not be written: {error}"),
        }
        self.write();
    }

    fn write(&mut self) {
        while self.written < self.unread.len() {
            match self.stream.write(&self.unread[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.give_up(),
            }
        }
        self.forget_answer();
    }

    /// Frees its memory: a long answer is seldom followed by another.
    fn forget_answer(&mut self) {
        self.unread = Vec::new();
        self.written = 0;
    }

    /// The operator no longer reads: pending requests need no answer.
    fn give_up(&mut self) {
        self.forget_answer();
        self.read.clear();
        self.finished = true;
    }

    /// Whether there is nothing more to read or to write.
    pub fn is_done(&self) -> bool {
        self.finished && !self.waiting && self.unread.is_empty() && !self.read.contains(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::io;

    /// The other end: it has sent something, and accepts this many bytes at each write.
    #[derive(Default)]
    struct Other {
        says: VecDeque<u8>,
        takes: VecDeque<usize>,
        heard: Vec<u8>,
    }

    impl Read for Other {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.says.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { self.says.read(into) }
        }
    }

    impl Write for Other {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let takes = self.takes.pop_front().ok_or(ErrorKind::WouldBlock)?.min(bytes.len());
            self.heard.extend_from_slice(&bytes[..takes]);
            Ok(takes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn operator(says: &[u8]) -> Operator<Other> {
        let other =
            Other { says: says.iter().copied().collect(), takes: [1 << 20; 9].into(), ..Other::default() };
        Operator::new(other, Peer::default())
    }

    #[test]
    fn who_asks_is_said_by_linux() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let own = format!("user {}, process {}", rustix::process::geteuid().as_raw(), std::process::id());
        assert_eq!(Peer::of(&one).to_string(), own);
        let (no_socket, _) = std::io::pipe().unwrap();
        assert_eq!(Peer::of(&no_socket).to_string(), "user unknown, process unknown");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut operator = operator(&vec![b'x'; LINE_BYTES_MAX + 1]);
        operator.hear();
        assert_eq!(operator.next_line(), None);
        assert!(
            operator.is_done() && String::from_utf8_lossy(&operator.stream.heard).contains("at most 65536")
        );
    }

    #[test]
    fn many_short_questions_together_are_all_heard() {
        let line = b"\"switches\"\n";
        let count = 2 * LINE_BYTES_MAX / line.len();
        let mut operator = operator(&line.repeat(count));
        operator.hear();
        let mut heard = 0;
        operator.stream.takes = vec![1 << 20; count].into();
        while let Some(question) = operator.next_line() {
            assert_eq!(question, b"\"switches\"");
            assert!(operator.read.len() <= LINE_BYTES_MAX + 4096);
            operator.answer(&Answer::Done);
            heard += 1;
        }
        assert_eq!(heard, count);
    }

    #[test]
    fn an_answer_that_is_taken_in_parts_arrives_whole() {
        let mut operator = operator(b"");
        operator.stream.takes = [3, 5].into();
        operator.answer(&Answer::Refused("no".into()));
        assert!(operator.unread_bytes() > 0);
        operator.stream.takes = [2, 1 << 20].into();
        operator.hear();
        assert_eq!(String::from_utf8_lossy(&operator.stream.heard), "{\"refused\":\"no\"}\n");
        assert_eq!(operator.unread_bytes(), 0);
    }

    #[test]
    fn nothing_more_is_answered_before_the_answer_is_read() {
        let mut operator = operator(b"\"node\"\n\"node\"\n");
        operator.stream.takes = [3].into();
        operator.hear();
        assert!(operator.next_line().is_some() && operator.next_line().is_none(), "one question is open");
        operator.answer(&Answer::Done);
        assert_eq!((operator.next_line(), operator.unread_bytes()), (None, 7));
        operator.stream.takes = [4].into();
        operator.hear();
        assert_eq!(operator.next_line().as_deref(), Some(&b"\"node\""[..]));
    }

    #[test]
    fn who_reads_nothing_of_an_answer_is_stuck_and_who_reads_a_little_is_not() {
        let mut operator = operator(b"");
        operator.stream.takes = [1].into();
        operator.answer(&Answer::Done);
        assert!(!operator.is_stuck(0) && !operator.is_stuck(STUCK_MS - 1));
        operator.stream.takes = [1].into();
        operator.hear();
        assert!(!operator.is_stuck(STUCK_MS) && operator.is_stuck(2 * STUCK_MS));
        operator.stream.takes = [9].into();
        operator.hear();
        assert!(!operator.is_stuck(9 * STUCK_MS));
    }

    #[test]
    fn what_was_asked_before_the_other_end_closed_is_still_answered() {
        let (mut other, own) = std::os::unix::net::UnixStream::pair().unwrap();
        other.write_all(b"\"node\"\n\"node\"\n").unwrap();
        other.shutdown(std::net::Shutdown::Write).unwrap();
        let mut operator = Operator::new(own, Peer::default());
        operator.hear();
        for _ in 0..2 {
            assert!(!operator.is_done() && operator.next_line().is_some());
            operator.answer(&Answer::Done);
        }
        assert!(operator.is_done());
    }
}
