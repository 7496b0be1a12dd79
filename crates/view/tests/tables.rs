//! The tables against a naive model, which keeps the last change of each object and looks for what it needs.
//!
//! In: random changes, in random orders, repeated, in random updates. Out: nothing; a difference fails. It knows the tables by
//! their public interface only.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use flow::{DatapathId, MacAddr, PortNo};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use view::{
    Change, ConnectPoint, Host, HostId, Key, Kind, Link, LinkId, LinkKind, LinkState, Notice, Object, Port,
    Record, Refusal, Snapshot, Stamp, Switch, SwitchState, Tables,
};

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn switch(id: u64, since_ms: u64) -> Object {
    let (annotations, description) = Default::default();
    let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
    let id = DatapathId(id);
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms, annotations }.into()
}

fn port(id: ConnectPoint, speed_kbps: u64) -> Object {
    let (mac, name) = (MacAddr::from_u64(1), format!("port{}", id.port));
    Port { id, name, mac, live: true, enabled: true, speed_kbps, annotations: BTreeMap::new() }.into()
}

fn link(from: ConnectPoint, to: ConnectPoint, since_ms: u64) -> Object {
    Link {
        id: LinkId { from, to },
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps: 0,
        latency_us: None,
        since_ms,
        annotations: BTreeMap::new(),
    }
    .into()
}

fn host(mac: u64, vlan: Option<u16>, address: u8, at: ConnectPoint) -> Object {
    let id = HostId { mac: MacAddr::from_u64(mac), vlan };
    let addresses = (0..address % 3).map(|more| IpAddr::from([10, 0, 0, address / 2 + more])).collect();
    Host { id, addresses, at, since_ms: 0, configured: false, annotations: BTreeMap::new() }.into()
}

fn any_point() -> impl Strategy<Value = ConnectPoint> {
    (1..4u64, 1..3u32).prop_map(|(switch, at)| point(switch, at))
}

/// Objects of a network so small that most changes meet.
fn object() -> impl Strategy<Value = Object> {
    prop_oneof![
        (1..4u64, 0..3u64).prop_map(|(id, since_ms)| switch(id, since_ms)),
        (any_point(), 0..3u64).prop_map(|(at, speed)| port(at, speed)),
        (any_point(), any_point(), 0..3u64).prop_map(|(from, to, since_ms)| link(from, to, since_ms)),
        (1..4u64, prop::option::of(1..3u16), 0..8u8, any_point())
            .prop_map(|(mac, vlan, address, at)| host(mac, vlan, address, at)),
    ]
}

/// Changes with stamps in their order.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (object(), prop::bool::weighted(0.7));
    prop::collection::vec(change, 0..60).prop_map(|all| {
        let with_stamp = |(sequence, (object, stays)): (usize, (Object, bool))| Change {
            stamp: Stamp { term: sequence as u64 / 20, sequence: sequence as u64, origin: 0 },
            key: object.key(),
            object: stays.then_some(object),
        };
        all.into_iter().enumerate().map(with_stamp).collect()
    })
}

/// The same changes in another order, some of them repeated.
fn disordered(changes: Vec<Change>) -> impl Strategy<Value = Vec<Change>> {
    let repeated = prop::sample::subsequence(changes.clone(), 0..=changes.len());
    repeated.prop_flat_map(move |again| Just([changes.clone(), again].concat()).prop_shuffle())
}

/// Changes in order, and the same in disorder.
fn twice() -> impl Strategy<Value = (Vec<Change>, Vec<Change>)> {
    changes().prop_flat_map(|changes| (Just(changes.clone()), disordered(changes)))
}

/// What must be visible after these changes, in whatever order they came.
fn model(changes: &[Change]) -> BTreeMap<Key, Record> {
    let mut last: BTreeMap<Key, &Change> = BTreeMap::new();
    for change in changes {
        let known = last.entry(change.key).or_insert(change);
        if change.stamp > known.stamp {
            *known = change;
        }
    }
    let record = |change: &Change| Some(Record { stamp: change.stamp, object: change.object.clone()? });
    let mut all: BTreeMap<_, _> = last.into_iter().filter_map(|(key, it)| Some((key, record(it)?))).collect();
    let has = |all: &BTreeMap<Key, Record>, key| all.contains_key(&key);
    for _ in 0..3 {
        let before = all.clone();
        all.retain(|_, record| match &record.object {
            Object::Port(port) => has(&before, Key::Switch(port.id.switch)),
            Object::Link(link) => {
                has(&before, Key::Port(link.id.from)) && has(&before, Key::Port(link.id.to))
            }
            Object::Host(host) => has(&before, Key::Port(host.at)),
            _ => true,
        });
    }
    all
}

