//! `burnet run --monolithic`: a node with every app in the kernel process, only for comparison.
//!
//! In: the plan of a node. Out: the same plan without services and process zones, and with a monitor that restarts
//! nothing. Grants and the kernel's checks do not change. The experiments compare it with a normal node. Do not use
//! it for anything else.
//! granted and what the kernel checks stay as they are. The experiments run it beside a node as it is meant to be; nobody else should.

use monitor::{AppRole, Plan, RestartPolicy, Timing, ZoneKind};

/// A silence limit that no kernel process reaches: about 36 years.
const NEVER_MS: u64 = 1 << 40;

/// Removes from a plan what isolates apps and what recovers from their failures.
pub(super) fn make_monolithic(plan: &mut Plan) {
    tracing::warn!(
        "monolithic: all apps run in the kernel process, and nothing restarts after a crash; use it for comparison only, never in a real network"
    );
    // A monolithic node has no service that watches apps.
    plan.apps.retain(|app| app.role == AppRole::App);
    for app in &mut plan.apps {
        app.kind = ZoneKind::Trusted;
        // Packages are not verified again while the node runs.
        app.packaged = false;
    }
    plan.timing = Timing {
        app: RestartPolicy { restarts_max: 0, ..RestartPolicy::APP },
        kernel: RestartPolicy { restarts_max: 0, ..RestartPolicy::KERNEL },
        kernel_silence_ms: NEVER_MS,
        ..Timing::default()
    };
}
