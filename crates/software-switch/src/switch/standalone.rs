//! What a switch does without a controller (1.3.5, 6.3.2), and for the output NORMAL.
//!
//! In: a frame. Out: the ports by which it leaves. It never reads a flow table.

use flow::{MacAddr, PortNo};
use std::time::Duration;

use super::{Effects, Switch};
use crate::options::FailMode;

/// Frames to 01:80:c2:00:00:00 to :0f are for the bridge itself and go no further (IEEE 802.1Q, 8.6.3).
const FOR_BRIDGES: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

impl Switch {
    /// Whether it acts as a learning switch now.
    pub fn stands_alone(&self) -> bool {
        self.options.fail_mode == FailMode::Standalone && !self.is_connected()
    }

    /// Sends a frame to the port of its destination, or by all other ports if that is unknown.
    pub(super) fn switch_by_address(
        &mut self,
        in_port: PortNo,
        frame: Vec<u8>,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some((to, from, vlan)) = addresses(&frame) else { return };
        if to.0[..5] == FOR_BRIDGES && to.0[5] < 0x10 {
            return;
        }
        // The packet of a packet-out may have no ingress port.
        if self.ports.contains_key(&in_port) {
            self.addresses.learn(vlan, from, in_port, now);
        }
        let known = self.addresses.find(vlan, to, now);
        for (number, port) in &mut self.ports {
            let wanted = known.map_or(port.floods(), |at| at == *number);
            if *number != in_port && wanted && port.send(frame.len()) {
                effects.frames.push((*number, frame.clone()));
            }
        }
    }
}

/// Destination, source, and the VLAN id of the outer tag; 0 if there is no tag.
fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr, u16)> {
    let (to, rest) = frame.split_first_chunk::<6>()?;
    let (from, rest) = rest.split_first_chunk::<6>()?;
    let vlan = match rest {
        [0x81, 0x00, high, low, ..] => u16::from_be_bytes([*high, *low]) & 0x0fff,
        _ => 0,
    };
    Some((MacAddr(*to), MacAddr(*from), vlan))
}
