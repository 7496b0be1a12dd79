//! Checks a scenario's file: times, names of the network, and exactly one kind for each event and expectation.
//!
//! In: the file's text and the topology it names. Out: a [`Scenario`], or the line and what was expected there.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use flow::PortNo;
use toml::Spanned;

use super::expectation::{Expectation, Wanted};
use super::file::{self, File, OneSwitch};
use super::names::{Names, unknown};
use super::quantities::{percent, quality, rate, time};
use super::queries;
use super::{
    Action, EXPECTATIONS_MAX, LONGEST, NamedFlow, NamedQueries, NotAScenario, STEPS_MAX, Scenario, Step,
};
use crate::host::flow::{FlowRate, FlowSpec};
use crate::network::{Change, SEED_DEFAULT, SERIES_MAX};
use crate::profiles::{self, ProfileWish};
use crate::run::Clock;
use crate::topology::{CustomTopology, FromFile, Topology};
use software_switch::{Profiles, Versions};

/// The largest file that is read.
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The default time after which a ping counts as lost.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// The default interval between the pings of a series, as in the program ping.
const PING_EVERY: Duration = Duration::from_secs(1);
/// The default of `within`.
const WITHIN: Duration = Duration::from_secs(1);

/// An error: the line, if known, and the message.
type Bad = (Option<u32>, String);

impl Scenario {
    /// Reads a scenario and its topology. A topology's file is relative to the scenario's folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is larger than four megabytes, or is not a scenario: the line and what was expected.
    pub fn read(path: &Path) -> Result<Scenario, NotAScenario> {
        let refused = |(line, why): Bad| NotAScenario { file: path.to_owned(), line, why };
        let unreadable = |error: std::io::Error| refused((None, format!("it cannot be read: {error}")));
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        // The length of a pipe or a device is not known before it is read.
        let read = file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text);
        let is_too_long = |read: usize| u64::try_from(read).is_ok_and(|read| read > FILE_MAX_BYTES);
        if is_too_long(read.map_err(unreadable)?) {
            return Err(refused((None, format!("it has more than {FILE_MAX_BYTES} bytes, the limit"))));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        Scenario::parse(&text, folder, |file| topology(file, folder)).map_err(refused)
    }

    /// Parses a scenario. `find` returns its topology. The files of profiles are relative to the folder.
    pub(super) fn parse(
        text: &str,
        folder: &Path,
        find: impl FnOnce(&File) -> Result<FromFile, String>,
    ) -> Result<Scenario, Bad> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_of(text, span.start));
            (line, error.message().trim_end().replace('\n', "; "))
        })?;
        let at = file.topology.as_ref().map(|topology| line_of(text, topology.span().start));
        let FromFile { topology, notes } = find(&file).map_err(|why| (at, why))?;
        Planner {
            text,
            topology,
            series: Vec::new(),
            flows: Vec::new(),
            queries: Vec::new(),
            steps: Vec::new(),
            pings: 0,
        }
        .plan(file, notes, folder)
    }
}

fn topology(file: &File, folder: &Path) -> Result<FromFile, String> {
    let name =
        file.topology.as_ref().map(Spanned::as_ref).ok_or("expected topology = \"tree,2\" or another")?;
    if let Some(custom) = &file.custom {
        let custom = CustomTopology { file: folder.join(custom.as_ref()), name: name.clone() };
        let topology = custom.read().map_err(|error| error.to_string())?;
        return Ok(FromFile { topology, notes: Vec::new() });
    }
    if Topology::is_file(name) {
        let beside = match name.split_once(':') {
            Some((kind, path)) => format!("{kind}:{}", folder.join(path).display()),
            None => folder.join(name).display().to_string(),
        };
        return Topology::from_file(&beside, file.propagation).map_err(|error| error.to_string());
    }
    let topology = name.parse().map_err(|error: crate::topology::NotATopology| error.to_string())?;
    Ok(FromFile { topology, notes: Vec::new() })
}

