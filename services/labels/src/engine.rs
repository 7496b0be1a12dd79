//! What the service decides: which flows count, and who is told which label when.
//!
//! ```text
//!   put, remove ─────────┐
//!   on_link, on_reserved ┤    slices, links, words          ┌──> Effect::Told: a label, to its slice
//!   on_report ───────────┼──> FlowSums (hose::Flows) ───────┤
//!   on_agent, on_words ──┤    hose::Notices: damping        ├──> Effect::State: stale, or to begin again
//!   on_time ─────────────┘    Caps: overbooked links        ├──> Effect::Cap: what a flow may send, to its sender's agent
//!                                                           └──> Heard, the answer to a report
//! ```
//!
//! In: events, with the time in milliseconds as an argument. Out: effects. It sends nothing and reads no clock. A slice receives labels of its own links
//! only, and never who uses them.

mod virtual_links;

use crate::caps::{Caps, Rebuilding};
use crate::flow_sums::FlowSums;
use crate::links::LINKS_MAX;
use crate::slices::{Slice, Slices, Stage, Turn};
use crate::words::{Word, Words};
use hose::{BANDWIDTH_MAX, Bandwidth, LinkNo, Notices, Pair, SliceNo, VnicNo};
use labels_contract::{
    Counts, Entry, Flow, Heard, Hose, Label, RefusedEntry, Report, Standing, State, status,
};
use std::collections::{BTreeMap, BTreeSet};
use view::LinkId;

/// The most refused entries that an answer names. All are counted.
const REFUSED_MAX: usize = 8;

/// The time of a word that holds until the next one.
const UNTIL_NEXT_WORD_MS: u64 = u64::MAX;

/// What the shell does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A slice is told a label. None: the link has none, or the slice no longer shows it.
    Told {
        /// The slice.
        slice: String,
        /// The link.
        link: LinkId,
        /// Its label.
        label: Option<Label>,
    },
    /// A slice is told what holds for all its labels.
    State {
        /// The slice.
        slice: String,
        /// What holds.
        state: State,
    },
    /// A slice is gone.
    Gone {
        /// The slice.
        slice: String,
    },
    /// An agent is told what a flow of one of its VNICs may send.
    Cap {
        /// The agent of the sender.
        agent: u32,
        /// The sender, by its number among agents.
        from: u32,
        /// The receiver.
        to: u32,
        /// The cap in bit/s. None: it has none any more.
        rate_bps: Option<u64>,
    },
    /// All caps are repeated, and an agent has none.
    NoCaps {
        /// The agent.
        agent: u32,
    },
}

/// A refusal: the status and a sentence for the caller.
pub type Refused = (u16, String);

/// A virtual link that its slice shows, while it has hops.
#[derive(Clone, Debug, Default)]
struct Over {
    hops: Vec<LinkNo>,
    told: Option<Label>,
}

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    slices: Slices,
    sums: FlowSums,
    notices: Notices,
    words: Words,
    caps: Caps,
    /// Agents are told no caps yet: those of an earlier process hold.
    rebuilding: Option<Rebuilding>,
    /// The virtual links that each slice shows, while they have hops.
    over: BTreeMap<SliceNo, BTreeMap<LinkId, Over>>,
    /// What each slice was told last of its state.
    states: BTreeMap<SliceNo, State>,
    /// Links whose capacity may be too high. Further ones than [`LINKS_MAX`] have no labels.
    stale: BTreeSet<LinkId>,
    /// What intents reserve is not known yet: labels may be too high.
    waits_for_intents: bool,
    /// A state may differ.
    is_state_due: bool,
    changed: Vec<LinkNo>,
    counts: Counts,
}

impl Engine {
    /// The process of the service begins. What an earlier one has told agents holds until slices and agents have reported.
    pub fn begin(&mut self, now_ms: u64) {
        self.rebuilding = Some(Rebuilding::new(now_ms));
    }

    /// A slice is promised this from now on. It has not reported yet, unless it was there before.
    ///
    /// # Errors
    /// There are too many slices, or a rate is too great. In the second case, earlier VNICs of the list have their rates.
    pub fn put(
        &mut self,
        name: &str,
        hose: &Hose,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let full = || (status::FULL, format!("slice {name}: there are as many slices as can be"));
        let (slice, gone) = self.slices.put(name, hose).ok_or_else(full)?;
        for vnic in gone {
            self.remove_vnic(slice, vnic);
        }
        self.drop_forbidden_links(slice, out);
        self.is_state_due = true;
        let done = self.promise(slice, hose, now_ms);
        self.settle(now_ms, out);
        done.map_err(|why| (status::BAD_QUESTION, format!("slice {name}: {why}")))
    }

