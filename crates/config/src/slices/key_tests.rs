//! Each key of `[slice.NAME]` with wrong values: errors name the slice, the key, and what is allowed.

use crate::ConfigFile;
use std::path::Path;

fn parse(text: &str) -> Result<usize, String> {
    let file = ConfigFile::parse(text, Path::new("slices.toml"));
    file.map(|file| file.slices.len()).map_err(|error| error.to_string())
}

/// A slice with this line, and what its other lines must be for that.
fn with_key(key: &str, line: &str) -> String {
    let base = "[slice.red]\n";
    let others = [
        ("controllers", "controllers = ['127.0.0.1:1']\n"),
        ("isolation", "isolation = 'vlan'\n"),
        ("ports", "ports = ['s1:9']\n"),
    ];
    let of_kind = match key {
        "matches" => "isolation = 'flowspace'\n",
        "prefix" => "isolation = 'address'\naddresses = '10.0.0.0/24'\nhosts = { '10.0.0.1' = 's1:1' }\n",
        "addresses" => "isolation = 'address'\nprefix = '10.7.0.0/24'\nhosts = { '10.0.0.1' = 's1:1' }\n",
        "hosts" => "isolation = 'address'\nprefix = '10.7.0.0/24'\naddresses = '10.0.0.0/24'\n",
        _ => "",
    };
    let is_other = |name: &str| name != key && (name != "isolation" || of_kind.is_empty());
    let others: String = others.iter().filter(|(name, _)| is_other(name)).map(|(_, text)| *text).collect();
    format!("{base}{line}\n{others}{of_kind}")
}

#[test]
fn a_value_of_another_type_or_a_wrong_one_is_refused_with_slice_key_and_what_is_allowed() {
    // Each key with a value of another type, a wrong one, and a part of what to write.
    let keys = [
        ("controllers", "5", "['x']", "HOST:PORT"),
        ("tls", "5", "{ certificate = 'a' }", "certificate, private_key and ca_certificate"),
        ("isolation", "5", "'vxlan'", "\"flowspace\""),
        ("tag", "'7'", "4095", "1 to 4094"),
        ("matches", "5", "['nw_dst=x']", "nw_dst=10.1.0.0/16"),
        ("prefix", "5", "'10.0.0.0/99'", "/"),
        ("addresses", "5", "'10.0.0.1/24'", "/24"),
        ("hosts", "5", "{ 'x' = 's1:1' }", "10.0.0.1"),
        ("read_only", "'yes'", "1", "true or false"),
        ("labels", "5", "'sped'", "\"none\", \"paper\", \"experimenter\" or \"speed\""),
        ("step", "5", "'0%'", "%"),
        ("fail", "true", "'open'", "\"secure\" or \"standalone\""),
        ("admission", "5", "'none'", "\"links\" or \"edge\""),
        ("switches", "5", "['x']", "s"),
        ("ports", "'s1:1'", "['s1']", "s"),
        ("own_ports", "5", "['s1:0']", "s"),
        ("links", "5", "['s1:1']", "s"),
        ("vnics", "5", "{ A = { port = 's1:1', rate = '0' } }", "rate"),
        ("groups", "5", "[0, 9]", "[FIRST, LAST]"),
        ("meters", "['a', 'b']", "[9, 1]", "[FIRST, LAST]"),
        ("limits", "5", "{ rules = 0 }", "rules"),
    ];
    for (key, other_type, wrong, allowed) in keys {
        for value in [other_type, wrong] {
            let text = with_key(key, &format!("{key} = {value}"));
            let why = parse(&text).unwrap_err();
            let says = ["slice red: ", key, allowed, "write"];
            assert!(says.iter().all(|part| why.contains(part)), "{text}\n{why}");
            let line = if why.contains("hosts") { "line " } else { "line 2: " };
            assert!(why.starts_with(&format!("slices.toml, {line}")), "{text}\n{why}");
        }
    }
    // The written keys are all keys of the section.
    let unknown = parse(&with_key("weather", "weather = 1")).unwrap_err();
    for (key, ..) in keys {
        assert!(unknown.contains(key), "{key} is no key: {unknown}");
    }
    let known = unknown.split("the keys here are ").nth(1).unwrap().split(", ").count();
    assert_eq!(known, keys.len(), "{unknown}");
}

#[test]
fn a_key_within_a_table_of_a_slice_is_refused_with_its_whole_name() {
    let check = |line: &str, expected: &str| {
        let why = parse(&with_key("", line)).unwrap_err();
        assert!(
            why.starts_with("slices.toml, line 2: slice red: ") && why.contains(expected),
            "{line}\n{why}"
        );
    };
    let vnic = |more: &str| format!("vnics = {{ A = {{ port = 's1:1', rate = '1M'{more} }} }}");
    check("labels = 'sped'", "labels: `sped` is no value of this key: write \"none\", \"paper\"");
    check(&vnic(", number = 'x'"), "vnics.A.number: string \"x\" is no value of this key: write a number");
    check(&vnic(", strict = 1"), "vnics.A.strict: ");
    check(&vnic(", meter = 1"), "vnics.A.meter: integer `1` is no value of this key: write true or false");
    check(&vnic(", mac = 1"), "vnics.A.mac: ");
    check(&vnic(", agent = -1"), "vnics.A.agent: ");
    check("vnics = { A = { port = 1, rate = '1M' } }", "vnics.A.port: ");
    check("vnics = { A = { port = 's1:1', rate = 7 } }", "vnics.A.rate: integer `7` is no value");
    check("vnics = { A = { port = 's1:1' } }", "vnics.A: missing field `rate`: write { port");
    check("vnics = { A = 5 }", "vnics.A: ");
    check("tls = { certificate = 5 }", "tls.certificate: ");
    for key in ["packet_ins_per_s", "packet_outs_per_s", "flow_mods_per_s", "statistics_per_s", "rules"] {
        for value in ["'x'", "0", "-1", "{ soft = 1 }"] {
            check(&format!("limits = {{ {key} = {value} }}"), &format!("limits.{key}: "));
        }
    }
}
