//! Collects the audit records of apps and of the kernel process, and passes them to the service.
//!
//! In: statuses, records, acknowledgements of the service. Out: batches. Pure, as [`crate::audit`] is.

use crate::app::{AppState, AppStatus, KernelStatus};
use crate::audit::{self, Batch, Collector, Record};
use crate::protocol::AUDIT_RECORDS_MAX;

/// The records of a node that has a service for them.
#[derive(Debug)]
pub(crate) struct Recording {
    collector: Collector,
    /// The name of the service that keeps them.
    service: String,
    /// The statuses of apps and kernel at the last records.
    before: (Vec<AppStatus>, KernelStatus),
}

impl Recording {
    pub(crate) fn new(service: String, apps: Vec<AppStatus>, kernel: KernelStatus) -> Recording {
        Recording { collector: Collector::default(), service, before: (apps, kernel) }
    }

    pub(crate) fn push(&mut self, record: Record) {
        self.collector.push(record);
    }

    /// The changes of apps and kernel since the last call.
    pub(crate) fn observe(&mut self, apps: Vec<AppStatus>, kernel: KernelStatus, now_unix_ms: u64) {
        let before = std::mem::replace(&mut self.before, (apps, kernel));
        let (apps, kernel) = &self.before;
        let changes = audit::changes((&before.0, &before.1), (apps, kernel), now_unix_ms);
        changes.into_iter().for_each(|record| self.collector.push(record));
        if self.running_service(apps) != self.running_service(&before.0) {
            self.collector.service_ended();
        }
    }

    /// Takes records of the kernel process.
    pub(crate) fn hear(&mut self, told: Vec<Record>) {
        told.into_iter().take(AUDIT_RECORDS_MAX).for_each(|record| self.collector.push(record));
    }

    /// The service has stored records. A late message of an earlier start is ignored.
    pub(crate) fn kept(&mut self, generation: u64, up_to: u64) {
        if self.running_service(&self.before.0) == Some(generation) {
            self.collector.kept(generation, up_to);
        }
    }

    pub(crate) fn next(&mut self, now_ms: u64) -> Option<Batch> {
        self.collector.next(now_ms)
    }

    pub(crate) fn take_unkept(&mut self) -> Batch {
        self.collector.take_unkept()
    }

    /// The number of the running start of the records service, if it runs.
    fn running_service(&self, apps: &[AppStatus]) -> Option<u64> {
        let of = |app: &&AppStatus| app.app == self.service && app.state == AppState::Running;
        apps.iter().find(of).map(|app| app.generation)
    }
}
