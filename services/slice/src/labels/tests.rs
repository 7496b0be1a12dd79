//! A slice and a service of labels that is slow, loses messages, and forgets.

use super::*;
use proptest::prelude::*;
use slicer::FlowPath;

const SESSION: u64 = 7;

fn link(from: u64, to: u64) -> LinkId {
    format!("{from}/1-{to}/1").parse().unwrap()
}

fn flow(from: &str, to: &str, hops: Option<u64>) -> FlowChange {
    let link = |hop| PhysicalLink {
        from: DatapathId(hop),
        from_port: PortNo(1),
        to: DatapathId(hop + 1),
        to_port: PortNo(1),
    };
    let path = hops.map(|hops| FlowPath { links: (1..=hops).map(link).collect(), rules: 1 });
    FlowChange { from: from.to_owned(), to: to.to_owned(), path }
}

fn labels() -> Labels {
    Labels::new("blue", SESSION, [link(1, 2), link(2, 1)])
}

/// Lets time pass, and gives what is sent with tickets from `first` on.
fn sent(labels: &mut Labels, now_ms: u64, first: u64) -> Vec<Wish> {
    let mut wishes = Vec::new();
    labels.on_time(now_ms, Vec::new, |wish| {
        wishes.push(wish);
        Ticket(first + wishes.len() as u64 - 1)
    });
    wishes
}

fn entries(wish: &Wish) -> Vec<Entry> {
    let Wish::Report(bytes) = wish else { panic!("{wish:?}") };
    match Question::from_bytes(bytes).unwrap() {
        Question::Report(report) => report.entries,
        other => panic!("{other:?}"),
    }
}

fn heard(next: u64) -> Vec<u8> {
    serde_json::to_vec(&Heard { next, ..Heard::default() }).unwrap()
}

