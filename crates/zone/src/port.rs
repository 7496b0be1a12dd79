//! The kernel's side of a process zone's port: what a worker calls to deliver events to an app and to take its commands.
//!
//! ```text
//!  worker ──packet-in──→ [7/8 of the ring] ───────────→ app      dropped and counted beyond that
//!  worker ──control────→ [the whole ring] ────────────→ app      never dropped …
//!                └──full→ [overflow, 1 MiB] ─flush─↗             … but overflowing this ends the zone
//!  worker ←─command frame─ [ring] ←────────────────────  app
//! ```
//!
//! In: whole event frames, and whatever the app wrote. Out: delivery or loss, command frames with a sound header, or a
//! [`ZoneFault`] after which the zone is to be ended. Never blocks, never waits for the app, never decides what a command may do.
//!
//! A worker's turn: [`ProcessPort::begin_turn`]; take commands, as many as the worker grants; deliver events;
//! [`ProcessPort::flush`]; before its loop sleeps, [`ProcessPort::about_to_sleep`].

use std::os::fd::BorrowedFd;

use abi::Frame;
use ring::{Full, KernelEnd, MAX_FRAME_BYTES, PortFault, PortFds};

use crate::fault::ZoneFault;
use crate::overflow::Overflow;

/// The part of the ring that packet-ins leave free for control events: one in so many.
const RESERVED_PART: usize = 8;

/// A ring smaller than this could refuse the longest frame for good.
const MIN_RING_BYTES: usize = 2 * MAX_FRAME_BYTES;

const _: () =
    assert!(abi::header::MAX_FRAME_LEN <= MAX_FRAME_BYTES, "every frame of the app boundary fits a ring");

/// What became of a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The app gets it with the next [`ProcessPort::flush`].
    Delivered,
    /// The app is too far behind: it is gone and counted.
    Dropped,
}

/// One worker's end of one process zone's port.
pub struct ProcessPort {
    end: KernelEnd,
    overflow: Overflow,
    reserve_bytes: usize,
    dropped: u64,
    told_dropped: u64,
}

impl ProcessPort {
    /// Takes the kernel's end of a port. Refuses descriptors that are none, and a ring to the app that is smaller than two frames of
    /// the greatest length.
    pub fn attach(fds: PortFds) -> Result<ProcessPort, PortFault> {
        let end = KernelEnd::attach(fds)?;
        let ring_bytes = end.producer.ring_bytes();
        if ring_bytes < MIN_RING_BYTES {
            return Err(PortFault::RingSize { found_bytes: ring_bytes as u64 });
        }
        Ok(ProcessPort {
            end,
            overflow: Overflow::default(),
            reserve_bytes: ring_bytes / RESERVED_PART,
            dropped: 0,
            told_dropped: 0,
        })
    }

    /// What becomes readable when the app has commands, or has made room for events that wait. Register it edge-triggered:
    /// nobody reads it.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.end.wake_fd()
    }

    /// The worker is awake: the app need not wake it.
    pub fn begin_turn(&mut self) {
        self.end.drain_wake();
    }

    /// Says that the worker is going to sleep and wants to be woken by the app. `false` if there are commands already (or a
    /// fault, which [`ProcessPort::take_command`] tells): then do not sleep.
    pub fn about_to_sleep(&mut self) -> bool {
        self.end.consumer.about_to_sleep()
    }

    /// Gives a packet-in to the app, or drops it if less than an eighth of the ring would be free, or if control events wait that it would
    /// overtake.
    pub fn deliver_packet_in(&mut self, frame: &[u8]) -> Delivery {
        if self.overflow.is_empty() && self.end.producer.push_keeping(self.reserve_bytes, &[frame]).is_ok() {
            return Delivery::Delivered;
        }
        self.dropped += 1;
        Delivery::Dropped
    }

    /// Gives to the app an event that may not be lost. If the ring is full it waits in the overflow, of at most
    /// [`crate::overflow::OVERFLOW_BYTES`]; beyond that the app is at fault.
    ///
    /// A frame longer than any that `abi` makes is our own mistake: it is counted as dropped.
    pub fn deliver_control(&mut self, frame: &[u8]) -> Result<(), ZoneFault> {
        if self.overflow.is_empty() {
            match self.end.producer.push(&[frame]) {
                Ok(()) => return Ok(()),
                Err(Full::NoRoom) => {}
                Err(Full::FrameTooLong { .. }) => {
                    debug_assert!(false, "abi makes no frame of {} bytes", frame.len());
                    self.dropped += 1;
                    return Ok(());
                }
            }
        }
        if self.overflow.add(frame) {
            Ok(())
        } else {
            Err(ZoneFault::StoppedReading { waiting_bytes: self.overflow.waiting_bytes() })
        }
    }

    /// Shows the app everything delivered in this turn, with at most one wake-up, after moving on what waited; asks to be woken
    /// if something still waits. Once per turn, also when nothing was delivered.
    pub fn flush(&mut self) -> Result<(), ZoneFault> {
        // Each round but the last moves a frame out of the overflow, to which nothing is added here.
        loop {
            self.move_overflow();
            self.end.producer.publish();
            if let Some(fault) = self.end.producer.fault() {
                return Err(fault.into());
            }
            let waits_for_room = match self.overflow.oldest() {
                None => true,
                Some([first, second]) => self.end.producer.about_to_wait(first.len() + second.len()),
            };
            if waits_for_room {
                return Ok(());
            }
        }
    }

    /// How many packet-ins were dropped since this was last asked, to tell the app; zero while the app is as far behind as that
    /// it would lose the next packet-in too, so that being told never is what fills its ring.
    pub fn take_dropped(&mut self) -> u64 {
        let untold = self.dropped - self.told_dropped;
        if untold == 0 || !self.overflow.is_empty() || self.end.producer.free_bytes() <= self.reserve_bytes {
            return 0;
        }
        self.told_dropped = self.dropped;
        untold
    }

    /// How many packet-ins were dropped in this port's life, for the operator.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Copies the app's next command frame into `buffer` and reads its header; `None` if there is none now. Costs at most the
    /// copying of one frame; how many to take in a turn is for the worker to say.
    pub fn take_command<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Option<Frame<'b>>, ZoneFault> {
        if self.end.consumer.pop_into(buffer)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Frame::read(buffer)?))
    }

    fn move_overflow(&mut self) {
        while let Some(parts) = self.overflow.oldest() {
            if self.end.producer.push(&parts).is_err() {
                return;
            }
            self.overflow.remove_oldest();
        }
    }
}