    fn promise(&mut self, slice: SliceNo, hose: &Hose, now_ms: u64) -> Result<(), String> {
        let Some(known) = self.slices.get(slice) else { return Ok(()) };
        self.words.put(slice, hose, |name| known.vnic(name));
        let metered = self.words.metered(slice);
        let step = hose.step_percent.map(|step| format!("{step}%").parse().map_err(|why| format!("{why}")));
        let flows = &mut self.sums.flows;
        flows.labels_mut().set_step(slice, step.transpose()?).map_err(|why| why.to_string())?;
        for (name, promised) in &hose.vnics {
            let Some(vnic) = known.vnic(name) else { continue };
            let rate = Bandwidth::from_bps(promised.rate_bps);
            let done = flows
                .put_vnic(slice, vnic, rate)
                .and_then(|()| flows.set_metered(slice, vnic, metered.contains(&vnic), now_ms));
            done.map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    /// What a slice may use no more, it does not show and has no flows over.
    fn drop_forbidden_links(&mut self, slice: SliceNo, out: &mut Vec<Effect>) {
        let Some(known) = self.slices.get(slice) else { return };
        let is_forbidden = |link: &LinkNo| self.sums.links.id(*link).is_some_and(|id| !known.may_use(id));
        let shown: Vec<LinkNo> = known.shown.iter().copied().filter(is_forbidden).collect();
        let flows = self.sums.flows.flows(slice);
        let is_over = |flow: &hose::Flow<'_>| match self.sums.reported(flow.pair) {
            Some(links) => links.iter().any(|link| !known.may_use(*link)),
            None => flow.links.iter().any(is_forbidden),
        };
        let over: Vec<Pair> = flows.filter(is_over).map(|flow| flow.pair).collect();
        shown.into_iter().for_each(|link| self.hide(slice, link, out));
        over.into_iter().for_each(|pair| self.sums.remove_path(pair));
    }

    /// There is no such slice any more.
    ///
    /// # Errors
    /// There was none.
    pub fn remove(&mut self, name: &str, now_ms: u64, out: &mut Vec<Effect>) -> Result<(), Refused> {
        let (slice, known) = self.slices.remove(name).ok_or_else(|| not_found(name))?;
        for pair in self.sums.pairs(slice) {
            self.sums.remove_path(pair);
        }
        known.shown.iter().for_each(|link| self.sums.links.release(*link));
        self.forget_hops(slice);
        self.notices.remove_slice(slice);
        self.sums.flows.remove_slice(slice);
        self.words.forget(slice);
        self.states.remove(&slice);
        self.is_state_due = true;
        out.push(Effect::Gone { slice: known.name.as_str().to_owned() });
        self.settle(now_ms, out);
        Ok(())
    }

    /// Whether the capacity of a link may be too high, because it is a stale label of an outer node. It is told with what happens next.
    pub fn on_stale_capacity(&mut self, link: LinkId, is_stale: bool) {
        let has_room = self.stale.len() < LINKS_MAX;
        let is_new = if is_stale { has_room && self.stale.insert(link) } else { self.stale.remove(&link) };
        self.is_state_due |= is_new;
    }

    /// The view has a link with this capacity (0: not known), or has it no more.
    pub fn on_link(&mut self, link: LinkId, capacity: Option<Bandwidth>, now_ms: u64, out: &mut Vec<Effect>) {
        let number = match capacity {
            Some(_) => self.sums.links.put(link),
            None => self.sums.links.number(link),
        };
        let Some(number) = number else { return };
        let capacity_now = capacity.unwrap_or_default().min(BANDWIDTH_MAX);
        let labels = self.sums.flows.labels_mut();
        let before = labels.capacity(number).unwrap_or_default();
        // Both bounds hold.
        let _known = labels.set_capacity(number, capacity_now);
        if before != capacity_now {
            // The network is another one: slices that show the link are told at once.
            let shows = |(slice, known): (SliceNo, &Slice)| known.shown.contains(&number).then_some(slice);
            let slices: Vec<SliceNo> = self.slices.iter().filter_map(shows).collect();
            slices.into_iter().for_each(|slice| self.watch(slice, number, now_ms, out));
            self.on_hop_capacity(number, now_ms, out);
        }
        match capacity {
            Some(_) => self.sums.book(link),
            None => drop(self.sums.links.remove(link)),
        }
        self.settle(now_ms, out);
    }

    /// Intents reserve so much of each of these links from now on. It counts like the flows of one more slice. `waits`: what they reserve is not known yet.
    pub fn on_reserved(
        &mut self,
        links: &[(LinkId, Bandwidth)],
        waits: bool,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        links.iter().for_each(|(link, bandwidth)| self.sums.reserve(*link, *bandwidth));
        self.is_state_due |= std::mem::replace(&mut self.waits_for_intents, waits) != waits;
        self.settle(now_ms, out);
    }

    /// Whether what intents reserve is not known yet.
    pub fn waits_for_intents(&self) -> bool {
        self.waits_for_intents
    }

    /// A slice reports.
    ///
    /// # Errors
    /// There is no such slice, or a later process of it reports.
    pub fn on_report(
        &mut self,
        report: &Report,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Result<Heard, Refused> {
        let slice = self.slices.number(&report.slice).ok_or_else(|| not_found(&report.slice))?;
        self.sums.flows.expect(slice);
        let known = self.slices.get_mut(slice).ok_or_else(|| not_found(&report.slice))?;
        let turn = known.turn(report);
        let heard = known.heard();
        match turn {
            Turn::Next => {}
            Turn::Repeated => self.counts.repeated += 1,
            Turn::Early => self.counts.early += 1,
            Turn::Rebuild => return Ok(Heard { rebuild: true, ..heard }),
            Turn::Outdated => {
                let why = format!("slice {}: a later process of it reports", report.slice);
                return Err((status::OUTDATED, why));
            }
        }
        if turn != Turn::Next {
            return Ok(heard);
        }
        self.counts.reports += 1;
        let refused = self.take_entries(slice, &report.entries, now_ms, out);
        self.is_state_due |= report.reset;
        if !report.more {
            self.complete(slice, out);
        }
        self.settle(now_ms, out);
        Ok(Heard { refused, ..heard })
    }

    fn take_entries(
        &mut self,
        slice: SliceNo,
        entries: &[Entry],
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Vec<RefusedEntry> {
        let mut refused = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            if let Err(why) = self.on_entry(slice, entry, now_ms, out) {
                self.counts.refused += 1;
                if refused.len() < REFUSED_MAX {
                    refused.push(RefusedEntry { at, why });
                }
            }
        }
        refused
    }

    fn on_entry(
        &mut self,
        slice: SliceNo,
        entry: &Entry,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Result<(), String> {
        match entry {
            Entry::Path { from, to, links, rules } => {
                let pair = self.pair(slice, from, to)?;
                if let Some(foreign) = self.forbidden(slice, links) {
                    self.sums.remove_path(pair);
                    return Err(foreign);
                }
                self.sums.put_path(pair, links, *rules)?;
                self.confirm(slice, |pairs, _| pairs.insert((pair.source, pair.destination)));
                if self.words.lives(pair) {
                    self.sums.flows.on_traffic(pair, UNTIL_NEXT_WORD_MS);
                }
            }
            Entry::NoPath { from, to } => {
                let pair = self.pair(slice, from, to)?;
                self.sums.remove_path(pair);
            }
            Entry::Link { link } => {
                self.forbidden(slice, &[*link]).map_or(Ok(()), Err)?;
                let number = self.show(slice, *link, now_ms, out)?;
                self.confirm(slice, |_, links| links.insert(number));
            }
            Entry::NoLink { link } => {
                if let Some(number) = self.sums.links.number(*link) {
                    self.hide(slice, number, out);
                }
            }
        }
        Ok(())
    }

    fn pair(&self, slice: SliceNo, from: &str, to: &str) -> Result<Pair, String> {
        let vnic = |name: &str| {
            let found = self.slices.get(slice).and_then(|slice| slice.vnic(name));
            found.ok_or_else(|| format!("the slice has no VNIC {name}"))
        };
        let (source, destination) = (vnic(from)?, vnic(to)?);
        Ok(Pair { slice, source, destination })
    }

    fn forbidden(&self, slice: SliceNo, links: &[LinkId]) -> Option<String> {
        let known = self.slices.get(slice)?;
        let foreign = links.iter().find(|link| !known.may_use(**link))?;
        Some(format!("link {foreign} is not the slice's"))
    }

    /// Notes what a slice reports again while it reports all that it has.
    fn confirm(
        &mut self,
        slice: SliceNo,
        note: impl FnOnce(&mut BTreeSet<(VnicNo, VnicNo)>, &mut BTreeSet<LinkNo>) -> bool,
    ) {
        let stage = self.slices.get_mut(slice).map(|known| &mut known.stage);
        if let Some(Stage::Rebuilding(pairs, links)) = stage {
            note(pairs, links);
        }
    }

    /// A slice has reported all that it has: what it did not report again is void.
    fn complete(&mut self, slice: SliceNo, out: &mut Vec<Effect>) {
        let Some(known) = self.slices.get_mut(slice) else { return };
        let Stage::Rebuilding(pairs, links) = std::mem::take(&mut known.stage) else {
            return self.slices.complete(slice);
        };
        let hidden: Vec<LinkNo> = known.shown.difference(&links).copied().collect();
        let is_void = |pair: &Pair| !pairs.contains(&(pair.source, pair.destination));
        self.sums.pairs(slice).into_iter().filter(is_void).for_each(|pair| self.sums.remove_path(pair));
        hidden.into_iter().for_each(|link| self.hide(slice, link, out));
        self.slices.complete(slice);
        self.counts.rebuilds += 1;
        self.is_state_due = true;
    }

    /// An agent is there, or is gone: its VNICs are metered, or are not.
    pub fn on_agent(&mut self, agent: u32, is_there: bool, now_ms: u64, out: &mut Vec<Effect>) {
        for (slice, vnic) in self.words.set_agent(agent, is_there) {
            // A VNIC that the slice has no more has no meter.
            let _gone = self.sums.flows.set_metered(slice, vnic, is_there, now_ms);
        }
        self.is_state_due = true;
        self.settle(now_ms, out);
    }

    /// An agent reports these words, in order. Returns those that it may not say.
    pub fn on_words(&mut self, agent: u32, words: &[Word], now_ms: u64, out: &mut Vec<Effect>) -> Vec<Word> {
        let refused = words.iter().filter(|word| !self.on_word(agent, **word, now_ms)).copied().collect();
        // Once for all: what is void and said again has not changed.
        self.settle(now_ms, out);
        refused
    }

    fn on_word(&mut self, agent: u32, word: Word, now_ms: u64) -> bool {
        let (from, to) = match word {
            Word::Reset => {
                self.words.reset(agent).into_iter().for_each(|pair| self.sums.flows.on_silence(pair));
                return true;
            }
            Word::Lives(from, to) | Word::Silent(from, to) | Word::Shaped(from, to) => (from, to),
        };
        let is_of_sender = matches!(word, Word::Shaped(..));
        let Some(pair) = self.words.pair(agent, from, to, is_of_sender) else { return false };
        let counts = match word {
            Word::Shaped(..) => self.words.set_shaped(agent, pair),
            Word::Silent(..) => {
                self.words.set_silent(agent, pair);
                self.sums.flows.on_silence(pair);
                false
            }
            _ => self.words.set_live(agent, pair, from, now_ms),
        };
        if counts {
            self.sums.flows.on_traffic(pair, UNTIL_NEXT_WORD_MS);
        }
        true
    }

    /// The agent of a VNIC, by its number among agents.
    pub fn agent_of(&self, vnic: u32) -> Option<u32> {
        self.words.agent_of(vnic)
    }

    /// Time has passed.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        for pair in self.words.unhold(now_ms) {
            self.sums.flows.on_traffic(pair, UNTIL_NEXT_WORD_MS);
        }
        self.sums.flows.on_time(now_ms);
        self.settle(now_ms, out);
    }

    /// When it wants [`Engine::on_time`] again.
    pub fn next_due_ms(&self) -> Option<u64> {
        let caps_ms = match &self.rebuilding {
            Some(rebuilding) => Some(rebuilding.until_ms()),
            None => self.caps.next_ms(self.words.has_agents()),
        };
        let all = [self.sums.flows.next_ms(), self.notices.next_ms(), self.words.next_ms(), caps_ms];
        all.into_iter().flatten().min()
    }

    /// The labels of a slice as they are now, which can differ from what it was told by less than the damping allows.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn labels(&self, name: &str) -> Result<Vec<Label>, Refused> {
        let (slice, known) = self.slice(name)?;
        Ok(known.shown.iter().filter_map(|link| self.label(slice, *link)).collect())
    }

