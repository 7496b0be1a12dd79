//! What a probe has seen, as text, so that a later probe of the same switch goes on from there.
//!
//! ```text
//!   records of finished phases ──> Journal ──> text      text ──> Kept ──> the same phases draw the same conclusions
//! ```
//!
//! In: records. Out: lines of text, one for each step. A phase that did not finish is not kept: it is measured again. It never draws a
//! conclusion, and reads no file.

use crate::findings::Description;
use crate::script::{FrameSeen, Outcome, PacketInSeen, Record, Refusal, Reply};
use flow::PortNo;
use std::str::FromStr;

/// Bytes of text that are kept. Phases beyond them are measured again.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
const HEAD: &str = "burnet probe, records 2";
/// Columns of a step.
const COLUMNS: usize = 19;

/// The records of finished phases, as they grow.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    text: String,
    /// The records of the phase that is not finished.
    open: String,
    is_full: bool,
}

/// The records that an earlier probe left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// What must be the same for records to be of use: switch and settings.
    pub subject: String,
    /// The records of each finished phase, in their order.
    pub phases: Vec<Vec<Record>>,
}

/// The line that says whose records these are.
pub fn subject(of: &Description, version: openflow::Version, settings: &str) -> String {
    let Description { manufacturer, hardware, software, datapath_id, .. } = of;
    let line =
        format!("{manufacturer} {hardware} {software} of:{datapath_id:016x}, OpenFlow {version}, {settings}");
    // A line must stay one.
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Journal {
    /// Without records.
    pub fn new(subject: &str) -> Self {
        Journal { text: format!("{HEAD}\n{subject}\n"), ..Journal::default() }
    }

    /// Adds a record of the present phase.
    pub fn note(&mut self, record: &Record) {
        if self.is_full {
            return;
        }
        self.open += &format!("script {} {}\n", record.started_ns, record.ended_ns);
        for outcome in &record.outcomes {
            write_outcome(outcome, &mut self.open);
        }
        self.is_full = self.text.len() + self.open.len() > TEXT_BYTES_MAX;
    }

    /// The present phase is finished.
    pub fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        if !self.is_full {
            self.text += "phase\n";
            self.text += &open;
        }
    }

    /// The present phase was not finished.
    pub fn forget_open(&mut self) {
        self.open.clear();
    }

    /// A phase was left out. What comes behind it is measured again.
    pub fn stop(&mut self) {
        self.open.clear();
        self.is_full = true;
    }

    /// All finished phases.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A number, or `-`.
fn put(number: Option<u64>, out: &mut String) {
    match number {
        Some(number) => *out += &number.to_string(),
        None => out.push('-'),
    }
    out.push(' ');
}

fn write_outcome(of: &Outcome, out: &mut String) {
    let (reply, error, packet, frame) = (of.reply, of.error, of.packet_in, of.frame);
    let columns: [Option<u64>; COLUMNS] = [
        of.sent_ns,
        reply.map(|it| it.at_ns),
        reply.map(|it| u64::from(it.entries)),
        reply.map(|it| it.packets),
        error.map(|it| it.at_ns),
        error.map(|it| u64::from(it.kind)),
        error.map(|it| u64::from(it.code)),
        packet.map(|it| it.at_ns),
        packet.map(|it| it.bytes as u64),
        packet.map(|it| u64::from(it.buffer_id)),
        of.answered_ns,
        frame.map(|it| it.sent_ns),
        frame.map(|it| it.at_ns),
        frame.map(|it| u64::from(it.port.0)),
        of.lost_ns,
        of.fastest_ns,
        Some(u64::from(of.frames.0)),
        Some(u64::from(of.frames.1)),
        of.removed_ns,
    ];
    columns.into_iter().for_each(|column| put(column, out));
    *out += if of.has_ended { "1\n" } else { "0\n" };
}

/// Numbers of one line, one after another.
struct Columns<'a>(std::str::SplitWhitespace<'a>);

