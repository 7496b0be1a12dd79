//! The profiles that the probe finds: what the emulators of the experiments know of their targets.
//!
//! ```text
//!   built-in profile ──> software switch, the target ⇄ probe ──> profile of the emulator
//! ```
//!
//! In virtual time, so that nothing depends on the machine. A target is probed once in a process. The probe is told nothing of the
//! target's profile.

use emulator::{ControllerId, Effects as SwitchEffects, Profiles, Switch, SwitchOptions};
use flow::{DatapathId, PortNo};
use openflow::Message;
use probe::virtual_time::{self, Effects, Subject};
use probe::{Finished, Options, Probe};
use profile::Profile;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A probe that takes longer in virtual time has no end.
const LIMIT_NS: u64 = 7_200_000_000_000;
/// The day on which the profiles of the experiments are dated. It is fixed, so that the same code writes the same file.
const DATE: &str = "2026-11-25";
/// How long a probe takes at most. Five minutes give the rate of a set-up within 0.2 %, and at saturation that decides the length of the
/// queue.
const PROBE_MINUTES: u64 = 60;
const MINUTE_NS: u64 = 60_000_000_000;
/// The seed of the target while it is probed. No run of an experiment has it.
const SEED: u64 = 7001;
const CONTROLLER: ControllerId = ControllerId(0);

static FOUND: Mutex<BTreeMap<String, Profile>> = Mutex::new(BTreeMap::new());

/// The profile that the probe finds of the switch with this profile.
///
/// # Errors
/// The probe refuses the switch, or does not end.
pub fn found(truth: &Profile) -> Result<Profile, String> {
    let known = |found: &BTreeMap<String, Profile>| found.get(&truth.name).cloned();
    if let Some(found) = known(&FOUND.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(found);
    }
    let found = probe(truth)?;
    FOUND.lock().unwrap_or_else(PoisonError::into_inner).insert(truth.name.clone(), found.clone());
    Ok(found)
}

fn probe(truth: &Profile) -> Result<Profile, String> {
    let name = format!("{}-found", truth.name);
    let options = Options { time_max_ns: PROBE_MINUTES * MINUTE_NS, ..Options::simulated(&name, DATE) };
    let mut target = Target::new(truth);
    let ended = virtual_time::run(Probe::new(options), &mut target, LIMIT_NS);
    match ended.map(|ended| ended.finished) {
        Some(Finished::Profile(profile)) => Ok(*profile),
        Some(Finished::Refused(why)) => Err(format!("the probe of {} was refused: {why}", truth.name)),
        None => Err(format!("the probe of {} did not end", truth.name)),
    }
}

/// A software switch with two ports, as the probe's driver sees it.
struct Target {
    switch: Switch,
    effects: SwitchEffects,
}

impl Target {
    fn new(truth: &Profile) -> Target {
        let profiles = Profiles::for_all(truth.clone());
        let options = SwitchOptions { profiles, seed: SEED, ..SwitchOptions::default() };
        let mut target =
            Target { switch: Switch::new(DatapathId(1), "s1", options), effects: SwitchEffects::default() };
        for port in [PortNo(1), PortNo(2)] {
            target.switch.add_port(port, Duration::ZERO, &mut target.effects);
        }
        target
    }

    fn at(
        &mut self,
        now_ns: u64,
        out: &mut Effects,
        happens: impl FnOnce(&mut Switch, Duration, &mut SwitchEffects),
    ) {
        happens(&mut self.switch, Duration::from_nanos(now_ns), &mut self.effects);
        out.messages.extend(self.effects.messages.drain(..).map(|(_, message)| message));
        out.frames.append(&mut self.effects.frames);
        out.leaves |= self.effects.close.drain(..).next().is_some();
    }
}

impl Subject for Target {
    fn on_connected(&mut self, now_ns: u64, out: &mut Effects) {
        self.at(now_ns, out, |switch, _, effects| switch.on_connected(CONTROLLER, effects));
    }

    fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Effects) {
        self.at(now_ns, out, |switch, now, effects| switch.on_message(CONTROLLER, message, now, effects));
    }

    fn on_frame(&mut self, port: PortNo, frame: Vec<u8>, now_ns: u64, out: &mut Effects) {
        self.at(now_ns, out, |switch, now, effects| switch.on_frame(port, frame, now, effects));
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.switch.next_due().map(|due| u64::try_from(due.as_nanos()).unwrap_or(u64::MAX))
    }

    fn on_time(&mut self, now_ns: u64, out: &mut Effects) {
        self.at(now_ns, out, |switch, now, effects| switch.on_tick(now, effects));
    }
}
