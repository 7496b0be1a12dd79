//! The app `dhcp` with emulated switches: clients get addresses at their own port, whatever other hosts do.

use super::frames::*;
use super::stage::{App, BOTH, Stage, fields};
use flow::Field;

const SETTINGS: &str = "server = '10.0.0.1'\nleases_per_port = 4\n\
    [[app.dhcp.settings.pools]]\nnetwork = '10.0.0.0/24'\nfirst = '10.0.0.100'\nlast = '10.0.0.109'\n\
    [[app.dhcp.settings.pools]]\nvlan = 7\nnetwork = '10.7.0.0/24'\nfirst = '10.7.0.100'\nlast = '10.7.0.109'";

const DISCOVER: u8 = 1;
const REQUEST: u8 = 3;
const OFFER: u8 = 2;
const ACK: u8 = 5;

/// A message of a client, or of a server if it answers.
fn message(client: Mac, tags: &[u16], kind: u8, options: &[u8]) -> Vec<u8> {
    let mut bootp = vec![1, 1, 6, 0, 0, 0, 0, client[5]];
    bootp.resize(28, 0);
    bootp.extend(client);
    bootp.resize(236, 0);
    bootp.extend([99, 130, 83, 99, 53, 1, kind]);
    bootp.extend(options);
    bootp.push(255);
    let packet = ipv4([0; 4], [255; 4], 64, UDP, 0, &udp(68, 67, &bootp));
    ethernet(EVERYBODY, client, tags, IPV4, &packet)
}

/// The kind and the address of a message of a server to this client.
fn answer(frame: &[u8], client: Mac) -> Option<(u8, [u8; 4])> {
    let seen = fields(frame);
    let is_answer = seen.get(Field::UdpSrc) == Some(67) && seen.get(Field::UdpDst) == Some(68);
    let tags = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
    let bootp = frame.get(42 + tags..).filter(|bootp| is_answer && bootp.len() > 243)?;
    (bootp[28..34] == client).then(|| (bootp[242], bootp[16..20].try_into().unwrap()))
}

/// Lets a client ask for an address until it has it.
fn lease(stage: &Stage, host: &str, client: Mac, tags: &[u16]) -> [u8; 4] {
    stage.send(host, &message(client, tags, DISCOVER, &[]));
    let (offer, _) =
        stage.hear(host, "an offer", |frame| answer(frame, client).is_some_and(|(kind, _)| kind == OFFER));
    let (_, address) = answer(&offer, client).unwrap();
    assert_eq!(
        fields(&offer).get(Field::VlanVid),
        fields(&message(client, tags, 1, &[])).get(Field::VlanVid)
    );
    let options = [&[50, 4][..], &address, &[54, 4, 10, 0, 0, 1]].concat();
    stage.send(host, &message(client, tags, REQUEST, &options));
    stage.hear(host, "the lease", |frame| answer(frame, client) == Some((ACK, address)));
    address
}

