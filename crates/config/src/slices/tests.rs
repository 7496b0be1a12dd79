//! What `[slice.NAME]` may say, and what is refused with which sentence.

use super::*;
use crate::ConfigFile;
use flow::relation::covers;
use flow::text::parse_match;
use flow::{DatapathId, Field, Match, PortNo};
use hose::Checks;
use slicer::{End, Isolation, Limit, Limits, LinkPlan, PortPlan, SwitchPlan};
use std::path::Path;

fn parse(text: &str) -> Result<Vec<Slice>, String> {
    ConfigFile::parse(text, Path::new("slices.toml"))
        .map(|file| file.slices)
        .map_err(|error| error.to_string())
}

/// The first two lines are those of a sound slice; the others follow.
fn with(lines: &str) -> String {
    format!("[slice.red]\ncontrollers = ['127.0.0.1:6701']\n{lines}")
}

fn refused(text: &str, expected: &str) {
    let why = parse(text).unwrap_err();
    assert_eq!(why, format!("slices.toml, {expected}"), "{text}");
}

const WHOLE: &str = "
[slice.blue]
controllers = ['127.0.0.1:6702', '[::1]:6653', 'tenant.example:6653']
isolation = 'vlan'
tag = 102
labels = 'paper'
step = '10%'
fail = 'standalone'
admission = 'edge'
switches = ['s5 as of:105', 's6', 's3']
ports = ['s3:9 as 12']
own_ports = ['s5:3 as 1']
links = ['s5:7-s3:1', 's6:7 - s3:2']
vnics = { E = { port = 's6:1', rate = '10M' }, C = { port = 's5:2 as 5', rate = '2M' } }
groups = [1, 100]
meters = [7, 7]

[slice.blue.tls]
certificate = 'blue.pem'
private_key = 'blue.key'
ca_certificate = '/tenants.pem'

[slice.blue.limits]
packet_ins_per_s = { soft = 80, hard = 100 }
packet_outs_per_s = 10
flow_mods_per_s = 20
statistics_per_s = 30
rules = 1000
";

#[test]
fn every_key_arrives() {
    let slice =
        parse(&format!("{WHOLE}[slice.other]\ncontrollers = ['a:1']\nisolation = 'vlan'")).unwrap().remove(0);
    assert_eq!((slice.name.as_str(), slice.line.0), ("blue", 2));
    let controllers: Vec<String> = slice.controllers.iter().map(ToString::to_string).collect();
    assert_eq!(controllers, ["127.0.0.1:6702", "[::1]:6653", "tenant.example:6653"]);
    assert_eq!(slice.controllers[1].address(), "[::1]:6653".parse().ok());
    assert_eq!(
        (slice.labels, slice.fail, slice.admission),
        (LabelForm::Paper, FailMode::Standalone, Checks::Edge)
    );
    assert_eq!(slice.step, "10%".parse().ok());
    let vnics: Vec<_> =
        slice.vnics.iter().map(|it| format!("{} {} {:#}", it.name, port_name(it.at), it.rate)).collect();
    assert_eq!(vnics, ["E s6:1 10M", "C s5:2 2M"]);
    let lines: Vec<_> = slice.vnics.iter().map(|it| it.line.0).collect();
    assert_eq!(lines, [14, 14]);
    let limit = |soft, hard| Limit { soft, hard };
    let limits = Limits {
        packet_ins_per_s: limit(80, 100),
        packet_outs_per_s: limit(8, 10),
        flow_mods_per_s: limit(16, 20),
        statistics_per_s: limit(24, 30),
        rules: limit(800, 1000),
    };
    assert_eq!(slice.limits, limits);
}

#[test]
fn a_plan_has_all_ports_of_lists_links_and_vnics() {
    let plan = parse(WHOLE).unwrap().remove(0).plan().unwrap();
    assert_eq!((plan.isolation, plan.is_read_only), (Isolation::Vlan(102), false));
    assert_eq!((plan.numbers.groups, plan.numbers.meters), (1..101, 7..8));
    let port = |port, shown_as, is_edge| PortPlan { port: PortNo(port), shown_as: PortNo(shown_as), is_edge };
    let switch = |id, shown_as, ports: &[PortPlan]| SwitchPlan {
        datapath: DatapathId(id),
        shown_as: DatapathId(shown_as),
        ports: ports.to_vec(),
    };
    let expected = [
        switch(3, 3, &[port(1, 1, false), port(2, 2, false), port(9, 12, false)]),
        switch(5, 0x105, &[port(2, 5, true), port(3, 1, true), port(7, 7, false)]),
        switch(6, 6, &[port(1, 1, true), port(7, 7, false)]),
    ];
    assert_eq!(plan.switches, expected);
    let end = |id, port| End { datapath: DatapathId(id), port: PortNo(port) };
    assert_eq!(plan.links[0], LinkPlan { from: end(5, 7), to: end(3, 1) });
}

