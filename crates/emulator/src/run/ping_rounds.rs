//! The rounds of pings that callers wait for. Several can run at a time.
//!
//! In: replies and the time. Out: pings, events, and the report of each round that is over.

use std::sync::mpsc::Sender;
use std::time::Duration;

use super::event::NetworkEvent;
use super::observers::Observers;
use super::ping_all::{PingAll, PingReport};
use crate::network::{Network, NetworkEffects};

/// The running rounds.
#[derive(Debug, Default)]
pub(super) struct PingRounds {
    rounds: Vec<(PingAll, Sender<PingReport>)>,
    /// The first sequence number of the next round.
    pub(super) next_sequence: u16,
}

impl PingRounds {
    /// Whether no round runs.
    pub(super) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// When the next ping is given up without a reply.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.rounds.iter().filter_map(|(round, _)| round.next_due()).min()
    }

    /// Adds a round, which begins with the next [`PingRounds::go_on`].
    pub(super) fn add(&mut self, round: PingAll, answer: Sender<PingReport>) {
        self.next_sequence = round.next_sequence();
        self.rounds.push((round, answer));
    }

    /// Processes replies, gives up pings, sends the next ones, and answers when a round is over.
    pub(super) fn go_on(
        &mut self,
        network: &mut Network,
        effects: &mut NetworkEffects,
        now: Duration,
        observers: &mut Observers,
    ) {
        let replies = std::mem::take(&mut effects.replies);
        let mut ended = Vec::new();
        for (round, _) in &mut self.rounds {
            for (host, reply) in &replies {
                if let Some((from, to)) = round.on_reply(*host, reply) {
                    ended.push((from, to, Some(reply.round_trip)));
                }
            }
            let lost = round.give_up(network, now);
            ended.extend(lost.into_iter().map(|(from, to)| (from, to, None)));
            round.send(network, now, effects);
        }
        for (from, to, round_trip) in ended {
            let name = |host: usize| network.hosts()[host].name().to_owned();
            observers.tell(|| match round_trip {
                Some(round_trip) => NetworkEvent::PingOk { from: name(from), to: name(to), round_trip },
                None => NetworkEvent::PingLost { from: name(from), to: name(to) },
            });
        }
        self.rounds.retain(|(round, answer)| {
            if round.is_done() {
                // The caller may have stopped waiting.
                let _ = answer.send(round.report(network));
            }
            !round.is_done()
        });
    }
}
