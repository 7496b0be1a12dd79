//! A whole node with an app that stores data. Is the data there after the service was killed, after the node was
//! killed, and when the file is damaged?

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use operator::client;
use operator::contract::{Answer, AppUsageView, Question};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zone::Resource;

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder of a test's own, with its nodes' state.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("burnet-store-node-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn start(&self, first: &[&str], then: &[&str]) -> Node<'_> {
        let program = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("hoarder");
        let config = format!(
            "[node]\naudit = true\n[app.hoarder]\npath = '{}'\n[app.hoarder.capabilities]\n'view.read' = true\n'store.read' = ['hoarder/']\n\
             'store.write' = ['hoarder/', 'shared']\n[app.hoarder.quotas]\nstore_bytes = {{ soft = 100, hard = 1000 }}\n\
             [app.hoarder.settings]\nfirst = {first:?}\nthen = {then:?}\n",
            program.display()
        );
        fs::write(self.0.join("burnet.toml"), config).unwrap();
        let log = File::create(self.0.join("node.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_burnet"))
            // It gets ticks from two workers. The store answers through the worker that was asked.
            .args(["run", "--listen", "127.0.0.1:0", "--workers", "2", "--log", "info", "--die-with-parent"])
            .arg("--socket")
            .arg(self.0.join("node.sock"))
            .arg("--config")
            .arg(self.0.join("burnet.toml"))
            .env("BURNET_STATE", self.0.join("state"))
            .env_remove("BURNET_SOCKET")
            .env_remove("BURNET_LOG")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Node { child, folder: self }
    }

    fn file(&self) -> PathBuf {
        self.0.join("state/store/store.redb")
    }

    /// The audit log's content, stored by the service or by the monitor.
    fn records(&self) -> String {
        let files = fs::read_dir(self.0.join("state/audit")).unwrap().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Node<'f> {
    child: Child,
    folder: &'f Folder,
}

impl Node<'_> {
    fn app(&self, name: &str) -> Option<AppUsageView> {
        match client::ask(&self.folder.0.join("node.sock"), &Question::Usage).ok()? {
            Answer::Usage(usage) => usage.apps.into_iter().find(|app| app.status.app == name),
            _ => None,
        }
    }

    /// Bytes in the store, by the newest sample.
    fn stored(&self) -> Option<u64> {
        self.app("hoarder")?.samples.last().and_then(|sample| Resource::StoreBytes.used(sample))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.0.join("node.log")).unwrap_or_default()
    }

    fn wait(&self, what: &str, mut until: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_line(&self, line: &str) {
        self.wait(line, |node| node.log().contains(line));
    }

    /// Waits for it once more, whatever the log has until now.
    fn wait_for_another(&self, line: &str) {
        let before = self.log().matches(line).count();
        self.wait(line, |node| node.log().matches(line).count() > before);
    }

    fn kill_service(&self) {
        let pid = self.app("store").and_then(|app| app.status.pid).unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        self.wait("the service is back", |node| {
            let service = node.app("store").map(|app| app.status);
            service.is_some_and(|status| status.restarts > 0 && status.pid.is_some())
        });
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

const THERE: &str = "get hoarder/k: done, 300 bytes";

#[test]
fn what_was_kept_outlives_the_service_and_the_node() {
    let folder = Folder::new("kept");
    let node = folder.start(&["get hoarder/k", "put hoarder/k 300"], &["get hoarder/k", "list hoarder/"]);
    node.wait_for_line("get hoarder/k: not found");
    node.wait_for_line("put hoarder/k 300: done");
    node.wait_for_line("list hoarder/: done, 11 bytes [\"hoarder/k\"]");
    node.wait("what it has is shown", |node| node.stored() == Some(309));
    node.kill_service();
    node.wait_for_another(THERE);
    node.wait("what it has is shown again", |node| node.stored() == Some(309));
    drop(node);
    let node = folder.start(&[], &["get hoarder/k"]);
    node.wait_for_line(THERE);
    drop(node);
    fs::write(folder.file(), [0x55; 10_000]).unwrap();
    let node = folder.start(&[], &["get hoarder/k"]);
    node.wait_for_line("store.redb is damaged (");
    node.wait_for_line("get hoarder/k: not found");
    let names = fs::read_dir(folder.0.join("state/store")).unwrap().flatten().map(|file| file.file_name());
    assert!(names.into_iter().any(|name| name.to_string_lossy().starts_with("store.redb.damaged-")));
}

#[test]
fn nobody_keeps_more_than_its_share_or_touches_the_keys_of_others() {
    let folder = Folder::new("share");
    let first = ["put hoarder/k 300", "put hoarder/long 2000", "put shared/k 1", "get hoarder/k"];
    let then = ["get shared/k", "put other/k 1", "delete other/k", "list ", "get hoarder/long"];
    let node = folder.start(&first, &then);
    node.wait_for_line("put hoarder/k 300: done");
    node.wait_for_line("app hoarder uses more than a soft limit: store_bytes: 3");
    node.wait_for_line("told of 10: 3");
    node.wait_for_line("put hoarder/long 2000: the app's share is full");
    node.wait_for_line("put shared/k 1: done");
    node.wait_for_line("get shared/k: refused: store.read: it is not granted for the key");
    node.wait_for_line("put other/k 1: refused: store.write: it is not granted for the key");
    node.wait_for_line("delete other/k: refused: store.write: it is not granted for the key");
    node.wait_for_line("list : refused: store.read: it is not granted for the prefix");
    node.wait_for_line("get hoarder/long: not found");
    for part in ["quota store_bytes: the hard limit 1000 is reached", "\"store.read\"", "\"store.write\""] {
        node.wait(part, |_| folder.records().contains(part));
    }
    assert_eq!(node.log().matches("uses more than a soft limit: store_bytes").count(), 1);
}
