//! What goes into a probe and what comes out: events of the switch and the test interfaces, and commands for the driver.
//!
//! Plain values. All times are nanoseconds of one clock, which the driver chooses.

use flow::PortNo;
use openflow::Message;
use profile::Profile;

/// What happens to a probe.
#[derive(Debug)]
pub enum Event<'a> {
    /// The switch has connected.
    Connected,
    /// The switch has closed its connection.
    Left,
    /// The switch sent a message.
    Message(&'a Message),
    /// A frame left the switch at this port, and arrived at the test interface behind it then.
    Frame {
        /// The port.
        port: PortNo,
        /// Its bytes.
        frame: &'a [u8],
        /// When it arrived, by the clock of the events.
        at_ns: u64,
    },
    /// The test interface behind this port went down, or is gone.
    PortDown {
        /// The port.
        port: PortNo,
        /// What the operating system says.
        why: &'a str,
    },
    /// The time for which the probe asked has come.
    Time,
    /// The operator ends the probe early (Ctrl-C). It removes its rules and finishes.
    Stop,
}

/// What the driver does for a probe, in order.
#[derive(Debug)]
pub enum Command {
    /// Sends a message to the switch.
    Send(Message),
    /// Sends a frame into this port of the switch, by the test interface behind it.
    Frame {
        /// The port.
        port: PortNo,
        /// The bytes.
        frame: Vec<u8>,
    },
    /// Calls again with [`Event::Time`] at this time. It replaces an earlier request.
    WakeAt(u64),
    /// Tells the operator what the probe does now.
    Progress(String),
    /// Tells the operator at the end what was found.
    Report(String),
    /// The probe ends early. This text lets a later probe of the same switch go on from here: [`crate::journal::Kept`].
    Keep(String),
    /// The probe is over. The driver closes the connection.
    Finished(Box<Finished>),
}

/// How a probe ended.
#[derive(Debug)]
pub enum Finished {
    /// With a profile. It may be incomplete: [`profile::Measurement::incomplete`].
    Profile(Box<Profile>),
    /// Without one, for this reason.
    Refused(String),
}
