//! What a slice and the service `labels` say to each other: flows and shown links there, labels back.
//!
//! ```text
//!   FlowChange ──say──> Reporter ──Wish::Report──> labels ──on_reply──> next report, again, or all that there is
//!   Wish::Follow ──> labels ──on_stream──> labels of links, by the ports that send into them
//! ```
//!
//! In: changes of flows, answers, updates of the stream, and the time. Out: wishes with the bytes to send, and labels. It sends nothing itself, and
//! reads no clock. If the service is away, it asks again, at least every 8 s, and the labels are stale.

use burnet_sdk::Ticket;
use burnet_sdk::stream::{Pauses, Update};
use flow::{DatapathId, PortNo};
use labels_contract::{
    Entry, Follow, Heard, Label, Next, Question, Reporter, STATE_KEY, State, TimedLabel, status,
};
use slicer::{FlowChange, PhysicalLink};
use std::collections::{BTreeMap, BTreeSet};
use view::{ConnectPoint, LinkId};

/// How long after its start a process says that it has reported all flows. Until then the controllers add their rules again, and the flows of an earlier process
/// count.
const SETTLE_MS: u64 = 5_000;

/// Something to send to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A question.
    Report(Vec<u8>),
    /// A stream.
    Follow(Vec<u8>),
}

/// A label of a link, at the port that sends into it. `None`: it has none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortLabel {
    pub(crate) datapath: DatapathId,
    /// The port of the physical switch.
    pub(crate) port: PortNo,
    pub(crate) label: Option<Label>,
}

/// A call of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    UnderWay(Ticket),
    /// The next one, at this time. `None`: there is nothing to say.
    Next(Option<u64>),
}

/// The slice's side of the service `labels`.
#[derive(Debug)]
pub(crate) struct Labels {
    slice: String,
    /// The links that the slice shows to its tenant.
    links: BTreeSet<LinkId>,
    reporter: Reporter,
    report: Call,
    stream: Call,
    is_settled: bool,
    pauses: Pauses,
    /// The labels, as the stream told them.
    known: BTreeMap<LinkId, TimedLabel>,
    /// The links of a snapshot that is not complete.
    snapshot: Option<BTreeSet<LinkId>>,
    is_stale: bool,
    /// The agents of the slice's VNICs that are there, if the service has said so since they were last taken.
    agents: Option<Vec<u32>>,
    /// Lines for the log.
    lines: Vec<String>,
    /// What was logged last: the same is not logged again until the service is there.
    trouble: String,
}

/// A link in the words of the network view.
pub fn link_id(link: &PhysicalLink) -> LinkId {
    LinkId {
        from: ConnectPoint { switch: link.from, port: link.from_port },
        to: ConnectPoint { switch: link.to, port: link.to_port },
    }
}

/// What a report says of a flow.
pub fn entry_of(change: FlowChange) -> Entry {
    let FlowChange { from, to, path } = change;
    match path {
        Some(path) => {
            Entry::Path { from, to, links: path.links.iter().map(link_id).collect(), rules: path.rules }
        }
        None => Entry::NoPath { from, to },
    }
}

impl Labels {
    /// The labels of a slice that shows these links. `session`: greater than that of each earlier process of the slice.
    pub(crate) fn new(slice: &str, session: u64, links: impl IntoIterator<Item = LinkId>) -> Labels {
        let mut labels = Labels {
            slice: slice.to_owned(),
            links: links.into_iter().collect(),
            reporter: Reporter::new(slice, session),
            report: Call::Next(Some(0)),
            stream: Call::Next(Some(0)),
            is_settled: false,
            pauses: Pauses::default(),
            known: BTreeMap::new(),
            snapshot: None,
            is_stale: true,
            agents: None,
            lines: Vec::new(),
            trouble: String::new(),
        };
        labels.reporter.hold(true);
        labels.links.iter().for_each(|link| labels.reporter.say(Entry::Link { link: *link }));
        labels
    }

