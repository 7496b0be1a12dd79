//! The REST interface: reads, single intents, and a thousand clients of the stream of which a tenth stall.
//!
//! ```text
//!   emulated switches, clients ── one core ──HTTP──> the other core ── the node
//! ```
//!
//! In: a node with all services of the view, and the paper's network. Out: rates and times. On a machine with one core, all
//! share it, and the claims say so. It never uses a real switch.

use super::bed::{Bed, Plan, wait_until};
use super::clock::{between_ms, now_ns};
use super::cores;
use super::http_client::HttpClient;
use super::paper::paper;
use super::reroute::SEED;
use super::rest_load::{Asked, Load, Way, read, send_all};
use super::rest_streams::Streams;
use super::wan::Wan;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::percentile;
use emulator::Handle;
use lab::own_node::free_address;
use lab::processes::{own_bytes, tree};
use paths_contract::{Question, SERVICE};
use serde::Serialize;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use view::Kind;

const SERVICES: [&str; 5] = ["discovery", "hosts", "flows", "paths", NORTHBOUND];
const NORTHBOUND: &str = "northbound";

const ASKED_READS_PER_S: f64 = 10_000.0;
const ASKED_INTENTS_PER_S: f64 = 2_000.0;

/// With stalled clients, the p99 of a change at the others may be this many times as long.
const ASKED_STALL_RATIO: f64 = 1.2;

/// Time limit until the node has disconnected all stalled clients.
const CUT_PATIENCE: Duration = Duration::from_secs(45);

/// How many changes at most until the buffers of clients that read nothing are full.
const FILLING_MAX: usize = 3_000;

/// The length of the note that a change carries, in bytes.
const NOTE_BYTES: usize = 3_000;

/// Times of a change at all clients that read.
#[derive(Clone, Debug, Default, Serialize)]
struct Spread {
    clients: usize,
    changes: usize,
    p50_ms: f64,
    p99_ms: f64,
    most_ms: f64,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    cores: usize,
    hosts: usize,
    reads: Load,
    /// While hosts change.
    reads_with_changes: Load,
    /// At the pace that is asked.
    reads_at_pace: Load,
    by_kind: Vec<(String, Load)>,
    intents: u32,
    intents_accepted: Load,
    intents_installed_per_s: f64,
    intents_with_northbound_alone: Load,
    stalled: usize,
    without_stalled: Spread,
    with_stalled: Spread,
    filling_changes: usize,
    missed: u64,
    cut: usize,
    cut_after_s: f64,
    /// Memory of the service: at rest, with all clients, when some have stalled.
    bytes: [u64; 3],
}

