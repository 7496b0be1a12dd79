//! A whole node with an app that uses too much. Are the app and the operator notified, is the app stopped, and are
//! other apps unaffected?

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use abi::event::quota;
use emulator::{Emulation, SwitchOptions, Topology, Versions};
use monitor::ZoneKind;
use operator::client;
use operator::contract::{Answer, AppUsageView, Question, UsageView};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zone::Resource;

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(90);

const MIB: u64 = 1 << 20;

/// A node with a glutton and an app that is none.
struct Node {
    child: Child,
    folder: PathBuf,
}

impl Node {
    /// `limits` and `sandbox` are lines of the glutton's tables.
    fn start(name: &str, settings: &str, limits: &str, sandbox: &str, with_groups: bool) -> Node {
        let program = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("glutton");
        let config = format!(
            "[app.learning-switch]\n[app.glutton]\npath = '{}'\n[app.glutton.settings]\n{settings}\n\
             [app.glutton.limits]\n{limits}\n[app.glutton.sandbox]\n{sandbox}\n",
            program.display()
        );
        let node = Node::start_configured(name, &config, with_groups);
        node.wait("the glutton has been looked at", |node| !node.glutton().samples.is_empty());
        node
    }

    fn start_configured(name: &str, config: &str, with_groups: bool) -> Node {
        let folder = std::env::temp_dir().join(format!("burnet-resources-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("burnet.toml"), config).unwrap();
        let log = File::create(folder.join("node.log")).unwrap();
        let child = command(with_groups)
            .args([
                "run",
                "--grant-all",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "info",
                "--die-with-parent",
                "--socket",
            ])
            .arg(folder.join("node.sock"))
            .arg("--config")
            .arg(folder.join("burnet.toml"))
            .env("BURNET_STATE", folder.join("state"))
            .env_remove("BURNET_SOCKET")
            .env_remove("BURNET_LOG")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Node { child, folder }
    }

    fn ask(&self, question: &Question) -> Option<Answer> {
        client::ask(&self.folder.join("node.sock"), question).ok()
    }

    /// As soon as the node answers, and its own processes have been looked at.
    fn usage(&self) -> UsageView {
        let began = Instant::now();
        loop {
            match self.ask(&Question::Usage) {
                Some(Answer::Usage(usage)) if !usage.kernel.is_empty() && !usage.monitor.is_empty() => {
                    return usage;
                }
                _ => assert!(began.elapsed() < PATIENCE, "the node does not answer: {}", self.log()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn app(&self, name: &str) -> Option<AppUsageView> {
        self.usage().apps.into_iter().find(|app| app.status.app == name)
    }

    fn glutton(&self) -> AppUsageView {
        self.app("glutton").unwrap()
    }

    fn last_end(&self) -> Option<String> {
        self.glutton().status.last_end.map(|end| end.reason)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("node.log")).unwrap_or_default()
    }

    fn wait(&self, what: &str, mut until: impl FnMut(&Node) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_line(&self, line: &str) {
        self.wait(line, |node| node.log().contains(line));
    }

    /// Hosts reach each other by the learning switch, which never stopped.
    fn others_are_unharmed(&self) {
        let Some(Answer::Node(view)) = self.ask(&Question::Node) else { panic!("the node does not answer") };
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let topology: Topology = "tree,2".parse().unwrap();
        let network = Emulation::start(&topology, view.listen[0].parse().unwrap(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        let report = network.ping_all(PATIENCE);
        assert!(report.is_complete(), "{report}");
        assert_eq!(view.kernel_restarts, 0);
        assert_eq!(self.app("learning-switch").unwrap().status.restarts, 0);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Burnet; without control groups in a mount namespace where none is mounted, which only root can make. Who is not root has none
/// anyway, or a systemd that handed some down.
fn command(with_groups: bool) -> Command {
    let burnet = env!("CARGO_BIN_EXE_burnet");
    if with_groups || !rustix::process::geteuid().is_root() {
        return Command::new(burnet);
    }
    let mut command = Command::new("unshare");
    let without =
        "grep cgroup /proc/self/mounts | cut -d' ' -f2 | xargs -r -n1 umount -l; exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", without, burnet]);
    command
}

fn used(app: &AppUsageView, resource: Resource) -> u64 {
    app.samples.iter().filter_map(|sample| resource.used(sample)).max().unwrap_or_default()
}

#[test]
fn a_leak_is_told_of_and_never_gets_past_its_hard_limit_and_the_node_does_not_grow() {
    let node = Node::start(
        "leak",
        "what = 'memory'\nbefore = 56",
        "memory_bytes = { soft = 50331648, hard = 67108864 }",
        "",
        true,
    );
    let before = node.usage();
    node.wait_for_line("app glutton uses more than a soft limit: memory_bytes: ");
    node.wait_for_line("glutton: told of 6: ");
    node.wait("it has ended", |node| node.glutton().status.last_end.is_some());
    node.wait("it is back", |node| node.glutton().status.restarts > 0 && node.glutton().over.is_empty());
    let after = node.usage();
    assert!(used(&node.glutton(), Resource::MemoryBytes) <= 64 * MIB, "{:?}", node.glutton());
    let reason = node.last_end().unwrap();
    assert!(["SIGABRT", "SIGKILL", "memory_bytes"].iter().any(|word| reason.contains(word)), "{reason}");
    let memory = |samples: &[zone::Sample]| samples.last().unwrap().memory_bytes.unwrap();
    assert!(memory(&after.kernel) < memory(&before.kernel) + 8 * MIB, "{before:?} {after:?}");
    assert!(memory(&after.monitor) < memory(&before.monitor) + 8 * MIB, "{before:?} {after:?}");
    node.others_are_unharmed();
}

#[test]
fn processes_that_hold_too_much_together_are_ended_by_the_monitor() {
    let limits = "memory_bytes = 67108864\nprocesses = 64";
    let node = Node::start("family", "what = 'family'\nbefore = 40", limits, "spawn = true", false);
    node.wait("it has ended", |node| node.glutton().status.last_end.is_some());
    let reason = node.last_end().unwrap();
    assert!(reason.starts_with("memory_bytes: it used ") && reason.ends_with(" is 64.0 MiB"), "{reason}");
    node.others_are_unharmed();
}

#[test]
fn who_takes_too_much_processor_time_is_kept_to_it_or_ended() {
    for with_groups in [true, false] {
        let name = format!("spin-{with_groups}");
        let limits = "cpu_percent = { soft = 10, hard = 30 }";
        let node = Node::start(&name, "what = 'processor'\nbefore = 0", limits, "", with_groups);
        let kept = !node.glutton().status.not_enforced.iter().any(|gap| gap.limit == "cpu_percent");
        node.wait_for_line("app glutton uses more than a soft limit: cpu_percent: ");
        match kept {
            true => {
                node.wait_for_line("glutton: told of 5: ");
                node.wait("it has been looked at often", |node| node.glutton().samples.len() > 15);
                assert_eq!(node.last_end(), None);
            }
            false => {
                node.wait("it has ended", |node| node.glutton().status.last_end.is_some());
                let reason = node.last_end().unwrap();
                assert!(
                    reason.starts_with("cpu_percent: it used ") && reason.ends_with(" is 30 %"),
                    "{reason}"
                );
            }
        }
        node.others_are_unharmed();
    }
}

#[test]
fn who_opens_too_much_is_told_and_then_gets_no_more() {
    let limits = "open_files = { soft = 40, hard = 64 }";
    let node = Node::start("files", "what = 'files'\nbefore = 45", limits, "", true);
    node.wait_for_line("app glutton uses more than a soft limit: open_files: ");
    node.wait_for_line("glutton: told of 7: ");
    node.wait_for_line("glutton: stopped: Too many open files");
    node.wait_for_line("app glutton is within its soft limit again: open_files: ");
    assert_eq!(node.last_end(), None);
    node.others_are_unharmed();
}

#[test]
fn who_leaves_its_ring_unread_is_told_when_it_reads_and_ended_when_it_does_not() {
    let limits = "lag_ms = { soft = 1000, hard = 8000 }";
    let node = Node::start("lag", "what = 'time'\nbefore = 0", limits, "", true);
    node.wait_for_line("app glutton uses more than a soft limit: lag_ms: ");
    node.wait_for_line("glutton: told of 9: ");
    node.wait("it has ended", |node| node.glutton().status.last_end.is_some());
    let reason = node.last_end().unwrap();
    assert!(reason.starts_with("lag_ms: it left its ring unread for "), "{reason}");
    node.others_are_unharmed();
}

#[test]
fn limits_hold_also_while_the_service_that_judges_is_killed_again_and_again() {
    let limits = "memory_bytes = 67108864";
    let node = Node::start("killed", "what = 'family'\nbefore = 40", limits, "spawn = true", false);
    node.wait("the service has been killed, and the zone has been ended", |node| {
        let pid = node.app("resource").and_then(|service| service.status.pid);
        if let Some(pid) = pid.and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)) {
            // It may have ended by itself, or not have begun again.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        node.last_end().is_some() && node.app("resource").is_some_and(|service| service.status.restarts > 0)
    });
    let reason = node.last_end().unwrap();
    assert!(reason.starts_with("memory_bytes: it used "), "{reason}");
    node.others_are_unharmed();
}

#[test]
fn what_is_used_is_shown_once_where_nobody_watches() {
    let node = Node::start("top", "what = 'files'\nbefore = 1", "", "", true);
    node.wait("each app has been looked at", |node| {
        node.usage().apps.iter().all(|app| !app.samples.is_empty())
    });
    let top = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        let output = command
            .args(["app", "top", "--socket"])
            .arg(node.folder.join("node.sock"))
            .args(arguments)
            .output();
        let output = output.unwrap();
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
fn busy(name: &str, limits: &str) -> Node {
    let object = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("libshared_busy.so");
    let config = format!(
        "[node]\naudit = true\n[app.learning-switch]\n[app.busy]\npath = '{}'\nzone = 'trusted'\n[app.busy.limits]\n{limits}\n",
        object.display()
    );
    Node::start_configured(name, &config, true)
}

#[test]
fn what_a_trusted_app_takes_is_shown_without_what_it_shares_with_the_kernel() {
    let node = busy("trusted", "cpu_percent = { soft = 1, hard = 3200 }\nmemory_bytes = 67108864");
    node.wait("it was seen at work", |node| {
        node.app("busy").is_some_and(|busy| used(&busy, Resource::CpuPercent) > 20)
    });
    node.wait_for_line("app busy uses more than a soft limit: cpu_percent: ");
    node.wait_for_line(&format!("told of {}: ", quota::CPU_PERCENT));
    let busy = node.app("busy").unwrap();
    let last = *busy.samples.last().unwrap();
    assert_eq!((last.memory_bytes, last.open_files, last.processes, last.lag_ms), (None, None, None, None));
    assert!(last.commands_per_s > 0, "{last:?}");
    let limited: Vec<_> = busy.limits.iter().map(|limit| limit.resource).collect();
    assert_eq!(limited, [Resource::CpuPercent], "no other binds it");
    let Some(Answer::Apps(apps)) = node.ask(&Question::Apps) else { panic!("no apps") };
    let listed = apps.iter().find(|app| app.status.app == "busy").unwrap();
    assert!(listed.used.is_some_and(|used| used.cpu_percent > 0), "{listed:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
    let output =
        command.args(["app", "top", "--socket"]).arg(node.folder.join("node.sock")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("busy ")).unwrap();
    assert!(row.contains("running, trusted") && row.contains(" shared "), "{text}");
    assert_eq!(busy.status.demoted, None);
}

#[test]
fn a_trusted_app_that_takes_too_much_processor_time_leaves_the_kernel_for_good() {
    let node = busy("demoted", "cpu_percent = 20");
    node.wait("it is demoted", |node| node.app("busy").is_some_and(|busy| busy.status.demoted.is_some()));
    node.wait("it runs in a process zone", |node| {
        node.app("busy")
            .is_some_and(|busy| busy.status.kind == ZoneKind::Process && busy.status.pid.is_some())
    });
    let reason = node.app("busy").unwrap().status.demoted.unwrap().reason;
    assert!(reason.starts_with("cpu_percent: it used ") && reason.ends_with(" is 20 %"), "{reason}");
    node.wait_for_line("app busy: ran trusted and runs in a process zone from now on: cpu_percent: it used ");
    let says = |command: &[&str], words: &[&str]| {
        let mut burnet = Command::new(env!("CARGO_BIN_EXE_burnet"));
        let output = burnet.args(command).arg("--state").arg(node.folder.join("state")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    node.wait("there is an incident", |_| says(&["incidents"], &["demoted", "busy"]));
    node.wait("there is a record", |_| says(&["audit"], &["demoted", "busy", "cpu_percent"]));
    node.others_are_unharmed();
}