#[test]
fn what_is_not_written_is_the_default() {
    let slice = parse(&with("isolation = 'flowspace'\nmatches = ['ip', '']")).unwrap().remove(0);
    assert_eq!(
        (slice.labels, slice.fail, slice.admission),
        (LabelForm::None, FailMode::Secure, Checks::Fabric)
    );
    assert_eq!((slice.step, slice.tls.is_none(), slice.is_read_only), (None, true, false));
    assert_eq!((slice.limits, slice.numbers.clone()), (Limits::default(), slicer::Numbers::NONE));
    assert_eq!((slice.links.clone(), slice.switches.clone(), slice.ports.len()), (None, None, 0));
    let SliceIsolation::Flowspace(packets) = &slice.isolation else { panic!("another isolation") };
    assert_eq!(packets[1].matching, Match::any());
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_its_neighbour() {
    refused(&with("isolatio = 'vlan'"), "line 3: unknown key `isolatio`: did you mean `isolation`?");
    refused(
        &with("isolation = 'vlan'\n[slice.red.limits]\nrule = 3"),
        "line 5: unknown key `rule`: did you mean `rules`?",
    );
    refused(
        &with("vnics = { A = { port = 's1:1', speed = '1M' } }"),
        "line 3: unknown key `speed`: the keys here are port, rate, number, mac, agent, strict, meter",
    );
    refused(
        &with("isolation = 'tags'"),
        "line 3: slice red: isolation: `tags` is no value of this key: write \"vlan\", \"flowspace\" or \"address\"",
    );
    refused(
        &with("labels = 'all'"),
        "line 3: slice red: labels: `all` is no value of this key: write \"none\", \"paper\", \"experimenter\" or \"speed\"",
    );
    refused(
        &with("fail = 'open'"),
        "line 3: slice red: fail: `open` is no value of this key: write \"secure\" or \"standalone\"",
    );
    refused(
        &with("admission = 'all'"),
        "line 3: slice red: admission: `all` is no value of this key: write \"links\" or \"edge\"",
    );
    refused(
        &with("isolation = 'vlan'\n[slice.red.limits]\nrules = { soft = 3, hard = 2 }"),
        "line 5: slice red: limits.rules: the soft limit 3 is above the hard limit 2: the warning would come too late: write a number from 1, or { soft = NUMBER, hard = NUMBER }",
    );
}

#[test]
fn a_wrong_controller_or_tls_is_named_with_its_line() {
    let host = "write HOST:PORT or [IPV6-ADDRESS]:PORT, as in 127.0.0.1:6653";
    for wrong in ["6701", ":6701", "h:0", "h:65536", "h:+1", "::1:6653", "[h]:1", "a b:1"] {
        let text = format!("[slice.red]\nisolation = 'vlan'\ncontrollers = [\n  'h:1',\n  '{wrong}'\n]");
        refused(&text, &format!("line 5: slice red: controllers: `{wrong}` is no controller: {host}"));
    }
    refused(
        "\n[slice.red]\nisolation = 'vlan'",
        "line 2: slice red: it has no controllers: write controllers = [\"HOST:PORT\"]",
    );
    refused(
        "[slice.red]\nisolation = 'vlan'\ncontrollers = ['h:1', 'h:1']",
        "line 3: slice red: controller h:1 is there twice",
    );
    let nine: Vec<String> = (1..=9).map(|port| format!("'h:{port}'")).collect();
    refused(
        &format!("[slice.red]\nisolation = 'vlan'\ncontrollers = [{}]", nine.join(", ")),
        "line 3: slice red: 9 controllers are more than 8",
    );
    refused(
        &with("isolation = 'vlan'\ntls = { certificate = 'c.pem' }"),
        "line 4: slice red: TLS is mutual: write certificate, private_key and ca_certificate in tls, or leave tls out",
    );
}

#[test]
fn a_wrong_isolation_is_named_with_its_line() {
    refused(
        &with(""),
        "line 1: slice red: it has no isolation: write isolation = \"vlan\", \"flowspace\" or \"address\"",
    );
    refused(
        &with("isolation = 'vlan'\nmatches = ['ip']"),
        "line 4: slice red: matches is a key of isolation = \"flowspace\": leave it out",
    );
    for tag in [0, -1, 4_095, 70_000] {
        refused(
            &with(&format!("isolation = 'vlan'\ntag = {tag}")),
            &format!("line 4: slice red: tag: {tag} is no tag of a slice: write 1 to 4094"),
        );
    }
    refused(
        &with("isolation = 'flowspace'"),
        "line 1: slice red: it has no flowspace: write matches = [\"ip,nw_dst=10.1.0.0/16\"], or [\"\"] for all packets",
    );
    refused(
        &with("isolation = 'flowspace'\nmatches = []"),
        "line 4: slice red: 0 matches are not possible: write 1 to 64",
    );
    let why = parse(&with("isolation = 'flowspace'\nmatches = [\n'ip',\n'ip,nw_dts=1'\n]")).unwrap_err();
    assert!(
        why.starts_with("slices.toml, line 6: slice red: matches: `ip,nw_dts=1` is not a match: "),
        "{why}"
    );
    refused(
        &with("isolation = 'flowspace'\nmatches = ['metadata=3']"),
        "line 1: slice red: `metadata=0x3` has a field that no packet carries between switches",
    );
}

/// A slice with addresses: these lines, and a host.
fn with_addresses(lines: &str) -> String {
    with(&format!(
        "isolation = 'address'\nprefix = '10.7.0.0/24'\naddresses = '10.0.0.0/24'\nports = ['s1:3']\n{lines}"
    ))
}

#[test]
fn a_slice_with_addresses_has_hosts_at_own_ports() {
    let hosts = "hosts = { '10.0.0.1' = 's1:1', '10.0.0.2' = 's2:1' }";
    let slice = parse(&with_addresses(hosts)).unwrap().remove(0);
    let own: Vec<String> =
        slice.ports.iter().filter(|port| port.is_own).map(|port| super::port_name(port.at)).collect();
    assert_eq!(own, ["s1:1", "s2:1"]);
    let slicer::Isolation::Address(plan) = slice.plan().unwrap().isolation else { panic!("{slice:?}") };
    let shown = |host: &slicer::HostPlan| (host.address.to_string(), host.datapath.0, host.port.0);
    let hosts: Vec<_> = plan.hosts.iter().map(shown).collect();
    assert_eq!(hosts, [("10.0.0.1".to_owned(), 1, 1), ("10.0.0.2".to_owned(), 2, 1)]);
    assert_eq!(
        (plan.tenant.to_string(), plan.physical.to_string(), plan.length),
        ("10.0.0.0".to_owned(), "10.7.0.0".to_owned(), 24)
    );
    // An observer sees what is between switches, and has no hosts.
    let observer = parse(&with_addresses("read_only = true")).unwrap().remove(0);
    assert!(observer.plan().is_ok());
}

#[test]
fn wrong_addresses_are_named_with_their_line() {
    let no_addresses = "line 1: slice red: it has no addresses: write prefix = \"10.7.0.0/24\" for those between switches, and addresses = \"10.0.0.0/24\" for the tenant's";
    refused(&with("isolation = 'address'"), no_addresses);
    refused(&with("isolation = 'address'\nprefix = '10.7.0.0/24'"), no_addresses);
    let wrong_prefix = |wrong: &str, expected: &str| {
        refused(
            &with(&format!("isolation = 'address'\nprefix = '{wrong}'\naddresses = '10.0.0.0/24'")),
            expected,
        );
    };
    for wrong in ["10.7.0.0", "10.7.0.0/0", "10.7.0.0/33", "10.7/16"] {
        wrong_prefix(
            wrong,
            &format!("line 4: slice red: prefix: `{wrong}` is no IPv4 prefix: write 10.7.0.0/16"),
        );
    }
    wrong_prefix(
        "10.7.0.1/24",
        "line 4: slice red: prefix: `10.7.0.1/24` has bits set beyond its length: write 10.7.0.0/24",
    );
    wrong_prefix(
        "10.7.0.0/16",
        "line 5: slice red: 10.0.0.0/24 and 10.7.0.0/16 differ in length: write both with the same one",
    );
    let hosts = |hosts: &str, expected: &str| refused(&with_addresses(hosts), expected);
    hosts("", "line 1: slice red: it has no hosts: write hosts = { \"10.0.0.1\" = \"s1:1\" }");
    hosts("hosts = { me = 's1:1' }", "line 7: slice red: hosts: `me` is no IPv4 address: write 10.0.0.1");
    hosts("hosts = { '10.7.0.1' = 's1:1' }", "line 7: slice red: host 10.7.0.1 is outside 10.0.0.0/24");
    hosts(
        "hosts = { '10.0.0.1' = 's1:3' }",
        "line 7: slice red: port s1:3 of a VNIC or a host is also the end of a link or in ports: the tag or the addresses change at one of them only",
    );
    hosts(
        "read_only = true\nhosts = { '10.0.0.1' = 's1:1' }",
        "line 8: slice red: read_only = true, and hosts are for slices that send: leave them out",
    );
    refused(
        &with("isolation = 'vlan'\nhosts = { '10.0.0.1' = 's1:1' }"),
        "line 4: slice red: hosts is a key of isolation = \"address\": leave it out",
    );
}

#[test]
fn two_slices_with_addresses_may_share_links_if_their_prefixes_differ() {
    let slice = |name: &str, prefix: &str, host: u32| {
        format!(
            "[slice.{name}]\ncontrollers = ['h:1']\nisolation = 'address'\nprefix = '{prefix}'\naddresses = '10.0.0.0/24'\n\
             ports = ['s1:3']\nhosts = {{ '10.0.0.1' = 's1:{host}' }}\n"
        )
    };
    let both = |prefix: &str| parse(&(slice("red", "10.7.0.0/24", 1) + &slice("blue", prefix, 2)));
    assert_eq!(both("10.7.1.0/24").unwrap().len(), 2);
    refused(
        &(slice("red", "10.7.0.0/24", 1) + &slice("blue", "10.7.0.0/24", 2)),
        "line 8: slice blue: it owns the packet `ip,in_port=3,vlan_tci=0x0000/0x1fff,nw_src=10.7.0.0,nw_dst=10.7.0.0` at s1, and so does slice red (line 1): narrow one of them, or write read_only = true",
    );
    // Packets with a tag are none of a slice with addresses.
    let tagged = "[slice.green]\ncontrollers = ['h:1']\nisolation = 'vlan'\ntag = 7\nports = ['s1:3']\n";
    assert_eq!(parse(&(slice("red", "10.7.0.0/24", 1) + tagged)).unwrap().len(), 2);
    let space = "[slice.space]\ncontrollers = ['h:1']\nisolation = 'flowspace'\nmatches = ['ip,nw_dst=10.7.0.9']\nports = ['s1:3']\n";
    assert!(parse(&(slice("red", "10.7.0.0/24", 1) + space)).unwrap_err().contains("nw_dst=10.7.0.9"));
}

#[test]
fn a_wrong_switch_port_or_link_is_named_with_its_line() {
    let vlan = |lines: &str| with(&format!("isolation = 'vlan'\n{lines}"));
    refused(
        &vlan("switches = ['s1', 'x']"),
        "line 4: slice red: switches: `x` is no switch: write s6 for datapath id 6, or of:0000000000000006",
    );
    refused(
        &vlan("switches = ['s1', 's2 as s1']"),
        "line 4: slice red: switch s2 or the id that it is shown with is there twice",
    );
    refused(
        &vlan("ports = ['s1']"),
        "line 4: slice red: ports: `s1` is no port of a switch: write s6:1 or of:0000000000000006/1",
    );
    refused(
        &vlan("ports = ['s1:1 as x']"),
        "line 4: slice red: ports: `x` is no number of a port: write s6:1 as 7",
    );
    refused(
        &vlan("ports = ['s1:1']\nown_ports = ['s1:1']"),
        "line 5: slice red: port s1:1 is there twice in ports and own_ports",
    );
    refused(
        &vlan("ports = ['s1:1 as 2', 's1:2']"),
        "line 1: slice red: switch of:0000000000000001: port 2 or its number 2 is there twice",
    );
    refused(
        &vlan("ports = ['s1:65280']"),
        "line 1: slice red: switch of:0000000000000001: port 65280 is shown as 65280: write 1 to 65279",
    );
    refused(
        &vlan("links = [\n's1:1-s2:1',\n's3:1-s2:1']"),
        "line 6: slice red: port s2:1 is the end of two links",
    );
    refused(
        &vlan("own_ports = ['s1:1']\nlinks = ['s1:1-s2:1']"),
        "line 5: slice red: port s1:1 is in own_ports and the end of a link: move it to ports",
    );
    refused(
        &vlan("switches = ['s1']\nlinks = ['s1:1-s2:1']"),
        "line 5: slice red: switch s2 of port s2:1 is not in switches: add \"s2\", or leave switches out",
    );
    for (key, written) in
        [("groups", "[0, 5]"), ("meters", "[5, 4]"), ("groups", "[1, 4097]"), ("meters", "[1, 4294967295]")]
    {
        refused(
            &vlan(&format!("{key} = {written}")),
            &format!(
                "line 4: slice red: {key} = {written} is no range: write [FIRST, LAST] from 1, at most 4096 numbers"
            ),
        );
    }
    let name = "a".repeat(27);
    refused(
        &format!("[slice.{name}]"),
        &format!(
            "line 1: slice {name}: `{name}` cannot be a name: write 1 to 26 letters, digits, '-', '_' or '.'"
        ),
    );
}

#[test]
fn a_wrong_vnic_is_named_with_its_line() {
    let vlan = |lines: &str| with(&format!("isolation = 'vlan'\n{lines}"));
    refused(
        &vlan("[slice.red.vnics]\nA = { port = 's1:1', rate = '10' }"),
        "line 5: slice red: vnics: VNIC A: rate: `10`: the unit is missing: write k, M, G or T behind the number, as in 10M or 2.5G",
    );
    refused(
        &vlan("vnics = { A = { port = 's1:1 as x', rate = '1M' } }"),
        "line 4: slice red: vnics: VNIC A: port: `x` is no number of a port: write s6:1 as 7",
    );
    refused(
        &vlan("vnics = { A = { port = 's1', rate = '1M' } }"),
        "line 4: slice red: vnics: VNIC A: port: `s1` is no port of a switch: write s6:1 or of:0000000000000006/1",
    );
    refused(
        &vlan("links = ['s1:1-s2:1']\nvnics = { A = { port = 's1:1', rate = '1M' } }"),
        "line 5: slice red: port s1:1 of a VNIC or a host is also the end of a link or in ports: the tag or the addresses change at one of them only",
    );
    refused(
        &vlan("own_ports = ['s1:1 as 2']\nvnics = { A = { port = 's1:1 as 3', rate = '1M' } }"),
        "line 5: slice red: port s1:1 is shown with two numbers, 2 and 3",
    );
    // Behind one port may be several.
    let two = "own_ports = ['s1:1 as 2']\nvnics = { A = { port = 's1:1', rate = '1M' }, B = { port = 's1:1', rate = '2M' } }";
    let slice = parse(&vlan(two)).unwrap().remove(0);
    assert_eq!((slice.vnics.len(), slice.ports.len(), slice.ports[0].shown_as), (2, 1, PortNo(2)));
    // In a flowspace, addresses tell VNICs of several slices apart.
    let shared = "isolation = 'flowspace'\nmatches = ['ip']\nvnics = { A = { port = 's1:1', rate = '1M' } }";
    assert!(!parse(&with(shared)).unwrap()[0].ports[0].is_own);
}

fn two(red: &str, blue: &str) -> String {
    format!("[slice.red]\ncontrollers = ['h:1']\n{red}\n[slice.blue]\ncontrollers = ['h:2']\n{blue}")
}

#[test]
fn overlapping_slices_are_refused_with_a_packet_and_both_lines() {
    let space =
        |matches: &str| format!("isolation = 'flowspace'\nmatches = [{matches}]\nports = ['s1:1', 's1:2']");
    refused(
        &two(&space("'arp', 'ip,nw_dst=10.0.0.0/8'"), &space("\n'ip,nw_src=10.1.0.0/16'")),
        "line 10: slice blue: it owns the packet `ip,in_port=1,nw_src=10.1.0.0,nw_dst=10.0.0.0` at s1, and so does slice red (line 4): \
         narrow one of them, or write read_only = true",
    );
    refused(
        &two(&space("'in_port=2,dl_vlan=7'"), "isolation = 'vlan'\ntag = 7\nlinks = ['s1:2-s2:1']"),
        "line 6: slice blue: it owns the packet `in_port=2,dl_vlan=7` at s1, and so does slice red (line 4): \
         narrow one of them, or write read_only = true",
    );
    // Other ports, other packets, or an observer.
    assert!(parse(&two(&space("'in_port=1'"), &space("'in_port=2'"))).is_ok());
    assert!(
        parse(&two(&space("'in_port=1,dl_vlan=7'"), "isolation = 'vlan'\ntag = 7\nlinks = ['s1:2-s2:1']"))
            .is_ok()
    );
    assert!(parse(&two(&space("'ip'"), &format!("{}\nread_only = true", space("''")))).is_ok());
    let vnics = "vnics = { A = { port = 's1:1', rate = '1M' }, B = { port = 's2:1', rate = '1M' } }";
    let chosen = |matches: &str| format!("isolation = 'flowspace'\nmatches = ['{matches}']\n{vnics}");
    refused(
        &two(&chosen("ip"), &chosen("tcp")),
        "line 9: slice blue: it owns the packet `tcp` on links that both may get, and so does slice red (line 4): narrow one of them, \
         or write read_only = true",
    );
}

#[test]
fn a_name_a_tag_a_port_or_a_number_in_use_is_named() {
    let vlan = |more: &str| format!("isolation = 'vlan'\n{more}");
    refused(
        &two(&vlan(""), &vlan("")).replace("slice.blue", "slice.Red"),
        "line 5: slice Red: only capital letters tell its name from that of slice red (line 1): write another name",
    );
    refused(
        &two(&vlan("tag = 7"), &vlan("tag = 7")),
        "line 5: slice blue: tag 7 is in use by slice red (line 1): write another",
    );
    assert!(parse(&two(&vlan("tag = 7"), &vlan("tag = 7\nread_only = true"))).is_ok());
    refused(
        &two(
            &vlan("tag = 7\nown_ports = ['s1:1']"),
            &vlan("tag = 8\n[slice.blue.vnics]\nA = { port = 's1:1', rate = '1M' }"),
        ),
        "line 11: slice blue: port s1:1 is also slice red's (line 5), and is blue's own: both would own the packet \
         `in_port=1,vlan_tci=0x0000/0x1fff` at s1; give one of them another port",
    );
    refused(
        &two(&vlan("tag = 7\nlinks = ['s1:1-s2:1']"), &vlan("tag = 8\nown_ports = ['s1:1']")),
        "line 10: slice blue: port s1:1 is also slice red's (line 5), and is blue's own: both would own the packet \
         `in_port=1,vlan_tci=0x0000/0x1fff` at s1; give one of them another port",
    );
    refused(
        &two(&vlan("groups = [1, 9]"), &vlan("groups = [9, 12]")),
        "line 5: slice blue: group 9 is also slice red's (line 1): write other numbers",
    );
    refused(
        &two(&vlan("meters = [5, 9]"), &vlan("meters = [1, 12]")),
        "line 5: slice blue: meter 5 is also slice red's (line 1): write other numbers",
    );
}

#[test]
fn an_observer_has_nothing_of_its_own() {
    refused(
        &with("isolation = 'vlan'\nread_only = true"),
        "line 1: slice red: read_only = true: write the tag of the slice that it observes",
    );
    refused(
        &with("isolation = 'vlan'\ntag = 1\nread_only = true\nown_ports = ['s1:1']"),
        "line 6: slice red: read_only = true, and own_ports are for slices that send: move them to ports",
    );
}

#[test]
fn a_slice_without_a_tag_keeps_its_tag_when_others_come_and_go() {
    let tag = |text: &str, name: &str| {
        let slices = parse(text).unwrap();
        match slices.iter().find(|slice| slice.name == name).unwrap().isolation {
            SliceIsolation::Vlan(tag) => tag,
            _ => panic!("another isolation"),
        }
    };
    let section = |name: &str| format!("[slice.{name}]\ncontrollers = ['h:1']\nisolation = 'vlan'\n");
    let alone = tag(&section("blue"), "blue");
    assert_eq!(tag(&format!("{}{}", section("red"), section("blue")), "blue"), alone);
    // Unless an operator has given it to another.
    let taken = format!("{}{}tag = {alone}", section("blue"), section("red"));
    assert_eq!(tag(&taken, "blue"), alone % 4_094 + 1);
    let many: String = (0..1_000).map(|number| section(&format!("t{number}"))).collect();
    let mut tags: Vec<u16> = parse(&many).unwrap().iter().map(tag_of).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 1_000);
    let why = parse(&format!("{many}{}", section("one-more"))).unwrap_err();
    assert!(why.ends_with("line 3001: 1001 slices are more than 1000: leave some out"), "{why}");
}

