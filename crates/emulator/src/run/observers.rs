//! Counts the messages between switches and controllers, and reports them to observers.
//!
//! In: what a switch received or sent. Out: counters and events. It never delays a message.

use flow::{DatapathId, Field, PortNo};
use openflow::message::NO_BUFFER;
use openflow::{Body, Message};
use software_switch::{ControllerId, Switch};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counters::Counters;
use super::event::{Audience, NetworkEvent};

/// The counters, and those who get the events.
#[derive(Debug)]
pub(super) struct Observers {
    pub(super) counters: Arc<Counters>,
    audience: Vec<Audience>,
}

impl Observers {
    /// Without observers.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Observers { counters, audience: Vec::new() }
    }

    /// Adds an observer.
    pub(super) fn add(&mut self, audience: Audience) {
        self.audience.push(audience);
    }

    /// Sends an event to all observers. Makes the event only if there are any.
    pub(super) fn tell(&mut self, event: impl FnOnce() -> NetworkEvent) {
        if !self.audience.is_empty() {
            let event = event();
            self.audience.retain(|observer| observer.tell(event.clone()));
        }
    }

    /// A switch may have agreed on a version with a controller.
    pub(super) fn on_version(&mut self, switch: &Switch, controller: ControllerId, address: SocketAddr) {
        if let Some(version) = switch.version(controller) {
            self.counters.connections.fetch_add(1, Ordering::Relaxed);
            let datapath_id = switch.datapath_id();
            self.tell(|| NetworkEvent::SwitchConnected { datapath_id, controller: address, version });
        }
    }

    /// A controller has sent a message.
    pub(super) fn on_received(&mut self, datapath_id: DatapathId, message: &Message) {
        match &message.body {
            Body::FlowMod(flow_mod) => {
                self.counters.flow_mods.fetch_add(1, Ordering::Relaxed);
                self.tell(|| NetworkEvent::FlowMod { datapath_id, flow_mod: Arc::new(flow_mod.clone()) });
            }
            Body::PacketOut(_) => {
                self.counters.packet_outs.fetch_add(1, Ordering::Relaxed);
                self.tell(|| NetworkEvent::PacketOut { datapath_id });
            }
            _ => {}
        }
    }

    /// A controller has sent bytes that cannot be decoded.
    pub(super) fn on_bad_input(&mut self) {
        self.counters.bad_messages.fetch_add(1, Ordering::Relaxed);
    }

    /// A switch has sent a message.
    pub(super) fn on_sent(&mut self, datapath_id: DatapathId, message: &Message) {
        match &message.body {
            Body::PacketIn(packet_in) => {
                self.counters.packet_ins.fetch_add(1, Ordering::Relaxed);
                let in_port = packet_in.matching.get(Field::InPort).map_or(0, |(port, _)| port as u32);
                self.tell(|| NetworkEvent::PacketIn {
                    datapath_id,
                    in_port: PortNo(in_port),
                    reason: packet_in.reason,
                    total_len: packet_in.total_len,
                    buffered: packet_in.buffer_id != NO_BUFFER,
                });
            }
            Body::BarrierReply => {
                self.counters.barriers.fetch_add(1, Ordering::Relaxed);
            }
            Body::Error(error) => {
                self.counters.errors.fetch_add(1, Ordering::Relaxed);
                self.tell(|| NetworkEvent::ErrorSent { datapath_id, kind: error.kind, code: error.code });
            }
            _ => {}
        }
    }
}
