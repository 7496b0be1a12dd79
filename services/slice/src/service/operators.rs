//! The operator's side of a slice: questions on its socket, its withdrawal, its summary and its network.
//!
//! In: clients of the socket file, and the state of the slice. Out: answers, deletes of rules, and a summary and a network on topics. It changes no rule
//! before the operator changes or removes the slice.

use super::{Slice, Switches};
use crate::explain::explain;
use crate::loss::LossSettings;
use crate::network;
use crate::state::{Answer, CLIENTS_MAX, Client, ControllerState, Question, SliceState, SwitchState};
use crate::summary::summary;
use burnet_sdk::{Commands, DatapathId, Level};
use labels_contract::TimedLabel;
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
            let asked = client.hear();
            let is_new = asked.is_some();
            let answer = asked.and_then(|asked| {
                asked.map_or_else(|why| Some(Answer::Refused(why)), |it| self.answer(it, out))
            });
            answer.iter().for_each(|answer| client.answer(answer));
            if is_new && client.is_waiting() {
                client.wait_for_switches(now_ms);
            }
            if let Some(kept) = self.withdrawn().filter(|_| client.is_waiting()) {
                client.answer(&Answer::Withdrawn(kept));
            }
        }
        clients.retain_mut(|client| client.serve(now_ms));
        self.clients = clients;
    }

    /// The answer to an operator; `None` if it comes later.
    fn answer(&mut self, question: Question, out: &mut Commands) -> Option<Answer> {
        match question {
            Question::State => {
                Some(Answer::State(SliceState { labels: self.known_labels(), ..self.state() }))
            }
            Question::Settings => Some(Answer::Settings(Box::new(self.settings.without_key()))),
            Question::Explain { at, message } => Some(match &self.switches {
                None => Answer::Refused("the slice has no switches yet: try again".to_owned()),
                Some(Switches { slicer, .. }) => explain(slicer, &self.settings, at, &message)
                    .map_or_else(Answer::Refused, Answer::Explained),
            }),
            Question::Withdraw { loss } => {
                self.withdraw(&loss, out);
                self.withdrawn().map(Answer::Withdrawn).or_else(|| self.without_switches())
            }
        }
    }

    /// Before the first event of the node, the slice cannot delete anything.
    fn without_switches(&self) -> Option<Answer> {
        let why = "its process has just begun: try again";
        self.switches.is_none().then(|| Answer::Refused(why.to_owned()))
    }

    /// Deletes what the slice loses from its switches. It has no connection any more for a switch that it loses as a whole.
    fn withdraw(&mut self, settings: &LossSettings, out: &mut Commands) {
        out.log(Level::Information, "the operator changes the slice: the rules that it loses are deleted");
        self.is_withdrawing = true;
        self.lost.extend(settings.switches());
        let (now_ms, mut outputs) = (self.clock.now_ms, std::mem::take(&mut self.outputs));
        if let Some(switches) = self.switches(out) {
            switches.slicer.withdraw(now_ms, &settings.loss(), &mut outputs);
        }
        self.carry_out(outputs, out);
        for datapath in settings.switches() {
            self.dialing.on_switch_down(datapath);
            self.standalone.remove(&datapath);
        }
        let lost = &self.lost;
        self.sockets.retain(|connection, _| !lost.contains(&connection.datapath));
        if let Some(journals) = &mut self.journals {
            journals.forget(settings.switches());
        }
    }

    /// The switches that keep rules which the slice loses, once all have answered.
    fn withdrawn(&self) -> Option<Vec<(DatapathId, String)>> {
        let slicer = &self.switches.as_ref().filter(|_| self.is_withdrawing)?.slicer;
        slicer.withdrawn()
    }

    /// Publishes the summary and the network for the other parts of the node.
    pub(super) fn publish(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        if self.network.is_due(now_ms) {
            let network = self.network();
            let changed = self.network.put(now_ms, network);
            changed.iter().for_each(|it| out.publish_retained(slice_contract::NETWORK_TOPIC, &it.to_bytes()));
        }
        if self.summary.is_due(now_ms) {
            let summary = summary(&self.state());
            let changed = self.summary.put(now_ms, summary);
            changed.iter().for_each(|it| out.publish_retained(slice_contract::STATE_TOPIC, &it.to_bytes()));
        }
    }

    fn network(&self) -> Network {
        let is_link_up = |place| self.switches.as_ref().is_some_and(|it| it.links.is_up(place));
        let lack = |place| self.switches.as_ref().and_then(|it| it.links.lack(place).copied());
        network::network(&self.settings, |datapath| self.up.contains(&datapath), is_link_up, lack)
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
        let links = self.switches.as_ref().map(|it| it.links.states()).unwrap_or_default();
        SliceState {
            slice: self.settings.name.clone(),
            switches: switches.collect(),
            links,
            labels: Vec::new(),
        }
    }

    fn known_labels(&self) -> Vec<TimedLabel> {
        self.labels.iter().flat_map(|labels| labels.known().copied()).collect()
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
