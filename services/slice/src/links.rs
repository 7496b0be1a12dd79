//! Which links of a slice are up.
//!
//! ```text
//!   states of ports ─────────────────────┐
//!   service `paths` ──stream──> [ Links ] └──> changes of links
//! ```
//!
//! In: the plan, the states of physical ports, and what the service `paths` says of each link. Out: changes of links, and wishes with the bytes to
//! send. A link is up while the ports at both of its ends are live, and the service has last said that it carries frames. On a node without that
//! service, the ports alone decide. While the service is away, its last word holds: its rules stay in the switches. At first, a link is assumed to
//! carry frames, because the service has to find the network before it can say so.
//!
//! It sends nothing itself, and reads no clock.

use crate::state::SliceLinkState;
use burnet_sdk::Ticket;
use burnet_sdk::stream::{Pauses, Update};
use flow::{DatapathId, PortNo};
use paths_contract::{FollowLinks, Lack, LinkState, read_link_key};
use slicer::{End, LinkPlan, PhysicalLink, SlicePlan};
use std::collections::BTreeMap;
use view::LinkId;

/// How long a link with live ports is assumed to carry frames, if the service has never said that it does. A controller takes a port without a link
/// for one of hosts, and floods into it. With loops, such a flood does not end, and keeps the service from finding the network.
const ASSUMED_MS: u64 = 15_000;

/// The stream of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Open(Ticket),
    /// It is opened at this time. `None`: the node has no such service.
    At(Option<u64>),
}

/// A link of the slice.
#[derive(Debug)]
struct Link {
    plan: LinkPlan,
    /// One direction of it in the network.
    id: LinkId,
    is_up: bool,
    /// What the service said last. `None`: nothing yet.
    below: Option<LinkState>,
    /// What its way lacked when it last carried frames, and the log said so.
    told_lack: Option<Lack>,
    /// The service has said once that it carries frames.
    has_carried: bool,
    /// Until then, it is assumed to. `None`: no time has passed since its ports were live first.
    assumed_until_ms: Option<u64>,
}

impl Link {
    fn carries(&self, now_ms: u64) -> bool {
        let is_assumed =
            || !self.has_carried && self.assumed_until_ms.is_none_or(|until_ms| now_ms < until_ms);
        self.below.as_ref().is_some_and(|below| below.is_up) || is_assumed()
    }
}

/// Whether a link fits, for the log.
fn fits_text(link: LinkId, lack: Option<&Lack>) -> String {
    match lack {
        Some(lack) => format!("link {link} does not fit: {}", lack.text(&lack.hop.to_string())),
        None => format!("link {link} fits again"),
    }
}

/// The links of a slice, and the ports at their ends.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    /// The end at a physical port. Only ports at ends of links are here.
    ends: BTreeMap<(DatapathId, PortNo), End>,
    live: BTreeMap<End, bool>,
    has_service: bool,
    /// The time of the last call that had it.
    now_ms: u64,
    stream: Stream,
    pauses: Pauses,
    /// What was logged last: the same is not logged again until the service is there.
    trouble: String,
    lines: Vec<String>,
}

impl Links {
    /// All links are down. `id`: a link in the words of the network view.
    pub(crate) fn new(plan: &SlicePlan, has_service: bool, id: impl Fn(&PhysicalLink) -> LinkId) -> Links {
        let shown = |end: &End| plan.switches.iter().find(|it| it.datapath == end.datapath);
        let ends = plan.links.iter().flat_map(|link| [link.from, link.to]).filter_map(|end| {
            let port = shown(&end)?.ports.iter().find(|port| port.shown_as == end.port)?;
            Some(((end.datapath, port.port), end))
        });
        // Both directions of each link, in the order of the plan, which was checked.
        let directions = plan.physical_links();
        let links = plan.links.iter().zip(directions.chunks(2)).filter_map(|(link, both)| {
            let (plan, id) = (*link, id(both.first()?));
            Some(Link {
                plan,
                id,
                is_up: false,
                below: None,
                told_lack: None,
                has_carried: false,
                assumed_until_ms: None,
            })
        });
        let has_service = has_service && !plan.links.is_empty();
        Links {
            links: links.collect(),
            ends: ends.collect(),
            live: BTreeMap::new(),
            has_service,
            now_ms: 0,
            stream: Stream::At(has_service.then_some(0)),
            pauses: Pauses::default(),
            trouble: String::new(),
            lines: Vec::new(),
        }
    }

