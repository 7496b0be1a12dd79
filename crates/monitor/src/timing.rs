//! The time limits and restart policies of the monitor.
//!
//! In: nothing. Out: values for `supervisor` and its parts. Nothing here reads a clock.

use crate::backoff::RestartPolicy;
use crate::safe_mode::Intensity;

/// The time limits of the monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The restart policy of an app.
    pub app: RestartPolicy,
    /// The restart policy of a service.
    pub service: RestartPolicy,
    /// The restart policy of the kernel process.
    pub kernel: RestartPolicy,
    /// When failures of services count as a failure of the node.
    pub node: Intensity,
    /// From the start of the kernel process to its `Ready`; it only has to open its ports.
    pub kernel_start_ms: u64,
    /// A kernel process whose workers make no progress for this long hangs: thirty missed heartbeats.
    pub kernel_silence_ms: u64,
    /// The time from the request to end until the kill.
    pub end_grace_ms: u64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            app: RestartPolicy::APP,
            service: RestartPolicy::SERVICE,
            kernel: RestartPolicy::KERNEL,
            node: Intensity::NODE,
            kernel_start_ms: 10_000,
            kernel_silence_ms: 3_000,
            end_grace_ms: 2_000,
        }
    }
}