fn shown(view: &Snapshot) -> BTreeMap<Key, Record> {
    view.records_after(None).map(|record| (record.object.key(), (**record).clone())).collect()
}

/// Every question that an index answers, asked of the objects one by one.
fn check_indices(view: &Snapshot) {
    for kind in Kind::ALL {
        let of_kind = shown(view).into_keys().filter(|key| key.kind() == *kind);
        assert!(of_kind.eq(view.records(*kind).map(|record| record.object.key())));
        assert_eq!(view.count(*kind), view.records(*kind).count());
    }
    for switch in (0..5).map(DatapathId) {
        assert!(view.ports_of(switch).eq(view.ports().filter(|port| port.id.switch == switch)));
        assert!(view.links_from_switch(switch).eq(view.links().filter(|it| it.id.from.switch == switch)));
        let to: BTreeSet<_> = view.links_to_switch(switch).map(|link| link.id).collect();
        assert!(view.links().filter(|it| it.id.to.switch == switch).map(|it| it.id).eq(to));
        let hosts: BTreeSet<_> = view.hosts_of(switch).map(|host| host.id).collect();
        assert!(view.hosts().filter(|it| it.at.switch == switch).map(|it| it.id).eq(hosts));
        for at in (0..4).map(|port| ConnectPoint { switch, port: PortNo(port) }) {
            assert!(view.links_from(at).eq(view.links().filter(|it| it.id.from == at)));
            assert!(view.links_to(at).eq(view.links().filter(|it| it.id.to == at)));
            assert!(view.hosts_at(at).eq(view.hosts().filter(|it| it.at == at)));
        }
    }
    for address in (0..8).map(|last| IpAddr::from([10, 0, 0, last])) {
        let all = view.hosts().filter(|it| it.addresses.contains(&address));
        assert!(view.hosts_with_address(address).eq(all));
    }
    for mac in (0..5).map(MacAddr::from_u64) {
        assert!(view.hosts_with_mac(mac).eq(view.hosts().filter(|it| it.id.mac == mac)));
    }
}

fn check_complete(view: &Snapshot) {
    let is_whole = |link: &Link| view.port(link.id.from).is_some() && view.port(link.id.to).is_some();
    assert!(view.links().all(is_whole));
    assert!(view.ports().all(|port| view.switch(port.id.switch).is_some()));
    assert!(view.hosts().all(|host| view.port(host.at).is_some()));
}

