//! An app as a shared object that is always busy. Tests use it to see how trusted apps use the processor.
//!
//! It sends a command that is always refused, and computes for a millisecond after each refusal before it sends the
//! next. It logs the notification about its soft limit. It does nothing useful.

use std::time::{Duration, Instant};

use burnet_sdk::{App, Commands, DatapathId, Interests, Level, Receipt, Settings, SoftLimit};

/// As long as a call takes: short enough to keep nobody waiting.
const THOUGHT: Duration = Duration::from_millis(1);

/// A switch that does not exist.
const NO_SWITCH: DatapathId = DatapathId(0xdead);

struct Busy;

impl App for Busy {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Busy)
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.rule(NO_SWITCH).send_with_receipt();
    }

    fn on_soft_limit(&mut self, limit: &SoftLimit, out: &mut Commands) {
        out.log(
            Level::Warning,
            &format!("told of {}: {}, and {} is the soft limit", limit.quota, limit.used, limit.soft),
        );
    }

    fn on_receipt(&mut self, _: DatapathId, _: &Receipt, out: &mut Commands) {
        let began = Instant::now();
        while began.elapsed() < THOUGHT {
            std::hint::spin_loop();
        }
        out.rule(NO_SWITCH).send_with_receipt();
    }
}

burnet_sdk::shared_object!(Busy);