fn line_of(text: &str, at: usize) -> u32 {
    let before = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
}

struct Planner<'a> {
    text: &'a str,
    topology: Topology,
    series: Vec<String>,
    flows: Vec<NamedFlow>,
    queries: Vec<NamedQueries>,
    steps: Vec<Step>,
    /// The number of pings among all hosts, which are one step.
    pings: usize,
}

impl Planner<'_> {
    fn names(&self) -> Names<'_> {
        Names(&self.topology)
    }

    fn line<T>(&self, spanned: &Spanned<T>) -> u32 {
        line_of(self.text, spanned.span().start)
    }

    fn plan(mut self, file: File, notes: Vec<String>, folder: &Path) -> Result<Scenario, Bad> {
        let versions = self.versions(&file)?;
        let profiles = self.profiles(&file, folder)?;
        let clock = self.clock(&file)?;
        let seed = self.seed(&file, clock)?;
        self.qualities(&file)?;
        self.events(&file)?;
        let expectations = self.expectations(&file, clock)?;
        Ok(Scenario {
            topology: self.topology,
            notes,
            versions,
            profiles,
            clock,
            seed,
            spanning_tree: file.spanning_tree,
            steps: self.steps,
            series: self.series,
            flows: self.flows,
            queries: self.queries,
            expectations,
        })
    }

    fn versions(&self, file: &File) -> Result<Option<Versions>, Bad> {
        let Some(version) = &file.version else { return Ok(None) };
        match version.as_ref().as_str() {
            "1.0" => Ok(Some(Versions::Only10)),
            "1.3" => Ok(Some(Versions::Only13)),
            "both" => Ok(Some(Versions::Both)),
            other => {
                let why = format!("expected version \"1.0\", \"1.3\" or \"both\", found \"{other}\"");
                Err((Some(self.line(version)), why))
            }
        }
    }

    /// `profile` is for all switches, `[[switch]]` for one.
    fn profiles(&self, file: &File, folder: &Path) -> Result<Profiles, Bad> {
        let of_all = file.profile.iter().map(|profile| {
            (self.line(profile), ProfileWish { switch: None, profile: profile.as_ref().clone() })
        });
        let of_one = file.switches.iter().map(|one| {
            let OneSwitch { name, profile } = one.as_ref();
            (self.line(one), ProfileWish { switch: Some(name.clone()), profile: profile.clone() })
        });
        let (lines, wishes): (Vec<u32>, Vec<ProfileWish>) = of_all.chain(of_one).unzip();
        let mut profiles = Profiles::default();
        match profiles::assign(&wishes, &self.topology, folder, &mut profiles) {
            Ok(()) => Ok(profiles),
            Err((index, why)) => Err((lines.get(index).copied(), why)),
        }
    }

    fn clock(&self, file: &File) -> Result<Clock, Bad> {
        match file.time.as_ref().map(|time| (time, time.as_ref().as_str())) {
            None | Some((_, "real")) => Ok(Clock::Real),
            Some((_, "virtual")) => Ok(Clock::Virtual),
            Some((time, other)) => {
                let why = format!("expected time = \"real\" or \"virtual\", found \"{other}\"");
                Err((Some(self.line(time)), why))
            }
        }
    }

    fn seed(&self, file: &File, clock: Clock) -> Result<u64, Bad> {
        match &file.seed {
            Some(seed) if clock == Clock::Real => {
                let why = "a seed is for time = \"virtual\": in real time the machine decides too".to_owned();
                Err((Some(self.line(seed)), why))
            }
            seed => Ok(seed.as_ref().map_or(SEED_DEFAULT, |seed| *seed.as_ref())),
        }
    }

    /// All events as steps in the order of their times.
    fn events(&mut self, file: &File) -> Result<(), Bad> {
        for event in &file.events {
            let line = self.line(event);
            self.event(event.as_ref(), line).map_err(|why| (Some(line), why))?;
            if self.steps.len().saturating_add(self.pings) > STEPS_MAX {
                let why = format!("there are more than {STEPS_MAX} events, counting each ping");
                return Err((Some(line), why));
            }
        }
        // For equal times, the order in the file decides.
        self.steps.sort_by_key(|step| step.at);
        Ok(())
    }

    fn expectations(&self, file: &File, clock: Clock) -> Result<Vec<Expectation>, Bad> {
        if file.expectations.len() > EXPECTATIONS_MAX {
            let count = file.expectations.len();
            return Err((None, format!("it has {count} expectations, and the limit is {EXPECTATIONS_MAX}")));
        }
        let expectation = |wish| {
            let line = self.line(wish);
            let expectation = self.expectation(wish.as_ref(), line).map_err(|why| (Some(line), why))?;
            if clock == Clock::Virtual && matches!(expectation.wanted, Wanted::Connected(_)) {
                return Err((Some(line), "in virtual time there is no controller to be connected to".into()));
            }
            Ok(expectation)
        };
        file.expectations.iter().map(expectation).collect()
    }

    /// The qualities of links at the start. `links` applies to all links, `[[link]]` to one.
    fn qualities(&mut self, file: &File) -> Result<(), Bad> {
        if let Some(links) = &file.links {
            let all = quality(links.as_ref()).map_err(|why| (Some(self.line(links)), why))?;
            self.topology.links.iter_mut().for_each(|link| link.quality = all);
        }
        for one in &file.qualities {
            let bad = |why: String| (Some(line_of(self.text, one.span().start)), why);
            let number = self.names().link(&one.as_ref().between).map_err(bad)?;
            self.topology.links[number].quality = quality(&one.as_ref().quality).map_err(bad)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &file::Event, line: u32) -> Result<(), String> {
        let at = time(&event.at)?;
        let changes = self.changes(event)?;
        let others = usize::from(event.ping.is_some())
            + usize::from(event.ping_all.is_some())
            + usize::from(event.flow.is_some())
            + usize::from(event.queries.is_some());
        if changes.len() + others != 1 {
            return Err(format!(
                "expected one of link_down, link_up, link_quality, switch_down, switch_up, host_down, host_up, host_move, ping, \
                 ping_all, flow and queries in an event, found {}",
                changes.len() + others
            ));
        }
        let changes = changes.into_iter().map(|change| Step { at, line, what: Action::Change(change) });
        self.steps.extend(changes);
        if let Some(pings) = &event.ping {
            self.pings(pings, at, line)?;
        }
        if let Some(all) = &event.ping_all {
            let series = self.new_series(all.name.as_deref().unwrap_or("ping_all"))?;
            let timeout = all.timeout.as_deref().map_or(Ok(PING_TIMEOUT), time)?;
            let hosts = self.topology.hosts.len();
            self.pings = self.pings.saturating_add(hosts.saturating_mul(hosts.saturating_sub(1)));
            self.steps.push(Step { at, line, what: Action::PingAll { series, timeout } });
        }
        if let Some(flow) = &event.flow {
            self.flow(flow, at, line)?;
        }
        if let Some(queries) = &event.queries {
            self.queries(queries, at, line)?;
        }
        Ok(())
    }

    fn changes(&self, event: &file::Event) -> Result<Vec<Change>, String> {
        let mut changes = Vec::new();
        for (link, up) in [(&event.link_down, false), (&event.link_up, true)] {
            if let Some(link) = link {
                changes.push(Change::Link { link: self.names().link_name(link)?, up });
            }
        }
        for (switch, up) in [(&event.switch_down, false), (&event.switch_up, true)] {
            if let Some(switch) = switch {
                changes.push(Change::Switch { switch: self.names().switch(switch)?, up });
            }
        }
        for (host, up) in [(&event.host_down, false), (&event.host_up, true)] {
            if let Some(host) = host {
                changes.push(Change::Host { host: self.names().host(host)?, up });
            }
        }
        if let Some(file::Move { host, to, port }) = &event.host_move {
            let (host, switch) = (self.names().host(host)?, self.names().switch(to)?);
            changes.push(Change::Move { host, switch, port: port.map(PortNo) });
        }
        if let Some(file::Quality { between, quality: words }) = &event.link_quality {
            changes
                .push(Change::Quality { link: self.names().link_name(between)?, quality: quality(words)? });
        }
        Ok(changes)
    }

    fn pings(&mut self, pings: &file::Pings, at: Duration, line: u32) -> Result<(), String> {
        let (from, to) = (self.names().host(&pings.from)?, self.names().host(&pings.to)?);
        if from == to {
            return Err(format!("{from} would ping itself"));
        }
        let name = pings.name.clone().unwrap_or_else(|| format!("{from}->{to}"));
        let series = self.new_series(&name)?;
        let every = pings.every.as_deref().map_or(Ok(PING_EVERY), time)?;
        let timeout = pings.timeout.as_deref().map_or(Ok(PING_TIMEOUT), time)?;
        let count = pings.count.unwrap_or(1);
        if count == 0 || count as usize > STEPS_MAX {
            return Err(format!("expected a count between 1 and {STEPS_MAX}, found {count}"));
        }
        for number in 0..count {
            let at = at.saturating_add(every.saturating_mul(number));
            if at > LONGEST {
                return Err(format!(
                    "the last ping would be later than the limit of {} hours",
                    LONGEST.as_secs() / 3600
                ));
            }
            let what = Action::Ping { series, from: from.clone(), to: to.clone(), timeout };
            self.steps.push(Step { at, line, what });
        }
        Ok(())
    }

    fn flow(&mut self, flow: &file::Flow, at: Duration, line: u32) -> Result<(), String> {
        let (from, to) = (self.names().host(&flow.from)?, self.names().host(&flow.to)?);
        let name = flow.name.clone().unwrap_or_else(|| format!("{from}->{to}"));
        if self.flows.iter().any(|known| known.name == name) {
            return Err(format!("a second flow is called \"{name}\": give it another name"));
        }
        let bits = flow.rate.as_deref().map(rate).transpose()?;
        let duration = time(&flow.duration)?;
        let spec = match (flow.kind.as_deref().unwrap_or("tcp"), bits) {
            ("tcp", _) => FlowSpec::tcp(from, to),
            ("udp", Some(bits)) => FlowSpec::udp(from, to, bits),
            ("udp", None) => return Err("a UDP flow wants a rate, like rate = \"10M\"".to_owned()),
            (other, _) => return Err(format!("expected kind \"tcp\" or \"udp\", found \"{other}\"")),
        };
        let rate = bits.map_or(FlowRate::Greedy, FlowRate::BitsPerSecond);
        // Two flows between the same hosts differ in their ports.
        let port = spec.port.saturating_add(u16::try_from(self.flows.len()).unwrap_or(u16::MAX));
        let spec = FlowSpec { rate, duration: Some(duration), port, ..spec };
        let index = self.flows.len();
        self.flows.push(NamedFlow { name, spec });
        self.steps.push(Step { at, line, what: Action::StartFlow(index) });
        self.steps.push(Step { at: at + duration, line, what: Action::EndFlow(index) });
        Ok(())
    }

    fn queries(&mut self, queries: &file::Queries, at: Duration, line: u32) -> Result<(), String> {
        let (from, to) = (self.names().host(&queries.from)?, self.names().host(&queries.to)?);
        if from == to {
            return Err(format!("{from} would query itself"));
        }
        let name = queries.name.clone().unwrap_or_else(|| format!("{from}->{to}"));
        if self.queries.iter().any(|known| known.name == name) {
            return Err(format!("a second series of queries is called \"{name}\": give it another name"));
        }
        let index = self.queries.len();
        if index >= SERIES_MAX {
            return Err(format!("there are more than {SERIES_MAX} series of queries"));
        }
        let spec = queries::spec(queries, (from, to), index)?;
        let ended_at = at + spec.duration + spec.timeout;
        self.queries.push(NamedQueries { name, spec });
        self.steps.push(Step { at, line, what: Action::StartQueries(index) });
        self.steps.push(Step { at: ended_at, line, what: Action::EndQueries(index) });
        Ok(())
    }

    fn expectation(&self, wish: &file::Expectation, line: u32) -> Result<Expectation, String> {
        let wanted = self.wanted(wish)?;
        if wanted.is_of_the_whole() && (wish.at.is_some() || wish.within.is_some()) {
            return Err(
                "pings, flow, fair and queries are looked at when they have ended: leave out at and within"
                    .into(),
            );
        }
        let at = wish.at.as_deref().map_or(Ok(Duration::ZERO), time)?;
        let within = wish.within.as_deref().map_or(Ok(WITHIN), time)?;
        Ok(Expectation { line, at, within, wanted })
    }

    /// The one kind of an expectation.
    fn wanted(&self, wish: &file::Expectation) -> Result<Wanted, String> {
        nothing_is_alone(wish)?;
        let mut all = Vec::new();
        if let Some(switches) = wish.connected {
            all.push(Wanted::Connected(switches));
        }
        for (pair, reached) in [(&wish.ping, true), (&wish.no_ping, false)] {
            if let Some(pair) = pair {
                let (from, to) = (self.names().host(&pair.from)?, self.names().host(&pair.to)?);
                all.push(Wanted::Ping { from, to, reached });
            }
        }
        if let Some(name) = &wish.pings {
            let series = self.series.iter().position(|known| known == name);
            let series = series.ok_or_else(|| unknown("series of pings", name, &self.series))?;
            let bounds = wish.lost_percent.ok_or("expected lost_percent = { max = … } beside pings")?;
            all.push(Wanted::Lost { series, min: bounds.min, max: bounds.max });
        }
        if let Some(name) = &wish.flow {
            let bounds = wish.rate.as_ref().ok_or("expected rate = { min = …, max = … } beside flow")?;
            let bound = |text: &Option<String>| text.as_deref().map(rate).transpose();
            let (min, max) = (bound(&bounds.min)?, bound(&bounds.max)?);
            all.push(Wanted::Rate { flow: self.flow_named(name)?, min, max });
        }
        if let Some(names) = &wish.fair {
            let flows: Result<Vec<usize>, String> = names.iter().map(|name| self.flow_named(name)).collect();
            let index = wish.index.unwrap_or(0.9);
            all.push(Wanted::Fair { flows: flows?, index_percent: percent(index)? });
        }
        if let Some(port) = &wish.port {
            let up = match wish.state.as_deref() {
                Some("up") => true,
                Some("down") => false,
                _ => return Err("expected state = \"up\" or \"down\" beside port".into()),
            };
            let (switch, port) = self.names().port(port)?;
            all.push(Wanted::Port { switch, port, up });
        }
        if let Some(entries) = &wish.flow_entries {
            let switch = self.names().switch(&entries.switch)?;
            all.push(Wanted::Entries { switch, min: entries.min, max: entries.max });
        }
        if let Some(name) = &wish.queries {
            let names = || self.queries.iter().map(|queries| queries.name.clone()).collect::<Vec<_>>();
            let index = self.queries.iter().position(|queries| queries.name == *name);
            let index = index.ok_or_else(|| unknown("series of queries", name, &names()))?;
            all.push(queries::wanted(wish, index)?);
        }
        match <[Wanted; 1]>::try_from(all) {
            Ok([wanted]) => Ok(wanted),
            Err(all) => Err(format!(
                "expected one of connected, ping, no_ping, pings, flow, fair, queries, port and flow_entries in an expectation, \
                 found {}",
                all.len()
            )),
        }
    }

    fn new_series(&mut self, name: &str) -> Result<usize, String> {
        if self.series.iter().any(|known| known == name) {
            return Err(format!("a second series of pings is called \"{name}\": give it another name"));
        }
        self.series.push(name.to_owned());
        Ok(self.series.len() - 1)
    }

    fn flow_named(&self, name: &str) -> Result<usize, String> {
        let names = || self.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>();
        self.flows.iter().position(|flow| flow.name == name).ok_or_else(|| unknown("flow", name, &names()))
    }
}

