//! Reads the tree of a file into a profile, key by key.
//!
//! In: the tree, and the keys in their order. Out: the faults, and the leaves: each key that has a value, with its place.

use super::form::Form;
use super::keys::{Need, Visitor};
use super::node::{Entry, Kind, Node};
use super::place::Place;
use super::problem::{Fault, Faults};

/// A table that is being read.
struct Frame<'a> {
    table: &'a Node,
    path: String,
    /// The keys that were visited: all others are unknown.
    known: Vec<&'static str>,
}

/// A key that has a value.
pub(super) struct Leaf {
    pub(super) path: String,
    pub(super) at: Place,
    /// Whether it would have the same value without the key.
    pub(super) is_default: bool,
}

pub(super) struct Reader<'a> {
    frames: Vec<Frame<'a>>,
    faults: Faults,
    leaves: Vec<Leaf>,
    /// Keys that exist, of which some are visited only with certain values of others.
    conditional: Vec<String>,
}

impl<'a> Reader<'a> {
    /// `keys` are the paths of all keys.
    pub(super) fn new(root: &'a Node, keys: Vec<String>) -> Self {
        let top = Frame { table: root, path: String::new(), known: Vec::new() };
        Reader { frames: vec![top], faults: Faults::default(), leaves: Vec::new(), conditional: keys }
    }

    /// The faults and the leaves.
    pub(super) fn finish(mut self) -> (Faults, Vec<Leaf>) {
        self.close();
        (self.faults, self.leaves)
    }

    /// The entry of a key in the table that is open.
    fn known(&mut self, key: &'static str) -> Option<&'a Entry> {
        let frame = self.frames.last_mut()?;
        frame.known.push(key);
        frame.table.entries().iter().find(|entry| entry.key == key)
    }

    fn path(&self, key: &str) -> String {
        match self.frames.last() {
            Some(frame) if !frame.path.is_empty() => format!("{}.{key}", frame.path),
            _ => key.to_owned(),
        }
    }

    fn missing(&mut self, key: &str, expected: &str) {
        let at = self.frames.last().map_or_else(Place::default, |frame| frame.table.at);
        self.faults.push(Fault::new(at, &self.path(key), format!("is missing; expected {expected}")));
    }

    fn push(&mut self, table: &'a Node, path: String) {
        self.frames.push(Frame { table, path, known: Vec::new() });
    }
}

impl Visitor for Reader<'_> {
    fn value(&mut self, key: &'static str, need: Need, form: &mut dyn Form) {
        let Some(entry) = self.known(key) else {
            if need == Need::Required {
                self.missing(key, &form.expected());
            }
            return;
        };
        let path = self.path(key);
        if let Err((at, what)) = form.read(&entry.value) {
            self.faults.push(Fault::new(at, &path, what));
        }
        let is_default = match need {
            Need::Default(text) => form.written().as_deref() == Some(text),
            Need::Required | Need::Absent(_) => false,
        };
        self.leaves.push(Leaf { path, at: entry.at, is_default });
    }

    fn open(&mut self, key: &'static str, _: Need, _: bool) -> bool {
        let Some(entry) = self.known(key) else { return false };
        let path = self.path(key);
        if !matches!(entry.value.kind, Kind::Table(_)) {
            let what = format!("is {}; expected a table", entry.value.shown());
            self.faults.push(Fault::new(entry.value.at, &path, what));
            return false;
        }
        self.push(&entry.value, path);
        true
    }

    /// What the visited keys leave over is unknown.
    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        for entry in frame.table.entries() {
            // A file of nothing but unknown keys has many, and each suggestion takes a while.
            if self.faults.is_full() {
                return;
            }
            if !frame.known.contains(&entry.key.as_str()) {
                let path = match frame.path.as_str() {
                    "" => String::new(),
                    path => format!("{path}."),
                };
                let shown = entry.key.chars().take(60).collect::<String>().escape_debug().to_string();
                let path = format!("{path}{shown}");
                let what = if self.conditional.contains(&path) {
                    "does not go with the other values of its table; expected it to be left out".to_owned()
                } else {
                    format!("is an unknown key; expected {}", suggestion(&entry.key, &frame.known))
                };
                self.faults.push(Fault::new(entry.at, &path, what));
            }
        }
    }

    fn list(&mut self, key: &'static str, need: Need, _: usize, max: usize) -> usize {
        let Some(entry) = self.known(key) else {
            if need == Need::Required {
                self.missing(key, &format!("1 to {max} tables [[{}]]", self.path(key)));
            }
            return 0;
        };
        let expected = match need {
            Need::Required => format!("1 to {max} tables"),
            _ => format!("at most {max} tables"),
        };
        let path = self.path(key);
        let what = match &entry.value.kind {
            Kind::List(items) if items.len() > max || (items.is_empty() && need == Need::Required) => {
                format!("has {} items; expected {expected}", items.len())
            }
            Kind::List(items) => match items.iter().find(|item| !matches!(item.kind, Kind::Table(_))) {
                None => return items.len(),
                Some(item) => format!("has {}; expected {expected}", item.shown()),
            },
            _ => format!("is {}; expected {expected}", entry.value.shown()),
        };
        self.faults.push(Fault::new(entry.value.at, &path, what));
        0
    }

    fn open_item(&mut self, key: &'static str, index: usize) {
        let path = self.path(key);
        let item =
            self.frames.last().and_then(|frame| frame.table.get(key)).and_then(|list| match &list.kind {
                Kind::List(items) => items.get(index),
                _ => None,
            });
        if let Some(item) = item {
            self.push(item, path);
        }
    }
}

/// What could have been meant: the nearest key, or all of them.
fn suggestion(written: &str, known: &[&'static str]) -> String {
    let written: Vec<char> = written.chars().take(60).collect();
    let near = known.iter().map(|key| (distance(&written, key), key)).min();
    match near {
        Some((changes, key)) if changes <= 1 + key.len() / 4 => format!("perhaps {key}"),
        _ => format!("one of {}", known.join(", ")),
    }
}

/// How many characters must be changed, added or left out.
fn distance(left: &[char], right: &str) -> usize {
    let mut row: Vec<usize> = (0..=left.len()).collect();
    for (above, right) in right.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, &letter) in left.iter().enumerate() {
            let changed = corner + usize::from(letter != right);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[left.len()]
}
