//! `burnet run --monolithic`: a node as network operating systems were before apps were kept apart, for comparison alone.
//!
//! In: the plan of a node. Out: the same with every app inside the kernel's process, no services, and a monitor that starts nothing again. What an app is
//! granted and what the kernel checks stay as they are. The experiments run it beside a node as it is meant to be; nobody else should.

use monitor::{AppRole, Patience, Plan, Timing, ZoneKind};

/// No kernel is silent for so long: about 36 years.
const NEVER_MS: u64 = 1 << 40;

/// Takes from a plan what keeps apps apart, and what puts right what they do.
pub(super) fn make_monolithic(plan: &mut Plan) {
    tracing::warn!(
        "monolithic: every app runs inside the kernel, and nothing that ends is started again; for comparison only, never for a network"
    );
    // What watches over apps is what this node goes without.
    plan.apps.retain(|app| app.role == AppRole::App);
    for app in &mut plan.apps {
        app.kind = ZoneKind::Trusted;
        // Nobody looks whether it still may.
        app.packaged = false;
    }
    plan.timing = Timing {
        app: Patience { restarts_max: 0, ..Patience::APP },
        kernel: Patience { restarts_max: 0, ..Patience::KERNEL },
        kernel_silence_ms: NEVER_MS,
        ..Timing::default()
    };
}
