//! The processes of all zones, with their control groups and output.
//!
//! In: what to start, the readiness of pipes. Out: processes, the kernel's ends of their ports, lines of output, and how each
//! process ended. It decides nothing, and never waits.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use contract::ServiceAddress;
use ring::{Port, Sizes};
use zone::cgroup::{NodeGroups, ZoneGroups};

use crate::app::{AppRole, AppSpec};
use crate::channel::Channel;
use crate::children::Child;
use crate::listeners::Listeners;
use crate::output::Output;
use crate::plan::ZoneSetup;
use crate::process_end::ProcessEnd;
use crate::protocol::{PORT_FDS, ToZone};
use crate::record_writer::RecordWriter;
use crate::regions::{Regions, Told};
use crate::zone_channel::ZoneChannel;
use crate::zone_process::{
    LastLines, OUTPUT_BYTES_PER_TURN_MAX, Reported, ZoneProcess, log_zone, print, read_pipe, read_report,
};

/// What is read of an app's output after its end: all that a pipe holds.
const OUTPUT_BYTES_AFTER_END_MAX: usize = 64 << 10;

/// Most bytes of a launcher's report in one turn; what an app can bring about in it is little.
const REPORT_BYTES_PER_TURN_MAX: usize = 4 << 10;

/// One zone to start, and the ports that it gets.
pub(crate) struct ZoneStart<'a> {
    pub(crate) zone: u16,
    pub(crate) generation: u64,
    pub(crate) spec: &'a AppSpec,
    /// Folders that other apps may write.
    pub(crate) others_write: Vec<std::path::PathBuf>,
    /// One port for each worker.
    pub(crate) workers: u16,
    pub(crate) port: Sizes,
}

/// A zone that was started.
pub(crate) struct Begun {
    pub(crate) pid: u32,
    /// The kernel's ends of its ports.
    pub(crate) for_kernel: Vec<OwnedFd>,
    /// Why a service runs without one of its addresses.
    pub(crate) missing: Option<io::Error>,
}

/// How the process of a zone ended, and what it said last.
pub(crate) struct Reaped {
    pub(crate) generation: u64,
    /// An error if the process was lost.
    pub(crate) end: io::Result<ProcessEnd>,
    pub(crate) last_line: Option<String>,
    pub(crate) reported: Reported,
}

pub(crate) struct Zones {
    processes: Vec<ZoneProcess>,
    groups: NodeGroups,
    /// The sockets on which apps accept connections, over all runs of these apps.
    pub(crate) listeners: Listeners,
    /// The shared memory of services.
    regions: Regions,
    /// Groups of zones that are over, in which somebody was still ending. Each turn they are tried again; there are no more of them than
    /// processes that Linux is taking away.
    left_groups: Vec<ZoneGroups>,
    /// The zone that was reaped last, until its end is handled: its app, generation and last lines.
    reaped: Option<(String, u64, LastLines)>,
}