fn tag_of(slice: &Slice) -> u16 {
    match slice.isolation {
        SliceIsolation::Vlan(tag) => tag,
        _ => 0,
    }
}

#[test]
fn chosen_links_add_their_ports_with_free_numbers() {
    let vnics = "own_ports = ['s1:7 as 1']\nvnics = { A = { port = 's1:9', rate = '1M' }, B = { port = 's2:9', rate = '1M' } }";
    let slice = parse(&with(&format!("isolation = 'vlan'\ntag = 3\n{vnics}"))).unwrap().remove(0);
    assert!(slice.needs_links());
    let chosen = slice.with_links(&[parse_link("s1:1-s2:1").unwrap()]);
    assert!(!chosen.needs_links());
    let shown: Vec<_> =
        chosen.ports.iter().map(|port| (port_name(port.at), port.shown_as.0, port.is_own)).collect();
    let expected =
        [("s1:1", 2, false), ("s1:7", 1, true), ("s1:9", 9, true), ("s2:1", 1, false), ("s2:9", 9, true)];
    assert_eq!(shown, expected.map(|(name, number, is_own)| (name.to_owned(), number, is_own)));
    assert_eq!(chosen.plan().unwrap().links[0].from.port, PortNo(2));
}

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A section of two switches with two ports each.
fn any_section(random: &mut Random, name: &str) -> String {
    const MATCHES: [&str; 9] = [
        "ip",
        "arp",
        "in_port=1",
        "in_port=2,ip",
        "dl_vlan=1",
        "dl_vlan=2,ip",
        "ip,nw_dst=10.0.0.0/31",
        "ip,nw_dst=10.0.0.1",
        "arp,arp_tpa=10.0.0.2/31",
    ];
    let isolation = match random.below(3) {
        0 => format!("isolation = 'vlan'\ntag = {}", 1 + random.below(3)),
        1 => format!("isolation = 'flowspace'\nmatches = ['{}']", random.of(&MATCHES)),
        _ => format!(
            "isolation = 'flowspace'\nmatches = ['{}', '{}']",
            random.of(&MATCHES),
            random.of(&MATCHES)
        ),
    };
    let mut lists = [String::new(), String::new()];
    for port in ["s1:1", "s1:2", "s2:1", "s2:2"] {
        match random.below(8) {
            0..4 => lists[0] += &format!("'{port}', "),
            4 => lists[1] += &format!("'{port}', "),
            _ => {}
        }
    }
    let [ports, own_ports] = lists;
    format!(
        "[slice.{name}]\ncontrollers = ['h:1']\n{isolation}\nports = [{ports}]\nown_ports = [{own_ports}]\n"
    )
}

