//! Reloading the configuration, in the control thread: the request, the new values, and the answer.
//!
//! The monitor reads the configuration and reports what changes. No session ends here, and no app.

use super::super::fatal::Fatal;
use super::super::messages::ToWorker;
use super::super::operator_line::Peer;
use super::super::operator_queries::OperatorId;
use super::super::worker::now_unix_ms;
use super::Control;
use super::sessions::southbound_config;
use abi::ZoneId;
use audit_contract::Record;
use config::{AppGrant, Config};
use kernel::NodeRates;
use monitor_channel::protocol::FromKernel;
use operator::contract::{Answer, ReloadView, SlicesChange};
use serde_json::Value;
use std::sync::Arc;

impl Control {
    /// Forwards the operator's request to the monitor, and waits for its answer.
    pub(super) fn ask_reload(
        &mut self,
        operator_id: OperatorId,
        (app, slices): (Option<String>, Option<SlicesChange>),
        peer: Peer,
    ) -> Option<Answer> {
        let of_app = app.as_ref().map_or_else(String::new, |app| format!(" of {app:?}"));
        let which = of_app + &slices.as_ref().map_or_else(String::new, |change| format!(", {change}"));
        tracing::info!("the operator reloads the configuration{which} ({peer})");
        let asked = format!("reload{which} ({peer})");
        self.to_monitor.push_records(vec![Record::new(now_unix_ms(), "asked", "operator", asked)]);
        let ticket = self.queries.open_reload(operator_id, self.now_ms());
        self.to_monitor.push(FromKernel::Reload { ticket, app, slices });
        None
    }

    pub(super) fn on_reloaded(
        &mut self,
        ticket: u64,
        refused: Option<String>,
        done: Vec<String>,
        mut left: Vec<String>,
    ) {
        left.extend(self.left_of_reload.take());
        let outcome = match refused {
            Some(why) => Err(why),
            None => Ok(ReloadView { done, left }),
        };
        self.queries.on_reloaded(ticket, outcome);
    }

    /// Applies the parts of the configuration that can change while switches are connected.
    pub(super) fn reconfigure(&mut self, config: Value) {
        let read = serde_json::from_value::<Config>(config)
            .map_err(|error| Fatal(1, format!("the configuration cannot be read: {error}")));
        let withdrawn = &mut self.withdrawn;
        let done = read.and_then(|config| {
            let left = withdrawn.left(&config);
            Ok((southbound_config(&config)?, config.limits, left))
        });
        let (southbound, limits, left) = match done {
            Ok(done) => done,
            Err(Fatal(_, why)) => {
                tracing::error!("[southbound], [limits] and [switch] are unchanged: {why}");
                self.left_of_reload =
                    Some(format!("[southbound], [limits] and [switch] are unchanged: {why}"));
                return;
            }
        };
        self.workers.tell_all(|| ToWorker::Reconfigure { southbound: Box::new(southbound.clone()), limits });
        self.workers.tell_all(|| ToWorker::Withdraw(left.clone()));
    }

    /// Updates an app's grant at all workers.
    pub(super) fn regrant(&mut self, zone: u16, app: &str, generation: u64, grant: Value) {
        let grant = match AppGrant::read(grant) {
            Ok(grant) => grant,
            Err(why) => return tracing::error!("app {app}: it keeps its earlier grants: {why}"),
        };
        self.tell_grant(app, &grant);
        let grant = grant.to_kernel();
        self.loader.regrant(zone, &grant);
        let rates = Arc::new(NodeRates::new(grant.quotas(), self.now_ms()));
        self.workers.tell_all(|| ToWorker::Regrant {
            zone: ZoneId(zone),
            generation,
            grant: Box::new(grant.clone()),
            rates: rates.clone(),
        });
    }
}
