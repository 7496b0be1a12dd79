//! The kernel's side of a process zone's port: what a worker calls to deliver events to an app and to take its commands.
//!
//! ```text
//!  worker ──packet-in──→ [ring; each switch its share] ─→ app    beyond that: dropped and counted
//!  worker ──control────→ [a separate ring] ─────────────→ app    read first, and never dropped …
//!                └──full→ [overflow, 2 MiB] ─flush─↗             … but a full overflow ends the zone. While it has
//!                                                                  frames, the worker reads flooding switches more slowly
//!  worker ──other apps'→ [the same ring; each its share] ─→ app   beyond that: dropped, and the sender is notified
//!  worker ←─command frame─ [ring] ←────────────────────── app
//! ```
//!
//! In: whole event frames, and any bytes that the app wrote. Out: delivery or loss, command frames with a valid
//! header, or a [`ZoneFault`], after which the zone must be ended. It never blocks, never waits for the app, and does
//! not decide what a command may do.
//!
//! A worker's turn: [`ProcessPort::begin_turn`]; take commands, as many as the worker grants; deliver events;
//! [`ProcessPort::flush`]; before its loop sleeps, [`ProcessPort::about_to_sleep`].

use std::os::fd::BorrowedFd;

use abi::event::PacketIn;
use abi::{Frame, ZoneId};
use flow::DatapathId;
use ring::{Full, KernelEnd, MAX_FRAME_BYTES, PortFault, PortFds, frame_bytes};

use crate::fairness::FromApps;
use crate::fault::ZoneFault;
use crate::overflow::Overflow;
use crate::shares::{Candidate, Shares};

/// The app is notified of dropped packet-ins while at least this part of its control ring is free: one in so many.
const FREE_PART: usize = 8;

/// Events from other apps leave this part of the control ring free for the node's own events: one in so many.
const KEPT_FROM_APPS_PART: usize = 4;

/// A smaller ring could refuse the longest frame forever.
const MIN_RING_BYTES: usize = 2 * MAX_FRAME_BYTES;

const _: () =
    assert!(abi::header::MAX_FRAME_LEN <= MAX_FRAME_BYTES, "every frame of the app boundary fits a ring");

/// The result for a frame that may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The app gets it with the next [`ProcessPort::flush`].
    Delivered,
    /// The app is too far behind: the frame is dropped and counted.
    Dropped,
}

/// One worker's end of one process zone's port.
pub struct ProcessPort {
    end: KernelEnd,
    overflow: Overflow,
    shares: Shares,
    from_apps: FromApps,
    dropped: u64,
    told_dropped: u64,
    seen_dropped: u64,
    undelivered: u64,
    unread: Unread,
    standstill: Standstill,
}

/// The longest time that one check can add to the time without reading, in milliseconds. If the worker itself had no
/// core in between, perhaps the app had none either.
const LOOK_MS: u64 = 2;

/// For how long the app has read none of its packet-ins, as far as the worker checked.
#[derive(Debug, Default)]
struct Standstill {
    taken_bytes: u64,
    looked_ms: u64,
    ms: u64,
}

impl Standstill {
    fn look(&mut self, waiting: bool, taken_bytes: u64, now_ms: u64) -> u64 {
        let since_ms = now_ms.saturating_sub(self.looked_ms).min(LOOK_MS);
        let ms = if waiting && taken_bytes == self.taken_bytes { self.ms + since_ms } else { 0 };
        *self = Standstill { taken_bytes, looked_ms: now_ms, ms };
        ms
    }
}

/// Since when the app has left the data in its ring unread.
#[derive(Debug, Default)]
struct Unread {
    taken_bytes: u64,
    since_ms: Option<u64>,
}

impl Unread {
    /// Takes the present state. An app that reads anything does not lag, however much data waits. If it is too slow,
    /// dropped packet-ins show that.
    fn look(&mut self, waiting: bool, taken_bytes: u64, now_ms: u64) -> u32 {
        let stands_still = waiting && self.since_ms.is_some() && taken_bytes == self.taken_bytes;
        if !stands_still {
            *self = Unread { taken_bytes, since_ms: waiting.then_some(now_ms) };
        }
        let since_ms = self.since_ms.unwrap_or(now_ms);
        u32::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(u32::MAX)
    }
}

