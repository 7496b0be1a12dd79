//! Topologies from files: the Topology Zoo's GraphML and topohub's JSON. The file name's ending decides which.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::graph::{BadText, Graph};
use super::{Topology, graphml, node_link};

/// The largest file that is read. The largest file of the Topology Zoo has less than a megabyte; topohub's world map
/// a little more than one.
pub const FILE_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// A topology that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromFile {
    /// The network.
    pub topology: Topology,
    /// What was omitted or merged, one sentence each.
    pub notes: Vec<String>,
}

/// The error for a file that gives no topology. The operator must correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATopologyFile {
    file: PathBuf,
    line: Option<u32>,
    why: String,
}

impl NotATopologyFile {
    pub(super) fn new(file: &Path, bad: BadText) -> Self {
        NotATopologyFile { file: file.to_owned(), line: bad.line, why: bad.why }
    }
}

impl fmt::Display for NotATopologyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file.display(), self.why),
            None => write!(f, "{}: {}", self.file.display(), self.why),
        }
    }
}

impl std::error::Error for NotATopologyFile {}

impl Topology {
    /// Whether a text names a file and not a shape: it begins with `graphml:` or `json:`, or ends with a file type.
    pub fn is_file(text: &str) -> bool {
        kind(text).is_some()
    }

    /// Reads `FILE.graphml`, `graphml:FILE`, `FILE.json` or `json:FILE`: a switch for each node, with one host each.
    /// `LinkSpeedRaw` becomes a link's rate. With `propagation`, a link's delay is the time that light takes in fibre
    /// between its ends.
    ///
    /// # Errors
    ///
    /// * The file cannot be read, or is larger than [`FILE_MAX_BYTES`].
    /// * It does not have its format (with the line).
    /// * The network is empty, or exceeds [`SWITCHES_MAX`](super::SWITCHES_MAX), [`HOSTS_MAX`](super::HOSTS_MAX) or
    ///   [`LINKS_MAX`](super::LINKS_MAX).
    pub fn from_file(text: &str, propagation: bool) -> Result<FromFile, NotATopologyFile> {
        let (kind, path) = kind(text).unwrap_or((Kind::GraphMl, text));
        let path = Path::new(path);
        let refused = |bad| NotATopologyFile::new(path, bad);
        let text = read(path).map_err(refused)?;
        let graph = kind.parse(&text).map_err(refused)?;
        if let Some(why) = graph.why_not() {
            return Err(refused(BadText { line: None, why }));
        }
        let (topology, notes) = graph.into_topology(propagation);
        Ok(FromFile { topology, notes })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    GraphMl,
    NodeLink,
}

impl Kind {
    fn parse(self, text: &str) -> Result<Graph, BadText> {
        match self {
            Kind::GraphMl => graphml::parse(text),
            Kind::NodeLink => node_link::parse(text),
        }
    }
}

/// The format of the file that a text names, and its path.
fn kind(text: &str) -> Option<(Kind, &str)> {
    let prefixed = |prefix, kind| text.strip_prefix(prefix).map(|path| (kind, path));
    let ends = |ending, kind| text.ends_with(ending).then_some((kind, text));
    prefixed("graphml:", Kind::GraphMl)
        .or_else(|| prefixed("json:", Kind::NodeLink))
        .or_else(|| ends(".graphml", Kind::GraphMl))
        .or_else(|| ends(".json", Kind::NodeLink))
}

fn read(path: &Path) -> Result<String, BadText> {
    let bad = |why: String| BadText { line: None, why };
    let unreadable = |error: std::io::Error| bad(format!("it cannot be read: {error}"));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(bad(format!("it is larger than {FILE_MAX_BYTES} bytes, the limit")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        BadText { line: u32::try_from(line).ok(), why: "it is not in UTF-8".into() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        for text in ["Abilene.graphml", "graphml:x", "json:/tmp/x", "./a,b.json"] {
            assert!(Topology::is_file(text), "{text}");
        }
        for text in ["tree,2", "graphml", "x.xml"] {
            assert!(!Topology::is_file(text), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = Topology::from_file("/nowhere/x.graphml", false).unwrap_err().to_string();
        assert!(refused.starts_with("/nowhere/x.graphml: it cannot be read"), "{refused}");
    }

    #[test]
    fn the_line_that_is_not_in_utf_8_is_said() {
        let path = std::env::temp_dir().join(format!("burnet-latin-1-{}.json", std::process::id()));
        std::fs::write(&path, b"{\n \"M\xfcnchen\": 1}").unwrap();
        let refused = Topology::from_file(&path.display().to_string(), false).unwrap_err();
        std::fs::remove_file(path).unwrap();
        assert!(refused.to_string().ends_with(", line 2: it is not in UTF-8"), "{refused}");
    }
}
