//! A rehearsal with packets, phase by phase, and what was seen.
//!
//! In: a network, judged slices, options. Out: [`Rehearsed`], as of a rehearsal without packets, and what only packets show. It prints nothing.

use super::members::{stage_plan, version, vnic_id};
use super::network::{Emulated, VnicHost, emulated};
use burnet::cli::slice::SliceRehearseArgs;
use burnet::slice_plan::judge::Judged;
use burnet::slice_plan::packets::{Heard, HeardError, Packets, RuleSpec, RulesAt};
use burnet::slice_plan::rehearse::{Begin, Cast, Flow, Rehearsed, cast};
use burnet::slice_plan::substrate::Description;
use burnet_sdk::view::LinkId;
use config::slices::switch_name;
use emulator::FlowSpec;
use rehearsal::{LinkNo, Pair, SliceNo};
use std::collections::BTreeMap;
use std::time::Duration;
use virtual_node::{FRAMES_MAX, Stage};

/// The time before the first flow: sessions open, agents meet, and slices report their links.
const WARM_UP_MS: u64 = 1_000;
/// The bits of the largest frame.
const FRAME_BITS: u64 = 1_514 * 8;

/// Rehearses.
///
/// # Errors
/// A sentence: what cannot be rehearsed, or why it cannot go on.
pub(super) fn rehearse(
    description: &Description,
    judged: &[Judged],
    args: &SliceRehearseArgs,
) -> Result<Rehearsed, String> {
    let cast = cast(description, judged, &args.flows, args.choose.into())?;
    let emulated = emulated(&cast)?;
    let phases_ms = cast.phases_ms(args.seconds * 1_000);
    check_size(&cast, phases_ms.last().map_or(0, |(_, to_ms)| *to_ms))?;
    let stage = Stage::new(stage_plan(description, &cast, &emulated, &args.with_packets)?)?;
    let mut rules: Vec<&RuleSpec> = args.with_packets.rules.iter().collect();
    rules.sort_by_key(|rule| rule.at_ms);
    Running { cast, emulated, stage, rules, learning: &args.with_packets.learning }.run(phases_ms)
}

/// Refuses what would take longer than somebody waits for it.
fn check_size(cast: &Cast<'_>, end_ms: u64) -> Result<(), String> {
    let nic_bps = |pair: Pair, vnic: rehearsal::VnicNo| {
        cast.network.fabric.nic_bps(cast.plans[pair.slice.index()].vnics[vnic.index()].server)
    };
    let frames = cast.begins.iter().map(|begin| {
        let bps = nic_bps(begin.pair, begin.pair.source).min(nic_bps(begin.pair, begin.pair.destination));
        let ms = end_ms.saturating_sub(begin.at_ms);
        u128::from(bps) * u128::from(ms) / u128::from(FRAME_BITS * 1_000)
    });
    let frames: u128 = frames.sum();
    if frames > u128::from(FRAMES_MAX) {
        return Err(format!(
            "some {frames} frames are more than the {FRAMES_MAX} of a rehearsal with packets: give a shorter time with --seconds, lower rates, or leave \
             --packets out"
        ));
    }
    Ok(())
}

struct Running<'a> {
    cast: Cast<'a>,
    emulated: Emulated,
    stage: Stage,
    /// The rules that controllers add, in the order of their times.
    rules: Vec<&'a RuleSpec>,
    learning: &'a [String],
}

