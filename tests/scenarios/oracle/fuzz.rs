//! Tests the kernel's checks with random grants and random commands, and compares with the switch's state afterwards.
//!
//! In: a switch, a version, seeds. Out: how much was tried, or the shortest sequence of commands found that did
//! something forbidden.

use super::dice::Dice;
use super::forms::Names;
use super::grants::Facts;
use super::judge::{Difference, Judge, Snapshot, Verdict};
use super::node::Node;
use super::peer::Bench;
use super::steps::{Maker, Step, packets};
use abi::command::{Command, What};
use abi::event::{Event, OpenFlowVersion};
use abi::{Frame, ZoneId};
use flow::canonical::actions_raw;
use flow::{DatapathId, PortNo};
use kernel::OnOverlap;
use openflow::Version;
use std::time::{Duration, Instant};

/// Steps of one world: enough for rules to interact, and few enough to shorten a failing sequence quickly.
const STEPS: usize = 80;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Commands(u64),
    Elapsed(Duration),
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub worlds: u64,
    pub commands: u64,
    pub passed: u64,
    pub frames: u64,
    pub packet_ins: u64,
}

/// Apps, and their commands.
struct World {
    seed: u64,
    version: Version,
    on_overlap: OnOverlap,
    facts: Vec<Facts>,
    steps: Vec<Step>,
}

impl World {
    fn roll(seed: u64, version: Version, names: Names, switch: DatapathId) -> World {
        let mut dice = Dice::new(seed);
        let zones = 2 + dice.below(3) as u16;
        let on_overlap = dice.pick(&[OnOverlap::Report, OnOverlap::Refuse]);
        let reaching = dice.chance(25).then(|| dice.below(zones.into()) as u16);
        let facts = (0..zones).map(|zone| Facts::roll(&mut dice, reaching == Some(zone))).collect();
        let openflow = if version == Version::V1_0 { OpenFlowVersion::V1_0 } else { OpenFlowVersion::V1_3 };
        let mut maker = Maker { dice: &mut dice, openflow, names, zones, switch, tickets: 0 };
        let steps = (0..STEPS).map(|_| maker.step()).collect();
        World { seed, version, on_overlap, facts, steps }
    }

    fn words(&self, steps: &[Step]) -> String {
        let apps: Vec<String> = (1..)
            .zip(&self.facts)
            .map(|(zone, facts): (u16, _)| format!("  app {zone}: {}", facts.words()))
            .collect();
        let steps: Vec<String> = (1..)
            .zip(steps)
            .map(|(number, step): (u32, _)| format!("  {number}. {}", step.words()))
            .collect();
        format!(
            "OpenFlow {}, seed {}, on overlap: {:?}\n{}\n{}",
            self.version,
            self.seed,
            self.on_overlap,
            apps.join("\n"),
            steps.join("\n")
        )
    }

    fn begin(&self, bench: &mut dyn Bench) -> Verdict<Node> {
        bench.begin(self.version)?;
        let zones = (1..).zip(&self.facts).map(|(zone, facts)| (ZoneId(zone), facts.grant()));
        let mut node = Node::begin(bench, self.version, self.on_overlap, zones.collect())?;
        for (zone, _) in (1..).zip(&self.facts).filter(|(_, facts)| facts.packet_in) {
            node.subscribe(bench, ZoneId(zone))?;
        }
        // Long enough for the kernel to ask the switch for its rules.
        node.wait(bench, 1_000)?;
        Ok(node)
    }

