//! The audit log of a running node: what it contains after a kill, and how an altered line appears to the operator.

#![allow(clippy::unwrap_used, reason = "a test may")]

use audit::line::{self, Line};
use audit::read::Reader;
use emulator::{Emulation, Handle, SwitchOptions, Topology};
use flow::DatapathId;
use openflow::message::{Body, FeaturesReply, Hello};
use openflow::{Message, Version};
use operator::client;
use operator::contract::{Answer, AppView, Question};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// The hub hears every packet and may send none.
const MUTE_HUB: &str = "[app.hub.capabilities]\n\"packet.in\" = true\n";

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("burnet-audit-node-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    fn burnet(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.args(arguments).arg("--state").arg(self.state()).stdin(Stdio::null()).output().unwrap()
    }

    /// The lines of the log, each of which follows the one before.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut reader = Reader::at(self.state().join("audit"));
        // There is none before the first record.
        let _ = reader.lines(|_, text| {
            lines.push(line::read(text).unwrap());
            true
        });
        lines
    }

    fn has(&self, what: &str, app: &str) -> bool {
        self.lines().iter().any(|line| line.record.what == what && line.record.app.as_deref() == Some(app))
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
    fn start<'f>(folder: &'f Folder, arguments: &[&str]) -> Node<'f> {
        Node::start_with(folder, MUTE_HUB, arguments)
    }

    fn start_with<'f>(folder: &'f Folder, configuration: &str, arguments: &[&str]) -> Node<'f> {
        let text = configuration;
        let configuration = folder.0.join("burnet.toml");
        fs::write(&configuration, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.args(["run", "--listen", "127.0.0.1:0", "--log", "error", "--die-with-parent", "--state"]);
        command.arg(folder.state()).arg("--socket").arg(folder.0.join("node.sock"));
        command.arg("--config").arg(configuration).args(arguments).stdin(Stdio::null());
        let node = Node { child: command.spawn().unwrap(), folder };
        node.wait("every app runs and has subscribed", |node| {
            let apps = node.apps();
            apps.len() >= 2 && apps.iter().all(|app| app.commands > 0)
        });
        node
    }

    fn apps(&self) -> Vec<AppView> {
        match client::ask(&self.folder.0.join("node.sock"), &Question::Apps) {
            Ok(Answer::Apps(apps)) => apps,
            _ => Vec::new(),
        }
    }

    fn pid(&self, app: &str) -> Option<u32> {
        self.apps().into_iter().find(|view| view.status.app == app)?.status.pid
    }

    fn wait(&self, what: &str, mut until: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {:?}", self.apps());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where switches connect.
    fn address(&self) -> SocketAddr {
        let Ok(Answer::Node(view)) = client::ask(&self.folder.0.join("node.sock"), &Question::Node) else {
            panic!("the node does not answer")
        };
        view.listen[0].parse().unwrap()
    }

    /// Connects and says this, until the node closes; from where.
    fn is_closed_on(&self, said: &[u8]) -> SocketAddr {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let from = stream.local_addr().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(said).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        from
    }

    /// Two hosts behind a switch. Whatever they send comes up, and the hub is refused to send it on.
    fn network(&self) -> Handle {
        let topology: Topology = "single,2".parse().unwrap();
        let network = Emulation::start(&topology, self.address(), &SwitchOptions::default()).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        network
    }

    fn end(mut self) {
        signal(self.child.id(), rustix::process::Signal::TERM);
        self.child.wait().unwrap();
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, signal);
}

