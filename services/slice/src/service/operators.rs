//! The operator's side of a slice: questions on its socket, its withdrawal, its summary and its network.
//!
//! In: clients of the socket file, and the state of the slice. Out: answers, deletes of rules, and a summary and a network on topics. It changes no rule
//! before the operator removes the slice.

use super::{Slice, Switches};
use crate::explain::explain;
use crate::network::network;
use crate::state::{Answer, CLIENTS_MAX, Client, ControllerState, Question, SliceState, SwitchState};
use crate::withdrawal::Withdrawal;
use burnet_sdk::{Commands, Level};
use slice_contract::Network;
use slicer::Connection;

impl Slice {
    /// An operator connects.
    pub(super) fn accept(&mut self, out: &mut Commands) {
        let Some(listener) = &self.listener else { return };
        let Ok((stream, _)) = listener.accept() else { return };
        let client = Client::new(stream, self.clock.now_ms);
        self.clients.extend(client.filter(|_| self.clients.len() < CLIENTS_MAX));
        self.serve_clients(out);
    }

    /// Hears and answers operators.
    pub(super) fn serve_clients(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            let answer = client.hear().and_then(|asked| {
                asked.map_or_else(|why| Some(Answer::Refused(why)), |it| self.answer(it, out))
            });
            answer.iter().for_each(|answer| client.answer(answer));
            let withdrawn = self.withdrawal.as_ref().and_then(Withdrawal::result);
            if let Some(kept) = withdrawn.filter(|_| client.is_waiting()) {
                client.answer(&Answer::Withdrawn(kept));
            }
        }
        clients.retain_mut(|client| client.serve(now_ms));
        self.clients = clients;
    }

    /// The answer to an operator; `None` if it comes later.
    fn answer(&mut self, question: Question, out: &mut Commands) -> Option<Answer> {
        match question {
            Question::State => Some(Answer::State(self.state())),
            Question::Settings => Some(Answer::Settings(Box::new(self.settings.without_key()))),
            Question::Explain { at, message } => Some(match &self.switches {
                None => {
                    Answer::Refused("the slice has no switches yet, or none any more: try again".to_owned())
                }
                Some(Switches { slicer, .. }) => explain(slicer, &self.settings, at, &message)
                    .map_or_else(Answer::Refused, Answer::Explained),
            }),
            Question::Withdraw => {
                self.withdraw(out);
                None
            }
        }
    }

    /// Ends all connections, and deletes all rules of the slice, also those of earlier runs.
    fn withdraw(&mut self, out: &mut Commands) {
        if self.withdrawal.is_some() {
            return;
        }
        out.log(Level::Information, "the operator removes the slice: its rules are deleted");
        let mut withdrawal = Withdrawal::default();
        for switch in &self.settings.switches {
            let datapath = switch.datapath;
            if self.up.contains(&datapath) {
                withdrawal.sent(out.rule(datapath).priority(1).delete_within().send_with_receipt(), datapath);
            } else {
                withdrawal.away(datapath);
            }
            self.dialing.on_switch_down(datapath);
        }
        self.withdrawal = Some(withdrawal);
        self.switches = None;
        if let Some(journals) = &mut self.journals {
            journals.forget(self.places.keys().copied());
        }
        self.sockets.clear();
        self.unflushed.clear();
        self.standalone.clear();
    }

    /// Publishes the summary and the network for the other parts of the node.
    pub(super) fn publish(&mut self, out: &mut Commands) {
        let mut network = std::mem::take(&mut self.network);
        if let Some(network) = network.due(self.clock.now_ms, || self.network()) {
            out.publish_retained(slice_contract::NETWORK_TOPIC, &network.to_bytes());
        }
        self.network = network;
        let mut published = std::mem::take(&mut self.published);
        if let Some(summary) = published.due(self.clock.now_ms, || self.state()) {
            out.publish_retained(slice_contract::STATE_TOPIC, &summary.to_bytes());
        }
        self.published = published;
    }

    fn network(&self) -> Network {
        let is_link_up = |place| self.switches.as_ref().is_some_and(|it| it.links.is_up(place));
        network(&self.settings, |datapath| self.up.contains(&datapath), is_link_up)
    }

    fn state(&self) -> SliceState {
        let switches = self.settings.switches.iter().map(|switch| {
            let datapath = switch.datapath;
            let slicer = self.switches.as_ref().map(|it| &it.slicer);
            let counters = slicer.and_then(|it| it.counters(datapath)).unwrap_or_default();
            let (rules, pieces) = slicer.and_then(|it| it.rules(datapath)).unwrap_or_default();
            let controllers =
                (0..self.settings.controllers.len()).map(|controller| Connection { datapath, controller });
            SwitchState {
                datapath,
                shown_as: switch.shown_as,
                is_up: self.up.contains(&datapath),
                rules,
                pieces,
                packet_ins: counters.packet_ins,
                packet_ins_dropped: counters.packet_ins_dropped,
                packet_ins_unread: counters.packet_ins_unread,
                packet_outs: counters.packet_outs,
                flow_mods: counters.flow_mods,
                refused: counters.refused,
                vnics: self.vnics.at(|at| at.datapath == datapath, |at| slicer.and_then(|it| it.shaping(at))),
                controllers: controllers.map(|connection| self.controller_state(connection)).collect(),
            }
        });
        SliceState { slice: self.settings.name.clone(), switches: switches.collect() }
    }

    fn controller_state(&self, connection: Connection) -> ControllerState {
        let facts = self.switches.as_ref().and_then(|it| it.slicer.controller(connection));
        let since_ms = self.dialing.stands_since_ms(connection);
        ControllerState {
            address: self.settings.controllers[connection.controller],
            version: facts.map(|facts| facts.version.to_string()),
            role: facts.map(|facts| facts.role_name().to_owned()),
            up_ms: since_ms.map(|since_ms| self.clock.now_ms.saturating_sub(since_ms)),
            trouble: self.troubles.get(&connection).filter(|_| facts.is_none()).cloned(),
        }
    }
}