/// Each packet that can be told apart by the matches, where it enters.
fn packets() -> impl Iterator<Item = (DatapathId, PortNo, Match)> {
    let places = [(1, 1), (1, 2), (2, 1), (2, 2)];
    places.into_iter().flat_map(|(switch, port)| {
        let kinds = (0..4_u16)
            .flat_map(move |tag| (0..4_u32).flat_map(move |last| [(tag, last, true), (tag, last, false)]));
        kinds.map(move |(tag, last, is_ip)| {
            let vid = if tag == 0 { 0 } else { 0x1000 | tag };
            let (kind, field) = if is_ip { (0x0800_u16, Field::Ipv4Dst) } else { (0x0806, Field::ArpTpa) };
            let packet = Match::any()
                .with(Field::InPort, PortNo(port))
                .with(Field::VlanVid, vid)
                .with(Field::EthType, kind)
                .with(field, 0x0a00_0000 + last);
            (DatapathId(switch), PortNo(port), packet)
        })
    })
}

/// Whether a slice owns a packet that enters there.
fn owns(slice: &Slice, switch: DatapathId, port: PortNo, packet: &Match) -> bool {
    let Some(there) = slice.port(view::ConnectPoint { switch, port }) else { return false };
    match &slice.isolation {
        SliceIsolation::Vlan(_) if there.is_own => {
            packet.get(Field::VlanVid).is_some_and(|(vid, _)| vid == 0)
        }
        SliceIsolation::Vlan(tag) => {
            packet.get(Field::VlanVid).is_some_and(|(vid, _)| vid == u128::from(0x1000 | tag))
        }
        SliceIsolation::Flowspace(packets) => packets.iter().any(|it| covers(&it.matching, packet)),
        SliceIsolation::Address(_) => false,
    }
}

