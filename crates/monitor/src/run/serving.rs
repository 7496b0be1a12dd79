//! The messages between the monitor and the services of the node, over the socket of each service's zone.
//!
//! In: messages of services. Each service may send only the messages of its duty. Out: records, packages and observations for
//! them, as bytes of their contracts. It never waits for a service. Data that the next message replaces is dropped.

use audit_contract::Kept;
use resource_contract::{Observation, Observed, Rulings};
use security_contract::Verified;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store_contract::{Save, ToMonitor};
use zone::Resource;

use super::Monitor;
use crate::app::{Duty, REASON_BYTES_MAX, ZoneKind, legible};
use crate::channel::encode;
use crate::clock::now_ms;
use crate::kernel_messages::legible_verdicts;
use crate::protocol::{FaultCause, ToKernel};
use crate::supervisor::SupervisorEvent;

/// How many messages of one service are read in one turn, so that it cannot delay the monitor's other work.
const MESSAGES_PER_TURN_MAX: usize = 64;

impl Monitor {
    /// Sends a message to the service with this duty. Returns whether it runs and had space for the message.
    pub(super) fn tell_service(&mut self, duty: Duty, message: &impl Serialize) -> bool {
        let process = self.supervisor.zone_on(duty).and_then(|zone| self.zones.of(zone));
        let Some((process, message)) = process.zip(encode(message).ok()) else { return false };
        process.channel.tell(message)
    }

    /// Reads a service's messages, or writes if its socket has space again.
    pub(super) fn attend_service(&mut self, zone: u16) {
        if let Some(process) = self.zones.of(zone) {
            process.channel.send();
        }
        let duty = self.supervisor.spec(zone).and_then(|spec| spec.duty);
        for _ in 0..MESSAGES_PER_TURN_MAX {
            let Some(process) = self.zones.of(zone) else { return };
            let Some(received) = process.channel.receive() else { return };
            let (app, generation) = (process.app.clone(), process.generation);
            let heard = received.and_then(|message| self.hear_service(duty, generation, &message));
            if let Err(reason) = heard {
                let cause = FaultCause::WrongMessage;
                return self.heard.push_back(SupervisorEvent::ZoneFault { app, generation, cause, reason });
            }
        }
    }

    fn hear_service(&mut self, duty: Option<Duty>, generation: u64, message: &[u8]) -> Result<(), String> {
        match duty {
            Some(Duty::KeepRecords) => {
                let Kept { up_to } = read(message)?;
                if let Some(records) = &mut self.recording {
                    records.kept(generation, up_to);
                }
            }
            Some(Duty::JudgeUsage) => {
                let Rulings { rulings } = read(message)?;
                self.on_rulings(&rulings);
            }
            Some(Duty::VerifyPackages) => {
                let Verified { round, verdicts } = read(message)?;
                let verdicts = self.verification.on_service(generation, round, legible_verdicts(verdicts));
                self.on_verdicts(verdicts);
            }
            Some(Duty::ReportStoredBytes) => match read(message)? {
                ToMonitor::Stored { app, bytes } => self.on_stored(generation, &app, bytes),
                ToMonitor::Saved { ticket, trouble } => self.on_saved(ticket, trouble),
            },
            Some(Duty::ShowApps) => {
                let order: northbound_contract::ToMonitor = read(message)?;
                self.on_order(generation, &order)?;
            }
            None => return Err("it sent the monitor a message, and has no duty for it".to_owned()),
        }
        Ok(())
    }

    /// After each start, the service reports the stored bytes of each app again.
    fn on_stored(&mut self, generation: u64, app: &str, bytes: u64) {
        let zone = self.supervisor.statuses(0).into_iter().find(|status| status.app == app);
        if let Some(status) = zone {
            self.resources.on_stored(generation, status.zone, bytes);
        }
    }

    /// Asks the service for a copy of the store. The answer goes to this start of the kernel process.
    pub(super) fn save_store(&mut self, generation: u64, ticket: u64) {
        self.saving = Some((generation, ticket));
        if !self.tell_service(Duty::ReportStoredBytes, &Save { ticket }) {
            self.on_saved(ticket, Some("the service of the store does not run on this node now".to_owned()));
        }
    }

    fn on_saved(&mut self, ticket: u64, trouble: Option<String>) {
        let Some((generation, _)) = self.saving.take_if(|(_, waiting)| *waiting == ticket) else { return };
        // A kernel process that started later did not ask.
        if self.kernel.as_ref().is_some_and(|kernel| kernel.generation == generation) {
            let trouble = trouble.map(|why| legible(&why, REASON_BYTES_MAX));
            self.tell_kernel(&ToKernel::StoreSaved { ticket, trouble }, Vec::new());
        }
    }

    /// Sends the waiting records.
    pub(super) fn tell_records(&mut self) {
        if let Some(batch) = self.recording.as_mut().and_then(|it| it.next(now_ms())) {
            self.tell_service(Duty::KeepRecords, &batch);
        }
    }

    /// Sends the resource use of all zones.
    pub(super) fn tell_observations(&mut self) {
        let statuses = self.supervisor.statuses(0);
        let mut zones = Vec::new();
        for (zone, sample) in self.resources.take_unobserved() {
            let Some(spec) = self.supervisor.spec(zone) else { continue };
            let is_process = statuses.iter().any(|it| it.zone == zone && it.kind == ZoneKind::Process);
            let keeps_cpu = is_process && self.supervisor.enforces(zone, Resource::CpuPercent.key());
            zones.push(Observation { zone, sample, limits: spec.limits.clone(), keeps_cpu });
        }
        self.tell_service(Duty::JudgeUsage, &Observed { zones });
    }
}

fn read<M: DeserializeOwned>(message: &[u8]) -> Result<M, String> {
    serde_json::from_slice(message)
        .map_err(|error| format!("its message to the monitor cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, encode};
    use zone::{Limits, Sample};

    #[test]
    fn what_the_most_zones_use_fits_into_one_message() {
        let all = u64::MAX;
        let most = Sample {
            unix_ms: all,
            generation: all,
            memory_bytes: Some(all),
            cpu_percent: u32::MAX,
            store_bytes: all,
            ..Sample::default()
        };
        let soft = r#"{"soft": 4294967294, "hard": 4294967295}"#;
        let limits = format!(
            r#"{{"memory_bytes": {soft}, "open_files": {soft}, "processes": {soft}, "cpu_percent": {soft}, "lag_ms": {soft}}}"#
        );
        let mut limits: Limits = serde_json::from_str(&limits).unwrap();
        (limits.store_bytes, limits.soft.store_bytes) = (Some(u32::MAX), Some(u32::MAX));
        let seen = Observation { zone: u16::MAX, sample: most, limits, keeps_cpu: false };
        let zones = vec![seen; crate::app::APPS_MAX];
        assert!(encode(&Observed { zones }).unwrap().len() <= MESSAGE_BYTES_MAX);
    }
}
