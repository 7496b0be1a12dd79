//! The messages for the monitor that do not fit into its socket yet.
//!
//! In: messages and records. Out: messages on the monitor's channel, in order. It never waits for the monitor.

use audit_contract::Record;
use monitor_channel::channel::{Channel, ChannelError};
use monitor_channel::protocol::{AUDIT_RECORDS_MAX, FromKernel};

/// Beyond this many messages, repeated messages and records are dropped. Other messages are few.
const MESSAGES_MAX: usize = 256;

/// The queue of the control thread.
pub struct MonitorQueue(Vec<FromKernel>);

impl MonitorQueue {
    pub fn new(first: FromKernel) -> MonitorQueue {
        MonitorQueue(vec![first])
    }

    pub fn has_room(&self) -> bool {
        self.0.len() < MESSAGES_MAX
    }

    pub fn push(&mut self, message: FromKernel) {
        self.0.push(message);
    }

    /// A message that may be dropped.
    pub fn push_if_room(&mut self, message: FromKernel) {
        if self.has_room() {
            self.0.push(message);
        }
    }

    /// Audit records. Without room, the newest are dropped.
    pub fn push_records(&mut self, mut records: Vec<Record>) {
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(AUDIT_RECORDS_MAX));
            if !self.has_room() {
                return tracing::error!("audit records are lost: the monitor does not read them");
            }
            self.0.push(FromKernel::Audit { records });
            records = rest;
        }
    }

    /// Sends the messages that fit into the socket. The others stay.
    pub fn send(&mut self, channel: &Channel) {
        let is_sent =
            |message: &&FromKernel| !matches!(channel.try_send(*message, &[]), Err(ChannelError::NotNow));
        let sent = self.0.iter().take_while(is_sent).count();
        self.0.drain(..sent);
    }
}
