//! Control events come before packet-ins, and never later than a packet-in that was pushed after them.

use proptest::prelude::*;

use super::two_lanes;
use crate::fault::PeerFault;
use crate::lanes::{Lane, Lanes};

fn popped(lanes: &mut Lanes) -> Option<(Lane, Vec<u8>)> {
    let mut buffer = Vec::new();
    let lane = lanes.pop_into(&mut buffer).expect("the peer of this test is honest")?;
    Some((lane, buffer))
}

#[test]
fn a_control_event_overtakes_the_packet_ins_that_wait() {
    let (mut packets, mut control, mut lanes) = two_lanes(64);
    for frame in [b"1", b"2", b"3"] {
        packets.push(0, &[frame]).unwrap();
    }
    let _ = packets.publish();
    assert_eq!(popped(&mut lanes), Some((Lane::Packets, b"1".to_vec())));
    control.push(0, &[b"port down"]).unwrap();
    let _ = control.publish();
    assert_eq!(popped(&mut lanes), Some((Lane::Control, b"port down".to_vec())));
    assert_eq!(popped(&mut lanes), Some((Lane::Packets, b"2".to_vec())));
    assert_eq!(popped(&mut lanes), Some((Lane::Packets, b"3".to_vec())));
    assert_eq!(popped(&mut lanes), None);
}

#[test]
fn control_events_without_end_do_not_keep_packet_ins_waiting_without_end() {
    let (mut packets, mut control, mut lanes) = two_lanes(64);
    packets.push(0, &[b"packet-in"]).unwrap();
    let _ = packets.publish();
    let taken = (0..1_000).find(|_| {
        while control.push(0, &[b"port status"]).is_ok() {}
        let _ = control.publish();
        popped(&mut lanes).is_some_and(|(lane, _)| lane == Lane::Packets)
    });
    // What was there when it was looked at, and a few more.
    assert!(taken.is_some_and(|taken| taken < 64), "{taken:?}");
}

#[test]
fn who_finds_nothing_gives_back_the_room_of_both_rings() {
    let (mut packets, mut control, mut lanes) = two_lanes(16);
    for writer in [&mut packets, &mut control] {
        writer.push(0, &[b"12345678"]).unwrap();
        let _ = writer.publish();
    }
    while popped(&mut lanes).is_some() {}
    assert_eq!((packets.free_bytes(), control.free_bytes()), (128, 128));
}

#[test]
fn who_has_an_event_in_either_ring_does_not_sleep() {
    for first in [false, true] {
        let (packets, control, mut lanes) = two_lanes(16);
        assert!(lanes.about_to_sleep());
        lanes.awake();
        let mut writer = if first { packets } else { control };
        writer.push(0, &[b"1"]).unwrap();
        assert!(!writer.publish(), "woke who is awake");
        assert!(!lanes.about_to_sleep());
        assert!(popped(&mut lanes).is_some());
        assert!(lanes.about_to_sleep());
        writer.push(0, &[b"2"]).unwrap();
        assert!(writer.publish(), "did not wake who sleeps");
    }
}

#[test]
fn a_lie_in_either_ring_is_found_out_whatever_the_other_holds() {
    for lie_in_packets in [false, true] {
        let ((packets_ring, mut packets, packets_reader), (control_ring, mut control, control_reader)) =
            (super::allocated(16), super::allocated(16));
        let mut lanes = Lanes::new(packets_reader, control_reader);
        for writer in [&mut packets, &mut control] {
            writer.push(0, &[b"1"]).unwrap();
            let _ = writer.publish();
        }
        let ring = if lie_in_packets { packets_ring } else { control_ring };
        ring.written().store(1 << 40, crate::atomic::Ordering::Release);
        let fault = (0..3).find_map(|_| lanes.pop_into(&mut Vec::new()).err());
        assert!(matches!(fault, Some(PeerFault::WroteMoreThanFits { .. })), "{fault:?}");
        assert!(!lanes.about_to_sleep(), "slept over a fault");
    }
}

proptest! {
    /// What a producer does: push either kind, show all, or let the consumer take some.
    #[test]
    fn no_control_event_comes_later_than_a_packet_in_pushed_after_it(
        steps in prop::collection::vec((0_u8..4, 1_usize..6), 1..80)
    ) {
        let (mut packets, mut control, mut lanes) = two_lanes(64);
        let (mut number, mut heard_control, mut heard_packets) = (0_u32, 0, 0);
        for (step, count) in steps {
            match step {
                0 | 1 => {
                    number += 1;
                    let writer = if step == 0 { &mut packets } else { &mut control };
                    // A full ring takes none, which changes nothing of the order of the others.
                    let _ = writer.push(0, &[&number.to_le_bytes()]);
                }
                2 => {
                    let _ = control.publish();
                    let _ = packets.publish();
                }
                _ => for (lane, frame) in (0..count).map_while(|_| popped(&mut lanes)) {
                    let heard = u32::from_le_bytes(frame.try_into().unwrap());
                    let last = if lane == Lane::Control { &mut heard_control } else { &mut heard_packets };
                    prop_assert!(heard > *last, "each ring keeps its order");
                    *last = heard;
                    prop_assert!(lane == Lane::Packets || heard > heard_packets, "{heard} after {heard_packets}");
                },
            }
        }
    }
}
