//! The agent on a server that meters traffic at the receiver and shapes it at the sender, as EyeQ (NSDI 2013) does.
//!
//! ```text
//!        server of the sender                           server of the receiver
//!   ┌──────────────────────────────┐               ┌──────────────────────────────┐
//!   │ VNIC ──> shaper (HTB) ── NIC ─┼──> network ──>┼─ NIC ── meter (nftables) ──> VNIC
//!   │             ↑ ceiling R      │               │            │ y               │
//!   │           Agent <────────────┼── feedback R ─┼── Agent: R ← R·(1 − ½(y−C)/C) │
//!   └─────────────┬────────────────┘               └────────────┬─────────────────┘
//!                 └────── reports ──> label service <─ reports ─┘
//! ```
//!
//! In: counters of the meter, datagrams of other agents and of the label service, and the time. Out: rates of classes, and datagrams.
//! [`agent::Agent`] is pure and ties the parts together: [`meter`], [`feedback`], [`shares`], [`shaper`] and [`protocol`]. The module
//! [`linux`] acts: nftables counts, HTB shapes.
//!
//! It never sees the content of a packet, never drops one by its own decision, and never decides about paths or labels. If it ends, the
//! network goes on as without it.

pub mod agent;
pub mod feedback;
pub mod linux;
pub mod meter;
pub mod protocol;
pub mod shaper;
pub mod shares;
pub mod stream;
pub mod vnic;

pub use linux::run::{Config, Orders, clean, run};
