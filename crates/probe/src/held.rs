//! Test frames that wait until the switch's stream has taken the messages before them.
//!
//! ```text
//!   rule ──> stream, which is full          the stream took the rule ──> its frames go
//!   frame ──> HeldFrames ────────────────────────────┘
//! ```
//!
//! In: frames with the bytes of messages before them, and how many bytes the stream has taken. Out: frames in their order. At most
//! [`HELD_MAX`] wait. It does no I/O.

use flow::PortNo;
use std::collections::VecDeque;

/// Frames that wait. Above it, they are not sent.
pub const HELD_MAX: usize = 4096;

/// A queue of frames.
#[derive(Debug, Default)]
pub struct HeldFrames(VecDeque<Held>);

#[derive(Debug)]
struct Held {
    /// How many bytes of messages come before it.
    behind: u64,
    port: PortNo,
    frame: Vec<u8>,
}

impl HeldFrames {
    /// Keeps a frame for this port until the stream has taken so many bytes. False: there is no room.
    pub fn hold(&mut self, behind: u64, port: PortNo, frame: Vec<u8>) -> bool {
        let has_room = self.0.len() < HELD_MAX;
        if has_room {
            self.0.push_back(Held { behind, port, frame });
        }
        has_room
    }

    /// The next frame whose messages the stream has taken.
    pub fn release(&mut self, written: u64) -> Option<(PortNo, Vec<u8>)> {
        let held = self.0.pop_front_if(|held| held.behind <= written)?;
        Some((held.port, held.frame))
    }

    /// Forgets all: the stream is gone.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_waits_for_the_messages_before_it_and_no_longer() {
        let mut held = HeldFrames::default();
        assert!(held.hold(100, PortNo(1), vec![1]) && held.hold(180, PortNo(2), vec![2]));
        assert_eq!(held.release(99), None);
        assert_eq!(held.release(100), Some((PortNo(1), vec![1])));
        assert_eq!(held.release(179), None);
        assert_eq!(held.release(500), Some((PortNo(2), vec![2])));
        assert_eq!(held.release(500), None);
    }

    #[test]
    fn frames_beyond_the_bound_are_told_of() {
        let mut held = HeldFrames::default();
        assert!((0..HELD_MAX).all(|_| held.hold(1, PortNo(1), Vec::new())));
        assert!(!held.hold(1, PortNo(1), Vec::new()));
        held.clear();
        assert!(held.hold(1, PortNo(1), Vec::new()));
    }
}