/// Applies the notices of an update to what was visible before, each alone.
fn follow(seen: &mut BTreeMap<Key, Record>, notice: &Notice) {
    let before = seen.get(&notice.key()).map(|record| &record.object);
    assert_eq!(before, notice.before(), "{notice:?}");
    match notice {
        Notice::Visible(now) | Notice::Changed { now, .. } => {
            seen.insert(notice.key(), (**now).clone());
        }
        Notice::Invisible(_) => drop(seen.remove(&notice.key())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_order_and_any_repetition_end_in_the_same_tables((ordered, disordered) in twice(), size in 1..8usize) {
        let (mut tables, mut seen) = (Tables::new(), BTreeMap::new());
        let mut held = Vec::new();
        for update in disordered.chunks(size) {
            let batch = tables.apply(update.iter().cloned());
            batch.iter().for_each(|notice| follow(&mut seen, notice));
            prop_assert_eq!(&shown(tables.view()), &seen);
            check_complete(tables.view());
            held.push((tables.snapshot(), seen.clone()));
        }
        prop_assert_eq!(shown(tables.view()), model(&ordered));
        check_indices(tables.view());
        for (snapshot, seen) in held {
            prop_assert_eq!(shown(&snapshot), seen, "a snapshot has changed");
            check_indices(&snapshot);
        }
        let again = tables.apply(disordered);
        prop_assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn a_services_snapshot_replaces_its_kinds_and_no_others((old, new) in (changes(), changes())) {
        let mut tables = Tables::new();
        tables.apply(old.clone());
        let mut seen = shown(tables.view());
        let ours = [Kind::Switch, Kind::Port, Kind::Link];
        let records = model(&new).into_values().filter(|it| ours.contains(&it.object.key().kind()));
        let records: Vec<_> = records.collect();
        let batch = tables.replace(&ours, records.clone());
        batch.iter().for_each(|notice| follow(&mut seen, notice));
        prop_assert_eq!(&shown(tables.view()), &seen);
        check_indices(tables.view());
        let as_change = |it: Record| Change { stamp: it.stamp, key: it.object.key(), object: Some(it.object) };
        let hosts = old.into_iter().filter(|change| change.key.kind() == Kind::Host);
        let expected: Vec<_> = hosts.chain(records.clone().into_iter().map(as_change)).collect();
        prop_assert_eq!(seen, model(&expected));
        prop_assert!(tables.replace(&ours, records).is_empty());
    }
}

fn at(sequence: u64, object: Object) -> Change {
    Change { stamp: Stamp { sequence, ..Stamp::default() }, key: object.key(), object: Some(object) }
}

fn gone(sequence: u64, object: &Object) -> Change {
    Change { stamp: Stamp { sequence, ..Stamp::default() }, key: object.key(), object: None }
}

/// What an update says: `+` visible, `~` changed, `-` invisible.
fn told(tables: &mut Tables, changes: Vec<Change>) -> String {
    let word = |notice: &Notice| match notice {
        Notice::Visible(it) => format!("+{}", it.object.key()),
        Notice::Changed { now, .. } => format!("~{}", now.object.key()),
        Notice::Invisible(it) => format!("-{}", it.object.key()),
    };
    tables.apply(changes).iter().map(word).collect::<Vec<_>>().join(" ").replace("of:000000000000000", "")
}

#[test]
fn a_link_waits_for_both_of_its_ports_and_goes_with_one() {
    let (one, two) = (point(1, 1), point(2, 1));
    let mut tables = Tables::new();
    assert_eq!(told(&mut tables, vec![at(1, link(one, two, 0)), at(2, port(one, 0))]), "");
    assert_eq!(told(&mut tables, vec![at(3, switch(1, 0))]), "+switch/1 +port/1/1");
    assert_eq!(
        told(&mut tables, vec![at(4, switch(2, 0)), at(5, port(two, 0))]),
        "+switch/2 +port/2/1 +link/1/1-2/1"
    );
    assert_eq!(told(&mut tables, vec![at(6, host(7, None, 0, two))]), "+host/00:00:00:00:00:07");
    assert_eq!(told(&mut tables, vec![at(7, host(7, None, 0, one))]), "~host/00:00:00:00:00:07");
    assert_eq!(told(&mut tables, vec![gone(8, &switch(2, 0))]), "-link/1/1-2/1 -port/2/1 -switch/2");
    assert_eq!(told(&mut tables, vec![at(9, switch(2, 0))]), "+switch/2 +port/2/1 +link/1/1-2/1");
}

#[test]
fn an_update_is_seen_as_a_whole_and_what_it_undoes_is_not_seen() {
    let one = point(1, 1);
    let mut tables = Tables::new();
    told(&mut tables, vec![at(1, switch(1, 0)), at(2, port(one, 0))]);
    assert_eq!(told(&mut tables, vec![gone(3, &port(one, 0)), at(4, port(one, 9))]), "~port/1/1");
    assert_eq!(told(&mut tables, vec![at(5, switch(2, 0)), gone(6, &switch(2, 0))]), "");
}

#[test]
fn a_change_with_the_key_of_another_object_is_refused() {
    let mut tables = Tables::new();
    let change = Change { key: Key::Switch(DatapathId(2)), ..at(1, switch(1, 0)) };
    let batch = tables.apply([change]);
    assert_eq!(batch.refused[0].why, Refusal::OtherKey);
    assert_eq!(tables.known(), 0);
}

#[test]
fn full_tables_refuse_new_objects_and_take_changes_of_known_ones() {
    let mut tables = Tables::with_bounds(1, 1);
    assert_eq!(told(&mut tables, vec![at(1, switch(1, 0))]), "+switch/1");
    let batch = tables.apply([at(2, switch(2, 0))]);
    assert_eq!((batch.refused[0].why, batch.is_empty()), (Refusal::Full, true));
    assert_eq!(told(&mut tables, vec![at(3, switch(1, 5))]), "~switch/1");
}

#[test]
fn the_oldest_tombstone_is_forgotten_at_the_bound() {
    let mut tables = Tables::with_bounds(9, 2);
    (1..4).for_each(|id| drop(told(&mut tables, vec![gone(10, &switch(id, 0))])));
    assert_eq!(tables.forgotten_tombstones(), 1);
    assert_eq!(told(&mut tables, vec![at(5, switch(3, 0)), at(5, switch(2, 0))]), "");
    assert_eq!(told(&mut tables, vec![at(5, switch(1, 0))]), "+switch/1");
}
