//! Packages from end to end with the commands that people type: keys, build, sign, verify, install, and what is
//! refused.
//!
//! The tests do not wait for time to pass. For expired things, they edit the state folder with which these were
//! signed or trusted.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use emulator::{Emulation, SwitchOptions, Topology};
use monitor::{AppState, AppStatus, Verb, ZoneKind};
use operator::client;
use operator::contract::{Answer, AppView, Question};

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of a test's own with an operator's state folder and a developer's, gone when the test is.
struct World(PathBuf);

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const HEARS: &str = "[capabilities]\n'packet.in' = { match = ['arp'] }\n";

impl World {
    /// With a developer alice whom the operator trusts.
    fn new() -> World {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let world =
            World(std::env::temp_dir().join(format!("burnet-packages-{}-{number}", std::process::id())));
        fs::create_dir_all(world.0.join("app/bin")).unwrap();
        world.done("key new alice");
        world.trust("alice", "developer");
        world
    }

    /// `burnet` with these arguments; `$` is this world's folder.
    fn burnet(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.args(arguments.split_whitespace().map(|word| word.replace('$', self.0.to_str().unwrap())));
        command.env("BURNET_STATE", self.0.join("state")).env_remove("BURNET_SOCKET").stdin(Stdio::null());
        command.current_dir(&self.0).output().unwrap()
    }

