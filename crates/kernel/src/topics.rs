//! Topics: the number of each publication, and the retained values for late subscribers.
//!
//! ```text
//!   publish (topic, payload, retain?) ──> a number, one more than the last ──> the event for those who subscribe
//!                                    └──> the retained value ──> who subscribes later
//! ```
//!
//! In: publications that the grant allows. Out: numbers, retained values, or the exceeded bound. Each publisher has
//! separate numbers for each of its topics. It never decides who may publish or subscribe, and never reads a payload.

use abi::ZoneId;
use abi::command::Publish;
use abi::event::Topic;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};

/// How many topics an app may publish on while it runs, at one worker. The kernel refuses more.
pub const TOPICS_PER_ZONE: usize = 1_024;

/// The longest name of a topic, in bytes. The kernel refuses a longer one.
pub const TOPIC_NAME_BYTES_MAX: usize = 256;

/// How many bytes of retained payloads an app may have at one worker. The kernel refuses a publication that would
/// exceed it.
pub const RETAINED_BYTES_PER_ZONE: usize = 256 << 10;

/// Bits of a run that hold the number of the worker whose kernel counts.
const WORKER_BITS: u32 = 8;

/// Why the kernel refuses a publication. The publisher is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpublished {
    /// The name of the topic is empty, or too long.
    Name,
    /// The app has reached its limit of topics.
    TooManyTopics,
    /// The app has reached its limit of retained bytes.
    TooMuchRetained,
}

impl fmt::Display for Unpublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpublished::Name => {
                write!(f, "publish: the name of a topic has 1 to {TOPIC_NAME_BYTES_MAX} bytes")
            }
            Unpublished::TooManyTopics => {
                write!(
                    f,
                    "publish: the app has published on {TOPICS_PER_ZONE} topics already, which is the limit"
                )
            }
            Unpublished::TooMuchRetained => write!(
                f,
                "publish: an app may have {RETAINED_BYTES_PER_ZONE} bytes retained: retain less, or publish an empty payload to remove a \
                 value"
            ),
        }
    }
}

/// The topics of one kernel. It drops an app's topics when the app ends.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    worker: u8,
    publishers: BTreeMap<ZoneId, Publisher>,
}

#[derive(Clone, Debug, Default)]
struct Publisher {
    /// How often an app was attached with this zone number.
    runs: u32,
    topics: BTreeMap<Box<str>, Entry>,
    retained_bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// The number of the last publication.
    number: u64,
    retained: Option<Box<[u8]>>,
}

/// How far a late subscriber has received the retained values: after this publisher's topic.
pub type Position = (ZoneId, Box<str>);

impl Topics {
    /// Creates the topics of this worker's kernel.
    pub fn at(worker: u8) -> Topics {
        Topics { worker, ..Topics::default() }
    }

    /// An app starts. The run tells subscribers that its numbers start again.
    pub fn on_attach(&mut self, zone: ZoneId) {
        let runs = self.publishers.get(&zone).map_or(0, |publisher| publisher.runs);
        self.publishers.insert(zone, Publisher { runs: runs.wrapping_add(1), ..Publisher::default() });
    }

    /// An app has ended: its retained values are dropped.
    pub fn on_detach(&mut self, zone: ZoneId) {
        if let Some(publisher) = self.publishers.get_mut(&zone) {
            *publisher = Publisher { runs: publisher.runs, ..Publisher::default() };
        }
    }

