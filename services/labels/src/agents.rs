//! The service's ends of its links with agents: who is there, which reports are missing, and who lies.
//!
//! ```text
//!   datagrams ──> Link: signature, session, replays ──> Inbox: reports in order ──> Said: words, rates for other agents
//!   time ───────> asks for missing reports, gives up who is silent            └──> datagrams for agents
//! ```
//!
//! In: datagrams, and the time. Out: what agents have said, datagrams for them, and refusals. It knows no VNIC and no socket, and believes nobody
//! without the key.

use edge::protocol::link::{Link, Opened, Refusal};
use edge::protocol::reports::Inbox;
use edge::protocol::{self, Entry, Key, Message, NO_CAP, RATES_MAX, RateOf};
use edge::vnic::{AgentId, Flow, RATE_MAX_BPS, VnicId};
use std::collections::BTreeMap;

/// The most agents. More are refused in the settings: each may have a connection.
pub const AGENTS_MAX: usize = 1_024;

/// An agent that says nothing for this long is gone. It speaks five times a second.
const SILENCE_MS: u64 = 2_000;

/// How often missing reports are asked for.
const ASK_AGAIN_MS: u64 = 100;

/// How often an agent that speaks in an earlier session of the service is greeted.
const GREET_AGAIN_MS: u64 = 100;

/// What a flow from one VNIC to another may send. `None`: it has no cap.
pub fn cap(from: u32, to: u32, rate_bps: Option<u64>) -> RateOf {
    let flow = Flow { sender: VnicId(from), receiver: VnicId(to) };
    RateOf { flow, rate_bps: rate_bps.map_or(NO_CAP, |rate_bps| rate_bps.min(RATE_MAX_BPS)) }
}

/// What an agent has said, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It begins to report all that it has: it is there.
    Began(AgentId),
    /// Reports, in order.
    Reports(AgentId, Vec<Entry>),
    /// Rates for flows whose senders are on other servers.
    Rates(AgentId, Vec<RateOf>),
    /// It is there no more.
    Gone(AgentId),
}

/// What is done about it.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// What agents have said, in order.
    pub said: Vec<Said>,
    /// Datagrams for agents, each by the connection of its agent.
    pub datagrams: Vec<(AgentId, Vec<u8>)>,
    /// Answers that go back where the datagram came from: who is there is not proven yet.
    pub answers: Vec<Vec<u8>>,
    /// The agent that the datagram proves to be at the other end of the connection.
    pub proven: Option<AgentId>,
}

/// The number of an agent, whether it is there, and how many of its datagrams and words were refused.
pub type AgentFacts = (AgentId, bool, u64);

#[derive(Debug)]
struct Known {
    link: Link,
    inbox: Inbox,
    is_there: bool,
    heard_ms: u64,
    asked_ms: u64,
    greeted_ms: Option<u64>,
    refused: u64,
}

/// All agents that the service has keys for.
#[derive(Debug, Default)]
pub struct Agents(BTreeMap<AgentId, Known>);

impl Agents {
    /// Links that nobody has greeted yet. `session` is a random number of this process.
    pub fn new(me: AgentId, session: u64, keys: impl IntoIterator<Item = (AgentId, Key)>) -> Agents {
        let known = |(agent, key)| {
            let known = Known {
                link: Link::new(me, agent, key, session),
                inbox: Inbox::default(),
                is_there: false,
                heard_ms: 0,
                asked_ms: 0,
                greeted_ms: None,
                refused: 0,
            };
            (agent, known)
        };
        Agents(keys.into_iter().map(known).collect())
    }