#[test]
fn the_first_report_names_the_links_that_the_slice_shows() {
    let mut labels = labels();
    let wishes = sent(&mut labels, 0, 10);
    assert_eq!(wishes[0], Wish::Follow(br#"{"slice":"blue"}"#.to_vec()));
    assert_eq!(entries(&wishes[1]), [link(1, 2), link(2, 1)].map(|link| Entry::Link { link }));
    assert_eq!(labels.next_ms(), Some(SETTLE_MS), "both are under way");
    labels.say(flow("A", "B", Some(1)));
    assert_eq!(sent(&mut labels, 1, 12), [], "one report at a time");
    assert!(labels.on_reply(Ticket(11), Ok(&heard(2)), 2, Vec::new));
    assert!(!labels.on_reply(Ticket(11), Ok(&heard(2)), 2, Vec::new), "it is answered");
    assert_eq!(entries(&sent(&mut labels, 2, 12)[0]).len(), 1);
}

#[test]
fn what_an_earlier_process_reported_counts_until_the_controllers_had_their_time() {
    let mut labels = labels();
    let more = |labels: &mut Labels, now_ms, ticket| {
        let reports: Vec<Wish> =
            sent(labels, now_ms, ticket).into_iter().filter(|it| matches!(it, Wish::Report(_))).collect();
        let [Wish::Report(bytes)] = &reports[..] else { return None };
        let Question::Report(report) = Question::from_bytes(bytes).unwrap() else { panic!("no report") };
        let ticket = if report.number == 1 { ticket + 1 } else { ticket };
        labels.on_reply(Ticket(ticket), Ok(&heard(report.number + 1)), now_ms, Vec::new);
        Some(report.more)
    };
    assert_eq!(more(&mut labels, 0, 1), Some(true));
    labels.say(flow("A", "B", Some(1)));
    assert_eq!(more(&mut labels, 1, 3), Some(true));
    assert_eq!(more(&mut labels, SETTLE_MS - 1, 4), None);
    assert_eq!(more(&mut labels, SETTLE_MS, 4), Some(false));
    assert_eq!((more(&mut labels, SETTLE_MS, 5), labels.next_ms()), (None, None));
}

#[test]
fn a_service_that_is_away_is_asked_ever_later_and_logged_once() {
    let mut labels = labels();
    let (mut now_ms, mut pauses) = (0, Vec::new());
    for ticket in (0..16).step_by(2) {
        assert!(!sent(&mut labels, now_ms, ticket).is_empty());
        labels.on_reply(Ticket(ticket + 1), Err((0xffff, b"")), now_ms, Vec::new);
        labels.on_refused(Ticket(ticket), "no such service", now_ms);
        labels.trouble.clear();
        labels.on_reply(Ticket(ticket), Err((0xffff, b"")), now_ms, Vec::new);
        let next_ms = labels.next_ms().unwrap_or(now_ms);
        pauses.push(next_ms - now_ms);
        now_ms += Pauses::LONGEST_MS;
    }
    assert_eq!((pauses[0], pauses[7]), (Pauses::FIRST_MS, Pauses::LONGEST_MS), "{pauses:?}");
    assert!(labels.is_stale());
}

#[test]
fn labels_follow_the_stream_and_are_stale_when_it_ends() {
    let mut labels = labels();
    sent(&mut labels, 0, 1);
    labels.on_reply(Ticket(2), Ok(&heard(2)), 0, Vec::new);
    sent(&mut labels, 0, 3);
    let key = link(1, 2).to_string();
    let value = |kbps| {
        let label = Label { link: link(1, 2), capacity_kbps: 10_000, label_kbps: kbps };
        serde_json::to_vec(&TimedLabel { at_us: u64::from(kbps == 500), label }).unwrap()
    };
    let mut told = Vec::new();
    let mut hear = |labels: &mut Labels, update: Update<'_>| {
        told.clear();
        assert!(labels.on_stream(Ticket(1), &update, 5, &mut told));
        told.iter()
            .map(|it| (it.datapath.0, it.port.0, it.label.map(|label| label.label_kbps)))
            .collect::<Vec<_>>()
    };
    assert_eq!(hear(&mut labels, Update::Begin { number: 1 }), []);
    assert_eq!(labels.next_ms(), Some(5), "it asks whether the service has all");
    let (key, foreign) = (key.as_bytes(), link(8, 9).to_string());
    assert_eq!(hear(&mut labels, Update::Entry { key, value: &value(2_000) }), [(1, 1, Some(2_000))]);
    assert_eq!(hear(&mut labels, Update::Entry { key: foreign.as_bytes(), value: &value(1) }), []);
    assert_eq!(hear(&mut labels, Update::Entry { key, value: b"rubbish" }), []);
    let state = br#"{"stale":false,"rebuild":false}"#;
    assert_eq!(hear(&mut labels, Update::Put { number: 2, key: STATE_KEY.as_bytes(), value: state }), []);
    assert_eq!(hear(&mut labels, Update::Complete { number: 2 }), []);
    assert!(!labels.is_stale() && labels.known().count() == 1);
    assert_eq!(hear(&mut labels, Update::Put { number: 3, key, value: &value(500) }), [(1, 1, Some(500))]);
    assert_eq!(labels.known().map(|it| it.at_us).collect::<Vec<_>>(), [1]);
    let again = String::from_utf8(value(500)).unwrap().replace(r#""at_us":1"#, r#""at_us":2"#);
    let again = Update::Put { number: 4, key, value: again.as_bytes() };
    assert_eq!(hear(&mut labels, again), [], "the same label, at another time");
    // The next process of the service has no label of this link yet.
    hear(&mut labels, Update::Missed { from: 4, to: 4 });
    hear(&mut labels, Update::Begin { number: 4 });
    assert_eq!(hear(&mut labels, Update::Complete { number: 4 }), [(1, 1, None)]);
    assert_eq!(hear(&mut labels, Update::Ended { status: 0xfffb, reason: b"" }), []);
    assert!(labels.is_stale());
    assert_eq!(
        sent(&mut labels, 5 + Pauses::FIRST_MS, 9).iter().filter(|it| matches!(it, Wish::Follow(_))).count(),
        1
    );
    let lines = labels.take_lines();
    assert_eq!(lines, ["labels are stale: the service of labels is away (status 0xfffb)"]);
}

/// A service as the contract describes it.
#[derive(Default)]
struct Service {
    session: u64,
    next: u64,
    flows: BTreeMap<(String, String), usize>,
    /// What a beginning has not confirmed yet.
    old: Option<BTreeSet<(String, String)>>,
}

impl Service {
    fn on_report(&mut self, bytes: &[u8]) -> Heard {
        let Question::Report(report) = Question::from_bytes(bytes).unwrap() else { panic!("no report") };
        if !report.reset && self.session != report.session {
            return Heard { rebuild: true, next: self.next, ..Heard::default() };
        }
        if report.reset || report.number == self.next {
            self.session = report.session;
            self.next = report.number + 1;
            if report.reset {
                self.old = Some(self.flows.keys().cloned().collect());
            }
            report.entries.into_iter().for_each(|entry| self.take(entry));
            if !report.more {
                self.old.take().into_iter().flatten().for_each(|pair| _ = self.flows.remove(&pair));
            }
        }
        Heard { next: self.next, ..Heard::default() }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Path { from, to, links, .. } => {
                self.old.iter_mut().for_each(|old| _ = old.remove(&(from.clone(), to.clone())));
                self.flows.insert((from, to), links.len());
            }
            Entry::NoPath { from, to } => _ = self.flows.remove(&(from, to)),
            _ => {}
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Flow(u8, u8, Option<u64>),
    /// The report that is under way is lost, or its answer is.
    Lose(bool),
    Answer,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3u8, 0..3u8, prop::option::of(0..3u64)).prop_map(|(from, to, hops)| Step::Flow(from, to, hops)),
        2 => any::<bool>().prop_map(Step::Lose),
        4 => Just(Step::Answer),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn the_service_has_all_flows_in_the_end(steps in steps()) {
        let (mut labels, mut service) = (labels(), Service::default());
        let (mut flows, mut now_ms, mut last) = (BTreeMap::new(), 0, 0);
        let ending = (0..9).map(|_| Step::Answer);
        let restart = [Step::Restart];
        for step in steps.into_iter().chain(restart).chain(ending) {
            now_ms += Pauses::LONGEST_MS;
            let all = |flows: &BTreeMap<(String, String), FlowChange>| flows.values().cloned().collect::<Vec<_>>();
            let mut under_way = None;
            labels.on_time(now_ms, || all(&flows), |wish| {
                last += 1;
                if let Wish::Report(bytes) = wish {
                    under_way = Some((Ticket(last), bytes));
                }
                Ticket(last)
            });
            match step {
                Step::Flow(from, to, hops) => {
                    let change = flow(&format!("v{from}"), &format!("v{to}"), hops);
                    let pair = (change.from.clone(), change.to.clone());
                    let _before = match hops {
                        Some(_) => flows.insert(pair, change.clone()),
                        None => flows.remove(&pair),
                    };
                    labels.say(change);
                }
                Step::Restart => {
                    service = Service::default();
                    if let Call::UnderWay(stream) = labels.stream {
                        labels.on_stream(stream, &Update::Begin { number: 0 }, now_ms, &mut Vec::new());
                    }
                }
                Step::Lose(_) | Step::Answer => {}
            }
            let Some((ticket, bytes)) = under_way else { continue };
            match step {
                Step::Lose(false) => _ = labels.on_reply(ticket, Err((0xfffe, b"")), now_ms, || all(&flows)),
                Step::Lose(true) => {
                    service.on_report(&bytes);
                    labels.on_reply(ticket, Err((0xfffc, b"")), now_ms, || all(&flows));
                }
                _ => {
                    let heard = serde_json::to_vec(&service.on_report(&bytes)).unwrap();
                    labels.on_reply(ticket, Ok(&heard), now_ms, || all(&flows));
                }
            }
        }
        let expected: BTreeMap<_, _> =
            flows.into_iter().map(|(pair, flow)| (pair, flow.path.map_or(0, |path| path.links.len()))).collect();
        prop_assert_eq!(service.flows, expected);
    }
}
