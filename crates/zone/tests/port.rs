//! A process zone's port between a worker and an app that is slow, stopped or hostile.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::os::unix::fs::FileExt;

use abi::ZoneId;
use abi::command::{Command, What, write};
use abi::event::PacketIn;
use flow::{DatapathId, PortNo};
use ring::{AppEnd, MAX_FRAME_BYTES, PeerFault, Port, PortFault, Sizes};
use zone::ZoneFault;
use zone::port::{Delivery, ProcessPort};

const RING_BYTES: usize = 256 * 1024;

fn port() -> (ProcessPort, AppEnd) {
    let port = Port::create(Sizes::new(RING_BYTES, RING_BYTES, 4096).unwrap()).unwrap();
    (ProcessPort::attach(port.kernel).unwrap(), AppEnd::attach(port.app).unwrap())
}

/// A frame of a kilobyte with its length word, so that the ring holds 256 of them.
fn frame(mark: u8) -> [u8; 1016] {
    [mark; 1016]
}

/// A packet-in of a kilobyte with its length word.
fn packet_in(datapath: u64, mark: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut packet = PacketIn {
        datapath: DatapathId(datapath),
        in_port: PortNo(1),
        buffer_id: None,
        total_len: 0,
        reason: 0,
        table_id: 0,
        cookie: 0,
        metadata: &[],
        data: &[],
    };
    assert!(abi::event::write::packet_in(&mut bytes, 1, &packet));
    let data = vec![mark; 1016 - bytes.len()];
    packet.data = &data;
    bytes.clear();
    assert!(abi::event::write::packet_in(&mut bytes, 1, &packet));
    bytes
}

fn deliver(port: &mut ProcessPort, datapath: u64, mark: u8) -> Delivery {
    port.deliver_packet_in(&packet_in(datapath, mark), |_| false)
}

fn deliver_packet_ins(port: &mut ProcessPort, mark: u8) -> usize {
    (0..1_000).take_while(|_| deliver(port, 1, mark) == Delivery::Delivered).count()
}

/// The last byte of each frame that the app finds, in order.
fn marks(app: &mut AppEnd) -> Vec<u8> {
    let mut buffer = Vec::new();
    let mut marks = Vec::new();
    while app.pop_into(&mut buffer).unwrap() {
        marks.push(buffer[buffer.len() - 1]);
    }
    marks
}

#[test]
fn a_ring_that_cannot_hold_the_longest_frames_is_refused() {
    for (packets, control) in [(MAX_FRAME_BYTES, RING_BYTES), (RING_BYTES, MAX_FRAME_BYTES)] {
        let port = Port::create(Sizes::new(packets, control, MAX_FRAME_BYTES).unwrap()).unwrap();
        let fault = ProcessPort::attach(port.kernel).err();
        assert!(matches!(fault, Some(PortFault::RingSize { found_bytes: 131_072 })), "{fault:?}");
    }
}

#[test]
fn control_events_pass_a_ring_that_is_full_of_packet_ins_and_are_read_first() {
    let (mut port, mut app) = port();
    let flood = deliver_packet_ins(&mut port, 1);
    port.flush().unwrap();
    for mark in [2, 3] {
        port.deliver_control(&frame(mark)).unwrap();
    }
    port.flush().unwrap();
    let marks = marks(&mut app);
    assert_eq!(marks[..3], [2, 3, 1]);
    assert_eq!(marks.len(), flood + 2);
}

#[test]
fn a_switch_that_floods_leaves_room_to_the_packets_of_others() {
    let (mut port, mut app) = port();
    let flood = deliver_packet_ins(&mut port, 1);
    assert!(
        (128..224).contains(&flood),
        "{flood}: it may have half of the ring, and of the rest as much as it leaves"
    );
    assert_eq!(deliver(&mut port, 1, 1), Delivery::Dropped);
    assert_eq!(deliver(&mut port, 2, 2), Delivery::Delivered);
    assert_eq!(port.dropped(), 2);
    port.flush().unwrap();
    assert_eq!(marks(&mut app).last(), Some(&2));
    assert_eq!(deliver_packet_ins(&mut port, 1), flood, "the ring was empty: everybody begins anew");
}

