//! A simulated switch, as a probe and a prediction meet it.
//!
//! In: messages, frames and the time. Out: what it does. It knows no probe.

use flow::PortNo;
use openflow::Message;

/// What a simulated switch does.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages for the controller, in order.
    pub messages: Vec<Message>,
    /// Frames that leave by ports, in order.
    pub frames: Vec<(PortNo, Vec<u8>)>,
    /// It closes its connection.
    pub leaves: bool,
}

/// A simulated switch. Times are nanoseconds since the start.
pub trait Subject {
    /// It connects to the probe.
    fn on_connected(&mut self, now_ns: u64, out: &mut Effects);
    /// The probe sent a message.
    fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Effects);
    /// A frame arrived at a port.
    fn on_frame(&mut self, port: PortNo, frame: Vec<u8>, now_ns: u64, out: &mut Effects);
    /// When something happens in it next.
    fn next_due_ns(&self) -> Option<u64>;
    /// That time has come.
    fn on_time(&mut self, now_ns: u64, out: &mut Effects);
}
