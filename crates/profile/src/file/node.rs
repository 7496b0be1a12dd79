//! A TOML text as a tree in which each value knows its file and line.
//!
//! In: texts. Out: trees, of which one can be laid over another. It knows no key of a profile.

use super::place::{Files, Place};
use super::problem::Fault;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Size of a profile's text. The largest tables of all delays have a quarter of it.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Keys of a table: keys are searched one after another. The largest table that a profile can have is `[source]`.
const KEYS_MAX: usize = 1000;

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Text(String),
    Integer(i64),
    Float(f64),
    Truth(bool),
    /// A date, or an integer that is too large.
    Other(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The place of the key.
    pub(super) at: Place,
    pub(super) value: Node,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) kind: Kind,
}

/// Reads a text, which becomes the next of the files.
pub(super) fn parse(files: &mut Files, name: &str, text: &str) -> Result<Node, Fault> {
    let file = files.add(name);
    let first = Place { file, line: 1 };
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the file has {} bytes; expected at most {TEXT_BYTES_MAX}", text.len());
        return Err(Fault::new(first, "", what));
    }
    let lines = Lines::new(file, text);
    match DeTable::parse(text) {
        Ok(table) => Ok(Node { at: first, kind: Kind::Table(lines.entries(table.get_ref(), first)?) }),
        Err(error) => {
            let at = lines.place(error.span().map_or(0, |span| span.start));
            Err(Fault::new(at, "", format!("TOML: {}", error.message().trim_end().replace('\n', "; "))))
        }
    }
}

/// Converts positions to lines.
struct Lines {
    file: usize,
    ends: Vec<usize>,
}

impl Lines {
    fn new(file: usize, text: &str) -> Self {
        Lines { file, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    fn place(&self, position: usize) -> Place {
        let before = self.ends.partition_point(|&end| end < position);
        Place { file: self.file, line: u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1) }
    }

    fn entries(&self, table: &DeTable<'_>, at: Place) -> Result<Vec<Entry>, Fault> {
        if table.len() > KEYS_MAX {
            let what = format!("a table has {} keys; expected at most {KEYS_MAX}", table.len());
            return Err(Fault::new(at, "", what));
        }
        let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let at = self.place(key.span().start);
            Ok(Entry { key: key.get_ref().to_string(), at, value: self.node(value)? })
        };
        table.iter().map(entry).collect()
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, Fault> {
        let at = self.place(value.span().start);
        let kind = match value.get_ref() {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Kind::Other(number.to_string()), Kind::Integer),
            DeValue::Float(number) => {
                number.as_str().parse().map_or_else(|_| Kind::Other(number.to_string()), Kind::Float)
            }
            DeValue::Boolean(truth) => Kind::Truth(*truth),
            DeValue::Datetime(date) => Kind::Other(date.to_string()),
            DeValue::Array(items) => {
                Kind::List(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Kind::Table(self.entries(table, at)?),
        };
        Ok(Node { at, kind })
    }
}

impl Node {
    /// The entries, if it is a table.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The place of a value, or of the nearest table around it.
    pub(super) fn place_of(&self, path: &str) -> Place {
        let mut here = self;
        for key in path.split('.') {
            match here.get(key) {
                Some(next) => here = next,
                None => break,
            }
        }
        here.at
    }

    /// Takes a key out.
    pub(super) fn take(&mut self, key: &str) -> Option<Node> {
        let Kind::Table(entries) = &mut self.kind else { return None };
        let index = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(index).value)
    }

    /// Takes out what a path leads to. False if there is nothing.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        match path.split_once('.') {
            None => self.take(path).is_some(),
            Some((first, rest)) => {
                let Kind::Table(entries) = &mut self.kind else { return false };
                let inner = entries.iter_mut().find(|entry| entry.key == first);
                inner.is_some_and(|entry| entry.value.remove(rest))
            }
        }
    }

    /// Lays another table over this one: its tables over the tables here, its other values in place of the values here.
    pub(super) fn lay_over(&mut self, over: Node) {
        let (Kind::Table(entries), true) = (&mut self.kind, matches!(over.kind, Kind::Table(_))) else {
            *self = over;
            return;
        };
        self.at = over.at;
        let Kind::Table(new) = over.kind else { return };
        for entry in new {
            match entries.iter_mut().find(|here| here.key == entry.key) {
                Some(here) => {
                    here.at = entry.at;
                    here.value.lay_over(entry.value);
                }
                None => entries.push(entry),
            }
        }
    }

    pub(super) fn integer(&self) -> Option<i64> {
        match self.kind {
            Kind::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// A number, with or without a fraction.
    pub(super) fn number(&self) -> Option<f64> {
        match self.kind {
            // Up to 2^53 exact, far above every range.
            Kind::Integer(number) => Some(number as f64),
            Kind::Float(number) => Some(number),
            _ => None,
        }
    }

    /// A text, or the fault that it is none.
    pub(super) fn text(&self, key: &str) -> Result<&str, Fault> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(Fault::new(self.at, key, format!("is {}; expected a text in quotes", self.shown()))),
        }
    }

    /// A list, or the fault that it is none.
    pub(super) fn list(&self, key: &str) -> Result<&[Node], Fault> {
        match &self.kind {
            Kind::List(items) => Ok(items),
            _ => Err(Fault::new(self.at, key, format!("is {}; expected a list", self.shown()))),
        }
    }

    /// The value as a message shows it: short.
    pub(super) fn shown(&self) -> String {
        match &self.kind {
            Kind::Text(text) if text.chars().count() > 40 => {
                format!("{:?}", text.chars().take(40).chain(['…']).collect::<String>())
            }
            Kind::Text(text) => format!("{text:?}"),
            Kind::Integer(number) => number.to_string(),
            Kind::Float(number) => number.to_string(),
            Kind::Truth(truth) => truth.to_string(),
            Kind::Other(text) => text.chars().take(40).collect(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Table(_) => "a table".to_owned(),
        }
    }
}
