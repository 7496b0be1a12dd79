//! Ports whose other end is not part of the network, such as an interface of this machine.
//!
//! In: frames that arrive there, and the state of their links. Out: frames that leave there, among the effects.

use flow::{MacAddr, PortNo};
use std::time::Duration;

use super::{Network, NetworkEffects};
use crate::topology::Endpoint;

impl Network {
    /// Adds an outside port to a switch. Frames that leave by it are among the effects.
    pub fn add_outside_port(
        &mut self,
        switch: usize,
        port: PortNo,
        address: MacAddr,
        name: String,
        effects: &mut NetworkEffects,
    ) {
        let now = self.clock;
        if self.ports_made.get_mut(switch).is_some_and(|ports| ports.insert(port)) {
            self.outside.insert((switch, port));
            self.at_switch(switch, effects, |switch, out| {
                switch.add_named_port(port, address, name, now, out);
            });
        }
    }

    /// Processes a frame that arrived at an outside port.
    pub fn on_frame_from_outside(
        &mut self,
        switch: usize,
        port: PortNo,
        frame: Vec<u8>,
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.pass_to(now);
        self.taps.note(Endpoint::Switch { index: switch, port }, false, now, &frame, &mut effects.captured);
        self.at_switch(switch, effects, |switch, out| switch.on_frame(port, frame, now, out));
    }

    /// Sets the link state of an outside port.
    pub fn set_outside_link(&mut self, switch: usize, port: PortNo, up: bool, effects: &mut NetworkEffects) {
        self.at_switch(switch, effects, |switch, out| switch.set_link(port, up, out));
    }
}
