//! The app under test: frames and answers of the store in, frames out.

use super::*;
use abi::event::write;
use burnet_sdk::testing::Trial;

const SETTINGS: &str = r#"{"server": "10.0.0.1", "leases_per_port": 3,
    "pools": [{"network": "10.0.0.0/24", "first": "10.0.0.100", "last": "10.0.0.103"}],
    "leases": [{"mac": "00:00:00:00:00:09", "address": "10.0.0.50"}]}"#;

fn client(number: u8, ciaddr: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut frame = message::tests::request("00000000", "");
    frame[11] = number;
    frame[42 + 33] = number;
    frame[42 + 12..42 + 16].copy_from_slice(&ciaddr);
    frame.extend(options);
    let length = (frame.len() - 34) as u16;
    frame[38..40].copy_from_slice(&length.to_be_bytes());
    frame[16..18].copy_from_slice(&(length + 20).to_be_bytes());
    frame
}

/// The app after the store has answered that it keeps nothing.
fn started() -> Trial<Dhcp> {
    let mut trial = Trial::<Dhcp>::start(SETTINGS).unwrap();
    let rules = trial.switch_up(1, &[1, 2]);
    assert!(
        rules[0].contains("priority=41000 match=[eth_type=0x800,ip_proto=0x11,udp_src=0x44,udp_dst=0x43]"),
        "{rules:?}"
    );
    assert!(trial.packet_in(1, 1, &client(1, [0; 4], &[53, 1, 1])).is_empty(), "the leases are not loaded");
    answer(&mut trial, 0);
    trial
}

/// The store answers the last call with a status.
fn answer(trial: &mut Trial<Dhcp>, status: u16) -> Vec<String> {
    // Rules and packets have tickets too, so all that could be meant are answered.
    let mut said = Vec::new();
    for ticket in 1..60_u64 {
        let ticket = abi::service::at_home(abi::service::home_for("store"), ticket);
        let reply = QueryReply { ticket, status, more: false, payload: b"" };
        said.extend(trial.event(|out, sequence| write::query_reply(out, sequence, &reply)));
    }
    said
}

const SENT: &str = "packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:1]";

fn select(number: u8, last: u8) -> Vec<u8> {
    client(number, [0; 4], &[53, 1, 3, 50, 4, 10, 0, 0, last, 54, 4, 10, 0, 0, 1])
}

#[test]
fn wrong_settings_are_refused() {
    assert!(Trial::<Dhcp>::start("{}").err().unwrap().contains("missing field `server`"));
}

#[test]
fn a_client_learns_of_its_lease_when_it_is_in_the_store() {
    let mut trial = started();
    assert_eq!(trial.packet_in(1, 1, &client(1, [0; 4], &[53, 1, 1])), [SENT]);
    let stored = trial.packet_in(1, 1, &select(1, 100));
    assert!(stored.len() == 1 && stored[0].starts_with("ask store: Put \"dhcp/10.0.0.100\""), "{stored:?}");
    assert_eq!(answer(&mut trial, 0), [SENT]);
    assert_eq!(trial.app().pools[&None].running(unix_ms()), 1);
}

#[test]
fn a_lease_that_cannot_be_kept_is_not_given() {
    let mut trial = started();
    trial.packet_in(1, 1, &select(1, 100));
    let said = answer(&mut trial, burnet_sdk::store::status::STORE_FULL);
    assert_eq!(
        said,
        ["log 00:00:00:00:00:01 gets no address, since its lease cannot be kept: the store is full"]
    );
    assert_eq!(trial.app().pools[&None].running(unix_ms()), 0);
}

#[test]
fn an_address_of_another_or_of_another_network_is_refused_at_once() {
    let mut trial = started();
    trial.packet_in(1, 1, &select(1, 100));
    answer(&mut trial, 0);
    assert_eq!(trial.packet_in(1, 1, &select(2, 100)), [SENT], "a NAK");
    assert_eq!(trial.packet_in(1, 1, &client(2, [192, 168, 0, 7], &[53, 1, 3])), [SENT]);
    let elsewhere = client(2, [0; 4], &[53, 1, 3, 50, 4, 10, 0, 0, 101, 54, 4, 10, 0, 0, 2]);
    assert!(trial.packet_in(1, 1, &elsewhere).is_empty(), "it has chosen another server");
}

#[test]
fn exhaustion_is_told_once_a_minute() {
    let mut trial = started();
    for number in 1..=2 {
        trial.packet_in(1, 1, &client(number, [0; 4], &[53, 1, 1]));
        trial.packet_in(1, 2, &client(number + 2, [0; 4], &[53, 1, 1]));
    }
    let said = trial.packet_in(1, 1, &client(5, [0; 4], &[53, 1, 1]));
    assert_eq!(said, ["log the pool of 10.0.0.0 is exhausted: 00:00:00:00:00:05 gets no address"]);
    assert!(trial.packet_in(1, 1, &client(6, [0; 4], &[53, 1, 1])).is_empty());
    assert_eq!(trial.packet_in(1, 1, &client(9, [0; 4], &[53, 1, 1])), [SENT], "it has a static lease");
}

#[test]
fn one_port_cannot_exhaust_the_pool() {
    let mut trial = started();
    (1..=3).for_each(|number| drop(trial.packet_in(1, 1, &client(number, [0; 4], &[53, 1, 1]))));
    let said = trial.packet_in(1, 1, &client(4, [0; 4], &[53, 1, 1]));
    assert_eq!(
        said,
        [
            "log of:0000000000000001/1 has as many leases as one port can have: 00:00:00:00:00:04 gets no address"
        ]
    );
    assert_eq!(trial.packet_in(1, 2, &client(4, [0; 4], &[53, 1, 1])).len(), 1);
}

#[test]
fn what_a_client_gives_back_or_declines_is_forgotten_in_the_store() {
    let mut trial = started();
    trial.packet_in(1, 1, &select(1, 100));
    answer(&mut trial, 0);
    let stranger = client(2, [10, 0, 0, 100], &[53, 1, 7]);
    assert!(trial.packet_in(1, 1, &stranger).is_empty(), "only its own address");
    let release = trial.packet_in(1, 1, &client(1, [10, 0, 0, 100], &[53, 1, 7]));
    assert!(release[0].starts_with("ask store: Delete \"dhcp/10.0.0.100\""), "{release:?}");
    trial.packet_in(1, 1, &select(1, 101));
    let declined = trial.packet_in(1, 1, &client(1, [0; 4], &[53, 1, 4, 50, 4, 10, 0, 0, 101]));
    assert!(declined[1].contains("another host has this address"), "{declined:?}");
}

#[test]
fn an_inform_gets_the_settings_of_the_network() {
    assert_eq!(started().packet_in(1, 1, &client(1, [10, 0, 0, 7], &[53, 1, 8])), [SENT]);
}