impl Running<'_> {
    fn run(mut self, phases_ms: Vec<(u64, u64)>) -> Result<Rehearsed, String> {
        let mut got_bps = vec![Vec::new(); self.cast.begins.len()];
        self.stage.run_until(Duration::from_millis(WARM_UP_MS))?;
        let notices = self.stage.node().notices();
        for (from_ms, to_ms) in &phases_ms {
            self.run_to(*from_ms)?;
            let begins: Vec<Begin> =
                self.cast.begins.iter().filter(|it| it.at_ms == *from_ms).cloned().collect();
            begins.iter().try_for_each(|begin| self.begin(begin))?;
            self.phase(*from_ms, *to_ms, &mut got_bps)?;
        }
        Ok(self.seen(phases_ms, got_bps, notices))
    }

    /// Time passes, in milliseconds since the warm-up. Rules are sent at their times.
    fn run_to(&mut self, to_ms: u64) -> Result<(), String> {
        while let Some(rule) = self.rules.first().copied().filter(|rule| rule.at_ms <= to_ms) {
            self.rules.remove(0);
            self.stage.run_until(Duration::from_millis(WARM_UP_MS + rule.at_ms))?;
            self.stage.say(&rule.slice, rule.switch, rule.flow_mod.clone())?;
        }
        self.stage.run_until(Duration::from_millis(WARM_UP_MS + to_ms))
    }

    fn host(&self, pair: Pair, vnic: rehearsal::VnicNo) -> &VnicHost {
        &self.emulated.vnics[pair.slice.index()][vnic.index()]
    }

    fn begin(&mut self, begin: &Begin) -> Result<(), String> {
        let Pair { slice, source, destination } = begin.pair;
        let (from, to) = (self.host(begin.pair, source), self.host(begin.pair, destination));
        let spec = FlowSpec::tcp(from.name.clone(), to.name.clone());
        let ids = (vnic_id(slice.index(), source.index()), vnic_id(slice.index(), destination.index()));
        self.stage.begin(&spec, ids)
    }

    /// One phase. What arrives is the mean of its second half: until then, rates and paths settle.
    fn phase(&mut self, from_ms: u64, to_ms: u64, got_bps: &mut [Vec<Option<u64>>]) -> Result<(), String> {
        let half_ms = from_ms + (to_ms - from_ms) / 2;
        self.run_to(half_ms)?;
        let before = self.received();
        self.run_to(to_ms)?;
        let after = self.received();
        let window_ms = (to_ms - half_ms).max(1);
        for (at, all) in got_bps.iter_mut().enumerate() {
            let has_begun = self.cast.begins[at].at_ms <= from_ms;
            all.push(has_begun.then(|| (after[at] - before[at]) * 8_000 / window_ms));
        }
        Ok(())
    }

    /// The bytes of frames of each flow that have arrived.
    fn received(&self) -> Vec<u64> {
        let of = |begin: &Begin| {
            let (from, to) =
                (self.host(begin.pair, begin.pair.source), self.host(begin.pair, begin.pair.destination));
            self.stage.received_bytes(to.host, from.mac)
        };
        self.cast.begins.iter().map(of).collect()
    }

    fn seen(mut self, phases_ms: Vec<(u64, u64)>, got_bps: Vec<Vec<Option<u64>>>, before: u64) -> Rehearsed {
        let packets = self.packets();
        let node = self.stage.node();
        let flows = self.cast.begins.iter().zip(got_bps).map(|(begin, got_bps)| {
            let slice = &self.cast.slices[begin.pair.slice.index()];
            let known = node.flows(&slice.name);
            let mut of_pair = known.iter().filter(|it| format!("{}-{}", it.from, it.to) == begin.ends);
            let known = of_pair.next();
            Flow {
                slice: slice.name.clone(),
                ends: begin.ends.clone(),
                at_ms: begin.at_ms,
                nominal_bps: known.filter(|it| it.counts).map(|it| it.rate_bps),
                got_bps,
                path: known.map_or_else(Vec::new, |it| self.path(begin.pair, &it.links)),
            }
        });
        let ids: BTreeMap<LinkNo, LinkId> =
            self.cast.network.links.iter().map(|(id, link)| (*link, *id)).collect();
        let told = |slice: SliceNo, link: LinkNo| {
            let name = &self.cast.slices[slice.index()].name;
            let label = ids.get(&link).and_then(|id| node.label(name, *id));
            label.map_or(0, |label| label.label_kbps * 1_000)
        };
        Rehearsed {
            phases_ms,
            flows: flows.collect(),
            slices: self.cast.slices.iter().map(|slice| slice.name.clone()).collect(),
            links: self.cast.labelled(told),
            moves: node.moves(),
            notices: node.notices() - before,
            packets: Some(packets),
        }
    }

    /// The names of the links of a path, from server to server.
    fn path(&self, pair: Pair, links: &[LinkId]) -> Vec<String> {
        let fabric = &self.cast.network.fabric;
        let [first, _] = fabric.nic_links(self.host(pair, pair.source).server);
        let [_, last] = fabric.nic_links(self.host(pair, pair.destination).server);
        let between = links.iter().filter_map(|id| self.cast.network.links.get(id)).copied();
        let all = std::iter::once(first).chain(between).chain([last]);
        all.map(|link| fabric.name(link)).collect()
    }

    fn packets(&mut self) -> Packets {
        let (storms, lost) = {
            let simulation = self.stage.simulation();
            (simulation.storms(), simulation.network().frames_lost())
        };
        let (crossed, digest, refusals) = (self.stage.crossed(), self.stage.digest(), self.stage.refusals());
        let node = self.stage.node();
        let switches: Vec<_> = self.emulated.topology.switches.iter().map(|it| it.datapath_id).collect();
        let (mut rules, mut tenants, mut log) = (Vec::new(), Vec::new(), node.log().to_vec());
        for slice in &self.cast.slices {
            for switch in &switches {
                let Some(at) = node.rules(&slice.name, *switch) else { continue };
                let (rules_there, entries) = (at.tenant, at.entries);
                let (slice, switch) = (slice.name.clone(), switch_name(*switch));
                rules.push(RulesAt { slice, switch, rules: rules_there, entries });
            }
            let error = |(it, count): (virtual_node::TenantError, u64)| {
                let switch = switch_name(it.datapath);
                (HeardError { switch, message: it.message, error: it.error, why: it.why }, count)
            };
            let refused = node.refused(&slice.name).into_iter();
            log.extend(refused.map(|(why, count)| {
                format!("slice {}: the kernel refused {count} commands: {why}", slice.name)
            }));
            let version = version(slice, self.learning.contains(&slice.name)).to_string();
            tenants.push(Heard {
                slice: slice.name.clone(),
                openflow: version.trim_start_matches("OpenFlow ").to_owned(),
                packet_ins: node.packet_ins(&slice.name),
                errors: node.errors(&slice.name).into_iter().map(error).collect(),
            });
        }
        if refusals > 0 {
            log.push(format!("agents and the service of labels refused {refusals} datagrams of each other"));
        }
        let storms = storms + node.storms();
        Packets { rules, tenants, crossed, storms, lost, log, digest }
    }
}
