//! Checks the claims of pages that the tree can confirm.
//!
//! A link's target exists. A name in a code span is defined in its crate. A quoted part of a file is in that file.
//!
//! ```text
//! pages, members' sources ──→ violations() ──→ sentences that name the page and what is not there
//! ```
//!
//! In: plain data. Out: one sentence for each claim that does not hold. It never judges the prose.

use crate::site::source::resolve;
use crate::tree::{Member, Page, Workspace};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The words before a name that make it a definition.
const DEFINING: [&str; 10] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union", "macro_rules"];

/// Every claim that does not hold. `exists` tells whether a path from the root of the workspace is there.
pub fn violations(workspace: &Workspace, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for page in &workspace.pages {
        let prose = without_fences(&page.text);
        for target in links(&prose).filter(|target| !exists(&target_of(&page.path, target))) {
            found.push(format!("{}: its link to {target} leads nowhere", page.path));
        }
        for span in spans(&prose) {
            if let Some(missing) = missing_name(span, &workspace.members) {
                found.push(format!("{}: `{span}`: there is no {missing}", page.path));
            }
        }
    }
    found
}

/// The mark above a block of code that is a part of a file: `<!-- from PATH -->`.
const FROM: &str = "<!-- from ";

/// Each block that is marked as a part of a file and is not in that file.
pub fn stale_quotes(pages: &[Page], read: impl Fn(&str) -> Result<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for page in pages {
        for marked in page.text.split(FROM).skip(1) {
            let (path, rest) = marked.split_once(" -->").unwrap_or((marked, ""));
            let quoted = rest.trim_start().strip_prefix("```").and_then(|block| {
                let (_, code) = block.split_once('\n')?;
                code.split("```").next()
            });
            let is_there = |code: &str| read(path).is_ok_and(|text| text.contains(code));
            if !quoted.is_some_and(is_there) {
                found.push(format!("{}: the block behind `{FROM}{path} -->` is not in that file", page.path));
            }
        }
    }
    found
}

/// The text with its blocks of code left out.
fn without_fences(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// What lies between single backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The targets of links within the project, without the part behind `#`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The file that a page links to.
fn target_of(page: &str, target: &str) -> PathBuf {
    resolve(Path::new(page).parent().unwrap_or(Path::new("")), target)
}

/// For `kernel::Kernel::on_event`: the first of its names that the crate `kernel` does not define. Nothing for a
/// span that is no path or does not begin with one of our crates.
fn missing_name<'s>(span: &'s str, members: &[Member]) -> Option<&'s str> {
    let path = span.strip_suffix("()").unwrap_or(span);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let names: Vec<&str> = path.split("::").collect();
    if names.len() < 2 || !names.iter().all(|name| is_name(name)) {
        return None;
    }
    let member = members.iter().find(|member| member.name.replace('-', "_") == names[0])?;
    let behind = members.iter().filter(|other| re_exports(member, other));
    let defined: HashSet<&str> = behind.chain([member]).flat_map(definitions).collect();
    names[1..].iter().find(|name| !defined.contains(**name)).copied()
}

/// Whether a member publishes items of another as its own.
fn re_exports(member: &Member, other: &Member) -> bool {
    let statement = format!("pub use {}::", other.name.replace('-', "_"));
    member.files.iter().any(|file| file.text.contains(&statement))
}

/// The names that a member defines: items, methods, variants, and modules by their files.
fn definitions(member: &Member) -> HashSet<&str> {
    let mut names = HashSet::new();
    for file in &member.files {
        names.extend(Path::new(&file.path).file_stem().and_then(|stem| stem.to_str()));
        for line in file.text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            names.extend(words.windows(2).filter(|pair| DEFINING.contains(&pair[0])).map(|pair| pair[1]));
            // A variant stands first on its line and begins with a capital.
            names.extend(words.first().filter(|word| word.starts_with(char::is_uppercase)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SourceFile;

    const SOURCE: &str = "//! Decides.\npub struct Kernel;\nimpl Kernel {\n    pub fn on_event(&mut self) {}\n}\n\
                          pub enum Verdict {\n    Refused(u8),\n}\n";

    fn check(text: &str, expected: &str) {
        let file = SourceFile { path: "crates/kernel/src/dispatch.rs".to_owned(), text: SOURCE.to_owned() };
        let member = Member { name: "kernel".to_owned(), files: vec![file], ..Member::default() };
        let page = Page { path: "docs/page.md".to_owned(), text: text.to_owned() };
        let workspace = Workspace { members: vec![member], pages: vec![page] };
        let there = [Path::new("README.md"), Path::new("docs/glossary.md")];
        let found = violations(&workspace, |path| there.contains(&path));
        assert_eq!(found.join("; "), expected, "{text}");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        check("[a](gone.md)", "docs/page.md: its link to gone.md leads nowhere");
        check("[a](../docs/gone.md#part)", "docs/page.md: its link to ../docs/gone.md leads nowhere");
        check("[a](../README.md) [b](glossary.md#words) [c](#here) [d](https://example.org/x)", "");
    }

    #[test]
    fn a_quote_that_is_not_in_its_file_is_named() {
        let found = |code: &str, path: &str| {
            let text = format!("Text.\n\n<!-- from {path} -->\n```rust\n{code}\n```\n");
            let page = Page { path: "x.md".to_owned(), text };
            let read =
                |path: &str| if path == "a.rs" { Ok(SOURCE.to_owned()) } else { Err("gone".to_owned()) };
            stale_quotes(&[page], read)
        };
        assert_eq!(found("pub struct Kernel;\nimpl Kernel {", "a.rs"), Vec::<String>::new());
        let said = "x.md: the block behind `<!-- from a.rs -->` is not in that file";
        assert_eq!(found("pub struct Kernle;", "a.rs"), [said]);
        assert_eq!(found("pub struct Kernel;", "b.rs").len(), 1);
    }

    #[test]
    fn a_name_that_its_crate_does_not_define_is_named() {
        check("`kernel::Kernle`", "docs/page.md: `kernel::Kernle`: there is no Kernle");
        check(
            "`kernel::Kernel::on_evnt()`",
            "docs/page.md: `kernel::Kernel::on_evnt()`: there is no on_evnt",
        );
        check("`kernel::Kernel::on_event()` `kernel::dispatch::Verdict` `kernel::Verdict::Refused`", "");
    }

    #[test]
    fn a_re_exported_name_is_its_crates_too() {
        let member = |name: &str, text: &str| {
            let file = SourceFile { path: "src/lib.rs".to_owned(), text: text.to_owned() };
            Member { name: name.to_owned(), files: vec![file], ..Member::default() }
        };
        let members =
            [member("sdk", "//! x\npub use sdk_core::App;\n"), member("sdk-core", "pub trait App {}\n")];
        assert_eq!(missing_name("sdk::App", &members), None);
        assert_eq!(missing_name("sdk_core::Gone", &members), Some("Gone"));
    }

    #[test]
    fn what_is_not_a_path_of_ours_is_left_alone() {
        check("`std::thread` `kernel` `a b` `kernel::<T>` `OpenFlow::`", "");
        check("```\n`kernel::gone` [a](gone.md)\n```\n", "");
    }
}
