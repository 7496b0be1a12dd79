//! What intents reserve on links, as the service `paths` tells it by a stream.
//!
//! ```text
//!   time ──is due──> follow `paths` ──updates──> [ told by this stream, kept of earlier ones ] ──> links with what is reserved now
//! ```
//!
//! In: updates of the stream, refusals, and the time in milliseconds. Out: when to open the stream, and what changed. It sends nothing and books
//! nothing.
//!
//! After a start, `paths` has no paths of earlier intents until it knows the network. Their rules forward meanwhile. So what an earlier stream told is kept
//! until `paths` says that it has all. While `paths` is away, all stays as it was.

use burnet_sdk::Ticket;
use burnet_sdk::stream::{Pauses, Update};
use hose::Bandwidth;
use paths_contract::{Follow, RESERVED_STATE_KEY, Reserved, ReservedState};
use std::collections::{BTreeMap, BTreeSet};
use view::LinkId;

/// The most links with reservations. Those of further ones are in no label: the service knows no more links.
const LINKS_MAX: usize = crate::links::LINKS_MAX;

/// The stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Open(Ticket),
    /// It is opened at this time.
    AgainAt(u64),
}

/// What intents reserve.
#[derive(Debug)]
pub struct Reservations {
    stream: Stream,
    pauses: Pauses,
    /// What the stream that is open has told, in kbit/s.
    told: BTreeMap<LinkId, u64>,
    /// What earlier streams have told, until this one has all.
    kept: BTreeMap<LinkId, u64>,
    /// A snapshot has not ended.
    is_in_snapshot: bool,
    /// The service says that it has all.
    has_all: bool,
    /// A stream has had all since the start.
    is_known: bool,
    changed: BTreeSet<LinkId>,
    /// What was logged last: the same is not logged again until a stream is there.
    trouble: String,
    lines: Vec<String>,
}

impl Default for Reservations {
    fn default() -> Self {
        Reservations {
            stream: Stream::AgainAt(0),
            pauses: Pauses::default(),
            told: BTreeMap::new(),
            kept: BTreeMap::new(),
            is_in_snapshot: false,
            has_all: false,
            is_known: false,
            changed: BTreeSet::new(),
            trouble: String::new(),
            lines: Vec::new(),
        }
    }
}

