//! The app `proxy-arp` with emulated switches: questions for known hosts are answered at their own port, in their VLAN, and reach nobody else.

use super::frames::*;
use super::stage::{BOTH, Stage, fields};
use flow::Field;
use std::net::Ipv6Addr;

const REST: &str = "[network]\nservices = ['discovery', 'hosts']\n[app.proxy-arp]";

fn address(host: u8) -> [u8; 4] {
    [10, 0, 0, host]
}

fn question(host: u8, tags: &[u16], target: [u8; 4]) -> Vec<u8> {
    ethernet(EVERYBODY, mac(host), tags, ARP, &arp(1, (mac(host), address(host)), ([0; 6], target)))
}

fn is_reply(frame: &[u8], of: u8) -> bool {
    let seen = fields(frame);
    let sender = u32::from_be_bytes(address(of));
    seen.get(Field::ArpOp) == Some(2) && seen.get(Field::ArpSpa) == Some(sender.into())
}

#[test]
fn a_question_for_a_known_host_is_answered_and_reaches_nobody() {
    for versions in BOTH {
        let stage = Stage::new(&[], REST, "linear,2,1", versions);
        stage.node.wait("h1 gets an answer in the name of h2", |_| {
            stage.send("h2", &question(2, &[], address(2)));
            stage.send("h1", &question(1, &[], address(2)));
            stage.has_come("h1", |frame| is_reply(frame, 2))
        });
        // No app forwards here: an answer can only be the app's.
        let heard = stage.all("h2");
        assert!(
            heard.iter().all(|frame| fields(frame).get(Field::ArpTpa) != Some(0x0a00_0002)),
            "{heard:02x?}"
        );
    }
}

#[test]
fn hosts_of_two_vlans_with_the_same_address_are_told_apart() {
    for versions in BOTH {
        let stage = Stage::new(&[], REST, "linear,2,1", versions);
        // Two hosts with one address: one in VLAN 7, the other without a tag, both behind h2's port.
        let claim = |host: u8, tags: &[u16]| {
            ethernet(EVERYBODY, mac(host), tags, ARP, &arp(1, (mac(host), address(9)), ([0; 6], address(9))))
        };
        let from = |host: u8| move |frame: &[u8]| is_reply(frame, 9) && frame[6..12] == mac(host);
        for (host, tags) in [(20_u8, &[][..]), (21, &[7])] {
            stage.node.wait("h1 gets an answer", |_| {
                stage.send("h2", &claim(host, tags));
                stage.send("h1", &question(1, tags, address(9)));
                stage.has_come("h1", from(host))
            });
        }
        stage.forget("h1");
        stage.send("h1", &question(1, &[7], address(9)));
        let (reply, _) = stage.hear("h1", "an answer", |frame| is_reply(frame, 9));
        assert_eq!((&reply[6..12], fields(&reply).get(Field::VlanVid)), (&mac(21)[..], Some(0x1007)));
    }
}

#[test]
fn a_neighbour_solicitation_is_answered_in_its_vlan() {
    for versions in BOTH {
        let stage = Stage::new(&[], REST, "linear,2,1", versions);
        let (one, two): (Ipv6Addr, Ipv6Addr) = ("fd00::71".parse().unwrap(), "fd00::72".parse().unwrap());
        let solicitation = |host: u8, from: Ipv6Addr, target: Ipv6Addr| {
            let body = [&[0; 4][..], &target.octets(), &[1, 1], &mac(host)].concat();
            let packet = ipv6(from, target, 255, 58, &icmp6(from, target, 135, &body));
            ethernet([0x33, 0x33, 0xff, 0, 0, 0x72], mac(host), &[7], IPV6, &packet)
        };
        stage.node.wait("h1 gets an answer in the name of the host in VLAN 7", |_| {
            stage.send("h2", &solicitation(22, two, one));
            stage.send("h1", &solicitation(21, one, two));
            stage.has_come("h1", |frame| {
                let seen = fields(frame);
                seen.get(Field::Icmpv6Type) == Some(136)
                    && seen.get(Field::VlanVid) == Some(0x1007)
                    && seen.get(Field::Ipv6NdTarget) == Some(two.to_bits())
            })
        });
    }
}
