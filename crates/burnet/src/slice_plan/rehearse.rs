//! A rehearsal: the slices of a file in virtual time, with flows that begin, before any of it runs.
//!
//! ```text
//!   network description ──> fabric ──────────┐
//!   judged slices ──> tenants with VNICs ────┼──> rehearsal::Rig ──> rates of each phase, paths, labels
//!   flows, and when each begins ─────────────┘
//! ```
//!
//! In: a network, slices that fit, and flows. Out: what each flow gets, and what each tenant is told. A phase lasts from the start of one flow to the
//! start of the next. It opens no file, and has no clock: the same input gives the same result.

use super::judge::{Got, Judged};
use super::packets::Packets;
pub use super::packets::SECONDS_MAX;
use super::substrate::Description;
use burnet_sdk::view::{LinkId, LinkState};
use config::slices::{Slice, switch_name};
use flow::DatapathId;
use rehearsal::{
    Choose, Demand, Fabric, Link, LinkNo, Pair, Plan, Rig, STAY_MS, ServerNo, SliceNo, Telling, Vnic, VnicNo,
};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// How long a notice takes to a tenant's controller, in µs: a connection within a building, and a controller that is not busy.
const NOTICE_US: u64 = 500;
/// The time between two flows, if the operator gave no start.
const APART_MS: u64 = 1_000;
/// The most flows. Virtual time with more takes longer than somebody waits for it.
pub const FLOWS_MAX: usize = 256;
const MS_NS: u64 = 1_000_000;

/// A flow of a rehearsal, as an operator writes it: `red:A-B@1.5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The name of the slice.
    pub slice: String,
    /// The names of both VNICs, joined by `-`.
    pub ends: String,
    /// When it begins. `None`: a second after the flow before it.
    pub at_ms: Option<u64>,
}

impl FromStr for FlowSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<FlowSpec, String> {
        let wrong =
            |why: &str| format!("{why}: write SLICE:FROM-TO or SLICE:FROM-TO@SECONDS, such as red:A-B@1.5");
        let (slice, rest) = text.split_once(':').ok_or_else(|| wrong("no `:` after the slice"))?;
        let (ends, at) = rest.split_once('@').map_or((rest, None), |(ends, at)| (ends, Some(at)));
        if slice.is_empty() || !ends.contains('-') {
            return Err(wrong("no two VNICs with `-` between them"));
        }
        let at_ms = at.map(|at| match at.parse::<f64>() {
            Ok(seconds) if (0.0..=SECONDS_MAX as f64).contains(&seconds) => {
                Ok((seconds * 1e3).round() as u64)
            }
            _ => Err(wrong(&format!("`{at}` is no number of seconds from 0 to {SECONDS_MAX}"))),
        });
        Ok(FlowSpec { slice: slice.to_owned(), ends: ends.to_owned(), at_ms: at_ms.transpose()? })
    }
}

/// How it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How the tenants' controllers choose paths.
    pub choose: Choose,
    /// How long it goes on after the last flow began.
    pub rest_ms: u64,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsed {
    /// When each phase began and ended.
    pub phases_ms: Vec<(u64, u64)>,
    /// The flows, in the order of their start.
    pub flows: Vec<Flow>,
    /// The slices.
    pub slices: Vec<String>,
    /// The links between switches that some slice has.
    pub links: Vec<Labelled>,
    /// How often flows moved to another path.
    pub moves: usize,
    /// How many notices the tenants got.
    pub notices: u64,
    /// What only packets show. `None`: a model carried the traffic.
    pub packets: Option<Packets>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its slice.
    pub slice: String,
    /// Both VNICs.
    pub ends: String,
    /// When its first packet came.
    pub at_ms: u64,
    /// Its share of both VNICs at the end. `None`: it does not count, because it has no path.
    pub nominal_bps: Option<u64>,
    /// What arrives in the second half of each phase. `None`: it had not begun.
    pub got_bps: Vec<Option<u64>>,
    /// The names of its links at the end. Empty: its slice has no path for it.
    pub path: Vec<String>,
}

