//! The sockets on which apps accept connections, while a node runs.
//!
//! In: which app may have which addresses. Out: sockets that are opened for the next start of a service, or closed. It decides nothing.

use super::Monitor;
use crate::supervisor::{ChildId, SupervisorEvent};
use crate::zones::listen_key;

impl Monitor {
    /// Opens the addresses of a service that are free now. Its next start gets them.
    pub(super) fn listen(&mut self, zone: u16, generation: u64) {
        let Some(spec) = self.supervisor.spec(zone) else { return };
        let (addresses, key) = (&spec.sandbox.net.listen, listen_key(&spec.name));
        let (is_new, missing) = self.zones.listeners.open_again(&spec.name, addresses, &key);
        let (who, missing) = (ChildId::Zone { zone, generation }, missing.map(|why| why.to_string()));
        self.heard.push_back(SupervisorEvent::Listens { who, is_new, missing });
    }

    /// An app that the operator must start again, or that no longer has an address, gets no connections.
    pub(super) fn close_unused_listeners(&mut self) {
        if self.zones.listeners.is_empty() {
            return;
        }
        let (supervisor, statuses) = (&self.supervisor, self.supervisor.statuses(0));
        self.zones.listeners.keep_only(|app, address| {
            let status = statuses.iter().find(|status| status.app == app && status.state.goes_on());
            let spec = status.and_then(|status| supervisor.spec(status.zone));
            spec.is_some_and(|spec| spec.sandbox.net.listen.contains(address))
        });
    }
}
