//! The demo of a wide area network: intents and traffic that go on while links fail and heal.
//!
//! ```text
//!   node, switches ──> places ──> links, hosts ──> intents ──> the page ──> traffic ──> a link fails and heals, again and again
//! ```
//!
//! In: a network. Out: lines about each step, and the exit code: 0 only if every step held. How long a step took is shown and decides
//! nothing.

use super::plan::{Pair, Wan};
use super::reroute::{Lost, Packets, Reroute};
use super::rest::{Heard, Rest, follow, free};
use super::seen::Seen;
use super::{DemoArgs, LOOK, START_PATIENCE};
use crate::own_node::OwnNode;
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;
use emulator::{Emulation, FlowId, FlowReport, FlowSpec, Handle, Topology};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the page is if no address is given.
const REST: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8181);

/// How long a step may take. It only ends a hang.
const STEP_PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait before a refused question is repeated.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long one ping may take.
const PING_PATIENCE: Duration = Duration::from_secs(1);

/// The rate of each flow in payload bits a second, and its payload: a hundred packets a second.
const FLOW_BITS_PER_S: u64 = 800_000;
const FLOW_PAYLOAD_BYTES: usize = 1_000;

/// After a failure, packets are counted for so long at least.
const COUNT_FOR: Duration = Duration::from_millis(1_500);

/// How long a link is down, and how long all links are up before the next one fails.
const DOWN_FOR: Duration = Duration::from_secs(8);
const UP_FOR: Duration = Duration::from_secs(6);

/// So many links that failed last do not fail again.
const LATELY: usize = 4;

/// How many lines of the node's log a failure shows: enough for what the node did last.
const LOG_LINES: usize = 20;

/// Why the demo does not go on.
enum End {
    /// The operator's signal.
    Stopped,
    /// A step did not hold: a sentence.
    Failed(String),
    /// The node has ended.
    NodeEnded,
}

type Step = Result<(), End>;

/// All that runs, and what is known of it.
struct Show {
    stage: Stage,
    stop: StopSignal,
    node: OwnNode,
    network: Handle,
    wan: Wan,
    rest: Rest,
    heard: Receiver<Heard>,
    seen: Seen,
    /// The pairs of hosts with intents, and the flows between them.
    traffic: Vec<(Pair, Vec<FlowId>)>,
}

/// Carries it out.
pub(super) fn wan(args: &DemoArgs, topology: Topology, stop: StopSignal) -> Result<ExitCode, CommandError> {
    let page = free(args.rest.unwrap_or(REST))?;
    let mut show = Show::start(args, topology, stop, page)?;
    let result = show.set_up(page).and_then(|()| show.fail_links(args.once));
    let log = if result.is_err() { last_lines(&show.node.log()) } else { String::new() };
    // The node ends first. Switches that disappeared before it would cause warnings.
    drop(show.node);
    drop(show.network);
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(End::Stopped) => {
            Err(CommandError::DidNotWork("it was told to stop before everything had been checked".to_owned()))
        }
        Err(End::NodeEnded) => Err(CommandError::DidNotWork(format!("the node has ended{log}"))),
        Err(End::Failed(why)) => Err(CommandError::DidNotWork(format!("{why}{log}"))),
    }
}

/// The configuration of the node: the services of the network, and apps for packets without an intent.
fn configuration(folder: &Path, page: SocketAddr) -> String {
    format!(
        "[node]\nstate = \"{}\"\n[network.discovery]\nlatency = true\n[network.northbound]\nlisten = [\"{page}\"]\n\
         [app.forwarding]\n[app.proxy-arp]\n",
        folder.join("state").display()
    )
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    if lines.is_empty() { String::new() } else { format!("\nThe node's log:\n{}", lines[from..].join("\n")) }
}