    /// A physical port is live, or is not. Returns the links that changed, and whether they are up.
    pub(crate) fn on_port(
        &mut self,
        datapath: DatapathId,
        port: PortNo,
        is_live: bool,
    ) -> Vec<(LinkPlan, bool)> {
        let Some(end) = self.ends.get(&(datapath, port)) else { return Vec::new() };
        self.live.insert(*end, is_live);
        self.changed()
    }

    /// A switch is gone, and with it all of its ports.
    pub(crate) fn on_switch_down(&mut self, datapath: DatapathId) -> Vec<(LinkPlan, bool)> {
        self.live.retain(|end, _| end.datapath != datapath);
        self.changed()
    }

    /// Whether the link at this place of the plan is up.
    pub(crate) fn is_up(&self, place: usize) -> bool {
        self.links.get(place).is_some_and(|link| link.is_up)
    }

    /// What the way of the link at this place of the plan lacks, if the link is up and does not fit.
    pub(crate) fn lack(&self, place: usize) -> Option<&Lack> {
        let link = self.links.get(place).filter(|link| link.is_up)?;
        link.below.as_ref()?.lack.as_ref()
    }

    fn changed(&mut self) -> Vec<(LinkPlan, bool)> {
        let Links { links, live, has_service, now_ms, .. } = self;
        let is_live = |end: &End| live.get(end).copied().unwrap_or(false);
        let changed = links.iter_mut().filter_map(|link| {
            let are_live = is_live(&link.plan.from) && is_live(&link.plan.to);
            let is_up = are_live && (!*has_service || link.carries(*now_ms));
            (std::mem::replace(&mut link.is_up, is_up) != is_up).then_some((link.plan, is_up))
        });
        changed.collect()
    }

