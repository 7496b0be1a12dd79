//! A peer that writes anything anywhere: never a panic, never an access out of bounds, never more than a ring's worth of
//! work, always a frame, nothing, or a fault.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::allocated;
use crate::atomic::Ordering;
use crate::fault::{Full, PeerFault};
use crate::layout::Sizes;
use crate::memory::mapping::Mapping;
use crate::port::{KernelEnd, Port};

/// Values that a wise attacker tries first.
fn wise() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..64,
        2 => (0_u32..64).prop_map(|bit| 1 << bit),
        1 => (0_u64..16).prop_map(|less| u64::MAX - less),
        1 => any::<u64>(),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    PeerWritesData(u64, u64),
    PeerMovesWritten(u64),
    PeerMovesRead(u64),
    PeerMakesWishes(u64),
    PeerPushes(usize),
    Pop,
    Push(usize),
    Publish,
    Sleep,
    WaitForRoom(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<u64>(), wise()).prop_map(|(at, value)| Step::PeerWritesData(at, value)),
        wise().prop_map(Step::PeerMovesWritten),
        wise().prop_map(Step::PeerMovesRead),
        wise().prop_map(Step::PeerMakesWishes),
        (0_usize..100).prop_map(Step::PeerPushes),
        Just(Step::Pop),
        (0_usize..300).prop_map(Step::Push),
        Just(Step::Publish),
        Just(Step::Sleep),
        (0_usize..300).prop_map(Step::WaitForRoom),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "thousands of cases take Miri too long")]
    fn no_order_of_hostile_writes_gets_through(words in 1_u32..7, steps in prop::collection::vec(step(), 1..60)) {
        let words = 1_usize << words;
        // Both rings with us at one end: we consume from one, and produce into the other.
        let (theirs, mut peer, mut reader) = allocated(words);
        let (ours, mut writer, _) = allocated(words);
        let mut buffer = Vec::new();
        let mut first_fault = None;
        for step in steps {
            match step {
                Step::PeerWritesData(at, value) => theirs.word(at).store(value, Ordering::Relaxed),
                Step::PeerMovesWritten(value) => theirs.written().store(value, Ordering::Relaxed),
                Step::PeerMovesRead(value) => ours.read().store(value, Ordering::Relaxed),
                Step::PeerMakesWishes(value) => {
                    theirs.wish_for_room().store(value, Ordering::Relaxed);
                    ours.wish_for_frames().store(value, Ordering::Relaxed);
                }
                Step::PeerPushes(length) => {
                    let _ = peer.push(0, &[&vec![9; length]]);
                    let _ = peer.publish();
                }
                Step::Pop => match reader.pop_into(&mut buffer) {
                    Ok(Some(length)) => {
                        prop_assert_eq!(length, buffer.len());
                        prop_assert!(length <= (words - 1) * 8);
                        prop_assert_eq!(first_fault, None, "a frame came after a fault");
                    }
                    Ok(None) => prop_assert_eq!(first_fault, None, "a fault was forgotten"),
                    Err(fault) => prop_assert_eq!(*first_fault.get_or_insert(fault), fault),
                },
                Step::Push(length) => {
                    let result = writer.push(0, &[&vec![1; length]]);
                    if length > (words - 1) * 8 {
                        prop_assert!(matches!(result, Err(Full::FrameTooLong { .. })), "took what never fits");
                    }
                }
                Step::Publish => {
                    let _ = writer.publish();
                    prop_assert!(!writer.publish(), "woke the peer for nothing new");
                }
                Step::Sleep => {
                    let slept = reader.about_to_sleep();
                    prop_assert!(first_fault.is_none() || !slept, "slept with a fault in hand");
                }
                Step::WaitForRoom(length) => {
                    let waits = writer.about_to_wait(length);
                    prop_assert!(writer.fault().is_none() || !waits, "waits for a peer that is at fault");
                }
            }
            prop_assert!(writer.free_bytes() <= words * 8);
        }
    }
}

/// What a consumer says of a ring of four words in which the peer left this index and this first word.
fn check_pop(written: u64, first_word: u64, expected: Result<Option<usize>, PeerFault>) {
    let (ring, _, mut reader) = allocated(4);
    ring.word(0).store(first_word, Ordering::Relaxed);
    ring.written().store(written, Ordering::Relaxed);
    assert_eq!(reader.pop_into(&mut Vec::new()), expected, "index {written}, length {first_word}");
}

#[test]
fn each_lie_of_a_producer_has_its_name() {
    check_pop(5, 0, Err(PeerFault::WroteMoreThanFits { claimed_bytes: 40, ring_bytes: 32 }));
    check_pop(u64::MAX, 0, Err(PeerFault::WroteMoreThanFits { claimed_bytes: u64::MAX, ring_bytes: 32 }));
    check_pop(4, 25, Err(PeerFault::FrameTooLong { length_bytes: 25, max_bytes: 24 }));
    check_pop(4, u64::MAX, Err(PeerFault::FrameTooLong { length_bytes: u64::MAX, max_bytes: 24 }));
    check_pop(3, 17, Err(PeerFault::FrameBeyondWritten { length_bytes: 17, written_bytes: 24 }));
    check_pop(1, 1, Err(PeerFault::FrameBeyondWritten { length_bytes: 1, written_bytes: 8 }));
    check_pop(3, 16, Ok(Some(16)));
    check_pop(1, 0, Ok(Some(0)));
    check_pop(0, 7, Ok(None));
}

