//! The agents' side of the service: datagrams to words, words to the engine, and lies to the operator.
//!
//! In: sockets that are ready, and the time. Out: words for the engine, datagrams for agents, incidents. It judges no signature and no word itself.

use super::Labels;
use crate::agents::{Heard, Said, cap};
use crate::words::Word;
use burnet_sdk::{Commands, Level, Listener, Ready};
use edge::protocol::link::Refusal;
use edge::protocol::{Entry, Message, RateOf, What};
use edge::vnic::{AgentId, Flow, VnicId};
use labels_contract::{AgentStanding, INCIDENT_TOPIC, Incident};
use std::time::{SystemTime, UNIX_EPOCH};

impl Labels {
    pub(super) fn listen(&mut self, listeners: Vec<Listener>) -> Result<(), String> {
        let tcp = listeners.into_iter().map(|listener| match listener {
            Listener::Tcp(listener) => Ok(listener),
            Listener::Unix(_) => Err("listen: agents connect by TCP: write ADDRESS:PORT".to_owned()),
        });
        self.lines.listen(tcp.collect::<Result<_, _>>()?);
        Ok(())
    }

    pub(super) fn on_line(&mut self, token: usize, ready: Ready, out: &mut Commands) {
        let now_ms = self.now_ms();
        let Some((line, turn)) = self.lines.on_socket(token, ready, now_ms) else { return };
        for datagram in &turn.datagrams {
            let mut heard = Heard::default();
            let result = self.agents.on_datagram(now_ms, datagram, &mut heard);
            heard.proven.iter().for_each(|agent| self.lines.prove(line, *agent));
            heard.answers.iter().for_each(|answer| self.lines.send(line, answer));
            self.take(heard, now_ms, out);
            if let Err(refusal) = result {
                self.on_lie(refusal, now_ms, out);
            }
        }
        if let Some(rubbish) = turn.rubbish {
            self.on_lie(Refusal::Malformed(rubbish), now_ms, out);
        }
    }

    /// Time has passed.
    pub(super) fn look_at_agents(&mut self, now_ms: u64, out: &mut Commands) {
        self.lines.on_time(now_ms);
        let mut heard = Heard::default();
        self.agents.on_time(now_ms, &mut heard);
        self.take(heard, now_ms, out);
    }

    fn take(&mut self, heard: Heard, now_ms: u64, out: &mut Commands) {
        for (agent, datagram) in &heard.datagrams {
            self.tell(*agent, datagram);
        }
        for said in heard.said {
            match said {
                Said::Began(agent) => {
                    self.engine.on_agent(agent.0, true, now_ms, &mut self.effects);
                    out.log(Level::Information, &format!("{agent} meters and shapes"));
                }
                Said::Gone(agent) => {
                    self.engine.on_agent(agent.0, false, now_ms, &mut self.effects);
                    self.forget_measured(agent);
                    out.log(
                        Level::Warning,
                        &format!("{agent} is silent: flows to its VNICs count by their rules"),
                    );
                }
                Said::Reports(agent, entries) => self.on_entries(agent, &entries, now_ms, out),
                Said::Rates(agent, rates) => self.pass_on(agent, rates, now_ms, out),
            }
        }
    }

    fn on_entries(&mut self, agent: AgentId, entries: &[Entry], now_ms: u64, out: &mut Commands) {
        entries.iter().for_each(|entry| self.measure(agent, entry));
        let words: Vec<Word> = entries.iter().map(Word::of).collect();
        for refused in self.engine.on_words(agent.0, &words, now_ms, &mut self.effects) {
            let (Word::Lives(from, to) | Word::Silent(from, to) | Word::Shaped(from, to)) = refused else {
                continue;
            };
            self.agents.count_refusal(agent);
            let flow = Flow { sender: VnicId(from), receiver: VnicId(to) };
            self.on_lie(Refusal::Foreign(agent, flow), now_ms, out);
        }
    }

