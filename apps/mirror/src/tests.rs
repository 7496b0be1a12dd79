//! The app with a view of two switches: which rules it wants, and what it says of a switch that cannot copy.

use super::*;
use burnet_sdk::MacAddr;
use burnet_sdk::flow::canonical::{read_instructions, read_match};
use burnet_sdk::flow::text::{instructions_to_string, match_to_string};
use burnet_sdk::view::{
    Change, Host, HostId, Link, LinkId, LinkKind, LinkState, Object, Port, Stamp, SwitchState, Tables,
};

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

/// Two switches of this version with three ports each. Their ports 3 are joined. A host is at port 1 of each.
fn view(openflow: &str) -> Snapshot {
    let switch = |id| {
        let (annotations, description) = Default::default();
        let (id, state, openflow) = (DatapathId(id), SwitchState::Up, openflow.to_owned());
        Object::from(Switch {
            id,
            state,
            openflow,
            n_tables: 4,
            n_buffers: 0,
            description,
            since_ms: 0,
            annotations,
        })
    };
    let port = |id| {
        let (mac, name, annotations) = (MacAddr([0; 6]), String::new(), Default::default());
        Object::from(Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations })
    };
    let link = |from, to| {
        let (id, found, state) = (LinkId { from, to }, LinkKind::Direct, LinkState::Up);
        let (annotations, latency_us) = Default::default();
        Object::from(Link { id, found, state, capacity_kbps: 0, latency_us, since_ms: 0, annotations })
    };
    let host = |number: u8, at| {
        let id = HostId { mac: MacAddr([0, 0, 0, 0, 0, number]), vlan: None };
        let (addresses, annotations) = Default::default();
        Object::from(Host { id, addresses, at, since_ms: 0, configured: false, annotations })
    };
    let mut objects = vec![switch(1), switch(2)];
    objects.extend([1, 2].into_iter().flat_map(|id| (1..=3).map(move |number| port(point(id, number)))));
    objects.extend([link(point(1, 3), point(2, 3)), link(point(2, 3), point(1, 3))]);
    objects.extend([host(1, point(1, 1)), host(2, point(2, 1))]);
    let mut tables = Tables::new();
    tables.apply(objects.into_iter().map(|object| Change {
        stamp: Stamp::default(),
        key: object.key(),
        object: Some(object),
    }));
    tables.snapshot()
}

/// The rules of a switch as text, and what the operator is told.
fn rules(mirrors: &str, switch: u64, openflow: &str) -> (Vec<String>, Vec<String>) {
    let json = format!("{{\"next_table\": 1, \"mirrors\": [{mirrors}]}}");
    let mut app = Mirror::new(&Settings::from_json(json.as_bytes()).unwrap()).unwrap();
    let view = view(openflow);
    let ends = app.settings.mirrors.iter().map(|mirror| mirror.to.switch);
    let trees = ends.map(|end| (end, tree::to(&view, end))).collect();
    let mut items = Vec::new();
    let of = view.switch(DatapathId(switch)).unwrap();
    app.write_switch(of, &view, &trees, &mut Items::new(&mut items));
    let line = |(_, item)| {
        let burnet_sdk_rules::Item::Rule(rule) = item else { panic!("{item:?}") };
        let matching = match_to_string(&read_match(rule.matching).unwrap());
        let instructions = instructions_to_string(&read_instructions(rule.instructions).unwrap());
        format!("{} {} [{matching}] {instructions}", rule.table_id, rule.priority)
    };
    (flows_contract::items(&items).map(line).collect(), app.notes.waiting().to_vec())
}

const REST: [&str; 1] = ["0 31000 [] goto_table:1"];

#[test]
fn a_port_is_copied_in_both_directions_and_its_packets_go_on() {
    let (said, told) = rules(r#"{"port": "1/1", "to": "1/2"}"#, 1, "1.3");
    let copies = [
        "0 31800 [in_port=1] output:2,goto_table:1",
        "0 31799 [dl_dst=00:00:00:00:00:01] output:2,goto_table:1",
    ];
    assert_eq!(said, [&copies[..], &REST].concat());
    assert!(told.is_empty());
    assert_eq!(
        rules(r#"{"port": "1/1", "to": "1/2"}"#, 2, "1.3").0,
        REST,
        "elsewhere all packets only go on"
    );
}

#[test]
fn copies_for_another_switch_have_a_tag_that_the_packet_loses_again() {
    let mirror = r#"{"host": "00:00:00:00:00:01", "direction": "from", "to": "2/2", "vlan": 4000}"#;
    let (source, _) = rules(mirror, 1, "1.3");
    assert_eq!(
        source[0],
        "0 31800 [in_port=1,dl_src=00:00:00:00:00:01] push_vlan:0x8100,set_field:8096->vlan_vid,output:3,pop_vlan,goto_table:1"
    );
    let (end, _) = rules(mirror, 2, "1.3");
    assert_eq!(end[0], "0 31900 [in_port=3,dl_vlan=4000] pop_vlan,output:2");
}

#[test]
fn two_mirrors_of_the_same_packets_share_a_rule() {
    let mirrors = r#"{"port": "1/1", "direction": "from", "to": "1/2"}, {"port": "1/1", "direction": "from", "to": "1/3"}"#;
    assert_eq!(rules(mirrors, 1, "1.3").0[0], "0 31800 [in_port=1] output:2,output:3,goto_table:1");
}

#[test]
fn a_switch_with_one_table_is_told_and_carries_only_what_others_copy() {
    let mirrors = r#"{"port": "1/1", "to": "2/2", "vlan": 4000}"#;
    let (said, told) = rules(mirrors, 1, "1.0");
    assert!(said.is_empty(), "{said:?}");
    assert!(told.len() == 1 && told[0].contains("OpenFlow 1.0 has one table"), "{told:?}");
    assert_eq!(rules(mirrors, 2, "1.0").0, ["0 31900 [in_port=3,dl_vlan=4000] pop_vlan,output:2"]);
}
