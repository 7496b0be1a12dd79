//! The process of one zone, its output, and the report of its launcher.
//!
//! In: the ends of its pipes. Out: lines for the log, for the app's own log and for incidents; the launcher's report. It
//! decides nothing, and reads a bounded amount in each turn.

use std::collections::VecDeque;
use std::io::{self, Read};

use zone::cgroup::ZoneGroups;
use zone::{Denied, NotEnforced};

use crate::app::legible;
use crate::children::Child;
use crate::clock::{now_ms, unix_ms_at_zero};
use crate::incident::LAST_LINES_MAX;
use crate::output::{Output, ZONE_REMARK};
use crate::record_writer::RecordWriter;
use crate::regions::Told;
use crate::supervisor::{ChildId, SupervisorEvent};
use crate::zone_channel::ZoneChannel;

/// Most bytes of one app's output in one turn.
pub(crate) const OUTPUT_BYTES_PER_TURN_MAX: usize = 16 << 10;

/// Longest line of an app's output in an incident, in bytes; what is longer is cut there.
const INCIDENT_LINE_BYTES_MAX: usize = 500;

pub(crate) struct ZoneProcess {
    pub(crate) zone: u16,
    pub(crate) generation: u64,
    pub(crate) app: String,
    pub(crate) child: Child,
    /// The socket to the zone; only what a service says is read from it.
    pub(crate) channel: ZoneChannel,
    /// What the app was told of the shared memory of services.
    pub(crate) told: Vec<Told>,
    pub(crate) pipe: Option<io::PipeReader>,
    pub(crate) output: Output,
    pub(crate) last_lines: LastLines,
    /// Of the launcher; an app has no hand on it.
    pub(crate) report_pipe: Option<io::PipeReader>,
    pub(crate) report: Output,
    pub(crate) groups: ZoneGroups,
}

/// What an app printed last, for its incidents: at most [`LAST_LINES_MAX`] lines of [`INCIDENT_LINE_BYTES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct LastLines(pub(crate) VecDeque<String>);

impl LastLines {
    pub(crate) fn push(&mut self, line: &str) {
        if self.0.len() >= LAST_LINES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(legible(line, INCIDENT_LINE_BYTES_MAX));
    }
}

pub(crate) fn read_pipe(process: &mut ZoneProcess, bytes_max: usize, now_ms: u64, writer: &mut RecordWriter) {
    let lines = read_lines(&mut process.pipe, &mut process.output, bytes_max, now_ms);
    lines.iter().for_each(|line| print(process, line, writer));
}

/// A line of an app goes into the log, into the app's own, and is remembered for its incidents.
pub(crate) fn print(process: &mut ZoneProcess, line: &str, writer: &mut RecordWriter) {
    log_output(&process.app, line);
    process.last_lines.push(line);
    writer.line(&process.app, process.generation, unix_ms_at_zero().saturating_add(now_ms()), line);
}

/// What a launcher said in one turn.
#[derive(Default)]
pub(crate) struct Reported {
    pub(crate) gaps: Vec<SupervisorEvent>,
    /// Its app, and the operation that was refused.
    pub(crate) denied: Vec<(String, Denied)>,
}

/// What the launcher says: the supervisor learns of a gap, everything else is logged, and what it denied the app is recorded too.
pub(crate) fn read_report(process: &mut ZoneProcess, bytes_max: usize, now_ms: u64) -> Reported {
    let who = ChildId::Zone { zone: process.zone, generation: process.generation };
    let mut reported = Reported::default();
    for line in read_lines(&mut process.report_pipe, &mut process.report, bytes_max, now_ms) {
        let remark = line.strip_prefix(ZONE_REMARK).unwrap_or_default();
        if let Ok(gap) = serde_json::from_str::<NotEnforced>(remark) {
            reported.gaps.push(SupervisorEvent::NotEnforced { who, gap });
        } else if let Ok(denied) = serde_json::from_str::<Denied>(remark) {
            log_zone(&process.app, &denied.to_string());
            reported.denied.push((process.app.clone(), denied));
        } else {
            log_zone(&process.app, &line);
        }
    }
    reported
}

fn read_lines(
    from: &mut Option<io::PipeReader>,
    output: &mut Output,
    bytes_max: usize,
    now_ms: u64,
) -> Vec<String> {
    let mut bytes = [0; OUTPUT_BYTES_PER_TURN_MAX];
    let mut left = bytes_max;
    let mut lines = Vec::new();
    while let Some(pipe) = from.as_mut().filter(|_| left > 0) {
        let room = left.min(bytes.len());
        match pipe.read(&mut bytes[..room]) {
            Ok(0) => *from = None,
            Ok(count) => {
                left -= count;
                lines.extend(output.push(&bytes[..count], now_ms));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Nothing more now, or nothing more ever; the pidfd tells which.
            Err(_) => break,
        }
    }
    lines
}

fn log_output(app: &str, line: &str) {
    tracing::info!(target: "app", "{app}: {line}");
}

pub(crate) fn log_zone(app: &str, line: &str) {
    let line = line.strip_prefix(ZONE_REMARK).unwrap_or(line);
    tracing::warn!(target: "zone", "{app}: {line}");
}
