//! The app under test: frames in, rules and packets out.

use super::*;
use burnet_sdk::testing::Trial;

/// Network 5: ports 1 and 2 untagged, port 9 tagged. Network 6: port 3 untagged, port 9 tagged.
const SETTINGS: &str = r#"{"networks": [
    {"vlan": 5, "untagged": ["1/1", "1/2"], "tagged": ["1/9"]},
    {"vlan": 6, "untagged": ["1/3"], "tagged": ["1/9"]}]}"#;

fn started() -> Trial<Vlan> {
    let mut trial = Trial::start(SETTINGS).unwrap();
    trial.switch_up(1, &[1, 2, 3, 4, 9]);
    trial
}

fn frame(destination: u8, source: u8, vlan: Option<u16>) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source];
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([8, 0]);
    frame.extend([0; 46]);
    frame
}

fn sent(actions: &str, in_port: u32) -> String {
    format!("packet-out of:0000000000000001 in_port={in_port} actions=[{actions}]")
}

#[test]
fn wrong_settings_are_refused() {
    let refusal = |json: &str| Trial::<Vlan>::start(json).err().unwrap();
    assert!(refusal(r#"{"nets": []}"#).contains("unknown field `nets`"));
    assert!(refusal(r#"{"networks": [{"vlan": 0}]}"#).contains("vlan = 0"));
}

#[test]
fn a_switch_drops_what_is_in_no_network_and_floods_groups_within_theirs() {
    let said = Trial::<Vlan>::start(SETTINGS).unwrap().switch_up(1, &[1, 2, 3, 4, 9]);
    let has = |line: &str| assert!(said.iter().any(|it| it == line), "{line} is not in {said:#?}");
    assert_eq!(said.len(), 1 + 4 + 5 * 3);
    has("add-rule of:0000000000000001 priority=20000 match=[in_port=0x9] actions=[]");
    assert!(!said.iter().any(|line| line.contains("in_port=0x4")), "port 4 is left to others");
    let groups: Vec<_> = said.iter().filter(|line| line.contains("priority=20100")).collect();
    assert!(
        groups[0].contains("vlan_vid=0x0") && groups[0].contains("actions=[output:2,PushVlan"),
        "{groups:#?}"
    );
    assert!(
        groups[2].contains("vlan_vid=0x1005") && groups[2].contains("actions=[PopVlan,output:1,output:2]"),
        "{groups:#?}"
    );
}

#[test]
fn frames_stay_in_their_network() {
    let mut app = started();
    let flooded = app.packet_in(1, 1, &frame(9, 1, None));
    assert!(
        flooded[0].contains("actions=[output:2,PushVlan") && flooded[0].ends_with("output:9]"),
        "{flooded:?}"
    );
    assert!(!flooded[0].contains("output:3"));
    assert_eq!(app.packet_in(1, 9, &frame(9, 7, Some(6))), [sent("PopVlan,output:3", 9)]);
    // The same address in the other network is another one.
    assert_eq!(app.packet_in(1, 9, &frame(1, 7, Some(6))), [sent("PopVlan,output:3", 9)]);
}

#[test]
fn what_is_in_no_network_goes_nowhere() {
    let mut app = started();
    for (port, frame) in [
        (1, frame(2, 1, Some(5))),
        (9, frame(2, 1, None)),
        (9, frame(2, 1, Some(7))),
        (4, frame(2, 1, None)),
        (1, vec![2; 13]),
        (1, [&[1, 0x80, 0xc2, 0, 0, 0][..], &frame(0, 1, None)[6..]].concat()),
    ] {
        assert!(app.packet_in(1, port, &frame).is_empty(), "port {port}");
    }
    assert!(app.packet_in(2, 1, &frame(2, 1, None)).is_empty(), "another switch");
}

#[test]
fn a_known_address_gets_a_rule_within_its_network() {
    let mut app = started();
    app.packet_in(1, 9, &frame(9, 7, Some(5)));
    let said = app.packet_in(1, 1, &frame(7, 1, None));
    assert!(
        said[0].starts_with(
            "add-rule of:0000000000000001 priority=20200 idle=60 hard=0 match=[in_port=0x1,vlan_vid=0x0"
        ),
        "{said:?}"
    );
    assert!(said[0].contains("PushVlan") && said[0].ends_with("output:9]"), "{said:?}");
    assert!(said[1].starts_with("packet-out") && said[1].ends_with("output:9]"), "{said:?}");
}

#[test]
fn an_address_that_moves_loses_its_rules_and_is_found_at_its_new_port() {
    let mut app = started();
    app.packet_in(1, 1, &frame(9, 1, None));
    let said = app.packet_in(1, 2, &frame(9, 1, None));
    assert!(said[0].starts_with("delete-rule") && said[0].contains("eth_dst=0x20000000001"), "{said:?}");
    let found = app.packet_in(1, 9, &frame(1, 7, Some(5)));
    assert!(found[0].ends_with("actions=[PopVlan,output:2]"), "{found:?}");
    app.tick(1_000_000);
    let flooded = app.packet_in(1, 9, &frame(1, 7, Some(5)));
    assert_eq!(flooded, [sent("PopVlan,output:1,output:2", 9)], "it was silent for long");
}
