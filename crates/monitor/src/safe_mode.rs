//! Decides when the node restarts, and when it enters safe mode. Pure.
//!
//! ```text
//!   services that fail, a kernel process that ends too often ──> SafeMode ──> nothing, a restart of the node, or safe mode
//! ```
//!
//! It stores at most [`FAILURES_MAX`] failures, and starts and stops nothing itself.

use std::collections::VecDeque;

use crate::app::Ending;
use crate::process_end::PastEnd;

/// The largest number of stored failures of services; a node has fewer services.
const FAILURES_MAX: usize = 16;

/// The operator's settings for safe mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SafeModePlan {
    /// The apps that run in it, in the order of their start.
    pub apps: Vec<String>,
    /// Whether the node starts in it.
    pub from_start: bool,
}

/// When failures of services count as a failure of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intensity {
    /// If this many different services fail within the window, the node has failed. It has also failed if a service is
    /// given up.
    pub services: usize,
    /// The window, in milliseconds.
    pub window_ms: u64,
    /// If the node fails again within this many milliseconds of its restart, it enters safe mode.
    pub again_ms: u64,
}

impl Intensity {
    /// Two services within ten seconds: one app or a common cause explains that better than chance. Ten minutes are
    /// longer than it takes to give up any service.
    pub const NODE: Intensity = Intensity { services: 2, window_ms: 10_000, again_ms: 600_000 };
}

/// The reaction to a service's failure, in addition to its own restart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    Nothing,
    /// The kernel process and all zones restart. The value names the failed services.
    RestartNode(Vec<String>),
    /// The same, in safe mode.
    Enter(Vec<String>),
}

/// Safe mode, on or off.
#[derive(Debug)]
pub(crate) struct SafeMode {
    plan: SafeModePlan,
    intensity: Intensity,
    on: Option<PastEnd>,
    failures: VecDeque<(u64, String)>,
    restarted_ms: Option<u64>,
}

impl SafeMode {
    pub(crate) fn new(plan: SafeModePlan, intensity: Intensity) -> SafeMode {
        SafeMode { plan, intensity, on: None, failures: VecDeque::new(), restarted_ms: None }
    }

    pub(crate) fn is_wanted_from_start(&self) -> bool {
        self.plan.from_start
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    pub(crate) fn enter(&mut self, reason: &str, now_ms: u64) {
        self.on = Some(PastEnd::new(reason, None, now_ms));
        self.failures.clear();
    }

    /// Forgets everything that led to safe mode.
    pub(crate) fn leave(&mut self) {
        self.on = None;
        self.failures.clear();
        self.restarted_ms = None;
    }

    /// The place of an app in safe mode; `None` if it does not run then.
    pub(crate) fn place_of(&self, app: &str) -> Option<usize> {
        self.plan.apps.iter().position(|wanted| wanted == app)
    }

    /// Why and since when it is on.
    pub(crate) fn status(&self, unix_ms_at_zero: u64) -> Option<Ending> {
        self.on.as_ref().map(|past| past.ending(unix_ms_at_zero))
    }

    /// A service failed; `given_up` if it does not restart.
    pub(crate) fn service_failed(&mut self, service: &str, given_up: bool, now_ms: u64) -> Consequence {
        let window_ms = self.intensity.window_ms;
        self.failures.retain(|(at_ms, name)| now_ms.saturating_sub(*at_ms) < window_ms && name != service);
        if self.failures.len() >= FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back((now_ms, service.to_owned()));
        // In safe mode, a restart would not help; each service has its own restart policy.
        if self.is_on() || (self.failures.len() < self.intensity.services && !given_up) {
            return Consequence::Nothing;
        }
        let failed = self.failures.drain(..).map(|(_, name)| name).collect();
        let before = self.restarted_ms.replace(now_ms);
        match before.is_some_and(|before_ms| now_ms.saturating_sub(before_ms) < self.intensity.again_ms) {
            true => Consequence::Enter(failed),
            false => Consequence::RestartNode(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each step is (milliseconds since the one before, the failing service, whether it is given up, the reaction).
    fn check(steps: &[(u64, &str, bool, &str)]) {
        let mut safe_mode = SafeMode::new(SafeModePlan::default(), Intensity::NODE);
        let mut now_ms = 1_000_000;
        for (number, (wait_ms, service, given_up, expected)) in steps.iter().enumerate() {
            now_ms += wait_ms;
            let got = match safe_mode.service_failed(service, *given_up, now_ms) {
                Consequence::Nothing => "-".to_owned(),
                Consequence::RestartNode(failed) => format!("restart {}", failed.join(" ")),
                Consequence::Enter(failed) => format!("safe mode {}", failed.join(" ")),
            };
            assert_eq!(got, *expected, "step {number}");
        }
    }

    #[test]
    fn one_service_that_fails_again_and_again_is_its_own_affair() {
        check(&[(0, "audit", false, "-"), (1, "audit", false, "-"), (1, "audit", false, "-")]);
    }

    #[test]
    fn two_services_within_the_window_are_the_nodes_and_again_is_safe_mode() {
        check(&[
            (0, "audit", false, "-"),
            (9_999, "security", false, "restart audit security"),
            (1, "audit", false, "-"),
            (0, "resource", false, "safe mode audit resource"),
        ]);
    }

    #[test]
    fn two_services_that_fail_far_apart_are_chance() {
        check(&[(0, "audit", false, "-"), (10_000, "security", false, "-"), (10_000, "audit", false, "-")]);
    }

    #[test]
    fn a_service_that_is_given_up_is_the_nodes_failure_too() {
        check(&[(0, "audit", true, "restart audit"), (599_999, "audit", true, "safe mode audit")]);
        check(&[(0, "audit", true, "restart audit"), (600_000, "audit", true, "restart audit")]);
    }

    #[test]
    fn in_safe_mode_services_have_only_their_own_patience() {
        let mut safe_mode = SafeMode::new(SafeModePlan::default(), Intensity::NODE);
        safe_mode.enter("asked for", 0);
        assert_eq!(safe_mode.service_failed("audit", true, 1), Consequence::Nothing);
        assert_eq!(safe_mode.service_failed("security", true, 2), Consequence::Nothing);
        safe_mode.leave();
        assert_eq!(safe_mode.service_failed("audit", false, 3), Consequence::Nothing);
    }
}
