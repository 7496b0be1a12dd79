//! `burnet probe` at a real Open vSwitch whose truth is known. The database says how large its table is, what it does then, how many
//! packet-ins a second it sends, and whether it forwards by a cache. Behind the proxy, the truth is the profile that it plays.

mod limits;
mod proxied;
mod recovered;
mod sessions;
mod setup;
mod tables;
