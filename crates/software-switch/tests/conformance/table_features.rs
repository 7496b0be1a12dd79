//! Table features: what tables support, and setting which tables there are (1.3.5, 7.3.5.5). 1.0 does not have them.

use super::dsl::*;
use crate::has;
use flow::{Field, PortNo};
use openflow::Body;
use openflow::message::*;

fn features(bench: &mut Bench) -> Vec<TableFeatures> {
    match bench.ask(RequestBody::TableFeatures(vec![])) {
        ReplyBody::TableFeatures(tables) => tables,
        other => panic!("{other:?}"),
    }
}

fn wanted(table_id: u8) -> TableFeatures {
    TableFeatures {
        table_id,
        name: format!("wanted{table_id}"),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 10,
        properties: vec![],
    }
}

fn set_features(tables: &[TableFeatures]) -> Body {
    multipart(RequestBody::TableFeatures(tables.to_vec()))
}

fn check_refused(tables: &[TableFeatures], expected: (u16, u16)) {
    let mut bench = Bench::new(V13);
    let before = features(&mut bench);
    assert_eq!(bench.refusal(set_features(tables)), Some(expected));
    assert_eq!(features(&mut bench), before, "what is refused changes nothing");
}

fn with(property: TableProperty) -> TableFeatures {
    TableFeatures { properties: vec![property], ..wanted(0) }
}

fn oxm(kind: u16, field: Field) -> TableFeatures {
    let header = 0x8000 << 16 | u32::from(field.number()) << 9 | field.bytes() as u32;
    with(TableProperty::Oxm { kind, oxm_ids: vec![header] })
}

#[test]
fn every_table_is_told_with_its_size_and_metadata() {
    if !has(Part::Tables) {
        return;
    }
    let tables = features(&mut Bench::new(V13));
    let ids: Vec<u8> = tables.iter().map(|table| table.table_id).collect();
    assert_eq!(ids, (0..16).collect::<Vec<u8>>());
    for table in &tables {
        assert_eq!(
            (table.max_entries, table.metadata_match, table.metadata_write),
            (65_536, u64::MAX, u64::MAX)
        );
    }
}

#[test]
fn every_property_that_the_specification_asks_for_is_there_once() {
    for table in features(&mut Bench::new(V13)) {
        let kinds: Vec<u16> = table
            .properties
            .iter()
            .map(|property| match property {
                TableProperty::Instructions { kind, .. }
                | TableProperty::NextTables { kind, .. }
                | TableProperty::Actions { kind, .. }
                | TableProperty::Oxm { kind, .. } => *kind,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(kinds, [0, 2, 4, 6, 8, 10, 12, 14]);
    }
}

#[test]
fn the_last_table_goes_nowhere() {
    if !has(Part::Tables) {
        return;
    }
    let tables = features(&mut Bench::new(V13));
    let says_goto = |table: &TableFeatures| {
        table.properties.iter().any(|property| {
            matches!(property, TableProperty::Instructions { ids, .. } if ids.iter().any(|id| id.kind == 1))
        })
    };
    assert!(says_goto(&tables[0]) && !says_goto(&tables[15]));
}

#[test]
fn what_is_told_can_be_set_and_changes_nothing() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let tables = features(&mut bench);
    assert_eq!(bench.refusal(set_features(&tables)), None);
    assert_eq!(features(&mut bench), tables);
}

#[test]
fn names_and_sizes_are_set_and_the_answer_tells_them() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let answers = bench.say(set_features(&[wanted(0), wanted(3)]));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::TableFeatures(tables), .. })] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    let told: Vec<(u8, &str, u32)> =
        tables.iter().map(|table| (table.table_id, table.name.as_str(), table.max_entries)).collect();
    assert_eq!(told, [(0, "wanted0", 10), (3, "wanted3", 10)]);
}

#[test]
fn a_size_that_is_set_is_kept_to() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(set_features(&[TableFeatures { max_entries: 1, ..wanted(0) }]));
    bench.add(&[rule(1)]);
    assert_eq!(bench.refusal(rule(2).body()), Some((5, 1)));
}

