//! `cargo xtask site`: builds all pages into a searchable site with mdBook.
//!
//! ```text
//! docs/SUMMARY.md, the pages ──→ target/site/src ──mdBook──→ target/site/html ──→ links are checked
//! ```
//!
//! In: the pages of the tree. Out: `target/site/html/index.html`. mdBook is installed into `target/tools` when it is missing, which needs
//! crates.io. It changes no page of the tree.

pub mod source;

use crate::process;
use crate::tree;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The version of mdBook, so that everybody builds the same site.
const MDBOOK: &str = "0.5.4";

/// The list of pages, in the order of the site.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// What mdBook is told. Folders of the tree keep their names, so a page named README stays README.
const BOOK: &str = "[book]\ntitle = \"Burnet\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[build]\nbuild-dir = \"html\"\n\
                    use-default-preprocessors = false\n\n[output.html]\ndefault-theme = \"light\"\n\n[output.html.search]\nenable = true\n";

/// `cargo xtask site`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`site` takes no arguments, and was given `{argument}`"));
    }
    let workspace = tree::read()?;
    let folder = tree::target_folder().join("site");
    let _ = fs::remove_dir_all(&folder);
    let exists = |path: &Path| tree::root().join(path).exists();
    let book = source::of(&workspace.pages, workspace.page(SUMMARY), exists);
    write(&folder.join("book.toml"), BOOK)?;
    for (path, text) in &book.pages {
        write(&folder.join("src").join(path), text)?;
    }
    for path in &book.files {
        copy(&tree::root().join(path), &folder.join("src").join(path))?;
    }
    process::output_of(Command::new(mdbook()?).arg("build").arg(&folder))?;
    let broken = broken_links(&folder.join("html"))?;
    for link in &broken {
        println!("{link}");
    }
    println!("{}", folder.join("html/index.html").display());
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Each page of `docs` that is missing in the summary, and each line of the summary that names no page.
pub fn violations(pages: &[tree::Page], summary: &str) -> Vec<String> {
    let listed = source::listed(summary);
    let missing = |page: &&tree::Page| {
        page.path.starts_with("docs/") && page.path != SUMMARY && !listed.contains(&page.path)
    };
    let mut found: Vec<String> = pages
        .iter()
        .filter(missing)
        .map(|page| format!("{SUMMARY}: does not list {}: add a line", page.path))
        .collect();
    let is_page = |path: &String| pages.iter().any(|page| page.path == *path);
    found.extend(
        listed.iter().filter(|path| !is_page(path)).map(|path| format!("{SUMMARY}: {path} is not a page")),
    );
    found
}

/// The program mdBook; it is installed first if it is missing or has another version.
fn mdbook() -> Result<PathBuf, String> {
    let tools = tree::target_folder().join("tools");
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output().map(|it| it.stdout).unwrap_or_default();
    if String::from_utf8_lossy(&version).trim() != format!("mdbook v{MDBOOK}") {
        let mut cargo = process::cargo();
        cargo.args(["install", "--locked", "--version", MDBOOK, "mdbook", "--no-default-features"]);
        process::output_of(cargo.args(["--features", "search", "--root"]).arg(&tools))?;
    }
    Ok(program)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let unwritable = |error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(unwritable)?;
    fs::write(path, text).map_err(unwritable)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot copy {}: {error}", from.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    fs::copy(from, to).map(drop).map_err(failed)
}

/// Each link in the built pages that leads nowhere, also one to a missing heading.
fn broken_links(html: &Path) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    tree::files_below(html, "html", |_| true, &mut paths)?;
    let mut texts = BTreeMap::new();
    for path in paths {
        // These two repeat all pages, or stand at no fixed place.
        if !path.ends_with("404.html") && !path.ends_with("print.html") {
            texts.insert(path.clone(), tree::read_text(&path)?);
        }
    }
    let mut broken = Vec::new();
    for (path, text) in &texts {
        for link in text.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if !link.contains(':') && !leads_somewhere(path, link, &texts) {
                let page = path.strip_prefix(html).unwrap_or(path).display();
                broken.push(format!("{page}: its link to {link} leads nowhere"));
            }
        }
    }
    Ok(broken)
}

fn leads_somewhere(page: &Path, link: &str, texts: &BTreeMap<PathBuf, String>) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_path_buf()
    } else {
        source::resolve(page.parent().unwrap_or(page), file)
    };
    let has_anchor = |text: &String| anchor.is_empty() || text.contains(&format!("id=\"{anchor}\""));
    texts.get(&target).map_or_else(|| target.exists(), has_anchor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Page;

    #[test]
    fn a_page_that_is_not_in_the_summary_is_named() {
        let page = |path: &str| Page { path: path.to_owned(), text: String::new() };
        let pages = [page("README.md"), page("docs/a.md"), page("docs/b.md"), page(SUMMARY)];
        let found = |summary: &str| violations(&pages, summary).join("; ");
        assert_eq!(found("[Burnet](../README.md)\n- [A](a.md)\n  - [B](b.md)\n"), "");
        assert_eq!(found("- [A](a.md)\n"), "docs/SUMMARY.md: does not list docs/b.md: add a line");
        let gone = "docs/SUMMARY.md: docs/c.md is not a page";
        assert_eq!(found("- [A](a.md)\n- [B](b.md)\n- [C](c.md)\n"), gone);
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let page = PathBuf::from("/no/such/site/a/b.html");
        let texts = BTreeMap::from([(page.clone(), "<h2 id=\"here\">".to_owned())]);
        let leads = |link: &str| leads_somewhere(&page, link, &texts);
        assert!(leads("#here") && leads("b.html#here") && leads("../a/b.html"));
        assert!(!leads("#gone") && !leads("c.html") && !leads("../b.html"));
    }
}