/// A link and what each slice is told about it at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// Its name.
    pub name: String,
    /// Its capacity.
    pub capacity_bps: u64,
    /// By slice: what the others leave. `None`: the slice does not have the link.
    pub labels_bps: Vec<Option<u64>>,
}

impl Flow {
    /// Whether it gets at least 95 % of its nominal rate at the end. Rates of agents swing by some percent.
    pub fn is_content(&self) -> bool {
        let got_bps = self.got_bps.last().copied().flatten().unwrap_or_default();
        self.nominal_bps.is_some_and(|nominal_bps| got_bps as f64 >= 0.95 * nominal_bps as f64)
    }
}

/// The fabric, and where in it things are.
#[derive(Clone, Debug)]
pub struct Network {
    /// Switches, links and servers by number.
    pub fabric: Fabric,
    /// The number of each directed link between switches.
    pub links: BTreeMap<LinkId, LinkNo>,
    /// The server of each NIC, by name.
    pub servers: BTreeMap<String, ServerNo>,
}

/// A flow whose slice and VNICs are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Its ends by number.
    pub pair: Pair,
    /// Its ends by name.
    pub ends: String,
    /// When it begins.
    pub at_ms: u64,
}

/// All that is rehearsed: the network, its tenants, and their flows in the order of their start.
#[derive(Clone, Debug)]
pub struct Cast<'a> {
    /// The network.
    pub network: Network,
    /// The tenants, in the order of the file.
    pub plans: Vec<Plan>,
    /// Their slices.
    pub slices: Vec<&'a Slice>,
    /// What each slice gets.
    pub got: Vec<&'a Got>,
    /// The flows.
    pub begins: Vec<Begin>,
}

/// Runs it, with a model for the traffic.
///
/// # Errors
/// As [`cast`].
pub fn rehearse(
    description: &Description,
    judged: &[Judged],
    specs: &[FlowSpec],
    options: Options,
) -> Result<Rehearsed, String> {
    let cast = cast(description, judged, specs, options.choose)?;
    let rig = Rig::new(&cast.network.fabric, Telling::Damped, cast.plans.clone())?;
    Running { cast, rig }.run(options)
}

/// Who and what is rehearsed.
///
/// # Errors
/// A slice that does not fit, a link without a known capacity, a name that is not there, or more than can be rehearsed.
pub fn cast<'a>(
    description: &Description,
    judged: &'a [Judged],
    specs: &[FlowSpec],
    choose: Choose,
) -> Result<Cast<'a>, String> {
    let got = all_fit(judged)?;
    let network = network(description)?;
    let plans = judged.iter().zip(&got).map(|(judged, got)| plan(&network, judged, got, choose));
    let plans = plans.collect::<Result<Vec<Plan>, String>>()?;
    let slices: Vec<&Slice> = judged.iter().map(|judged| &judged.slice).collect();
    let begins = if specs.is_empty() { usual(&slices) } else { specified(&slices, specs)? };
    if begins.is_empty() {
        return Err("no slice has two VNICs, so there is no flow to rehearse".to_owned());
    }
    if begins.len() > FLOWS_MAX {
        return Err(format!("{} flows are more than {FLOWS_MAX}: choose some with --flow", begins.len()));
    }
    Ok(Cast { network, plans, slices, got, begins })
}

