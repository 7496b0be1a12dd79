//! Answers the operators: accepts their connections, and handles their requests.
//!
//! In: requests of the operator's contract. Out: answers, now or when the workers or the monitor have replied. It
//! decides nothing about apps: the monitor does.

use super::super::messages::ToWorker;
use super::super::operator_line::Peer;
use super::super::operator_queries::OperatorId;
use super::super::operators::OPERATORS_MAX;
use super::super::worker::now_unix_ms;
use super::Control;
use audit_contract::Record;
use flow::DatapathId;
use mio::net::UnixStream;
use mio::{Interest, Token};
use monitor_channel::protocol::FromKernel;
use monitor_channel::{AppRole, Verb};
use operator::contract::{Answer, NodeView, Question};
use std::io;

/// Requests of all operators that are handled in one turn. The next turn follows at once, and handles more.
const QUESTIONS_PER_TURN: usize = 16;

impl Control {
    /// Returns `true` if more connections may wait.
    pub(super) fn accept_operators(&mut self) -> bool {
        for _ in 0..OPERATORS_MAX {
            match self.socket.listener.accept() {
                Ok((stream, _)) => self.adopt_operator(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    tracing::warn!("an operator's connection could not be accepted: {error}");
                    return false;
                }
            }
        }
        true
    }

    fn adopt_operator(&mut self, stream: UnixStream) {
        let registry = self.poll.registry();
        let peer = Peer::of(&stream);
        self.operators.adopt(stream, peer, |stream, operator_id| {
            registry.register(stream, Token(operator_id), Interest::READABLE | Interest::WRITABLE).is_ok()
        });
    }

    /// Handles the waiting requests, at most [`QUESTIONS_PER_TURN`] of them.
    fn take_questions(&mut self) {
        self.more_questions = false;
        for _ in 0..QUESTIONS_PER_TURN {
            // The other requests are read when there is space again.
            if !self.queries.has_room() {
                return;
            }
            let Some((operator_id, line)) = self.operators.next_question() else { return };
            let answer = match serde_json::from_slice::<Question>(&line) {
                Ok(question) => self.ask(operator_id, question),
                Err(error) => Some(Answer::Refused(format!("invalid request: {error}"))),
            };
            if let Some(answer) = answer {
                self.operators.answer(operator_id, &answer);
            }
        }
        self.more_questions = true;
    }

    /// Answers at once, or opens the request and answers later.
    fn ask(&mut self, operator_id: OperatorId, question: Question) -> Option<Answer> {
        let now_ms = self.now_ms();
        match question {
            Question::Node => Some(Answer::Node(self.node_view())),
            Question::Switches => {
                let ticket = self.queries.open_switches(
                    operator_id,
                    self.roster.switches(),
                    self.workers.len(),
                    now_ms,
                );
                self.workers.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Apps => {
                let ticket =
                    self.queries.open_apps(operator_id, self.apps.clone(), self.workers.len(), now_ms);
                self.workers.tell_all(|| ToWorker::AskCounts { ticket });
                None
            }
            Question::Usage => Some(Answer::Usage(self.usage.view(&self.apps))),
            Question::Flows { datapath } => self.ask_flows(operator_id, datapath),
            Question::App { app, verb, why } => {
                let peer = self.operators.peer(operator_id);
                Some(self.ask_for_app(app, verb, why, peer))
            }
            Question::LeaveSafeMode => {
                let peer = self.operators.peer(operator_id);
                Some(self.leave_safe_mode(peer))
            }
            Question::Reload { app, slices } => {
                let peer = self.operators.peer(operator_id);
                self.ask_reload(operator_id, (app, slices), peer)
            }
            Question::SaveStore => {
                let ticket = self.queries.open_save(operator_id, now_ms);
                self.to_monitor.push(FromKernel::SaveStore { ticket });
                None
            }
            Question::Pins => Some(self.pins_view()),
            Question::ForgetPin { datapath } => {
                let peer = self.operators.peer(operator_id);
                Some(self.forget_pin(datapath, peer))
            }
            Question::AddApp { app } => {
                let peer = self.operators.peer(operator_id);
                Some(self.add_app(app, peer))
            }
        }
    }

    fn node_view(&self) -> NodeView {
        let kernel = self.kernel.as_ref();
        NodeView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            listen: self.listeners.addresses().iter().map(ToString::to_string).collect(),
            workers: self.workers.len(),
            uptime_ms: self.now_ms(),
            kernel_restarts: kernel.map(|kernel| kernel.restarts).unwrap_or_default(),
            kernel_last_end: kernel.and_then(|kernel| kernel.last_end.as_ref()).map(|end| end.reason.clone()),
            switches: self.roster.switches().len(),
            connections: self.roster.connections(),
            safe_mode: self.safe_mode.clone(),
        }
    }

