//! The whole example on a node: the service and its client, each in its own process.
//!
//! The node's program and the client are those in Cargo's target folder: `cargo build -p burnet -p hello-client`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::path::{Path, PathBuf};
use test_bed::{Bed, kill};

/// A program that Cargo built beside the service.
fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_hello")).with_file_name(name);
    assert!(path.is_file(), "{} is missing: cargo build -p burnet -p hello-client", path.display());
    path
}

/// Programs in a folder with their manifests, as an operator has them.
fn copied(bed: &Bed, name: &str, manifest: &str) -> PathBuf {
    let program = bed.path(name);
    std::fs::copy(built(name), &program).unwrap();
    bed.file(&format!("{name}.toml"), manifest);
    program
}

fn service(bed: &Bed) -> PathBuf {
    copied(bed, "hello", include_str!("../app.toml"))
}

fn client(bed: &Bed) -> PathBuf {
    copied(bed, "hello-client", include_str!("../../client/app.toml"))
}

#[test]
fn without_the_service_the_client_does_not_start() {
    let bed = Bed::new(built("burnet"));
    let client = client(&bed);
    let run = bed.run(&["run", "--listen", "127.0.0.1:0", "--app", client.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("`hello.greet` needs the service hello, which is not installed"), "{said}");
}

#[test]
fn a_grant_is_explained_in_the_words_of_the_service() {
    let bed = Bed::new(built("burnet"));
    let (service, client) = (service(&bed), client(&bed));
    let arguments = ["explain-grant", client.to_str().unwrap(), "--app", service.to_str().unwrap()];
    let run = bed.run(&arguments);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let line = "hello.greet  have people greeted whose names begin with A";
    assert!(said.contains(line), "{said}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn the_client_gets_what_it_was_granted_and_hears_of_each_change() {
    let bed = Bed::new(built("burnet"));
    let (service, client) = (service(&bed), client(&bed));
    let node = bed.node().app(service.to_str().unwrap()).app(client.to_str().unwrap()).log("info").start();
    node.wait_for_line("following");
    node.wait_for_line("answer: Hello, Ada!");
    node.wait_for_line("greeted: Ada 1");
    node.wait_for_line("refused: hello.greet: it is not granted for the name \"Bob\"");
    node.wait_for_line("answer: Hello, Alan!");
    node.wait_for_line("refused: hello.greetings: the hard limit 2 is reached");
    kill(node.pid_of("hello").unwrap());
    node.wait("the service is there again", |node| node.pid_of("hello").is_some());
}