#[test]
fn packets_by_which_links_are_found_come_in_when_data_does_not() {
    let (mut port, _app) = port();
    let admitted =
        (0..1_000).take_while(|number| deliver(&mut port, *number, 1) == Delivery::Delivered).count();
    assert!((200..256).contains(&admitted), "{admitted} switches");
    assert_eq!(deliver(&mut port, 2_000, 1), Delivery::Dropped);
    let frame = packet_in(2_000, 2);
    assert_eq!(port.deliver_packet_in(&frame, |data| data.last() == Some(&2)), Delivery::Delivered);
}

#[test]
fn nothing_is_seen_before_the_flush() {
    let (mut port, mut app) = port();
    port.deliver_control(&frame(1)).unwrap();
    assert_eq!(marks(&mut app), b"");
    port.flush().unwrap();
    assert_eq!(marks(&mut app), [1]);
}

#[test]
fn control_events_wait_beside_a_full_ring_in_order_and_packet_ins_of_their_switch_do_not_overtake_them() {
    let (mut port, mut app) = port();
    let sent: Vec<u8> = (0..900_u32).map(|number| (number % 251) as u8).collect();
    for mark in &sent {
        port.deliver_control(&packet_in(1, *mark)).unwrap();
    }
    let mut received = Vec::new();
    // The ring takes 256 at a time.
    for waiting in [900 - 256, 900 - 512, 900 - 768, 0] {
        port.flush().unwrap();
        let delivery = deliver(&mut port, 1, 255);
        assert_eq!(delivery == Delivery::Dropped, waiting > 0, "{waiting} control events wait");
        received.extend(marks(&mut app));
    }
    assert_eq!(received, sent);
    port.flush().unwrap();
    assert_eq!(marks(&mut app), [255]);
}

#[test]
fn control_events_that_wait_keep_no_packet_of_another_switch_away() {
    let (mut port, mut app) = port();
    (0..300).for_each(|_| port.deliver_control(&packet_in(1, 1)).unwrap());
    assert_eq!(deliver(&mut port, 1, 1), Delivery::Dropped);
    assert_eq!(deliver(&mut port, 2, 2), Delivery::Delivered);
    // Of so many switches it is not known any more which they are.
    (3..100).for_each(|datapath| port.deliver_control(&packet_in(datapath, 1)).unwrap());
    assert_eq!(deliver(&mut port, 2, 2), Delivery::Dropped);
    port.flush().unwrap();
    while !marks(&mut app).is_empty() {
        port.flush().unwrap();
    }
    assert_eq!(deliver(&mut port, 1, 1), Delivery::Delivered);
}

#[test]
fn an_app_that_stops_reading_is_at_fault_after_a_bounded_amount() {
    let (mut port, mut app) = port();
    let mut delivered = 0;
    let fault = loop {
        match port.deliver_control(&frame(7)) {
            Ok(()) => delivered += 1,
            Err(fault) => break fault,
        }
        port.flush().unwrap();
        assert!(delivered < 4000, "the overflow has no bound");
    };
    assert!(matches!(fault, ZoneFault::StoppedReading { waiting_bytes: 2_000_000..=2_097_152 }), "{fault:?}");
    assert_eq!(
        fault.to_string(),
        "the app's fault: it stopped reading its events (2097152 bytes that must not be dropped are waiting); \
         its zone is restarted"
    );
    assert_eq!(marks(&mut app).len(), 256, "what was in the ring is still whole");
}

#[test]
fn a_flood_of_tiny_control_events_is_bounded_too() {
    let (mut port, _app) = port();
    let mut delivered = 0_usize;
    while port.deliver_control(b"").is_ok() {
        delivered += 1;
        assert!(delivered <= RING_BYTES / 8 + zone::overflow::OVERFLOW_BYTES / 8);
    }
}

#[test]
fn dropped_packet_ins_are_told_once_and_not_to_an_app_that_is_behind() {
    let (mut port, mut app) = port();
    assert_eq!(port.take_dropped(), 0);
    deliver_packet_ins(&mut port, 1);
    assert_eq!(deliver(&mut port, 1, 1), Delivery::Dropped);
    while port.deliver_control(&frame(9)).is_ok() {}
    assert_eq!(port.take_dropped(), 0, "told an app that has no room to hear it");
    port.flush().unwrap();
    while !marks(&mut app).is_empty() {
        port.flush().unwrap();
    }
    assert_eq!(port.take_dropped(), 2);
    assert_eq!(port.take_dropped(), 0);
    assert_eq!(port.dropped(), 2);
}

