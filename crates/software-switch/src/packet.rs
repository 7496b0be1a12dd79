//! A packet on its way through a switch.

use flow::frame::FrameFields;
use flow::{Action, Field, PortNo};

use super::flow_key::FlowKey;
use super::meter;
use crate::frame::actions;

/// A frame, and the pipeline's data about it (1.3.5, 5.1).
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// The frame.
    pub(crate) frame: Vec<u8>,
    /// The port that received it, or that a packet-out names as its ingress port.
    pub(crate) in_port: PortNo,
    /// The metadata that a table writes for later tables.
    pub(crate) metadata: u64,
}

impl Packet {
    /// A packet that has just been received.
    pub(crate) fn new(frame: Vec<u8>, in_port: PortNo) -> Self {
        Packet { frame, in_port, metadata: 0 }
    }

    /// Its current fields.
    pub(crate) fn fields(&self) -> FrameFields {
        let mut fields = FrameFields::read(&self.frame);
        fields.set(Field::InPort, self.in_port);
        fields.set(Field::Metadata, self.metadata);
        fields
    }

    /// Its current fields as a key to the flow tables.
    pub(crate) fn key(&self) -> FlowKey {
        FlowKey::of(&self.fields())
    }

    /// Raises the drop precedence of its DSCP, as a meter band requires.
    pub(crate) fn raise_drop_precedence(&mut self, steps: u8) {
        let dscp = self.fields().get(Field::IpDscp).and_then(|dscp| u8::try_from(dscp).ok());
        if let Some(dscp) = dscp {
            let set = Action::SetField { field: Field::IpDscp, value: meter::remark(dscp, steps).into() };
            // Only an action on a time-to-live can fail.
            let _ = actions::apply(&set, &mut self.frame);
        }
    }

    /// Takes the packet out, and leaves an empty frame behind.
    pub(crate) fn take(&mut self) -> Packet {
        Packet { frame: std::mem::take(&mut self.frame), ..*self }
    }
}