    fn run(&self, bench: &mut dyn Bench, steps: &[Step], tally: &mut Tally) -> Verdict {
        let mut node = self.begin(bench)?;
        let mut judge = Judge::new(self.version, self.facts.clone());
        let mut before = Snapshot::take(bench, self.version)?;
        bench.take_frames()?;
        tally.worlds += 1;
        for step in steps {
            let packet_ins = node.packet_ins;
            before = match step {
                Step::Wait => {
                    node.wait(bench, 2_000)?;
                    before
                }
                Step::Arrive { port, packet } => {
                    let packet = &packets()[*packet];
                    node.arrive(bench, *port, packet)?;
                    let (after, frames) = (Snapshot::take(bench, self.version)?, bench.take_frames()?);
                    let heard = node.packet_ins - packet_ins;
                    tally.frames += frames.len() as u64;
                    tally.packet_ins += u64::from(heard);
                    let told = if bench.node().names() == Names::OpenFlows { heard } else { 0 };
                    judge.on_packet(&after.hit_since(&before), *port, packet, &frames, told)?;
                    after
                }
                Step::Command { zone, bytes, .. } => {
                    tally.commands += 1;
                    let passed = node.command(bench, *zone, bytes)?.is_ok();
                    tally.passed += u64::from(passed);
                    let (after, frames) = (Snapshot::take(bench, self.version)?, bench.take_frames()?);
                    tally.frames += frames.len() as u64;
                    judge.on_command(*zone, passed, &before, &after, &node.evicted)?;
                    node.evicted.clear();
                    if self.on_overlap == OnOverlap::Refuse {
                        judge.on_order(&after)?;
                        judge.on_receivers(&after)?;
                    }
                    let heard = node.packet_ins - packet_ins;
                    let told = if bench.node().names() == Names::OpenFlows { heard } else { 0 };
                    on_what(&judge, *zone, bytes, passed, &frames, &after.hit_since(&before), told)?;
                    after
                }
            };
            for (zone, answer) in node.told.drain(..) {
                on_answer(&judge, zone, &answer)?;
            }
        }
        Ok(())
    }

    /// The shortest sequence with the same effect.
    fn shrink(&self, bench: &mut dyn Bench, kind: &'static str) -> Vec<Step> {
        let mut steps = self.steps.clone();
        let mut size = steps.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < steps.len() {
                let mut fewer = steps.clone();
                fewer.drain(at..(at + size).min(fewer.len()));
                let again = self.run(bench, &fewer, &mut Tally::default());
                if again.is_err_and(|found| found.kind == kind) { steps = fewer } else { at += size }
            }
            size /= 2;
        }
        steps
    }
}

/// Checks that the app holds the capability for its command, and that it may send a packet-out's frame.
fn on_what(
    judge: &Judge,
    zone: ZoneId,
    bytes: &[u8],
    passed: bool,
    frames: &[(u32, Vec<u8>)],
    hit: &std::collections::BTreeSet<u16>,
    packet_ins: u32,
) -> Verdict {
    let facts = judge.app(zone)?;
    let frame = Frame::read(bytes).map_err(|bad| bad.to_string())?;
    let command = Command::read(&frame).map_err(|bad| bad.to_string())?;
    let lacks = |capability: &str| Difference {
        kind: "a command without its capability",
        words: capability.to_owned(),
    };
    match command.what {
        _ if !passed => {
            let is_silent = frames.is_empty() && packet_ins == 0;
            let words = format!("{} frames, {packet_ins} packet-ins", frames.len());
            if is_silent {
                Ok(())
            } else {
                Err(Difference { kind: "a refused command did something", words })
            }
        }
        What::PacketOut(packet_out) => {
            let reach = facts.packet_out.as_ref().filter(|reach| !reach.elsewhere);
            let reach = reach.ok_or_else(|| lacks("packet.out"))?;
            let alone = !judge.is_mixed && hit.iter().all(|owner| *owner == zone.0);
            if !alone {
                return Ok(());
            }
            judge.on_frames(zone.0, reach, packet_out.in_port, frames)?;
            // A 1.0 switch sends unmatched packets to the controller without a table-miss rule.
            let misses = judge.openflow == Version::V1_0 && hit.is_empty() && names_table(packet_out.actions);
            if packet_ins > 0 && !facts.packet_in && !misses { Err(lacks("packet.in")) } else { Ok(()) }
        }
        What::FlowMod(_) | What::GroupMod(_) | What::MeterMod(_) if facts.rules.is_none() => {
            Err(lacks("rule.write"))
        }
        What::PortMod(_) if !facts.ports => Err(lacks("port.write")),
        What::StatsRequest(_) if !facts.asks => Err(lacks("stats.read")),
        _ => Ok(()),
    }
}

fn names_table(actions: &[u8]) -> bool {
    actions_raw(actions)
        .map_while(Result::ok)
        .any(|raw| raw.output().is_some_and(|(port, _)| port == PortNo::TABLE))
}

/// The offsets of a flow entry's length and cookie (1.3.5, 7.3.5.2).
const ENTRY_COOKIE_AT: usize = 24;

