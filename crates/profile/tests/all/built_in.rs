//! The built-in profiles: each can be read, and says what its sources say.

use profile::built_in::{built_in, names, recognise, text};
use profile::compare::changes;
use profile::*;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_file_of_the_folder_is_built_in_and_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    let in_folder: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(in_folder, names().map(str::to_owned).collect());
    for name in names() {
        let profile = Profile::parse(name, text(name).unwrap()).unwrap_or_else(|bad| panic!("{bad}"));
        assert_eq!(profile.name, name);
        assert!(!profile.about.is_empty(), "{name}");
        // Written without its base, it is the same profile.
        assert_eq!(Profile::parse(name, &profile.to_toml().unwrap()).unwrap(), profile);
    }
    assert_eq!(built_in("no-such-switch"), None);
}

#[test]
fn the_null_profile_is_the_default() {
    let null = built_in("null").unwrap();
    assert_eq!(Profile { about: String::new(), ..null }, Profile::null());
}

#[test]
fn table_1_of_the_paper_is_what_the_profiles_say() {
    // Name, CPU set-ups a second, entries, link rate, firmware.
    for (name, rate, entries, link, firmware) in [
        ("hp-procurve-j9451a", 40.0, 1500, 1e9, "K.15.06.5008"),
        ("fulcrum-monaco", 42.0, 511, 10e9, "Open vSwitch 1.0.1"),
        ("quanta-lb4g", 38.0, 1912, 1e9, "indigo-1.0-web-lb4g-rc3"),
        ("quanta-lb4g-software", 38.0, 1912, 1e9, "indigo-1.0-web-lb4g-rc3"),
        ("ovs-1.7-x3210", 408.0, 65_000, 1e9, "1.7.0"),
    ] {
        let profile = built_in(name).unwrap();
        let found = profile.setup_rate_per_s().unwrap();
        assert!((found - rate).abs() < 0.01 * rate, "{name}: {found}");
        let in_hardware = profile.hardware.as_ref().map(|hardware| hardware.capacities[0].entries);
        let in_software = profile.software.as_ref().and_then(|software| software.entries);
        assert_eq!(in_hardware.or(in_software), Some(entries), "{name}");
        assert_eq!(profile.switch.link_bits_per_s, Some(link));
        assert_eq!(profile.switch.firmware, firmware);
    }
}

#[test]
fn the_text_of_the_paper_is_what_the_profiles_say() {
    let hp = built_in("hp-procurve-j9451a").unwrap();
    assert_eq!(hp.hardware_rate_per_s(), Some(8.0));
    assert!(hp.software.unwrap().promotion.is_some());
    assert_eq!(built_in("fulcrum-monaco").unwrap().software, None);
    let full = |name: &str| built_in(name).unwrap().hardware.unwrap().when_full;
    assert_eq!((full("quanta-lb4g"), full("quanta-lb4g-software")), (WhenFull::Refuse, WhenFull::Spill));
    // Half of the packet-ins take 5 to 40 ms: the service time and what remains.
    let ovs = built_in("ovs-1.7-x3210").unwrap();
    let packet_in_us = |q: f64| ovs.cpu.packet_in.service_us.at(0.5) + ovs.delay.ingress_us.at(q);
    assert_eq!((packet_in_us(0.5), packet_in_us(1.0)), (5_000.0, 40_000.0));
}

#[test]
fn the_variant_of_the_quanta_differs_only_in_its_full_table() {
    let changed = changes(&built_in("quanta-lb4g").unwrap(), &built_in("quanta-lb4g-software").unwrap());
    let first: BTreeSet<_> = changed.iter().map(|change| change.key.split('.').next().unwrap()).collect();
    assert_eq!(first, BTreeSet::from(["hardware", "software"]));
    let in_hardware: Vec<_> = changed.iter().filter(|change| change.key.starts_with("hardware")).collect();
    assert_eq!(in_hardware.len(), 1);
}

#[test]
fn a_profile_that_was_not_measured_does_not_say_so() {
    for name in names() {
        let profile = built_in(name).unwrap();
        let measured = profile.sources.iter().filter_map(|(path, source)| match source {
            Provenance::Measured { firmware, .. } => Some((path, firmware.as_str())),
            _ => None,
        });
        // Only the one switch that is at hand was measured.
        let of_ovs = ["cpu.add.service_us", "delay.egress_us"];
        let of_ovs = of_ovs.into_iter().chain(["packet_in.buffers_packets"]).map(|path| (path, "3.1.0"));
        let expected: Vec<_> = of_ovs.filter(|_| name == "ovs-3.1").collect();
        assert_eq!(measured.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn an_open_vswitch_is_recognised_by_its_version() {
    let of = |manufacturer, software| {
        recognise(&Description { manufacturer, hardware: "Open vSwitch", software })
            .map(|profile| profile.name)
    };
    assert_eq!(of("Nicira, Inc.", "3.1.0").as_deref(), Some("ovs-3.1"));
    assert_eq!(of("Nicira Networks, Inc.", "1.7.0").as_deref(), Some("ovs-1.7-x3210"));
    assert_eq!(of("Nicira, Inc.", "2.17.0"), None);
}