impl Zones {
    /// No process yet. Makes the control groups that this node may make.
    pub(crate) fn new() -> Zones {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let groups =
            NodeGroups::find(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), std::process::id());
        Zones {
            processes: Vec::new(),
            groups: groups.make(),
            listeners: Listeners::default(),
            regions: Regions::default(),
            left_groups: Vec::new(),
            reaped: None,
        }
    }

    /// Starts a process.
    pub(crate) fn start(
        &mut self,
        start: ZoneStart<'_>,
        program: impl FnOnce(&AppSpec, &ZoneSetup) -> Vec<OsString>,
    ) -> io::Result<Begun> {
        let ZoneStart { zone, generation, spec, others_write, workers, port } = start;
        let app = spec.name.clone();
        let addresses = &spec.sandbox.net.listen;
        let (listeners, missing) = match spec.role {
            // An app without its addresses is of no use, and does not start. The node needs its services.
            AppRole::App => (addresses.iter().zip(self.listeners.of(&app, addresses)?).collect(), None),
            AppRole::Service => self.listeners.of_service(&app, addresses, &listen_key(&app)),
        };
        let ports: Vec<Port> = (0..workers).map(|_| Port::create(port)).collect::<io::Result<_>>()?;
        let (for_kernel, for_app): (Vec<_>, Vec<_>) =
            ports.into_iter().map(|port| (port.kernel.into_array(), port.app.into_array())).unzip();
        let (channel, theirs) = Channel::pair()?;
        let bytes = spec.regions.writes_bytes;
        let region = (bytes > 0).then(|| self.regions.create(&app, generation, bytes)).transpose()?;
        // Sent before there is a process: it waits in the socket.
        let fds = ZoneFds { ports: for_app.into_iter().flatten().collect(), listeners, region };
        welcome(&channel, zone, generation, spec, &fds)?;
        let mut channel = ZoneChannel::new(channel);
        let mut told = Told::of(&spec.regions.reads);
        self.regions.tell(&mut told, |message, fd| channel.tell_app(message, fd));
        let (pipe, output) = io::pipe()?;
        let (report_pipe, report) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        rustix::io::ioctl_fionbio(&report_pipe, true)?;
        let (groups, gaps) = self.groups.zone(&format!("{app}.{generation}"), &spec.limits);
        let setup = ZoneSetup { cgroups: groups.folders().to_vec(), gaps, others_write };
        let child = Child::start_zone(&program(spec, &setup), theirs, output.into(), report.into())?;
        let pid = child.pid();
        self.processes.push(ZoneProcess {
            zone,
            generation,
            app,
            child,
            channel,
            told,
            pipe: Some(pipe),
            output: Output::default(),
            last_lines: LastLines::default(),
            report_pipe: Some(report_pipe),
            report: Output::default(),
            groups,
        });
        Ok(Begun { pid, for_kernel: for_kernel.into_iter().flatten().collect(), missing })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ZoneProcess> {
        self.processes.iter()
    }

    pub(crate) fn of(&mut self, zone: u16) -> Option<&mut ZoneProcess> {
        self.processes.iter_mut().find(|process| process.zone == zone)
    }

    /// The process of this start of an app.
    pub(crate) fn of_app(&mut self, app: &str, generation: u64) -> Option<&mut ZoneProcess> {
        self.processes.iter_mut().find(|it| it.app == app && it.generation == generation)
    }

    pub(crate) fn read_output(&mut self, zone: u16, now_ms: u64, writer: &mut RecordWriter) {
        if let Some(process) = self.of(zone) {
            read_pipe(process, OUTPUT_BYTES_PER_TURN_MAX, now_ms, writer);
        }
    }

    pub(crate) fn read_report(&mut self, zone: u16, now_ms: u64) -> Reported {
        let process = self.of(zone);
        process.map(|process| read_report(process, REPORT_BYTES_PER_TURN_MAX, now_ms)).unwrap_or_default()
    }

    /// Reaps the process if it has ended, and reads the rest of its output.
    pub(crate) fn reap(&mut self, zone: u16, now_ms: u64, writer: &mut RecordWriter) -> Option<Reaped> {
        let index = self.processes.iter().position(|process| process.zone == zone)?;
        let end = self.processes[index].child.ended().transpose()?;
        let mut process = self.processes.swap_remove(index);
        let reported = read_report(&mut process, OUTPUT_BYTES_AFTER_END_MAX, now_ms);
        read_pipe(&mut process, OUTPUT_BYTES_AFTER_END_MAX, now_ms, writer);
        let (lines, said) = std::mem::take(&mut process.output).finish();
        lines.iter().for_each(|line| print(&mut process, line, writer));
        let (lines, last_reported) = std::mem::take(&mut process.report).finish();
        lines.iter().for_each(|line| log_zone(&process.app, line));
        if !process.groups.remove() {
            self.left_groups.push(std::mem::take(&mut process.groups));
        }
        let generation = process.generation;
        self.regions.on_end(&process.app, generation);
        self.reaped = Some((process.app, generation, process.last_lines));
        // If there was no app to say anything, the launcher says why.
        Some(Reaped { generation, end, last_line: said.or(last_reported), reported })
    }

    /// What this start of an app printed last, if it runs or was reaped just now.
    pub(crate) fn last_lines(&self, app: &str, generation: u64) -> Vec<String> {
        let same = |name: &str, other| name == app && generation == other;
        let alive = self.processes.iter().find(|process| same(&process.app, process.generation));
        let reaped = self.reaped.as_ref().filter(|(app, generation, _)| same(app, *generation));
        let lines = alive.map(|process| &process.last_lines).or(reaped.map(|(.., lines)| lines));
        lines.map(|lines| lines.0.iter().cloned().collect()).unwrap_or_default()
    }

    /// The size of all shared memory of services that an app reads or writes.
    pub(crate) fn region_bytes(&self, spec: &AppSpec) -> u64 {
        let reads = spec.regions.reads.iter().map(String::as_str);
        let own = (spec.regions.writes_bytes > 0).then_some(spec.name.as_str());
        reads.chain(own).map(|service| self.regions.bytes_of(service)).sum()
    }

    /// Hands the regions of services to the apps that may read them.
    pub(crate) fn share_regions<'s>(&mut self, spec: impl Fn(u16) -> Option<&'s AppSpec>) {
        self.regions.look();
        for ZoneProcess { told, channel, zone, .. } in &mut self.processes {
            Told::add(told, spec(*zone).map_or(&[][..], |spec| spec.regions.reads.as_slice()));
            self.regions.tell(told, |message, fd| channel.tell_app(message, fd));
        }
    }

    /// Logs how many lines were left out, and removes the groups of zones that are over.
    pub(crate) fn tick(&mut self, now_ms: u64, writer: &mut RecordWriter) {
        for process in &mut self.processes {
            if let Some(line) = process.output.tick(now_ms) {
                print(process, &line, writer);
            }
            if let Some(line) = process.report.tick(now_ms) {
                log_zone(&process.app, &line);
            }
        }
        self.left_groups.retain_mut(|groups| !groups.remove());
    }

    /// The latest time for the next [`Zones::tick`].
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        self.processes.iter().filter_map(|process| process.output.next_wake_ms()).min()
    }
}

