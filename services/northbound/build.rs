//! Makes the table of the web page's files, which become part of the binary.
//!
//! In: the folder `web/dist`, which is checked in. Out: `files.rs` in Cargo's output folder: a constant with the path and the bytes of each
//! file. It downloads nothing and runs no program. Without the folder, the table is empty.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = here.join("../../web/dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    let mut paths = Vec::new();
    collect(&dist, &mut paths)?;
    paths.sort();
    let mut table = "&[\n".to_owned();
    for path in &paths {
        let name = path.strip_prefix(&dist).unwrap_or(path).display().to_string();
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "    ({:?}, include_bytes!({:?})),",
            format!("/{name}"),
            path.display().to_string()
        );
    }
    table.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), table)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