/// The store is there, so a lease is given when it is on disk.
fn stage(apps: &[App<'_>], topology: &str, versions: emulator::Versions) -> Stage {
    let stage = Stage::new(apps, "", topology, versions);
    stage.node.wait("dhcp has its rules", |_| {
        stage.rules("dhcp").len().is_multiple_of(2) && !stage.rules("dhcp").is_empty()
    });
    // Until the leases of an earlier run are loaded, it answers nobody.
    stage.node.wait("the leases are loaded", |_| {
        stage.send("h1", &message(mac(1), &[], DISCOVER, &[]));
        stage.has_come("h1", |frame| answer(frame, mac(1)).is_some())
    });
    stage
}

#[test]
fn a_client_gets_an_address_at_its_own_port_and_keeps_it() {
    for versions in BOTH {
        let stage = stage(&[App("dhcp", SETTINGS)], "linear,2,1", versions);
        let first = lease(&stage, "h1", mac(1), &[]);
        let second = lease(&stage, "h2", mac(2), &[]);
        assert_eq!((first, second), ([10, 0, 0, 100], [10, 0, 0, 101]));
        assert_eq!(lease(&stage, "h1", mac(1), &[]), first, "it has it still");
        assert_eq!(lease(&stage, "h2", mac(2), &[7]), [10, 7, 0, 100], "in the other VLAN");
        // What h2 has heard so far was for h2: the answers to h1 went to h1 alone.
        stage.send("h1", &message(mac(1), &[], DISCOVER, &[]));
        stage.hear("h1", "an offer", |frame| answer(frame, mac(1)).is_some());
        stage.send("h2", &message(mac(2), &[], DISCOVER, &[]));
        let (_, before) = stage.hear("h2", "an offer", |frame| answer(frame, mac(2)).is_some());
        assert!(before.iter().all(|frame| answer(frame, mac(1)).is_none()));
    }
}

#[test]
fn the_server_answers_for_its_own_address_and_for_no_other() {
    for versions in BOTH {
        let stage = stage(&[App("dhcp", SETTINGS)], "single,2", versions);
        let question = |address| {
            ethernet(EVERYBODY, mac(1), &[], ARP, &arp(1, (mac(1), [10, 0, 0, 7]), ([0; 6], address)))
        };
        stage.send("h1", &question([10, 0, 0, 9]));
        stage.send("h1", &question([10, 0, 0, 1]));
        let is_answer = |frame: &[u8]| fields(frame).get(Field::ArpOp) == Some(2);
        let (reply, before) = stage.hear("h1", "an ARP reply", is_answer);
        assert_eq!(fields(&reply).get(Field::ArpSpa), Some(0x0a00_0001));
        assert!(!before.iter().any(|frame| is_answer(frame)));
    }
}

#[test]
fn a_storm_of_requests_at_one_port_leaves_addresses_for_others() {
    for versions in BOTH {
        let stage = stage(&[App("dhcp", SETTINGS)], "single,2", versions);
        for number in 0..500_u16 {
            let [high, low] = number.to_be_bytes();
            stage.send("h1", &message([2, 0, 0, 9, high, low], &[], DISCOVER, &[]));
        }
        assert_eq!(lease(&stage, "h2", mac(2), &[])[..3], [10, 0, 0]);
        stage.node.wait_for_line("has as many leases as one port can have");
        assert_eq!(
            stage.node.log().matches("as many leases as one port can have").count(),
            1,
            "told once a minute"
        );
    }
}

#[test]
fn damaged_and_doubly_tagged_requests_get_no_answer() {
    for versions in BOTH {
        let stage = stage(&[App("dhcp", SETTINGS)], "single,2", versions);
        let request = message(mac(2), &[], DISCOVER, &[]);
        for length in [15, 34, 42, 60, 281, 285] {
            stage.send("h2", &request[..length]);
        }
        stage.send("h2", &message(mac(2), &[7, 7], DISCOVER, &[]));
        // A fragment has no ports that could be trusted.
        let mut fragment = request.clone();
        fragment[20..22].copy_from_slice(&[0x20, 0]);
        stage.send("h2", &fragment);
        // A request in the name of another host, which would take that host's address away.
        stage.send("h2", &[&request[..6], &mac(9), &request[12..]].concat());
        stage.send("h2", &message(mac(3), &[], DISCOVER, &[]));
        let (_, before) = stage.hear("h2", "an offer", |frame| answer(frame, mac(3)).is_some());
        assert!(before.iter().all(|frame| answer(frame, mac(2)).is_none()), "{before:02x?}");
    }
}

#[test]
fn an_access_list_keeps_a_rogue_server_from_clients_and_not_the_app() {
    for versions in BOTH {
        let apps = [App("dhcp", SETTINGS), App("acl", "rules = ['deny udp,tp_src=67,tp_dst=68']")];
        let stage = Stage::new(&apps, "[app.hub]", "single,3", versions);
        stage.wait_for_rules("acl", 1);
        stage.reaches("h3", &broadcast(3, &[], 1), "h1");
        let rogue = ipv4([10, 0, 0, 66], [255; 4], 64, UDP, 0, &udp(67, 68, &[0x77; 300]));
        let rogue = ethernet(mac(1), mac(3), &[], IPV4, &rogue);
        stage.is_kept_from("h1", ("h3", &rogue), ("h3", &broadcast(3, &[], 2)));
        stage.node.wait("the leases are loaded", |_| {
            stage.send("h1", &message(mac(1), &[], DISCOVER, &[]));
            stage.has_come("h1", |frame| answer(frame, mac(1)).is_some())
        });
    }
}
