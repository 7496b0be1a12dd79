//! Packets in the buffer of one switch that apps with a flowspace have received and may still send.
//!
//! ```text
//!   packet-in with a buffer ──> Buffers::hand_out, for each app that receives it ──> Handed: where in its flowspaces the packet is
//!   command with that buffer ──> Buffers::find ──> what is known of the packet, or nothing ──sent──> Buffers::on_used
//! ```
//!
//! A switch gives the number of a free buffer to another packet. So a number counts only for the apps that have received the
//! last packet with it, and every packet-in with a buffer must come here.
//!
//! In: packet-ins and their receivers, commands that were sent, and the time. Out: what is known of a buffered packet. It
//! never keeps a packet. Bounds: [`HANDED_MAX`] packets for each app, and the last packet of [`LATEST`] numbers. A newer
//! packet takes the place of an older one, whose app can then not use the buffer any more. Memory is allocated when an app
//! receives its first buffer of the switch.

use abi::ZoneId;
use flow::PortNo;

/// How many buffered packets of one switch an app may still use: as many as Open vSwitch buffered, and a power of two.
pub const HANDED_MAX: usize = 256;

/// How long an app may use a buffer, in milliseconds. Open vSwitch kept packets for five seconds, and then gave the number to another packet. An
/// app's time is shorter, since it counts from when the node has read the packet-in.
pub const HANDED_MS: u64 = 2_000;

/// Of how many numbers the last packet is known; a power of two.
const LATEST: usize = 1_024;

/// Where a packet is within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// In the match with this place in the flowspace.
    Match(u8),
    /// It came in by one of the app's own ports.
    OwnPort,
    /// Outside.
    Outside,
}

/// What is known of a buffered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    /// The port by which it came in.
    pub in_port: PortNo,
    /// Where it is within the bounds of `rule.write`.
    pub rule_write: Within,
    /// Where it is within the bounds of `packet.out`.
    pub packet_out: Within,
}

/// A packet that an app has received.
#[derive(Clone, Copy, Debug)]
struct Kept {
    buffer_id: u32,
    /// The number of the packet-in; 0: no packet.
    packet: u32,
    at_ms: u64,
    what: Handed,
}

/// No packet.
const NONE: Kept = Kept {
    buffer_id: 0,
    packet: 0,
    at_ms: 0,
    what: Handed { in_port: PortNo(0), rule_write: Within::Outside, packet_out: Within::Outside },
};

/// The buffered packets of one switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    /// The last packet of a buffer, by the lower bits of the buffer's number: the buffer, and the number of the packet-in.
    latest: Vec<(u32, u32)>,
    /// Packet-ins with a buffer so far. It may start again: a packet is forgotten long before.
    packets: u32,
    /// The packets of each app, in the order of the apps' numbers, by the lower bits of the buffer's number.
    of_zones: Vec<(ZoneId, Vec<Kept>)>,
}

impl Buffers {
    /// Another packet has this buffer now. Nobody may use the one that it had before.
    pub fn on_packet(&mut self, buffer_id: u32) {
        if self.of_zones.is_empty() {
            // No app has a packet that it could lose.
            return;
        }
        self.packets = self.packets.wrapping_add(1).max(1);
        let place = place_of(buffer_id, LATEST);
        if let Some(latest) = self.latest.get_mut(place) {
            *latest = (buffer_id, self.packets);
        }
    }

    /// An app receives the last packet that has this buffer.
    pub fn hand_out(&mut self, zone: ZoneId, buffer_id: u32, what: Handed, now_ms: u64) {
        if let Err(place) = self.find_zone(zone) {
            let is_first = self.of_zones.is_empty();
            self.of_zones.insert(place, (zone, vec![NONE; HANDED_MAX]));
            self.latest.resize(LATEST, (0, 0));
            if is_first {
                self.on_packet(buffer_id);
            }
        }
        let packet = self.packets;
        let kept = Kept { buffer_id, packet, at_ms: now_ms, what };
        if let Some(place) = self.place(zone, buffer_id) {
            *place = kept;
        }
    }

    /// What is known of the packet in this buffer, if the app received it and may still use it.
    pub fn find(&self, zone: ZoneId, buffer_id: u32, now_ms: u64) -> Option<Handed> {
        let (_, of_zone) = self.of_zones.get(self.find_zone(zone).ok()?)?;
        let kept = of_zone.get(place_of(buffer_id, HANDED_MAX)).filter(|kept| kept.buffer_id == buffer_id)?;
        let is_last = self.latest.get(place_of(buffer_id, LATEST)) == Some(&(buffer_id, kept.packet));
        let is_young = now_ms.saturating_sub(kept.at_ms) <= HANDED_MS;
        (kept.packet != 0 && is_last && is_young).then_some(kept.what)
    }

