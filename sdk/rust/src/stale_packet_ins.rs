//! Filters stale packet-ins: those that are older than a control event that the app has already received.
//!
//! An app receives control events before waiting packet-ins. So a packet-in can arrive after the event that its switch is
//! disconnected or its port is down. An app would learn outdated facts from it. So it is skipped.
//!
//! In: events in order. Out: whether an event is stale. It stores at most [`CONTROL_EVENTS_MAX`] control events.

use abi::Frame;
use abi::event::{Event, PacketIn, kind};

/// The maximum number of stored control events. A newer packet-in of the switch removes them. Beyond the bound, the oldest is
/// removed, and its stale packet-ins are delivered.
const CONTROL_EVENTS_MAX: usize = 32;

/// A control event of a switch, or of one port.
#[derive(Clone, Copy)]
struct ControlEvent {
    datapath: u64,
    /// `None`: all ports of the switch.
    port: Option<u32>,
    /// The sequence number of the event, which grows for each switch.
    sequence: u64,
}

/// The control events that are newer than waiting packet-ins.
#[derive(Default)]
pub(crate) struct StalePacketIns {
    control_events: Vec<ControlEvent>,
}

impl StalePacketIns {
    /// Whether an event is stale and must be skipped.
    pub(crate) fn is_stale(&mut self, frame: &Frame<'_>) -> bool {
        match frame.header.kind.get() {
            kind::PACKET_IN => !self.control_events.is_empty() && self.is_overtaken(frame),
            kind::SWITCH_DOWN => self.note(frame, None),
            kind::PORT_STATUS => match Event::read(frame) {
                Ok(Event::PortStatus(it)) if it.is_gone() || !it.port.facts().live => {
                    self.note(frame, Some(it.port.port_no().0))
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn note(&mut self, frame: &Frame<'_>, port: Option<u32>) -> bool {
        if self.control_events.len() >= CONTROL_EVENTS_MAX {
            self.control_events.remove(0);
        }
        let (datapath, sequence) = (frame.header.datapath.get(), frame.header.sequence.get());
        self.control_events.push(ControlEvent { datapath, port, sequence });
        false
    }

    fn is_overtaken(&mut self, frame: &Frame<'_>) -> bool {
        let (datapath, sequence) = (frame.header.datapath.get(), frame.header.sequence.get());
        // The packet-ins of a switch keep their order: no older one follows.
        self.control_events.retain(|it| it.datapath != datapath || it.sequence > sequence);
        let mut of_switch = self.control_events.iter().filter(|it| it.datapath == datapath).peekable();
        if of_switch.peek().is_none() {
            return false;
        }
        let in_port = PacketIn::read(frame).map(|packet| packet.in_port.0).ok();
        of_switch.any(|it| it.port.is_none() || it.port == in_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::{PORT_DELETED, PortFacts, PortRecord, PortStatus, write};
    use flow::{DatapathId, Field, MacAddr, Match, PortNo};

    fn heard(stale: &mut StalePacketIns, bytes: &[u8]) -> bool {
        !stale.is_stale(&Frame::read(bytes).expect("abi writes frames"))
    }

    fn packet(stale: &mut StalePacketIns, sequence: u64, datapath: u64, port: u32) -> bool {
        let mut metadata = Vec::new();
        flow::canonical::write_match(&Match::any().with(Field::InPort, PortNo(port)), &mut metadata);
        let packet = PacketIn {
            datapath: DatapathId(datapath),
            in_port: PortNo(port),
            buffer_id: None,
            total_len: 0,
            reason: 0,
            table_id: 0,
            cookie: 0,
            metadata: &metadata,
            data: &[],
        };
        let mut bytes = Vec::new();
        assert!(write::packet_in(&mut bytes, sequence, &packet));
        heard(stale, &bytes)
    }

    fn port_status(stale: &mut StalePacketIns, sequence: u64, port: u32, reason: u8, live: bool) {
        let port = PortRecord::new(PortFacts {
            port_no: PortNo(port),
            hw_addr: MacAddr::default(),
            live,
            administratively_up: true,
            curr_speed_kbps: 0,
            name: "p",
        });
        let mut bytes = Vec::new();
        write::port_status(
            &mut bytes,
            sequence,
            &PortStatus { datapath: DatapathId(1), reason, port: &port },
        );
        assert!(heard(stale, &bytes), "the control event itself is delivered");
    }

    fn switch_down(stale: &mut StalePacketIns, sequence: u64, datapath: u64) {
        let mut bytes = Vec::new();
        write::switch_down(&mut bytes, sequence, DatapathId(datapath));
        assert!(heard(stale, &bytes), "the control event itself is delivered");
    }

    #[test]
    fn older_packets_of_a_switch_that_is_gone_are_passed_over() {
        let mut stale = StalePacketIns::default();
        switch_down(&mut stale, 50, 1);
        assert!(!packet(&mut stale, 10, 1, 3));
        assert!(packet(&mut stale, 10, 2, 3), "of another switch");
        assert!(!packet(&mut stale, 49, 1, 3));
        assert!(packet(&mut stale, 51, 1, 3), "it is there again");
        assert!(stale.control_events.is_empty(), "which ends the control event");
    }

    #[test]
    fn older_packets_of_a_port_that_is_down_are_passed_over_and_of_other_ports_not() {
        let mut stale = StalePacketIns::default();
        port_status(&mut stale, 50, 7, 2, false);
        port_status(&mut stale, 51, 8, PORT_DELETED, true);
        port_status(&mut stale, 52, 9, 2, true);
        for (port, is_heard) in [(7, false), (8, false), (9, true), (1, true)] {
            assert_eq!(packet(&mut stale, 10, 1, port), is_heard, "port {port}");
        }
        assert!(packet(&mut stale, 60, 1, 7));
    }

    #[test]
    fn news_without_end_is_forgotten_from_its_beginning() {
        let mut stale = StalePacketIns::default();
        (0..10_000).for_each(|datapath| switch_down(&mut stale, 50, datapath));
        assert_eq!(stale.control_events.len(), CONTROL_EVENTS_MAX);
        assert!(packet(&mut stale, 10, 0, 1));
        assert!(!packet(&mut stale, 10, 9_999, 1));
    }
}