/// Refuses a key that belongs to another key which is missing.
fn nothing_is_alone(wish: &file::Expectation) -> Result<(), String> {
    let alone = [
        ("lost_percent", wish.lost_percent.is_some(), "pings", wish.pings.is_some()),
        ("rate", wish.rate.is_some(), "flow", wish.flow.is_some()),
        ("index", wish.index.is_some(), "fair", wish.fair.is_some()),
        ("completed_percent", wish.completed_percent.is_some(), "queries", wish.queries.is_some()),
        ("completion", wish.completion.is_some(), "queries", wish.queries.is_some()),
        ("after", wish.after.is_some(), "queries", wish.queries.is_some()),
        ("state", wish.state.is_some(), "port", wish.port.is_some()),
    ];
    let alone = alone.into_iter().find(|(_, is_there, _, has_its_own)| *is_there && !has_its_own);
    alone.map_or(Ok(()), |(key, _, own, _)| Err(format!("{key} belongs to {own}, which is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"topology = "linear,3"
version = "1.3"
spanning_tree = true
links = "delay=1ms"

[[link]]
between = "s2-s1"
quality = "rate=10M"

[[event]]
at = "2s"
link_down = "s1-s2"

[[event]]
at = "1s"
ping = { name = "p", from = "h1", to = "10.0.0.3", count = 3, every = "500ms" }

[[event]]
at = "500ms"
flow = { name = "f", from = "h1", to = "h2", kind = "udp", rate = "1M", for = "2s" }

[[event]]
at = "1.5s"
host_move = { host = "h1", to = "s3", port = 9 }

[[expect]]
at = "2s"
no_ping = { from = "h1", to = "h3" }
within = "300ms"

[[expect]]
pings = "p"
lost_percent = { min = 10, max = 50 }

[[expect]]
flow = "f"
rate = { min = "900k", max = "1.1M" }

[[expect]]
port = "s1-eth2"
state = "down"
"#;

    fn parse(text: &str) -> Result<Scenario, Bad> {
        Scenario::parse(text, Path::new(""), |file| topology(file, Path::new("")))
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, line: u32, why: &str) {
        assert!(WHOLE.contains(from), "{from}");
        let (found, words) = parse(&WHOLE.replacen(from, to, 1)).unwrap_err();
        assert_eq!(found, Some(line), "{words}");
        assert!(words.contains(why), "{words}");
        assert!(!words.contains('\n'), "{words}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_what_was_expected() {
        check_refused("version", "versoin", 2, "unknown field `versoin`");
        check_refused(
            "\"1.3\"",
            "\"1.4\"",
            2,
            "expected version \"1.0\", \"1.3\" or \"both\", found \"1.4\"",
        );
        check_refused("version = \"1.3\"", "time = \"slow\"", 2, "expected time = \"real\" or \"virtual\"");
        check_refused("version = \"1.3\"", "seed = 1", 2, "a seed is for time = \"virtual\"");
        check_refused("linear,3", "square", 1, "'square' is not one of them");
        check_refused("delay=1ms", "delay=1", 4, "no quality of a link");
        check_refused("s2-s1", "s3-s1", 6, "there is no link \"s3-s1\"");
        check_refused("link_down = \"s1-s2\"", "", 10, "expected one of link_down");
        check_refused("link_down", "link_donw", 12, "unknown field `link_donw`");
        check_refused("at = \"2s\"\nlink", "link", 10, "missing field `at`");
        check_refused("\"2s\"\nlink", "\"2 sec\"\nlink", 10, "expected a time like \"2s\"");
        check_refused("\"10.0.0.3\"", "\"h9\"", 14, "there is no host \"h9\"; there is h1, h2, h3");
        check_refused("count = 3", "count = 0", 14, "expected a count between 1 and 100000");
        check_refused("count = 3", "count = 100000, timeout=\"1s\"", 14, "there are more than 100000 events");
        check_refused("rate = \"1M\"", "rate = \"fast\"", 18, "expected a rate like \"10M\"");
        check_refused("rate = \"1M\"", "rate = \"1M,loss=5%\"", 18, "expected a rate like \"10M\"");
        check_refused(
            "no_ping = {",
            "state = \"up\"\nno_ping = {",
            26,
            "state belongs to port, which is missing",
        );
        check_refused(
            "version = \"1.3\"",
            "profile = \"cisco\"",
            2,
            "cisco is neither a file nor a built-in profile",
        );
        check_refused(
            "[[link]]",
            "[[switch]]\nname = \"s9\"\nprofile = \"null\"\n[[link]]",
            6,
            "there is no switch s9; the switches are s1, s2, s3",
        );
        check_refused("to = \"s3\"", "to = \"s9\"", 22, "there is no switch \"s9\"");
        check_refused("pings = \"p\"", "pings = \"q\"", 31, "there is no series of pings \"q\"; there is p");
        check_refused("lost_percent = { min = 10, max = 50 }", "", 31, "expected lost_percent");
        check_refused("flow = \"f\"\nrate", "at = \"1s\"\nflow = \"f\"\nrate", 35, "leave out at and within");
        check_refused("state = \"down\"", "state = \"gone\"", 39, "expected state = \"up\" or \"down\"");
        let (line, why) = parse("version = \"1.3\"").unwrap_err();
        assert_eq!((line, why.as_str()), (None, "expected topology = \"tree,2\" or another"));
    }

    #[test]
    fn what_happens_is_put_in_the_order_of_time() {
        let scenario = parse(WHOLE).unwrap();
        let times: Vec<u128> = scenario.steps.iter().map(|step| step.at.as_millis()).collect();
        assert_eq!(times, [500, 1000, 1500, 1500, 2000, 2000, 2500]);
        let lines: Vec<u32> = scenario.steps.iter().map(|step| step.line).collect();
        assert_eq!(lines, [18, 14, 14, 22, 10, 14, 18]);
        assert_eq!(
            scenario.steps[4].what,
            Action::Change(Change::Link { link: "s2.2-s1.2".into(), up: false })
        );
        assert_eq!(scenario.expectations.len(), 4);
        assert!(scenario.spanning_tree && scenario.versions == Some(Versions::Only13));
        let tuned = scenario.topology.links_between("s1", "s2")[0];
        assert_eq!(scenario.topology.links[tuned].quality.to_string(), "rate=10M");
        assert_eq!(scenario.topology.links[0].quality.to_string(), "delay=1ms");
    }

    #[test]
    fn a_switch_has_its_own_profile_or_that_of_all() {
        let text = "topology = \"linear,2\"\nprofile = \"null\"\n\
                    [[switch]]\nname = \"s2\"\nprofile = \"hp-procurve-j9451a\"\n";
        let profiles = parse(text).unwrap().profiles;
        let names = ["s1", "s2"].map(|switch| profiles.of(switch).map(|profile| profile.name.clone()));
        assert_eq!(names, [Some("null".to_owned()), Some("hp-procurve-j9451a".to_owned())]);
    }

    #[test]
    fn each_ping_among_all_hosts_is_counted() {
        let all = |hosts| {
            parse(&format!("topology = \"single,{hosts}\"\n[[event]]\nat = \"0s\"\nping_all = {{}}\n"))
        };
        assert!(all(300).is_ok());
        let (line, why) = all(400).unwrap_err();
        assert_eq!(line, Some(2));
        assert!(why.contains("there are more than 100000 events, counting each ping"), "{why}");
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let refused = Scenario::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(refused.contains("more than 4194304 bytes"), "{refused}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let refused = Scenario::read(Path::new("/nowhere.toml")).unwrap_err().to_string();
        assert!(refused.starts_with("/nowhere.toml: it cannot be read"), "{refused}");
    }
}