    /// When the stream is to be opened. `None`: it is open, or there is none.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        match self.stream {
            Stream::Open(_) => None,
            Stream::At(at_ms) => at_ms,
        }
    }

    /// Opens the stream, if it is time. `send`: sends the payload of a call and gives its ticket. Returns the links that are no longer assumed to
    /// carry frames.
    pub(crate) fn on_time(
        &mut self,
        slice: &str,
        now_ms: u64,
        send: impl FnOnce(&[u8]) -> Ticket,
    ) -> Vec<(LinkPlan, bool)> {
        self.now_ms = now_ms;
        for link in self.links.iter_mut().filter(|link| link.is_up) {
            link.assumed_until_ms.get_or_insert(now_ms.saturating_add(ASSUMED_MS));
        }
        if self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let follow = FollowLinks { links_of: slice.to_owned() };
            self.stream = Stream::Open(send(&follow.to_bytes()));
        }
        self.changed()
    }

    /// The kernel refused a call. Returns whether it was that of the stream.
    pub(crate) fn on_refused(&mut self, ticket: Ticket, why: &str, now_ms: u64) -> bool {
        let is_its = self.stream == Stream::Open(ticket);
        if is_its {
            self.fail(why, now_ms);
        }
        is_its
    }

    fn fail(&mut self, why: &str, now_ms: u64) {
        if self.trouble != why {
            self.lines.push(format!("the links of the slice are as they were last: {why}"));
            why.clone_into(&mut self.trouble);
        }
        self.stream = Stream::At(Some(self.pauses.after_failure(now_ms)));
    }

    /// An update of a stream. `None`: it is another stream. Else the links that changed, and whether they are up.
    pub(crate) fn on_stream(
        &mut self,
        stream: Ticket,
        update: &Update<'_>,
        now_ms: u64,
    ) -> Option<Vec<(LinkPlan, bool)>> {
        if self.stream != Stream::Open(stream) {
            return None;
        }
        match *update {
            Update::Begin { .. } => {
                self.pauses.on_answer();
                if !std::mem::take(&mut self.trouble).is_empty() {
                    self.lines.push("the service paths answers again".to_owned());
                }
            }
            Update::Entry { key, value } | Update::Put { key, value, .. } => self.note(key, value),
            Update::Ended { status, reason } => {
                let why = match reason {
                    [] => format!("the service paths is away (status {status:#x})"),
                    why => format!("the service paths says: {}", String::from_utf8_lossy(why)),
                };
                self.fail(&why, now_ms);
            }
            // A new process of the service has said nothing of a link until it knows the network: the last word holds.
            Update::Complete { .. } | Update::Removed { .. } | Update::Missed { .. } => {}
        }
        Some(self.changed())
    }

    fn note(&mut self, key: &[u8], value: &[u8]) {
        let Some((_, id)) = read_link_key(key) else { return };
        let link = self.links.iter_mut().find(|link| link.id == id);
        match (link, LinkState::from_bytes(value)) {
            (Some(link), Ok(state)) => {
                link.has_carried |= state.is_up;
                let hop = |lack: Option<Lack>| lack.map(|lack| lack.hop);
                // Other numbers of the same hop are not worth a line, and a link that is down lacks more than bandwidth.
                if state.is_up && hop(state.lack) != hop(link.told_lack) {
                    self.lines.push(fits_text(link.id, state.lack.as_ref()));
                    link.told_lack = state.lack;
                }
                link.below = Some(state);
            }
            (Some(_), Err(why)) => self.lines.push(why),
            // The other direction has the same state.
            (None, _) => {}
        }
    }

    /// Lines for the log.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// All links, for operators.
    pub(crate) fn states(&self) -> Vec<SliceLinkState> {
        let state = |link: &Link| {
            let LinkState { hops, why, lack, .. } = link.below.clone().unwrap_or_default();
            let lack = lack.filter(|_| link.is_up);
            SliceLinkState { link: link.id, is_up: link.is_up, hops, why, lack }
        };
        self.links.iter().map(state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::link_id;
    use slicer::{Isolation, Limits, Numbers, PortPlan, SwitchPlan};

    fn end(datapath: u64, port: u32) -> End {
        End { datapath: DatapathId(datapath), port: PortNo(port) }
    }

    const LINK: fn() -> LinkPlan = || LinkPlan { from: end(1, 1), to: end(2, 1) };

    /// A link between the ports 7 of two switches, which the tenant sees as the ports 1.
    fn links(has_service: bool) -> Links {
        let port = PortPlan { port: PortNo(7), shown_as: PortNo(1), is_edge: false };
        let switch = |datapath| SwitchPlan {
            datapath: DatapathId(datapath),
            shown_as: DatapathId(datapath),
            ports: vec![port],
        };
        let plan = SlicePlan {
            name: "blue".to_owned(),
            isolation: Isolation::Vlan(7),
            is_read_only: false,
            switches: vec![switch(1), switch(2)],
            links: vec![LINK()],
            limits: Limits::default(),
            numbers: Numbers::NONE,
        };
        Links::new(&plan, has_service, link_id)
    }

    #[test]
    fn a_link_is_up_while_both_ports_are_live() {
        let (mut links, link) = (links(false), LINK());
        assert_eq!(links.next_ms(), None, "there is no service to ask");
        let mut at = |datapath, port, is_live| links.on_port(DatapathId(datapath), PortNo(port), is_live);
        assert_eq!(at(1, 7, true), []);
        assert_eq!(at(2, 1, true), [], "the physical port is another");
        assert_eq!(at(2, 7, true), [(link, true)]);
        assert_eq!(at(2, 7, true), []);
        assert_eq!(at(1, 7, false), [(link, false)]);
        assert_eq!(at(1, 7, true), [(link, true)]);
        assert_eq!(links.on_switch_down(DatapathId(2)), [(link, false)]);
        assert_eq!(links.on_port(DatapathId(1), PortNo(7), true), []);
    }

    #[test]
    fn with_the_service_a_link_is_up_while_it_says_so_too_and_its_last_word_holds_while_it_is_away() {
        let (mut links, link) = (links(true), LINK());
        assert_eq!(links.on_port(DatapathId(1), PortNo(7), true), []);
        assert_eq!(links.on_port(DatapathId(2), PortNo(7), true), [(link, true)], "nothing was said yet");
        let changed = links.on_time("blue", 0, |payload| {
            assert_eq!(FollowLinks::from_bytes(payload).unwrap().links_of, "blue");
            Ticket(5)
        });
        assert_eq!(changed, []);
        assert_eq!(links.next_ms(), None);
        let (key, back) = (b"blue 1/7-2/7", b"blue 2/7-1/7");
        let state = |is_up| LinkState { is_up, ..LinkState::default() }.to_bytes();
        let mut hear = |stream, update: Update<'_>| links.on_stream(Ticket(stream), &update, 1_000);
        assert_eq!(hear(6, Update::Entry { key, value: &state(true) }), None, "it is another stream");
        assert_eq!(hear(5, Update::Entry { key, value: &state(true) }), Some(vec![]), "as was assumed");
        assert_eq!(hear(5, Update::Entry { key: back, value: &state(true) }), Some(vec![]));
        assert_eq!(hear(5, Update::Put { key, value: &state(false), number: 1 }), Some(vec![(link, false)]));
        assert_eq!(hear(5, Update::Put { key, value: &state(true), number: 2 }), Some(vec![(link, true)]));
        assert_eq!(hear(5, Update::Put { key, value: b"?", number: 3 }), Some(vec![]));
        assert_eq!(hear(5, Update::Ended { status: 9, reason: b"" }), Some(vec![]), "its last word holds");
        assert_eq!(links.next_ms(), Some(1_000 + Pauses::FIRST_MS));
        links.on_time("blue", 2_000, |_| Ticket(8));
        assert!(links.on_refused(Ticket(8), "no", 2_000) && !links.on_refused(Ticket(8), "no", 2_000));
        assert_eq!(links.next_ms(), Some(2_000 + 2 * Pauses::FIRST_MS));
        assert_eq!(links.take_lines().len(), 3, "what cannot be read, away, no");
        assert_eq!(links.on_port(DatapathId(1), PortNo(7), false), [(link, false)]);
    }

    #[test]
    fn a_link_that_never_carried_frames_goes_down_after_some_time() {
        let (mut links, link) = (links(true), LINK());
        for datapath in [1, 2] {
            links.on_port(DatapathId(datapath), PortNo(7), true);
        }
        links.on_time("blue", 1_000, |_| Ticket(5));
        let state = |is_up| LinkState { is_up, ..LinkState::default() }.to_bytes();
        let key = b"blue 1/7-2/7";
        let down = Update::Entry { key, value: &state(false) };
        assert_eq!(links.on_stream(Ticket(5), &down, 2_000), Some(vec![]), "it may not know the network yet");
        let mut at = |now_ms| links.on_time("blue", now_ms, |_| Ticket(6));
        assert_eq!(at(1_000 + ASSUMED_MS - 1), []);
        assert_eq!(at(1_000 + ASSUMED_MS), [(link, false)]);
        let up = Update::Put { key, value: &state(true), number: 1 };
        assert_eq!(links.on_stream(Ticket(5), &up, 20_000), Some(vec![(link, true)]));
        let down = Update::Put { key, value: &state(false), number: 2 };
        assert_eq!(links.on_stream(Ticket(5), &down, 20_001), Some(vec![(link, false)]), "now it does");
    }
}
