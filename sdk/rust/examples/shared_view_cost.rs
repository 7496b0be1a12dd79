//! Measures the view in shared memory beside a copy of it in each app: memory of the apps, and time of a read.
//!
//! ```text
//!   cargo run --release -p burnet-sdk --example shared_view_cost
//! ```
//!
//! In: nothing. Out: lines with figures. Each app is a process of its own. It starts no node.

use burnet_sdk::view::{
    Annotations, ConnectPoint, Host, HostId, Key, Kind, Link, LinkId, LinkKind, LinkState, Object, Port,
    Record, Snapshot, Stamp, Switch, SwitchState, Tables,
};
use burnet_sdk::{DatapathId, MacAddr, PortNo, SharedView, region_told, region_written};
use monitor_channel::protocol::ToZone;
use ring::region::{create_region, reading_end};
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Instant;
use zone::region::Region;

/// The network of the experiment: that of the ONOS paper, with hosts.
const SWITCHES: u64 = 205;
const LINKS: u64 = 414;
const HOSTS: u32 = 10_000;
const APPS: usize = 10;
const READS: u32 = 200_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [role, discovery, hosts] => app(role, [discovery, hosts]),
        _ => measure(),
    }
}

fn record(object: Object) -> Record {
    Record { stamp: Stamp { term: 1_764_063_000_000, sequence: 12_345, origin: 0 }, object }
}

/// The port of a switch on which its link with this number is.
fn port_of(switch: u64, number: u64) -> ConnectPoint {
    let port = u32::try_from(number % LINKS + 1).unwrap_or(1);
    ConnectPoint { switch: DatapathId(switch % SWITCHES + 1), port: PortNo(port) }
}

fn links() -> impl Iterator<Item = LinkId> {
    let links = (0..LINKS).map(|number| LinkId {
        from: port_of(number, number),
        to: port_of(number + 1 + number / SWITCHES, number),
    });
    links.flat_map(|link| [link, link.reversed()])
}

fn host_id(number: u32) -> HostId {
    HostId { mac: MacAddr::from_u64(0x0200_0000_0000 + u64::from(number)), vlan: None }
}

/// All objects, each after what it needs.
fn network() -> Vec<Record> {
    let description = [("manufacturer", "Burnet"), ("hardware", "software switch"), ("serial_number", "1")];
    let description = description.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let switches = (1..=SWITCHES).map(|id| {
        Object::Switch(Switch {
            id: DatapathId(id),
            state: SwitchState::Up,
            openflow: "1.3".to_owned(),
            n_tables: 8,
            n_buffers: 0,
            description: description.clone().into(),
            since_ms: 1_764_063_000_000,
            annotations: Annotations::new(),
        })
    });
    let port = |id: ConnectPoint| {
        Object::Port(Port {
            id,
            name: format!("s{}-eth{}", id.switch.0, id.port.0),
            mac: MacAddr::from_u64(u64::from(id.port.0)),
            live: true,
            enabled: true,
            speed_kbps: 10_000_000,
            annotations: Annotations::new(),
        })
    };
    let edge = |number: u32| ConnectPoint {
        switch: DatapathId(u64::from(number) % SWITCHES + 1),
        port: PortNo(1_000 + number / u32::try_from(SWITCHES).unwrap_or(1)),
    };
    let ports = links().map(|link| link.from).chain((0..HOSTS).map(edge)).map(port);
    let links = links().map(|id| {
        Object::Link(Link {
            id,
            found: LinkKind::Direct,
            state: LinkState::Up,
            capacity_kbps: 10_000_000,
            latency_us: Some(120),
            since_ms: 1_764_063_000_000,
            annotations: Annotations::new(),
        })
    });
    let hosts = (0..HOSTS).map(|number| {
        Object::Host(Host {
            id: host_id(number),
            addresses: vec![Ipv4Addr::from(0x0a00_0000 + number).into()],
            at: edge(number),
            since_ms: 1_764_063_000_000,
            configured: false,
            annotations: Annotations::new(),
        })
    });
    switches.chain(ports).chain(links).chain(hosts).map(record).collect()
}

fn copy() -> Snapshot {
    let mut tables = Tables::new();
    tables.replace(Kind::ALL, network());
    tables.snapshot()
}

/// Memory of this process in KiB that it shares with nobody, and its part of what it shares.
fn memory_kib() -> Result<(u64, u64)> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let of = |name: &str| {
        let lines = rollup.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
    };
    Ok((of("Private_Dirty:") + of("Private_Clean:"), of("Pss:")))
}

