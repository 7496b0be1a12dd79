//! The fenced blocks of every page: commands are run as they are typed, or read by the real parser where they need root, a network or minutes.
//!
//! ```text
//!   console            every line is run, in order, in a folder of its own
//!   console minutes    needs minutes or a package registry; each line is read by the parser of the command that it names
//!   console root       needs root, real switches or another machine; likewise
//!   toml               is a burnet.toml or an app.toml, and is read as one; `toml scenario` as a scenario,
//!                      `toml network` as a network file, `toml profile` as TOML (the tests of the crate `profile` read it), `toml substrate`
//!                      as a description of the network below slices
//!   python             carries a manifest that can be read, if it carries one
//!   text, rust         shows a form; no line of it is a command
//! ```
//!
//! A block without one of these words fails, and so does a block that marks commands as text. So no block is skipped
//! silently.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use burnet::cli::{BurnetCommand, Cli};
use clap::Parser;
use config::ConfigFile;
use package::Manifest;
use package::manifest::Needs;

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the pages say that a node listens. Each page gets another port here, so that many can be tried at once.
const PORT: &str = "6653";

/// The programs that a page may name besides `burnet`; of `cargo xtask` the chores are looked up.
const PROGRAMS: [&str; 19] = [
    ".",
    "apt",
    "cargo",
    "cd",
    "cp",
    "curl",
    "docker",
    "export",
    "journalctl",
    "mn",
    "openssl",
    "ovs-ofctl",
    "ovs-pki",
    "ovs-vsctl",
    "pip",
    "printf",
    "python3",
    "systemctl",
    "tshark",
];

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The node's program, which Cargo builds into the same folder as the laboratory's. The node's program finds the laboratory there.
fn burnet() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_burnet-lab")).with_file_name("burnet")
}

/// A fenced block.
#[derive(Debug)]
struct Block {
    page: PathBuf,
    line: usize,
    kind: String,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}, line {}", self.page.display(), self.line)
    }

    /// Its commands, without comments.
    fn commands(&self) -> Vec<String> {
        let lines = self.text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_ours = !name.starts_with('.') && name != "target" && name != "node_modules";
        if path.is_dir() && !path.is_symlink() && is_ours {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

fn blocks_of(page: &Path, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(kind) => {
                is_open = true;
                let (page, kind) = (page.to_owned(), kind.trim().to_owned());
                blocks.push(Block { page, line: index + 1, kind, text: String::new() });
            }
            None if is_open => blocks.last_mut().unwrap().text += &format!("{line}\n"),
            None => {}
        }
    }
    assert!(!is_open, "{}: a block has no end", page.display());
    blocks
}

fn blocks() -> Vec<Block> {
    let mut found = Vec::new();
    pages(&checkout(), &mut found);
    found.sort();
    assert!(found.len() >= 30, "{found:?}");
    found.iter().flat_map(|page| blocks_of(page, &fs::read_to_string(page).unwrap())).collect()
}

/// The words of a command, as a shell splits them, with quotes and without what it does with them else.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (' ', None) => words.push(String::new()),
            (letter, _) => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Each command of a line by itself, without redirections.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let parts = line.trim_end_matches('&').split("&&");
    parts.map(|part| words(part.split(['>', '|']).next().unwrap_or_default())).collect()
}

/// What the parser of the command says against it: burnet's own, or the laboratory's.
fn refused(command: &[String]) -> Option<clap::Error> {
    match Cli::try_parse_from(command).map(|cli| cli.command) {
        Ok(
            BurnetCommand::Demo(_)
            | BurnetCommand::Emulate(_)
            | BurnetCommand::Attack(_)
            | BurnetCommand::Bench(_)
            | BurnetCommand::Profile(_),
        ) => lab::cli::Cli::try_parse_from(command).err(),
        Ok(_) => None,
        Err(error) => Some(error),
    }
}