impl Drop for Zones {
    fn drop(&mut self) {
        let groups = self.processes.iter_mut().map(|process| &mut process.groups);
        for groups in groups.chain(&mut self.left_groups) {
            // A group with a process that is still ending stays; the next node removes it.
            let _ = groups.remove();
        }
        self.groups.remove();
    }
}

/// Where the operator writes the addresses of a service.
pub(crate) fn listen_key(service: &str) -> String {
    format!("listen in [network.{service}]")
}

/// What the welcome message brings.
struct ZoneFds<'a> {
    ports: Vec<OwnedFd>,
    listeners: Vec<(&'a ServiceAddress, BorrowedFd<'a>)>,
    /// The region that a service writes.
    region: Option<OwnedFd>,
}

fn welcome(
    channel: &Channel,
    zone: u16,
    generation: u64,
    spec: &AppSpec,
    fds: &ZoneFds<'_>,
) -> io::Result<()> {
    let ZoneFds { ports, listeners, region } = fds;
    let welcome = ToZone::Welcome {
        zone,
        app: spec.name.clone(),
        generation,
        limits: spec.limits.clone(),
        settings: spec.settings.clone(),
        ports: u16::try_from(ports.len() / PORT_FDS).map_err(io::Error::other)?,
        listeners: listeners.iter().map(|(address, _)| address.to_string()).collect(),
        writes_region: region.is_some(),
    };
    let region = region.iter().map(AsFd::as_fd);
    let fds: Vec<_> = ports
        .iter()
        .map(AsFd::as_fd)
        .chain(listeners.iter().map(|(_, socket)| *socket))
        .chain(region)
        .collect();
    channel.try_send(&welcome, &fds).map_err(io::Error::other)
}
