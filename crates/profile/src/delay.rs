//! The residual delays: what remains of a delay when the time in the CPU's queue and service is taken away.

use crate::quantiles::Quantiles;

/// Residual delays. They occupy nothing: any number of packets waits at the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delay {
    /// Between a packet's arrival and its packet-in, on top of the CPU.
    pub ingress_us: Quantiles,
    /// Between a flow mod or packet-out and the packet at the egress port, on top of the CPU.
    pub egress_us: Quantiles,
}
