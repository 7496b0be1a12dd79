//! Frames go through whole, in order, and only when there is room. On an allocation, so that Miri can look on.

use proptest::prelude::*;

use super::allocated;
use crate::fault::{Full, PeerFault};
use crate::reader::Reader;
use crate::writer::Writer;

fn pop(reader: &mut Reader) -> Option<Vec<u8>> {
    let mut buffer = b"left over from before".to_vec();
    reader.pop_into(&mut buffer).expect("the peer of this test is honest").map(|length| {
        assert_eq!(length, buffer.len());
        buffer
    })
}

fn pushed(writer: &mut Writer, frame: &[u8]) -> bool {
    match writer.push(0, &[frame]) {
        Ok(()) => true,
        Err(Full::NoRoom) => false,
        Err(too_long) => panic!("{too_long}"),
    }
}

#[test]
fn a_frame_is_invisible_until_it_is_published() {
    let (_, mut writer, mut reader) = allocated(16);
    writer.push(0, &[b"hello"]).unwrap();
    assert_eq!(pop(&mut reader), None);
    let _ = writer.publish();
    assert_eq!(pop(&mut reader).as_deref(), Some(&b"hello"[..]));
    assert_eq!(pop(&mut reader), None);
}

#[test]
fn a_pop_of_nothing_leaves_the_buffer_alone() {
    let (_, _, mut reader) = allocated(16);
    let mut buffer = b"kept".to_vec();
    assert_eq!(reader.pop_into(&mut buffer), Ok(None));
    assert_eq!(buffer, b"kept");
}

#[test]
fn parts_of_any_length_join_into_one_frame() {
    let bytes: Vec<u8> = (1..=40).collect();
    for first in 0..=20 {
        for second in first..=40 {
            let (_, mut writer, mut reader) = allocated(16);
            writer.push(0, &[&bytes[..first], &bytes[first..second], &[], &bytes[second..]]).unwrap();
            let _ = writer.publish();
            assert_eq!(pop(&mut reader).as_deref(), Some(&bytes[..]), "split at {first} and {second}");
        }
    }
}

#[test]
fn every_length_from_nothing_to_the_most_goes_through() {
    let (_, mut writer, mut reader) = allocated(32);
    for length in 0..=31 * 8 {
        let frame: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
        assert!(pushed(&mut writer, &frame), "{length} bytes do not fit into an empty ring");
        let _ = writer.publish();
        assert_eq!(pop(&mut reader), Some(frame));
        assert_eq!(pop(&mut reader), None);
    }
}

#[test]
fn a_frame_that_never_fits_is_called_too_long_and_not_full() {
    let (_, mut writer, _) = allocated(32);
    let too_long = Err(Full::FrameTooLong { length_bytes: 249, max_bytes: 248 });
    assert_eq!(writer.push(0, &[&[0; 200], &[0; 49]]), too_long);
    assert!(!writer.about_to_wait(249), "waited for room that never comes");
}

#[test]
fn a_full_ring_takes_nothing_and_loses_nothing() {
    let (_, mut writer, mut reader) = allocated(8);
    assert!(pushed(&mut writer, b"12345678"));
    assert!(pushed(&mut writer, b"abcdefgh"));
    assert!(pushed(&mut writer, b"ABCDEFGH"));
    assert!(!pushed(&mut writer, b"no more!x"));
    assert!(pushed(&mut writer, b"fits too"));
    assert!(!pushed(&mut writer, b""));
    assert_eq!(writer.free_bytes(), 0);
    let _ = writer.publish();
    for frame in [b"12345678", b"abcdefgh", b"ABCDEFGH", b"fits too"] {
        assert_eq!(pop(&mut reader).as_deref(), Some(&frame[..]));
    }
    assert_eq!(writer.free_bytes(), 64);
}

#[test]
fn a_reserve_is_kept_back() {
    let (_, mut writer, _) = allocated(16);
    assert_eq!(writer.push(64, &[&[7; 56]]), Ok(()));
    assert_eq!(writer.push(64, &[b""]), Err(Full::NoRoom));
    assert_eq!(writer.push(56, &[b""]), Ok(()));
    assert_eq!(writer.free_bytes(), 56);
    assert_eq!(writer.push(usize::MAX, &[b""]), Err(Full::NoRoom));
}

