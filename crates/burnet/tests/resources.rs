//! A whole node with an app that uses too much. Are the app and the operator notified, is the app stopped, and are
//! other apps unaffected?

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use abi::event::quota;
use emulator::{SwitchOptions, Versions};
use monitor_channel::ZoneKind;
use operator::contract::{AppUsageView, UsageView};
use std::process::Command;
use test_bed::{Bed, Node, PATIENCE, kill};
use zone::Resource;

const MIB: u64 = 1 << 20;

/// A node with a glutton and an app that is none. `limits` and `sandbox` are lines of the glutton's tables.
fn start(settings: &str, limits: &str, sandbox: &str, with_groups: bool) -> Node {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let config = format!(
        "[app.learning-switch]\n[app.glutton]\npath = '{}'\n[app.glutton.settings]\n{settings}\n\
         [app.glutton.limits]\n{limits}\n[app.glutton.sandbox]\n{sandbox}\n",
        bed.example("glutton").display()
    );
    let node = start_configured(&bed, &config, with_groups);
    node.wait("the glutton has been looked at", |node| !glutton(node).samples.is_empty());
    node
}

fn start_configured(bed: &Bed, config: &str, with_groups: bool) -> Node {
    let launch = bed.node().config(config).args(["--grant-all"]).log("info");
    // Only root can make a mount namespace. A user who is not root has no control groups, or those that systemd delegated.
    let hides_groups = !with_groups && rustix::process::geteuid().is_root();
    if hides_groups { launch.within(without_groups()).start() } else { launch.start() }
}

/// Runs a program in a mount namespace where no control group is mounted.
fn without_groups() -> Command {
    let mut command = Command::new("unshare");
    let without =
        "grep cgroup /proc/self/mounts | cut -d' ' -f2 | xargs -r -n1 umount -l; exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", without]);
    command
}

fn glutton(node: &Node) -> AppUsageView {
    node.usage_of("glutton").unwrap()
}

/// Why the glutton ended last.
fn last_end(node: &Node) -> Option<String> {
    glutton(node).status.last_end.map(|end| end.reason)
}

/// Hosts reach each other by the learning switch, which never stopped.
fn others_are_unharmed(node: &Node) {
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let report = node.network("tree,2", &options).ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    assert_eq!(node.view().kernel_restarts, 0);
    assert_eq!(node.usage_of("learning-switch").unwrap().status.restarts, 0);
}

fn used(app: &AppUsageView, resource: Resource) -> u64 {
    app.samples.iter().filter_map(|sample| resource.used(sample)).max().unwrap_or_default()
}

#[test]
fn a_leak_is_told_of_and_never_gets_past_its_hard_limit_and_the_node_does_not_grow() {
    let node = start(
        "what = 'memory'\nbefore = 56",
        "memory_bytes = { soft = 50331648, hard = 67108864 }",
        "",
        true,
    );
    let before = node.usage();
    node.wait_for_line("app glutton uses more than a soft limit: memory_bytes: ");
    node.wait_for_line("glutton: told of 6: ");
    node.wait("it has ended", |node| glutton(node).status.last_end.is_some());
    node.wait("it is back", |node| glutton(node).status.restarts > 0 && glutton(node).over.is_empty());
    let after = node.usage();
    assert!(used(&glutton(&node), Resource::MemoryBytes) <= 64 * MIB, "{:?}", glutton(&node));
    let reason = last_end(&node).unwrap();
    assert!(["SIGABRT", "SIGKILL", "memory_bytes"].iter().any(|word| reason.contains(word)), "{reason}");
    let memory = |samples: &[zone::Sample]| samples.last().unwrap().memory_bytes.unwrap();
    assert!(memory(&after.kernel) < memory(&before.kernel) + 8 * MIB, "{before:?} {after:?}");
    assert!(memory(&after.monitor) < memory(&before.monitor) + 8 * MIB, "{before:?} {after:?}");
    others_are_unharmed(&node);
}

#[test]
fn processes_that_hold_too_much_together_are_ended_by_the_monitor() {
    let limits = "memory_bytes = 67108864\nprocesses = 64";
    let node = start("what = 'family'\nbefore = 40", limits, "spawn = true", false);
    node.wait("it has ended", |node| glutton(node).status.last_end.is_some());
    let reason = last_end(&node).unwrap();
    assert!(reason.starts_with("memory_bytes: it used ") && reason.ends_with(" of 64.0 MiB"), "{reason}");
    others_are_unharmed(&node);
}

#[test]
fn who_takes_too_much_processor_time_is_kept_to_it_or_ended() {
    for with_groups in [true, false] {
        let limits = "cpu_percent = { soft = 10, hard = 30 }";
        let node = start("what = 'processor'\nbefore = 0", limits, "", with_groups);
        let kept = !glutton(&node).status.not_enforced.iter().any(|gap| gap.limit == "cpu_percent");
        node.wait_for_line("app glutton uses more than a soft limit: cpu_percent: ");
        match kept {
            true => {
                node.wait_for_line("glutton: told of 5: ");
                node.wait("it has been looked at often", |node| glutton(node).samples.len() > 15);
                assert_eq!(last_end(&node), None);
            }
            false => {
                node.wait("it has ended", |node| glutton(node).status.last_end.is_some());
                let reason = last_end(&node).unwrap();
                assert!(
                    reason.starts_with("cpu_percent: it used ") && reason.ends_with(" of 30 %"),
                    "{reason}"
                );
            }
        }
        others_are_unharmed(&node);
    }
}

