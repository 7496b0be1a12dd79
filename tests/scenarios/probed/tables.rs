//! The size of a table that Open vSwitch bounds, and what it does when the table is full.

use profile::WhenFull;
use system_tests::Version;

use super::setup::{ENTRIES, expect, found, is_clean, limit_table, probed};

fn table_of_511(name: &str, version: Version, policy: &str, when_full: WhenFull) {
    probed(
        name,
        version,
        &["--measure", "table"],
        |_, switch| limit_table(switch, policy),
        |sandbox, switch, probing| {
            let code = probing.finish()?;
            expect(code == 0, "the exit code", &code)?;
            let hardware = found(sandbox)?.hardware.ok_or("no hardware table")?;
            let size = hardware.capacities.last().map(|it| (it.entries, it.at_least));
            expect(size == Some((ENTRIES, false)), "the size of the table", &size)?;
            expect(hardware.when_full == when_full, "what happens when it is full", &hardware.when_full)?;
            is_clean(switch, version)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_table_that_refuses_is_found_by_1_0() {
    table_of_511("probed-refuse-1.0", Version::V1_0, "refuse", WhenFull::Refuse);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_table_that_refuses_is_found_by_1_3() {
    table_of_511("probed-refuse-1.3", Version::V1_3, "refuse", WhenFull::Refuse);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_table_that_evicts_is_found_by_1_0() {
    table_of_511("probed-evict-1.0", Version::V1_0, "evict", WhenFull::Evict);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_table_that_evicts_is_found_by_1_3() {
    table_of_511("probed-evict-1.3", Version::V1_3, "evict", WhenFull::Evict);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_table_without_an_end_is_as_large_as_the_bound() {
    probed(
        "probed-endless",
        Version::V1_3,
        &["--measure", "table", "--table-max", "700"],
        |_, _| Ok(()),
        |sandbox, _, probing| {
            let code = probing.finish()?;
            expect(code == 0, "the exit code", &code)?;
            let hardware = found(sandbox)?.hardware.ok_or("no hardware table")?;
            let size = hardware.capacities.last().map(|it| (it.entries, it.at_least));
            expect(size == Some((700, true)), "the size of the table", &size)
        },
    );
}
