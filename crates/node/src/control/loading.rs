//! Starts trusted apps in the kernel process: a thread loads the code, then each worker creates an instance.
//!
//! The monitor has verified the files before. Reading them here would block the control thread.

use super::super::loader::{Awaited, PATIENCE_MS};
use super::super::messages::ToWorker;
use super::Control;
use abi::ZoneId;
use config::AppGrant;
use kernel::NodeRates;
use monitor_channel::AppSource;
use monitor_channel::protocol::FromKernel;
use serde_json::{Map, Value};
use std::sync::Arc;
use zone::trusted::TrustedCode;

impl Control {
    pub(super) fn load_trusted(
        &mut self,
        zone: u16,
        app: String,
        source: AppSource,
        settings: &Map<String, Value>,
        grant: Value,
    ) -> Result<(), String> {
        let grant = AppGrant::read(grant)?;
        self.tell_grant(&app, &grant);
        let settings = serde_json::to_vec(settings).unwrap_or_default();
        let awaited = Awaited { app, settings, grant: Box::new(grant.to_kernel()) };
        let now_ms = self.now_ms();
        self.loader
            .load(zone, source, awaited, now_ms)
            .map_err(|error| format!("it could not be loaded: {error}"))
    }

    pub(super) fn on_loaded(&mut self, zone: u16, number: u64, loaded: Result<TrustedCode, String>) {
        let Some((awaited, loaded)) = self.loader.on_loaded(zone, number, loaded) else { return };
        let Awaited { app, settings, grant } = awaited;
        let rates = Arc::new(NodeRates::new(grant.quotas(), self.now_ms()));
        match loaded {
            Ok(code) => self.workers.tell_all(|| ToWorker::LoadTrusted {
                zone: ZoneId(zone),
                app: app.clone(),
                code: code.clone(),
                settings: settings.clone(),
                grant: grant.clone(),
                rates: rates.clone(),
            }),
            Err(reason) => self.to_monitor.push(FromKernel::TrustedFault { app, reason }),
        }
    }

    /// Runs an app in a process zone if its code does not load in time.
    pub(super) fn give_up_loading(&mut self) {
        for app in self.loader.take_overdue(self.now_ms()) {
            let reason = format!("its shared object was not loaded within {PATIENCE_MS} ms");
            self.to_monitor.push(FromKernel::TrustedFault { app, reason });
        }
    }
}