    fn ask_flows(&mut self, operator_id: OperatorId, wanted: Option<DatapathId>) -> Option<Answer> {
        let switches = self.roster.switches();
        let datapaths: Vec<_> = switches
            .iter()
            .map(|record| record.datapath)
            .filter(|datapath| wanted.is_none_or(|wanted| wanted == *datapath))
            .collect();
        if let (Some(wanted), true) = (wanted, datapaths.is_empty()) {
            return Some(Answer::Refused(format!(
                "{wanted} is not connected; `burnet switches` lists the connected switches"
            )));
        }
        for (datapath, ticket) in self.queries.open_flows(operator_id, &datapaths, self.now_ms()) {
            let worker = self.roster.worker_of(datapath);
            let asked = ToWorker::AskFlows { datapath, ticket };
            if !worker.is_some_and(|worker| self.workers.tell_now(worker, asked)) {
                self.queries.on_trouble(ticket, "it is gone");
            }
        }
        None
    }

    fn leave_safe_mode(&mut self, peer: Peer) -> Answer {
        if self.safe_mode.is_none() {
            return Answer::Refused("the node is not in safe mode".to_owned());
        }
        tracing::info!("the operator ends safe mode ({peer})");
        let asked = format!("leave safe mode ({peer})");
        self.to_monitor.push_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked)]);
        self.to_monitor.push(FromKernel::LeaveSafeMode);
        Answer::Done
    }

    fn add_app(&mut self, app: String, peer: Peer) -> Answer {
        tracing::info!("app {app:?}: the operator adds it ({peer})");
        let asked = format!("add ({peer})");
        self.to_monitor
            .push_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked).of_app(&app)]);
        self.to_monitor.push(FromKernel::AddApp { app });
        Answer::Done
    }

    fn ask_for_app(&mut self, app: String, verb: Verb, why: Option<String>, peer: Peer) -> Answer {
        let Some(status) = self.apps.iter().find(|status| status.app == app) else {
            let names: Vec<&str> = self.apps.iter().map(|status| status.app.as_str()).collect();
            return Answer::Refused(no_such_app(&app, &names));
        };
        if verb == Verb::Remove && self.packages.view(&app).is_none() {
            return Answer::Refused(format!(
                "{app} is in the configuration but not installed: remove it from the configuration"
            ));
        }
        if status.role == AppRole::Service && matches!(verb, Verb::Stop | Verb::Quarantine) {
            return Answer::Refused(format!(
                "{app} is a service of the node and cannot be stopped while the node runs; `burnet app restart {app}` restarts it"
            ));
        }
        tracing::info!("app {app}: {} by the operator ({peer})", verb.as_str());
        let asked = format!("{} ({peer})", verb.as_str());
        self.to_monitor
            .push_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked).of_app(&app)]);
        self.to_monitor.push(FromKernel::Operator { app, verb, why });
        Answer::Done
    }

    pub(super) fn answer_operators(&mut self) {
        let now_ms = self.now_ms();
        for (operator_id, answer) in self.queries.take_answers(now_ms) {
            let answer = self.with_owners(answer);
            self.operators.answer(operator_id, &answer);
        }
        self.take_questions();
        for operator_id in self.operators.part(now_ms) {
            self.queries.forget(operator_id);
        }
    }

    /// Adds what only this thread knows to an answer: the apps' packages and usage, and the apps that own the flow
    /// entries.
    fn with_owners(&self, mut answer: Answer) -> Answer {
        if let Answer::Apps(apps) = &mut answer {
            for app in apps.iter_mut() {
                app.package = self.packages.view(&app.status.app);
                app.shortfalls = self.shortfalls.of(&app.status.app);
                app.over = self.usage.over(app.status.zone);
                app.used = self.usage.last(&app.status);
            }
        }
        let Answer::Flows(switches) = &mut answer else { return answer };
        for flow in switches.iter_mut().flat_map(|switch| &mut switch.flows) {
            flow.owner = match flow.owner.parse::<u16>() {
                Ok(zone) => {
                    let app = self.apps.iter().find(|status| status.zone == zone);
                    app.map_or_else(|| format!("zone {zone}"), |status| status.app.clone())
                }
                Err(_) => continue,
            };
        }
        answer
    }
}

/// The error for an unknown app, with the most similar name.
fn no_such_app(app: &str, names: &[&str]) -> String {
    let suggestion = package::toml_text::nearest(app, names)
        .map_or(String::new(), |near| format!(": did you mean {near}?"));
    format!("there is no app {app} on this node{suggestion}; `burnet app list` lists the apps")
}
