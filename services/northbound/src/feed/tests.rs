//! What the clients of streams get, above all slow ones.

use super::*;
use burnet_sdk::view::{Change, Object, Stamp, Tables};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

fn switch(id: u64, since_ms: u64) -> Object {
    let json = json!({"kind": "switch", "id": format!("{id}"), "state": "up", "openflow": "1.3", "n_tables": 1,
                      "n_buffers": 0, "since_ms": since_ms});
    serde_json::from_value(json).unwrap()
}

/// A feed with the tables that it shows.
#[derive(Default)]
struct World {
    feed: Feed,
    tables: Tables,
    sequence: u64,
}

impl World {
    fn change(&mut self, id: u64, object: Option<Object>) {
        self.sequence += 1;
        let stamp = Stamp { term: 1, sequence: self.sequence, origin: 0 };
        let key = switch(id, 0).key();
        let batch = self.tables.apply([Change { stamp, key, object }]);
        let version = self.tables.view().version();
        for notice in batch.iter() {
            self.feed.publish(About::Object(notice.kind()), || message(version, notice));
        }
    }

    fn put(&mut self, id: u64) {
        self.change(id, Some(switch(id, self.sequence)));
    }

    fn join(&mut self, changes_only: bool) -> ClientId {
        let interest = Interest { about: vec![About::Object(Kind::Switch)], changes_only, slice: None };
        self.feed.join(interest, CLIENTS_MAX).unwrap()
    }

    fn take(&mut self, client: ClientId) -> Vec<Arc<Message>> {
        self.feed.take(client, "r", (self.tables.view(), &|_| Vec::new()), Waker::noop())
    }
}

/// A client that does what the description says.
#[derive(Default)]
struct Reader {
    known: BTreeMap<String, serde_json::Value>,
    events: Vec<&'static str>,
    is_complete: bool,
    missed: u64,
}

impl Reader {
    /// Takes messages until there is none. Returns how many came.
    fn read(&mut self, world: &mut World, client: ClientId, batches: usize) -> usize {
        let mut count = 0;
        for _ in 0..batches {
            let messages = world.take(client);
            count += messages.len();
            for message in &messages {
                self.hear(message);
            }
            if messages.is_empty() {
                break;
            }
        }
        count
    }

    fn hear(&mut self, message: &Message) {
        let json: serde_json::Value = serde_json::from_str(message.json()).unwrap();
        assert_eq!(json["event"], message.event);
        let lines = format!("event: {}\ndata: {}\n\n", message.event, message.json());
        assert_eq!(message.lines(), lines.as_bytes());
        self.events.push(message.event);
        let key = || json["key"].as_str().unwrap().to_owned();
        match message.event {
            "begin" => (self.known, self.is_complete) = (BTreeMap::new(), false),
            "put" => drop(self.known.insert(key(), json["object"].clone())),
            "remove" => drop(self.known.remove(&key())),
            "complete" => self.is_complete = true,
            "missed" => self.missed += json["count"].as_u64().unwrap(),
            other => panic!("{other}"),
        }
    }

    fn has_all_of(&self, tables: &Tables) -> bool {
        let record = |record: &Arc<Record>| {
            (record.object.key().to_string(), serde_json::to_value(&record.object).unwrap())
        };
        self.known == tables.view().records(Kind::Switch).map(record).collect()
    }
}

#[test]
fn a_client_that_stalls_misses_changes_and_is_told_and_nobody_else_is() {
    let mut world = World::default();
    let (slow, fast) = (world.join(false), world.join(false));
    let (mut slow_reader, mut fast_reader) = (Reader::default(), Reader::default());
    slow_reader.read(&mut world, slow, usize::MAX);
    fast_reader.read(&mut world, fast, usize::MAX);
    for id in 1..=QUEUE_MAX as u64 + 10 {
        world.put(id);
        fast_reader.read(&mut world, fast, usize::MAX);
    }
    assert_eq!((fast_reader.missed, world.feed.missed()), (0, QUEUE_MAX as u64 + 10));
    assert!(fast_reader.has_all_of(&world.tables));
    slow_reader.read(&mut world, slow, usize::MAX);
    assert_eq!(slow_reader.missed, QUEUE_MAX as u64 + 10);
    assert!(slow_reader.is_complete && slow_reader.has_all_of(&world.tables));
    assert_eq!(slow_reader.events.iter().filter(|it| **it == "begin").count(), 2);
}

#[test]
fn a_full_queue_lets_go_of_what_it_held() {
    let mut world = World::default();
    let client = world.join(true);
    Reader::default().read(&mut world, client, usize::MAX);
    (0..=QUEUE_MAX as u64).for_each(|id| world.put(id));
    assert_eq!(world.feed.clients[&client].queue.len(), 0);
    (0..10).for_each(|id| world.put(id));
    let mut reader = Reader::default();
    reader.read(&mut world, client, usize::MAX);
    assert_eq!((reader.events, reader.missed), (vec!["missed", "begin", "complete"], QUEUE_MAX as u64 + 11));
}

