//! Files by number, and places in them.

/// Where a value is: a file of [`Files`], and a line from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) line: u32,
}

/// The names of the files that were read.
#[derive(Debug, Default)]
pub(super) struct Files {
    names: Vec<String>,
}

impl Files {
    /// Adds a name. Out: its number.
    pub(super) fn add(&mut self, name: &str) -> usize {
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    pub(super) fn name(&self, file: usize) -> &str {
        self.names.get(file).map_or("", String::as_str)
    }
}
