//! The port of a process zone: two byte rings in shared memory with a hostile peer.