#[test]
fn a_worker_sleeps_only_when_there_is_no_command() {
    let (mut port, mut app) = port();
    let mut bytes = Vec::new();
    let barrier =
        Command { datapath: flow::DatapathId(9), ticket: 77, wants_receipt: true, what: What::Barrier };
    assert!(write::command(&mut bytes, &barrier));
    assert!(port.about_to_sleep());
    app.producer.push(&[&bytes]).unwrap();
    app.producer.publish();
    port.begin_turn();
    assert!(!port.about_to_sleep());
    let mut buffer = Vec::new();
    let frame = port.take_command(&mut buffer).unwrap().unwrap();
    let command = Command::read(&frame).unwrap();
    assert_eq!((command.datapath.0, command.ticket, command.wants_receipt), (9, 77, true));
    assert!(matches!(command.what, What::Barrier));
    assert!(port.take_command(&mut buffer).unwrap().is_none());
    assert!(port.about_to_sleep());
}

/// The result for an app that sends these bytes as a command.
fn check_command(bytes: &[u8], expected: &str) {
    let (mut port, mut app) = port();
    app.producer.push(&[bytes]).unwrap();
    app.producer.publish();
    let fault = port.take_command(&mut Vec::new()).err().map(|fault| fault.to_string());
    assert_eq!(fault.as_deref(), Some(expected), "{bytes:?}");
}

#[test]
fn bytes_that_are_no_command_are_the_apps_fault() {
    let short = "the app's fault: it sent a malformed command (malformed frame at offset 0: it is shorter than a header); \
                 its zone is restarted";
    check_command(b"", short);
    check_command(&[0xff; 23], short);
    let lies = "the app's fault: it sent a malformed command (malformed frame at offset 4: its length differs from its \
                length field); its zone is restarted";
    check_command(&[0xff; 24], lies);
    check_command(&[0; 24], lies);
}

/// A port whose app wrote ones over all of the header but its opening.
fn with_a_header_of_ones() -> ProcessPort {
    let Port { kernel, app } = Port::create(Sizes::new(RING_BYTES, RING_BYTES, 4096).unwrap()).unwrap();
    let port = ProcessPort::attach(kernel).unwrap();
    std::fs::File::from(app.memory).write_all_at(&[0xff; 4096 - 32], 32).unwrap();
    port
}

#[test]
fn an_app_that_writes_over_its_port_is_found_out_from_either_side() {
    let mut port = with_a_header_of_ones();
    assert!(!port.about_to_sleep(), "slept over a fault");
    let fault = port.take_command(&mut Vec::new()).err();
    assert!(matches!(fault, Some(ZoneFault::BrokePort(PeerFault::WroteMoreThanFits { .. }))), "{fault:?}");

    let mut port = with_a_header_of_ones();
    deliver_packet_ins(&mut port, 1);
    let fault = port.flush().err();
    assert!(matches!(fault, Some(ZoneFault::BrokePort(PeerFault::ReadMoreThanWritten { .. }))), "{fault:?}");
}

/// Apps that make something for this one.
const MAKER: ZoneId = ZoneId(1);
const NEXT: ZoneId = ZoneId(2);

#[test]
fn what_other_apps_make_is_dropped_before_the_app_could_look_stopped() {
    let (mut port, mut app) = port();
    let mut flood = |maker| {
        (0..100_000).filter(|_| port.deliver_from_app(maker, &frame(1)) == Delivery::Delivered).count()
    };
    assert_eq!(
        [flood(MAKER), flood(NEXT), flood(MAKER)],
        [108, 42, 0],
        "of the 192 that are three quarters of the ring"
    );
    assert_eq!((port.undelivered(), port.dropped()), (300_000 - 150, 0));
    // What the node itself says still has its room, and what waits beside the ring is not overtaken.
    (0..107).for_each(|_| port.deliver_control(&frame(2)).unwrap());
    assert_eq!(port.deliver_from_app(MAKER, &frame(3)), Delivery::Dropped);
    port.flush().unwrap();
    assert_eq!(marks(&mut app).len(), 150 + 106);
    port.flush().unwrap();
    assert_eq!(marks(&mut app), [2]);
    assert_eq!(port.deliver_from_app(MAKER, &frame(3)), Delivery::Delivered);
}
