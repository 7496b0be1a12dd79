//! The audit log of a running node: what it contains after a kill, and how an altered line appears to the operator.

use audit::line::{self, Line};
use audit::read::Reader;
use emulator::{Handle, SwitchOptions};
use flow::DatapathId;
use openflow::message::{Body, FeaturesReply, Hello};
use openflow::{Message, Version};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use test_bed::{Bed, Launch, Node, PATIENCE, kill};

/// The hub hears every packet and may send none.
const MUTE_HUB: &str = "[app.hub.capabilities]\n\"packet.in\" = true\n";

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A node that was told its state folder, so that it keeps an audit log there.
fn launch(bed: &Bed, configuration: &str) -> Launch {
    bed.node().config(configuration).args([Path::new("--state"), &bed.state()])
}

fn start(bed: &Bed, arguments: &[&str]) -> Node {
    launch(bed, MUTE_HUB).args(arguments).start_ready()
}

/// Ends the node in order, so that its log is complete.
fn end(mut node: Node) {
    node.signal(Signal::TERM);
    node.wait_for_end();
}

/// The lines of the audit log, each of which follows the one before.
fn lines(bed: &Bed) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut reader = Reader::at(bed.state().join("audit"));
    // There is none before the first record.
    let _ = reader.lines(|_, text| {
        lines.push(line::read(text).unwrap());
        true
    });
    lines
}

fn has(bed: &Bed, what: &str, app: &str) -> bool {
    lines(bed).iter().any(|line| line.record.what == what && line.record.app.as_deref() == Some(app))
}

/// Connects and sends this until the node closes the connection; the address that it came from.
fn is_closed_on(node: &Node, said: &[u8]) -> SocketAddr {
    let mut stream = TcpStream::connect(node.address()).unwrap();
    let from = stream.local_addr().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(said).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    from
}

