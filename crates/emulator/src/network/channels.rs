//! The connections between switches and their controllers.
//!
//! In: connections that open and end, and the messages of controllers. Out: the switches' messages, among the effects.
//! It holds no socket.

use openflow::{Body, Message};
use software_switch::{ControllerId, Parting};
use std::time::Duration;

use super::{Channel, Network, NetworkEffects};

impl Network {
    /// A switch's connection to a controller is open.
    pub fn on_connected(&mut self, at: Channel, effects: &mut NetworkEffects) {
        if !self.is_switch_up(at.switch) {
            return effects.close.push((at, Parting::SwitchedOff));
        }
        self.channels.insert(at);
        self.at_switch(at.switch, effects, |switch, out| switch.on_connected(at.controller, out));
    }

    /// A switch's connection to a controller has ended.
    pub fn on_disconnected(&mut self, at: Channel) {
        self.channels.remove(&at);
        if let Some(switch) = self.switches.get_mut(at.switch) {
            switch.on_disconnected(at.controller);
        }
    }

    /// Ends all connections of a switch that is switched off.
    pub(super) fn disconnect(&mut self, switch: usize, effects: &mut NetworkEffects) {
        let last = Channel { switch, controller: ControllerId(usize::MAX) };
        let first = Channel { switch, controller: ControllerId(0) };
        let all = self.channels.range(first..=last);
        effects.close.extend(all.map(|at| (*at, Parting::SwitchedOff)));
    }

    /// A message for a switch has arrived.
    pub fn on_message(
        &mut self,
        at: Channel,
        message: &Message,
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.pass_to(now);
        self.at_switch(at.switch, effects, |switch, out| {
            switch.on_message(at.controller, message, now, out);
        });
        self.rules_may_be_due(at.switch, message);
    }

    /// The same, with the message's original bytes.
    pub fn on_received(
        &mut self,
        at: Channel,
        message: &Message,
        bytes: &[u8],
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.pass_to(now);
        self.at_switch(at.switch, effects, |switch, out| {
            switch.on_received(at.controller, message, bytes, now, out);
        });
        self.rules_may_be_due(at.switch, message);
    }

    /// Schedules the switch, because a flow mod may have added a rule with a time-out.
    fn rules_may_be_due(&mut self, switch: usize, message: &Message) {
        if matches!(message.body, Body::FlowMod(_)) {
            self.set_due_of_switch(switch);
        }
    }

    /// Bytes for a switch have arrived that cannot be decoded. `beginning` is their start.
    pub fn on_bad_input(
        &mut self,
        at: Channel,
        xid: u32,
        error: flow::ErrorCode,
        beginning: &[u8],
        effects: &mut NetworkEffects,
    ) {
        self.at_switch(at.switch, effects, |switch, out| {
            switch.on_bad_input(at.controller, xid, error, beginning, out);
        });
    }
}