fn failed(why: impl std::fmt::Display) -> End {
    End::Failed(why.to_string())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Show {
    /// Starts the node and the network.
    fn start(
        args: &DemoArgs,
        topology: Topology,
        stop: StopSignal,
        page: SocketAddr,
    ) -> Result<Show, CommandError> {
        let node = OwnNode::start_configured(|folder| configuration(folder, page))?;
        let address = node
            .wait_until_it_listens()
            .map_err(|error| CommandError::DidNotWork(format!("{error}{}", last_lines(&node.log()))))?;
        let trouble = |error: std::io::Error| CommandError::DidNotWork(error.to_string());
        let wan = Wan::new(topology);
        let network = Emulation::start(&wan.topology, address, &args.options()).map_err(|error| {
            CommandError::DidNotWork(format!("the emulated network cannot be started: {error}"))
        })?;
        let (rest, heard) = (Rest::new(node.socket(), page), follow(node.socket()).map_err(trouble)?);
        let (stage, seen, traffic) = (Stage::on_stdout(), Seen::default(), Vec::new());
        Ok(Show { stage, stop, node, network, wan, rest, heard, seen, traffic })
    }

    /// Waits for an event of the node, and returns when it came.
    fn hear(&mut self) -> Result<Option<Instant>, End> {
        if self.stop.came_within(Duration::ZERO) {
            return Err(End::Stopped);
        }
        match self.heard.recv_timeout(LOOK) {
            Ok((at, event)) => {
                self.seen.apply(&event);
                Ok(Some(at))
            }
            Err(RecvTimeoutError::Timeout) if !self.node.has_ended() => Ok(None),
            Err(_) => Err(End::NodeEnded),
        }
    }

    /// Waits until something is true. If it takes too long, the end says what is missing.
    fn wait(
        &mut self,
        patience: Duration,
        is_true: impl Fn(&Seen) -> bool,
        missing: impl Fn(&Seen) -> String,
    ) -> Step {
        let began = Instant::now();
        while !is_true(&self.seen) {
            if began.elapsed() > patience {
                return Err(failed(format!("after {} s, {}", patience.as_secs(), missing(&self.seen))));
            }
            self.hear()?;
        }
        Ok(())
    }

    fn pass(&mut self, time: Duration) -> Step {
        let began = Instant::now();
        while began.elapsed() < time {
            self.hear()?;
        }
        Ok(())
    }

    /// Everything until traffic flows.
    fn set_up(&mut self, page: SocketAddr) -> Step {
        let socket = self.node.socket().display();
        self.stage.say(&format!("the page: http://{page}   ask the node: burnet links --socket {socket}"));
        self.find_switches()?;
        self.name_switches()?;
        self.find_links_and_hosts()?;
        self.add_intents()?;
        self.check_page(page)?;
        self.start_traffic()
    }

    fn find_switches(&mut self) -> Step {
        let wanted = self.wan.topology.switches.len();
        let up = |seen: &Seen| seen.in_state("switch", "up");
        let found = self.wait(
            START_PATIENCE,
            |seen| up(seen) == wanted,
            |seen| format!("the node has {} of {wanted} switches", up(seen)),
        );
        // The network knows why a switch has no connection.
        found.map_err(|end| match (end, self.network.wait_connected(Duration::ZERO)) {
            (End::Failed(why), Err(lacks)) if !lacks.missing.is_empty() => failed(format!("{why}: {lacks}")),
            (end, _) => end,
        })?;
        self.stage.say(&format!("{wanted} switches are connected"));
        Ok(())
    }

    /// Gives each switch its name and its place on the map.
    fn name_switches(&mut self) -> Step {
        let switches = self.wan.topology.switches.iter().zip(self.wan.names());
        let notes = switches.map(|(switch, name)| {
            let mut notes = json!({ "name": name });
            if let Some(place) = switch.place {
                notes["latitude"] = place.latitude().to_string().into();
                notes["longitude"] = place.longitude().to_string().into();
            }
            (switch.datapath_id.to_string(), notes)
        });
        for (switch, notes) in notes.collect::<Vec<_>>() {
            self.ask(|rest| rest.annotate(&switch, &notes))?;
        }
        Ok(())
    }

    /// Asks the node, and asks again for a while: its services may still be reading what they keep in the store.
    fn ask(&mut self, question: impl Fn(&Rest) -> Result<(), String>) -> Step {
        let began = Instant::now();
        while let Err(why) = question(&self.rest) {
            if began.elapsed() > STEP_PATIENCE {
                return Err(failed(why));
            }
            self.pass(ASK_AGAIN)?;
        }
        Ok(())
    }

    fn find_links_and_hosts(&mut self) -> Step {
        let trunks = self.wan.trunks();
        let wanted = 2 * trunks.len();
        let up = |seen: &Seen| seen.in_state("link", "up");
        self.wait(
            STEP_PATIENCE,
            |seen| up(seen) == wanted,
            |seen| format!("the node has found {} of {wanted} links", up(seen)),
        )?;
        self.stage.say(&format!("{} links are discovered, in both directions", trunks.len()));
        let hosts = self.wan.topology.hosts.len();
        let began = Instant::now();
        // Hosts are known by the frames that they send.
        for distance in 1.. {
            if self.seen.count("host") == hosts {
                break;
            }
            if began.elapsed() > STEP_PATIENCE {
                let found = self.seen.count("host");
                return Err(failed(format!(
                    "after {} s, the node knows {found} of {hosts} hosts",
                    STEP_PATIENCE.as_secs()
                )));
            }
            self.ping_round(distance)?;
        }
        self.stage.say(&format!("{hosts} hosts have been seen"));
        Ok(())
    }

    /// Each host pings the one that comes so many places later.
    fn ping_round(&mut self, distance: usize) -> Step {
        let hosts = &self.wan.topology.hosts;
        let asked: Result<Vec<_>, _> = (0..hosts.len())
            .map(|one| (&hosts[one], &hosts[(one + distance) % hosts.len()]))
            .filter(|(one, two)| one != two)
            .map(|(one, two)| self.network.begin_ping(&one.name, &two.name, PING_PATIENCE))
            .collect();
        let _answers = asked.map_err(failed)?;
        self.pass(PING_PATIENCE)
    }

    fn add_intents(&mut self) -> Step {
        let pairs = self.wan.pairs();
        for pair in &pairs {
            let host = |index: usize| self.wan.topology.hosts[index].mac.to_string();
            let protection = if pair.is_protected { "protected" } else { "restored" };
            let intent = json!({ "type": "host_to_host", "name": pair.name, "one": host(pair.one), "two": host(pair.two),
                                 "protection": protection });
            self.ask(|rest| rest.add_intent(&intent))?;
        }
        let wanted = pairs.len();
        self.wait(STEP_PATIENCE, |seen| is_all_installed(seen, wanted), Seen::intents_missing)?;
        let protected = pairs.iter().filter(|pair| pair.is_protected).count();
        self.stage.say(&format!("{wanted} intents are installed; {protected} of them have backup paths"));
        self.traffic = pairs.into_iter().map(|pair| (pair, Vec::new())).collect();
        Ok(())
    }

    fn check_page(&mut self, page: SocketAddr) -> Step {
        let topology = self.rest.check_page().map_err(failed)?;
        let length = |name: &str| topology[name].as_array().map_or(0, Vec::len);
        let expected = [
            ("switches", self.seen.count("switch")),
            ("links", self.seen.count("link")),
            ("hosts", self.seen.count("host")),
        ];
        for (name, expected) in expected {
            let found = length(name);
            if found != expected {
                return Err(failed(format!(
                    "http://{page}/api/v1/topology has {found} {name}, and not {expected}"
                )));
            }
        }
        self.stage.say(&format!("the page and the REST interface answer: http://{page}"));
        Ok(())
    }

    fn start_traffic(&mut self) -> Step {
        let hosts = &self.wan.topology.hosts;
        for (pair, flows) in &mut self.traffic {
            for (from, to) in [(pair.one, pair.two), (pair.two, pair.one)] {
                let spec = FlowSpec::udp(&hosts[from].name, &hosts[to].name, FLOW_BITS_PER_S);
                let spec = FlowSpec { payload_bytes: FLOW_PAYLOAD_BYTES, ..spec };
                flows.push(self.network.start_flow(spec).map_err(failed)?);
            }
        }
        let began = Instant::now();
        while let Some(name) = self.silent_pair() {
            if began.elapsed() > STEP_PATIENCE {
                return Err(failed(format!("no packet of intent {name} has arrived")));
            }
            self.pass(LOOK)?;
        }
        self.stage.say(&format!("{} flows of 100 packets a second each arrive", 2 * self.traffic.len()));
        Ok(())
    }

    /// The name of a pair of which a flow has delivered nothing yet.
    fn silent_pair(&self) -> Option<&str> {
        let is_silent = |(pair, flows): &&(Pair, Vec<FlowId>)| {
            let reports = self.reports(&pair.name);
            reports.len() < flows.len() || reports.iter().any(|report| report.delivered_packets == 0)
        };
        self.traffic.iter().find(is_silent).map(|(pair, _)| pair.name.as_str())
    }

    /// The reports of the flows of an intent.
    fn reports(&self, name: &str) -> Vec<FlowReport> {
        let flows = self.traffic.iter().filter(|(pair, _)| pair.name == name).flat_map(|(_, flows)| flows);
        flows.filter_map(|flow| self.network.flow_report(*flow)).collect()
    }

    /// Lets one link fail and heal, and without `once` one after the other until the signal comes.
    fn fail_links(&mut self, once: bool) -> Step {
        let mut lately = Vec::new();
        self.fail_next(&mut lately, once)?;
        if once {
            self.stage.say("everything held");
            return Ok(());
        }
        self.stage.say("this goes on until Ctrl-C");
        match self.go_on(lately) {
            // The operator has seen enough. Everything was checked before.
            Err(End::Stopped) => Ok(()),
            other => other,
        }
    }

    fn go_on(&mut self, mut lately: Vec<usize>) -> Step {
        loop {
            self.pass(UP_FOR)?;
            match self.fail_next(&mut lately, false) {
                Err(End::Failed(why)) => self.stage.say(&why),
                other => other?,
            }
        }
    }

    fn fail_next(&mut self, lately: &mut Vec<usize>, once: bool) -> Step {
        let over = |link: usize| self.seen.intents_over(&self.wan.link_ids(link)).len();
        let Some(link) = self.wan.next_failure(over, lately) else {
            return Err(failed("the failure of any link would cut this network: choose another with --topo"));
        };
        lately.push(link);
        if lately.len() > LATELY {
            lately.remove(0);
        }
        self.fail_and_heal(link, once)
    }

    fn fail_and_heal(&mut self, link: usize, once: bool) -> Step {
        let (name, ids) = (self.wan.link_name(link), self.wan.link_ids(link));
        let began = Instant::now();
        let failed_one = self.fail(link, &name, &ids);
        if !once && failed_one.is_ok() {
            self.pass(DOWN_FOR.saturating_sub(began.elapsed()))?;
        }
        self.network.set_link(link, true);
        failed_one?;
        self.wait(
            STEP_PATIENCE,
            |seen| ids.iter().all(|id| seen.is_up(id)),
            |_| format!("link {name} is not found again"),
        )?;
        self.stage.say(&format!("link {name} works again"));
        let wanted = self.traffic.len();
        self.wait(STEP_PATIENCE, |seen| is_all_installed(seen, wanted), Seen::intents_missing)
    }

    /// Lets a link fail, and watches until its intents have other paths and their packets arrive.
    fn fail(&mut self, link: usize, name: &str, ids: &[String]) -> Step {
        let over = self.seen.intents_over(ids);
        let before: Vec<_> = over.iter().map(|(intent, _)| self.reports(intent)).collect();
        let mut reroutes: Vec<Reroute> =
            over.into_iter().map(|(intent, is_backup)| self.begun(intent, is_backup)).collect();
        let (failed_at, failed_ms) = (Instant::now(), now_ms());
        self.network.set_link(link, false);
        self.stage.say(&format!("link {name} failed; {} intents used it", reroutes.len()));
        while failed_at.elapsed() < STEP_PATIENCE && reroutes.iter().any(|it| it.after.is_none()) {
            let Some(at) = self.hear()? else { continue };
            let done = |it: &&mut Reroute| self.seen.is_rerouted(&it.name, ids, failed_ms);
            reroutes.iter_mut().filter(done).for_each(|it| it.settle(failed_at, at));
        }
        self.pass(COUNT_FOR.saturating_sub(failed_at.elapsed()).max(COUNT_FOR / 2))?;
        for (reroute, before) in reroutes.iter_mut().zip(&before) {
            reroute.packets = Packets::between(before, &self.reports(&reroute.name));
            self.stage.say(&format!("  {}", reroute.line()));
        }
        match reroutes.iter().find(|it| !it.is_well()) {
            Some(it) => Err(failed(format!("link {name} failed, and {}", it.line()))),
            None => Ok(()),
        }
    }

    fn begun(&self, intent: String, is_backup: bool) -> Reroute {
        let is_protected = self.traffic.iter().any(|(pair, _)| pair.name == intent && pair.is_protected);
        let lost = match (is_backup, is_protected) {
            (true, _) => Lost::Backup,
            (false, true) => Lost::PathWithBackup,
            (false, false) => Lost::Path,
        };
        Reroute::begun(intent, lost)
    }
}

/// Whether all intents of the demo are installed. An operator may have added others in the page.
fn is_all_installed(seen: &Seen, wanted: usize) -> bool {
    seen.in_state("intent", "installed") >= wanted
}
