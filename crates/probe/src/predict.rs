//! What a profile predicts for a script: the script against the model, in virtual time. And how far what was seen is from that.
//!
//! ```text
//!   profile, script, seed ──> Modelled ⇄ Run ──> Record       delays seen, delays predicted ──> Fit
//! ```
//!
//! In: a profile and what was measured. Out: judgements. Nothing of what is judged here went into the profile. It sends nothing to a
//! real switch.

use crate::event::Command;
use crate::findings::Loaded;
use crate::handshake::XIDS;
use crate::modelled::Modelled;
use crate::run::{Numbers, Run, Setting};
use crate::samples::us;
use crate::script::{Outcome, Record, Script};
use crate::subject::{Effects, Subject};
use profile::compare::{Samples, ks, ks_limit};
use profile::{Fit, Profile};

/// A script that takes longer in virtual time has no end.
const LIMIT_NS: u64 = 3_600_000_000_000;
/// Predictions by seeds, so that their own noise is small.
const SEEDS: u64 = 4;
/// How often a right profile is called a poor fit.
const ALPHA: f64 = 0.01;
/// What errors of a few per cent in the service times may add to a distance. Queues make them several times larger.
const ALLOWANCE: f64 = 0.1;
/// The delay that stands for a lost packet, in µs.
const LOST_US: f64 = 3e9;

/// What the model makes of a script. None: it does not end.
pub fn record(profile: &Profile, setting: Setting, script: Script, seed: u64) -> Option<Record> {
    let mut switch = Modelled::new(profile, setting.version, seed);
    let mut run = Run::new(script, setting, Numbers { xid: XIDS, sequence: 0 }, 0);
    let mut now_ns = 0;
    while now_ns < LIMIT_NS {
        let (mut commands, mut effects) = (Vec::new(), Effects::default());
        if switch.next_due_ns().is_some_and(|due| due <= now_ns) {
            switch.on_time(now_ns, &mut effects);
        } else if let Some(record) = run.on_time(now_ns, &mut commands) {
            return Some(record);
        }
        exchange(&mut switch, &mut run, commands, effects, now_ns);
        let due = switch.next_due_ns().unwrap_or(u64::MAX).min(run.next_due_ns());
        now_ns = now_ns.max(due);
    }
    None
}

/// Passes on what both sides do, until neither does anything more at this moment.
fn exchange(
    switch: &mut Modelled,
    run: &mut Run,
    mut commands: Vec<Command>,
    mut effects: Effects,
    now_ns: u64,
) {
    loop {
        let mut next = Effects::default();
        for command in commands.drain(..) {
            match command {
                Command::Send(message) => switch.on_message(&message, now_ns, &mut next),
                Command::Frame { port, frame } => switch.on_frame(port, frame, now_ns, &mut next),
                _ => {}
            }
        }
        let Effects { messages, frames, .. } = std::mem::take(&mut effects);
        messages.iter().for_each(|message| run.on_message(message, now_ns, &mut commands));
        frames.iter().for_each(|(port, frame)| run.on_frame(*port, frame, now_ns, now_ns));
        effects = next;
        if commands.is_empty() && effects.messages.is_empty() && effects.frames.is_empty() {
            return;
        }
    }
}

/// From each test frame to its end, in µs. A lost one is later than all others.
pub fn delays_us(record: &Record) -> Vec<f64> {
    let tested = record.outcomes.iter().filter(|outcome| outcome.frames.0 > 0);
    let delay = |outcome: &Outcome| Some(us(outcome.frame?.at_ns.saturating_sub(outcome.sent_ns?)));
    tested.map(|outcome| delay(outcome).unwrap_or(LOST_US)).collect()
}

/// How far what was seen under a load is from what the profile predicts. None: nothing was seen, or the model does not end.
pub fn judge(profile: &Profile, setting: Setting, load: &Loaded) -> Option<Fit> {
    let predicted: Option<Vec<Record>> =
        (0..SEEDS).map(|seed| record(profile, setting, load.script.clone(), seed)).collect();
    let predicted: Vec<f64> = predicted?.iter().flat_map(delays_us).collect();
    let seen = Samples::new(load.delays_us.clone()).ok()?;
    let predicted = Samples::new(predicted).ok()?;
    let limit = ks_limit(seen.count(), predicted.count(), ALPHA) + ALLOWANCE;
    Some(Fit {
        what: load.what.clone(),
        samples: u32::try_from(seen.count()).unwrap_or(u32::MAX),
        ks: ks(&seen, &predicted).distance,
        ks_limit: limit.min(1.0),
    })
}
