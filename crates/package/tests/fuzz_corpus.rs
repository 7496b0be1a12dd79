//! What the fuzz targets have been given and what they found, on stable Rust: `fuzz/corpus/<target>`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

#[path = "../../../fuzz/checks/package.rs"]
mod checks;

use package::file::NewFile;
use package::key::PrivateKey;
use package::moment::Moment;
use package::signature::{Role, Signature};
use package::{Package, PackagePath};
use std::fs;
use std::path::{Path, PathBuf};

const TARGETS: [&str; 2] = ["package_file", "app_manifest"];

const PLAIN: &str =
    "name = 'a'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'a'\n";

const ASKING: &str = "[capabilities]\n'packet.in' = { match = ['arp'], datapaths = ['1'] }\n'packet.out' = { ports = [1, 'FLOOD'] }\n\
     'rule.write' = { match = ['ip,nw_dst=10.0.0.0/24', 'arp'], tables = [0], priority = [100, 200], rules_per_datapath = 10 }\n\
     'rule.read' = true\n'store.write' = ['a/']\n'query' = ['paths']\n\
     [system]\n'net.connect' = ['[::1]:80']\n'fs.read' = ['/etc/hosts']\nspawn = true\n\
     [limits]\nmemory_bytes = { soft = 50000000, hard = 64000000 }\n[quotas]\ncommands_per_s = 7\n[settings]\nx = [1.5, 2026-11-22]\n";

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let file = |path: &str, executable, bytes: &[u8]| NewFile {
        path: PackagePath::try_from(path.to_owned()).unwrap(),
        executable,
        bytes: bytes.to_vec(),
    };
    let files = vec![file("app.toml", false, PLAIN.as_bytes()), file("a", true, b"#!/bin/sh\n")];
    let plain = Package::make(files).unwrap();
    let mut signed = plain.clone();
    let key = PrivateKey::from_random("seed".parse().unwrap(), &[1; 32]);
    for role in [Role::Developer, Role::Operator] {
        let expires = Some(Moment::from_unix_s(9));
        signed
            .signatures_mut()
            .add(Signature::make(&plain.digest(), &key, role, Moment::from_unix_s(1), expires))
            .unwrap();
    }
    vec![
        ("package_file", "seed-plain", plain.to_bytes()),
        ("package_file", "seed-signed", signed.to_bytes()),
        ("app_manifest", "seed-plain", PLAIN.as_bytes().to_vec()),
        ("app_manifest", "seed-asking", format!("{PLAIN}{ASKING}").into_bytes()),
    ]
}

#[test]
fn the_seeds_are_what_is_written_today() {
    for (target, name, bytes) in seeds() {
        let path = corpus(target).join(name);
        if std::env::var_os("BURNET_BLESS").is_some() {
            fs::create_dir_all(corpus(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{target}/{name}: BURNET_BLESS=1 writes it anew");
        match target {
            "package_file" => assert!(Package::read(&bytes).is_ok(), "{name}"),
            _ => assert!(package::Manifest::parse(str::from_utf8(&bytes).unwrap()).is_ok(), "{name}"),
        }
    }
}

#[test]
fn what_was_kept_holds() {
    for target in TARGETS {
        let check = checks::check(target).expect("a target of this name");
        let files: Vec<_> =
            fs::read_dir(corpus(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 2, "{target} has no seeds");
        files.iter().for_each(|path| check(&fs::read(path).unwrap()));
    }
}