/// Why this is not a valid command.
fn flaw(command: &[String], chores: &str) -> Option<String> {
    let program = command.first()?.as_str();
    if program == "burnet" || program.ends_with("/burnet") {
        return refused(command).filter(clap::Error::use_stderr).map(|error| error.to_string());
    }
    if let ("cargo", Some("xtask"), Some(chore)) =
        (program, command.get(1).map(String::as_str), command.get(2))
    {
        let is_there = chores.contains(&format!("name: \"{chore}\""));
        return (!is_there).then(|| format!("there is no chore {chore}"));
    }
    (!PROGRAMS.contains(&program)).then(|| format!("{program} is no program that pages name"))
}

#[test]
fn a_command_that_is_none_and_a_block_that_says_nothing_are_found() {
    let wrong = |line: &str| flaw(&words(line), "name: \"test\"").is_some();
    assert!(
        wrong("burnet swiches")
            && wrong("burnet emulate --pingall")
            && wrong("burnet key trust")
            && wrong("target/release/burnet run --ap x")
    );
    assert!(wrong("cargo xtask tset") && wrong("rm -rf /"));
    assert!(
        !wrong("burnet emulate --controller '127.0.0.1:6653' --ping-all")
            && !wrong("cargo xtask test --quick")
    );
    let page = "```\nburnet switches\n```\n```text\ncargo xtask test\n```\n```console tomorrow\n```\n";
    for block in blocks_of(Path::new("x.md"), page) {
        assert!(trouble(&block, "name: \"test\"").is_some(), "{block:?}");
    }
    assert_eq!(simple_commands("cd x && burnet flows > f"), [words("cd x"), words("burnet flows")]);
}

/// What is wrong with a block that is not run.
fn trouble(block: &Block, chores: &str) -> Option<String> {
    let unread = |error: String| Some(error);
    match block.kind.as_str() {
        "console" => None,
        "console minutes" | "console root" => {
            let commands = block.commands();
            let simple = commands.iter().flat_map(|line| simple_commands(line));
            simple
                .into_iter()
                .find_map(|command| flaw(&command, chores).map(|why| format!("{command:?}: {why}")))
        }
        "toml" => {
            let as_file = ConfigFile::parse(&block.text, &block.page).err();
            let as_manifest = Manifest::parse(&block.text).err();
            as_file.zip(as_manifest).map(|(one, other)| format!("{one}; {other}"))
        }
        "toml scenario" | "toml profile" => {
            toml::from_str::<toml::Table>(&block.text).err().and_then(|it| unread(it.to_string()))
        }
        "toml network" => burnet::network_file::source::read(&block.place(), &block.text).err(),
        "toml substrate" => {
            burnet::slice_plan::described::read(&block.text).err().and_then(|it| unread(it.to_string()))
        }
        "python" => Needs::in_comments(&block.text).err().and_then(|it| unread(it.to_string())),
        "rust" => None,
        "text" => {
            let is_command = |line: &&str| {
                let words = words(line);
                words.len() > 1 && words[0] != "." && flaw(&words, chores).is_none()
            };
            block.text.lines().find(is_command).map(|line| format!("a command is no text: {line}"))
        }
        "" => Some(
            "it does not say what it is: write one of the words of this test behind its fence".to_owned(),
        ),
        other => Some(format!("`{other}` is no kind of block")),
    }
}

