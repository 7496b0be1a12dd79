//! The service that judges what apps and services use of the machine.
//!
//! ```text
//!   monitor: /proc ──┐
//!   kernel: counts ──┴──observations──> [ this service ] ──rulings──> kernel ──> monitor: tells, ends
//! ```
//!
//! In: observations, each of all zones at one moment. Out: for each of them one list of rulings, empty ones too, so that the monitor knows that
//! somebody judges: while nobody does, it does so itself. What is remembered is a few numbers for each zone. It measures nothing, and ends nobody.

use burnet_sdk::judge::{Judges, Observation, Ruling};
use burnet_sdk::{App, Commands, Interests, Level, Observed, Settings};
use std::process::ExitCode;

/// The service.
#[derive(Debug, Default)]
pub struct Resource {
    judges: Judges,
    /// The operator was told that something cannot be read.
    complained: bool,
}

/// Serves a zone until that ends. It is here and not in the node so that its code is built as the service's is.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Resource>()
}

impl App for Resource {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Resource::default())
    }

    fn interests(&self) -> Interests {
        Interests::none().observations()
    }

    fn on_observed(&mut self, observed: &Observed, out: &mut Commands) {
        match self.judge(observed.zones) {
            Ok(rulings) => out.rulings(&rulings),
            // Without a ruling the monitor judges, which is right for whatever this is.
            Err(why) => self.complain(&why, out),
        }
    }
}

impl Resource {
    /// From JSON to JSON.
    fn judge(&mut self, zones: &str) -> Result<String, String> {
        let zones: Vec<Observation> = serde_json::from_str(zones).map_err(|error| error.to_string())?;
        let rulings: Vec<Ruling> =
            zones.iter().flat_map(|observation| self.judges.on_observation(observation)).collect();
        serde_json::to_string(&rulings).map_err(|error| error.to_string())
    }

    /// Once: it would be the same again and again.
    fn complain(&mut self, why: &str, out: &mut Commands) {
        if !std::mem::replace(&mut self.complained, true) {
            let text = format!("what zones use cannot be read, so the monitor judges it: {why}");
            out.log(Level::Error, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(service: &mut Resource, zones: &str, expected: Result<&str, &str>) {
        match (service.judge(zones), expected) {
            (Ok(rulings), Ok(expected)) => assert_eq!(rulings, expected),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, expected) => panic!("{zones}: {got:?} and not {expected:?}"),
        }
    }

    fn zone(memory_bytes: u64) -> String {
        format!(
            r#"[{{"zone":3,"sample":{{"generation":2,"memory_bytes":{memory_bytes}}},"limits":[{{"memory_bytes":100}},null],"keeps_cpu":true}}]"#
        )
    }

    #[test]
    fn what_cannot_be_read_is_no_ruling() {
        let mut service = Resource::default();
        check(&mut service, "", Err("EOF"));
        check(&mut service, "[{}]", Err("missing field"));
        check(
            &mut service,
            r#"[{"zone":1,"sample":{},"limits":[{},null],"keeps_cpu":1}]"#,
            Err("expected a boolean"),
        );
    }

    #[test]
    fn rulings_are_answered_also_when_there_is_none() {
        let mut service = Resource::default();
        check(&mut service, "[]", Ok("[]"));
        check(&mut service, &zone(80), Ok("[]"));
        let passed = r#"[{"zone":3,"generation":2,"verdict":{"passed":{"resource":"memory_bytes","used":81,"soft":80,"hard":100}}}]"#;
        check(&mut service, &zone(81), Ok(passed));
        check(&mut service, &zone(81), Ok("[]"));
        let end = r#"[{"zone":3,"generation":2,"verdict":{"end":{"resource":"memory_bytes","used":101,"soft":80,"hard":100}}}]"#;
        check(&mut service, &zone(101), Ok(end));
    }
}