    /// The flows of a slice, without what meters measured.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn flows(&self, name: &str) -> Result<Vec<Flow>, Refused> {
        let (slice, known) = self.slice(name)?;
        let flow = |flow: hose::Flow<'_>| Flow {
            from: known.vnic_name(flow.pair.source).to_owned(),
            to: known.vnic_name(flow.pair.destination).to_owned(),
            links: flow.links.iter().filter_map(|link| self.sums.links.id(*link)).collect(),
            rules: flow.rules,
            counts: flow.counts,
            rate_bps: flow.rate.bps(),
            // Without an agent of the sender, nobody was told.
            cap_bps: self.caps.of(flow.pair).filter(|_| self.words.numbers(flow.pair).is_some()),
            measured_bps: None,
        };
        Ok(self.sums.flows.flows(slice).map(flow).collect())
    }

    /// What a slice is promised.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn promised(&self, name: &str) -> Result<&Hose, Refused> {
        self.slice(name).map(|(_, known)| &known.hose)
    }

    /// The slice after this one, or the first behind the last one. None if there is no slice.
    pub fn slice_after(&self, last: Option<SliceNo>) -> Option<(SliceNo, &str)> {
        let next = self.slices.iter().find(|(number, _)| Some(*number) > last);
        let (number, known) = next.or_else(|| self.slices.iter().next())?;
        Some((number, known.name.as_str()))
    }

    /// All slices.
    pub fn standings(&self) -> Vec<Standing> {
        let standing = |(slice, known): (SliceNo, &Slice)| Standing {
            slice: known.name.as_str().to_owned(),
            complete: known.is_complete(),
            flows: self.sums.flows.flows(slice).count() as u64,
            links: known.shown.len() as u64,
            stale: self.states.get(&slice).is_some_and(|state| state.stale),
        };
        self.slices.iter().map(standing).collect()
    }

    /// What a slice is told of its state.
    pub fn state(&self, name: &str) -> Option<State> {
        self.states.get(&self.slices.number(name)?).cloned()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let slices = self.slices.iter().count() as u64;
        Counts { slices, flows: self.sums.flows.count() as u64, ..self.counts }
    }

    fn slice(&self, name: &str) -> Result<(SliceNo, &Slice), Refused> {
        let number = self.slices.number(name).ok_or_else(|| not_found(name))?;
        self.slices.get(number).map(|slice| (number, slice)).ok_or_else(|| not_found(name))
    }

    fn label(&self, slice: SliceNo, link: LinkNo) -> Option<Label> {
        let least = self.sums.links.id(link).and_then(|id| self.least(slice, id));
        if least.is_some() {
            return least;
        }
        self.as_told(link, self.sums.flows.labels().label(slice, link)?)
    }

    fn as_told(&self, link: LinkNo, label: Bandwidth) -> Option<Label> {
        let capacity_kbps = self.sums.flows.labels().capacity(link)?.kbps();
        Some(Label { link: self.sums.links.id(link)?, capacity_kbps, label_kbps: label.kbps() })
    }

    fn remove_vnic(&mut self, slice: SliceNo, vnic: VnicNo) {
        let touches = |pair: &Pair| pair.source == vnic || pair.destination == vnic;
        for pair in self.sums.pairs(slice).into_iter().filter(touches) {
            self.sums.remove_path(pair);
        }
        self.sums.flows.remove_vnic(slice, vnic);
    }

    fn show(
        &mut self,
        slice: SliceNo,
        link: LinkId,
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) -> Result<LinkNo, String> {
        let shown =
            |number: &LinkNo| self.slices.get(slice).is_some_and(|known| known.shown.contains(number));
        if let Some(number) = self.sums.links.number(link).filter(shown) {
            return Ok(number);
        }
        let number = self.sums.take(slice, link)?;
        if let Some(known) = self.slices.get_mut(slice) {
            known.shown.insert(number);
        }
        self.is_state_due |= !self.stale.is_empty();
        self.watch(slice, number, now_ms, out);
        self.watch_hops(slice, link, now_ms, out);
        Ok(number)
    }

    fn hide(&mut self, slice: SliceNo, link: LinkNo, out: &mut Vec<Effect>) {
        let Some(known) = self.slices.get_mut(slice).filter(|known| known.shown.contains(&link)) else {
            return;
        };
        known.shown.remove(&link);
        self.is_state_due |= !self.stale.is_empty();
        self.notices.unwatch(slice, link);
        if let Some(id) = self.sums.links.id(link) {
            out.push(Effect::Told { slice: known.name.as_str().to_owned(), link: id, label: None });
            self.unwatch_hops(slice, id);
        }
        self.sums.links.release(link);
    }

    /// A slice is told the label of a link now, and later changes.
    fn watch(&mut self, slice: SliceNo, link: LinkNo, now_ms: u64, out: &mut Vec<Effect>) {
        // Without room for a notice, the slice can still ask.
        let label = self.notices.watch(slice, link, now_ms, &self.sums.flows).ok().flatten();
        self.tell(slice, link, label, out);
    }

    fn tell(&mut self, slice: SliceNo, link: LinkNo, label: Option<Bandwidth>, out: &mut Vec<Effect>) {
        let known = self.slices.get(slice).map(|known| known.name.as_str().to_owned());
        if let (Some(slice), Some(id)) = (known, self.sums.links.id(link)) {
            self.counts.notices += 1;
            let label = label.and_then(|label| self.as_told(link, label));
            out.push(Effect::Told { slice, link: id, label });
        }
    }

    /// Tells what is due.
    fn settle(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        let mut changed = std::mem::take(&mut self.changed);
        self.sums.flows.labels_mut().take_changed(&mut changed);
        self.caps.on_changed(&changed, &self.sums.flows);
        changed.drain(..).for_each(|link| self.notices.on_change(link, now_ms, &self.sums.flows));
        self.changed = changed;
        while let Some(notice) = self.notices.next(now_ms, &self.sums.flows) {
            let shows = self.slices.get(notice.slice).is_some_and(|it| it.shown.contains(&notice.link));
            if shows {
                self.tell(notice.slice, notice.link, Some(notice.label), out);
            }
            self.on_hop(notice.slice, notice.link, out);
        }
        self.tell_caps(now_ms, out);
        if std::mem::take(&mut self.is_state_due) {
            self.tell_states(out);
        }
    }

    /// Tells the agents of senders which caps changed, or are due to be repeated.
    fn tell_caps(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        if self.is_rebuilding(now_ms) {
            return;
        }
        if self.caps.next_ms(self.words.has_agents()).is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        let mut without: BTreeSet<u32> = BTreeSet::new();
        if self.caps.is_repeating(now_ms) {
            without.extend(self.words.there());
        }
        let slices: Vec<SliceNo> = self.slices.iter().map(|(slice, _)| slice).collect();
        for (pair, rate_bps) in self.caps.take(&self.sums.flows, slices, now_ms) {
            // Without an agent of the sender, nobody can hold the flow to its cap.
            if let Some((agent, from, to)) = self.words.numbers(pair) {
                without.remove(&agent);
                out.push(Effect::Cap { agent, from, to, rate_bps });
            }
        }
        out.extend(without.into_iter().map(|agent| Effect::NoCaps { agent }));
    }

    /// Whether slices or agents are waited for, so that agents keep the caps that they have.
    fn is_rebuilding(&mut self, now_ms: u64) -> bool {
        let are_all_there = self.slices.unreported() == 0 && self.words.are_all_there();
        let Some(rebuilding) = &mut self.rebuilding else { return false };
        rebuilding.on_reported(are_all_there, now_ms);
        let is_over = now_ms >= rebuilding.until_ms();
        if is_over {
            self.rebuilding = None;
        }
        !is_over
    }

    /// Whether a link of the slice has a capacity that may be too high.
    fn shows_stale(&self, slice: &Slice) -> bool {
        let is_stale =
            |number: &LinkNo| self.sums.links.id(*number).is_some_and(|link| self.stale.contains(&link));
        !self.stale.is_empty() && slice.shown.iter().any(is_stale)
    }

    fn tell_states(&mut self, out: &mut Vec<Effect>) {
        let unreported = self.slices.unreported();
        let mut agents = self.words.agents();
        for (number, slice) in self.slices.iter() {
            // What a slice's own flows take is in no label of its own.
            let agents = agents.remove(&number).into_iter().flatten().collect();
            let stale = unreported > 0
                || self.waits_for_intents
                || self.shows_stale(slice)
                || self.is_over_stale(number);
            let rebuild = slice.stage == Stage::Silent;
            let state = State { stale, rebuild, agents };
            if self.states.get(&number) != Some(&state) {
                self.states.insert(number, state.clone());
                out.push(Effect::State { slice: slice.name.as_str().to_owned(), state });
            }
        }
    }
}

fn not_found(name: &str) -> Refused {
    (status::NOT_FOUND, format!("there is no slice {name}"))
}