/// The node and its network.
struct World {
    bed: Bed,
    network: Handle,
    wan: Wan,
    address: SocketAddr,
    client: HttpClient,
    hosts: usize,
    /// Those that this process had at the start.
    cores: Vec<usize>,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut world = World::start(lab)?;
    let mut seen = Measured { cores: world.cores.len(), hosts: world.hosts, ..Measured::default() };
    let measured = measure(lab, &mut world, &mut seen);
    // Further experiments of this process need all cores.
    cores::pin(&[std::process::id()], &world.cores)?;
    measured?;
    world.network.stop();
    Ok(Findings { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

fn measure(lab: &Lab, world: &mut World, seen: &mut Measured) -> Result<(), String> {
    world.on_one_core(&tree(world.bed.node().pid()))?;
    reads(lab, world, seen)?;
    let mut streams = streams(lab, world, seen)?;
    let stalled = Instant::now();
    intents(lab, world, seen)?;
    until_cut(lab, world, seen, (&mut streams, stalled))
}

impl World {
    fn start(lab: &Lab) -> Result<World, String> {
        let (cores, demonstration) = (cores::allowed(), paper()?.demonstration);
        let wan = Wan::new(demonstration.switches, demonstration.links, SEED);
        let address = free_address().map_err(|error| error.to_string())?;
        let more = format!("[network.northbound]\nlisten = ['{address}']");
        let mut bed =
            Bed::start(lab, Plan { services: &SERVICES, kinds: &[Kind::Link], raw: false, more: &more })?;
        let network = bed.network(&wan.topology())?;
        bed.wait_links(wan.cables.len() * 2)?;
        let hosts = lab.times(1_000, 30);
        let added: Vec<Asked> = (0..hosts).map(|number| new_host(&wan, number)).collect();
        send_all(address, &added, 8)?;
        let client = HttpClient::connect(address)?;
        Ok(World { bed, network, wan, address, client, hosts, cores })
    }

    /// Moves these processes to the first core. Moves this process and all others of the node to the second one. With one core, nothing is moved.
    fn on_one_core(&self, processes: &[u32]) -> Result<(), String> {
        let [first, second, ..] = self.cores[..] else { return Ok(()) };
        cores::pin(&[std::process::id()], &[second])?;
        cores::pin(&tree(self.bed.node().pid()), &[second])?;
        cores::pin(processes, &[first])
    }

    /// The process of the service and those around it.
    fn northbound(&self) -> Result<Vec<u32>, String> {
        let app = self.bed.node().app(NORTHBOUND).ok_or("the node does not list northbound")?;
        let pid = app["status"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.map(tree).ok_or_else(|| "northbound has no process".to_owned())
    }

    fn bytes(&self) -> Result<u64, String> {
        Ok(own_bytes(&self.northbound()?))
    }

    /// Waits until the collection has so many objects: what services have accepted becomes visible a little later.
    fn wait_total(&mut self, collection: &str, total: usize) -> Result<(), String> {
        let client = &mut self.client;
        wait_until(&format!("there are {total} {collection}"), || {
            let body = client.ask("GET", &format!("/api/v1/{collection}?limit=1"), "")?.success()?;
            let page: serde_json::Value =
                serde_json::from_slice(&body).map_err(|error| format!("a page: {error}"))?;
            Ok(page["total"] == total)
        })
    }

    /// A sample of the metrics.
    fn metric(&mut self, name: &str) -> Result<u64, String> {
        let text = self.client.ask("GET", "/metrics", "")?.success()?;
        let text = String::from_utf8_lossy(&text);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| format!("there is no metric {name}"))
    }
}

fn host_id(number: usize) -> String {
    let [high, low] = [number / 256, number % 256];
    format!("02:00:00:00:{high:02x}:{low:02x}")
}

fn new_host(wan: &Wan, number: usize) -> Asked {
    let at = wan.edge(number % wan.switches());
    let address = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    let body = json!({ "id": host_id(number), "at": at, "addresses": [address] });
    Asked { method: "POST", target: "/api/v1/hosts".to_owned(), body: body.to_string() }
}

/// A change of a host's notes: where, and the body.
fn note(number: usize, text: &str) -> (String, String) {
    let body = json!({ "annotations": { "note": text } });
    (format!("/api/v1/hosts/{}", host_id(number)), body.to_string())
}

/// What the readers ask in turn: a switch, a page of hosts, the links of a switch, a page of intents.
fn targets(wan: &Wan, hosts: usize) -> Vec<(&'static str, Vec<Asked>)> {
    let of = |text: &str, number: usize| Asked::get(format!("/api/v1/{text}{}", wan.edge(number).switch));
    let switches = (0..wan.switches()).map(|number| of("switches/", number)).collect();
    let links = (0..wan.switches()).map(|number| of("links?switch=", number)).collect();
    let page = |number: usize| match number {
        0 => Asked::get("/api/v1/hosts?limit=100"),
        number => Asked::get(format!("/api/v1/hosts?limit=100&after={}", host_id(number * 100 - 1))),
    };
    let pages = (0..hosts.div_ceil(100)).map(page).collect();
    let intents = vec![Asked::get("/api/v1/intents?limit=100")];
    vec![
        ("one switch", switches),
        ("100 hosts", pages),
        ("links of a switch", links),
        ("100 intents", intents),
    ]
}

fn mixed(kinds: &[(&str, Vec<Asked>)]) -> Vec<Asked> {
    let longest = kinds.iter().map(|(_, all)| all.len()).max().unwrap_or_default();
    (0..longest)
        .flat_map(|turn| kinds.iter().map(move |(_, all)| all[turn % all.len().max(1)].clone()))
        .collect()
}

/// How many intents there are while clients read.
fn first_intents(lab: &Lab) -> u32 {
    if lab.short { 20 } else { 200 }
}

fn reads(lab: &Lab, world: &mut World, seen: &mut Measured) -> Result<(), String> {
    let way = Way { clients: 16, time: lab.time(2.0, 0.2), per_s: None };
    let first: Vec<Asked> = (0..first_intents(lab)).map(|number| intent(&world.wan, number)).collect();
    send_all(world.address, &first, 8)?;
    world.wait_total("hosts", world.hosts)?;
    world.wait_total("links", world.wan.cables.len() * 2)?;
    world.wait_total("intents", first.len())?;
    let kinds = targets(&world.wan, world.hosts);
    lab.say("rest: reads");
    for (name, all) in &kinds {
        seen.by_kind.push(((*name).to_owned(), read(world.address, all, way)?));
    }
    let all = mixed(&kinds);
    seen.reads = read(world.address, &all, way)?;
    let paced = Way { per_s: Some(if lab.short { 500.0 } else { ASKED_READS_PER_S }), ..way };
    seen.reads_at_pace = read(world.address, &all, paced)?;
    lab.say("rest: reads, while hosts change");
    let address = world.address;
    let (until, hosts) = (Instant::now() + way.time, world.hosts);
    seen.reads_with_changes = std::thread::scope(|scope| {
        let changing = scope.spawn(move || change_hosts(address, hosts, until));
        let load = read(address, &all, way);
        changing.join().map_err(|_| "the client that changes hosts broke".to_owned())??;
        load
    })?;
    Ok(())
}

/// Changes a host a hundred times a second.
fn change_hosts(address: SocketAddr, hosts: usize, until: Instant) -> Result<(), String> {
    let mut client = HttpClient::connect(address)?;
    for turn in 0_usize.. {
        if Instant::now() > until {
            break;
        }
        let (target, body) = note(turn % hosts, &format!("turn {turn}"));
        client.ask("PATCH", &target, &body)?.success()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The request for an intent from one host's port to another's, for a destination of its own.
fn intent(wan: &Wan, number: u32) -> Asked {
    let switches = wan.switches();
    let (from, to) = (number as usize % switches, (number as usize * 7 + 13) % switches);
    let to = if to == from { (to + 1) % switches } else { to };
    let body = json!({
        "name": format!("single {number}"),
        "type": "point_to_point",
        "from": wan.edge(from),
        "to": wan.edge(to),
        "selector": { "eth_type": "0x0800", "ipv4_dst": format!("20.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255) },
    });
    Asked { method: "POST", target: "/api/v1/intents".to_owned(), body: body.to_string() }
}

fn intents(lab: &Lab, world: &mut World, seen: &mut Measured) -> Result<(), String> {
    let count = if lab.short { 60 } else { 6_000 };
    let before = first_intents(lab);
    lab.say("rest: single intents, the node on one core");
    let all: Vec<Asked> = (0..count).map(|number| intent(&world.wan, 1_000 + number)).collect();
    let began_ns = now_ns();
    seen.intents = count;
    seen.intents_accepted = send_all(world.address, &all, 64)?;
    let installed_ns = wait_installed(&mut world.bed, before + count)?;
    seen.intents_installed_per_s = f64::from(count) / between_ms(began_ns, installed_ns).max(1e-6) * 1e3;
    lab.say("rest: single intents, only northbound on one core");
    world.on_one_core(&world.northbound()?)?;
    let all: Vec<Asked> = (0..count).map(|number| intent(&world.wan, 100_000 + number)).collect();
    seen.intents_with_northbound_alone = send_all(world.address, &all, 64)?;
    wait_installed(&mut world.bed, before + 2 * count).map(drop)
}

/// When so many intents are installed.
fn wait_installed(bed: &mut Bed, total: u32) -> Result<u64, String> {
    let question = String::from_utf8_lossy(&Question::Counts.to_bytes()).into_owned();
    bed.poll(SERVICE, &question, Duration::from_millis(20), &format!("\"installed\":{total},"))?;
    bed.polled().map(|(at_ns, _)| at_ns)
}

fn streams(lab: &Lab, world: &mut World, seen: &mut Measured) -> Result<Streams, String> {
    let (clients, changes) = (lab.times(1_000, 20), lab.times(100, 3));
    // The node closes a connection that asks nothing for 10 seconds.
    world.client = HttpClient::connect(world.address)?;
    seen.stalled = clients / 10;
    let reading = clients - seen.stalled;
    seen.bytes[0] = world.bytes()?;
    lab.say(&format!("rest: {reading} clients of the stream"));
    let mut streams = Streams::connect(world.address, reading, 0)?;
    seen.without_stalled = changed(world, &mut streams, changes)?;
    drop(streams);
    wait_until("the clients of the stream have left", || Ok(world.metric(CLIENTS)? == 0))?;
    lab.say(&format!("rest: {} more that stall", seen.stalled));
    let mut streams = Streams::connect(world.address, reading, seen.stalled)?;
    seen.bytes[1] = world.bytes()?;
    // Until the node drops events for the clients that read nothing: their buffers are full then.
    let filling_max = lab.times(FILLING_MAX, 3);
    while seen.filling_changes < filling_max && world.metric(MISSED)? == 0 {
        one_change(world, &mut streams, seen.filling_changes, NOTE_BYTES)?;
        seen.filling_changes += 1;
    }
    seen.with_stalled = changed(world, &mut streams, changes)?;
    seen.missed = world.metric(MISSED)?;
    seen.bytes[2] = world.bytes()?;
    Ok(streams)
}

/// Waits until the node has disconnected the clients that read nothing.
fn until_cut(
    lab: &Lab,
    world: &mut World,
    seen: &mut Measured,
    (streams, stalled): (&mut Streams, Instant),
) -> Result<(), String> {
    if lab.short {
        return Ok(());
    }
    lab.say("rest: until those that stall are disconnected");
    world.client = HttpClient::connect(world.address)?;
    let reading = seen.with_stalled.clients as u64;
    while world.metric(CLIENTS)? > reading && stalled.elapsed() < CUT_PATIENCE {
        one_change(world, streams, 0, 10)?;
        std::thread::sleep(Duration::from_millis(200));
    }
    seen.cut_after_s = stalled.elapsed().as_secs_f64();
    seen.cut = streams.cut();
    Ok(())
}

const CLIENTS: &str = "burnet_http_stream_clients ";
const MISSED: &str = "burnet_http_stream_missed_total ";

fn changed(world: &mut World, streams: &mut Streams, changes: usize) -> Result<Spread, String> {
    let mut times = Vec::new();
    for turn in 0..changes {
        times.push(one_change(world, streams, turn, 10)?);
        std::thread::sleep(Duration::from_millis(20));
    }
    let clients = times.first().map_or(0, Vec::len);
    let times = times.concat();
    let of = |per_cent| percentile(&times, per_cent);
    Ok(Spread { clients, changes, p50_ms: of(50), p99_ms: of(99), most_ms: of(100) })
}

/// Changes a host. The times after which the clients that read have it.
fn one_change(
    world: &mut World,
    streams: &mut Streams,
    turn: usize,
    bytes: usize,
) -> Result<Vec<f64>, String> {
    let mark = format!("<{}>", now_ns());
    let (target, body) = note(turn % world.hosts, &format!("{}{mark}", "x".repeat(bytes)));
    streams.change(&mut world.client, (&target, &body), &mark)
}

fn load_text(load: &Load) -> String {
    format!(
        "{:.0} a second; median {:.2} ms, p99 {:.2} ms, longest {:.1} ms",
        load.per_s, load.p50_ms, load.p99_ms, load.most_ms
    )
}

fn spread_text(spread: &Spread) -> String {
    format!(
        "median {:.2} ms, p99 {:.2} ms, longest {:.1} ms ({} changes at {} clients)",
        spread.p50_ms, spread.p99_ms, spread.most_ms, spread.changes, spread.clients
    )
}

/// Where the processes ran.
fn placement(seen: &Measured) -> &'static str {
    if seen.cores > 1 { "the node on one core, clients and switches on another" } else { "all on one core" }
}

fn claims(seen: &Measured) -> Vec<Claim> {
    let one = placement(seen);
    let mut claims = vec![
        Claim::asked(
            &format!("reads, mixed, {one}"),
            ">= 10,000 a second",
            load_text(&seen.reads),
            seen.reads.per_s >= ASKED_READS_PER_S,
        ),
        Claim::seen("the same, 10,000 a second", load_text(&seen.reads_at_pace)),
        Claim::seen(
            "the same as fast as it goes, while 100 hosts a second change",
            load_text(&seen.reads_with_changes),
        ),
    ];
    claims.extend(
        seen.by_kind.iter().map(|(name, load)| Claim::seen(&format!("reads of {name}"), load_text(load))),
    );
    claims.extend([
        Claim::asked(
            &format!("{} single intents, accepted, {one}", seen.intents),
            ">= 2,000 a second",
            load_text(&seen.intents_accepted),
            seen.intents_accepted.per_s >= ASKED_INTENTS_PER_S,
        ),
        Claim::seen(
            "the same, until all are installed",
            format!("{:.0} a second", seen.intents_installed_per_s),
        ),
        Claim::seen("the same, only northbound on one core", load_text(&seen.intents_with_northbound_alone)),
    ]);
    claims.extend(stream_claims(seen));
    claims
}

fn stream_claims(seen: &Measured) -> Vec<Claim> {
    let (without, with) = (&seen.without_stalled, &seen.with_stalled);
    let ratio = with.p99_ms / without.p99_ms.max(1e-9);
    let [at_rest, with_all, stalled] = seen.bytes.map(|bytes| bytes >> 20);
    vec![
        Claim::seen("a change at all clients of the stream, no client stalls", spread_text(without)),
        Claim::asked(
            &format!("the same, while {} more clients stall", seen.stalled),
            "the others are not slower: p99 <= 1.2 times",
            format!("{}; {ratio:.2} times", spread_text(with)),
            with.clients > 0 && seen.missed > 0 && ratio <= ASKED_STALL_RATIO,
        ),
        Claim::seen(
            "memory of northbound",
            format!(
                "{at_rest} MiB before, {with_all} MiB with all clients, {stalled} MiB when some have stalled"
            ),
        ),
        Claim::seen(
            "clients that stall",
            format!(
                "{} events left out for them after {} changes; {} of {} disconnected {:.0} s later",
                seen.missed, seen.filling_changes, seen.cut, seen.stalled, seen.cut_after_s
            ),
        ),
    ]
}

fn figure(seen: &Measured) -> Figure {
    let rates = [
        ("reads", seen.reads.per_s),
        ("with changes", seen.reads_with_changes.per_s),
        ("single intents", seen.intents_accepted.per_s),
    ];
    let times = [("none stalls", &seen.without_stalled), ("some stall", &seen.with_stalled)];
    let names = |all: Vec<&str>| Scale::Names(all.into_iter().map(str::to_owned).collect());
    let points = |all: Vec<f64>| {
        all.into_iter().enumerate().map(|(place, value)| Point::at(place as f64, value)).collect::<Vec<_>>()
    };
    let rate = Chart {
        x: axis("", names(rates.iter().map(|(name, _)| *name).collect())),
        y: axis("a second", Scale::from_zero(rates.iter().map(|(_, rate)| *rate).chain([ASKED_READS_PER_S]))),
        series: vec![series(
            "Burnet",
            Shape::Bars,
            Style::Ours,
            points(rates.iter().map(|(_, rate)| *rate).collect()),
        )],
        marks: vec![
            ReferenceLine::Horizontal(ASKED_READS_PER_S, "asked of reads".to_owned()),
            ReferenceLine::Horizontal(ASKED_INTENTS_PER_S, "asked of intents".to_owned()),
        ],
    };
    let of = |value: fn(&Spread) -> f64| points(times.iter().map(|(_, spread)| value(spread)).collect());
    let time = Chart {
        x: axis("", names(times.iter().map(|(name, _)| *name).collect())),
        y: axis("milliseconds", Scale::from_zero(times.iter().map(|(_, spread)| spread.p99_ms))),
        series: vec![
            series("median", Shape::Bars, Style::Ours, of(|spread| spread.p50_ms)),
            series("p99", Shape::Bars, Style::Other, of(|spread| spread.p99_ms)),
        ],
        marks: vec![],
    };
    Figure {
        title: "The REST interface on one core".to_owned(),
        panels: vec![
            panel("Requests", Content::Chart(rate)),
            panel("A change at clients of the stream", Content::Chart(time)),
        ],
        notes: vec![format!("Not in the paper: {}.", placement(seen))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let claims = claims(&Measured::default());
        assert!(claims.iter().filter_map(|claim| claim.holds).all(|holds| !holds));
    }

    #[test]
    fn each_intent_is_one_that_the_service_takes() {
        let wan = Wan::new(205, 414, SEED);
        for number in [0, 1, 34, 99_999] {
            let mut body: Value = serde_json::from_str(&intent(&wan, number).body).unwrap();
            let members = body.as_object_mut().unwrap();
            let name = members.remove("name");
            let question = json!({ "op": "add", "name": name, "intent": body });
            assert!(Question::from_bytes(question.to_string().as_bytes()).is_ok(), "{question}");
        }
    }

    #[test]
    fn kinds_of_requests_take_turns() {
        let kinds = targets(&Wan::new(6, 6, 1), 250);
        let all = mixed(&kinds);
        assert_eq!(all.len(), 24);
        assert!(
            all[1].target.contains("hosts?") && all[5].target.ends_with("after=02:00:00:00:00:63"),
            "{}",
            all[5].target
        );
    }
}
