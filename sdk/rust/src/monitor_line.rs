//! An app's end of its socket to the monitor.
//!
//! In: messages of the monitor, and what a service has to say. Out: the same, in order. It never waits: what the socket does not take now is sent in a
//! later turn. It reads no message of a service's duty, only those that bring shared memory.

use crate::regions;
use abi::ZoneId;
use monitor_channel::channel::{Channel, ChannelError, DATAGRAM_BYTES_MAX};
use monitor_channel::protocol::ToZone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use zone::region::Region;

/// Messages of the monitor that are taken in one turn; more wait in the socket.
const MESSAGES_PER_TURN: usize = 16;

/// Messages that wait for the monitor to read. A monitor that reads none for so long does without: the oldest go.
const WAITING_MAX: usize = 1_024;

/// The socket, and what waits for it.
pub(crate) struct MonitorLine {
    /// `None` once the monitor is gone; this process goes with it.
    channel: Option<Channel>,
    waiting: VecDeque<Vec<u8>>,
    /// The region that came with the welcome message, for a service that writes it.
    own_region: Option<Region>,
    /// The number of the zone.
    pub(crate) zone: ZoneId,
}

impl MonitorLine {
    pub(crate) fn new(channel: Channel, own_region: Option<Region>, zone: ZoneId) -> MonitorLine {
        MonitorLine { channel: Some(channel), waiting: VecDeque::new(), own_region, zone }
    }

    /// Whether a message waits.
    pub(crate) fn is_readable(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds: Vec<_> =
            self.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).into_iter().collect();
        !fds.is_empty() && poll(&mut fds, Some(&at_once)).is_ok_and(|count| count > 0)
    }

    /// The shared memory that the monitor has told of, for an app without a duty. Other messages are for newer apps. A
    /// service with a duty gets none, not even its own.
    pub(crate) fn take_regions(&mut self) -> Vec<Region> {
        let mut regions: Vec<Region> = self.own_region.take().into_iter().collect();
        for _ in 0..MESSAGES_PER_TURN {
            match self.channel.as_ref().map(Channel::try_receive::<ToZone>) {
                Some(Ok(received)) => match regions::told(received.message, received.fds) {
                    Ok(region) => regions.extend(region),
                    Err(why) => eprintln!("the view is not read in shared memory: {why}"),
                },
                Some(Err(ChannelError::Garbage(_))) => {}
                Some(Err(ChannelError::Closed)) => self.channel = None,
                _ => break,
            }
        }
        regions
    }

    /// What the monitor has told.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut told = Vec::new();
        while told.len() < MESSAGES_PER_TURN {
            match self.channel.as_ref().map(Channel::try_receive_bytes) {
                Some(Ok(message)) => told.push(message),
                Some(Err(ChannelError::Closed)) => self.channel = None,
                // Nothing is there, or what is there cannot be read by anybody.
                _ => break,
            }
        }
        told
    }

    /// Sends these after the messages that wait. A message that is longer than a datagram would need a memory file, which no zone may create.
    pub(crate) fn tell(&mut self, messages: Vec<Vec<u8>>) {
        for message in messages {
            let bytes = message.len();
            match bytes <= DATAGRAM_BYTES_MAX {
                true => self.waiting.push_back(message),
                false => eprintln!(
                    "a message of {bytes} bytes to the monitor is left out: the limit for a service is {DATAGRAM_BYTES_MAX}"
                ),
            }
        }
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
        while let (Some(channel), Some(message)) = (&self.channel, self.waiting.front()) {
            match channel.try_send_bytes(message, &[]) {
                Err(ChannelError::NotNow) => return,
                // Sent, or not to be sent at all.
                _ => drop(self.waiting.pop_front()),
            }
        }
    }

    /// Its descriptor, as long as the monitor is there.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }

    /// What to wait for: a message, and room if something waits.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let room = if self.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let channel = self.channel.as_ref()?;
        Some(PollFd::from_borrowed_fd(channel.as_fd(), PollFlags::IN | room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, MonitorLine) {
        let (ours, theirs) = Channel::pair().unwrap();
        (ours, MonitorLine::new(Channel::from_fd(theirs), None, ZoneId(1)))
    }

    #[test]
    fn what_the_socket_does_not_take_now_is_sent_later_in_order() {
        let (monitor, mut line) = pair();
        line.tell((0..500).map(|number: u32| vec![number as u8; 1_000]).collect());
        assert!(!line.waiting.is_empty() && line.poll_fd().is_some());
        let mut heard = Vec::new();
        while heard.len() < 500 {
            while let Ok(message) = monitor.try_receive_bytes() {
                heard.push(message[0]);
            }
            line.tell(Vec::new());
        }
        assert!(heard.iter().enumerate().all(|(number, byte)| number as u8 == *byte));
        assert!(line.waiting.is_empty());
    }

    #[test]
    fn a_monitor_that_reads_nothing_costs_no_more_than_the_bound() {
        let (_monitor, mut line) = pair();
        for _ in 0..10 {
            line.tell(vec![vec![0; 1_000]; WAITING_MAX]);
        }
        assert_eq!(line.waiting.len(), WAITING_MAX);
    }

    #[test]
    fn a_message_that_no_zone_can_send_is_left_out_and_the_others_are_sent() {
        let (monitor, mut line) = pair();
        line.tell(vec![vec![1; DATAGRAM_BYTES_MAX + 1], vec![2]]);
        assert_eq!(monitor.try_receive_bytes().unwrap(), [2]);
    }

    #[test]
    fn shared_memory_is_taken_and_what_a_newer_monitor_says_is_passed_over() {
        let (monitor, mut line) = pair();
        assert!(!line.is_readable() && line.take_regions().is_empty());
        monitor.try_send_bytes(br#"{"weather":"fine"}"#, &[]).unwrap();
        let ended = ToZone::Region { service: "discovery".to_owned(), is_written: false };
        monitor.try_send(&ended, &[]).unwrap();
        assert!(line.is_readable());
        assert!(
            matches!(line.take_regions().as_slice(), [Region::Ended { service }] if service == "discovery")
        );
        assert!(!line.is_readable());
    }

    #[test]
    fn a_monitor_that_is_gone_is_not_waited_for() {
        let (monitor, mut line) = pair();
        assert!(monitor.try_send_bytes(b"x", &[]).is_ok());
        drop(monitor);
        assert_eq!(line.take(), [b"x"]);
        assert!(line.take().is_empty() && line.poll_fd().is_none());
    }
}