/// What a switch of 1.0 says to come up.
fn handshake(datapath_id: DatapathId) -> Vec<u8> {
    let features = FeaturesReply {
        datapath_id,
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    let mut bytes = Vec::new();
    for body in [Body::Hello(Hello::default()), Body::FeaturesReply(features)] {
        Message { version: Version::V1_0, xid: 1, body }.encode(&mut bytes).unwrap();
    }
    bytes
}

/// What one node's processes told: each once, in order, and none missing.
fn check_told_once(lines: &[Line]) {
    let numbers: Vec<u64> = lines.iter().filter_map(|line| Some(line.told.as_ref()?.number)).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

fn check_sound(folder: &Folder) {
    let verified = folder.burnet(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn a_node_keeps_who_did_what_and_was_refused_what_and_the_chain_is_whole() {
    let folder = Folder::new();
    let node = Node::start(&folder, &["--app", "hub"]);
    let network = node.network();
    network.ping_all(Duration::from_millis(100));
    node.wait("a refusal is kept", |node| node.folder.has("refused", "hub"));
    signal(node.pid("hub").unwrap(), rustix::process::Signal::KILL);
    node.wait("the end is kept", |node| node.folder.has("ended", "hub"));
    drop(network);
    node.end();
    let lines = folder.lines();
    check_told_once(&lines);
    check_sound(&folder);
    let of_the_hub =
        |what: &str, line: &Line| line.record.what == what && line.record.app.as_deref() == Some("hub");
    let said = |what: &str| lines.iter().find(|line| of_the_hub(what, line)).unwrap().record.clone();
    assert_eq!(said("refused").capability.as_deref(), Some("packet.out"));
    assert!(said("granted").text.contains("packet.in"), "{:?}", said("granted"));
    assert_eq!(said("ended").text, "killed by SIGKILL");
    // The service is over before this is told: the monitor keeps it.
    let last = lines.last().unwrap();
    assert_eq!((last.record.what.as_str(), last.told.is_some()), ("stopped", true), "{last:?}");
}

#[test]
fn a_second_switch_of_an_id_and_whoever_is_no_switch_are_kept_with_their_addresses() {
    let folder = Folder::new();
    // Each worker counts what it sees.
    let node = Node::start(&folder, &["--app", "hub", "--workers", "1"]);
    let network = node.network();
    let second = node.is_closed_on(&handshake(DatapathId(1)));
    let stranger = node.is_closed_on(b"GET / HTTP/1.1\r\n\r\n");
    let again = node.is_closed_on(b"GET / HTTP/1.1\r\n\r\n");
    drop(network);
    node.end();
    let lines = folder.lines();
    check_told_once(&lines);
    check_sound(&folder);
    let of =
        |what: &str| lines.iter().map(|line| &line.record).filter(|it| it.what == what).collect::<Vec<_>>();
    let refused = of("switch_refused");
    assert!(
        refused[0].text.starts_with(&format!("{second}: datapath id of:0000000000000001 is in use")),
        "{refused:?}"
    );
    assert_eq!(
        (refused[0].who.as_str(), refused[0].switch.as_deref()),
        ("switch", Some("of:0000000000000001"))
    );
    let cut_off = of("switch_cut_off");
    assert!(cut_off[0].text.starts_with(&format!("{stranger}: ")), "{cut_off:?}");
    // Both at once if they came within one look at the clock; the second waits for the end of the minute, or of the node.
    let times: u64 = cut_off.iter().map(|record| record.count).sum();
    assert!(
        times == 2 && cut_off.iter().skip(1).all(|it| it.text.starts_with(&again.to_string())),
        "{cut_off:?}"
    );
    let shown = folder.burnet(&["audit", "--what", "switch"]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("switch_refused by switch of:0000000000000001: ")
    );
    let refused = folder.burnet(&["audit", "--refused"]);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("switch_cut_off by switch"));
}

#[test]
fn what_an_app_tries_of_the_machine_is_kept_with_its_name_and_how_often() {
    let folder = Folder::new();
    for (attack, expected) in [
        ("raw-socket", "a socket of family 2, type 3 is not granted: net.connect grants nothing"),
        ("run-shell", "starting a process is not granted: spawn is false"),
        ("read-files", "reading /etc/shadow is not granted by fs.read"),
        ("signals", "the system call kill is not let through"),
    ] {
        let program = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("misbehaving");
        let settings = format!(
            "[app.misbehaving]\npath = '{}'\n[app.misbehaving.capabilities]\n'view.read' = true\n[app.misbehaving.settings]\nattack = \"{attack}\"\nfiles = [\"/etc/shadow\"]\nprocesses = [1]\n",
            program.display()
        );
        let node = Node::start_with(&folder, &settings, &["--app", "misbehaving"]);
        let kept = |folder: &Folder| {
            let lines = folder.lines().into_iter().map(|line| line.record);
            lines.filter(|it| it.what == "denied" && it.text == expected).collect::<Vec<_>>()
        };
        node.wait("it is kept", |node| !kept(node.folder).is_empty());
        node.end();
        let kept = kept(&folder);
        assert!(
            kept.iter().all(|it| it.who == "app" && it.app.as_deref() == Some("misbehaving")),
            "{kept:?}"
        );
        assert!(kept.iter().all(|it| it.count >= 1), "{kept:?}");
    }
    check_sound(&folder);
}

#[test]
fn a_service_that_is_killed_is_back_and_no_record_is_lost_or_doubled() {
    let folder = Folder::new();
    let node = Node::start(&folder, &["--app", "hub"]);
    let network = node.network();
    let hub = node.pid("hub");
    for kill in 1..=4 {
        network.ping_all(Duration::from_millis(50));
        let pid = node.pid("audit").unwrap();
        signal(pid, rustix::process::Signal::KILL);
        node.wait("it is back", |node| node.pid("audit").is_some_and(|new| new != pid));
        let ended = |lines: &[Line]| {
            lines
                .iter()
                .filter(|line| line.record.app.as_deref() == Some("audit") && line.record.what == "ended")
                .count()
        };
        node.wait("its own end is kept", |node| ended(&node.folder.lines()) == kill);
    }
    assert_eq!(node.pid("hub"), hub, "the app noticed nothing");
    drop(network);
    node.end();
    check_told_once(&folder.lines());
    check_sound(&folder);
}

#[test]
fn a_kernel_that_is_killed_loses_no_record_that_was_told() {
    let folder = Folder::new();
    let node = Node::start(&folder, &["--app", "hub"]);
    let Ok(Answer::Node(view)) = client::ask(&folder.0.join("node.sock"), &Question::Node) else {
        panic!("the node does not answer")
    };
    signal(view.pid, rustix::process::Signal::KILL);
    let kept =
        |folder: &Folder| folder.lines().iter().filter(|line| line.record.what == "kernel_started").count();
    node.wait("the new kernel is kept", |node| kept(node.folder) == 2);
    node.end();
    check_told_once(&folder.lines());
    check_sound(&folder);
}

#[test]
fn the_operator_is_shown_what_is_asked_for_and_told_which_line_was_altered() {
    let folder = Folder::new();
    assert_eq!(folder.burnet(&["audit"]).status.code(), Some(1));
    let made = folder.burnet(&["key", "new", "alice"]);
    let public = String::from_utf8(made.stdout).unwrap().lines().last().unwrap().trim().to_owned();
    assert!(folder.burnet(&["key", "trust", &public, "--role", "developer"]).status.success());
    assert!(folder.burnet(&["key", "distrust", "alice"]).status.success());
    let shown = |arguments: &[&str]| String::from_utf8(folder.burnet(arguments).stdout).unwrap();
    assert!(shown(&["audit"]).contains("key_trusted by operator: alice"), "{}", shown(&["audit"]));
    assert_eq!(shown(&["audit", "--what", "key_distrusted"]).lines().count(), 1);
    assert_eq!(shown(&["audit", "--refused"]), "");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let state = folder.state();
    let mut onto_a_full_disk = Command::new(env!("CARGO_BIN_EXE_burnet"));
    onto_a_full_disk.arg("audit").arg("--state").arg(&state).stdin(Stdio::null()).stdout(full);
    let told = onto_a_full_disk.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(told.status.code(), Some(1), "what could not be written was shown to nobody");
    assert_eq!(shown(&["audit", "--since", "1h", "--json"]).lines().count(), 2);
    let head = shown(&["audit", "verify"]).lines().last().unwrap().replace("head: ", "");
    assert!(folder.burnet(&["audit", "verify", "--head", &head]).status.success());
    alter(&folder.state().join("audit/audit-000000000001.jsonl"));
    let verified = folder.burnet(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(String::from_utf8(verified.stdout).unwrap().contains("line 1: it was altered"));
}

fn alter(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("alice", "mallo", 1)).unwrap();
}
