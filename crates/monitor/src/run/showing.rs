//! The duty to show the node: reports about apps and incidents for the service, and its commands for apps.
//!
//! In: the states of apps, stored incidents, and commands and questions of the service. Out: messages to the service, and events for the
//! supervisor. What the service may do, [`crate::app_command`] decides.

use northbound_contract::{AppCommand, FromMonitor, NodeReport, ToMonitor};

use super::Monitor;
use crate::app::{AppStatus, Duty};
use crate::app_command::{check_permitted, judge};
use crate::app_report::app_report;
use crate::clock::{now_ms, unix_ms_at_zero};
use crate::evidence::{EvidenceAsked, EvidenceRead};

/// How many evidences are sent to the service at once. Each is long, and the way to the service also carries incidents and answers
/// to commands. The others follow with the next report.
const EVIDENCE_AT_ONCE: usize = 4;

impl Monitor {
    /// Sends the apps with what they use, and the incidents that the service does not have yet.
    pub(super) fn tell_state(&mut self) {
        for stored in self.writer.take_stored() {
            self.incidents.on_stored(stored);
        }
        let Some(zone) = self.supervisor.zone_on(Duty::ShowApps) else { return };
        self.tell_apps();
        let Some(generation) = self.zones.of(zone).map(|process| process.generation) else { return };
        self.tell_evidence(generation);
        let untold = self.incidents.untold(generation);
        // If there is no room for one of them, all are sent again after the next measurement.
        if untold.iter().all(|message| self.tell_service(Duty::ShowApps, message)) {
            self.incidents.on_told(generation);
        }
    }

    fn tell_apps(&mut self) {
        let samples = self.resources.usages();
        let report = |status: AppStatus| {
            let sample = samples.iter().find(|usage| usage.zone == status.zone).map(|usage| usage.sample);
            let limits = self.supervisor.spec(status.zone).map(|spec| spec.limits.clone());
            let counts = self.resources.counts_of(status.zone);
            app_report(status, &limits.unwrap_or_default(), sample, counts)
        };
        let apps = self.statuses().into_iter().map(report).collect();
        self.tell_service(Duty::ShowApps, &FromMonitor::Apps(NodeReport { apps }));
    }

    /// A message of the service.
    pub(super) fn on_order(&mut self, generation: u64, order: &ToMonitor) -> Result<(), String> {
        match order {
            ToMonitor::Command(command) => self.on_app_command(command),
            ToMonitor::ReadEvidence { ticket, number } => {
                let asked = EvidenceAsked { generation, ticket: *ticket, number: *number };
                if !self.writer.read_evidence(asked) {
                    self.tell_service(
                        Duty::ShowApps,
                        &FromMonitor::Evidence { ticket: *ticket, evidence: None },
                    );
                }
                Ok(())
            }
        }
    }

    /// Sends what was read for this start of the service.
    fn tell_evidence(&mut self, generation: u64) {
        for EvidenceRead { asked, evidence } in self.writer.take_read(EVIDENCE_AT_ONCE) {
            if asked.generation == generation {
                let evidence = evidence.map(Box::new);
                self.tell_service(Duty::ShowApps, &FromMonitor::Evidence { ticket: asked.ticket, evidence });
            }
        }
    }

    /// A command of the operator, which the service passes on.
    fn on_app_command(&mut self, command: &AppCommand) -> Result<(), String> {
        let spec = self.supervisor.zone_on(Duty::ShowApps).and_then(|zone| self.supervisor.spec(zone));
        check_permitted(&spec.map(|spec| spec.settings.clone()).unwrap_or_default())?;
        let now_unix_ms = unix_ms_at_zero().saturating_add(now_ms());
        let judged = judge(command, &self.statuses(), now_unix_ms);
        let refused = match judged {
            Err(refused) => Some(refused),
            Ok((event, record)) => {
                tracing::info!("app {}: {}", command.app, record.text);
                self.record(|_| record);
                self.heard.push_back(event);
                None
            }
        };
        self.tell_service(Duty::ShowApps, &FromMonitor::Answered { ticket: command.ticket, refused });
        Ok(())
    }
}