impl Cast<'_> {
    /// When each phase begins and ends: from the start of one flow to the start of the next, and `rest_ms` after the last.
    pub fn phases_ms(&self, rest_ms: u64) -> Vec<(u64, u64)> {
        let times: BTreeSet<u64> = self.begins.iter().map(|begin| begin.at_ms).collect();
        let end_ms = times.last().copied().unwrap_or_default() + rest_ms;
        let ends = times.iter().copied().skip(1).chain([end_ms]);
        times.iter().copied().zip(ends).collect()
    }

    /// The links between switches that some slice has. `told`: what a slice is told about a link that it has.
    pub fn labelled(&self, told: impl Fn(SliceNo, LinkNo) -> u64) -> Vec<Labelled> {
        let has = |plan: &Plan, link: LinkNo| plan.links.as_ref().is_none_or(|links| links.contains(&link));
        let fabric = &self.network.fabric;
        let labelled = |(number, link): (LinkNo, &Link)| {
            let plans = (0..).map(SliceNo).zip(&self.plans);
            let label = |(slice, plan): (SliceNo, &Plan)| has(plan, number).then(|| told(slice, number));
            let labels_bps: Vec<Option<u64>> = plans.map(label).collect();
            let is_used = labels_bps.iter().any(Option::is_some);
            let (name, capacity_bps) = (fabric.name(number), link.capacity_bps);
            is_used.then_some(Labelled { name, capacity_bps, labels_bps })
        };
        fabric.links().take(self.network.links.len()).filter_map(labelled).collect()
    }
}

fn all_fit(judged: &[Judged]) -> Result<Vec<&Got>, String> {
    let fits = |judged: &'_ Judged| -> Result<(), String> {
        judged.result.as_ref().map(|_| ()).map_err(|refused| {
            format!(
                "{}; `burnet slice fit` shows what would fit, and slices that do not fit cannot be rehearsed",
                refused.why
            )
        })
    };
    judged.iter().try_for_each(fits)?;
    Ok(judged.iter().filter_map(|judged| judged.result.as_ref().ok()).collect())
}

fn network(description: &Description) -> Result<Network, String> {
    let up: Vec<_> = description.links.iter().filter(|link| link.state == LinkState::Up).collect();
    let ends = up.iter().flat_map(|link| [link.id.from.switch, link.id.to.switch]);
    let at_nics = description.nics.iter().flat_map(|nic| nic.ports.iter().map(|port| port.switch));
    let switches: BTreeSet<DatapathId> = ends.chain(at_nics).collect();
    let numbers: BTreeMap<DatapathId, usize> = switches.iter().copied().zip(0..).collect();
    let links = up.iter().map(|link| Link {
        from: numbers[&link.id.from.switch],
        to: numbers[&link.id.to.switch],
        capacity_bps: link.capacity_kbps.saturating_mul(1_000),
    });
    // A NIC of unknown rate or without ports is left out. No slice that fits has a VNIC there.
    let servers: Vec<(String, usize, u64)> = description
        .nics
        .iter()
        .filter_map(|nic| {
            let rate = nic.rate.filter(|rate| rate.bps() > 0)?;
            Some((nic.name.clone(), numbers[&nic.ports.first()?.switch], rate.bps()))
        })
        .collect();
    let names = switches.iter().map(|switch| switch_name(*switch)).collect();
    let fabric = Fabric::described(names, &links.collect::<Vec<_>>(), &servers).map_err(|why| {
        format!("{why}, so it cannot be rehearsed: give its rate in the network description")
    })?;
    Ok(Network {
        fabric,
        links: up.iter().map(|link| link.id).zip((0..).map(LinkNo)).collect(),
        servers: servers.into_iter().map(|(name, _, _)| name).zip((0..).map(ServerNo)).collect(),
    })
}

/// The tenant of a slice.
fn plan(network: &Network, judged: &Judged, got: &Got, choose: Choose) -> Result<Plan, String> {
    let vnics = got.vnics.iter().map(|vnic| {
        let server = network.servers.get(&vnic.nic).copied();
        let server = server.ok_or_else(|| format!("the NIC {} of {} is not known", vnic.nic, vnic.name))?;
        Ok(Vnic { server, rate_bps: vnic.rate.bps() })
    });
    let both_ways = got.links.iter().flat_map(|link| [link.id, link.id.reversed()]);
    let between = both_ways.filter_map(|id| network.links.get(&id).copied());
    // The links of servers come after those between switches, and are for all.
    let of_servers =
        (network.links.len()..network.fabric.links().count()).map(|number| LinkNo(number as u32));
    Ok(Plan {
        vnics: vnics.collect::<Result<_, String>>()?,
        choose,
        stay_ms: STAY_MS,
        notice_us: NOTICE_US,
        is_metered: true,
        step: judged.slice.step,
        links: Some(between.chain(of_servers).collect()),
    })
}

