//! Circles of files: files of one crate that use each other, directly or by way of others.
//!
//! ```text
//!   sources ──> `use` declarations ──> which file uses which ──> files that reach each other ──> those that are not in the list of exceptions
//! ```
//!
//! In: the sources of the workspace and the list of circles that are still there. Out: one sentence for each new circle, and one for each exception that
//! is needed no more. A `pub use` is not counted: it says where a name is found, and who uses that name is taken to use the file behind it. Tests are not
//! counted either. Paths outside of `use` declarations are not seen.

use crate::code;
use crate::tree::{Member, Workspace};
use std::collections::{BTreeMap, BTreeSet};

/// The list of exceptions. It shrinks until it is empty.
pub const EXCEPTIONS: &str = "xtask/circle-exceptions.txt";

/// How many `pub use` are followed for one name: more than any name has, and an end where they form a circle.
const NAMES_FOLLOWED: usize = 8;

/// A module as the names from the crate's root on.
type Path = Vec<String>;

/// Circles that are not among the exceptions, and exceptions that are no circles.
pub fn violations(workspace: &Workspace, exceptions: &str) -> Vec<String> {
    let circles: BTreeSet<String> = workspace.members.iter().flat_map(circles_of).collect();
    let listed: BTreeSet<&str> = exceptions.lines().filter(|line| !line.starts_with('#')).collect();
    let new = circles.iter().filter(|circle| !listed.contains(circle.as_str()));
    let mut found: Vec<String> =
        new.map(|circle| format!("{circle}: these files use each other in a circle")).collect();
    let stale = listed.iter().filter(|line| !circles.contains(**line));
    found.extend(stale.map(|line| format!("{EXCEPTIONS}: `{line}` is no circle: remove the line")));
    found
}

/// The circles of one crate, as lines of the list.
fn circles_of(member: &Member) -> Vec<String> {
    let sources = format!("{}/src/", member.folder);
    let files = member.files.iter().filter_map(|file| {
        let code = code::without_tests(&code::of(&file.text));
        Some((module_of(file.path.strip_prefix(&sources)?), declarations(&code)))
    });
    let modules = Modules(files.collect());
    let line = |circle: BTreeSet<Path>| {
        let names: Vec<String> = circle.iter().map(|path| name_of(path)).collect();
        format!("{}: {}", member.folder, names.join(" "))
    };
    modules.circles().into_iter().map(line).collect()
}

fn module_of(path: &str) -> Path {
    let mut path: Path = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| matches!(last.as_str(), "lib" | "main" | "mod")) {
        path.pop();
    }
    path
}

fn name_of(path: &[String]) -> String {
    if path.is_empty() { "lib".to_owned() } else { path.join("/") }
}

/// A name that a file uses, or that it gives on.
struct Declaration {
    is_public: bool,
    path: Path,
}

