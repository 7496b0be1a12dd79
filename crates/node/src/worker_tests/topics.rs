//! Apps that publish, and apps that subscribe, at one worker.

use super::*;

#[test]
fn no_app_ends_another_by_publishing_more_than_it_reads() {
    let mut bench = Bench::new();
    let mut victim = bench.attach(VICTIM, "victim", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut attacker = bench.attach(ATTACKER, "attacker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let topics = Subscribe { events: kind::bit(kind::TOPIC), packets: &[] };
    assert_eq!(victim.command(1, What::Subscribe(topics)), 1);
    bench.turn();
    let publish = What::Publish(Publish { topic: "noise", retain: false, payload: &[0; 60_000] });
    let mut refused = Vec::new();
    for _ in 0..10 {
        attacker.command(100, publish);
        bench.turn();
        refused.extend(attacker.hear(refusals));
    }
    assert_eq!(bench.faults(), 0);
    assert!(refused.len() > 100, "{}", refused.len());
    assert!(refused.iter().all(|why| why == "1 subscribers are too slow and did not get the message"));
    let heard = victim.hear(|event| matches!(event, Event::Topic(_)).then_some(()));
    assert!((1..20).contains(&heard.len()), "{}", heard.len());
}

#[test]
fn an_app_that_publishes_without_end_does_not_blind_who_listens_to_another() {
    let mut bench = Bench::new();
    let mut listener = bench.attach(VICTIM, "listener", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut attacker = bench.attach(ATTACKER, "attacker", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let mut other = bench.attach(OTHER, "other", Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let topics = Subscribe { events: kind::bit(kind::TOPIC), packets: &[] };
    assert_eq!(listener.command(1, What::Subscribe(topics)), 1);
    bench.turn();
    attacker.command(200, What::Publish(Publish { topic: "noise", retain: false, payload: &[0; 4_000] }));
    bench.turn();
    other.command(1, What::Publish(Publish { topic: "news", retain: false, payload: &[0; 60_000] }));
    bench.turn();
    assert_eq!(other.hear(refusals), [""; 0]);
    let heard = listener.hear(|event| match event {
        Event::Topic(topic) => Some(topic.publisher),
        _ => None,
    });
    assert_eq!(heard.iter().filter(|publisher| **publisher == OTHER).count(), 1);
}

#[test]
fn who_subscribes_late_gets_what_is_retained_and_who_has_no_room_gets_it_later_or_sees_a_gap() {
    let mut bench = Bench::new();
    let all = || Grant::everywhere(&kernel::Capability::GRANT_ALL);
    let mut publisher = bench.attach(OTHER, "publisher", all());
    // More than there is room for in the subscriber's ring.
    let payload = [7; 12_000];
    let topics: Vec<String> = (0..20).map(|number| format!("t{number:02}")).collect();
    for topic in &topics {
        publisher.command(1, What::Publish(Publish { topic, retain: true, payload: &payload }));
    }
    bench.turn();
    let mut subscriber = bench.attach_with(2 * ring::MAX_FRAME_BYTES, VICTIM, "subscriber", all());
    subscriber.command(1, What::Subscribe(Subscribe { events: kind::bit(kind::TOPIC), packets: &[] }));
    let heard = |event: &Event<'_>| match event {
        Event::Topic(it) => Some((it.topic.to_owned(), it.number, it.is_retained, it.payload.len())),
        _ => None,
    };
    let mut all = Vec::new();
    for _ in 0..40 {
        bench.turn();
        all.extend(subscriber.hear(heard));
    }
    let expected: Vec<_> = topics.iter().map(|topic| (topic.clone(), 1, true, payload.len())).collect();
    assert_eq!(all, expected);
    assert!(bench.worker.late_subscribers.is_empty());
    let flood = What::Publish(Publish { topic: "t00", retain: false, payload: &payload });
    publisher.command(10, flood);
    bench.turn();
    let before: Vec<u64> = subscriber.hear(heard).iter().map(|it| it.1).collect();
    publisher.command(1, flood);
    bench.turn();
    let after: Vec<u64> = subscriber.hear(heard).iter().map(|it| it.1).collect();
    assert!(before.len() < 10 && before.iter().copied().eq(2..2 + before.len() as u64), "{before:?}");
    assert_eq!(after, [12], "the gap is to be seen");
}
