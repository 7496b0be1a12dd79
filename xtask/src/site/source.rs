//! The source of the site: which pages and files are in it, and what their links become.
//!
//! In: the pages of the tree, and the summary. Out: the text of each page of the site, and the files to copy. It reads and
//! writes no file.

use super::SUMMARY;
use crate::tree::Page;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// What mdBook gets.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// Each page: its path below the source folder, and its text.
    pub pages: Vec<(String, String)>,
    /// Files that pages link to or show, by their paths in the tree.
    pub files: BTreeSet<PathBuf>,
}

/// The site's source. A link to a page that is not in the site, or to a folder, becomes plain text.
pub fn of(pages: &[Page], summary: &str, exists: impl Fn(&Path) -> bool) -> Book {
    let listed = listed(summary);
    let mut book = Book::default();
    book.pages.push(("SUMMARY.md".to_owned(), from_root(summary)));
    for page in pages.iter().filter(|page| listed.contains(&page.path)) {
        let text = with_links(page, &listed, &exists, &mut book.files);
        book.pages.push((page.path.clone(), text));
    }
    book
}

/// The pages that the summary lists, as paths from the root of the tree.
pub fn listed(summary: &str) -> BTreeSet<String> {
    let targets = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| resolve(Path::new("docs"), target).display().to_string()).collect()
}

/// The summary with its links seen from the root of the tree, where the site's pages are.
fn from_root(summary: &str) -> String {
    let mut text = String::new();
    for (index, piece) in summary.split("](").enumerate() {
        match piece.split_once(')').filter(|_| index > 0) {
            Some((target, rest)) => {
                let path = resolve(Path::new("docs"), target);
                text.push_str(&format!("]({}){rest}", path.display()));
            }
            None => text.push_str(piece),
        }
    }
    text
}

/// A page's text in which each link leads to something in the site.
fn with_links(
    page: &Page,
    listed: &BTreeSet<String>,
    exists: &impl Fn(&Path) -> bool,
    files: &mut BTreeSet<PathBuf>,
) -> String {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut text = String::new();
    for (index, block) in page.text.split("```").enumerate() {
        if index > 0 {
            text.push_str("```");
        }
        text.push_str(&if index % 2 == 1 {
            code_block(block)
        } else {
            prose(block, folder, listed, exists, files)
        });
    }
    debug_assert!(page.path != SUMMARY, "the summary is not a page");
    text
}

/// A block of code, with a comma between the words behind its fence, as mdBook wants them.
fn code_block(block: &str) -> String {
    let (kind, code) = block.split_once('\n').unwrap_or((block, ""));
    // Rust blocks are parts of apps: mdBook must not offer to run them.
    let kind = if kind == "rust" { "rust,ignore,noplayground".to_owned() } else { kind.replace(' ', ",") };
    format!("{kind}\n{code}")
}

fn prose(
    text: &str,
    folder: &Path,
    listed: &BTreeSet<String>,
    exists: &impl Fn(&Path) -> bool,
    files: &mut BTreeSet<PathBuf>,
) -> String {
    let mut changed = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else { break };
        rest = behind;
        let path = resolve(folder, target.split('#').next().unwrap_or_default());
        let is_inside =
            target.starts_with('#') || target.contains("://") || listed.contains(&path.display().to_string());
        let is_file = path.extension().is_some_and(|end| end != "md") && exists(&path);
        if is_inside || is_file {
            changed.push_str(&format!("{before}]({target})"));
            if is_file && !is_inside {
                files.insert(path);
            }
        } else {
            // Take the bracket that opened the link away too.
            let (start, shown) = before.rsplit_once('[').unwrap_or(("", before));
            changed.push_str(&format!("{start}{shown}"));
        }
    }
    changed + rest
}

/// A path seen from `folder`, without `..`.
pub fn resolve(folder: &Path, target: &str) -> PathBuf {
    let mut path = folder.to_path_buf();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Summary\n\n[Burnet](../README.md)\n\n- [A](guide/a.md)\n";

    fn check(text: &str, expected: &str, files: &[&str]) {
        let page = Page { path: "docs/guide/a.md".to_owned(), text: text.to_owned() };
        let there =
            |path: &Path| path == Path::new("docs/pictures/p.svg") || path == Path::new("crates/flow");
        let book = of(&[page], LIST, there);
        assert_eq!(book.pages[1], ("docs/guide/a.md".to_owned(), expected.to_owned()));
        assert_eq!(book.files, files.iter().map(PathBuf::from).collect());
    }

    #[test]
    fn the_summary_is_seen_from_the_root() {
        let (path, text) = &of(&[], LIST, |_| true).pages[0];
        assert_eq!(path, "SUMMARY.md");
        assert_eq!(text, "# Summary\n\n[Burnet](README.md)\n\n- [A](docs/guide/a.md)\n");
    }

    #[test]
    fn links_within_the_site_stay_and_others_become_text() {
        let inside = "See [top](../../README.md#part), [here](#x), [web](https://example.org/).\n";
        check(inside, inside, &[]);
        check("![P](../pictures/p.svg)\n", "![P](../pictures/p.svg)\n", &["docs/pictures/p.svg"]);
        check("A [crate](../../crates/flow/) and [page](other.md).\n", "A crate and page.\n", &[]);
    }

    #[test]
    fn blocks_of_code_keep_their_text() {
        let block = "```console minutes\n[a](gone.md)\n```\n";
        check(block, "```console,minutes\n[a](gone.md)\n```\n", &[]);
    }
}
