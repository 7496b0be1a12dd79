//! Packages that are damaged, each refused by name; and whole ones.

use super::*;
use crate::key::PrivateKey;
use crate::moment::Moment;
use crate::signature::{Role, Signature};

const MANIFEST: &str = "name = 'my-app'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/main'\n";

fn file(path: &str, bytes: &[u8]) -> NewFile {
    let executable = path.starts_with("bin/");
    NewFile { path: PackagePath::try_from(path.to_owned()).unwrap(), executable, bytes: bytes.to_vec() }
}

fn sound() -> Package<'static> {
    Package::make(vec![file("bin/main", b"#!/bin/sh\n"), file("app.toml", MANIFEST.as_bytes())]).unwrap()
}

/// The package with its entries changed, and packed again as a tar of its own would be.
fn refused(change: impl FnOnce(&mut Vec<Entry<'_>>), expected: &str) {
    let bytes = sound().to_bytes();
    let mut entries = archive::read(&bytes, 10).unwrap();
    change(&mut entries);
    let packed = archive::write(entries);
    let damage = Package::read(&packed).unwrap_err().to_string();
    assert!(damage.contains(expected), "{damage}");
}

#[test]
fn a_package_whose_parts_do_not_fit_is_refused_by_name() {
    refused(|entries| drop(entries.remove(0)), "no package.digests where");
    refused(|entries| drop(entries.remove(1)), "no package.signatures where");
    refused(|entries| entries.swap(0, 1), "no package.digests where");
    refused(|entries| drop(entries.pop()), "bin/main is in its list but missing");
    refused(|entries| entries.swap(2, 3), "\"bin/main\" is at the place of app.toml in its list");
    refused(|entries| entries[3].bytes = b"#!/bin/ed\n", "altered: bin/main has other content");
    refused(|entries| entries[3].bytes = b"", "altered: bin/main has other content");
    refused(|entries| entries[3].executable = false, "altered: bin/main has another mode");
    refused(|entries| entries[2].executable = true, "altered: app.toml has another mode");
    refused(|entries| entries.push(entries[3].clone()), "\"bin/main\" is in it but not in its list");
    refused(
        |entries| entries[3].path = "../../etc/cron.d/x".into(),
        "\"../../etc/cron.d/x\" is at the place of",
    );
    refused(|entries| entries[3].path = "/etc/passwd".into(), "\"/etc/passwd\" is at the place of");
    refused(|entries| entries[0].bytes = b"burnet package 1\n", "\"app.toml\" is in it but not in its list");
    refused(|entries| entries[0].bytes = b"\xff", "no package.digests where");
    refused(|entries| entries[0].executable = true, "no package.digests where");
    refused(
        |entries| entries[1].bytes = b"[[signature]]\n",
        "package.signatures in it, line 1: missing field",
    );
}

/// A list that names a path which leaves the folder is no list, whatever else is right about it.
#[test]
fn a_path_that_leaves_the_folder_is_refused_even_if_it_is_listed() {
    for path in ["../x", "/x", "a/../../x", "a//x", "package.digests"] {
        let line = format!("{} 0 - {path}\n", Digest::of(b""));
        let list = format!("burnet package 1\n{line}");
        refused(
            |entries| entries[0].bytes = Box::leak(list.into_boxed_str()).as_bytes(),
            "cannot be a path in a package",
        );
    }
}

#[test]
fn every_byte_that_is_another_is_seen() {
    let bytes = sound().to_bytes();
    for at in 0..bytes.len() {
        let mut bent = bytes.clone();
        bent[at] ^= 0x20;
        let read = Package::read(&bent);
        // What is outside of the digest is the list of signatures; it is empty here.
        assert!(read.is_err(), "byte {at}: {:?}", read.map(|package| package.digest()));
    }
    for length in (0..bytes.len()).step_by(97) {
        assert!(Package::read(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_package_that_is_too_large_is_refused_before_it_is_looked_at() {
    let bytes = vec![0; PACKAGE_BYTES_MAX + 1];
    assert_eq!(Package::read(&bytes), Err(PackageFault::TooLarge(PACKAGE_BYTES_MAX + 1)));
}

/// What cannot be made into a package.
fn unmakeable(files: Vec<NewFile>, expected: &str) {
    let damage = Package::make(files).unwrap_err().to_string();
    assert!(damage.contains(expected), "{damage}");
}

#[test]
fn what_is_no_package_cannot_be_made() {
    let manifest = || file("app.toml", MANIFEST.as_bytes());
    unmakeable(vec![], "no app.toml where");
    unmakeable(vec![file("app.toml", b"name = 1")], "app.toml in it, line 1");
    unmakeable(vec![file("app.toml", b"\xff")], "not UTF-8");
    unmakeable(vec![manifest()], "its program for any, bin/main, is not in it");
    unmakeable(vec![manifest(), file("bin/main", b""), file("bin/main", b"")], "bin/main is in it twice");
    let plain = NewFile { executable: false, ..file("bin/main", b"") };
    unmakeable(vec![manifest(), plain], "bin/main, cannot be executed: chmod +x");
}

#[test]
fn the_same_files_are_the_same_package_and_signatures_do_not_change_it() {
    let mut package = sound();
    let other =
        Package::make(vec![file("app.toml", MANIFEST.as_bytes()), file("bin/main", b"#!/bin/sh\n")]).unwrap();
    assert_eq!(package.to_bytes(), other.to_bytes());
    let key = PrivateKey::from_random("alice".parse().unwrap(), &[1; 32]);
    let signature = Signature::make(&package.digest(), &key, Role::Developer, Moment::from_unix_s(1), None);
    package.signatures_mut().add(signature).unwrap();
    let bytes = package.to_bytes();
    let read = Package::read(&bytes).unwrap();
    assert_eq!(read, package);
    assert_eq!(read.digest(), other.digest());
    assert_eq!(read.file_name(), "my-app-1.0.0.burnet");
    assert!(read.signatures().all()[0].verifies(&read.digest(), &key.public().public));
}
