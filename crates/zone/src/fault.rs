//! The violations of an app at its zone's boundary, as messages for the operator.
//!
//! In: what the port found. Out: a sentence that says who is at fault and what happens next. It takes no action: the
//! worker reports the fault, and the monitor ends the zone and restarts it.

use std::fmt;

use abi::Malformed;
use ring::PeerFault;

/// Why a zone must be ended. It is always the app's fault. The kernel, the sessions and other apps continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneFault {
    /// The app does not read its events: the events that must not be dropped have reached their bound.
    StoppedReading {
        /// Bytes of events that wait beside the full ring.
        waiting_bytes: usize,
    },
    /// The app wrote invalid data into its port's memory.
    BrokePort(PeerFault),
    /// The app sent bytes that do not start with a valid command header.
    SentGarbage(Malformed),
}

impl fmt::Display for ZoneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the app's fault: ")?;
        match self {
            ZoneFault::StoppedReading { waiting_bytes } => write!(
                f,
                "it stopped reading its events ({waiting_bytes} bytes that must not be dropped are waiting)"
            )?,
            ZoneFault::BrokePort(fault) => write!(f, "it broke the rules of its port ({fault})")?,
            ZoneFault::SentGarbage(malformed) => write!(f, "it sent a malformed command ({malformed})")?,
        }
        f.write_str("; its zone is restarted")
    }
}

impl std::error::Error for ZoneFault {}

impl From<PeerFault> for ZoneFault {
    fn from(fault: PeerFault) -> Self {
        ZoneFault::BrokePort(fault)
    }
}

impl From<Malformed> for ZoneFault {
    fn from(malformed: Malformed) -> Self {
        ZoneFault::SentGarbage(malformed)
    }
}
