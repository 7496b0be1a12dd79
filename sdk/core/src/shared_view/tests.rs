//! The view in shared memory against a snapshot of the same objects, and with memory that fails.

use super::*;
use crate::instance::Instance;
use crate::stream::Table;
use crate::testing::shared_table;
use crate::{App, Commands, Interests, Settings};
use abi::Frame;
use abi::command::{Command, What};
use abi::event::{Caller, Query, QueryReply, write};
use abi::service::Form;
use flow::{MacAddr, PortNo};
use std::collections::BTreeMap;
use std::sync::Mutex;
use view::{Annotations, LinkKind, LinkState, Stamp, SwitchState};
use zone::guest::Guest;

fn at(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn switch(id: u64) -> Object {
    Object::Switch(Switch {
        id: DatapathId(id),
        state: SwitchState::Up,
        openflow: "1.3".to_owned(),
        n_tables: 1,
        n_buffers: 0,
        description: BTreeMap::new(),
        since_ms: 0,
        annotations: Annotations::new(),
    })
}

fn port(id: ConnectPoint) -> Object {
    Object::Port(Port {
        id,
        name: "p".to_owned(),
        mac: MacAddr([0; 6]),
        live: true,
        enabled: true,
        speed_kbps: 0,
        annotations: Annotations::new(),
    })
}

fn link(from: ConnectPoint, to: ConnectPoint) -> Object {
    Object::Link(Link {
        id: LinkId { from, to },
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps: 0,
        latency_us: None,
        since_ms: 0,
        annotations: Annotations::new(),
    })
}

fn host(number: u8, at: ConnectPoint) -> Object {
    Object::Host(Host {
        id: HostId { mac: MacAddr([0, 0, 0, 0, 0, number]), vlan: None },
        addresses: Vec::new(),
        at,
        since_ms: 0,
        configured: false,
        annotations: Annotations::new(),
    })
}

fn network() -> Vec<Object> {
    vec![
        switch(1),
        switch(2),
        port(at(1, 1)),
        port(at(1, 2)),
        port(at(2, 1)),
        link(at(1, 1), at(2, 1)),
        link(at(2, 1), at(1, 1)),
    ]
}

fn shared(objects: &[Object], hosts: &[Object]) -> SharedView {
    let mut view = SharedView::default();
    for (service, objects) in [("discovery", objects), ("hosts", hosts)] {
        view.on_region(Region::Reads { service: service.to_owned(), table: Arc::new(shared_table(objects)) });
    }
    view
}

#[test]
fn it_shows_what_a_snapshot_of_the_same_objects_shows() {
    // One host is at a port that is not there.
    let hosts = [host(1, at(1, 2)), host(2, at(1, 9))];
    let view = shared(&network(), &hosts);
    let mut tables = Tables::new();
    let records = network().into_iter().chain(hosts.clone());
    let records = records.map(|object| Record { stamp: Stamp::default(), object });
    tables.replace(Kind::ALL, records);
    let (snapshot, all) = (tables.snapshot(), [Kind::Switch, Kind::Port, Kind::Link, Kind::Host]);
    assert_eq!(view.snapshot(&all).as_ref(), Ok(&snapshot));
    let key = |object: &Object| object.key();
    for key in network().iter().chain(&hosts).map(key).chain(["port/of:0000000000000007/7".parse().unwrap()])
    {
        assert_eq!(view.get(key), Ok(snapshot.get(key).map(|record| (**record).clone())), "{key}");
    }
    assert_eq!(
        view.host(HostId { mac: MacAddr([0, 0, 0, 0, 0, 2]), vlan: None }),
        Ok(None),
        "its port is not there"
    );
    assert_eq!(view.records(&[Kind::Link]).map(|links| links.len()), Ok(2));
    assert!(view.is_current(&all) && !view.is_current(&[Kind::Path]));
    assert_eq!(view.get("path/7.0".parse().unwrap()), Err(NotShared::Absent("paths")));
}

/// A table whose answers are all the same.
#[derive(Debug)]
struct Failing(Result<&'static str, Unread>, Mutex<u64>);

impl ReadRegion for Failing {
    fn version(&self) -> u64 {
        let mut version = self.1.lock().unwrap();
        *version += 2;
        *version
    }
    fn is_full(&self) -> bool {
        false
    }
    fn get(&self, _: &[u8], value: &mut Vec<u8>) -> Result<bool, Unread> {
        *value = self.0?.as_bytes().to_vec();
        Ok(true)
    }
    fn places(&self) -> usize {
        3
    }
    fn at(&self, _: usize, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Unread> {
        *key = b"switch/of:0000000000000001".to_vec();
        self.get(b"", value)
    }
}

#[test]
fn what_a_service_writes_is_read_as_input_from_outside() {
    let check = |answer, expected: fn(&NotShared) -> bool| {
        let mut view = SharedView::default();
        let table = Arc::new(Failing(answer, Mutex::new(0)));
        view.on_region(Region::Reads { service: "discovery".to_owned(), table });
        let got = view.switch(DatapathId(1)).unwrap_err();
        assert!(expected(&got), "{got}");
        let got = view.records(&[Kind::Switch]).unwrap_err();
        assert!(expected(&got), "{got}");
    };
    check(Ok("{"), |why| matches!(why, NotShared::Damaged("discovery", _)));
    check(Ok("null"), |why| matches!(why, NotShared::Damaged("discovery", _)));
    check(Err(Unread::Damaged), |why| matches!(why, NotShared::Damaged("discovery", _)));
    check(Err(Unread::Changing), |why| *why == NotShared::Changing("discovery"));
}

#[test]
fn records_that_change_during_every_attempt_are_an_error_and_no_mixture() {
    let value = serde_json::to_string(&Record { stamp: Stamp::default(), object: switch(1) }).unwrap();
    let mut view = SharedView::default();
    // Its version is another one at each look.
    let table = Arc::new(Failing(Ok(Box::leak(value.into_boxed_str())), Mutex::new(0)));
    view.on_region(Region::Reads { service: "discovery".to_owned(), table });
    assert!(view.switch(DatapathId(1)).unwrap().is_some(), "one object is whole all the same");
    assert_eq!(view.records(&[Kind::Switch]), Err(NotShared::Changing("discovery")));
    let wrong = view.get(Key::Switch(DatapathId(2)));
    assert!(matches!(wrong, Err(NotShared::Damaged(..))), "it has the object of another key: {wrong:?}");
}

#[test]
fn a_new_table_has_another_version_though_its_writer_counts_from_0() {
    let mut view = shared(&network(), &[]);
    let (first, mut told) = (view.version(Kind::Port), view.clone());
    assert!(told.take_changed() && !told.take_changed());
    view.on_region(Region::Ended { service: "discovery".to_owned() });
    assert!(!view.is_current(&[Kind::Port]) && view.is_current(&[Kind::Host]));
    assert!(view.port(at(1, 1)).unwrap().is_some(), "the objects are as the service left them");
    let table = Arc::new(shared_table(&network()));
    view.on_region(Region::Reads { service: "discovery".to_owned(), table });
    assert!(view.is_current(&[Kind::Port]) && view.version(Kind::Port) != first);
}

/// Counts the switches each time that the view changed.
#[derive(Default)]
struct Counting(Vec<Result<usize, NotShared>>);

impl App for Counting {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(Counting::default())
    }
    fn interests(&self) -> Interests {
        Interests::none().shared_view(&[Kind::Switch])
    }
    fn on_shared_view(&mut self, out: &mut Commands) {
        self.0.push(out.objects(Kind::Switch).map(|switches| switches.len()));
    }
}

fn tick(app: &mut Instance<Counting>) -> Vec<u8> {
    let (mut frame, mut commands) = (Vec::new(), Vec::new());
    assert!(abi::event::write::tick(&mut frame, 1, 1_000));
    app.on_events(&frame, &mut commands).unwrap();
    commands
}

#[test]
fn an_app_hears_of_changes_and_asks_for_streams_only_without_shared_memory() {
    let mut app = Instance::<Counting>::start(&Settings::from_json(b"{}").unwrap()).unwrap();
    app.frames().clear();
    assert!(tick(&mut app).is_empty());
    let table = Arc::new(shared_table(&network()));
    app.on_region(Region::Reads { service: "discovery".to_owned(), table });
    for _ in 0..20 {
        assert!(tick(&mut app).is_empty(), "no stream while shared memory serves it");
    }
    assert_eq!(app.app().0, [Ok(2)]);
    app.on_region(Region::Ended { service: "discovery".to_owned() });
    let commands: Vec<_> = (0..8).map(|_| tick(&mut app)).collect();
    let follows = commands.iter().filter(|commands| !commands.is_empty()).count();
    assert!(follows > 0, "it follows the stream");
}

/// Counts the switches, and wants to know of hosts too.
#[derive(Default)]
struct WithHosts(Vec<Result<usize, NotShared>>);

impl App for WithHosts {
    fn new(_: &Settings) -> Result<Self, String> {
        Ok(WithHosts::default())
    }
    fn interests(&self) -> Interests {
        Interests::none().shared_view(&[Kind::Switch, Kind::Host])
    }
    fn on_shared_view(&mut self, out: &mut Commands) {
        self.0.push(out.objects(Kind::Switch).map(|switches| switches.len()));
    }
}

/// The questions in these frames: the ticket by the service.
fn streams_asked(frames: &[u8]) -> BTreeMap<String, u64> {
    let (mut rest, mut found) = (frames, BTreeMap::new());
    while let Ok((frame, behind)) = Frame::split(rest) {
        let command = Command::read(&frame).unwrap();
        if let What::Query(ask) = command.what {
            found.insert(ask.service.to_owned(), command.ticket);
        }
        rest = behind;
    }
    found
}

/// A service with these objects answers a stream: the events for the app.
fn snapshot(service: &str, ticket: u64, objects: Vec<Object>) -> Vec<u8> {
    let (mut table, mut out) = (Table::with_log_bytes(8 << 10), Commands::new());
    for object in objects {
        let (key, record) = (object.key().to_string(), Record { stamp: Stamp::default(), object });
        assert!(table.put(key.as_bytes(), &record.to_bytes()));
    }
    let caller = Caller { number: 3, name: "app", grant: &[] };
    let (form, payload) = (Form::Stream, &b""[..]);
    let query = Query { ticket, caller, service, form, deadline_ms: 1, credit_bytes: 64 << 10, payload };
    out.calls.on_query(&query);
    table.follow(&query, &mut out);
    let (frames, mut events) = (std::mem::take(&mut out.frames), Vec::new());
    let mut rest = frames.as_slice();
    while let Ok((frame, behind)) = Frame::split(rest) {
        let What::QueryAnswer(it) = Command::read(&frame).unwrap().what else { panic!("no answer") };
        let reply = QueryReply { ticket, status: 0, more: it.more, payload: it.payload };
        assert!(write::query_reply(&mut events, 1, &reply));
        rest = behind;
    }
    events
}

#[test]
fn an_app_hears_when_the_last_stream_begins_also_if_it_has_no_objects() {
    let mut app = Instance::<WithHosts>::start(&Settings::from_json(b"{}").unwrap()).unwrap();
    app.frames().clear();
    let (mut ticks, mut commands) = (Vec::new(), Vec::new());
    for number in 1..10 {
        assert!(write::tick(&mut ticks, number, number * 1_000));
    }
    app.on_events(&ticks, &mut commands).unwrap();
    let asked = streams_asked(&commands);
    let (discovery, hosts) = (asked["discovery"], asked["hosts"]);
    app.on_events(&snapshot("discovery", discovery, vec![switch(1), switch(2)]), &mut commands).unwrap();
    app.on_events(&snapshot("hosts", hosts, Vec::new()), &mut commands).unwrap();
    assert_eq!(app.app().0.last(), Some(&Ok(2)), "{:?}", app.app().0);
}
