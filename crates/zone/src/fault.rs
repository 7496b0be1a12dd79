//! What an app can do wrong at its zone's boundary, in the operator's words.
//!
//! In: what the port found. Out: a sentence that says whose fault it is and what happens next. Never acts on it: the worker
//! reports it, and the monitor ends the zone and starts it again.

use std::fmt;

use abi::Malformed;
use ring::PeerFault;

/// Why a zone must be ended. Always the app's fault, and nobody else's loss: kernel, sessions and other apps go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneFault {
    /// The app does not take its events: those that may not be dropped have piled up to the bound.
    StoppedReading {
        /// Bytes of events that wait beside the full ring.
        waiting_bytes: usize,
    },
    /// The app wrote into its port's memory what no correct app writes.
    BrokePort(PeerFault),
    /// The app sent bytes that do not even begin as a command does.
    SentGarbage(Malformed),
}

impl fmt::Display for ZoneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the app's fault: ")?;
        match self {
            ZoneFault::StoppedReading { waiting_bytes } => write!(
                f,
                "it stopped reading its events ({waiting_bytes} bytes that may not be dropped wait for it)"
            )?,
            ZoneFault::BrokePort(fault) => write!(f, "it broke the rules of its port ({fault})")?,
            ZoneFault::SentGarbage(malformed) => write!(f, "it sent what is no command ({malformed})")?,
        }
        f.write_str("; its zone is ended and restarted")
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
