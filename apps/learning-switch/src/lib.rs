//! Learns which port each MAC address is behind.
