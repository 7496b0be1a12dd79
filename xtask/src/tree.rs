//! Where the workspace lies and what it holds.
//!
//! In: `cargo metadata` and the files of the working tree. Out: [`Workspace`], plain data for the rules to
//! look at. It never judges.

use crate::process;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The members of the workspace and the page that lists the crates.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Every member, in Cargo's order.
    pub members: Vec<Member>,
    /// Every page of prose.
    pub pages: Vec<Page>,
}

impl Workspace {
    /// The text of the page at `path`, empty when there is none.
    pub fn page(&self, path: &str) -> &str {
        self.pages.iter().find(|page| page.path == path).map_or("", |page| &page.text)
    }
}

/// One Markdown file.
#[derive(Debug, Default, Clone)]
pub struct Page {
    /// Its path from the root of the workspace.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// One package of the workspace.
#[derive(Debug, Default, Clone)]
pub struct Member {
    /// Its name in Cargo.toml.
    pub name: String,
    /// Its folder, from the root of the workspace: `crates/flow`.
    pub folder: String,
    /// The text of its Cargo.toml.
    pub manifest: String,
    /// What it depends on.
    pub edges: Vec<Edge>,
    /// Its Rust sources.
    pub files: Vec<SourceFile>,
}

/// A dependency of one package on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The package depended on.
    pub to: String,
    /// Whether only tests, examples and benches see it.
    pub dev: bool,
    /// Whether it lies in this workspace.
    pub ours: bool,
}

/// One Rust source file.
#[derive(Debug, Default, Clone)]
pub struct SourceFile {
    /// Its path from the root of the workspace.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// The root of the workspace: the parent of this package's folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where Cargo builds: one folder for this workspace and the fuzz targets' alike.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Reads the workspace; an error is a sentence for the operator.
pub fn read() -> Result<Workspace, String> {
    let answer =
        process::output_of(process::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&answer)
        .map_err(|error| format!("cargo metadata's answer is not JSON: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata's answer lists no packages")?;
    let members = packages.iter().map(member).collect::<Result<_, _>>()?;
    let mut paths = Vec::new();
    files_below(&root(), "md", |folder| !is_output(folder), &mut paths)?;
    let page = |path: &PathBuf| Ok(Page { path: below_root(path), text: read_text(path)? });
    let pages = paths.iter().map(page).collect::<Result<_, String>>()?;
    Ok(Workspace { members, pages })
}

fn member(package: &Value) -> Result<Member, String> {
    let text =
        |key: &str| package[key].as_str().map(str::to_owned).ok_or(format!("a package without `{key}`"));
    let manifest_path = PathBuf::from(text("manifest_path")?);
    let folder = manifest_path.parent().unwrap_or(&manifest_path);
    let mut paths = Vec::new();
    let within = |folder: &Path| !is_output(folder) && !folder.join("Cargo.toml").exists();
    files_below(folder, "rs", within, &mut paths)?;
    let source = |path: &PathBuf| Ok(SourceFile { path: below_root(path), text: read_text(path)? });
    Ok(Member {
        name: text("name")?,
        folder: below_root(folder),
        manifest: read_text(&manifest_path)?,
        edges: package["dependencies"].as_array().into_iter().flatten().map(edge).collect(),
        files: paths.iter().map(source).collect::<Result<_, String>>()?,
    })
}

fn edge(dependency: &Value) -> Edge {
    Edge {
        to: dependency["name"].as_str().unwrap_or_default().to_owned(),
        dev: dependency["kind"] == "dev",
        ours: dependency["path"].is_string(),
    }
}

/// Whether a folder holds what tools write and not what people do.
fn is_output(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "target" || name == "node_modules" || name.starts_with('.')
}

/// Collects the files below `folder` whose names end in `.extension`, going into folders that `enter` accepts.
pub fn files_below(
    folder: &Path,
    extension: &str,
    enter: impl Fn(&Path) -> bool + Copy,
    found: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let unreadable = |error| format!("cannot list {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if enter(&path) {
                files_below(&path, extension, enter, found)?;
            }
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    Ok(())
}

fn below_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The text of a file; an error is a sentence for the operator.
pub fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
