//! A packet on its way through a switch.

use flow::frame::FrameFields;
use flow::{Action, Field, PortNo};

use super::flow_key::FlowKey;
use super::meter;
use crate::frame::actions;

/// A frame and what the pipeline knows of it beside its bytes (1.3.5, 5.1).
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// The frame.
    pub(crate) frame: Vec<u8>,
    /// The port by which it came in, or is taken to have come in.
    pub(crate) in_port: PortNo,
    /// What tables write for later tables.
    pub(crate) metadata: u64,
}

impl Packet {
    /// A packet that has just come in.
    pub(crate) fn new(frame: Vec<u8>, in_port: PortNo) -> Self {
        Packet { frame, in_port, metadata: 0 }
    }

    /// Its fields as they are now.
    pub(crate) fn fields(&self) -> FrameFields {
        let mut fields = FrameFields::read(&self.frame);
        fields.set(Field::InPort, self.in_port);
        fields.set(Field::Metadata, self.metadata);
        fields
    }

    /// The same as a key to the flow tables.
    pub(crate) fn key(&self) -> FlowKey {
        FlowKey::of(&self.fields())
    }

    /// Raises the drop precedence of its DSCP, as a meter's band wants it.
    pub(crate) fn raise_drop_precedence(&mut self, steps: u8) {
        let dscp = self.fields().get(Field::IpDscp).and_then(|dscp| u8::try_from(dscp).ok());
        if let Some(dscp) = dscp {
            let set = Action::SetField { field: Field::IpDscp, value: meter::remark(dscp, steps).into() };
            // Only a time-to-live can make an action fail.
            let _ = actions::apply(&set, &mut self.frame);
        }
    }

    /// The packet; what stays behind has no frame.
    pub(crate) fn take(&mut self) -> Packet {
        Packet { frame: std::mem::take(&mut self.frame), ..*self }
    }
}