#[test]
fn too_many_clients_are_refused_and_one_that_leaves_makes_room() {
    let mut world = World::default();
    let clients: Vec<_> = (0..CLIENTS_MAX).map(|_| world.join(true)).collect();
    let interest = Interest { about: Vec::new(), changes_only: true, slice: None };
    assert_eq!(world.feed.join(interest.clone(), CLIENTS_MAX), None);
    assert!(world.feed.join(interest.clone(), CLIENTS_MAX + OPERATORS_MAX).is_some(), "the operator gets in");
    world.feed.leave(clients[0]);
    assert_eq!(world.feed.join(interest.clone(), CLIENTS_MAX), None, "the operator's client counts too");
    world.feed.leave(clients[1]);
    assert!(world.feed.join(interest, CLIENTS_MAX).is_some());
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_client_is_woken_once_for_what_it_wants_only() {
    let (mut feed, woken) = (Feed::default(), Arc::new(Counting::default()));
    let interest = Interest { about: vec![About::Counters], changes_only: true, slice: None };
    let client = feed.join(interest, CLIENTS_MAX).unwrap();
    let (tables, waker) = (Tables::new(), Waker::from(Arc::clone(&woken)));
    let counters = |feed: &mut Feed| {
        feed.publish(About::Counters, || Message::new("counters", json!({})));
        woken.0.load(Ordering::Relaxed)
    };
    assert_eq!(counters(&mut feed), 0, "nobody waits yet");
    while !feed.take(client, "r", (tables.view(), &|_| Vec::new()), &waker).is_empty() {}
    feed.publish(About::Object(Kind::Switch), || panic!("nobody wants it"));
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    assert_eq!([counters(&mut feed), counters(&mut feed)], [1, 1]);
    assert_eq!(feed.take(client, "r", (tables.view(), &|_| Vec::new()), &waker).len(), 2);
}

/// The same numbers for the same seed.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn whenever_it_reads_a_client_ends_with_the_present_objects() {
    for start in 1..=200 {
        let (mut seed, mut world, mut reader) = (start, World::default(), Reader::default());
        (0..random(&mut seed) % 300).for_each(|id| world.put(id));
        let client = world.join(false);
        for _ in 0..random(&mut seed) % 2_000 {
            match random(&mut seed) % 8 {
                0 => drop(reader.read(&mut world, client, 1)),
                1 => {
                    let id = random(&mut seed) % 300;
                    world.change(id, None);
                }
                _ => {
                    let id = random(&mut seed) % 300;
                    world.put(id);
                }
            }
        }
        reader.read(&mut world, client, usize::MAX);
        assert!(reader.is_complete && reader.has_all_of(&world.tables), "seed {start}");
    }
}

#[test]
fn a_client_of_one_slice_hears_of_no_other_and_labels_are_for_it_alone() {
    let mut feed = Feed::default();
    let mut join = |slice: Option<&str>| {
        let interest =
            Interest { about: vec![About::Slice], changes_only: false, slice: slice.map(str::to_owned) };
        feed.join(interest, CLIENTS_MAX).unwrap()
    };
    let (blue, all) = (join(Some("blue")), join(None));
    let tables = Tables::new();
    let snapshot = |interest: &Interest| {
        let text = interest.slice.clone().unwrap_or_else(|| "all".to_owned());
        vec![Message::new("put", json!({ "key": text }))]
    };
    let take = |feed: &mut Feed, client| -> Vec<String> {
        let known: (&Snapshot, OfSlices<'_>) = (tables.view(), &snapshot);
        let messages = std::iter::from_fn(|| {
            Some(feed.take(client, "r", known, Waker::noop())).filter(|messages| !messages.is_empty())
        });
        messages.flatten().map(|message| message.json().to_owned()).collect()
    };
    let begins = take(&mut feed, blue);
    assert!(begins[0].contains(r#""kinds":["slice"]"#) && begins[1].contains("blue"), "{begins:?}");
    assert!(begins[2].contains("complete"), "{begins:?}");
    assert!(take(&mut feed, all)[1].contains("all"));
    for (slice, is_label) in [("blue", false), ("blue", true), ("red", false), ("red", true)] {
        feed.publish_of_slice(slice, is_label, || {
            Message::new("put", json!({ "key": slice, "label": is_label }))
        });
    }
    assert_eq!(feed.wanted_slices().into_iter().collect::<Vec<_>>(), ["blue"]);
    let heard = take(&mut feed, blue);
    assert!(heard.len() == 2 && heard.iter().all(|it| it.contains("blue")), "{heard:?}");
    let heard = take(&mut feed, all);
    assert!(heard.len() == 2 && heard.iter().all(|it| it.contains(r#""label":false"#)), "{heard:?}");
}
