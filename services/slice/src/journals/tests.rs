//! Files of journals: damage first, then what a later process finds.

use super::*;
use abi::ZoneId;
use flow::{MacAddr, PortNo};
use openflow::message::{FlowModFields, Hello};
use openflow::{Body, Message, Version};
use slicer::{Connection, Event, PortFacts};

const DATAPATH: DatapathId = DatapathId(7);
/// A time at which changes are due that came at 0.
const LATER_MS: u64 = 2 * WRITE_AFTER_MS;

/// A folder that is deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("burnet-journals-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn slicer() -> Slicer {
    let text = r#"{"name": "blue", "isolation": {"vlan": 7}, "controllers": [], "switches": [
        {"datapath": "7", "shown_as": "7", "ports": [{"port": 1, "shown_as": 1, "is_edge": true}]}]}"#;
    let settings: crate::SliceSettings = serde_json::from_str(text).unwrap();
    settings.slicer(ZoneId(1)).unwrap()
}

fn say(slicer: &mut Slicer, body: Body) {
    let mut bytes = Vec::new();
    Message { version: Version::V1_3, xid: 1, body }.encode(&mut bytes).unwrap();
    let connection = Connection { datapath: DATAPATH, controller: 0 };
    slicer.on_event(0, Event::Message(connection, &bytes), &mut Vec::new());
}

/// A slice with a controller, whose switch is up.
fn connected() -> Slicer {
    let mut slicer = slicer();
    let facts = PortFacts {
        port: PortNo(1),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 1]),
        name: "p".to_owned(),
        is_live: true,
        curr_speed_kbps: 0,
    };
    let up = Event::SwitchUp { datapath: DATAPATH, version: Version::V1_3, ports: vec![facts] };
    slicer.on_event(0, up, &mut Vec::new());
    let connection = Connection { datapath: DATAPATH, controller: 0 };
    slicer.on_event(0, Event::ControllerUp(connection), &mut Vec::new());
    say(&mut slicer, Body::Hello(Hello { elements: Vec::new() }));
    slicer
}

fn add(slicer: &mut Slicer, priority: u16) {
    let fields = FlowModFields { priority, ..FlowModFields::default() };
    say(slicer, Body::FlowMod(fields.with(flow::Match::any(), Vec::new())));
}

/// The rules that a new process finds, and what it says to the operator.
fn found(folder: &Folder) -> (usize, Vec<String>) {
    let (mut slicer, mut journals) = (slicer(), Journals::new(&folder.0).unwrap());
    journals.recall(&mut slicer, [DATAPATH].into_iter(), 5);
    (slicer.rules(DATAPATH).unwrap().0, journals.take_lines())
}

/// A process that adds this many rules, and then ends.
fn add_and_end(folder: &Folder, rules: u16) {
    let (mut slicer, mut journals) = (connected(), Journals::new(&folder.0).unwrap());
    journals.recall(&mut slicer, [DATAPATH].into_iter(), 0);
    (0..rules).for_each(|priority| add(&mut slicer, priority));
    journals.write(&mut slicer, 0);
}

#[test]
fn a_damaged_file_is_put_aside_with_one_line_and_the_table_is_empty() {
    let folder = Folder::new("damaged");
    add_and_end(&folder, 3);
    let file = place_of(&folder.0, DATAPATH);
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let (rules, lines) = found(&folder);
    assert_eq!(rules, 0);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("its checksum is wrong") && line.contains("damaged-5"), "{line}");
    assert_eq!(folder.names(), ["0000000000000007.damaged-5"]);
    assert_eq!(found(&folder), (0, Vec::new()), "it is said once");
}

#[test]
fn a_file_longer_than_a_journal_can_be_is_put_aside() {
    let folder = Folder::new("long");
    let file = File::create(place_of(&folder.0, DATAPATH)).unwrap();
    file.set_len(READ_BYTES_MAX + 1).unwrap();
    let (rules, lines) = found(&folder);
    assert_eq!((rules, lines.len()), (0, 1));
    assert!(lines[0].contains("longer than a journal can be"), "{lines:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_one_line_and_is_tried_again() {
    let folder = Folder::new("gone");
    let (mut slicer, mut journals) = (connected(), Journals::new(&folder.0).unwrap());
    journals.recall(&mut slicer, [DATAPATH].into_iter(), 0);
    fs::remove_dir_all(&folder.0).unwrap();
    let mut lines = Vec::new();
    let mut now_ms = 0;
    // The thread says when it has failed.
    while lines.is_empty() {
        add(&mut slicer, 1);
        now_ms += LATER_MS;
        journals.on_time(&mut slicer, now_ms);
        lines = journals.take_lines();
        std::thread::yield_now();
    }
    assert!(lines[0].contains("are not kept"), "{lines:?}");
    fs::create_dir_all(&folder.0).unwrap();
    add(&mut slicer, 2);
    now_ms += RETRY_MS;
    journals.write(&mut slicer, now_ms);
    drop(journals);
    assert_eq!(found(&folder), (2, Vec::new()));
}

#[test]
fn what_changed_is_written_when_it_is_due_and_the_next_process_has_it() {
    let folder = Folder::new("due");
    let (mut slicer, mut journals) = (connected(), Journals::new(&folder.0).unwrap());
    journals.recall(&mut slicer, [DATAPATH].into_iter(), 0);
    assert!(!journals.on_time(&mut slicer, 0) && journals.next_ms().is_none());
    add(&mut slicer, 1);
    assert!(journals.on_time(&mut slicer, 0));
    assert_eq!(journals.next_ms(), Some(WRITE_AFTER_MS));
    assert!(!journals.on_time(&mut slicer, WRITE_AFTER_MS));
    add(&mut slicer, 2);
    journals.on_time(&mut slicer, LATER_MS);
    journals.on_time(&mut slicer, 2 * LATER_MS);
    drop(journals);
    assert_eq!(found(&folder), (2, Vec::new()));
}

#[test]
fn a_file_that_grows_by_changes_is_written_anew() {
    let folder = Folder::new("grows");
    let (mut slicer, mut journals) = (connected(), Journals::new(&folder.0).unwrap());
    journals.recall(&mut slicer, [DATAPATH].into_iter(), 0);
    // Each add of the same rule is a change of some hundred bytes.
    for _ in 0..20_000 {
        add(&mut slicer, 1);
        journals.write(&mut slicer, 0);
    }
    drop(journals);
    let length = fs::metadata(place_of(&folder.0, DATAPATH)).unwrap().len();
    assert!(length < 2 * GROWN_BYTES as u64, "{length}");
    assert_eq!(found(&folder), (1, Vec::new()));
}

#[test]
fn a_slice_that_is_removed_leaves_no_file() {
    let folder = Folder::new("removed");
    add_and_end(&folder, 1);
    assert_eq!(folder.names(), ["0000000000000007.journal"]);
    let mut journals = Journals::new(&folder.0).unwrap();
    journals.forget([DATAPATH].into_iter());
    drop(journals);
    assert!(folder.names().is_empty());
}