#[test]
fn two_slices_are_refused_exactly_if_both_own_a_packet_an_own_port_or_a_tag() {
    let mut random = Random(7);
    let (mut apart, mut named) = (0, 0);
    for round in 0..3_000 {
        let (red, blue) = (any_section(&mut random, "red"), any_section(&mut random, "blue"));
        let (one, two) = (parse(&red).unwrap().remove(0), parse(&blue).unwrap().remove(0));
        let has_own =
            one.ports.iter().any(|port| two.port(port.at).is_some_and(|it| it.is_own || port.is_own));
        let same_tag = tag_of(&one) != 0 && tag_of(&one) == tag_of(&two);
        let both = packets().any(|(switch, port, packet)| {
            owns(&one, switch, port, &packet) && owns(&two, switch, port, &packet)
        });
        let result = parse(&format!("{red}{blue}"));
        assert_eq!(result.is_err(), has_own || same_tag || both, "round {round}: {red}{blue}{result:?}");
        apart += usize::from(result.is_ok());
        // The packet that is named is one of both.
        let Some(why) = result.err().filter(|why| why.contains("so does slice")) else { continue };
        let packet = parse_match(why.split('`').nth(1).unwrap()).unwrap();
        let switch = if why.contains("at s1") { DatapathId(1) } else { DatapathId(2) };
        let port = PortNo(u32::try_from(packet.get(Field::InPort).unwrap().0).unwrap());
        let is_of = |slice: &Slice| {
            let fields = match &slice.isolation {
                SliceIsolation::Vlan(tag) => vec![Match::any().with(Field::VlanVid, 0x1000 | tag)],
                SliceIsolation::Flowspace(packets) => packets.iter().map(|it| it.matching.clone()).collect(),
                SliceIsolation::Address(_) => Vec::new(),
            };
            let is_there = slice.port(view::ConnectPoint { switch, port }).is_some();
            is_there && fields.iter().any(|one| covers(one, &packet))
        };
        assert!(is_of(&one) && is_of(&two), "round {round}: {why}");
        named += 1;
    }
    assert!(apart > 200 && named > 200, "{apart} apart, {named} named: the sections are too much alike");
}