    fn done(&self, arguments: &str) -> String {
        let output = self.burnet(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "burnet {arguments}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The command ends with this exit code, and its last line on standard error holds `expected`.
    fn refused(&self, arguments: &str, code: i32, expected: &str) {
        let output = self.burnet(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        let last = complaint.lines().next_back().unwrap_or_default();
        assert!(last.starts_with("burnet: ") && last.contains(expected), "burnet {arguments}: {complaint}");
        assert_eq!(output.status.code(), Some(code), "burnet {arguments}: {complaint}");
    }

    fn trust(&self, name: &str, role: &str) {
        self.done(&format!("key trust $/state/keys/{name}.pub --role {role}"));
    }

    /// Writes the app's folder and builds it; out comes the package's file.
    fn built(&self, version: &str, tables: &str) -> PathBuf {
        let manifest = format!(
            "name = 'my-app'\nversion = '{version}'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/my-app'\n{tables}"
        );
        fs::write(self.0.join("app/app.toml"), manifest).unwrap();
        let program = self.0.join("app/bin/my-app");
        fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        self.done("app build $/app");
        self.0.join(format!("my-app-{version}.burnet"))
    }

    /// The hub as a shared object of its own, built and signed by alice, and installed with all that a hub needs.
    fn install_hub(&self) {
        let hub = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples/libshared_hub.so");
        let manifest = format!(
            "name = 'my-hub'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'shared-object'\nabi = 2\nentry.any = 'lib/hub.so'\n\
             [files]\n'lib/hub.so' = '{}'\n[capabilities]\n'packet.in' = true\n'packet.out' = true\n'rule.write' = true\n\
             'view.read' = true\n",
            hub.display()
        );
        fs::write(self.0.join("app/app.toml"), manifest).unwrap();
        self.done("app build $/app");
        self.done("app sign my-hub-1.0.0.burnet --key alice");
        self.done("app install my-hub-1.0.0.burnet --grant-all");
    }

    /// This command prints this sooner or later.
    fn eventually(&self, command: &str, expected: &str) {
        let began = Instant::now();
        while !self.done(command).contains(expected) {
            assert!(began.elapsed() < PATIENCE, "burnet {command}: {}", self.done(command));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Built, and signed by alice.
    fn signed(&self, version: &str, tables: &str) -> String {
        let file = self.built(version, tables);
        let file = file.to_str().unwrap().to_owned();
        self.done(&format!("app sign {file} --key alice"));
        file
    }

    /// The folder of what is installed.
    fn folder(&self, name: &str) -> PathBuf {
        let app = self.0.join("state/apps").join(name);
        let mut entries = fs::read_dir(&app).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.is_dir()).unwrap()
    }
}

/// A running node with one app.
struct Node(Child, PathBuf);

impl Node {
    /// Starts one and waits until its app runs.
    fn start(world: &World, app: &str) -> Node {
        Node::start_until(world, app, |app| app.commands > 0)
    }

    fn start_until(world: &World, app: &str, until: impl Fn(&AppView) -> bool) -> Node {
        let socket = world.0.join("node.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.args([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "error",
            "--die-with-parent",
            "--app",
            app,
            "--socket",
        ]);
        command.arg(&socket);
        let config = world.0.join("burnet.toml");
        if config.exists() {
            command.arg("--config").arg(config);
        }
        command.env("BURNET_STATE", world.0.join("state")).stdin(Stdio::null());
        let node = Node(command.spawn().unwrap(), socket);
        node.wait("the app has begun", until);
        node
    }

    fn app(&self) -> Option<AppView> {
        match client::ask(&self.1, &Question::Apps) {
            Ok(Answer::Apps(apps)) => apps.into_iter().next(),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Option<AppStatus> {
        match client::ask(&self.1, &Question::Apps) {
            Ok(Answer::Apps(apps)) => apps.into_iter().map(|app| app.status).find(|app| app.app == name),
            _ => None,
        }
    }

    fn wait(&self, what: &str, until: impl Fn(&AppView) -> bool) -> AppView {
        let began = Instant::now();
        loop {
            match self.app() {
                Some(app) if until(&app) => return app,
                app => assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {app:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn view_of(&self, name: &str) -> Option<AppView> {
        match client::ask(&self.1, &Question::Apps) {
            Ok(Answer::Apps(apps)) => apps.into_iter().find(|app| app.status.app == name),
            _ => None,
        }
    }

    fn wait_for(&self, name: &str, what: &str, until: impl Fn(&AppView) -> bool) {
        let began = Instant::now();
        loop {
            match self.view_of(name) {
                Some(app) if until(&app) => return,
                app => assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {app:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its app is refused, for this reason.
    fn is_refused(&self, why: &str) -> AppView {
        self.wait(&format!("it is refused: {why}"), |app| {
            let said = |reason: &str| reason.contains(why);
            app.status.state == AppState::Refused
                && app.status.last_end.as_ref().is_some_and(|end| said(&end.reason))
        })
    }

    fn runs(&self) -> AppView {
        self.wait("it runs", |app| app.status.state == AppState::Running && app.commands > 0)
    }

    /// The operator says so.
    fn restart(&self) {
        let app = self.app().unwrap().status.app;
        client::ask(&self.1, &Question::App { app, verb: Verb::Restart, why: None }).unwrap();
    }

    fn kernel_restarts(&self) -> u64 {
        match client::ask(&self.1, &Question::Node) {
            Ok(Answer::Node(node)) => node.kernel_restarts,
            _ => 0,
        }
    }

    fn kernel_pid(&self) -> u32 {
        match client::ask(&self.1, &Question::Node) {
            Ok(Answer::Node(node)) => node.pid,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        signal("-TERM", self.0.id());
        let _ = self.0.wait();
    }
}

fn signal(which: &str, pid: u32) {
    assert!(Command::new("kill").args([which, &pid.to_string()]).status().unwrap().success());
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_package_that_nobody_vouches_for_is_not_installed() {
    let world = World::new();
    let file = world.built("1.0.0", HEARS).to_str().unwrap().to_owned();
    world.refused(&format!("app verify {file}"), 1, "my-app-1.0.0.burnet is unsigned");
    world.refused(&format!("app install {file} --grant-all"), 1, "is unsigned");
    world.done("key new mallory");
    world.done(&format!("app sign {file} --key mallory --role operator"));
    world.refused(&format!("app install {file} --grant-all"), 1, "has no signature of a trusted key");
    world.refused("app show my-app", 2, "my-app is not installed");
    fs::write(world.0.join("burnet.toml"), "[packages]\nrequire = 'none'\n").unwrap();
    world.done(&format!("app install {file} --grant-all --config burnet.toml"));
}

#[test]
fn a_package_that_was_altered_is_not_installed() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    let sound = fs::read(&file).unwrap();
    let place = sound.windows(6).position(|bytes| bytes == b"exit 0").unwrap();
    let mut altered = sound.clone();
    altered[place + 5] = b'1';
    fs::write(&file, &altered).unwrap();
    world.refused(&format!("app install {file} --grant-all"), 1, "altered: bin/my-app has other content");
    fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    world.refused(&format!("app verify {file}"), 1, "is not a valid package: it is cut short");
    fs::write(&file, [sound.as_slice(), b"x"].concat()).unwrap();
    world.refused(&format!("app sign {file} --key alice"), 1, "it has data after its end");
    // The signatures of one package on another.
    let other = world.built("1.0.1", HEARS);
    let signed = package::Package::read(&sound).unwrap();
    let bytes = fs::read(&other).unwrap();
    let mut forged = package::Package::read(&bytes).unwrap();
    forged.signatures_mut().add(signed.signatures().all()[0].clone()).unwrap();
    fs::write(&other, forged.to_bytes()).unwrap();
    world.refused(
        &format!("app install {} --grant-all", other.display()),
        1,
        "was altered: a signature does not match its content",
    );
}

#[test]
fn what_has_expired_or_was_revoked_does_not_count() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    world.done("key trust $/state/keys/alice.pub --role developer --expires 30d");
    world.done(&format!("app verify {file}"));
    let store = world.0.join("state/trust.toml");
    let text = fs::read_to_string(&store).unwrap();
    let until = text.lines().find(|line| line.starts_with("expires = ")).unwrap();
    change(&store, until, "expires = \"2020-01-01T00:00:00Z\"");
    world.refused(&format!("app install {file} --grant-all"), 1, "expired key");
    assert!(world.done("key list").contains("expired at 2020-01-01T00:00:00Z"));
    world.refused(
        "key trust $/state/keys/alice.pub --role developer --expires 2020-01-01",
        2,
        "would already be expired",
    );
    world.trust("alice", "developer");
    world.done(&format!("app install {file} --grant-all"));
    assert!(world.done("app show").contains("as it was signed"));
    world.done("key distrust alice");
    assert!(world.done("app show").contains("is signed with a revoked key"));
    world.refused(&format!("app install {file} --grant-all"), 1, "revoked key");
    world.refused("key trust $/state/keys/alice.pub --role developer", 2, "was revoked at");
}

#[test]
fn a_key_file_that_others_can_read_signs_nothing() {
    let world = World::new();
    let file = world.built("1.0.0", "");
    let key = world.0.join("state/keys/alice.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    world.refused(&format!("app sign {} --key alice", file.display()), 1, "by others (mode 0644)");
    world.refused(&format!("app sign {} --key bob", file.display()), 1, "burnet key new bob makes one");
}

#[test]
fn what_is_asked_for_needs_a_yes_and_an_update_that_asks_for_more_another() {
    let world = World::new();
    let first = world.signed("1.0.0", HEARS);
    world.refused(&format!("app install {first}"), 2, "there is no terminal to ask on: add --grant-all");
    let said = world.done(&format!("app install {first} --grant-all"));
    assert!(said.contains("my-app 1.0.0 is installed, with all its requests granted"), "{said}");
    assert!(
        world
            .done("app show my-app")
            .contains("granted  packet.in  receive the packet-ins of switches for packets of arp")
    );

    let same = world.signed("1.1.0", HEARS);
    let said = world.done(&format!("app install {same}"));
    assert!(said.contains("requests no more than before"), "{said}");

    let more = world.signed("1.2.0", "[capabilities]\n'packet.in' = true\n'stats.read' = true\n");
    world.refused(&format!("app install {more}"), 2, "add --grant-all");
    let output = world.burnet(&format!("app install {more} --grant-all"));
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("It requests more than before:"), "{shown}");
    assert!(shown.contains("(before: receive the packet-ins of switches for packets of arp)"), "{shown}");
    assert!(shown.contains("stats.read"), "{shown}");
}

#[test]
fn what_was_taken_away_stays_away_with_an_update() {
    let world = World::new();
    let tables = "[capabilities]\n'packet.in' = true\n'packet.out' = true\n";
    world.done(&format!("app install {} --grant-all", world.signed("1.0.0", tables)));
    world.refused(
        "app revoke my-app rule.write",
        2,
        "does not request rule.write; it requests packet.in, packet.out",
    );
    world.refused("app revoke my-app", 2, "name what my-app may no longer do");
    world.done("app revoke my-app packet.out");
    world.done(&format!("app install {}", world.signed("1.0.1", tables)));
    let shown = world.done("app show my-app");
    assert!(shown.contains("granted  packet.in") && shown.contains("refused  packet.out"), "{shown}");
    world.done("app grant my-app");
    assert!(world.done("app show my-app").contains("granted  packet.out"));
}

#[test]
fn an_older_version_is_not_installed_over_a_newer_one_unless_it_is_meant() {
    let world = World::new();
    let old = world.signed("1.0.0", HEARS);
    world.done(&format!("app install {} --grant-all", world.signed("1.0.1", HEARS)));
    world.refused(
        &format!("app install {old} --grant-all"),
        1,
        "my-app 1.0.0 is older than 1.0.1, which is installed",
    );
    world.done(&format!("app install {old} --grant-all --allow-downgrade"));
    assert!(world.done("app show").contains("1.0.0"));
}

#[test]
fn an_operators_signature_can_be_required() {
    let world = World::new();
    fs::write(world.0.join("burnet.toml"), "[packages]\nrequire = 'operator'\n").unwrap();
    let file = world.signed("1.0.0", "");
    world.refused(
        &format!("app install {file} --config burnet.toml"),
        1,
        "an operator signature is required",
    );
    world.done(&format!("app sign {file} --key alice --role operator"));
    world.refused(&format!("app install {file} --config burnet.toml"), 1, "trusted only as a developer key");
    world.done("key new boss");
    world.trust("boss", "operator");
    world.done(&format!("app sign {file} --key boss --role operator"));
    let said = world.done(&format!("app install {file} --config burnet.toml"));
    assert!(said.contains("is installed; it requests nothing"), "{said}");
}

#[test]
fn tampering_with_what_is_installed_is_shown_and_mended_by_installing_again() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    world.done(&format!("app install {file} --grant-all"));
    fs::write(world.folder("my-app").join("bin/my-app"), "#!/bin/sh\nrm -rf /\n").unwrap();
    assert!(world.done("app show").contains("was altered on disk: bin/my-app has other content"));
    world.refused("app grant my-app", 1, "was altered on disk");
    // A damaged package does not show what it requested before, so the operator must grant all again.
    world.refused(&format!("app install {file}"), 2, "add --grant-all");
    world.done(&format!("app install {file} --grant-all"));
    assert!(world.done("app show").contains("as it was signed"));
    assert!(world.done("app remove my-app").contains("my-app is removed"));
    world.refused("app remove my-app", 2, "my-app is not installed");
    assert!(!world.0.join("state/apps/my-app").exists());
}

#[test]
fn only_a_shared_object_gets_a_word_for_trusted_mode() {
    let world = World::new();
    world.done(&format!("app install {} --grant-all", world.signed("1.0.0", "")));
    world.refused(
        "app trust my-app",
        2,
        "my-app is a separate program and cannot run inside the kernel process",
    );
}

#[test]
fn what_cannot_be_built_is_said_with_its_line() {
    let world = World::new();
    world.refused("app build $/nowhere", 2, "a package begins with its manifest");
    fs::write(world.0.join("app/app.toml"), "name = 'a'\nversion = '1'\n").unwrap();
    world.refused("app build $/app", 2, "app/app.toml, line 2: \"1\" is no version");
    let file = world.built("1.0.0", "");
    fs::remove_file(world.0.join("app/bin/my-app")).unwrap();
    world.refused("app build $/app", 2, "bin/my-app cannot be read");
    let before = fs::read(&file).unwrap();
    world.built("1.0.0", "");
    assert!(before == fs::read(&file).unwrap(), "the same folder makes the same bytes");
}

const RUN: &str = "run --listen 127.0.0.1:0 --socket $/node.sock --app";

#[test]
fn a_node_does_not_start_what_nobody_vouches_for_any_more() {
    let world = World::new();
    world.install_hub();
    world.refused(&format!("{RUN} my-app"), 2, "none of that name is installed");
    world.refused(&format!("{RUN} my-hub=trusted"), 2, "you have not trusted it: burnet app trust my-hub");
    let library = world.folder("my-hub").join("lib/hub.so");
    let sound = fs::read(&library).unwrap();
    fs::write(&library, [sound.as_slice(), b"x"].concat()).unwrap();
    world.refused(&format!("{RUN} my-hub"), 2, "was altered on disk: lib/hub.so has other content");
    fs::write(&library, sound).unwrap();
    world.done("key distrust alice");
    world.refused(
        &format!("{RUN} my-hub"),
        2,
        "the app my-hub does not start: it is signed with a revoked key",
    );
}

#[test]
fn a_node_starts_what_is_installed_and_finds_tampering_at_the_next_start() {
    let world = World::new();
    world.install_hub();
    let node = Node::start(&world, "my-hub");
    let app = node.app().unwrap();
    let package = app.package.unwrap();
    assert_eq!((package.version.as_str(), package.signed.as_str()), ("1.0.0", "developer alice"));
    assert_eq!(app.refusals, 0);
    if rustix::process::geteuid().is_root() {
        let users = fs::read_to_string(world.0.join("state/users.toml")).unwrap();
        assert!(users.contains("my-hub = 19000"), "{users}");
    }
    let listed = world.done("app list --socket $/node.sock");
    assert!(listed.contains(&format!("1.0.0 {} (developer alice)", &package.digest[..12])), "{listed}");

    let library = world.folder("my-hub").join("lib/hub.so");
    let mut bytes = fs::read(&library).unwrap();
    bytes[100] ^= 1;
    // Another file in its place: the running one keeps its own.
    fs::remove_file(&library).unwrap();
    fs::write(&library, bytes).unwrap();
    fs::set_permissions(&library, fs::Permissions::from_mode(0o755)).unwrap();
    node.restart();
    node.is_refused("was altered on disk: lib/hub.so has other content");
    node.restart();
    node.wait("it is still refused", |app| {
        let end = app.status.last_end.as_ref();
        end.is_some_and(|end| end.reason.contains("my-hub 1.0.0: was altered on disk"))
    });
    world.done("app install my-hub-1.0.0.burnet --grant-all");
    node.restart();
    node.runs();
}

/// Of a node that runs my-hub in this kind of zone, beside the service that judges packages.
fn judged(world: &World, app: &str) -> Node {
    let node = Node::start(world, app);
    node.wait_for("security", "the service runs", |service| service.status.state == AppState::Running);
    node
}

#[test]
fn who_is_distrusted_while_its_app_runs_does_not_run_on() {
    let world = World::new();
    fs::write(world.0.join("burnet.toml"), "[node]\naudit = true\n").unwrap();
    world.install_hub();
    let node = judged(&world, "my-hub");
    assert!(world.done("key distrust alice").contains("ends their apps within a second or two"));
    let app = node.is_refused("is signed with a revoked key");
    assert_eq!((app.status.restarts, app.status.pid), (0, None));
    let listed = world.done("app list --socket $/node.sock");
    assert!(listed.contains("Fix the cause, then run: burnet app restart my-hub"), "{listed}");
    world.eventually("incidents", "package refused");
    world.eventually("audit", "package_refused");
    node.restart();
    node.wait("it is refused again", |app| {
        app.status.last_end.as_ref().is_some_and(|end| end.reason.contains("the app my-hub does not start"))
    });
    world.done("key new bob");
    world.trust("bob", "developer");
    world.done("app sign my-hub-1.0.0.burnet --key bob");
    world.done("app install my-hub-1.0.0.burnet --grant-all");
    node.restart();
    assert!(node.runs().package.unwrap().signed.contains("developer bob"));
}

#[test]
fn a_key_that_expires_while_its_app_runs_ends_it_and_a_restart_of_the_kernel_does_not_bring_it_back() {
    let world = World::new();
    world.install_hub();
    world.done("key trust $/state/keys/alice.pub --role developer --expires 30d");
    let node = judged(&world, "my-hub");
    let store = world.0.join("state/trust.toml");
    let text = fs::read_to_string(&store).unwrap();
    let until = text.lines().find(|line| line.starts_with("expires = ")).unwrap();
    change(&store, until, "expires = \"2020-01-01T00:00:00Z\"");
    node.is_refused("is signed with an expired key");
    let kernel = node.kernel_pid();
    signal("-KILL", kernel);
    node.wait("another kernel answers", |_| node.kernel_restarts() > 0);
    node.wait_for("security", "the service is back", |service| service.commands > 0);
    node.is_refused("is signed with an expired key");
    world.trust("alice", "developer");
    node.restart();
    node.runs();
}

/// Two apps of one developer, whose key is revoked: the one that somebody else signs is back, whatever becomes of the other.
#[test]
fn an_app_that_is_mended_comes_back_although_another_is_not() {
    let world = World::new();
    world.install_hub();
    let file = world.signed("1.0.0", "");
    world.done(&format!("app install {file}"));
    fs::write(world.0.join("burnet.toml"), "[app.my-hub]\n[app.my-app]\n[safe_mode]\napps = ['my-app']\n")
        .unwrap();
    let node = Node::start(&world, "my-hub");
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
    node.wait_for("my-app", "it is refused too", |app| app.status.state == AppState::Refused);
    world.done("key new bob");
    world.trust("bob", "developer");
    world.done("app sign my-hub-1.0.0.burnet --key bob");
    world.done("app install my-hub-1.0.0.burnet --grant-all");
    node.restart();
    node.runs();
    assert_eq!(node.view_of("my-app").unwrap().status.state, AppState::Refused);
}

#[test]
fn what_is_taken_from_an_app_that_runs_it_does_not_keep() {
    let world = World::new();
    world.install_hub();
    let node = judged(&world, "my-hub");
    world.done("app revoke my-hub packet.in");
    node.is_refused("is no longer granted packet.in, which it was started with");
    node.restart();
    node.wait("it runs, and its subscription is refused", |app| {
        app.status.state == AppState::Running && app.refusals > 0
    });
}

#[test]
fn what_is_granted_to_an_app_that_runs_it_has_at_once() {
    let world = World::new();
    world.install_hub();
    world.done("app revoke my-hub packet.in packet.out");
    let node = Node::start(&world, "my-hub");
    let before = node.wait("its subscription is refused", |app| app.refusals > 0);
    let Some(Answer::Node(view)) = client::ask(&node.1, &Question::Node).ok() else { panic!("no answer") };
    let topology: Topology = "single,2".parse().unwrap();
    let network =
        Emulation::start(&topology, view.listen[0].parse().unwrap(), &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let said = world.done("app grant my-hub packet.in packet.out --socket $/node.sock");
    assert!(said.contains("app my-hub gets other capabilities or quotas, immediately"), "{said}");
    let report = network.ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    let after = node.app().unwrap();
    assert_eq!((after.status.pid, after.status.generation), (before.status.pid, before.status.generation));
    let said = world.done("app grant my-hub --socket $/node.sock");
    assert!(said.contains("nothing changes for the running node"), "{said}");
    let alone = world.done("app grant my-hub --socket $/nowhere.sock");
    assert!(alone.contains("no running node was informed"), "{alone}");
}

#[test]
fn an_app_that_loses_the_operators_word_leaves_the_kernel() {
    let world = World::new();
    world.install_hub();
    world.done("app trust my-hub");
    let node = judged(&world, "my-hub=trusted");
    let kernel = node.kernel_pid();
    world.done("app untrust my-hub");
    let app = node.wait("it runs in a process zone", |app| {
        app.status.kind == ZoneKind::Process && app.status.state == AppState::Running && app.commands > 0
    });
    assert!(app.status.demoted.unwrap().reason.contains("is no longer trusted by you"));
    assert_eq!(node.kernel_pid(), kernel);
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
}

/// The service neither answers nor ends: the monitor judges.
#[test]
fn while_the_service_is_silent_apps_start_and_are_refused_all_the_same() {
    let world = World::new();
    world.install_hub();
    let node = judged(&world, "my-hub");
    let service = node.named("security").unwrap().pid.unwrap();
    let stopped = descendants(service);
    assert!(stopped.len() > 1, "{stopped:?}");
    stopped.iter().for_each(|pid| signal("-STOP", *pid));
    let before = node.app().unwrap().status.generation;
    node.restart();
    node.wait("it runs again", |app| app.status.generation > before && app.commands > 0);
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
    stopped.iter().for_each(|pid| signal("-CONT", *pid));
}

/// The service is killed again and again, and is back; nobody else notices.
#[test]
fn a_service_that_is_killed_costs_nobody_anything() {
    let world = World::new();
    world.install_hub();
    let node = judged(&world, "my-hub");
    let service = node.named("security").unwrap();
    signal("-KILL", service.pid.unwrap());
    let back =
        |app: &AppView| app.status.generation > service.generation && app.status.state == AppState::Running;
    node.wait_for("security", "it is back, and has answered", back);
    assert_eq!(node.app().unwrap().status.restarts, 0);
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
}

/// A process and those that it started.
fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", all[next]));
        all.extend(children.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        next += 1;
    }
    all
}

#[test]
fn a_node_that_runs_takes_what_is_installed_and_ends_what_is_removed() {
    let world = World::new();
    let node = Node::start(&world, "hub");
    world.install_hub();
    let start = "app install my-hub-1.0.0.burnet --grant-all --start --socket";
    world.refused(
        &format!("{start} $/nowhere.sock"),
        1,
        "my-hub is installed, and not started: no node answers",
    );
    let kernel = node.kernel_pid();
    assert!(world.done(&format!("{start} $/node.sock")).contains("It runs on the running node"));
    // Said of what was installed now, and not of what ran before under the same name and version.
    let generation =
        || node.named("my-hub").filter(|app| app.state == AppState::Running).map(|app| app.generation);
    let before = generation().unwrap();
    assert!(world.done(&format!("{start} $/node.sock")).contains("It runs on the running node"));
    assert!(generation().is_some_and(|now| now > before), "{:?}", node.named("my-hub"));
    let listed = || world.done("app list --socket $/node.sock");
    assert!(listed().contains("(developer alice)"), "{}", listed());
    assert_eq!(node.kernel_pid(), kernel, "the node was started anew");
    // What was added is an app like any other, also for the next kernel process.
    signal("-KILL", kernel);
    node.wait("both run again", |app| app.commands > 0 && app.status.restarts == 1);
    let began = Instant::now();
    let runs_as_it_was_signed =
        |line: &str| ["my-hub", "running", "(developer alice)"].iter().all(|word| line.contains(word));
    while !listed().lines().any(runs_as_it_was_signed) {
        assert!(began.elapsed() < PATIENCE, "{}", listed());
    }
    assert!(world.done("app remove my-hub --socket $/node.sock").contains("ends on the running node"));
    while listed().contains("my-hub") {
        assert!(began.elapsed() < PATIENCE, "{}", listed());
    }
    assert_eq!(node.app().unwrap().status.app, "hub");
}

/// An environment of Debian's Python that has a module `burnet`, without which a node starts no program in Python: an empty one, since the
/// program here does not use it.
fn python_with_the_sdk(world: &World) -> PathBuf {
    let folder = world.0.join("python");
    let made = Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
    assert!(made.unwrap().success(), "no environment could be made");
    let library = fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    fs::create_dir(library.join("site-packages/burnet")).unwrap();
    fs::write(library.join("site-packages/burnet/__init__.py"), "").unwrap();
    folder.join("bin/python3")
}

/// A package whose entry is `main.py` with this text, installed; the interpreter of the node is an environment with the SDK.
fn install_py(world: &World, kind: &str, script: &str) {
    let python = python_with_the_sdk(world);
    let config = format!("[python]\ninterpreter = '{}'\n", python.display());
    fs::write(world.0.join("burnet.toml"), config).unwrap();
    let program = world.0.join("app/main.py");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.0.join("app/words.txt"), "from the package").unwrap();
    let manifest = format!(
        "name = 'my-py'\nversion = '1.0.0'\ndescription = 'It.'\nkind = '{kind}'\nabi = 2\nentry.any = 'main.py'\n\
         [files]\n'words.txt' = 'words.txt'\n"
    );
    fs::write(world.0.join("app/app.toml"), manifest).unwrap();
    world.done("app build $/app");
    world.done("app sign my-py-1.0.0.burnet --key alice");
    world.done("app install my-py-1.0.0.burnet");
}

/// The last line of its first life.
fn last_line(world: &World) -> String {
    let node = Node::start_until(world, "my-py", |app| app.status.last_end.is_some());
    node.app().unwrap().status.last_end.unwrap().last_line.unwrap_or_default()
}

fn has_debians_python() -> bool {
    let has = Path::new("/usr/bin/python3").exists();
    if !has {
        eprintln!("left out: there is no /usr/bin/python3");
    }
    has
}

/// It sees the other files of its package, and no more of the state folder.
#[test]
fn a_python_program_runs_from_its_package() {
    if !has_debians_python() {
        return;
    }
    let world = World::new();
    let script = "import os, sys\nhere = os.path.dirname(sys.argv[0])\n\
                  print(open(here + '/words.txt').read(), os.path.exists(here + '/../../../trust.toml'), flush=True)\n";
    install_py(&world, "python", script);
    assert_eq!(last_line(&world), "from the package False");
}

/// Whatever its first line names would run as the node's user, outside of every zone.
#[test]
fn what_a_packages_file_names_is_never_run_outside_of_its_zone() {
    if !has_debians_python() {
        return;
    }
    for kind in ["python", "native"] {
        let world = World::new();
        let (named, trace) = (world.0.join("named"), world.0.join("trace"));
        fs::write(&named, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
        fs::set_permissions(&named, fs::Permissions::from_mode(0o755)).unwrap();
        install_py(&world, kind, &format!("#!{}\nprint('it ran')\n", named.display()));
        let line = last_line(&world);
        assert_eq!(line.contains("it ran"), kind == "python", "{kind}: {line}");
        assert!(!trace.exists(), "{kind}");
    }
}

#[test]
fn what_is_not_granted_is_refused_by_the_kernel() {
    let world = World::new();
    world.install_hub();
    world.done("app revoke my-hub packet.in");
    let node = Node::start(&world, "my-hub");
    node.wait("its subscription is refused", |app| app.refusals > 0);
}

#[test]
fn an_app_that_took_the_kernel_down_is_not_trusted_again_until_the_operator_says_so() {
    let world = World::new();
    world.install_hub();
    assert!(world.done("app trust my-hub").contains("may run inside the kernel's process"));
    {
        let node = Node::start(&world, "my-hub=trusted");
        assert_eq!(node.app().unwrap().status.kind, ZoneKind::Trusted);
        signal("-KILL", node.kernel_pid());
        node.wait("it runs in a process zone", |app| {
            app.status.kind == ZoneKind::Process && app.status.state == AppState::Running && app.commands > 0
        });
        let began = Instant::now();
        while !world.done("app show my-hub").contains("it lost your trust at") {
            assert!(began.elapsed() < PATIENCE, "the fall is not written down");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    {
        let node = Node::start(&world, "my-hub=trusted");
        let app = node.app().unwrap();
        assert_eq!(app.status.kind, ZoneKind::Process);
        assert!(app.package.unwrap().demoted.unwrap().contains("it lost your trust at"));
    }
    assert!(world.done("app trust my-hub").contains("It lost your trust at"));
    let node = Node::start(&world, "my-hub=trusted");
    assert_eq!(node.app().unwrap().status.kind, ZoneKind::Trusted);
}