/// The first VNIC of a slice sends to the second, the third to the fourth; the last of an odd number sends to the first. A second apart.
fn usual(slices: &[&Slice]) -> Vec<Begin> {
    let mut begins = Vec::new();
    for (number, slice) in (0..).map(SliceNo).zip(slices) {
        for source in (0..slice.vnics.len()).step_by(2) {
            let destination = if source + 1 < slice.vnics.len() { source + 1 } else { 0 };
            if destination != source {
                let at_ms = begins.len() as u64 * APART_MS;
                begins.push(begin(slice, number, (source, destination), at_ms));
            }
        }
    }
    begins
}

fn begin(slice: &Slice, number: SliceNo, (source, destination): (usize, usize), at_ms: u64) -> Begin {
    let vnic = |index: usize| VnicNo(index as u32);
    let pair = Pair { slice: number, source: vnic(source), destination: vnic(destination) };
    Begin { pair, ends: format!("{}-{}", slice.vnics[source].name, slice.vnics[destination].name), at_ms }
}

fn specified(slices: &[&Slice], specs: &[FlowSpec]) -> Result<Vec<Begin>, String> {
    let mut begins: Vec<Begin> = Vec::new();
    for spec in specs {
        let found = slices.iter().position(|slice| slice.name == spec.slice);
        let number = found.ok_or_else(|| {
            let names: Vec<&str> = slices.iter().map(|slice| slice.name.as_str()).collect();
            format!("there is no slice {}; there are {}", spec.slice, names.join(", "))
        })?;
        let slice = slices[number];
        let ends = ends(slice, &spec.ends)?;
        let next_ms = begins.last().map_or(0, |last| last.at_ms + APART_MS);
        let begin = begin(slice, SliceNo(number as u32), ends, spec.at_ms.unwrap_or(next_ms));
        if begins.iter().any(|other| other.pair == begin.pair) {
            return Err(format!("{}:{} is given twice: a flow is a pair of VNICs", spec.slice, spec.ends));
        }
        begins.push(begin);
    }
    begins.sort_by_key(|begin| begin.at_ms);
    Ok(begins)
}

/// The VNICs of `A-B`. A name may itself have a `-`.
fn ends(slice: &Slice, text: &str) -> Result<(usize, usize), String> {
    let place = |name: &str| slice.vnics.iter().position(|vnic| vnic.name == name);
    let split =
        text.match_indices('-').find_map(|(at, _)| Some((place(&text[..at])?, place(&text[at + 1..])?)));
    match split {
        Some((source, destination)) if source != destination => Ok((source, destination)),
        Some(_) => Err(format!("{}:{text} sends to itself", slice.name)),
        None => {
            let names: Vec<&str> = slice.vnics.iter().map(|vnic| vnic.name.as_str()).collect();
            Err(format!("slice {} has no two VNICs {text}; it has {}", slice.name, names.join(", ")))
        }
    }
}

/// A rehearsal that runs.
struct Running<'a> {
    cast: Cast<'a>,
    rig: Rig,
}