/// An app that reads each object once, and then waits to be asked for its memory, so that all of them share.
fn app(role: &str, regions: [&str; 2]) -> Result<()> {
    let kept: Option<Snapshot> = (role == "copy").then(copy);
    let view = if role == "region" { attach(regions)? } else { SharedView::default() };
    if role == "region" {
        for number in 0..HOSTS {
            black_box(view.host(host_id(number))?);
        }
        for link in links() {
            black_box(view.link(link)?);
        }
    }
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let (private, part) = memory_kib()?;
    println!("{private} {part}");
    std::io::stdin().read_line(&mut String::new())?;
    black_box((&kept, &view));
    Ok(())
}

fn attach(paths: [&str; 2]) -> Result<SharedView> {
    let mut view = SharedView::default();
    for (service, path) in ["discovery", "hosts"].into_iter().zip(paths) {
        let fd: OwnedFd = File::open(path)?.into();
        let message = ToZone::Region { service: service.to_owned(), is_written: true };
        view.on_region(region_told(message, vec![fd])?.ok_or("no region")?);
    }
    Ok(view)
}

fn measure() -> Result<()> {
    let regions = [create_region(8 << 20)?, create_region(16 << 20)?];
    let paths = regions.each_ref().map(|fd| format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()));
    let mut writers = Vec::new();
    for fd in &regions {
        let Region::Writes(writer) = region_written(fd)? else { return Err("it is not written".into()) };
        writers.push(writer);
    }
    let records = network();
    let mut bytes = 0;
    for record in &records {
        let writer = &mut writers[usize::from(record.object.key().kind() == Kind::Host)];
        let (key, value) = (record.object.key().to_string(), record.to_bytes());
        bytes += key.len() + value.len();
        if !writer.put(key.as_bytes(), &value) {
            return Err(format!("no room for {key}").into());
        }
    }
    writers.iter_mut().for_each(|writer| writer.settle());
    println!("{} objects, {bytes} bytes of keys and records", records.len());
    for fd in &regions {
        let blocks = File::from(reading_end(fd.as_fd())?).metadata()?;
        println!("a region of {} KiB has {} KiB of memory", blocks.len() / 1_024, {
            use std::os::unix::fs::MetadataExt;
            blocks.blocks() / 2
        });
    }
    for role in ["nothing", "region", "copy"] {
        memory_of(role, &paths)?;
    }
    times(&attach([&paths[0], &paths[1]])?)
}

fn memory_of(role: &str, paths: &[String; 2]) -> Result<()> {
    use std::io::{BufRead, BufReader, Write};
    let mut apps = Vec::new();
    for _ in 0..APPS {
        let this = std::env::current_exe()?;
        let mut app =
            Command::new(this).arg(role).args(paths).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(app.stdout.take().ok_or("no output")?);
        out.read_line(&mut String::new())?;
        apps.push((app, out));
    }
    let (mut private, mut part) = (0, 0);
    for (app, out) in &mut apps {
        app.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        let mut line = String::new();
        out.read_line(&mut line)?;
        let mut figures = line.split_whitespace().filter_map(|figure| figure.parse::<u64>().ok());
        private += figures.next().ok_or("no figure")?;
        part += figures.next().ok_or("no figure")?;
    }
    for (mut app, _) in apps {
        drop(app.stdin.take());
        app.wait()?;
    }
    let of = APPS as u64;
    println!("{APPS} apps with {role}: each {} KiB of its own; all together {part} KiB", private / of);
    Ok(())
}

fn times(view: &SharedView) -> Result<()> {
    let snapshot = copy();
    let link = links().next().ok_or("no link")?;
    let time = |what: &str, read: &mut dyn FnMut(u32)| {
        let began = Instant::now();
        (0..READS).for_each(&mut *read);
        println!("{what}: {} ns", began.elapsed().as_nanos() / u128::from(READS));
    };
    time("a host in the copy", &mut |n| _ = black_box(snapshot.host(host_id(n * 7 % HOSTS))));
    time("a host in shared memory", &mut |n| drop(black_box(view.host(host_id(n * 7 % HOSTS)))));
    time("a link in the copy", &mut |_| _ = black_box(snapshot.link(link)));
    time("a link in shared memory", &mut |_| drop(black_box(view.link(link))));
    time("no such host in shared memory", &mut |n| drop(black_box(view.host(host_id(HOSTS + n)))));
    time("the version", &mut |_| _ = black_box(view.version(Kind::Host)));
    let began = Instant::now();
    let all = view.records(&[Kind::Host])?.len();
    println!("all {all} hosts as of one moment: {} us", began.elapsed().as_micros());
    black_box(view.get(Key::Link(link))?);
    Ok(())
}
