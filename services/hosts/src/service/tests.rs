//! Tests of the shell: events in, commands out.

use super::*;
use abi::event::{Caller, write};
use burnet_sdk::testing::Trial;

const ALL: &[u8] = br#"{"capabilities":{"host.read":true,"host.write":true}}"#;

fn started() -> Trial<Hosts> {
    let mut trial = Trial::<Hosts>::start(r#"{"punt": true}"#).unwrap();
    let rules = trial.switch_up(1, &[1, 2, 3]);
    assert_eq!(rules.len(), MATCHES.len());
    let arp =
        "add-rule of:0000000000000001 priority=40000 match=[eth_type=0x806] actions=[output:CONTROLLER]";
    assert_eq!(rules[0], arp);
    trial
}

fn ask(trial: &mut Trial<Hosts>, ticket: u64, grant: &[u8], form: Form, payload: &[u8]) -> Vec<String> {
    let caller = Caller { number: 3, name: "app", grant };
    let service = hosts_contract::SERVICE;
    let query = Query { ticket, caller, service, form, deadline_ms: 1_000, credit_bytes: 60 << 10, payload };
    trial.event(|out, sequence| write::query(out, sequence, &query))
}

/// An ARP request of 10.0.0.7.
const ARP: [u8; 42] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 7, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 7, 10,
    0, 0, 7, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
];

#[test]
fn wrong_settings_are_refused() {
    let refusal = Trial::<Hosts>::start(r#"{"expiry_s": 1}"#).err().unwrap();
    assert!(refusal.contains("expiry_s = 1"), "{refusal}");
}

#[test]
fn a_question_without_a_grant_is_refused_with_the_capability() {
    let mut trial = started();
    let mut check = |form, grant: &[u8], payload: &[u8], status: u16, part: &str| {
        let said = ask(&mut trial, 9, grant, form, payload).concat();
        assert!(said.contains(&format!("status: {status}")), "{said}");
        let bytes = format!("{:?}", part.as_bytes());
        assert!(said.contains(bytes.trim_matches(['[', ']'])), "{said}");
    };
    check(Form::Query, b"", br#"{"op":"list"}"#, status::NOT_GRANTED, "host.read: the app does not hold");
    check(Form::Stream, b"", b"", status::NOT_GRANTED, "host.read: the app does not hold");
    check(Form::Query, ALL, b"{", status::BAD_QUESTION, "the question is wrong");
    check(
        Form::Stream,
        ALL,
        br#"{"kinds":["link"]}"#,
        status::BAD_QUESTION,
        "kinds: the service hosts has no link",
    );
    check(
        Form::Query,
        ALL,
        br#"{"op":"get","id":"00:00:00:00:00:07"}"#,
        status::NOT_FOUND,
        "id: there is no such host",
    );
    let add = br#"{"op":"add","id":"00:00:00:00:00:07","at":"1/1"}"#;
    check(Form::Query, ALL, add, status::NOT_STORED, "the store does not answer");
}

#[test]
fn a_host_that_speaks_is_in_the_answer_with_its_stamp() {
    let mut trial = started();
    assert!(trial.packet_in(1, 2, &ARP).is_empty());
    let record = trial.app().record("00:00:00:00:00:07".parse().unwrap()).unwrap();
    assert_eq!(record.stamp.sequence, 1);
    let Object::Host(host) = record.object else { panic!() };
    assert_eq!((host.at.to_string().as_str(), host.addresses.len()), ("of:0000000000000001/2", 1));
    let page = trial.app().page(&Filter::default(), None, Some(0));
    assert_eq!((page.hosts.len(), page.next), (1, None));
    let said = trial.packet_in(1, 3, &ARP);
    assert_eq!(said, ["packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:2]"]);
}

#[test]
fn an_incident_is_a_sentence_with_both_places() {
    let incident = Incident {
        kind: hosts_contract::IncidentKind::AddressOfAnother,
        host: "00:00:00:00:00:08".parse().unwrap(),
        at: "1/2".parse().unwrap(),
        address: "10.0.0.7".parse().ok(),
        holder: "00:00:00:00:00:07".parse().ok(),
        stays_at: "1/1".parse().ok(),
        repeated: 3,
        time_ms: 0,
    };
    assert_eq!(
        in_words(&incident),
        "host 00:00:00:00:00:08 at of:0000000000000001/2 claims the address 10.0.0.7 of 00:00:00:00:00:07 at \
         of:0000000000000001/1, which still answers: it is not given away (3 more since the last report)"
    );
    let mut out = Commands::new();
    report(&incident, &mut out);
    assert_eq!(burnet_sdk::testing::in_words(out.frames()).len(), 2);
}
