//! Writes a profile as TOML.
//!
//! In: a profile. Out: text. A default is left out unless its own path has a source.

use super::form::{Form, text_text};
use super::keys::{Need, SCHEMA, Visitor, visit};
use crate::provenance::{Provenance, Sources};
use crate::whole::Profile;
use std::fmt::Write;

struct Writer<'a> {
    text: String,
    sources: &'a Sources,
    /// Path and header of each open table. A header is written before its first value.
    tables: Vec<(String, Option<String>)>,
    /// The paths of the values so far.
    written: Vec<String>,
}

/// The text of a profile, without a base.
pub(super) fn write(profile: &Profile) -> String {
    let mut copy = profile.clone();
    let mut writer = Writer {
        text: format!("schema = {SCHEMA}\n"),
        sources: &profile.sources,
        tables: vec![(String::new(), None)],
        written: Vec::new(),
    };
    visit(&mut copy, &mut writer);
    let mut sources = profile.sources.clone();
    sources.keep_used_by(writer.written.iter().map(String::as_str));
    writer.text.push_str("\n[source]\n");
    for (path, provenance) in sources.iter() {
        let _ = writeln!(writer.text, "{} = {}", text_text(path), provenance_text(provenance));
    }
    writer.text
}

fn provenance_text(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Measured { date, firmware, samples } => {
            let (date, firmware) = (text_text(date), text_text(firmware));
            format!("{{ measured = {date}, firmware = {firmware}, samples = {samples} }}")
        }
        Provenance::Published(text) => format!("{{ published = {} }}", text_text(text)),
        Provenance::Reconstructed(text) => format!("{{ reconstructed = {} }}", text_text(text)),
        Provenance::Assumed(text) => format!("{{ assumed = {} }}", text_text(text)),
    }
}

impl Writer<'_> {
    fn path(&self, key: &str) -> String {
        match self.tables.last() {
            Some((path, _)) if !path.is_empty() => format!("{path}.{key}"),
            _ => key.to_owned(),
        }
    }
}

impl Visitor for Writer<'_> {
    fn value(&mut self, key: &'static str, need: Need, form: &mut dyn Form) {
        let Some(text) = form.written() else { return };
        let path = self.path(key);
        let is_default = matches!(need, Need::Default(default) if default == text);
        if is_default && !self.sources.has(&path) {
            return;
        }
        // The innermost header is enough: it makes the tables around it.
        let headers = self.tables.iter_mut().filter_map(|(_, header)| header.take());
        if let Some(header) = headers.last() {
            self.text.push_str(&header);
        }
        // A text cannot refuse to be written to.
        let _ = writeln!(self.text, "{key} = {text}");
        self.written.push(path);
    }

    fn open(&mut self, key: &'static str, _: Need, there: bool) -> bool {
        if there {
            let path = self.path(key);
            let header = Some(format!("\n[{path}]\n"));
            self.tables.push((path, header));
        }
        there
    }

    fn close(&mut self) {
        self.tables.pop();
    }

    fn list(&mut self, _: &'static str, _: Need, have: usize, _: usize) -> usize {
        have
    }

    fn open_item(&mut self, key: &'static str, _: usize) {
        let path = self.path(key);
        let header = Some(format!("\n[[{path}]]\n"));
        self.tables.push((path, header));
    }
}
