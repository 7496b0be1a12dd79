//! Messages as a line of text, for logs and tests.
//!
//! In: a message. Out: a line. Nothing reads it.

use super::{Entry, Header, Message, NO_CAP, RateOf, What};
use std::fmt;

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { from, to, from_session, to_session, sequence } = self;
        write!(f, "{} to {} sessions {from_session:x} {to_session:x} #{sequence}", from.0, to.0)
    }
}

impl fmt::Display for RateOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sender, receiver) = (self.flow.sender.0, self.flow.receiver.0);
        match self.rate_bps {
            NO_CAP => write!(f, " {sender}>{receiver}=none"),
            rate => write!(f, " {sender}>{receiver}={rate}"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.what {
            What::Reset => return f.write_str(" reset"),
            What::Began => "began",
            What::Rate => "rate",
            What::Ended => "ended",
            What::Shaped => "shaped",
            What::Unshaped => "unshaped",
        };
        write!(f, " {word}{}", RateOf { flow: self.flow, rate_bps: self.rate_bps })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Hello => f.write_str("hello"),
            Message::Welcome => f.write_str("welcome"),
            Message::Feedback(rates) => all(f, "feedback", rates),
            Message::Report { number, entries } => {
                write!(f, "report {number}")?;
                all(f, "", entries)
            }
            Message::Again { first, last } => write!(f, "again {first} to {last}"),
            Message::Beat { newest } => write!(f, "beat {newest}"),
            Message::Caps(rates) => all(f, "caps", rates),
        }
    }
}

fn all(f: &mut fmt::Formatter<'_>, word: &str, parts: &[impl fmt::Display]) -> fmt::Result {
    f.write_str(word)?;
    parts.iter().try_for_each(|part| write!(f, "{part}"))
}
