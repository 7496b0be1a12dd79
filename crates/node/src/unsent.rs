//! A worker's messages that the control thread has not received yet, in order.
//!
//! In: messages. Out: the same, when the queue of the control thread accepts them. It never waits. Only statistics for
//! the operator can be numerous, because a switch sends them; they are bounded here.

use super::messages::{ControlSender, FromWorker};
use abi::Frame;
use abi::event::Event;
use std::collections::{BTreeSet, VecDeque};

/// Bytes of statistics that wait for the control thread. It reads them more slowly than a switch may send them. Further
/// parts are dropped, and the answer is reported as incomplete.
const FRAMES_BYTES_MAX: usize = 16 << 20;

/// The waiting messages.
#[derive(Default)]
pub struct Unsent {
    messages: VecDeque<FromWorker>,
    frames_bytes: usize,
    /// Answers with a dropped part, at most as many as there are open requests.
    cut_short: BTreeSet<u64>,
}

impl Unsent {
    /// Adds a message.
    pub fn push(&mut self, message: FromWorker) {
        self.messages.push_back(message);
    }

    /// Adds a frame for the node itself.
    pub fn push_frame(&mut self, frame: Vec<u8>) {
        let is_cut_short = !self.cut_short.is_empty()
            && ticket(&frame).is_some_and(|ticket| self.cut_short.contains(&ticket));
        // A last part that still came in would say that the answer is whole.
        if is_cut_short || self.frames_bytes + frame.len() > FRAMES_BYTES_MAX {
            return self.cut_short.extend(ticket(&frame));
        }
        self.frames_bytes += frame.len();
        self.push(FromWorker::ToNode(frame));
    }

    /// Sends the messages that the control thread's queue accepts.
    pub fn send(&mut self, control: &ControlSender) {
        self.send_by(|message| control.send(message));
    }

    fn send_by(&mut self, mut send: impl FnMut(FromWorker) -> Result<(), FromWorker>) {
        while let Some(message) = self.next() {
            let bytes = bytes(&message);
            if let Err(message) = send(message) {
                return self.messages.push_front(message);
            }
            self.frames_bytes -= bytes;
        }
    }

    /// The report of an incomplete answer follows the parts of the answer that were kept.
    fn next(&mut self) -> Option<FromWorker> {
        self.messages.pop_front().or_else(|| {
            let reason = "it has more entries than the node could read in time".to_owned();
            Some(FromWorker::NoFlows { ticket: self.cut_short.pop_first()?, reason })
        })
    }
}

fn bytes(message: &FromWorker) -> usize {
    match message {
        FromWorker::ToNode(frame) => frame.len(),
        _ => 0,
    }
}

/// The ticket of the request that a frame answers.
fn ticket(frame: &[u8]) -> Option<u64> {
    match Event::read(&Frame::read(frame).ok()?).ok()? {
        Event::StatsReply(reply) => Some(reply.ticket),
        Event::Receipt(_, receipt) => Some(receipt.ticket),
        Event::SwitchError(error) => Some(error.ticket),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::{StatsReply, write};
    use flow::DatapathId;

    const PART_BYTES: usize = 60_000;

    fn part(ticket: u64) -> Vec<u8> {
        let (mut frame, body) = (Vec::new(), [0; PART_BYTES]);
        let reply = StatsReply { datapath: DatapathId(1), ticket, multipart: 1, more: true, body: &body };
        assert!(write::stats_reply(&mut frame, 1, &reply));
        frame
    }

    /// The tickets that are sent until the queue has accepted `room` messages; a minus marks the report of an
    /// incomplete answer.
    fn sent(unsent: &mut Unsent, room: usize) -> Vec<i64> {
        let mut tickets = Vec::new();
        unsent.send_by(|message| {
            tickets.push(match message {
                message if tickets.len() == room => return Err(message),
                FromWorker::ToNode(frame) => ticket(&frame).map_or(0, |ticket| ticket as i64),
                FromWorker::NoFlows { ticket, .. } => -(ticket as i64),
                _ => 0,
            });
            Ok(())
        });
        tickets
    }

    #[test]
    fn what_does_not_fit_is_cut_short_and_said_to_be() {
        let mut unsent = Unsent::default();
        let fit = FRAMES_BYTES_MAX / part(1).len();
        (0..fit).for_each(|_| unsent.push_frame(part(1)));
        (0..3).for_each(|_| unsent.push_frame(part(2)));
        let mut expected = vec![1; fit];
        expected.push(-2);
        assert_eq!(sent(&mut unsent, 1), [1]);
        unsent.push_frame(part(2));
        assert_eq!(
            sent(&mut unsent, usize::MAX),
            expected[1..],
            "nothing of an answer follows what it lacks"
        );
        unsent.push_frame(part(3));
        assert_eq!(sent(&mut unsent, usize::MAX), [3], "there is room again");
    }

    #[test]
    fn messages_leave_in_the_order_in_which_they_came() {
        let mut unsent = Unsent::default();
        (1..=4).for_each(|ticket| unsent.push_frame(part(ticket)));
        assert_eq!(sent(&mut unsent, 0), [0; 0], "the box is full");
        assert_eq!(sent(&mut unsent, 2), [1, 2]);
        unsent.push_frame(part(5));
        assert_eq!(sent(&mut unsent, usize::MAX), [3, 4, 5]);
    }
}
