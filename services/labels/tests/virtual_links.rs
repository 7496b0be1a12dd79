//! Virtual links of slices: their flows are booked on their hops, and their label is the least of their hops.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use hose::Bandwidth;
use labels::{Effect, Engine};
use labels_contract::{Entry, Hose, Label, Report, Vnic};
use std::collections::BTreeMap;
use view::LinkId;

/// The virtual link of both slices, and two ways for it.
const LINK: &str = "1/3-2/3";
const FIRST: [&str; 2] = ["1/3-3/1", "3/2-2/3"];
const SECOND: [&str; 3] = ["1/3-3/1", "3/3-4/1", "4/2-2/3"];

fn id(text: &str) -> LinkId {
    text.parse().unwrap()
}

struct Bed {
    engine: Engine,
    told: BTreeMap<(String, LinkId), Option<Label>>,
    now_ms: u64,
}

impl Bed {
    /// Two slices with a VNIC of 4 Mbit/s at each end.
    fn new() -> Bed {
        let mut bed = Bed { engine: Engine::default(), told: BTreeMap::new(), now_ms: 0 };
        bed.engine.expect_virtual_links();
        let links = vec![id(LINK), id(LINK).reversed()];
        let vnic = |name: &str| (name.to_owned(), Vnic { rate_bps: 4_000_000, number: None, agent: None });
        let hose = Hose { vnics: [vnic("A"), vnic("B")].into(), links: Some(links), step_percent: None };
        for name in ["blue", "red"] {
            bed.act(|engine, now_ms, out| engine.put(name, &hose, now_ms, out).unwrap());
        }
        for (link, mbps) in [("1/3-3/1", 10), ("3/2-2/3", 8), ("3/3-4/1", 6), ("4/2-2/3", 9)] {
            bed.set_capacity(link, mbps);
        }
        bed
    }

    fn act(&mut self, act: impl FnOnce(&mut Engine, u64, &mut Vec<Effect>)) {
        // Long enough that damping holds nothing back.
        self.now_ms += 2_000;
        let mut effects = Vec::new();
        act(&mut self.engine, self.now_ms, &mut effects);
        self.engine.on_time(self.now_ms + 1_500, &mut effects);
        for effect in effects {
            if let Effect::Told { slice, link, label } = effect {
                self.told.insert((slice, link), label);
            }
        }
    }

    fn set_capacity(&mut self, link: &str, mbps: u64) {
        let capacity = Bandwidth::from_kbps(mbps * 1_000);
        self.act(|engine, now_ms, out| engine.on_link(id(link), Some(capacity), now_ms, out));
    }

    fn lead_over(&mut self, slice: &str, hops: &[&str]) {
        let hops: Vec<LinkId> = hops.iter().map(|hop| id(hop)).collect();
        self.act(|engine, now_ms, out| engine.on_virtual_link(slice, id(LINK), &hops, now_ms, out));
    }

    fn report(&mut self, slice: &str, number: u64, entries: Vec<Entry>) -> usize {
        let slice = slice.to_owned();
        let report = Report { slice, session: 1, number, reset: number == 1, more: false, entries };
        let mut refused = 0;
        self.act(|engine, now_ms, out| {
            refused = engine.on_report(&report, now_ms, out).unwrap().refused.len();
        });
        refused
    }

    fn flow(link: &str) -> Entry {
        Entry::Path { from: "A".to_owned(), to: "B".to_owned(), links: vec![id(link)], rules: 2 }
    }

    /// The label of the red slice's link and its capacity in Mbit/s, as it was told and as it is.
    fn check(&self, expected: Option<(u64, u64)>) {
        let mbps = |label: &Label| (label.label_kbps / 1_000, label.capacity_kbps / 1_000);
        let told = self.told.get(&("red".to_owned(), id(LINK))).cloned().flatten();
        assert_eq!(told.as_ref().map(mbps), expected, "told");
        let all = self.engine.labels("red").unwrap();
        assert_eq!(all.iter().find(|label| label.link == id(LINK)).map(mbps), expected, "now");
    }

    fn hops_of_flow(&self) -> Vec<LinkId> {
        self.engine.flows("blue").unwrap()[0].links.clone()
    }
}

#[test]
fn flows_move_with_the_hops_and_the_label_is_the_least_of_them() {
    let mut bed = Bed::new();
    bed.lead_over("red", &FIRST);
    bed.report("red", 1, vec![Entry::Link { link: id(LINK) }]);
    bed.check(Some((8, 8)));
    // The flow is reported before the hops are known.
    bed.report("blue", 1, vec![Bed::flow(LINK)]);
    bed.check(Some((8, 8)));
    bed.lead_over("blue", &FIRST);
    assert_eq!(bed.hops_of_flow(), FIRST.map(id));
    bed.check(Some((4, 8)));
    bed.lead_over("blue", &SECOND);
    assert_eq!(bed.hops_of_flow(), SECOND.map(id));
    bed.check(Some((6, 8)));
    bed.lead_over("red", &SECOND);
    bed.check(Some((2, 6)));
    bed.set_capacity("3/3-4/1", 5);
    bed.check(Some((1, 5)));
    // One that is down has no label, and its flows are on no cable.
    bed.lead_over("red", &[]);
    bed.check(None);
    bed.lead_over("blue", &[]);
    bed.lead_over("red", &SECOND);
    bed.check(Some((5, 5)));
    assert_eq!(bed.hops_of_flow(), [id(LINK)]);
    bed.report("red", 2, vec![Entry::NoLink { link: id(LINK) }]);
    bed.check(None);
    // A link that is shown before its hops are known gets its label with them.
    bed.lead_over("red", &[]);
    bed.report("red", 3, vec![Entry::Link { link: id(LINK) }]);
    bed.check(None);
    bed.lead_over("red", &FIRST);
    bed.check(Some((8, 8)));
}

#[test]
fn a_slice_reports_its_own_links_and_not_what_is_below_them() {
    let mut bed = Bed::new();
    bed.lead_over("blue", &FIRST);
    assert_eq!(bed.report("blue", 1, vec![Bed::flow(LINK)]), 0);
    assert_eq!(bed.report("blue", 2, vec![Bed::flow(FIRST[0])]), 1, "a hop is not the slice's");
    assert_eq!(bed.report("blue", 3, vec![Entry::Link { link: id(FIRST[0]) }]), 1);
    assert_eq!(bed.report("blue", 4, vec![Bed::flow(LINK)]), 0);
    // A new promise keeps a flow over a link that the slice still has, whatever is below it.
    let hose = bed.engine.promised("blue").unwrap().clone();
    bed.act(|engine, now_ms, out| engine.put("blue", &hose, now_ms, out).unwrap());
    assert_eq!(bed.hops_of_flow(), FIRST.map(id));
    let other = Hose { links: Some(Vec::new()), ..hose };
    bed.act(|engine, now_ms, out| engine.put("blue", &other, now_ms, out).unwrap());
    assert!(bed.engine.flows("blue").unwrap().is_empty());
    bed.act(|engine, now_ms, out| engine.remove("blue", now_ms, out).unwrap());
}