#[test]
fn who_opens_too_much_is_told_and_then_gets_no_more() {
    let limits = "open_files = { soft = 40, hard = 64 }";
    let node = start("what = 'files'\nbefore = 45", limits, "", true);
    node.wait_for_line("app glutton uses more than a soft limit: open_files: ");
    node.wait_for_line("glutton: told of 7: ");
    node.wait_for_line("glutton: stopped: Too many open files");
    node.wait_for_line("app glutton is within its soft limit again: open_files: ");
    assert_eq!(last_end(&node), None);
    others_are_unharmed(&node);
}

#[test]
fn who_leaves_its_ring_unread_is_told_when_it_reads_and_ended_when_it_does_not() {
    let limits = "lag_ms = { soft = 1000, hard = 8000 }";
    let node = start("what = 'time'\nbefore = 0", limits, "", true);
    node.wait_for_line("app glutton uses more than a soft limit: lag_ms: ");
    node.wait_for_line("glutton: told of 9: ");
    node.wait("it has ended", |node| glutton(node).status.last_end.is_some());
    let reason = last_end(&node).unwrap();
    assert!(reason.starts_with("lag_ms: it left its ring unread for "), "{reason}");
    others_are_unharmed(&node);
}

#[test]
fn limits_hold_also_while_the_service_that_judges_is_killed_again_and_again() {
    let limits = "memory_bytes = 67108864";
    let node = start("what = 'family'\nbefore = 40", limits, "spawn = true", false);
    node.wait("the service has been killed, and the zone has been ended", |node| {
        let pid = node.usage_of("resource").and_then(|service| service.status.pid);
        if let Some(pid) = pid {
            kill(pid);
        }
        last_end(node).is_some()
            && node.usage_of("resource").is_some_and(|service| service.status.restarts > 0)
    });
    let reason = last_end(&node).unwrap();
    assert!(reason.starts_with("memory_bytes: it used "), "{reason}");
    others_are_unharmed(&node);
}

#[test]
fn what_is_used_is_shown_once_where_nobody_watches() {
    let node = start("what = 'files'\nbefore = 1", "", "", true);
    node.wait("each app has been looked at", |node| {
        node.usage().apps.iter().all(|app| !app.samples.is_empty())
    });
    let top = |arguments: &[&str]| {
        let output = node.bed().run(&[&["app", "top"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = top(&[]);
    for name in ["APP ", "learning-switch ", "glutton ", "(kernel) ", "(monitor) "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    assert!(text.lines().any(|line| line.starts_with("resource ")), "the service is watched too: {text}");
    let usage: UsageView = serde_json::from_str(&top(&["--json"])).unwrap();
    assert_eq!(usage.apps.len(), node.usage().apps.len());
    let memory =
        usage.apps.iter().find(|app| app.status.app == "learning-switch").unwrap().samples[0].memory_bytes;
    let memory = memory.unwrap();
    assert!((MIB / 64..64 * MIB).contains(&memory), "{memory}");
}

/// A trusted app that is never done, with these limits.
fn busy(limits: &str) -> Node {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let config = format!(
        "[node]\naudit = true\n[app.learning-switch]\n[app.busy]\npath = '{}'\nzone = 'trusted'\n[app.busy.limits]\n{limits}\n",
        bed.example("libshared_busy.so").display()
    );
    start_configured(&bed, &config, true)
}

#[test]
fn what_a_trusted_app_takes_is_shown_without_what_it_shares_with_the_kernel() {
    let node = busy("cpu_percent = { soft = 1, hard = 3200 }\nmemory_bytes = 67108864");
    node.wait("it was seen at work", |node| {
        node.usage_of("busy").is_some_and(|busy| used(&busy, Resource::CpuPercent) > 20)
    });
    node.wait_for_line("app busy uses more than a soft limit: cpu_percent: ");
    node.wait_for_line(&format!("told of {}: ", quota::CPU_PERCENT));
    let busy = node.usage_of("busy").unwrap();
    let last = *busy.samples.last().unwrap();
    assert_eq!((last.memory_bytes, last.open_files, last.processes, last.lag_ms), (None, None, None, None));
    assert!(last.commands_per_s > 0, "{last:?}");
    let limited: Vec<_> = busy.limits.iter().map(|limit| limit.resource).collect();
    assert_eq!(limited, [Resource::CpuPercent], "no other binds it");
    let listed = node.app("busy");
    assert!(listed.used.is_some_and(|used| used.cpu_percent > 0), "{listed:?}");
    let output = node.bed().run(&["app", "top"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("busy ")).unwrap();
    assert!(row.contains("running, trusted") && row.contains(" shared "), "{text}");
    assert_eq!(busy.status.demoted, None);
}

#[test]
fn a_trusted_app_that_takes_too_much_processor_time_leaves_the_kernel_for_good() {
    let node = busy("cpu_percent = 20");
    node.wait("it is demoted", |node| {
        node.usage_of("busy").is_some_and(|busy| busy.status.demoted.is_some())
    });
    node.wait("it runs in a process zone", |node| {
        node.usage_of("busy")
            .is_some_and(|busy| busy.status.kind == ZoneKind::Process && busy.status.pid.is_some())
    });
    let reason = node.usage_of("busy").unwrap().status.demoted.unwrap().reason;
    assert!(reason.starts_with("cpu_percent: it used ") && reason.ends_with(" of 20 %"), "{reason}");
    node.wait_for_line(
        "app busy: ran as a trusted app, and runs in a process zone from now on: cpu_percent: it used ",
    );
    let says = |command: &[&str], words: &[&str]| {
        let output = node.bed().run(command);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    node.wait("there is an incident", |_| says(&["incidents"], &["demoted", "busy"]));
    node.wait("there is a record", |_| says(&["audit"], &["demoted", "busy", "cpu_percent"]));
    others_are_unharmed(&node);
}
