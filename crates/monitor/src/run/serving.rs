//! The messages between the monitor and the services of the node, over the socket of each service's zone.
//!
//! In: messages of services. Each service may send only its own messages. Out: records, packages and observations for them.
//! It never waits for a service: what the socket does not take is sent later. Data that the next message replaces is
//! dropped.

use zone::judge::Observation;

use super::{Monitor, SECURITY};
use crate::app::AppRole;
use crate::audit;
use crate::clock::now_ms;
use crate::kernel_messages::legible_verdicts;
use crate::protocol::{FromService, ToService, ToZone};
use crate::supervisor::Event;
use zone::Resource;

/// The service that judges what zones use.
const RESOURCE: &str = "resource";

/// The service that keeps what apps store.
const STORE: &str = "store";

/// Most messages of one service in one turn, so that it cannot keep the monitor from everything else.
const MESSAGES_PER_TURN_MAX: usize = 64;

impl Monitor {
    /// Tells a service that runs something: whether it could.
    pub(super) fn tell_service(&mut self, service: &str, told: ToService) -> bool {
        let supervisor = &self.supervisor;
        let is_service = |zone| supervisor.spec(zone).is_some_and(|spec| spec.role == AppRole::Service);
        let process = self.zones.iter().find(|it| it.app == service && is_service(it.zone));
        let Some(zone) = process.map(|process| process.zone) else { return false };
        self.zones.of(zone).is_some_and(|process| process.channel.tell(&ToZone::Told(told)))
    }

    /// A service says something, or its socket has room again.
    pub(super) fn attend_service(&mut self, zone: u16) {
        if let Some(process) = self.zones.of(zone) {
            process.channel.send();
        }
        for _ in 0..MESSAGES_PER_TURN_MAX {
            let Some(process) = self.zones.of(zone) else { return };
            let Some(received) = process.channel.receive() else { return };
            let (app, generation) = (process.app.clone(), process.generation);
            let heard = received.and_then(|message| self.hear_service(&app, generation, message));
            if let Err(reason) = heard {
                return self.heard.push_back(Event::ZoneFault { app, generation, reason });
            }
        }
    }

    fn hear_service(&mut self, app: &str, generation: u64, said: FromService) -> Result<(), String> {
        match (app, said) {
            (audit::SERVICE, FromService::AuditKept { up_to }) => {
                if let Some(records) = &mut self.recording {
                    records.kept(generation, up_to);
                }
            }
            (RESOURCE, FromService::Rulings { rulings }) => self.on_rulings(&rulings),
            (SECURITY, FromService::Verified { round, verdicts }) => {
                let verdicts = self.verification.on_service(generation, round, legible_verdicts(verdicts));
                self.on_verdicts(verdicts);
            }
            (STORE, FromService::Stored { app, bytes }) => self.on_stored(generation, &app, bytes),
            _ => return Err("it sent the monitor a message of another service".to_owned()),
        }
        Ok(())
    }

    /// After each start, the service of the store reports the bytes of each app again.
    fn on_stored(&mut self, generation: u64, app: &str, bytes: u64) {
        let zone = self.supervisor.statuses(0).into_iter().find(|status| status.app == app);
        if let Some(status) = zone {
            self.resources.on_stored(generation, status.zone, bytes);
        }
    }

    /// Records that wait, for the service that keeps them.
    pub(super) fn tell_records(&mut self) {
        let batch = self.recording.as_mut().and_then(|it| it.next(now_ms()));
        if let Some(audit::Batch { first, records }) = batch {
            self.tell_service(audit::SERVICE, ToService::Audit { first, records });
        }
    }

    /// What zones use, for the service that judges it.
    pub(super) fn tell_observations(&mut self) {
        let statuses = self.supervisor.statuses(0);
        let mut zones = Vec::new();
        for (zone, sample) in self.resources.take_unobserved() {
            let Some(spec) = self.supervisor.spec(zone) else { continue };
            let is_process =
                statuses.iter().any(|it| it.zone == zone && it.kind == crate::app::ZoneKind::Process);
            let keeps_cpu = is_process && self.supervisor.enforces(zone, Resource::CpuPercent.key());
            zones.push(Observation { zone, sample, limits: spec.limits.clone(), keeps_cpu });
        }
        self.tell_service(RESOURCE, ToService::Observed { zones });
    }
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
        assert!(encode(&ToZone::Told(ToService::Observed { zones })).unwrap().len() <= MESSAGE_BYTES_MAX);
    }
}