impl Reservations {
    /// Whether all was known once. Before that, labels may be too high.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// The ticket of the stream that is open.
    #[cfg(test)]
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        match self.stream {
            Stream::Open(ticket) => Some(ticket),
            Stream::AgainAt(_) => None,
        }
    }

    /// When the stream is to be opened.
    pub fn next_ms(&self) -> Option<u64> {
        match self.stream {
            Stream::Open(_) => None,
            Stream::AgainAt(at_ms) => Some(at_ms),
        }
    }

    /// Opens the stream if it is time. `open`: sends the question and gives its ticket.
    pub fn on_time(&mut self, now_ms: u64, open: impl FnOnce(&[u8]) -> Ticket) {
        if self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let follow = Follow { reserved: true, ..Follow::default() };
            self.stream = Stream::Open(open(&follow.to_bytes()));
        }
    }

    /// The kernel refused to open the stream. Says whether the call was this one.
    pub fn on_refused(&mut self, ticket: Ticket, why: &str, now_ms: u64) -> bool {
        let is_mine = self.stream == Stream::Open(ticket);
        if is_mine {
            self.fail(why, now_ms);
        }
        is_mine
    }

    /// An update of a stream. Says whether it is this one.
    pub fn on_stream(&mut self, stream: Ticket, update: &Update<'_>, now_ms: u64) -> bool {
        if self.stream != Stream::Open(stream) {
            return false;
        }
        match *update {
            Update::Begin { .. } => self.begin(),
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                if let Err(why) = self.put(key, value) {
                    self.complain(&format!("the service paths sent what is no reservation: {why}"));
                }
            }
            Update::Removed { key, .. } => self.remove(key),
            Update::Complete { .. } => self.is_in_snapshot = false,
            Update::Missed { .. } => {}
            Update::Ended { status, reason } => {
                let reason = String::from_utf8_lossy(reason);
                self.fail(&format!("status {status} {reason}"), now_ms);
            }
        }
        self.forget_kept();
        true
    }

    /// Links of which intents reserve more or less since the last call, and how much.
    pub fn take_changed(&mut self) -> Vec<(LinkId, Bandwidth)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|link| (link, Bandwidth::from_kbps(self.kbps(link)))).collect()
    }

    /// Lines for the log.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Until the service has all, a link has no less than it had.
    fn kbps(&self, link: LinkId) -> u64 {
        let of = |map: &BTreeMap<LinkId, u64>| map.get(&link).copied().unwrap_or_default();
        of(&self.told).max(of(&self.kept))
    }

    /// A snapshot begins.
    fn begin(&mut self) {
        for (link, kbps) in std::mem::take(&mut self.told) {
            let kept = self.kept.entry(link).or_default();
            *kept = kbps.max(*kept);
        }
        (self.is_in_snapshot, self.has_all) = (true, false);
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let read = |why: serde_json::Error| why.to_string();
        if key == RESERVED_STATE_KEY.as_bytes() {
            self.has_all = serde_json::from_slice::<ReservedState>(value).map_err(read)?.complete;
            return Ok(());
        }
        let link: LinkId = String::from_utf8_lossy(key).parse().map_err(|why| format!("{why}"))?;
        let Reserved { kbps } = serde_json::from_slice(value).map_err(read)?;
        if self.told.len() >= LINKS_MAX && !self.told.contains_key(&link) {
            return Err(format!("there are more than {LINKS_MAX} links"));
        }
        self.told.insert(link, kbps);
        self.changed.insert(link);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) {
        if let Ok(link) = String::from_utf8_lossy(key).parse() {
            self.told.remove(&link);
            self.changed.insert(link);
        }
    }

    /// Once the service has all, what earlier streams told counts no more.
    fn forget_kept(&mut self) {
        if self.is_in_snapshot || !self.has_all {
            return;
        }
        self.changed.extend(std::mem::take(&mut self.kept).into_keys());
        self.is_known = true;
        self.pauses.on_answer();
        self.trouble.clear();
    }

    fn fail(&mut self, why: &str, now_ms: u64) {
        self.stream = Stream::AgainAt(self.pauses.after_failure(now_ms));
        // The service may know less when it is back.
        (self.is_in_snapshot, self.has_all) = (true, false);
        self.complain(&format!("no reservations of intents from the service paths: {why}; labels count those known before, and it is asked again"));
    }

    fn complain(&mut self, line: &str) {
        if self.trouble != line {
            self.trouble = line.to_owned();
            self.lines.push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1/1-2/1";
    const TWO: &str = "2/2-3/2";
    const SOME: &[u8] = br#"{"complete":false}"#;
    const ALL: &[u8] = br#"{"complete":true}"#;
    const STATE: &[u8] = RESERVED_STATE_KEY.as_bytes();

    /// Reservations, the stream that is open, and the time.
    struct Scene {
        it: Reservations,
        ticket: u64,
        now_ms: u64,
    }

    impl Scene {
        fn new() -> Scene {
            let mut scene = Scene { it: Reservations::default(), ticket: 6, now_ms: 0 };
            scene.open();
            scene
        }

        fn open(&mut self) {
            self.ticket += 1;
            let ticket = Ticket(self.ticket);
            self.it.on_time(self.now_ms, |question| {
                assert_eq!(question, br#"{"reserved":true}"#);
                ticket
            });
            assert_eq!(self.it.next_ms(), None);
        }

        fn hear(&mut self, update: &Update<'_>) {
            assert!(self.it.on_stream(Ticket(self.ticket), update, self.now_ms));
        }

        fn snapshot(&mut self, links: &[(&str, u64)], state: &[u8]) {
            self.hear(&Update::Begin { number: 1 });
            for (link, kbps) in links {
                let value = format!(r#"{{"kbps":{kbps}}}"#);
                self.hear(&Update::Entry { key: link.as_bytes(), value: value.as_bytes() });
            }
            self.hear(&Update::Entry { key: STATE, value: state });
            self.hear(&Update::Complete { number: 1 });
        }

        fn end(&mut self) {
            self.hear(&Update::Ended { status: 0xff80, reason: b"it is gone" });
        }

        fn check(&mut self, changed: &[(&str, u64)], is_known: bool) {
            let changed: Vec<(LinkId, Bandwidth)> = changed
                .iter()
                .map(|(link, kbps)| (link.parse().unwrap(), Bandwidth::from_kbps(*kbps)))
                .collect();
            assert_eq!((self.it.take_changed(), self.it.is_known()), (changed, is_known));
        }
    }

    #[test]
    fn reservations_are_known_when_the_service_has_all() {
        let mut scene = Scene::new();
        scene.snapshot(&[(ONE, 5)], SOME);
        scene.check(&[(ONE, 5)], false);
        scene.hear(&Update::Put { number: 2, key: TWO.as_bytes(), value: br#"{"kbps":3}"# });
        scene.check(&[(TWO, 3)], false);
        scene.hear(&Update::Put { number: 3, key: STATE, value: ALL });
        scene.check(&[], true);
        scene.hear(&Update::Removed { number: 4, key: ONE.as_bytes() });
        scene.check(&[(ONE, 0)], true);
    }

    #[test]
    fn what_was_told_before_a_restart_of_the_service_counts_until_it_has_all_again() {
        let mut scene = Scene::new();
        scene.snapshot(&[(ONE, 5), (TWO, 3)], ALL);
        scene.check(&[(ONE, 5), (TWO, 3)], true);
        scene.end();
        scene.check(&[], true);
        assert_eq!(scene.it.next_ms(), Some(Pauses::FIRST_MS));
        scene.now_ms = Pauses::FIRST_MS;
        scene.open();
        scene.snapshot(&[], SOME);
        scene.check(&[], true);
        // More counts at once, and less when all is there. A second restart in between forgets nothing.
        scene.hear(&Update::Put { number: 2, key: TWO.as_bytes(), value: br#"{"kbps":4}"# });
        scene.check(&[(TWO, 4)], true);
        scene.end();
        scene.now_ms += 2 * Pauses::FIRST_MS;
        scene.open();
        scene.snapshot(&[(TWO, 2)], SOME);
        scene.check(&[(TWO, 4)], true);
        scene.hear(&Update::Put { number: 2, key: STATE, value: ALL });
        scene.check(&[(ONE, 0), (TWO, 2)], true);
    }

    #[test]
    fn missed_changes_come_with_the_next_snapshot() {
        let mut scene = Scene::new();
        scene.snapshot(&[(ONE, 5)], ALL);
        scene.check(&[(ONE, 5)], true);
        scene.hear(&Update::Missed { from: 2, to: 9 });
        scene.hear(&Update::Begin { number: 9 });
        scene.check(&[], true);
        scene.snapshot(&[(TWO, 1)], ALL);
        scene.check(&[(ONE, 0), (TWO, 1)], true);
    }

    #[test]
    fn trouble_is_logged_once_and_the_pause_grows() {
        let mut scene = Scene::new();
        for pause_ms in [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000] {
            scene.end();
            assert_eq!(scene.it.next_ms(), Some(scene.now_ms + pause_ms));
            scene.now_ms += pause_ms;
            scene.open();
        }
        let lines = scene.it.take_lines();
        assert!(lines.len() == 1 && lines[0].contains("it is gone"), "{lines:?}");
        assert!(scene.it.on_refused(Ticket(scene.ticket), "no such service", scene.now_ms));
        assert!(!scene.it.on_stream(Ticket(scene.ticket), &Update::Begin { number: 1 }, scene.now_ms));
        scene.now_ms += Pauses::LONGEST_MS;
        scene.open();
        scene.snapshot(&[], ALL);
        scene.end();
        assert_eq!(scene.it.next_ms(), Some(scene.now_ms + Pauses::FIRST_MS));
    }

    #[test]
    fn what_is_no_reservation_changes_nothing_and_is_logged() {
        let mut scene = Scene::new();
        scene.snapshot(&[], ALL);
        for (key, value) in [("x", r#"{"kbps":1}"#), (ONE, "{}"), (ONE, r#"{"kbps":-1}"#), ("state", "7")] {
            scene.hear(&Update::Put { number: 2, key: key.as_bytes(), value: value.as_bytes() });
            scene.it.trouble.clear();
        }
        scene.hear(&Update::Removed { number: 3, key: b"x" });
        scene.check(&[], true);
        assert_eq!(scene.it.take_lines().len(), 4);
    }
}