    /// Numbers a publication, and retains its payload if requested. An empty payload to be retained removes the value.
    pub fn publish<'a>(&mut self, zone: ZoneId, publish: &Publish<'a>) -> Result<Topic<'a>, Unpublished> {
        let Publish { topic, retain, payload } = *publish;
        if topic.is_empty() || topic.len() > TOPIC_NAME_BYTES_MAX {
            return Err(Unpublished::Name);
        }
        let run = self.run_of(zone);
        let publisher = self.publishers.entry(zone).or_default();
        let known = publisher.topics.get(topic);
        if known.is_none() && publisher.topics.len() >= TOPICS_PER_ZONE {
            return Err(Unpublished::TooManyTopics);
        }
        if retain {
            let before_bytes = known.and_then(|it| it.retained.as_ref()).map_or(0, |it| it.len());
            let retained_bytes = publisher.retained_bytes - before_bytes + payload.len();
            if retained_bytes > RETAINED_BYTES_PER_ZONE {
                return Err(Unpublished::TooMuchRetained);
            }
            publisher.retained_bytes = retained_bytes;
        }
        if known.is_none() {
            publisher.topics.insert(topic.into(), Entry::default());
        }
        let Some(entry) = publisher.topics.get_mut(topic) else { return Err(Unpublished::Name) };
        entry.number += 1;
        if retain {
            entry.retained = Some(payload).filter(|payload| !payload.is_empty()).map(Into::into);
        }
        Ok(Topic { topic, publisher: zone, run, number: entry.number, is_retained: false, payload })
    }

    fn run_of(&self, zone: ZoneId) -> u32 {
        let runs = self.publishers.get(&zone).map_or(0, |publisher| publisher.runs);
        (runs << WORKER_BITS) | u32::from(self.worker)
    }

    /// The first retained value after this position that `may_hear` allows, with the number of the topic's last
    /// publication. A late subscriber gets it.
    pub fn retained_behind(
        &self,
        position: Option<&Position>,
        may_hear: impl Fn(ZoneId, &str) -> bool,
    ) -> Option<Topic<'_>> {
        let from = position.map_or(ZoneId::KERNEL, |(zone, _)| *zone);
        self.publishers.range(from..).find_map(|(zone, publisher)| {
            let behind = position.filter(|(of, _)| of == zone).map(|(_, topic)| &**topic);
            let rest = publisher.topics.range::<str, _>((behind.map_or(Unbounded, Excluded), Unbounded));
            rest.filter(|(topic, _)| may_hear(*zone, topic)).find_map(|(topic, entry)| {
                let (payload, run) = (entry.retained.as_deref()?, self.run_of(*zone));
                let number = entry.number;
                Some(Topic { topic, publisher: *zone, run, number, is_retained: true, payload })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONE: ZoneId = ZoneId(3);

    fn publish<'a>(topic: &'a str, retain: bool, payload: &'a [u8]) -> Publish<'a> {
        Publish { topic, retain, payload }
    }

    /// All values that a late subscriber gets.
    fn retained(topics: &Topics) -> Vec<(u16, String, u64, Vec<u8>)> {
        let (mut position, mut all) = (None, Vec::new());
        while let Some(it) = topics.retained_behind(position.as_ref(), |_, _| true) {
            assert!(it.is_retained);
            all.push((it.publisher.0, it.topic.to_owned(), it.number, it.payload.to_vec()));
            position = Some((it.publisher, it.topic.into()));
        }
        all
    }

    #[test]
    fn a_bound_is_an_error_and_changes_nothing() {
        let mut topics = Topics::at(0);
        topics.on_attach(ZONE);
        let mut check = |topic: &str, retain, payload: &[u8], expected: Unpublished| {
            let before = format!("{topics:?}");
            assert_eq!(topics.publish(ZONE, &publish(topic, retain, payload)).err(), Some(expected));
            assert_eq!(format!("{topics:?}"), before);
        };
        check("", false, b"", Unpublished::Name);
        check(&"x".repeat(TOPIC_NAME_BYTES_MAX + 1), false, b"", Unpublished::Name);
        check("t", true, &vec![0; RETAINED_BYTES_PER_ZONE + 1], Unpublished::TooMuchRetained);
        for number in 0..TOPICS_PER_ZONE {
            assert!(topics.publish(ZONE, &publish(&format!("t{number}"), false, b"")).is_ok());
        }
        let refused = topics.publish(ZONE, &publish("one more", false, b""));
        assert_eq!(refused.err(), Some(Unpublished::TooManyTopics));
        assert!(
            topics.publish(ZoneId(4), &publish("one more", false, b"")).is_ok(),
            "it is not another's fault"
        );
    }

    #[test]
    fn each_publication_has_a_number_and_a_late_subscriber_gets_the_last_value() {
        let mut topics = Topics::at(2);
        topics.on_attach(ZONE);
        let numbers = ["a", "b", "a"].map(|topic| {
            let it = topics.publish(ZONE, &publish(topic, true, topic.as_bytes())).unwrap();
            (it.number, it.run)
        });
        assert_eq!(numbers, [(1, 0x102), (1, 0x102), (2, 0x102)]);
        assert_eq!(topics.publish(ZONE, &publish("a", false, b"passing")).unwrap().number, 3);
        assert_eq!(retained(&topics), [(3, "a".into(), 3, b"a".to_vec()), (3, "b".into(), 1, b"b".to_vec())]);
        topics.publish(ZONE, &publish("a", true, b"")).unwrap();
        assert_eq!(retained(&topics), [(3, "b".into(), 1, b"b".to_vec())]);
    }

    #[test]
    fn a_restart_of_a_publisher_is_another_run_and_nothing_of_it_is_retained() {
        let mut topics = Topics::at(0);
        topics.on_attach(ZONE);
        let first = topics.publish(ZONE, &publish("a", true, b"1")).unwrap().run;
        topics.on_detach(ZONE);
        assert_eq!(retained(&topics), []);
        topics.on_attach(ZONE);
        let again = topics.publish(ZONE, &publish("a", false, b"1")).unwrap();
        assert_eq!(again.number, 1);
        assert_ne!(again.run, first);
    }

    proptest! {
        /// Against a simple map: each topic retains its last payload, and the total stays within the bound.
        #[test]
        fn what_is_retained_is_the_last_value_of_each_topic(
            steps in proptest::collection::vec((0..3_u16, 0..5_u8, any::<bool>(), 0..40_000_usize), 0..100)
        ) {
            let (mut topics, mut last) = (Topics::at(0), BTreeMap::new());
            for (zone, topic, retain, length) in steps {
                let (name, payload) = (format!("t{topic}"), vec![topic; length]);
                let done = topics.publish(ZoneId(zone + 1), &publish(&name, retain, &payload));
                if done.is_ok() && retain {
                    last.insert((zone + 1, name), payload);
                }
            }
            last.retain(|_, payload| !payload.is_empty());
            let found: BTreeMap<_, _> =
                retained(&topics).into_iter().map(|(zone, topic, _, payload)| ((zone, topic), payload)).collect();
            prop_assert_eq!(&found, &last);
            for zone in 1..4 {
                let of_zone = last.iter().filter(|((of, _), _)| *of == zone).map(|(_, payload)| payload.len());
                prop_assert!(of_zone.sum::<usize>() <= RETAINED_BYTES_PER_ZONE);
            }
        }
    }
}