impl Running<'_> {
    fn run(mut self, options: Options) -> Result<Rehearsed, String> {
        let phases_ms = self.cast.phases_ms(options.rest_ms);
        self.rig.run(phases_ms.first().map_or(0, |(from_ms, _)| from_ms * MS_NS))?;
        let mut got_bps = vec![Vec::new(); self.cast.begins.len()];
        for (from_ms, to_ms) in &phases_ms {
            for begin in self.cast.begins.iter().filter(|it| it.at_ms == *from_ms) {
                self.rig.begin(begin.pair, Demand::All, rehearsal::number_of(&begin.ends));
            }
            self.phase(*from_ms, *to_ms, &mut got_bps)?;
        }
        Ok(self.seen(phases_ms, got_bps))
    }

    /// One phase. What arrives is the mean of its second half: until then, rates and paths settle.
    fn phase(&mut self, from_ms: u64, to_ms: u64, got_bps: &mut [Vec<Option<u64>>]) -> Result<(), String> {
        let half_ms = (to_ms - from_ms) / 2;
        self.rig.run(half_ms * MS_NS)?;
        let begins = &self.cast.begins;
        let mut sums = vec![0.0; begins.len()];
        let windows = (to_ms - from_ms - half_ms).max(1);
        for _ in 0..windows {
            self.rig.run(MS_NS)?;
            for (sum, begin) in sums.iter_mut().zip(begins) {
                *sum += self.rig.rate_bps(begin.pair);
            }
        }
        for ((all, sum), begin) in got_bps.iter_mut().zip(sums).zip(begins) {
            all.push((begin.at_ms <= from_ms).then_some((sum / windows as f64) as u64));
        }
        Ok(())
    }

    fn seen(self, phases_ms: Vec<(u64, u64)>, got_bps: Vec<Vec<Option<u64>>>) -> Rehearsed {
        let (cloud, cast) = (self.rig.cloud(), &self.cast);
        let counting: BTreeMap<Pair, u64> =
            cloud.service().counting().into_iter().map(|(pair, rate_bps, _)| (pair, rate_bps)).collect();
        let fabric = &cast.network.fabric;
        let flow = |(begin, got_bps): (&Begin, Vec<Option<u64>>)| Flow {
            slice: cast.slices[begin.pair.slice.index()].name.clone(),
            ends: begin.ends.clone(),
            at_ms: begin.at_ms,
            nominal_bps: counting.get(&begin.pair).copied(),
            got_bps,
            path: cloud.path(begin.pair).unwrap_or_default().iter().map(|link| fabric.name(*link)).collect(),
        };
        let told = |slice: SliceNo, link| cloud.tenants()[slice.index()].told_bps(link);
        Rehearsed {
            phases_ms,
            flows: cast.begins.iter().zip(got_bps).map(flow).collect(),
            slices: cast.slices.iter().map(|slice| slice.name.clone()).collect(),
            links: cast.labelled(told),
            moves: cloud.moves().len(),
            notices: cloud.notices(),
            packets: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice_plan::described;
    use crate::slice_plan::judge::judge;
    use crate::slice_plan::substrate::Substrate;
    use config::ConfigFile;
    use std::path::Path;

    /// The example files: figure 1a of the paper at a thousandth of its rates, and its two tenants.
    fn of_example(file: &str) -> (Description, Vec<Judged>) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slices");
        let text = std::fs::read_to_string(folder.join("fig1a.toml")).expect("the network");
        let description = described::read(&text).expect("a description");
        let slices = ConfigFile::read(&folder.join(file)).expect("the slices").slices;
        let mut substrate = Substrate::new(description.clone()).expect("a network");
        let judged = judge(&mut substrate, &slices, false).expect("known names");
        (description, judged)
    }

    fn specs(texts: &[&str]) -> Vec<FlowSpec> {
        texts.iter().map(|text| text.parse().expect("a flow")).collect()
    }

    fn run(texts: &[&str], choose: Choose) -> Result<Rehearsed, String> {
        let (description, judged) = of_example("slices.toml");
        rehearse(&description, &judged, &specs(texts), Options { choose, rest_ms: 2_000 })
    }

    /// In Mb/s, rounded.
    fn got(rehearsed: &Rehearsed) -> Vec<Vec<u64>> {
        let flow =
            |flow: &Flow| flow.got_bps.iter().flatten().map(|bps| (bps + 500_000) / 1_000_000).collect();
        rehearsed.flows.iter().map(flow).collect()
    }

    #[test]
    fn with_labels_the_tenants_of_the_paper_get_what_figure_2_says() {
        let seen = run(&["red:A-B", "blue:E-F", "blue:C-D"], Choose::Label).expect("a rehearsal");
        assert_eq!(got(&seen), [vec![10, 10, 8], vec![10, 10], vec![2]]);
        assert!(seen.flows.iter().all(Flow::is_content), "{:?}", seen.flows);
        let middle: Vec<&[String]> = seen.flows.iter().map(|flow| &flow.path[2..4]).collect();
        assert_eq!(middle[0], middle[2], "C to D goes where A to B leaves 2 Mb/s");
        assert_ne!(middle[0], middle[1]);
        let label =
            |name: &str| seen.links.iter().find(|link| link.name == name).map(|link| link.labels_bps.clone());
        let of_red = label(&seen.flows[0].path[2]);
        assert_eq!(of_red, Some(vec![Some(8_000_000), Some(2_000_000)]));
    }

    #[test]
    fn flows_without_labels_can_collide_and_get_less() {
        let seen = run(&["red:A-B@0", "blue:E-F@0", "blue:C-D@0"], Choose::Number).expect("a rehearsal");
        assert_eq!(seen.flows[0].path[2], seen.flows[1].path[2], "their hashes choose the same way");
        assert_eq!(got(&seen), [[4], [5], [1]], "10 Mb/s in proportion to 8, 10 and 2");
        assert!(!seen.flows.iter().any(Flow::is_content));
        assert_eq!(seen.phases_ms, [(0, 2_000)]);
    }

    #[test]
    fn without_wishes_the_vnics_of_each_slice_send_in_pairs() {
        let seen = run(&[], Choose::Label).expect("a rehearsal");
        let names: Vec<String> =
            seen.flows.iter().map(|flow| format!("{}:{}", flow.slice, flow.ends)).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[0], "red:A-B");
        assert_eq!(seen.phases_ms, [(0, 1_000), (1_000, 2_000), (2_000, 4_000)]);
        assert_eq!(
            seen,
            run(&[], Choose::Label).expect("a rehearsal"),
            "the same input gives the same result"
        );
    }

    #[test]
    fn what_cannot_be_rehearsed_is_named() {
        let check = |texts: &[&str], expected: &str| match run(texts, Choose::Label) {
            Err(why) => assert_eq!(why, expected),
            Ok(seen) => panic!("{texts:?} ran: {seen:?}"),
        };
        check(&["green:A-B"], "there is no slice green; there are red, blue");
        check(&["red:A-X"], "slice red has no two VNICs A-X; it has A, B");
        check(&["red:A-A"], "red:A-A sends to itself");
        check(&["red:A-B", "red:A-B@3"], "red:A-B is given twice: a flow is a pair of VNICs");
        let (description, judged) = of_example("too-much.toml");
        let options = Options { choose: Choose::Label, rest_ms: 1_000 };
        let why = rehearse(&description, &judged, &[], options).expect_err("it does not fit");
        assert!(why.contains("cannot be rehearsed"), "{why}");
    }

    #[test]
    fn a_flow_is_written_as_slice_ends_and_time() {
        let check = |text: &str, expected: Result<(&str, &str, Option<u64>), &str>| {
            let read = text.parse::<FlowSpec>();
            let read = read.as_ref().map(|spec| (spec.slice.as_str(), spec.ends.as_str(), spec.at_ms));
            match expected {
                Ok(spec) => assert_eq!(read, Ok(spec)),
                Err(why) => assert!(read.as_ref().is_err_and(|said| said.starts_with(why)), "{read:?}"),
            }
        };
        check("red:A-B", Ok(("red", "A-B", None)));
        check("red:A-B@1.5", Ok(("red", "A-B", Some(1_500))));
        check("red", Err("no `:` after the slice"));
        check("red:AB", Err("no two VNICs"));
        check("red:A-B@soon", Err("`soon` is no number of seconds from 0 to 600"));
        check("red:A-B@601", Err("`601` is no number of seconds from 0 to 600"));
    }
}