/// Two hosts behind a switch. The switch sends their packets to the controller, and the hub may not send them on.
fn network(node: &Node) -> Handle {
    node.network("single,2", &SwitchOptions::default())
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

fn check_sound(bed: &Bed) {
    let verified = bed.run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn a_node_keeps_who_did_what_and_was_refused_what_and_the_chain_is_whole() {
    let bed = bed();
    let node = start(&bed, &["--app", "hub"]);
    let network = network(&node);
    network.ping_all(Duration::from_millis(100));
    node.wait("a refusal is kept", |node| has(node.bed(), "refused", "hub"));
    kill(node.pid_of("hub").unwrap());
    node.wait("the end is kept", |node| has(node.bed(), "ended", "hub"));
    drop(network);
    end(node);
    let lines = lines(&bed);
    check_told_once(&lines);
    check_sound(&bed);
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
fn a_second_switch_of_an_id_and_a_peer_that_is_no_switch_are_recorded_with_their_addresses() {
    let bed = bed();
    // Each worker counts what it sees.
    let node = start(&bed, &["--app", "hub", "--workers", "1"]);
    let network = network(&node);
    let second = is_closed_on(&node, &handshake(DatapathId(1)));
    let stranger = is_closed_on(&node, b"GET / HTTP/1.1\r\n\r\n");
    let again = is_closed_on(&node, b"GET / HTTP/1.1\r\n\r\n");
    drop(network);
    end(node);
    let lines = lines(&bed);
    check_told_once(&lines);
    check_sound(&bed);
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
    let shown = bed.run(&["audit", "--what", "switch"]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("switch_refused by switch of:0000000000000001: ")
    );
    let refused = bed.run(&["audit", "--refused"]);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("switch_cut_off by switch"));
}

#[test]
fn what_an_app_tries_of_the_machine_is_kept_with_its_name_and_how_often() {
    let bed = bed();
    for (attack, expected) in [
        ("raw-socket", "a socket of family 2, type 3 is not granted: net.connect grants nothing"),
        ("run-shell", "starting a process is not granted: spawn is false"),
        ("read-files", "reading /etc/shadow is not granted by fs.read"),
        ("signals", "the system call kill is not permitted"),
    ] {
        let program = bed.example("misbehaving");
        let settings = format!(
            "[app.misbehaving]\npath = '{}'\n[app.misbehaving.capabilities]\n'view.read' = true\n[app.misbehaving.settings]\nattack = \"{attack}\"\nfiles = [\"/etc/shadow\"]\nprocesses = [1]\n",
            program.display()
        );
        let node = launch(&bed, &settings).app("misbehaving").start_ready();
        let kept = |bed: &Bed| {
            let lines = lines(bed).into_iter().map(|line| line.record);
            lines.filter(|it| it.what == "denied" && it.text == expected).collect::<Vec<_>>()
        };
        node.wait("it is kept", |node| !kept(node.bed()).is_empty());
        end(node);
        let kept = kept(&bed);
        assert!(
            kept.iter().all(|it| it.who == "app" && it.app.as_deref() == Some("misbehaving")),
            "{kept:?}"
        );
        assert!(kept.iter().all(|it| it.count >= 1), "{kept:?}");
    }
    check_sound(&bed);
}

#[test]
fn a_service_that_is_killed_is_back_and_no_record_is_lost_or_doubled() {
    let bed = bed();
    let node = start(&bed, &["--app", "hub"]);
    let network = network(&node);
    let hub = node.pid_of("hub");
    for times in 1..=4 {
        network.ping_all(Duration::from_millis(50));
        let pid = node.pid_of("audit").unwrap();
        kill(pid);
        node.wait("it is back", |node| node.pid_of("audit").is_some_and(|new| new != pid));
        let ended = |lines: &[Line]| {
            lines
                .iter()
                .filter(|line| line.record.app.as_deref() == Some("audit") && line.record.what == "ended")
                .count()
        };
        node.wait("its own end is kept", |node| ended(&lines(node.bed())) == times);
    }
    assert_eq!(node.pid_of("hub"), hub, "the app noticed nothing");
    drop(network);
    end(node);
    check_told_once(&lines(&bed));
    check_sound(&bed);
}

#[test]
fn a_kernel_that_is_killed_loses_no_record_that_was_told() {
    let bed = bed();
    let node = start(&bed, &["--app", "hub"]);
    kill(node.kernel_pid());
    let kept = |bed: &Bed| lines(bed).iter().filter(|line| line.record.what == "kernel_started").count();
    node.wait("the new kernel is kept", |node| kept(node.bed()) == 2);
    end(node);
    check_told_once(&lines(&bed));
    check_sound(&bed);
}

#[test]
fn the_operator_is_shown_what_is_asked_for_and_told_which_line_was_altered() {
    let bed = bed();
    assert_eq!(bed.run(&["audit"]).status.code(), Some(1));
    let made = bed.run(&["key", "new", "alice"]);
    let public = String::from_utf8(made.stdout).unwrap().lines().last().unwrap().trim().to_owned();
    assert!(bed.run(&["key", "trust", &public, "--role", "developer"]).status.success());
    assert!(bed.run(&["key", "distrust", "alice"]).status.success());
    let shown = |arguments: &[&str]| String::from_utf8(bed.run(arguments).stdout).unwrap();
    assert!(shown(&["audit"]).contains("key_trusted by operator: alice"), "{}", shown(&["audit"]));
    assert_eq!(shown(&["audit", "--what", "key_distrusted"]).lines().count(), 1);
    assert_eq!(shown(&["audit", "--refused"]), "");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut onto_a_full_disk = bed.burnet();
    onto_a_full_disk.arg("audit").stdout(full);
    let told = onto_a_full_disk.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(told.status.code(), Some(1), "what could not be written was shown to nobody");
    assert_eq!(shown(&["audit", "--since", "1h", "--json"]).lines().count(), 2);
    let head = shown(&["audit", "verify"]).lines().last().unwrap().replace("head: ", "");
    assert!(bed.run(&["audit", "verify", "--head", &head]).status.success());
    alter(&bed.state().join("audit/audit-000000000001.jsonl"));
    let verified = bed.run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(String::from_utf8(verified.stdout).unwrap().contains("line 1: it was altered"));
}

fn alter(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("alice", "mallo", 1)).unwrap();
}