/// The `use` declarations of a file, one for each name.
fn declarations(code: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some((before, names)) = statement.rsplit_once("use ") else { continue };
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("pub") && !line.contains(' ') {
            let paths = expand(&names.split_whitespace().collect::<Vec<_>>().join(" "));
            found.extend(paths.into_iter().map(|path| Declaration { is_public: !line.is_empty(), path }));
        }
    }
    found
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`.
fn expand(names: &str) -> Vec<Path> {
    let Some((head, list)) = names.split_once('{') else {
        let path = names.split(" as ").next().unwrap_or_default();
        return vec![path.trim().split("::").map(str::to_owned).collect()];
    };
    let list = list.trim_end().trim_end_matches('}');
    // A brace of an inner list may have gone with the outer one's.
    let missing = list.matches('{').count().saturating_sub(list.matches('}').count());
    let list = format!("{list}{}", "}".repeat(missing));
    let (mut depth, mut begin, mut parts) = (0_usize, 0, Vec::new());
    for (at, it) in list.bytes().enumerate() {
        match it {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    let named = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    named.flat_map(|part| expand(&format!("{}{part}", head.trim()))).collect()
}

/// The files of a crate by their modules, with what each declares.
struct Modules(BTreeMap<Path, Vec<Declaration>>);

impl Modules {
    fn circles(&self) -> Vec<BTreeSet<Path>> {
        let uses: BTreeMap<&Path, BTreeSet<Path>> =
            self.0.keys().map(|module| (module, self.used_by(module))).collect();
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            uses.keys().map(|module| (*module, reached_from(module, &uses))).collect();
        let mut circles: Vec<BTreeSet<Path>> = Vec::new();
        for (module, reaches) in &reached {
            let back = |other: &&&Path| reached.get(**other).is_some_and(|it| it.contains(module));
            let circle: BTreeSet<Path> = reaches.iter().filter(back).map(|path| (**path).clone()).collect();
            if circle.len() > 1 && !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles
    }

    fn used_by(&self, module: &Path) -> BTreeSet<Path> {
        let declared = self.0.get(module).into_iter().flatten().filter(|it| !it.is_public);
        let used = declared.filter_map(|it| self.file_of(self.absolute(module, &it.path)?, NAMES_FOLLOWED));
        used.filter(|used| used != module).collect()
    }

    /// A path as it is from the crate's root; `None` if it leads to another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
            name => {
                let child = [module, &[name.to_owned()]].concat();
                self.0.get(&child)?;
                (module, path)
            }
        };
        Some([base, rest].concat())
    }

    /// The file that a path leads to. `follow`: how many more `pub use` it may lead through.
    fn file_of(&self, path: Path, follow: usize) -> Option<Path> {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        let Some(name) = rest.first().filter(|_| follow > 0) else { return Some(module.to_vec()) };
        let declared = self.0.get(module).into_iter().flatten();
        let named = declared.filter(|it| it.is_public).find(|it| it.path.last() == Some(name));
        match named {
            Some(other) => {
                self.file_of([self.absolute(module, &other.path)?, rest[1..].to_vec()].concat(), follow - 1)
            }
            None => Some(module.to_vec()),
        }
    }
}

fn reached_from<'a>(from: &'a Path, uses: &'a BTreeMap<&'a Path, BTreeSet<Path>>) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for used in uses.get(module).into_iter().flatten() {
            if reached.insert(used) {
                next.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SourceFile;

    fn check(files: &[(&str, &str)], exceptions: &str, expected: &[&str]) {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/c/src/{path}"),
            text: (*text).to_owned(),
        };
        let member = Member {
            folder: "crates/c".to_owned(),
            files: files.iter().map(file).collect(),
            ..Member::default()
        };
        let workspace = Workspace { members: vec![member], pages: Vec::new() };
        assert_eq!(violations(&workspace, exceptions), expected);
    }

    const AB: &str = "crates/c: a b: these files use each other in a circle";

    #[test]
    fn files_that_use_each_other_are_named() {
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")], "", &[AB]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")], "# why\ncrates/c: a b", &[]);
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "use std::fmt;")], "", &[]);
        check(&[("a.rs", "use crate::b;"), ("b.rs", "use crate::c::{d, e::{F, G}};"), ("c.rs", "")], "", &[]);
        let three = [
            ("a.rs", "use crate::{b::B};"),
            ("b.rs", "use super::c::{self, C as D};"),
            ("c.rs", "use crate::a;"),
        ];
        check(&three, "", &["crates/c: a b c: these files use each other in a circle"]);
    }

    #[test]
    fn a_child_that_uses_its_parent_is_a_circle_if_the_parent_uses_it() {
        let child = ("a/x.rs", "use super::A;");
        let expected = "crates/c: a a/x: these files use each other in a circle";
        check(&[("a.rs", "mod x;\nuse x::X;"), child], "", &[expected]);
        check(&[("a.rs", "mod x;\npub use x::X;"), child], "", &[]);
        check(
            &[("lib.rs", "mod a;\nuse a::A;"), ("a.rs", "use crate::B;")],
            "",
            &["crates/c: lib a: these files use each other in a circle"],
        );
    }

    #[test]
    fn a_name_leads_to_the_file_behind_it() {
        let files = [("lib.rs", "pub use a::A;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::A;")];
        check(&files, "", &[AB]);
    }

    #[test]
    fn tests_and_comments_are_not_counted() {
        let tests = "//! use crate::b::B;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        check(&[("a.rs", tests), ("b.rs", "use crate::a::A;")], "", &[]);
    }

    #[test]
    fn an_exception_that_is_needed_no_more_is_named() {
        check(
            &[("a.rs", "")],
            "crates/c: a b",
            &["xtask/circle-exceptions.txt: `crates/c: a b` is no circle: remove the line"],
        );
    }
}
