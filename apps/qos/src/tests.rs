//! The app with a view of one switch and a host: which rules and meters it wants, and what it says of a switch that cannot have them.

use super::*;
use burnet_sdk::flow::canonical::{read_instructions, read_match};
use burnet_sdk::flow::text::{instructions_to_string, match_to_string};
use burnet_sdk::view::{Change, ConnectPoint, Host, HostId, Object, Port, Stamp, SwitchState, Tables};
use burnet_sdk::{MacAddr, PortNo};
use burnet_sdk_rules::Item;

const HOST: &str = "00:00:00:00:00:01";

fn view(openflow: &str) -> Snapshot {
    let (id, at) = (DatapathId(1), ConnectPoint { switch: DatapathId(1), port: PortNo(1) });
    let (state, openflow, description) = (SwitchState::Up, openflow.to_owned(), Default::default());
    let annotations = Default::default();
    let switch =
        Switch { id, state, openflow, n_tables: 4, n_buffers: 0, description, since_ms: 0, annotations };
    let (mac, name, annotations) = (MacAddr([0; 6]), String::new(), Default::default());
    let port = Port { id: at, name, mac, live: true, enabled: true, speed_kbps: 0, annotations };
    let id = HostId { mac: MacAddr([0, 0, 0, 0, 0, 1]), vlan: None };
    let (addresses, annotations) = Default::default();
    let host = Host { id, addresses, at, since_ms: 0, configured: false, annotations };
    let mut tables = Tables::new();
    let objects = [Object::from(switch), port.into(), host.into()];
    tables.apply(objects.map(|object| Change {
        stamp: Stamp::default(),
        key: object.key(),
        object: Some(object),
    }));
    tables.snapshot()
}

/// The items for the switch as text, and what the operator is told.
fn items(settings: &str, openflow: &str) -> (Vec<String>, Vec<String>) {
    let mut app = Qos::new(&Settings::from_json(settings.as_bytes()).unwrap()).unwrap();
    let view = view(openflow);
    let mut items = Vec::new();
    app.write_switch(view.switch(DatapathId(1)).unwrap(), &view, &mut Items::new(&mut items));
    let line = |(_, item)| match item {
        Item::Rule(rule) => {
            let matching = match_to_string(&read_match(rule.matching).unwrap());
            let instructions = instructions_to_string(&read_instructions(rule.instructions).unwrap());
            format!("{} {} [{matching}] {instructions}", rule.table_id, rule.priority)
        }
        Item::Meter(meter) => format!("meter {} {:?}", meter.meter_id, meter.bands),
        other => panic!("{other:?}"),
    };
    (flows_contract::items(&items).map(line).collect(), app.notes.waiting().to_vec())
}

#[test]
fn a_host_has_a_meter_for_each_direction() {
    let settings =
        format!("{{\"next_table\": 1, \"limits\": [{{\"host\": \"{HOST}\", \"rate_kbps\": 513}}]}}");
    let band = "[0, 1, 0, 16, 0, 0, 2, 1, 0, 0, 0, 100, 0, 0, 0, 0]";
    let expected = [
        &format!("meter 10000 {band}"),
        "0 30999 [in_port=1,dl_src=00:00:00:00:00:01] meter:10000,goto_table:1",
        &format!("meter 10001 {band}"),
        "0 30999 [dl_dst=00:00:00:00:00:01] meter:10001,goto_table:1",
        "0 30000 [] goto_table:1",
    ];
    assert_eq!(items(&settings, "1.3").0, expected);
}

#[test]
fn limits_and_classes_have_a_table_each_so_that_both_hold_for_a_packet() {
    let settings = r#"{"next_table": 2, "limits": [{"switch": "1", "match": "udp", "rate_kbps": 1000}],
        "classes": [{"match": "ip,ip_dscp=46", "queue": 2}, {"match": "any", "queue": 1}]}"#;
    let (said, _) = items(settings, "1.3");
    let expected = [
        "0 30999 [udp] meter:10000,goto_table:1",
        "1 30999 [ip,nw_tos=184] set_queue:2,goto_table:2",
        "1 30998 [] set_queue:1,goto_table:2",
        "0 30000 [] goto_table:1",
        "1 30000 [] goto_table:2",
    ];
    assert_eq!(said[1..], expected);
}

#[test]
fn with_openflow_1_0_only_classes_with_a_port_are_possible_and_the_rest_is_told() {
    let settings = format!(
        r#"{{"next_table": 2, "limits": [{{"host": "{HOST}", "rate_kbps": 1000}}],
        "classes": [{{"match": "ip", "queue": 2}}, {{"match": "arp", "queue": 1, "out": 3, "switches": ["1"]}}]}}"#
    );
    let (said, told) = items(&settings, "1.0");
    assert_eq!(said, ["0 30998 [arp] set_queue:1,output:3"]);
    assert!(
        told.len() == 2 && told[0].contains("has no meters") && told[1].contains("needs a port `out`"),
        "{told:?}"
    );
}
