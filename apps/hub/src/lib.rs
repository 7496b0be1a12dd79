//! Sends each packet out of every other port.