#[test]
fn agents_know_vnics_by_number_and_address() {
    let vlan = |vnics: &str| with(&format!("isolation = 'vlan'\ntag = 3\n[slice.red.vnics]\n{vnics}"));
    let one = "A = { port = 's1:1', rate = '1M', number = 7, mac = '02:00:00:00:00:01', agent = 2 }";
    let slice = parse(&vlan(one)).unwrap().remove(0);
    let mac = flow::MacAddr([2, 0, 0, 0, 0, 1]);
    let expected = EdgeVnic { number: 7, mac, agent: Some(2), is_strict: false };
    assert_eq!((slice.vnics[0].edge, slice.tag()), (Some(expected), Some(3)));
    let check = |keys: &str, expected: &str| {
        let why = parse(&vlan(&format!("A = {{ port = 's1:1', rate = '1M', {keys} }}"))).unwrap_err();
        assert!(
            why.starts_with("slices.toml, line 6: slice red: VNIC A: ") && why.contains(expected),
            "{why}"
        );
    };
    check("number = 7", "add mac");
    check("agent = 2", "add number");
    check("mac = '02:00:00:00:00:01'", "add number");
    check("number = 7, mac = 'me'", "mac: `me` is no address: write 02:00:00:00:00:01");
    check("number = 7, mac = '01:00:00:00:00:01'", "is not the address of one interface");
    let two = |number: u32, mac: u32| {
        let second =
            format!("B = {{ port = 's2:1', rate = '1M', number = {number}, mac = '02:00:00:00:00:0{mac}' }}");
        parse(&vlan(&format!("{one}\n{second}"))).err().unwrap_or_default()
    };
    assert_eq!(two(8, 2), "");
    assert_eq!(
        two(7, 2),
        "slices.toml, line 7: slice red: VNIC B: number 7 is that of VNIC A (line 6): write another number"
    );
    assert!(two(8, 1).contains("agents cannot tell it from VNIC A (line 6)"));
}
