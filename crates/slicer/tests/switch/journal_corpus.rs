//! What the fuzz target for journals was given and what it found, on stable Rust: `fuzz/corpus/slice_journal`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#[path = "../../../../fuzz/checks/journal.rs"]
mod checks;

use crate::world::{TAG, World, add};
use flow::PortNo;
use openflow::message::*;
use openflow::{Body, Version};
use proptest::prelude::*;
use slicer::Isolation;
use std::fs;
use std::path::{Path, PathBuf};

/// The first line, and the head of a frame.
const BEFORE_RECORDS: usize = 15 + 12;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/slice_journal")
}

/// The journal of a slice with rules of both versions, a group, a meter, a closed port and a generation id.
fn journal() -> Vec<u8> {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
    world.keep_journal();
    world.join(0, Version::V1_3);
    world.join(1, Version::V1_0);
    let actions = vec![flow::Action::output(PortNo(1))];
    let bucket = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions };
    let bands = vec![MeterBand { rate: 100, burst_size: 0, kind: MeterBandKind::Drop }];
    let hw_addr = flow::MacAddr([2, 0, 0, 0, 0, 2]);
    for body in [
        Body::RoleRequest(Role { role: ROLE_MASTER, generation_id: 9 }),
        Body::RoleRequest(Role { role: ROLE_EQUAL, generation_id: 9 }),
        Body::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 7, buckets: vec![bucket] }),
        Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 3, bands }),
        Body::FlowMod(add(5, "tcp,tp_dst=80", "meter:3,group:7")),
        Body::PortMod(PortMod { port_no: PortNo(1), hw_addr, config: 1, mask: 1, advertise: 0 }),
    ] {
        world.say(body);
    }
    world.say_as(1, Body::FlowMod(add(6, "in_port=2", "output:1")));
    assert_eq!(world.slicer.rules(crate::world::DATAPATH).unwrap().0, 2);
    let mut file = Vec::new();
    assert!(world.slicer.write_journal(crate::world::DATAPATH, true, &mut file));
    file
}

/// The seeds: a whole file, its records, and two that are cut or damaged.
fn seeds() -> Vec<Vec<u8>> {
    let file = journal();
    let mut damaged = file.clone();
    damaged[BEFORE_RECORDS + 3] ^= 1;
    let even = |bytes: &[u8]| [&[0], bytes].concat();
    vec![even(&file), [&[1], &file[BEFORE_RECORDS..]].concat(), even(&file[..file.len() - 5]), even(&damaged)]
}

#[test]
fn what_fuzzing_was_given_and_found_holds() {
    if std::env::var_os("BURNET_BLESS").is_some() {
        fs::create_dir_all(corpus()).unwrap();
        for (number, seed) in seeds().iter().enumerate() {
            fs::write(corpus().join(format!("seed-{number}")), seed).unwrap();
        }
    }
    let files = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path());
    let count = files.map(|file| checks::slice_journal(&fs::read(file).unwrap())).count();
    assert!(count >= seeds().len(), "{count} inputs");
    seeds().iter().for_each(|seed| checks::slice_journal(seed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn records_with_changed_bytes_are_damage_or_a_state(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        // It is the same each time, and takes longer than a case.
        static SEEDS: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(seeds);
        let mut records = SEEDS[1].clone();
        let length = records.len();
        changes.into_iter().for_each(|(place, byte)| records[1 + place % (length - 1)] = byte);
        checks::slice_journal(&records);
        records.truncate(1 + cut.index(length));
        checks::slice_journal(&records);
    }
}
