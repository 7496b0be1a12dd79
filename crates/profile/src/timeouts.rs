//! When time-outs are noticed and counters are fresh.

/// Time-outs and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeouts {
    /// The switch looks for expired rules this often; a rule stays until then. 0: at once.
    pub scan_period_us: f64,
    /// Counters, and with them idle times, are read from the hardware this often. 0: always fresh.
    pub counter_period_us: f64,
}