    /// An app has used this buffer. The switch may give its number to another packet at once, so nobody else may use it.
    pub fn on_used(&mut self, buffer_id: u32) {
        let place = place_of(buffer_id, LATEST);
        if let Some(latest) = self.latest.get_mut(place).filter(|latest| latest.0 == buffer_id) {
            *latest = (buffer_id, 0);
        }
    }

    /// The app has other bounds now, or has gone.
    pub fn forget(&mut self, zone: ZoneId) {
        if let Ok(place) = self.find_zone(zone) {
            self.of_zones.remove(place);
        }
    }

    fn find_zone(&self, zone: ZoneId) -> Result<usize, usize> {
        self.of_zones.binary_search_by_key(&zone, |(owner, _)| *owner)
    }

    fn place(&mut self, zone: ZoneId, buffer_id: u32) -> Option<&mut Kept> {
        let place = self.find_zone(zone).ok()?;
        let (_, of_zone) = self.of_zones.get_mut(place)?;
        of_zone.get_mut(place_of(buffer_id, HANDED_MAX))
    }
}

/// The place of a buffer among a power of two of places.
fn place_of(buffer_id: u32, places: usize) -> usize {
    buffer_id as usize & (places - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(2);

    fn packet(port: u32) -> Handed {
        Handed { in_port: PortNo(port), ..NONE.what }
    }

    fn receive(buffers: &mut Buffers, zone: ZoneId, buffer_id: u32, port: u32, now_ms: u64) {
        buffers.on_packet(buffer_id);
        buffers.hand_out(zone, buffer_id, packet(port), now_ms);
    }

    #[test]
    fn an_app_uses_what_it_received_once() {
        let mut buffers = Buffers::default();
        receive(&mut buffers, APP, 7, 1, 0);
        assert_eq!(buffers.find(APP, 7, 0), Some(packet(1)));
        assert_eq!((buffers.find(OTHER, 7, 0), buffers.find(APP, 8, 0)), (None, None));
        buffers.on_used(7 + LATEST as u32);
        assert_eq!(buffers.find(APP, 7, 0), Some(packet(1)));
        buffers.on_used(7);
        assert_eq!(buffers.find(APP, 7, 0), None);
    }

    #[test]
    fn what_one_app_used_no_other_app_may_use() {
        let mut buffers = Buffers::default();
        receive(&mut buffers, APP, 7, 1, 0);
        buffers.hand_out(OTHER, 7, packet(1), 0);
        assert_eq!(buffers.find(OTHER, 7, 0), Some(packet(1)));
        buffers.on_used(7);
        assert_eq!((buffers.find(APP, 7, 0), buffers.find(OTHER, 7, 0)), (None, None));
        receive(&mut buffers, OTHER, 7, 2, 1);
        assert_eq!((buffers.find(APP, 7, 1), buffers.find(OTHER, 7, 1)), (None, Some(packet(2))));
    }

    #[test]
    fn a_buffer_of_another_packet_is_not_the_apps_any_more() {
        let mut buffers = Buffers::default();
        receive(&mut buffers, APP, 7, 1, 0);
        receive(&mut buffers, OTHER, 7, 2, 1);
        assert_eq!((buffers.find(APP, 7, 1), buffers.find(OTHER, 7, 1)), (None, Some(packet(2))));
        buffers.on_packet(7);
        assert_eq!(buffers.find(OTHER, 7, 1), None);
        // Number 0 is a buffer like any other.
        receive(&mut buffers, APP, 0, 3, 2);
        assert_eq!(buffers.find(APP, 0, 2), Some(packet(3)));
    }

    #[test]
    fn a_buffer_is_forgotten_after_some_time_and_with_its_app() {
        let mut buffers = Buffers::default();
        receive(&mut buffers, APP, 7, 1, 5);
        assert!(buffers.find(APP, 7, 5 + HANDED_MS).is_some());
        assert_eq!(buffers.find(APP, 7, 6 + HANDED_MS), None);
        buffers.forget(APP);
        assert_eq!(buffers.find(APP, 7, 5), None);
    }

    #[test]
    fn an_app_without_end_has_as_many_as_its_bound() {
        let mut buffers = Buffers::default();
        (0..5_000).for_each(|number| receive(&mut buffers, APP, number, 1, 0));
        let held = (0..5_000).filter(|number| buffers.find(APP, *number, 0).is_some()).count();
        assert_eq!(held, HANDED_MAX);
    }
}
