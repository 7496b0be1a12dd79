//! Explores with loom every interleaving and every permitted memory order of two threads on a tiny ring. What is read
//! was written, and a sleeping thread is woken: loom reports a lost wake-up as a deadlock.

use std::sync::Arc;

use loom::sync::Notify;
use loom::thread;

use super::{allocated, two_lanes};
use crate::lanes::{Lane, Lanes};
use crate::reader::Reader;
use crate::writer::Writer;

/// Pops one frame, sleeping until there is one.
fn pop_sleeping(reader: &mut Reader, wake: &Notify, wake_peer: &Notify) -> Vec<u8> {
    let mut buffer = Vec::new();
    loop {
        let popped = reader.pop_into(&mut buffer).unwrap();
        if reader.take_wake_due() {
            wake_peer.notify();
        }
        if popped.is_some() {
            return buffer;
        }
        let sleep = reader.about_to_sleep();
        if reader.take_wake_due() {
            wake_peer.notify();
        }
        if sleep {
            wake.wait();
            reader.awake();
        }
    }
}

/// Pushes and publishes one frame, waiting until there is room.
fn push_waiting(writer: &mut Writer, frame: &[u8], wake: &Notify, wake_peer: &Notify) {
    while writer.push(0, &[frame]).is_err() {
        if writer.about_to_wait(frame.len()) {
            wake.wait();
        }
    }
    if writer.publish() {
        wake_peer.notify();
    }
}

/// Streams these frames through a ring of so many words.
fn check(words: usize, frames: &'static [&'static [u8]]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (_, mut writer, mut reader) = allocated(words);
        let (wake_reader, wake_writer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let producer = thread::spawn({
            let (wake_reader, wake_writer) = (wake_reader.clone(), wake_writer.clone());
            move || {
                for frame in frames {
                    push_waiting(&mut writer, frame, &wake_writer, &wake_reader);
                }
                assert_eq!(writer.fault(), None);
            }
        });
        for frame in frames {
            assert_eq!(pop_sleeping(&mut reader, &wake_reader, &wake_writer), *frame);
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_sleeping_consumer_is_woken_for_each_frame() {
    check(8, &[b"a", b"b"]);
}

#[test]
fn a_waiting_producer_is_woken_for_room_and_never_overwrites_what_is_unread() {
    check(2, &[b"12345678", b"abcdefgh", b"ABCDEFGH"]);
}

#[test]
fn a_frame_around_the_end_of_the_ring_is_read_as_it_was_written() {
    check(4, &[b"12345678", b"abcdefgh12345678"]);
}

/// Pops one event of either ring, sleeping until there is one.
fn pop_lane_sleeping(lanes: &mut Lanes, wake: &Notify) -> (Lane, Vec<u8>) {
    let mut buffer = Vec::new();
    loop {
        if let Some(lane) = lanes.pop_into(&mut buffer).unwrap() {
            return (lane, buffer);
        }
        if lanes.about_to_sleep() {
            wake.wait();
            lanes.awake();
        }
    }
}

/// Whatever the threads do, the control event that was pushed before the packet-in comes before it, and neither is slept over.
fn check_lanes(publish_packet_alone: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (mut packets, mut control, mut lanes) = two_lanes(4);
        let wake = Arc::new(Notify::new());
        let producer = thread::spawn({
            let wake = wake.clone();
            move || {
                if publish_packet_alone {
                    packets.push(0, &[b"0"]).unwrap();
                    if packets.publish() {
                        wake.notify();
                    }
                }
                control.push(0, &[b"1"]).unwrap();
                packets.push(0, &[b"2"]).unwrap();
                for writer in [&mut control, &mut packets] {
                    if writer.publish() {
                        wake.notify();
                    }
                }
            }
        });
        let count = if publish_packet_alone { 3 } else { 2 };
        let heard: Vec<_> = (0..count).map(|_| pop_lane_sleeping(&mut lanes, &wake)).collect();
        let place = |of: &[u8]| heard.iter().position(|(_, frame)| frame == of).unwrap();
        assert!(place(b"1") < place(b"2"), "{heard:?}");
        assert_eq!(heard[place(b"1")].0, Lane::Control);
        producer.join().unwrap();
    });
}

#[test]
fn a_control_event_is_never_behind_a_packet_in_that_was_pushed_later() {
    check_lanes(false);
}

#[test]
fn nor_when_an_older_packet_in_was_shown_alone() {
    check_lanes(true);
}
