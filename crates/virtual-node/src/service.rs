//! The service `labels` of the node: its engine, and its ends of the links with agents, without a process and without sockets.
//!
//! In: reports of slices, datagrams of agents, time. Out: labels, datagrams. What counts and who is told when is decided in the crate `labels`.

use edge::protocol::{Key, Message, RateOf};
use edge::vnic::AgentId;
use hose::Bandwidth;
use labels::agents::{Agents, Heard as FromAgents, Said, cap};
use labels::{Effect, Engine, Word};
use labels_contract::{Flow as CountedFlow, Heard, Hose, Label, Report};
use std::collections::BTreeMap;
use view::LinkId;

/// The number of the service among agents.
pub const SERVICE: AgentId = AgentId(0);

/// The number of this run of the service. Agents have others.
const SESSION: u64 = 99;

/// What a slice is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The label of a link, or that it has none.
    Label(String, LinkId, Option<Label>),
    /// Whether the labels of a slice may be too high.
    Stale(String, bool),
}

/// The service.
#[derive(Debug, Default)]
pub(crate) struct Service {
    engine: Engine,
    agents: Agents,
    effects: Vec<Effect>,
    datagrams: Vec<(AgentId, Vec<u8>)>,
    /// What each slice was told last.
    known: BTreeMap<(String, LinkId), Label>,
    notices: u64,
    refusals: u64,
}

impl Service {
    /// A service that knows these links, with what intents reserve of them, and these slices. `keys`: of the agents.
    ///
    /// # Errors
    /// A slice cannot be promised what it is.
    pub(crate) fn new(
        links: &[(LinkId, Bandwidth)],
        reserved: &[(LinkId, Bandwidth)],
        slices: &[(String, Hose)],
        keys: Vec<(AgentId, Key)>,
    ) -> Result<Service, String> {
        let mut service = Service { agents: Agents::new(SERVICE, SESSION, keys), ..Service::default() };
        let Service { engine, effects, .. } = &mut service;
        engine.on_reserved(reserved, false, 0, effects);
        for (name, hose) in slices {
            engine.put(name, hose, 0, effects).map_err(|(_, why)| why)?;
        }
        links.iter().for_each(|(link, rate)| engine.on_link(*link, Some(*rate), 0, effects));
        Ok(service)
    }

    /// A slice reports.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn on_report(&mut self, report: &Report, now_ms: u64) -> Result<Heard, String> {
        self.engine.on_report(report, now_ms, &mut self.effects).map_err(|(_, why)| why)
    }

    /// A datagram of an agent. The answers go back to it.
    pub(crate) fn on_datagram(&mut self, from: AgentId, datagram: &[u8], now_ms: u64) {
        let mut heard = FromAgents::default();
        let refused =
            self.agents.on_datagram(now_ms, datagram, &mut heard).is_err_and(|why| !why.is_innocent());
        self.refusals += u64::from(refused);
        self.datagrams.extend(std::mem::take(&mut heard.answers).into_iter().map(|answer| (from, answer)));
        self.take(heard, now_ms);
    }

    /// Time has passed.
    pub(crate) fn on_time(&mut self, now_ms: u64) {
        self.engine.on_time(now_ms, &mut self.effects);
        let mut heard = FromAgents::default();
        self.agents.on_time(now_ms, &mut heard);
        self.take(heard, now_ms);
    }

    /// When it wants [`Service::on_time`] next.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.engine.next_due_ms().into_iter().chain(self.agents.next_ms()).min()
    }

    /// Datagrams for agents since the last call.
    pub(crate) fn take_datagrams(&mut self) -> Vec<(AgentId, Vec<u8>)> {
        std::mem::take(&mut self.datagrams)
    }

    /// What slices are told since the last call.
    pub(crate) fn take_told(&mut self) -> Vec<Told> {
        let (mut told, mut caps) = (Vec::new(), Vec::new());
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Told { slice, link, label } => {
                    self.notices += u64::from(label.is_some());
                    match label {
                        Some(label) => drop(self.known.insert((slice.clone(), link), label)),
                        None => drop(self.known.remove(&(slice.clone(), link))),
                    }
                    told.push(Told::Label(slice, link, label));
                }
                Effect::State { slice, state } => told.push(Told::Stale(slice, state.stale)),
                Effect::Gone { .. } => {}
                Effect::Cap { agent, from, to, rate_bps } => {
                    caps.push((AgentId(agent), cap(from, to, rate_bps)));
                }
                Effect::NoCaps { agent } => {
                    let none = self.agents.seal(AgentId(agent), &Message::Caps(Vec::new()));
                    self.datagrams.extend(none.map(|none| (AgentId(agent), none)));
                }
            }
        }
        self.datagrams.extend(self.agents.seal_rates(caps, Message::Caps));
        told
    }

    /// How many labels were told.
    pub(crate) fn notices(&self) -> u64 {
        self.notices
    }

    /// How many datagrams or words of agents were refused.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// The label of a link that a slice was told last.
    pub(crate) fn known(&self, slice: &str, link: LinkId) -> Option<Label> {
        self.known.get(&(slice.to_owned(), link)).copied()
    }

    /// The flows of a slice.
    pub(crate) fn flows(&self, slice: &str) -> Vec<CountedFlow> {
        self.engine.flows(slice).unwrap_or_default()
    }

    fn take(&mut self, heard: FromAgents, now_ms: u64) {
        self.datagrams.extend(heard.datagrams);
        for said in heard.said {
            match said {
                Said::Began(agent) => self.engine.on_agent(agent.0, true, now_ms, &mut self.effects),
                Said::Gone(agent) => self.engine.on_agent(agent.0, false, now_ms, &mut self.effects),
                Said::Reports(agent, entries) => {
                    let words: Vec<Word> = entries.iter().map(Word::of).collect();
                    let refused = self.engine.on_words(agent.0, &words, now_ms, &mut self.effects);
                    self.refusals += refused.len() as u64;
                }
                Said::Rates(_, rates) => {
                    // All agents know each other, but for those with which the link is not up yet.
                    let of_sender = |rate: &RateOf| self.engine.agent_of(rate.flow.sender.0).map(AgentId);
                    let rates = rates.into_iter().filter_map(|rate| Some((of_sender(&rate)?, rate)));
                    self.datagrams.extend(self.agents.seal_rates(rates, Message::Feedback));
                }
            }
        }
    }
}
