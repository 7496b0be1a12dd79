//! Shows and removes pins of datapath ids for the operator.
//!
//! southbound decides which certificate may claim an id.

use super::super::operator_line::Peer;
use super::super::worker::now_unix_ms;
use super::Control;
use audit_contract::Record;
use flow::DatapathId;
use operator::contract::{Answer, PinView};

impl Control {
    pub(super) fn pins_view(&self) -> Answer {
        let pins = self.roster.pins();
        let view = |(datapath, certificate): (DatapathId, southbound::Fingerprint)| PinView {
            datapath,
            certificate: certificate.to_string(),
            up: self.roster.worker_of(datapath).is_some(),
        };
        Answer::Pins(pins.into_iter().map(view).collect())
    }

    /// An existing session of the id continues. The next certificate that claims the id is pinned.
    pub(super) fn forget_pin(&mut self, datapath: DatapathId, peer: Peer) -> Answer {
        let Some(certificate) = self.roster.forget_pin(datapath) else {
            return Answer::Refused(format!(
                "{datapath} is not pinned; `burnet tls pins` lists the pinned datapath ids"
            ));
        };
        tracing::info!(
            "datapath id {datapath} is no longer pinned to {certificate}: the operator removed the pin ({peer})"
        );
        let asked = format!("forget the pin of {datapath} to {certificate} ({peer})");
        let record = Record::new(now_unix_ms(), "asked", "operator", asked);
        self.to_monitor.push_records(vec![Record { switch: Some(datapath.to_string()), ..record }]);
        Answer::Done
    }
}
