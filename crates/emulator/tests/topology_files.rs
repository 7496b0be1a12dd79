//! Reads every topology file in a folder, for users with a collection: topohub's JSON, the Internet Topology Zoo's
//! GraphML.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use emulator::Topology;
use std::path::{Path, PathBuf};

/// All files below a folder whose names are those of topologies.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if Topology::is_file(&path.display().to_string()) {
            found.push(path);
        }
    }
}

#[test]
fn every_file_of_a_collection_is_a_network() {
    let Some(folder) = std::env::var_os("BURNET_TOPOLOGIES") else {
        eprintln!(
            "left out: every_file_of_a_collection_is_a_network: BURNET_TOPOLOGIES names no folder of topologies"
        );
        return;
    };
    let mut found = Vec::new();
    files(Path::new(&folder), &mut found);
    let mut refused = Vec::new();
    let (mut switches, mut links, mut noted) = (0, 0, 0);
    for path in &found {
        match Topology::from_file(&path.display().to_string(), true) {
            Ok(read) => {
                assert_eq!(read.topology.switches.len(), read.topology.hosts.len());
                switches += read.topology.switches.len();
                links += read.topology.links.len() - read.topology.hosts.len();
                noted += usize::from(!read.notes.is_empty());
            }
            Err(error) => refused.push(error.to_string()),
        }
    }
    let read = found.len() - refused.len();
    println!("{read} files: {switches} switches, {links} links between them; {noted} with notes");
    assert!(read > 0 && refused.is_empty(), "{refused:#?}");
}