    /// A datagram has come.
    ///
    /// # Errors
    /// It is ignored, and this is why. `out` can have an answer all the same.
    pub fn on_datagram(&mut self, now_ms: u64, datagram: &[u8], out: &mut Heard) -> Result<(), Refusal> {
        let from = protocol::read(datagram).map_err(Refusal::Malformed)?.header.from;
        let known = self.0.get_mut(&from).ok_or(Refusal::Stranger(from))?;
        match known.link.open(datagram) {
            Ok(Opened::Hello { session }) => {
                out.answers.push(known.link.welcome(session));
                Ok(())
            }
            Ok(Opened::Message { message, is_new_session }) => {
                (known.heard_ms, out.proven) = (now_ms, Some(from));
                known.on_message(now_ms, from, message, is_new_session, out)
            }
            Err(refusal) => {
                known.refused += u64::from(!refusal.is_innocent());
                let is_due = known.greeted_ms.is_none_or(|at| now_ms.saturating_sub(at) >= GREET_AGAIN_MS);
                if matches!(refusal, Refusal::Outdated(_)) && is_due {
                    known.greeted_ms = Some(now_ms);
                    out.answers.push(known.link.hello());
                }
                Err(refusal)
            }
        }
    }

    /// A statement of an agent was refused, because the VNICs are not its own.
    pub fn count_refusal(&mut self, agent: AgentId) {
        if let Some(known) = self.0.get_mut(&agent) {
            known.refused += 1;
        }
    }

    /// A message for an agent. None: it is not there.
    pub fn seal(&mut self, to: AgentId, message: &Message) -> Option<Vec<u8>> {
        self.0.get_mut(&to).filter(|known| known.is_there).and_then(|known| known.link.seal(message))
    }

    /// Messages of rates for agents, each with as many rates as fit. What an agent that is not there would get is left out.
    pub fn seal_rates(
        &mut self,
        rates: impl IntoIterator<Item = (AgentId, RateOf)>,
        message: impl Fn(Vec<RateOf>) -> Message,
    ) -> Vec<(AgentId, Vec<u8>)> {
        let mut by_agent: BTreeMap<AgentId, Vec<RateOf>> = BTreeMap::new();
        rates.into_iter().for_each(|(agent, rate)| by_agent.entry(agent).or_default().push(rate));
        let mut sealed = Vec::new();
        for (agent, rates) in by_agent {
            for rates in rates.chunks(RATES_MAX) {
                let datagram = self.seal(agent, &message(rates.to_vec()));
                sealed.extend(datagram.map(|datagram| (agent, datagram)));
            }
        }
        sealed
    }

    /// Time has passed.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Heard) {
        for (agent, known) in &mut self.0 {
            if known.is_there && now_ms.saturating_sub(known.heard_ms) >= SILENCE_MS {
                known.is_there = false;
                out.said.push(Said::Gone(*agent));
            }
            if now_ms.saturating_sub(known.asked_ms) >= ASK_AGAIN_MS {
                known.ask(now_ms, *agent, out);
            }
        }
    }

    /// When it wants [`Agents::on_time`] again.
    pub fn next_ms(&self) -> Option<u64> {
        let next = |known: &Known| {
            let silent = known.is_there.then_some(known.heard_ms.saturating_add(SILENCE_MS));
            let is_asking = known.link.is_up() && known.inbox.missing().is_some();
            let ask = is_asking.then_some(known.asked_ms.saturating_add(ASK_AGAIN_MS));
            [silent, ask].into_iter().flatten().min()
        };
        self.0.values().filter_map(next).min()
    }

    /// All agents.
    pub fn facts(&self) -> impl Iterator<Item = AgentFacts> {
        self.0.iter().map(|(agent, known)| (*agent, known.is_there, known.refused))
    }
}

