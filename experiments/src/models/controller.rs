//! The controller of the experiments in virtual time: that of `emulator::learning`, and a log of what it did.
//!
//! ```text
//!   packet-in ──> learning controller ──> rule of the flow, which releases the packet; or a flood
//!                        └──> Log: when, and which packet
//! ```
//!
//! It answers in the moment in which it hears, so that all delays are the switch's. It decides as the app `learning-switch` with
//! `match = "flow"` does. It never reads a clock.

use emulator::simulation::Conduct;
use emulator::{Channel, RuleTimeouts, learning_controller_with};
use openflow::{Body, Message};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::packet_key::PacketKey;

/// OFPET_FLOW_MOD_FAILED of OpenFlow 1.0.
const FLOW_MOD_FAILED: u16 = 3;

/// A packet-in that was answered with a rule in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub at: Duration,
    /// The packet, if it begins a connection.
    pub key: Option<PacketKey>,
}

/// What the controller has seen.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Packet-ins with their answers, in order. The experiment takes them away when it reads them.
    pub answered: Vec<Answered>,
    /// Flow mods that the switch refused.
    pub refused: u64,
    /// Flow mods that were sent.
    pub flow_mods: u64,
}

/// A log that the controller and the experiment share.
#[derive(Clone, Debug, Default)]
pub struct SharedLog(Arc<Mutex<Log>>);

impl SharedLog {
    /// Looks at the log, or changes it.
    pub fn with<T>(&self, what: impl FnOnce(&mut Log) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The controller, for any number of switches.
pub fn controller(timeouts: RuleTimeouts, log: SharedLog) -> Conduct {
    let mut decide = learning_controller_with(timeouts);
    Box::new(move |at: Channel, message: &Message, now: Duration, out: &mut Vec<Message>| {
        let before = out.len();
        decide(at, message, now, out);
        match &message.body {
            Body::PacketIn(packet) if out[before..].iter().any(|it| matches!(it.body, Body::FlowMod(_))) => {
                let answered = Answered { at: now, key: PacketKey::of_opening(&packet.data) };
                log.with(|log| {
                    log.flow_mods += 1;
                    log.answered.push(answered);
                });
            }
            Body::Error(error) if error.kind == FLOW_MOD_FAILED => log.with(|log| log.refused += 1),
            _ => {}
        }
    })
}