    /// Notes the rate of an entry, if the flow goes to a VNIC of the agent. The engine judges the others.
    fn measure(&mut self, agent: AgentId, entry: &Entry) {
        let (from, to) = (entry.flow.sender.0, entry.flow.receiver.0);
        match entry.what {
            What::Reset => self.forget_measured(agent),
            _ if self.engine.agent_of(to) != Some(agent.0) => {}
            What::Began | What::Rate => self.measured.on_rate(from, to, entry.rate_bps),
            What::Ended => self.measured.on_end(from, to),
            What::Shaped | What::Unshaped => {}
        }
    }

    fn forget_measured(&mut self, agent: AgentId) {
        let engine = &self.engine;
        self.measured.forget(|to| engine.agent_of(to).is_none_or(|of| of == agent.0));
    }

    /// Passes rates on to the agents of the senders, with which the receiver's agent has no link.
    fn pass_on(&mut self, from: AgentId, rates: Vec<RateOf>, now_ms: u64, out: &mut Commands) {
        let mut known = Vec::new();
        for rate in rates {
            let Flow { sender, receiver } = rate.flow;
            if self.engine.agent_of(receiver.0) != Some(from.0) {
                self.agents.count_refusal(from);
                self.on_lie(Refusal::Foreign(from, rate.flow), now_ms, out);
            } else if let Some(to) = self.engine.agent_of(sender.0) {
                known.push((AgentId(to), rate));
            }
        }
        self.tell_rates(known, Message::Feedback);
    }

    /// Tells agents what flows of their VNICs may send: sender, receiver and cap. What does not reach one is repeated.
    pub(super) fn tell_caps(&mut self, caps: Vec<(AgentId, u32, u32, Option<u64>)>) {
        let caps = caps.into_iter().map(|(agent, from, to, rate_bps)| (agent, cap(from, to, rate_bps)));
        self.tell_rates(caps.collect(), Message::Caps);
    }

    /// Tells these agents that they have no caps.
    pub(super) fn tell_no_caps(&mut self, agents: &[AgentId]) {
        for agent in agents {
            if let Some(datagram) = self.agents.seal(*agent, &Message::Caps(Vec::new())) {
                self.tell(*agent, &datagram);
            }
        }
    }

    fn tell_rates(&mut self, rates: Vec<(AgentId, RateOf)>, message: impl Fn(Vec<RateOf>) -> Message) {
        for (to, datagram) in self.agents.seal_rates(rates, message) {
            self.tell(to, &datagram);
        }
    }

    fn tell(&mut self, agent: AgentId, datagram: &[u8]) {
        if let Some(line) = self.lines.of(agent) {
            self.lines.send(line, datagram);
        }
    }

    /// Somebody lies or is misconfigured. What happens without anybody's fault is none of the operator's business.
    fn on_lie(&mut self, refusal: Refusal, now_ms: u64, out: &mut Commands) {
        if refusal.is_innocent() {
            return;
        }
        // All that is of no known agent counts as one, so that strangers cannot fill the list.
        let of = refusal.agent().filter(|agent| self.agents.facts().any(|(known, ..)| known == *agent));
        let Some(repeated) = self.reported.take(of, &refusal, now_ms) else { return };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let incident = Incident {
            kind: "agent_refused".to_owned(),
            time_ms: u64::try_from(since_1970.as_millis()).unwrap_or_default(),
            agent: of.map(|agent| agent.0),
            why: refusal.to_string(),
            repeated,
        };
        out.log(Level::Warning, &format!("incident: {refusal}"));
        out.publish(INCIDENT_TOPIC, &super::json(&incident));
    }

    pub(super) fn agent_standings(&self) -> Vec<AgentStanding> {
        let standing = |(agent, is_there, refused): (AgentId, bool, u64)| AgentStanding {
            agent: agent.0,
            there: is_there,
            refused,
        };
        self.agents.facts().map(standing).collect()
    }
}