/// Kinds of answers (`ofp_multipart_type`).
const AGGREGATE: u16 = 2;
const GROUP: u16 = 6;
const GROUP_DESC: u16 = 7;
const METER: u16 = 9;
const METER_CONFIG: u16 = 10;

/// An app that may not read others' rules sees only its own.
fn on_answer(judge: &Judge, zone: ZoneId, bytes: &[u8]) -> Verdict {
    let facts = judge.app(zone)?;
    let frame = Frame::read(bytes).map_err(|bad| bad.to_string())?;
    let Ok(Event::StatsReply(reply)) = Event::read(&frame) else { return Ok(()) };
    if facts.reads_rules {
        return Ok(());
    }
    if reply.multipart == AGGREGATE {
        return Err(shows_others(zone, "a sum of rules"));
    }
    on_numbers(judge, zone, reply.multipart, reply.body)?;
    let mut rest = if reply.multipart == 1 { reply.body } else { &[] };
    while let Some(length) = rest.first_chunk::<2>() {
        let (entry, after) = rest.split_at(usize::from(u16::from_be_bytes(*length)).clamp(1, rest.len()));
        let cookie = entry.get(ENTRY_COOKIE_AT..).and_then(|bytes| bytes.first_chunk());
        let owner = cookie.map(|cookie| ZoneId::owner_of(u64::from_be_bytes(*cookie)));
        if owner != Some(zone) {
            return Err(shows_others(zone, &format!("a rule of {owner:?}")));
        }
        rest = after;
    }
    Ok(())
}

fn shows_others(zone: ZoneId, what: &str) -> Difference {
    Difference { kind: "an answer shows what others have", words: format!("app {}: {what}", zone.0) }
}

/// An app that may not read others' rules sees only its own groups and meters.
fn on_numbers(judge: &Judge, zone: ZoneId, multipart: u16, mut rest: &[u8]) -> Verdict {
    // Where an entry has its number and its length (1.3.5, 7.3.5.6, 7.3.5.7, 7.3.5.12, 7.3.5.13).
    let (number_at, length_at, is_group) = match multipart {
        GROUP | GROUP_DESC => (4, 0, true),
        METER_CONFIG => (4, 0, false),
        METER => (0, 4, false),
        _ => return Ok(()),
    };
    while !rest.is_empty() {
        let number = rest.get(number_at..).and_then(<[u8]>::first_chunk).map(|it| u32::from_be_bytes(*it));
        let length = rest.get(length_at..).and_then(<[u8]>::first_chunk).map(|it| u16::from_be_bytes(*it));
        let (Some(number), Some(length)) = (number, length) else {
            return Err(shows_others(zone, "half an entry"));
        };
        let owner = if is_group { judge.owner_of_group(number) } else { judge.owner_of_meter(number) };
        if owner != Some(zone.0) {
            let what = if is_group { "group" } else { "meter" };
            return Err(shows_others(zone, &format!("{what} {number} of {owner:?}")));
        }
        rest = rest.get(usize::from(length).max(1)..).unwrap_or_default();
    }
    Ok(())
}

/// Tests worlds, starting with this seed.
///
/// # Errors
/// The first difference, with the shortest sequence found.
pub fn run(bench: &mut dyn Bench, version: Version, seed: u64, until: Until) -> Result<Tally, String> {
    let (began, mut tally) = (Instant::now(), Tally::default());
    let names = bench.node().names();
    bench.begin(version)?;
    let probe = Node::begin(bench, version, OnOverlap::Report, Vec::new())?;
    let switch = probe.switch();
    for seed in seed.. {
        let is_over = match until {
            Until::Commands(most) => tally.commands >= most,
            Until::Elapsed(time) => began.elapsed() >= time,
        };
        if is_over {
            break;
        }
        let world = World::roll(seed, version, names, switch);
        if let Err(first) = world.run(bench, &world.steps, &mut tally) {
            let steps = world.shrink(bench, first.kind);
            let last = world.run(bench, &steps, &mut Tally::default()).err().unwrap_or(first);
            return Err(format!(
                "{}: {}\n{}\nbefore it: {tally:?}",
                last.kind,
                last.words,
                world.words(&steps)
            ));
        }
    }
    Ok(tally)
}
