//! The kernel process, its socket, and the messages for it.
//!
//! In: messages for it, and the readiness of its socket. Out: its messages, its end, and the trusted zones that it was
//! calling. It decides nothing, and never waits.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ring::Board;

use crate::channel::{Channel, ChannelError, encode};
use crate::children::Child;
use crate::protocol::{FromKernel, ToKernel};

/// The largest number of waiting messages for the kernel process. It is more than the attachments of all apps. A kernel
/// process that reaches it hangs.
const OUTBOX_MESSAGES_MAX: usize = 4_096;

pub(crate) struct KernelProcess {
    pub(crate) generation: u64,
    pub(crate) child: Child,
    /// `None` once the kernel closed its end; its exit follows.
    channel: Option<Channel>,
    outbox: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// The workers record here which trusted zone they call.
    board: Board,
}

impl KernelProcess {
    /// Starts it. The received descriptor is its board, for its configuration.
    pub(crate) fn start(program: &[OsString], generation: u64) -> io::Result<(KernelProcess, OwnedFd)> {
        let (channel, theirs) = Channel::pair()?;
        let (board, board_fd) = Board::create()?;
        let child = Child::start_kernel(program, theirs)?;
        let (channel, outbox) = (Some(channel), VecDeque::new());
        Ok((KernelProcess { generation, child, channel, outbox, board }, board_fd))
    }

    /// Its socket, and whether messages wait for it.
    pub(crate) fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.channel.as_ref().map(|channel| (channel.as_fd(), !self.outbox.is_empty()))
    }

    /// Whether it has read all messages.
    pub(crate) fn is_idle(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Queues the message; [`KernelProcess::flush`] sends it.
    ///
    /// # Errors
    /// The fault of the kernel process.
    pub(crate) fn tell(&mut self, message: &ToKernel, fds: Vec<OwnedFd>) -> Result<(), String> {
        let bytes = encode(message).map_err(|error| error.to_string())?;
        if self.outbox.len() >= OUTBOX_MESSAGES_MAX {
            return Err("it does not read the messages of the monitor".to_owned());
        }
        self.outbox.push_back((bytes, fds));
        Ok(())
    }

    /// Sends the messages that its socket accepts.
    ///
    /// # Errors
    /// The fault of the kernel process.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        let sent = self.send();
        // A closed socket is no fault: the exit of the process follows.
        if self.channel.is_none() || sent.is_err() {
            self.outbox.clear();
        }
        match sent {
            Err(error) if !matches!(error, ChannelError::Closed) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    fn send(&mut self) -> Result<(), ChannelError> {
        while let (Some(channel), Some((bytes, fds))) = (&self.channel, self.outbox.front()) {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            match channel.try_send_bytes(bytes, &fds) {
                Ok(()) => drop(self.outbox.pop_front()),
                Err(ChannelError::NotNow) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Its next message, or the fault of the kernel process. `None`: it has sent no more.
    pub(crate) fn receive(&mut self) -> Option<Result<FromKernel, String>> {
        match self.channel.as_ref()?.try_receive::<FromKernel>() {
            Ok(received) => Some(Ok(received.message)),
            Err(ChannelError::NotNow) => None,
            Err(ChannelError::Closed) => {
                self.channel = None;
                None
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// The zones that it was calling when it ended. A slot with an invalid zone is ignored.
    pub(crate) fn called(&self) -> Vec<u16> {
        let words = self.board.read().into_iter();
        words.filter_map(|word| u16::try_from(word).ok()).filter(|zone| *zone > 0).collect()
    }
}
