//! The hops of the links of slices, as the service `paths` tells them by a stream.
//!
//! In: updates of the stream, refusals, and the time in milliseconds. Out: when to open the stream, and what changed. While `paths` is away, its last
//! word holds: its rules stay in the switches. It sends nothing.

use burnet_sdk::Ticket;
use burnet_sdk::stream::{Pauses, Update};
use paths_contract::{ALL_SLICES, FollowLinks, LinkState, read_link_key};
use view::LinkId;

/// The stream.
#[derive(Debug, Default)]
pub struct SliceLinks {
    stream: Option<Ticket>,
    again_ms: u64,
    pauses: Pauses,
}

/// A link of a slice, and the links of the network below it.
pub type Hops = (String, LinkId, Vec<LinkId>);

impl SliceLinks {
    /// When the stream is to be opened.
    pub fn next_ms(&self) -> Option<u64> {
        self.stream.is_none().then_some(self.again_ms)
    }

    /// Opens the stream if it is time. `open`: sends the question and gives its ticket.
    pub fn on_time(&mut self, now_ms: u64, open: impl FnOnce(&[u8]) -> Ticket) {
        if self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let follow = FollowLinks { links_of: ALL_SLICES.to_owned() };
            self.stream = Some(open(&follow.to_bytes()));
        }
    }

    /// Whether a stream is this one.
    pub fn has(&self, stream: Ticket) -> bool {
        self.stream == Some(stream)
    }

    /// The kernel refused to open the stream, if the call was this one.
    pub fn on_refused(&mut self, ticket: Ticket, now_ms: u64) {
        if self.stream == Some(ticket) {
            self.fail(now_ms);
        }
    }

    fn fail(&mut self, now_ms: u64) {
        self.stream = None;
        self.again_ms = self.pauses.after_failure(now_ms);
    }

    /// An update of a stream. Returns what it says of a link, if it is of this stream.
    pub fn on_stream(&mut self, stream: Ticket, update: &Update<'_>, now_ms: u64) -> Option<Hops> {
        if self.stream != Some(stream) {
            return None;
        }
        match *update {
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                let (slice, link) = read_link_key(key)?;
                let state = LinkState::from_bytes(value).ok()?;
                return Some((slice.to_owned(), link, state.hops));
            }
            Update::Begin { .. } => self.pauses.on_answer(),
            Update::Ended { .. } => self.fail(now_ms),
            Update::Complete { .. } | Update::Removed { .. } | Update::Missed { .. } => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paths_contract::link_key;

    const LINK: &str = "1/3-2/3";
    const STREAM: Ticket = Ticket(7);

    fn opened() -> SliceLinks {
        let mut links = SliceLinks::default();
        links.on_time(0, |_| STREAM);
        links
    }

    /// What is said of the link when the stream has this state of it.
    fn said(links: &mut SliceLinks, stream: Ticket, state: &LinkState) -> Option<Hops> {
        let (key, value) = (link_key("blue", LINK.parse().unwrap()), state.to_bytes());
        links.on_stream(stream, &Update::Put { number: 1, key: &key, value: &value }, 5)
    }

    #[test]
    fn a_link_that_is_down_has_no_hops_whatever_it_had_before() {
        let mut links = opened();
        let hops: Vec<LinkId> = ["1/3-3/1", "3/2-2/3"].iter().map(|hop| hop.parse().unwrap()).collect();
        let up = LinkState { is_up: true, hops: hops.clone(), ..LinkState::default() };
        let down = LinkState { why: Some("no path leads there".to_owned()), ..LinkState::default() };
        let of_blue = |hops: &[LinkId]| Some(("blue".to_owned(), LINK.parse().unwrap(), hops.to_vec()));
        assert_eq!(said(&mut links, STREAM, &up), of_blue(&hops));
        assert_eq!(said(&mut links, STREAM, &down), of_blue(&[]));
        assert_eq!(said(&mut links, Ticket(8), &up), None, "it is of another stream");
    }

    #[test]
    fn the_last_word_holds_while_the_service_is_away() {
        let mut links = opened();
        assert_eq!(links.next_ms(), None);
        assert_eq!(links.on_stream(STREAM, &Update::Ended { status: 0, reason: b"" }, 5), None);
        assert!(links.next_ms().is_some_and(|at_ms| at_ms > 5) && !links.has(STREAM));
    }
}