#[test]
fn every_block_says_what_it_is_and_what_is_not_run_can_be_read() {
    let chores = fs::read_to_string(checkout().join("xtask/src/main.rs")).unwrap();
    let wrong: Vec<String> = blocks()
        .iter()
        .filter_map(|block| trouble(block, &chores).map(|why| format!("{}: {why}", block.place())))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A reader who types the commands of a page.
struct Reader {
    folder: PathBuf,
    port: u16,
    node: Option<Child>,
}

impl Reader {
    fn new(name: &str, page: &Path) -> Reader {
        let folder = std::env::temp_dir().join(format!("burnet-page-{name}-{}", std::process::id()));
        for below in ["here", "bin", "home"] {
            fs::create_dir_all(folder.join(below)).unwrap();
        }
        symlink(burnet(), folder.join("bin/burnet")).unwrap();
        // What lies beside the page is there; what is written is not written there.
        for entry in fs::read_dir(page.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            symlink(&path, folder.join("here").join(path.file_name().unwrap())).unwrap();
        }
        let port = free_port();
        // The web page of a node gets another port too.
        let network = format!("[network.northbound]\nlisten = ['127.0.0.1:{}']\n", free_port());
        fs::write(folder.join("here/network.toml"), network).unwrap();
        Reader { folder, port, node: None }
    }

    fn here(&self) -> PathBuf {
        self.folder.join("here")
    }

    fn shell(&self, line: &str, state: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line.replace(PORT, &self.port.to_string())).current_dir(self.here());
        shell.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.folder.join("bin").display()));
        shell.env("HOME", self.folder.join("home")).env("BURNET_STATE", self.folder.join(state));
        shell.env("BURNET_SOCKET", self.folder.join("node.sock")).stdin(Stdio::null());
        shell
    }

    fn done(&self, line: &str, state: &str) -> String {
        let Output { status, stdout, stderr } = self.shell(line, state).output().unwrap();
        let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{line}\n{said}");
        said
    }

    /// The files of a developer elsewhere that a page's reader has: a package and a public key.
    fn is_given(&self, app: &str, version: &str, key: &str) {
        let source = self.folder.join("elsewhere");
        write_app(&source, app, version);
        let shown = source.display();
        self.done(&format!("burnet key new {key} && burnet app build {shown} && burnet app sign {app}-{version}.burnet --key {key}"), "elsewhere-state");
        fs::copy(
            self.folder.join(format!("elsewhere-state/keys/{key}.pub")),
            self.here().join(format!("{key}.pub")),
        )
        .unwrap();
    }

    /// Types a line. A node goes on in the background until another one is started.
    fn types(&mut self, line: &str) {
        if !line.starts_with("burnet run") {
            self.wait_for_apps();
            let before = self.starts();
            self.done(line, "state");
            // Nobody types the next line while the app is on its way.
            let began = Instant::now();
            while line.contains("app restart") && self.starts() == before {
                assert!(began.elapsed() < PATIENCE, "it was not restarted");
                std::thread::sleep(Duration::from_millis(20));
            }
            return;
        }
        self.end_node();
        let listen = if line.contains("--listen") { "" } else { " --listen 127.0.0.1:6653" };
        let config = if line.contains("--network") { " --config network.toml" } else { "" };
        let mut shell = self.shell(&format!("exec {line}{listen}{config} --die-with-parent"), "state");
        self.node = Some(shell.stderr(Stdio::null()).spawn().unwrap());
        self.wait_for_apps();
    }

    /// How often all apps were started.
    fn starts(&self) -> u64 {
        apps(&self.folder).iter().filter_map(|app| app["status"]["generation"].as_u64()).sum()
    }

    /// Until every app of the node has said what it wants to hear: people type more slowly than this.
    fn wait_for_apps(&mut self) {
        let Some(node) = &mut self.node else { return };
        let began = Instant::now();
        loop {
            assert!(node.try_wait().unwrap().is_none(), "the node has ended");
            let apps = apps(&self.folder);
            let serves =
                |app: &serde_json::Value| app["status"]["state"] == "running" && app["commands"] != 0;
            let silent = |app: &serde_json::Value| {
                app["package"].is_object()
                    || (app["status"]["role"] == "service" && app["status"]["state"] == "running")
            };
            if !apps.is_empty() && apps.iter().all(|app| serves(app) || silent(app)) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "not in time: {apps:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end_node(&mut self) {
        if let Some(mut node) = self.node.take() {
            let pid = rustix::process::Pid::from_child(&node);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            node.wait().unwrap();
        }
    }

    /// Types all that a page has to be typed. How many blocks that were.
    fn follows(&mut self, page: &Path) -> usize {
        let blocks = blocks_of(page, &fs::read_to_string(page).unwrap());
        let mut followed = 0;
        for block in blocks.iter().filter(|block| block.kind == "console") {
            block.commands().iter().for_each(|line| self.types(line));
            followed += 1;
            // Public keys are handed on.
            for key in fs::read_dir(self.folder.join("state/keys")).into_iter().flatten().flatten() {
                if key.path().extension().is_some_and(|ending| ending == "pub") {
                    fs::copy(key.path(), self.here().join(key.file_name())).unwrap();
                }
            }
        }
        followed
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn apps(folder: &Path) -> Vec<serde_json::Value> {
    let mut asked = Command::new(burnet());
    let answer =
        asked.args(["app", "list", "--json", "--socket"]).arg(folder.join("node.sock")).output().unwrap();
    serde_json::from_slice(&answer.stdout).unwrap_or_default()
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(node) = &mut self.node {
            let _ = node.kill();
            let _ = node.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An app that does nothing.
fn write_app(folder: &Path, name: &str, version: &str) {
    fs::create_dir_all(folder).unwrap();
    let manifest = format!(
        "name = '{name}'\nversion = '{version}'\ndescription = 'It waits.'\nkind = 'native'\nabi = 2\nentry.any = 'main'\n\
         [capabilities]\n'packet.in' = {{ match = ['arp'] }}\n"
    );
    fs::write(folder.join("app.toml"), manifest).unwrap();
    fs::write(folder.join("main"), "#!/bin/sh\nread never\n").unwrap();
    fs::set_permissions(folder.join("main"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_front_page_works_as_it_is_typed() {
    let page = checkout().join("README.md");
    let mut reader = Reader::new("front", &page);
    reader.is_given("arp-guard", "1.2.0", "vendor");
    assert_eq!(reader.follows(&page), 4);
}

#[test]
fn the_page_of_packages_works_as_it_is_typed() {
    let page = checkout().join("docs/reference/package.md");
    let mut reader = Reader::new("packages", &page);
    write_app(&reader.here().join("my-app"), "my-app", "1.0.0");
    assert_eq!(reader.follows(&page), 2);
}

#[test]
fn the_page_of_profiles_works_as_it_is_typed() {
    let page = checkout().join("docs/reference/profile.md");
    assert_eq!(Reader::new("profiles", &page).follows(&page), 1);
}

#[test]
fn the_guide_to_a_first_network_works_as_it_is_typed() {
    let page = checkout().join("docs/guide/first-network.md");
    assert_eq!(Reader::new("first-network", &page).follows(&page), 7);
}

#[test]
fn the_guide_to_packages_works_as_it_is_typed() {
    let page = checkout().join("docs/guide/packages-and-grants.md");
    let mut reader = Reader::new("grants", &page);
    write_app(&reader.here().join("my-app"), "my-app", "1.0.0");
    assert_eq!(reader.follows(&page), 4);
}

#[test]
fn the_guide_to_operating_a_node_works_as_it_is_typed() {
    let page = checkout().join("docs/guide/operating.md");
    assert_eq!(Reader::new("operating", &page).follows(&page), 2);
}

#[test]
fn the_guides_for_users_of_other_controllers_work_as_they_are_typed() {
    for (guide, blocks) in [("coming-from-faucet", 1), ("coming-from-onos", 3)] {
        let page = checkout().join("docs/guide").join(guide).with_extension("md");
        assert_eq!(Reader::new(guide, &page).follows(&page), blocks, "{guide}");
    }
}

#[test]
fn the_examples_work_as_they_are_typed() {
    let examples = [
        ("host-move", 1),
        ("link-failure", 1),
        ("shared-bottleneck", 1),
        ("slices", 1),
        ("switch-profiles", 2),
    ];
    for (example, blocks) in examples {
        let page = checkout().join("examples").join(example).join("README.md");
        assert_eq!(Reader::new(example, &page).follows(&page), blocks, "{example}");
    }
}

/// A block to run that no test covers would be skipped silently.
#[test]
fn each_page_with_something_to_run_is_followed_by_a_test() {
    let mut pages: Vec<PathBuf> =
        blocks().into_iter().filter(|block| block.kind == "console").map(|block| block.page).collect();
    pages.dedup();
    let followed = [
        "README.md",
        "docs/guide/coming-from-faucet.md",
        "docs/guide/coming-from-onos.md",
        "docs/guide/first-network.md",
        "docs/guide/operating.md",
        "docs/guide/packages-and-grants.md",
        "docs/reference/package.md",
        "docs/reference/profile.md",
        "examples/host-move/README.md",
        "examples/link-failure/README.md",
        "examples/shared-bottleneck/README.md",
        "examples/slices/README.md",
        "examples/switch-profiles/README.md",
    ];
    assert_eq!(pages, followed.map(|page| checkout().join(page)));
}
