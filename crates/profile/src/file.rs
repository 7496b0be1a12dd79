//! The file of a profile: TOML that people read and write, and that a probe writes.
//!
//! ```text
//!   text ──> Node (keys, values, lines) ──> over its base ──> keys::visit with the Reader ──> checks ──> Profile
//!   Profile ──> keys::visit with the Writer ──> text ──> read again, so that what is written can be read
//! ```
//!
//! In: the file's name and text, and the texts of bases. Out: a profile, or all faults with file and line. It opens no file.

mod check;
mod form;
mod keys;
mod listing;
mod node;
mod origin;
mod place;
mod problem;
mod reader;
mod writer;

pub use keys::SCHEMA;
pub use listing::{KeyNeed, KnownKey};
pub use node::TEXT_BYTES_MAX;
pub use problem::{BadProfile, PROBLEMS_MAX, Problem};

use crate::quantiles::Quantiles;
use crate::whole::Profile;
use node::Node;
use place::{Files, Place};
use problem::Fault;
use reader::Reader;

/// How many profiles may be based on one another.
pub const BASES_MAX: usize = 4;

/// Finds the text of a base: its name goes in, the text comes out.
pub type Bases<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// Keys that belong to the file and not to the profile.
const OF_THE_FILE: [&str; 4] = ["schema", "based_on", "without", "source"];

impl Profile {
    /// Reads a profile. `file` is its name in messages. `bases` finds the profiles that it is based on.
    ///
    /// # Errors
    /// Up to [`PROBLEMS_MAX`] faults, each with its file and line.
    pub fn from_toml(file: &str, text: &str, bases: Bases<'_>) -> Result<Self, BadProfile> {
        let mut files = Files::default();
        let failed = |files: &Files, fault: Fault| BadProfile::new(files, vec![fault], 0);
        let root = match with_bases(&mut files, file, text, bases) {
            Ok(root) => root,
            Err(fault) => return Err(failed(&files, fault)),
        };
        let mut reader =
            Reader::new(&root.tree, listing::known_keys().into_iter().map(|key| key.path).collect());
        let mut profile = Profile::default();
        keys::visit(&mut profile, &mut reader);
        let (mut faults, leaves) = reader.finish();
        if faults.is_empty() {
            check::check(&profile, &root.tree, &mut faults);
        }
        let sources = origin::origins(&leaves, &root.sources, &mut faults);
        let mut problems = faults.into_vec();
        if problems.is_empty() {
            profile.sources = sources;
            return Ok(profile);
        }
        problems.sort_by_key(|fault| (fault.at.file, fault.at.line));
        let left_out = problems.len().saturating_sub(PROBLEMS_MAX);
        problems.truncate(PROBLEMS_MAX);
        Err(BadProfile::new(&files, problems, left_out))
    }

    /// Writes the profile, without a base. Reading the text gives the same profile, except for sources that lead to no value.
    ///
    /// # Errors
    /// What a reader would find wrong with it: a value without a source, or out of its range.
    pub fn to_toml(&self) -> Result<String, BadProfile> {
        let text = writer::write(self);
        Profile::from_toml(&self.name, &text, &|_| None)?;
        Ok(text)
    }
}

/// A tree over its bases, with the sources of each file.
struct Layered {
    tree: Node,
    sources: Vec<origin::FileSources>,
}

/// Reads a text and lays it over the profile that it is based on, and that over its own base.
fn with_bases(files: &mut Files, file: &str, text: &str, bases: Bases<'_>) -> Result<Layered, Fault> {
    let mut layers = Vec::new();
    let mut sources = Vec::new();
    let mut next = Some((file.to_owned(), text));
    while let Some((file, text)) = next.take() {
        let mut tree = node::parse(files, &file, text)?;
        let head = Head::take(&mut tree, layers.is_empty())?;
        sources.push(head.sources);
        if let Some((base, at)) = head.based_on {
            if layers.len() + 1 > BASES_MAX {
                let what = format!("is based on more than {BASES_MAX} profiles, one on the other");
                return Err(Fault::new(at, "based_on", what));
            }
            let Some(text) = bases(&base) else {
                return Err(Fault::new(at, "based_on", format!("names no known profile: {base:?}")));
            };
            next = Some((base, text));
        }
        layers.push((tree, head.without));
    }
    let mut layers = layers.into_iter().rev();
    let Some((mut tree, _)) = layers.next() else { return Err(Fault::default()) };
    for (over, without) in layers {
        for (path, at) in without {
            if !tree.remove(&path) {
                return Err(Fault::new(
                    at,
                    "without",
                    format!("names {path:?}, which the base does not have"),
                ));
            }
        }
        tree.lay_over(over);
    }
    Ok(Layered { tree, sources })
}

/// The keys of a file that are not the profile's.
struct Head {
    based_on: Option<(String, Place)>,
    without: Vec<(String, Place)>,
    sources: origin::FileSources,
}

impl Head {
    /// Takes them out of the tree. A base keeps neither its own name nor its sentence for a profile that is based on it.
    fn take(tree: &mut Node, first: bool) -> Result<Head, Fault> {
        let mut taken = OF_THE_FILE.map(|key| tree.take(key));
        check_schema(tree, taken[0].take())?;
        let based_on = match taken[1].take() {
            Some(node) => Some((node.text("based_on")?.to_owned(), node.at)),
            None => None,
        };
        let mut without = Vec::new();
        if let Some(node) = taken[2].take() {
            if based_on.is_none() {
                return Err(Fault::new(node.at, "without", "is given without based_on".to_owned()));
            }
            for item in node.list("without")? {
                without.push((item.text("without")?.to_owned(), item.at));
            }
        }
        let sources = origin::FileSources::read(taken[3].take())?;
        if !first {
            // Each profile has its own.
            tree.take("name");
            tree.take("about");
            tree.take("measurement");
        }
        Ok(Head { based_on, without, sources })
    }
}

fn check_schema(tree: &Node, schema: Option<Node>) -> Result<(), Fault> {
    let Some(schema) = schema else {
        let what = format!("is missing; expected schema = {SCHEMA} in the first line");
        return Err(Fault::new(tree.at, "schema", what));
    };
    match schema.integer() {
        Some(number) if number == i64::from(SCHEMA) => Ok(()),
        Some(number) if number > i64::from(SCHEMA) => {
            let what = format!("is {number}, newer than this Burnet reads; expected {SCHEMA}. Update Burnet");
            Err(Fault::new(schema.at, "schema", what))
        }
        _ => Err(Fault::new(schema.at, "schema", format!("is {}; expected {SCHEMA}", schema.shown()))),
    }
}

/// A quantile table from its form in a file: a number, or points.
pub fn quantiles(text: &str) -> Option<Quantiles> {
    let node = node::parse(&mut Files::default(), "", &format!("value = {text}")).ok()?;
    let mut table = Quantiles::default();
    form::Form::read(&mut form::Table(&mut table), node.get("value")?).ok()?;
    Some(table)
}

/// Every key of a profile, in the order of the file: for the reference, and for a test that compares both.
pub fn known_keys() -> Vec<KnownKey> {
    listing::known_keys()
}

/// The values that a profile states, as (key, TOML): without the defaults that have no source of their own. They are what is written.
pub fn stated(profile: &Profile) -> Vec<(String, String)> {
    listing::stated(profile)
}

/// All values of a profile as (key, TOML), with defaults, in the order of the file.
pub fn values(profile: &Profile) -> Vec<(String, String)> {
    listing::values(profile)
}
