//! The service `resource`: compares the resource use of apps and services with their limits.
//!
//! ```text
//!   kernel: counts ──> monitor, /proc ──observations──> [ this service ] ──rulings──> monitor: tells, ends
//! ```
//!
//! In: observations, each of all zones at one time. Out: one list of rulings for each observation, even if it is empty. If no
//! answer comes, the monitor decides itself. The service stores a few numbers for each zone. It measures nothing and stops nothing.

use burnet_sdk::{App, Commands, Interests, Settings, read_monitor};
use resource_contract::{Judges, Observed, Rulings};
use std::process::ExitCode;

/// The service, with the state of each zone.
#[derive(Debug, Default)]
pub struct Resource {
    judges: Judges,
}

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Resource>()
}

impl App for Resource {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Resource::default())
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let Observed { zones } = read_monitor(message)?;
        let rulings = zones.iter().flat_map(|zone| self.judges.on_observation(zone)).collect();
        out.tell_monitor(&Rulings { rulings });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rulings on one observation, as JSON.
    fn check(service: &mut Resource, zones: &str, expected: &str) {
        let mut out = Commands::new();
        let message = format!(r#"{{"zones":{zones}}}"#);
        service.on_monitor(message.as_bytes(), &mut out).unwrap();
        assert_eq!(out.told_monitor(), [format!(r#"{{"rulings":{expected}}}"#)]);
    }

    fn zone(memory_bytes: u64) -> String {
        format!(
            r#"[{{"zone":3,"sample":{{"generation":2,"memory_bytes":{memory_bytes}}},"limits":[{{"memory_bytes":100}},null],"keeps_cpu":true}}]"#
        )
    }

    #[test]
    fn what_cannot_be_read_is_no_ruling() {
        let mut out = Commands::new();
        for damaged in ["", "1", r#"{"zones":[{}]}"#] {
            assert!(Resource::default().on_monitor(damaged.as_bytes(), &mut out).is_err());
        }
        assert!(out.told_monitor().is_empty());
    }

    #[test]
    fn rulings_are_answered_also_when_there_is_none() {
        let mut service = Resource::default();
        check(&mut service, "[]", "[]");
        check(&mut service, &zone(80), "[]");
        let passed = r#"[{"zone":3,"generation":2,"verdict":{"passed":{"resource":"memory_bytes","used":81,"soft":80,"hard":100}}}]"#;
        check(&mut service, &zone(81), passed);
        check(&mut service, &zone(81), "[]");
    }
}