impl Columns<'_> {
    fn next<T: FromStr>(&mut self) -> Result<Option<T>, ()> {
        match self.0.next().ok_or(())? {
            "-" => Ok(None),
            number => number.parse().map(Some).map_err(|_| ()),
        }
    }

    fn outcome(mut self) -> Result<Outcome, ()> {
        let sent_ns = self.next()?;
        let (at, entries, packets) = (self.next()?, self.next()?, self.next()?);
        let reply =
            at.zip(entries).zip(packets).map(|((at_ns, entries), packets)| Reply { at_ns, entries, packets });
        let (at, kind, code) = (self.next()?, self.next()?, self.next()?);
        let error = at.zip(kind).zip(code).map(|((at_ns, kind), code)| Refusal { at_ns, kind, code });
        let (at, bytes, buffer) = (self.next()?, self.next()?, self.next()?);
        let packet_in = at.zip(bytes).zip(buffer).map(|((at_ns, bytes), buffer_id)| PacketInSeen {
            at_ns,
            bytes,
            buffer_id,
        });
        let answered_ns = self.next()?;
        let (sent, at, port) = (self.next()?, self.next()?, self.next()?);
        let frame = sent.zip(at).zip(port).map(|((sent_ns, at_ns), port)| FrameSeen {
            sent_ns,
            at_ns,
            port: PortNo(port),
        });
        let (lost_ns, fastest_ns) = (self.next()?, self.next()?);
        let frames = (self.next()?.ok_or(())?, self.next()?.ok_or(())?);
        let removed_ns = self.next()?;
        let has_ended = self.next::<u8>()? == Some(1);
        Ok(Outcome {
            sent_ns,
            reply,
            error,
            packet_in,
            answered_ns,
            frame,
            lost_ns,
            fastest_ns,
            frames,
            removed_ns,
            has_ended,
        })
    }
}

impl Kept {
    /// Reads what [`Journal::text`] wrote.
    ///
    /// # Errors
    /// The line that is none of a journal.
    pub fn parse(text: &str) -> Result<Kept, String> {
        let mut lines = text.lines().zip(1u32..);
        if lines.next().map(|(line, _)| line) != Some(HEAD) {
            return Err(format!("line 1: expected `{HEAD}`"));
        }
        let (subject, _) = lines.next().ok_or("line 2: expected the switch and the settings")?;
        let mut kept = Kept { subject: subject.to_owned(), phases: Vec::new() };
        for (line, number) in lines {
            kept.read(line)
                .ok_or_else(|| format!("line {number}: expected `phase`, `script START END` or a step"))?;
        }
        Ok(kept)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        if line == "phase" {
            self.phases.push(Vec::new());
            return Some(());
        }
        let phase = self.phases.last_mut()?;
        if let Some(times) = line.strip_prefix("script ") {
            let (started, ended) = times.split_once(' ')?;
            let (started_ns, ended_ns) = (started.parse().ok()?, ended.parse().ok()?);
            phase.push(Record { started_ns, ended_ns, outcomes: Vec::new() });
            return Some(());
        }
        phase.last_mut()?.outcomes.push(Columns(line.split_whitespace()).outcome().ok()?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_noted() {
        let full = Outcome {
            sent_ns: Some(1),
            reply: Some(Reply { at_ns: 2, entries: 3, packets: 4 }),
            error: Some(Refusal { at_ns: 5, kind: 6, code: 7 }),
            packet_in: Some(PacketInSeen { at_ns: 8, bytes: 9, buffer_id: u32::MAX }),
            answered_ns: Some(10),
            frame: Some(FrameSeen { sent_ns: 11, at_ns: 12, port: PortNo(2) }),
            lost_ns: Some(10),
            fastest_ns: Some(13),
            frames: (14, 15),
            removed_ns: Some(16),
            has_ended: true,
        };
        let record = Record { started_ns: 7, ended_ns: u64::MAX, outcomes: vec![full, Outcome::default()] };
        let mut journal = Journal::new("a switch");
        journal.note(&record);
        journal.note(&Record::default());
        journal.close();
        journal.note(&record);
        journal.forget_open();
        journal.close();
        let kept = Kept::parse(journal.text()).unwrap();
        let phases = vec![vec![record, Record::default()], Vec::new()];
        assert_eq!(kept, Kept { subject: "a switch".to_owned(), phases });
    }

    #[test]
    fn a_bad_line_is_named() {
        let head = format!("{HEAD}\nx\n");
        for (text, line) in [
            ("", "line 1:"),
            (HEAD, "line 2:"),
            (&format!("{head}script 1 2"), "line 3:"),
            (&format!("{head}phase\n1 2 3"), "line 4:"),
            (&format!("{head}phase\nscript 1 x"), "line 4:"),
            (&format!("{head}phase\nscript 1 2\n- - -"), "line 5:"),
        ] {
            let why = Kept::parse(text).unwrap_err();
            assert!(why.starts_with(line), "{text:?}: {why}");
        }
    }
}