    /// A flow has another path.
    pub(crate) fn say(&mut self, change: FlowChange) {
        self.reporter.say(entry_of(change));
        if self.report == Call::Next(None) {
            self.report = Call::Next(Some(0));
        }
    }

    /// Whether the labels may be too high, because the service does not know all flows or is away.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The agents of the slice's VNICs that are there, if the service has said so since the last call.
    pub(crate) fn take_agents(&mut self) -> Option<Vec<u32>> {
        self.agents.take()
    }

    /// The known labels.
    pub(crate) fn known(&self) -> impl Iterator<Item = &TimedLabel> {
        self.known.values()
    }

    /// Lines for the log.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// When something is due. `None`: after an answer, or when there is something to say.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let due = |call: Call| match call {
            Call::Next(at_ms) => at_ms,
            Call::UnderWay(_) => None,
        };
        let settles = (!self.is_settled).then_some(SETTLE_MS);
        [due(self.report), due(self.stream), settles].into_iter().flatten().min()
    }

    /// Sends what is due. The time is that since the start of the process. `all`: the flows as they were told; `send`: sends a wish and gives its ticket.
    pub(crate) fn on_time(
        &mut self,
        now_ms: u64,
        all: impl FnOnce() -> Vec<FlowChange>,
        mut send: impl FnMut(Wish) -> Ticket,
    ) {
        if !self.is_settled && now_ms >= SETTLE_MS {
            self.is_settled = true;
            self.reporter.hold(false);
            if self.report == Call::Next(None) {
                self.report = Call::Next(Some(now_ms));
            }
        }
        let is_due = |call: Call| matches!(call, Call::Next(Some(at_ms)) if at_ms <= now_ms);
        if is_due(self.stream) {
            let follow = Follow { slice: self.slice.clone() };
            self.stream = Call::UnderWay(send(Wish::Follow(follow.to_bytes())));
        }
        if !is_due(self.report) {
            return;
        }
        if self.reporter.is_overrun() {
            self.begin_again(all());
        }
        let report = self.reporter.again().cloned().or_else(|| self.reporter.next_report());
        self.report = match report {
            Some(report) => Call::UnderWay(send(Wish::Report(Question::Report(report).to_bytes()))),
            None => Call::Next(None),
        };
    }

    fn begin_again(&mut self, all: Vec<FlowChange>) {
        let links: Vec<Entry> = self.links.iter().map(|link| Entry::Link { link: *link }).collect();
        self.reporter.rebuild(links.into_iter().chain(all.into_iter().map(entry_of)));
    }

    /// An answer to a call. `all`: the flows as they were told. Returns whether the call was one of these.
    pub(crate) fn on_reply(
        &mut self,
        ticket: Ticket,
        answer: Result<&[u8], (u16, &[u8])>,
        now_ms: u64,
        all: impl FnOnce() -> Vec<FlowChange>,
    ) -> bool {
        if self.report != Call::UnderWay(ticket) {
            return false;
        }
        let heard = match answer {
            Ok(payload) => serde_json::from_slice::<Heard>(payload).map_err(|error| error.to_string()),
            Err((status, why)) => Err(reason(status, why)),
        };
        match heard {
            Ok(heard) => {
                self.note_refused(&heard);
                self.succeed();
                if self.reporter.on_heard(&heard) == Next::Rebuild {
                    self.begin_again(all());
                }
                self.report = Call::Next(Some(now_ms));
            }
            Err(why) => self.report = Call::Next(Some(self.fail(now_ms, &why))),
        }
        true
    }

    fn note_refused(&mut self, heard: &Heard) {
        let why = heard.refused.iter().map(|refused| format!("a flow or link was refused: {}", refused.why));
        self.lines.extend(why);
    }

    /// The kernel refused a call. Returns whether it was one of these.
    pub(crate) fn on_refused(&mut self, ticket: Ticket, why: &str, now_ms: u64) -> bool {
        let is_report = self.report == Call::UnderWay(ticket);
        if !is_report && self.stream != Call::UnderWay(ticket) {
            return false;
        }
        let again = Call::Next(Some(self.fail(now_ms, why)));
        if is_report {
            self.report = again;
        } else {
            self.stream = again;
        }
        true
    }

    fn succeed(&mut self) {
        self.pauses.on_answer();
        if !std::mem::take(&mut self.trouble).is_empty() {
            self.lines.push("the service of labels answers again".to_owned());
        }
    }

    /// Returns when to try again.
    fn fail(&mut self, now_ms: u64, why: &str) -> u64 {
        if self.trouble != why {
            self.lines.push(format!("labels are stale: {why}"));
            why.clone_into(&mut self.trouble);
        }
        self.pauses.after_failure(now_ms)
    }

    /// An update of a stream. Returns whether the stream is this one. Labels that changed are appended to `out`.
    pub(crate) fn on_stream(
        &mut self,
        stream: Ticket,
        update: &Update<'_>,
        now_ms: u64,
        out: &mut Vec<PortLabel>,
    ) -> bool {
        if self.stream != Call::UnderWay(stream) {
            return false;
        }
        match *update {
            Update::Begin { .. } => {
                self.snapshot = Some(BTreeSet::new());
                // The service may be another process. Its answer says whether it has all.
                self.ask(now_ms);
            }
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                self.note(key, value, now_ms, out)
            }
            Update::Removed { key, .. } => {
                if let Some(link) = link_of(key) {
                    self.set(link, None, out);
                }
            }
            Update::Complete { .. } => self.drop_others(out),
            Update::Missed { .. } => {}
            Update::Ended { status, reason: why } => {
                self.is_stale = true;
                self.snapshot = None;
                self.stream = Call::Next(Some(self.fail(now_ms, &reason(status, why))));
            }
        }
        true
    }

    /// Has a report sent, if none is under way.
    fn ask(&mut self, now_ms: u64) {
        if matches!(self.report, Call::Next(_)) {
            // If nothing waits, the report is empty, and `again` has it.
            let _report = self.reporter.ask();
            self.report = Call::Next(Some(now_ms));
        }
    }

    fn note(&mut self, key: &[u8], value: &[u8], now_ms: u64, out: &mut Vec<PortLabel>) {
        if key == STATE_KEY.as_bytes() {
            if let Ok(State { stale, rebuild, agents }) = serde_json::from_slice(value) {
                self.is_stale = stale;
                self.agents = Some(agents);
                if rebuild {
                    self.ask(now_ms);
                }
            }
            return;
        }
        if let (Some(link), Ok(label)) = (link_of(key), serde_json::from_slice::<TimedLabel>(value)) {
            if let Some(snapshot) = &mut self.snapshot {
                snapshot.insert(link);
            }
            self.set(link, Some(label), out);
        }
    }

    fn drop_others(&mut self, out: &mut Vec<PortLabel>) {
        let Some(there) = self.snapshot.take() else { return };
        let gone: Vec<LinkId> = self.known.keys().copied().filter(|link| !there.contains(link)).collect();
        gone.into_iter().for_each(|link| self.set(link, None, out));
    }

    /// Links that the slice does not show have no label here.
    fn set(&mut self, link: LinkId, label: Option<TimedLabel>, out: &mut Vec<PortLabel>) {
        let before = match label.filter(|_| self.links.contains(&link)) {
            Some(label) => self.known.insert(link, label),
            None => self.known.remove(&link),
        };
        let label = self.known.get(&link).map(|known| known.label);
        if before.map(|before| before.label) != label {
            out.push(PortLabel { datapath: link.from.switch, port: link.from.port, label });
        }
    }
}

fn link_of(key: &[u8]) -> Option<LinkId> {
    std::str::from_utf8(key).ok()?.parse().ok()
}

fn reason(status: u16, why: &[u8]) -> String {
    let why = String::from_utf8_lossy(why);
    match (status, why.is_empty()) {
        (status::OUTDATED, _) => "a later process of this slice reports its flows".to_owned(),
        (_, true) => format!("the service of labels is away (status {status:#x})"),
        (_, false) => format!("the service of labels says: {why}"),
    }
}

#[cfg(test)]
mod tests;