impl ProcessPort {
    /// Takes the kernel's end of a port. Refuses invalid descriptors, and rings to the app that are smaller than two
    /// frames of the greatest length.
    pub fn attach(fds: PortFds) -> Result<ProcessPort, PortFault> {
        let end = KernelEnd::attach(fds)?;
        let ring_bytes = end.packets.ring_bytes();
        let control_bytes = end.control.ring_bytes();
        for found in [ring_bytes, control_bytes] {
            if found < MIN_RING_BYTES {
                return Err(PortFault::RingSize { found_bytes: found as u64 });
            }
        }
        Ok(ProcessPort {
            end,
            overflow: Overflow::default(),
            shares: Shares::new(ring_bytes),
            from_apps: FromApps::new(control_bytes - control_bytes / KEPT_FROM_APPS_PART),
            dropped: 0,
            told_dropped: 0,
            seen_dropped: 0,
            undelivered: 0,
            unread: Unread::default(),
            standstill: Standstill::default(),
        })
    }

    /// Becomes readable when the app has written commands, or has made room for waiting events. Register it
    /// edge-triggered: no code reads from it.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.end.wake_fd()
    }

    /// The worker is awake: the app need not wake it.
    pub fn begin_turn(&mut self) {
        self.end.drain_wake();
    }

    /// Announces that the worker is about to sleep and must be woken by the app. Returns `false` if commands are
    /// already there, or a fault, which [`ProcessPort::take_command`] reports. Then do not sleep.
    pub fn about_to_sleep(&mut self) -> bool {
        self.end.consumer.about_to_sleep()
    }

    /// Delivers a packet-in to the app, or drops it. It is dropped if the ring is more than half full and its switch
    /// or port has used its share (`crate::shares`). It is also dropped if control events of its switch wait beside
    /// their ring, because it would overtake them. `is_control` says whether a packet serves to find links and
    /// addresses. It is called only if the answer matters.
    pub fn deliver_packet_in(&mut self, frame: &[u8], is_control: impl FnOnce(&[u8]) -> bool) -> Delivery {
        if self.overflow.is_empty() || !self.waits_for_control(frame) {
            if self.end.packets.push_keeping(self.shares.bytes(), &[frame]).is_ok() {
                self.shares.end_round();
                return Delivery::Delivered;
            }
            if self.is_admitted(frame, is_control) && self.end.packets.push(&[frame]).is_ok() {
                return Delivery::Delivered;
            }
        }
        self.dropped += 1;
        Delivery::Dropped
    }

    /// How many bytes of packet-ins of this switch the app's ring takes now without dropping any.
    pub fn room_for_packet_ins(&mut self, datapath: DatapathId) -> usize {
        if self.overflow.concerns(datapath) {
            return 0;
        }
        self.shares.room_of(datapath.0, self.end.packets.free_bytes())
    }

    /// Size of the ring for packet-ins, in bytes.
    pub fn packet_ring_bytes(&self) -> usize {
        self.end.packets.ring_bytes()
    }

    /// Whether it would overtake a control event of its switch, for example the one that the switch is up.
    fn waits_for_control(&self, frame: &[u8]) -> bool {
        Frame::read(frame).is_ok_and(|frame| self.overflow.concerns(frame.datapath()))
    }

    /// Whether a ring that is more than half full takes it.
    fn is_admitted(&mut self, frame: &[u8], is_control: impl FnOnce(&[u8]) -> bool) -> bool {
        // A frame that is no packet-in would be our own bug. It is not admitted where room is short.
        let Ok(packet) = Frame::read(frame).and_then(|frame| PacketIn::read(&frame)) else { return false };
        let candidate = Candidate {
            datapath: packet.datapath.0,
            port: packet.in_port.0,
            bytes: frame_bytes(frame.len()),
            is_control: is_control(packet.data),
        };
        self.shares.admit(candidate, self.end.packets.free_bytes())
    }

    /// Delivers an event that must not be lost. If the ring is full, the event waits in the overflow of at most
    /// [`crate::overflow::OVERFLOW_BYTES`]. Beyond that the app is at fault.
    ///
    /// A frame longer than any that `abi` makes is our own bug: it is counted as dropped.
    pub fn deliver_control(&mut self, frame: &[u8]) -> Result<(), ZoneFault> {
        if self.overflow.is_empty() {
            match self.end.control.push(&[frame]) {
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

    /// Whether control events wait in the overflow, because the app has not read its ring.
    pub fn is_behind(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// Delivers an event from another app: a published message, a query or an answer. It must leave a part of the
    /// ring free, and is dropped otherwise. So no app can make another look as if it had stopped reading. If it is
    /// dropped, the worker notifies the sender. One app may occupy no more of the ring than it leaves free for others
    /// (`crate::fairness`).
    pub fn deliver_from_app(&mut self, maker: ZoneId, frame: &[u8]) -> Delivery {
        let kept_bytes = self.end.control.ring_bytes() / KEPT_FROM_APPS_PART;
        let free_bytes = self.end.control.free_bytes().saturating_sub(kept_bytes);
        if self.overflow.is_empty()
            && self.from_apps.admit(maker, frame_bytes(frame.len()), free_bytes)
            && self.end.control.push_keeping(kept_bytes, &[frame]).is_ok()
        {
            return Delivery::Delivered;
        }
        self.undelivered += 1;
        Delivery::Dropped
    }

    /// How many events from other apps this port has dropped since it was attached.
    pub fn undelivered(&self) -> u64 {
        self.undelivered
    }

    /// First moves waiting frames into the ring. Then shows the app everything that was delivered in this turn, with
    /// at most one wake-up. If frames still wait, asks the app to wake the worker. Call it once per turn, even if
    /// nothing was delivered.
    pub fn flush(&mut self) -> Result<(), ZoneFault> {
        // Each round but the last moves a frame out of the overflow. Nothing is added to it here.
        loop {
            self.move_overflow();
            self.end.publish();
            if let Some(fault) = self.end.fault() {
                return Err(fault.into());
            }
            let waits_for_room = match self.overflow.oldest() {
                None => true,
                Some([first, second]) => self.end.control.about_to_wait(first.len() + second.len()),
            };
            if waits_for_room {
                return Ok(());
            }
        }
    }

    /// How many packet-ins were dropped since the last call, to notify the app. Zero while the app is far behind with
    /// its control events. So the notification never fills their ring.
    pub fn take_dropped(&mut self) -> u64 {
        let untold = self.dropped - self.told_dropped;
        let control = &mut self.end.control;
        let is_behind = !self.overflow.is_empty() || control.free_bytes() <= control.ring_bytes() / FREE_PART;
        if untold == 0 || is_behind {
            return 0;
        }
        self.told_dropped = self.dropped;
        untold
    }

    /// Whether packet-ins were dropped since [`ProcessPort::take_dropped`] last returned them.
    pub fn has_dropped(&mut self) -> bool {
        std::mem::replace(&mut self.seen_dropped, self.dropped) != self.dropped
    }

    /// How many packet-ins this port has dropped since it was attached, for the operator.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How long data has waited in the rings without the app reading any, in milliseconds. The accuracy is the time
    /// between two calls.
    pub fn lag_ms(&mut self, now_ms: u64) -> u32 {
        let (waiting, taken_bytes) = self.seen();
        self.unread.look(waiting, taken_bytes, now_ms)
    }

    /// The same time in milliseconds, but one call adds at most two milliseconds. Reading shows only in small parts
    /// of a ring.
    pub fn standstill_ms(&mut self, now_ms: u64) -> u64 {
        let (waiting, taken_bytes) = self.seen();
        self.standstill.look(waiting, taken_bytes, now_ms)
    }

    /// Whether data waits in the rings, and how much the app has read since the port was attached.
    fn seen(&mut self) -> (bool, u64) {
        let rings = [&mut self.end.packets, &mut self.end.control];
        let seen = rings.map(|ring| (ring.free_bytes() < ring.ring_bytes(), ring.taken_bytes()));
        let waiting = seen.iter().any(|(waiting, _)| *waiting);
        (waiting, seen.iter().fold(0, |sum: u64, (_, taken)| sum.saturating_add(*taken)))
    }

    /// Copies the app's next command frame into `buffer` and reads its header. `None` if no command waits. It costs
    /// at most the copy of one frame. The worker decides how many to take in a turn.
    pub fn take_command<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Option<Frame<'b>>, ZoneFault> {
        if self.end.consumer.pop_into(buffer)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Frame::read(buffer)?))
    }

    fn move_overflow(&mut self) {
        while let Some(parts) = self.overflow.oldest() {
            if self.end.control.push(&parts).is_err() {
                return;
            }
            self.overflow.remove_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_looked_at_counts_as_standing_still() {
        let mut standstill = Standstill::default();
        let looks = [(0, 100, 2), (0, 101, 3), (0, 150, 5), (8, 151, 0), (8, 152, 1), (8, 9_000, 3)];
        for (taken_bytes, now_ms, expected) in looks {
            assert_eq!(standstill.look(true, taken_bytes, now_ms), expected, "at {now_ms}");
        }
        assert_eq!(standstill.look(false, 8, 9_001), 0);
    }

    #[test]
    fn who_reads_anything_does_not_lag() {
        let mut unread = Unread::default();
        let mut check = |waiting, taken_bytes, now_ms, expected| {
            assert_eq!(unread.look(waiting, taken_bytes, now_ms), expected, "at {now_ms}");
        };
        check(true, 0, 1_000, 0);
        check(true, 0, 1_500, 500);
        check(true, 8, 2_000, 0);
        check(true, 8, 1_900, 0);
        check(true, 8, 9_000, 7_000);
        check(false, 8, 9_500, 0);
        check(true, 8, 9_600, 0);
        check(true, 8, u64::MAX, u32::MAX);
    }
}