#[test]
fn padding_never_shows_bytes_of_an_earlier_frame() {
    let (ring, mut writer, mut reader) = allocated(4);
    assert!(pushed(&mut writer, &[0xff; 24]));
    let _ = writer.publish();
    pop(&mut reader).unwrap();
    assert!(pushed(&mut writer, b"x"));
    assert_eq!(ring.word(5).load(crate::atomic::Ordering::Relaxed).to_ne_bytes(), *b"x\0\0\0\0\0\0\0");
}

#[test]
fn only_a_sleeper_is_woken_and_only_once() {
    let (_, mut writer, mut reader) = allocated(64);
    assert!(pushed(&mut writer, b"awake"));
    assert!(!writer.publish(), "woke a consumer that does not sleep");
    assert!(!reader.about_to_sleep(), "slept over a frame");
    assert!(pushed(&mut writer, b"still awake"));
    assert!(!writer.publish());
    while pop(&mut reader).is_some() {}
    assert!(reader.about_to_sleep());
    assert!(!writer.publish(), "woke somebody for nothing");
    assert!(pushed(&mut writer, b"up!"));
    assert!(writer.publish());
    assert!(pushed(&mut writer, b"and more"));
    assert!(!writer.publish(), "woke twice");
}

#[test]
fn a_waiting_producer_is_woken_when_there_is_room() {
    let (_, mut writer, mut reader) = allocated(4);
    assert!(pushed(&mut writer, &[1; 24]));
    let _ = writer.publish();
    assert!(writer.about_to_wait(24));
    assert!(!reader.take_wake_due());
    pop(&mut reader).unwrap();
    reader.release();
    assert!(reader.take_wake_due());
    assert!(!writer.about_to_wait(24), "waited although there is room");
    assert!(pushed(&mut writer, &[2; 24]));
}

#[test]
fn a_fault_is_told_again_and_again() {
    let (ring, _, mut reader) = allocated(4);
    ring.written().store(5, crate::atomic::Ordering::Relaxed);
    let fault = PeerFault::WroteMoreThanFits { claimed_bytes: 40, ring_bytes: 32 };
    assert_eq!(reader.pop_into(&mut Vec::new()), Err(fault));
    ring.written().store(0, crate::atomic::Ordering::Relaxed);
    assert_eq!(reader.pop_into(&mut Vec::new()), Err(fault));
    assert!(!reader.about_to_sleep());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a queue that cannot be wrong: whatever is pushed, published and popped in whatever order.
    #[test]
    #[cfg_attr(miri, ignore = "hundreds of cases take Miri too long; the tests above are for it")]
    fn a_ring_is_a_bounded_queue(words in 1_u32..8, steps in prop::collection::vec((0_u8..4, 0_usize..300), 1..200)) {
        let words = 1 << words;
        let (_, mut writer, mut reader) = allocated(words);
        let mut hidden = std::collections::VecDeque::new();
        let mut visible = std::collections::VecDeque::new();
        for (count, (step, length)) in steps.into_iter().enumerate() {
            match step {
                0 | 1 => {
                    let frame = vec![count as u8; length % (words * 8)];
                    let room = words - hidden.iter().chain(&visible).map(|f: &Vec<u8>| 1 + f.len().div_ceil(8)).sum::<usize>();
                    match writer.push(0, &[&frame]) {
                        Ok(()) => hidden.push_back(frame),
                        Err(Full::FrameTooLong { .. }) => prop_assert!(frame.len() > (words - 1) * 8),
                        Err(Full::NoRoom) => {
                            // The consumer gives room back in eighths.
                            prop_assert!(1 + frame.len().div_ceil(8) + words / 8 + 1 > room);
                        }
                    }
                }
                2 => {
                    let _ = writer.publish();
                    visible.append(&mut hidden);
                }
                _ => prop_assert_eq!(pop(&mut reader), visible.pop_front()),
            }
        }
    }
}
