//! Apps from packages on a running node: started, refused, granted more or less, and no longer trusted.

use super::world::{Running, World, change};
use emulator::SwitchOptions;
use monitor::{AppState, ZoneKind};
use operator::contract::AppView;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use test_bed::{PATIENCE, kill, signal};

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
    let node = Running::start(&world, "my-hub");
    let app = node.app();
    let package = app.package.unwrap();
    assert_eq!((package.version.as_str(), package.signed.as_str()), ("1.0.0", "developer alice"));
    assert_eq!(app.refusals, 0);
    if rustix::process::geteuid().is_root() {
        let users = fs::read_to_string(world.path("state/users.toml")).unwrap();
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

#[test]
fn who_is_distrusted_while_its_app_runs_does_not_run_on() {
    let world = World::new();
    fs::write(world.path("burnet.toml"), "[node]\naudit = true\n").unwrap();
    world.install_hub();
    let node = Running::start_judged(&world, "my-hub");
    assert!(world.done("key distrust alice").contains("a running node stops their apps within two seconds"));
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
    let node = Running::start_judged(&world, "my-hub");
    let store = world.path("state/trust.toml");
    let text = fs::read_to_string(&store).unwrap();
    let until = text.lines().find(|line| line.starts_with("expires = ")).unwrap();
    change(&store, until, "expires = \"2020-01-01T00:00:00Z\"");
    node.is_refused("is signed with an expired key");
    let kernel = node.kernel_pid();
    kill(kernel);
    node.wait("another kernel answers", |_| node.view().kernel_restarts > 0);
    node.wait_app("security", "the service is back", |service| service.commands > 0);
    node.is_refused("is signed with an expired key");
    world.trust("alice", "developer");
    node.restart();
    node.runs();
}

/// Two apps of one developer, whose key is revoked: the one that another developer signs runs again, even if the other does not.
#[test]
fn an_app_that_is_mended_comes_back_although_another_is_not() {
    let world = World::new();
    world.install_hub();
    let file = world.signed("1.0.0", "");
    world.done(&format!("app install {file}"));
    fs::write(world.path("burnet.toml"), "[app.my-hub]\n[app.my-app]\n[safe_mode]\napps = ['my-app']\n")
        .unwrap();
    let node = Running::start(&world, "my-hub");
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
    node.wait_app("my-app", "it is refused too", |app| app.status.state == AppState::Refused);
    world.done("key new bob");
    world.trust("bob", "developer");
    world.done("app sign my-hub-1.0.0.burnet --key bob");
    world.done("app install my-hub-1.0.0.burnet --grant-all");
    node.restart();
    node.runs();
    assert_eq!(node.app_named("my-app").status.state, AppState::Refused);
}

#[test]
fn what_is_taken_from_an_app_that_runs_it_does_not_keep() {
    let world = World::new();
    world.install_hub();
    let node = Running::start_judged(&world, "my-hub");
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
    let node = Running::start(&world, "my-hub");
    let before = node.wait("its subscription is refused", |app| app.refusals > 0);
    let network = node.network("single,2", &SwitchOptions::default());
    let said = world.done("app grant my-hub packet.in packet.out --socket $/node.sock");
    assert!(said.contains("app my-hub gets other capabilities or quotas, immediately"), "{said}");
    let report = network.ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    let after = node.app();
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
    let node = Running::start_judged(&world, "my-hub=trusted");
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
    let node = Running::start_judged(&world, "my-hub");
    let service = node.pid_of("security").unwrap();
    let stopped = descendants(service);
    assert!(stopped.len() > 1, "{stopped:?}");
    stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
    let before = node.app().status.generation;
    node.restart();
    node.wait("it runs again", |app| app.status.generation > before && app.commands > 0);
    world.done("key distrust alice");
    node.is_refused("is signed with a revoked key");
    stopped.iter().for_each(|pid| signal(*pid, Signal::CONT));
}

/// The service is killed again and again, and is back; nobody else notices.
#[test]
fn a_service_that_is_killed_costs_nobody_anything() {
    let world = World::new();
    world.install_hub();
    let node = Running::start_judged(&world, "my-hub");
    let service = node.app_named("security").status;
    kill(service.pid.unwrap());
    let back =
        |app: &AppView| app.status.generation > service.generation && app.status.state == AppState::Running;
    node.wait_app("security", "it is back, and has answered", back);
    assert_eq!(node.app().status.restarts, 0);
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
    let node = Running::start(&world, "hub");
    world.install_hub();
    let start = "app install my-hub-1.0.0.burnet --grant-all --start --socket";
    world.refused(
        &format!("{start} $/nowhere.sock"),
        1,
        "my-hub is installed, but was not started: no node answers",
    );
    let kernel = node.kernel_pid();
    assert!(world.done(&format!("{start} $/node.sock")).contains("It runs on the running node"));
    // Said of what was installed now, and not of what ran before under the same name and version.
    let generation =
        || node.find("my-hub").filter(|app| app.state == AppState::Running).map(|app| app.generation);
    let before = generation().unwrap();
    assert!(world.done(&format!("{start} $/node.sock")).contains("It runs on the running node"));
    assert!(generation().is_some_and(|now| now > before), "{:?}", node.find("my-hub"));
    let listed = || world.done("app list --socket $/node.sock");
    assert!(listed().contains("(developer alice)"), "{}", listed());
    assert_eq!(node.kernel_pid(), kernel, "the node was started anew");
    // What was added is an app like any other, also for the next kernel process.
    kill(kernel);
    node.wait("both run again", |app| app.commands > 0 && app.status.restarts == 1);
    let began = Instant::now();
    let runs_as_it_was_signed =
        |line: &str| ["my-hub", "running", "(developer alice)"].iter().all(|word| line.contains(word));
    while !listed().lines().any(runs_as_it_was_signed) {
        assert!(began.elapsed() < PATIENCE, "{}", listed());
    }
    assert!(world.done("app remove my-hub --socket $/node.sock").contains("the running node stops it"));
    while listed().contains("my-hub") {
        assert!(began.elapsed() < PATIENCE, "{}", listed());
    }
    assert_eq!(node.app().status.app, "hub");
}

#[test]
fn what_is_not_granted_is_refused_by_the_kernel() {
    let world = World::new();
    world.install_hub();
    world.done("app revoke my-hub packet.in");
    let node = Running::start(&world, "my-hub");
    node.wait("its subscription is refused", |app| app.refusals > 0);
}

#[test]
fn an_app_that_took_the_kernel_down_is_not_trusted_again_until_the_operator_says_so() {
    let world = World::new();
    world.install_hub();
    assert!(world.done("app trust my-hub").contains("may run inside the kernel's process"));
    {
        let node = Running::start(&world, "my-hub=trusted");
        assert_eq!(node.app().status.kind, ZoneKind::Trusted);
        kill(node.kernel_pid());
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
        let node = Running::start(&world, "my-hub=trusted");
        let app = node.app();
        assert_eq!(app.status.kind, ZoneKind::Process);
        assert!(app.package.unwrap().demoted.unwrap().contains("it lost your trust at"));
    }
    assert!(world.done("app trust my-hub").contains("It lost your trust at"));
    let node = Running::start(&world, "my-hub=trusted");
    assert_eq!(node.app().status.kind, ZoneKind::Trusted);
}