#[test]
fn a_table_that_is_left_out_is_no_more_and_its_rules_go() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[
        rule(1).goto(1),
        rule(1).table(1).cookie(7).output("2").flags(FLOW_MOD_SEND_FLOW_REMOVED),
        rule(1).table(3).output("3"),
    ]);
    let said = bench.say(set_features(&[wanted(0), wanted(3)]));
    assert!(
        matches!(&said[..], [Body::FlowRemoved(gone), Body::MultipartReply(_)] if gone.cookie == 7),
        "{said:?}"
    );
    assert_eq!(bench.refusal(rule(1).table(1).body()), Some((5, 2)));
    assert_eq!(bench.refusal(rule(1).goto(1).body()), Some((3, 2)));
    assert_eq!(bench.arrive(1, &ping()).0, "", "the old way leads nowhere");
    bench.add(&[rule(1).goto(3)]);
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    let ReplyBody::Table(tables) = bench.ask(RequestBody::Table) else { panic!() };
    assert_eq!(tables.iter().map(|table| table.table_id).collect::<Vec<u8>>(), [0, 3]);
}

#[test]
fn a_table_that_was_left_out_can_come_back() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let all = features(&mut bench);
    bench.say(set_features(&[wanted(0)]));
    bench.say(set_features(&all));
    assert_eq!(features(&mut bench), all);
    bench.add(&[rule(1).goto(5), rule(1).table(5).on(Field::InPort, PortNo(1)).output("2")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn a_table_that_there_cannot_be_or_twice_is_refused() {
    if !has(Part::Tables) {
        return;
    }
    check_refused(&[wanted(0), wanted(16)], (13, 0));
    check_refused(&[wanted(0), wanted(0)], (13, 0));
    check_refused(&[wanted(1)], (13, 0));
}

#[test]
fn more_entries_than_there_is_room_for_are_refused() {
    if !has(Part::Tables) {
        return;
    }
    check_refused(&[TableFeatures { max_entries: 65_537, ..wanted(0) }], (13, 4));
}

#[test]
fn what_a_table_cannot_do_is_refused() {
    if !has(Part::Tables) {
        return;
    }
    let id = |kind| FeatureId { kind, experimenter: None };
    check_refused(&[with(TableProperty::Instructions { kind: 0, ids: vec![id(9)] })], (13, 4));
    check_refused(&[with(TableProperty::Actions { kind: 6, ids: vec![id(26)] })], (13, 4));
    check_refused(&[oxm(8, Field::InPhyPort)], (13, 4));
    check_refused(&[oxm(14, Field::Metadata)], (13, 4));
    check_refused(&[TableFeatures { config: 1, ..wanted(0) }], (13, 4));
}

#[test]
fn a_way_to_a_table_that_is_not_wanted_or_is_before_is_refused() {
    if !has(Part::Tables) {
        return;
    }
    let next = |tables: &[u8]| with(TableProperty::NextTables { kind: 2, tables: tables.to_vec() });
    check_refused(&[next(&[1])], (13, 4));
    check_refused(&[next(&[0])], (13, 4));
}

#[test]
fn a_property_twice_or_of_a_kind_that_nobody_knows_is_refused() {
    if !has(Part::Tables) {
        return;
    }
    let next = TableProperty::NextTables { kind: 2, tables: vec![] };
    check_refused(&[TableFeatures { properties: vec![next.clone(), next], ..wanted(0) }], (13, 2));
    check_refused(&[with(TableProperty::Unknown { kind: 99, data: vec![] })], (13, 2));
    let experimenter =
        TableProperty::Experimenter { kind: 0xfffe, experimenter: 1, exp_type: 1, data: vec![] };
    check_refused(&[with(experimenter)], (13, 2));
}

#[test]
fn a_request_in_parts_is_carried_out_when_the_last_is_there() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let part = |flags, tables: &[TableFeatures]| {
        let body = RequestBody::TableFeatures(tables.to_vec());
        Body::MultipartRequest(MultipartRequest { flags, body })
    };
    assert_eq!(bench.say(part(MULTIPART_MORE, &[wanted(0)])), []);
    assert_eq!(features_after(&mut bench, part(0, &[wanted(2)])), [0, 2]);
}

fn features_after(bench: &mut Bench, body: Body) -> Vec<u8> {
    match &bench.say(body)[..] {
        [Body::MultipartReply(MultipartReply { body: ReplyBody::TableFeatures(tables), .. })] => {
            tables.iter().map(|table| table.table_id).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_in_endless_parts_is_refused() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let body = RequestBody::TableFeatures(vec![wanted(0); 100]);
    let part = Body::MultipartRequest(MultipartRequest { flags: MULTIPART_MORE, body });
    assert_eq!((bench.say(part.clone()), bench.say(part.clone())), (vec![], vec![]));
    assert_eq!(bench.refusal(part), Some((1, 13)));
}
