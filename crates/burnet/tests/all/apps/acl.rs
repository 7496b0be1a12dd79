//! The app `acl` with emulated switches: what it denies reaches nobody, and what it permits reaches the apps that forward.

use super::frames::*;
use super::stage::{App, BOTH, Stage};
use emulator::Versions;

fn datagrams(stage: &Stage, permitted: (u8, u8, u16), denied: (u8, u8, u16)) {
    let (from, to, port) = permitted;
    let host = |number: u8| format!("h{number}");
    stage.reaches(&host(from), &datagram(from, to, port, 1), &host(to));
    let (denied_from, denied_to, denied_port) = denied;
    assert_eq!(to, denied_to, "the marker goes where the denied packet would go");
    let denied = datagram(denied_from, to, denied_port, 2);
    stage.is_kept_from(&host(to), (&host(denied_from), &denied), (&host(from), &datagram(from, to, port, 3)));
}

#[test]
fn an_earlier_line_is_an_exception_of_a_later_one() {
    for versions in BOTH {
        let list = "rules = ['permit ip,nw_src=10.0.0.1', 'deny ip,nw_dst=10.0.0.3']";
        let stage = Stage::new(&[App("acl", list)], "[app.hub]", "single,3", versions);
        stage.wait_for_rules("acl", 32);
        datagrams(&stage, (1, 3, 80), (2, 3, 80));
    }
}

#[test]
fn tags_and_fragments_do_not_hide_a_packet() {
    for versions in BOTH {
        let stage =
            Stage::new(&[App("acl", "rules = ['deny udp,tp_dst=53']")], "[app.hub]", "single,2", versions);
        stage.wait_for_rules("acl", 1);
        let marker = broadcast(1, &[], 1);
        stage.reaches("h1", &marker, "h2");
        let question = udp(4_000, 53, &[0x77; 64]);
        let frame = |tags: &[u16], fragment: u16, payload: &[u8]| {
            let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64, UDP, fragment, payload);
            ethernet(mac(2), mac(1), tags, IPV4, &packet)
        };
        let denied =
            [frame(&[], 0, &question), frame(&[7], 0, &question), frame(&[], 0x2000, &question[..48])];
        for (number, frame) in (2..).zip(&denied) {
            stage.is_kept_from("h2", ("h1", frame), ("h1", &broadcast(1, &[], number)));
        }
        // A later fragment has no ports. Without the first one it is worth nothing, so it may pass.
        stage.reaches("h1", &frame(&[], 6, &question[48..]), "h2");
    }
}

#[test]
fn with_a_next_table_permitted_packets_reach_the_apps_that_forward_there() {
    let list = "rules = ['permit udp,tp_dst=80', 'deny udp', 'deny tcp']\nnext_table = 1";
    let rest = "[network]\nservices = ['discovery', 'flows', 'hosts']\n[app.forwarding.settings]\ntable = 1";
    let stage = Stage::new(&[App("acl", list)], rest, "linear,2,1", Versions::Only13);
    stage.wait_for_rules("acl", 8);
    // Services receive frames that no rule of the next table matches.
    let announcement = |host: u8| {
        let address = [10, 0, 0, host];
        ethernet(EVERYBODY, mac(host), &[], ARP, &arp(1, (mac(host), address), ([0; 6], address)))
    };
    stage.reaches("h1", &announcement(1), "h2");
    stage.reaches("h2", &announcement(2), "h1");
    datagrams(&stage, (1, 2, 80), (1, 2, 81));
    stage.node.wait("the packets have rules of their own in the next table", |_| {
        stage.send("h1", &datagram(1, 2, 80, 4));
        stage.rules("forwarding").iter().filter(|rule| rule.table == 1).count() >= 2
    });
    stage.reaches("h1", &datagram(1, 2, 80, 5), "h2");
    assert!(!stage.node.log().contains("does not follow the access list"), "{}", stage.node.log());
}

#[test]
fn a_switch_with_one_table_follows_the_list_as_far_as_it_can_and_says_where_not() {
    let possible = "rules = ['permit udp,nw_src=10.0.0.1', 'deny udp,nw_dst=10.0.0.3']\nnext_table = 1";
    let stage = Stage::new(&[App("acl", possible)], "[app.hub]", "single,3", Versions::Only10);
    stage.wait_for_rules("acl", 32);
    datagrams(&stage, (1, 3, 80), (2, 3, 80));
    let impossible = "rules = ['permit tcp', 'deny ip']\nnext_table = 1";
    let stage = Stage::new(&[App("acl", impossible)], "", "single,2", Versions::Only10);
    stage.node.wait_for_line("of:0000000000000001 does not follow the access list: it has one table");
}

#[test]
fn a_list_that_would_cut_an_earlier_app_off_is_refused_there_and_the_operator_is_told() {
    for versions in BOTH {
        let pools = "server = '10.0.0.1'\n[[app.dhcp.settings.pools]]\nnetwork = '10.0.0.0/24'\nfirst = '10.0.0.100'\n\
            last = '10.0.0.109'";
        let apps = [App("dhcp", pools), App("acl", "rules = ['deny udp']")];
        let stage = Stage::new(&apps, "[apps]\norder = ['dhcp', 'acl']", "single,2", versions);
        // Whichever app was first: the line is refused, or it is deleted again.
        stage.node.wait("the operator is told", |node| {
            let log = node.log();
            log.contains("of:0000000000000001 does not follow the access list: rule.write: priority")
                || log.contains("shadows a rule of dhcp, which is earlier in [apps] order: deleted")
        });
        stage.wait_for_rules("dhcp", 2);
        stage.wait_for_rules("acl", 0);
    }
}