impl Known {
    fn on_message(
        &mut self,
        now_ms: u64,
        from: AgentId,
        message: Message,
        is_new_session: bool,
        out: &mut Heard,
    ) -> Result<(), Refusal> {
        if is_new_session {
            self.inbox = Inbox::default();
            // The agent does not know that the service knows it, until it gets a message.
            let beat = self.link.seal(&Message::Beat { newest: 0 });
            out.datagrams.extend(beat.map(|beat| (from, beat)));
        }
        match message {
            Message::Report { number, entries } => {
                for entries in self.inbox.on_report(number, entries) {
                    if !self.is_there {
                        self.is_there = true;
                        out.said.push(Said::Began(from));
                    }
                    out.said.push(Said::Reports(from, entries));
                }
            }
            Message::Beat { newest } => self.inbox.on_beat(newest),
            Message::Feedback(rates) => out.said.push(Said::Rates(from, rates)),
            Message::Hello | Message::Welcome => {}
            Message::Again { .. } | Message::Caps(_) => {
                self.refused += 1;
                return Err(Refusal::NotTheService(from));
            }
        }
        if now_ms.saturating_sub(self.asked_ms) >= ASK_AGAIN_MS {
            self.ask(now_ms, from, out);
        }
        Ok(())
    }

    fn ask(&mut self, now_ms: u64, agent: AgentId, out: &mut Heard) {
        let Some((first, last)) = self.inbox.missing() else { return };
        let again = self.link.seal(&Message::Again { first, last });
        out.datagrams.extend(again.map(|again| (agent, again)));
        self.asked_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge::agent::{Agent, Commands, Event, Peer, Settings};
    use edge::protocol::What;
    use edge::vnic::{Address, Directory, Flow, SliceId, Vnic, VnicId};
    use flow::MacAddr;

    const ME: AgentId = AgentId(9);
    const ONE: AgentId = AgentId(1);
    const MS: u64 = 1_000_000;

    fn key() -> Key {
        Key([7; 32])
    }

    fn agents(session: u64) -> Agents {
        Agents::new(ME, session, [(ONE, key()), (AgentId(2), Key([8; 32]))])
    }

    fn directory() -> Directory {
        let vnic = |id: u8| Vnic {
            id: VnicId(id.into()),
            slice: SliceId(1),
            agent: Some(ONE),
            address: Address { vlan: None, mac: MacAddr([2, 0, 0, 0, 0, id]) },
            guarantee_bps: 1_000_000,
            strict: false,
        };
        Directory::new([vnic(1), vnic(2)]).unwrap()
    }

    fn agent(session: u64) -> Agent {
        let mut settings = Settings::for_nic(ONE, 10_000_000, session);
        settings.service = Some(ME);
        settings.peers = vec![Peer { agent: ME, key: key() }];
        Agent::new(0, settings, directory()).unwrap()
    }

    const FLOW: Flow = Flow { sender: VnicId(1), receiver: VnicId(2) };

    /// Both sides, from one time to another in steps of 20 ms, without a loss. Returns what the service heard, and how often it refused.
    fn talk(
        agent: &mut Agent,
        agents: &mut Agents,
        from_ms: u64,
        to_ms: u64,
        bytes: u64,
    ) -> (Vec<Said>, u64) {
        let (mut said, mut refused) = (Vec::new(), 0);
        for now_ms in (from_ms..to_ms).step_by(20) {
            let mut out = Commands::default();
            if bytes > 0 {
                agent.on_event(now_ms * MS, Event::Bytes(&[(FLOW, bytes)]), &mut out);
            }
            agent.on_event(now_ms * MS, Event::Time, &mut out);
            agent.on_event(now_ms * MS, Event::Shaped(&[]), &mut out);
            let mut heard = Heard::default();
            let mut waiting: Vec<Vec<u8>> = out.datagrams.into_iter().map(|(_, bytes)| bytes).collect();
            agents.on_time(now_ms, &mut heard);
            while let Some(datagram) = (!waiting.is_empty()).then(|| waiting.remove(0)) {
                refused += u64::from(agents.on_datagram(now_ms, &datagram, &mut heard).is_err());
                let answers = heard.answers.drain(..).chain(heard.datagrams.drain(..).map(|(_, it)| it));
                for answer in answers.collect::<Vec<_>>() {
                    let mut out = Commands::default();
                    agent.on_event(now_ms * MS, Event::Datagram(&answer), &mut out);
                    waiting.extend(out.datagrams.into_iter().map(|(_, bytes)| bytes));
                }
            }
            said.extend(heard.said);
        }
        (said, refused)
    }

    fn entries(said: &[Said]) -> Vec<What> {
        let of = |said: &Said| match said {
            Said::Reports(_, entries) => entries.iter().map(|entry| entry.what).collect(),
            _ => Vec::new(),
        };
        said.iter().flat_map(of).collect()
    }

    #[test]
    fn an_agent_begins_reports_and_is_gone_when_it_is_silent() {
        let (mut agent, mut agents) = (agent(0xa), agents(0xb));
        let (said, _) = talk(&mut agent, &mut agents, 0, 400, 0);
        assert_eq!(said.first(), Some(&Said::Began(ONE)));
        assert_eq!(entries(&said).first(), Some(&What::Reset));
        let (said, refused) = talk(&mut agent, &mut agents, 400, 600, 1_000);
        assert!(entries(&said).contains(&What::Began) && refused == 0, "{said:?}");
        let mut heard = Heard::default();
        agents.on_time(2_500, &mut heard);
        assert!(heard.said.is_empty());
        assert_eq!(agents.next_ms(), Some(2_520), "two seconds after its last beat");
        agents.on_time(2_600, &mut heard);
        assert_eq!(heard.said, [Said::Gone(ONE)]);
        // It speaks again in the same session: what it says next counts from its next report on.
        let (said, _) = talk(&mut agent, &mut agents, 2_600, 5_600, 0);
        assert_eq!(said.first(), Some(&Said::Began(ONE)));
    }

    #[test]
    fn a_service_that_was_restarted_hears_all_again() {
        let (mut agent, mut before) = (agent(0xa), agents(0xb));
        talk(&mut agent, &mut before, 0, 600, 1_000);
        let mut after = agents(0xc);
        let (said, refused) = talk(&mut agent, &mut after, 600, 1_200, 1_000);
        let heard = entries(&said);
        assert_eq!((said.first(), heard.first()), (Some(&Said::Began(ONE)), Some(&What::Reset)));
        assert!(heard.contains(&What::Began), "{heard:?}");
        assert!(refused > 0, "what was for the earlier process is refused");
        assert!(after.facts().all(|(_, _, refused)| refused == 0), "and that is nobody's fault");
    }

    #[test]
    fn an_agent_that_was_restarted_begins_again() {
        let (mut before, mut agents) = (agent(0xa), agents(0xb));
        talk(&mut before, &mut agents, 0, 600, 1_000);
        let (said, _) = talk(&mut agent(0xaa), &mut agents, 600, 1_200, 0);
        assert_eq!(entries(&said).first(), Some(&What::Reset));
        assert!(!said.contains(&Said::Began(ONE)), "it was there all the time");
    }

    #[test]
    fn strangers_and_lies_are_refused() {
        let (mut agent, mut agents) = (agent(0xa), agents(0xb));
        talk(&mut agent, &mut agents, 0, 400, 0);
        let mut heard = Heard::default();
        let mut check = |datagram: &[u8], expected: &str| {
            let refused = agents.on_datagram(500, datagram, &mut heard).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
            assert!(heard.proven.is_none() && heard.said.is_empty());
        };
        let hello = |me, key| Link::new(me, ME, key, 1).hello();
        check(b"hello", "malformed");
        check(&hello(AgentId(7), key()), "agent 7 is in no list of peers");
        check(&hello(ONE, Key([9; 32])), "a wrong signature");
        // It has a key, and takes the name of another agent.
        check(&hello(ONE, Key([8; 32])), "a wrong signature");
        let refused: Vec<u64> = agents.facts().map(|(_, _, refused)| refused).collect();
        assert_eq!(refused, [2, 0]);
    }
}