#[test]
fn a_write_index_that_goes_backwards_is_found() {
    let (ring, mut writer, mut reader) = allocated(8);
    writer.push(0, &[b"one"]).unwrap();
    let _ = writer.publish();
    reader.pop_into(&mut Vec::new()).unwrap();
    ring.written().store(1, Ordering::Relaxed);
    let fault = PeerFault::WriteIndexWentBackwards { from_bytes: 16, to_bytes: 8 };
    assert_eq!(reader.pop_into(&mut Vec::new()), Err(fault));
}

#[test]
fn each_lie_of_a_consumer_has_its_name_and_only_fills_the_ring() {
    let (ring, mut writer, _) = allocated(4);
    writer.push(0, &[&[0; 24]]).unwrap();
    ring.read().store(4, Ordering::Relaxed);
    assert_eq!(writer.push(0, &[b""]), Err(Full::NoRoom));
    let unpublished = PeerFault::ReadMoreThanWritten { read_bytes: 32, written_bytes: 0 };
    assert_eq!(writer.fault(), Some(unpublished), "the frame was pushed, but not published");

    let (ring, mut writer, _) = allocated(4);
    writer.push(0, &[&[0; 24]]).unwrap();
    let _ = writer.publish();
    ring.read().store(4, Ordering::Relaxed);
    assert_eq!(writer.free_bytes(), 32);
    ring.read().store(3, Ordering::Relaxed);
    assert_eq!(writer.free_bytes(), 32);
    assert_eq!(writer.fault(), Some(PeerFault::ReadIndexWentBackwards { from_bytes: 32, to_bytes: 24 }));
}

/// A peer in another thread that never stops writing everywhere while the kernel's end works on the same memory.
#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn a_peer_that_writes_while_the_kernel_reads_gets_nothing() {
    let sizes = Sizes::new(Sizes::MIN_RING_BYTES, Sizes::MIN_RING_BYTES, Sizes::MIN_RING_BYTES).unwrap();
    for round in 0..100_u64 {
        let port = Port::create(sizes).unwrap();
        let mapping = Mapping::new(std::os::fd::AsFd::as_fd(&port.app.memory), sizes.memory_bytes()).unwrap();
        let mut kernel = KernelEnd::attach(port.kernel).unwrap();
        let done = AtomicBool::new(false);
        let mut buffer = Vec::new();
        // Each round begins with an honest frame and ends with a certain lie, however the threads are scheduled in between.
        let written = &mapping.words()[sizes.place_from_app().indices];
        written.store(1, Ordering::Release);
        assert_eq!(kernel.consumer.pop_into(&mut buffer), Ok(Some(0)));
        std::thread::scope(|scope| {
            scope.spawn(|| scribble(&mapping, sizes, round, &done));
            for _ in 0..500 {
                if let Ok(Some(length)) = kernel.consumer.pop_into(&mut buffer) {
                    assert_eq!(length, buffer.len());
                    assert!(length < Sizes::MIN_RING_BYTES);
                }
                let _ = kernel.packets.push(&[b"event ", &buffer]);
                let _ = kernel.control.push(&[b"event ", &buffer]);
                kernel.publish();
                let _ = kernel.fault();
                let _ = kernel.consumer.about_to_sleep();
                kernel.drain_wake();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        written.store(u64::MAX, Ordering::Release);
        let end = (0..=sizes.from_app_bytes()).find_map(|_| kernel.consumer.pop_into(&mut buffer).err());
        assert!(end.is_some(), "the last lie was believed");
    }
}

/// Writes into indices, wishes and data, sometimes what is plausible; a simple generator, so that a round can be repeated.
fn scribble(mapping: &Mapping, sizes: Sizes, seed: u64, done: &AtomicBool) {
    let words = mapping.words();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut written = 1;
    // Bounded, so that a failed check of the other thread is told instead of waited with.
    for _ in 0..20_000_000 {
        if done.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = state >> 33;
        let from_app = sizes.place_from_app();
        let data = &words[from_app.data..][..from_app.words];
        data[value as usize % from_app.words].store(value % 100, Ordering::Relaxed);
        match value % 1000 {
            // Wishes, and the read indices of the kernel's events.
            0..100 => words[sizes.place_packets().indices + value as usize % 128]
                .store(value % 50, Ordering::Relaxed),
            100 => words[value as usize % words.len()].store(state, Ordering::Relaxed),
            // A little more of what looks like frames.
            _ => {
                written += value % 3;
                words[from_app.indices].store(written, Ordering::Release);
            }
        }
    }
}
