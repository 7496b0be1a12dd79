//! Profiles as plain numbers for `southbound`: rates, the order of priorities, times, and sizes of tables.
//!
//! ```text
//!   [switch] sections ──> profiles, built in or files ──> SwitchPaces: datapath id and description ──> SwitchPace
//! ```
//!
//! In: the sections. It reads the files that they name. Out: the numbers, or an error with file and line.

use super::switches::{BUILT_IN, Pace, Quantile, SwitchKey, SwitchTable, Switches, as_path};
use super::{ConfigError, contradiction};
use flow::DatapathId;
use profile::{BarrierKind, Description, Hardware, Profile, SoftwareUse, Switch, built_in};
use southbound::{CommandRate, PERCENT, PriorityOrder, ReplyDelay, SwitchPace, SwitchPaces};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// At the pace `hardware`, the node is slower than the profile by this part. A command that arrives a moment too early would be put into
/// the software table.
const MARGIN: f64 = 0.03;

/// At the pace `setup`, commands of this time may go at once after a silence, in seconds.
const BURST_S: f64 = 0.1;

/// An order of priorities is cheap if it costs at most this part of the other.
const CHEAP: f64 = 0.9;

/// The size of the largest profile that is read, as of the largest text that is parsed.
const PROFILE_BYTES_MAX: u64 = profile::file::TEXT_BYTES_MAX as u64;

impl Switches {
    /// The profiles that these sections name, as numbers.
    ///
    /// # Errors
    /// A profile that is unknown, that cannot be read, or that has a fault: with file and line.
    pub fn paces(&self) -> Result<SwitchPaces, ConfigError> {
        if self.0.is_empty() {
            return Ok(SwitchPaces::default());
        }
        let (mut named, mut recognised, mut others) = (BTreeMap::new(), Vec::new(), None);
        for (key, table) in &self.0 {
            for name in &table.recognise {
                let profiles = recognising(*key, name)?;
                recognised.extend(profiles.into_iter().map(|it| (it.switch.clone(), pace(&it, table))));
            }
            let Some(name) = &table.profile else { continue };
            let pace = pace(&find(*key, name)?, table);
            match key {
                SwitchKey::One(datapath) => drop(named.insert(*datapath, pace)),
                SwitchKey::Others => others = Some(pace),
            }
        }
        let (named, has_recognised) = (Arc::new(named), !recognised.is_empty());
        let has_own = named.clone();
        let paces = SwitchPaces::by(move |datapath: DatapathId, desc| {
            let by_description = || {
                let desc = desc?;
                let description = Description {
                    manufacturer: &desc.mfr_desc,
                    hardware: &desc.hw_desc,
                    software: &desc.sw_desc,
                };
                best(&recognised, &description)
            };
            named.get(&datapath).or_else(by_description).or(others.as_ref()).cloned()
        });
        Ok(paces.after_description(move |datapath| has_recognised && !has_own.contains_key(&datapath)))
    }

    /// What the profiles are that these sections name by their files, to see later whether one has changed.
    pub fn profile_files(&self) -> ProfileFiles {
        let names = self.0.values().flat_map(|table| table.profile.iter().chain(&table.recognise));
        let files = names.filter_map(|name| Some((name.clone(), as_path(name)?)));
        ProfileFiles(files.map(|(name, path)| (name, text_of(&path).ok())).collect())
    }
}

/// Profiles that are files, and their contents: at most as many as sections name. `None`: a file could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFiles(BTreeMap<String, Option<String>>);

impl ProfileFiles {
    /// Those that have another content now.
    pub fn changed<'a>(&'a self, now: &'a ProfileFiles) -> impl Iterator<Item = &'a str> {
        let differs = |(name, text): (&'a String, &Option<String>)| {
            (now.0.get(name).is_some_and(|other| other != text)).then_some(name.as_str())
        };
        self.0.iter().filter_map(differs)
    }
}

/// The profile that fits best. Among equals, the one that is written first.
fn best<'a>(
    recognised: &'a [(Switch, Arc<SwitchPace>)],
    description: &Description<'_>,
) -> Option<&'a Arc<SwitchPace>> {
    let fits = recognised.iter().filter_map(|(switch, pace)| Some((switch.recognises(description)?, pace)));
    fits.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, pace)| pace)
}

/// The profiles of an entry of `recognise`. A file that recognises nothing is a mistake.
fn recognising(key: SwitchKey, name: &str) -> Result<Vec<Profile>, ConfigError> {
    if name == BUILT_IN {
        let all = built_in::names().filter_map(built_in);
        return Ok(all.filter(|profile| !profile.switch.recognised_by.is_empty()).collect());
    }
    let profile = find(key, name)?;
    if profile.switch.recognised_by.is_empty() {
        return contradiction(format!(
            "switch.{key:?}.recognise: the profile {name} does not say by which descriptions it recognises a switch: add \
             [[switch.recognised_by]] to it, or name the switch in a section of its own",
            key = key.to_string()
        ));
    }
    Ok(vec![profile])
}

fn find(key: SwitchKey, name: &str) -> Result<Profile, ConfigError> {
    let Some(path) = as_path(name) else {
        return built_in(name).map_or_else(|| contradiction(no_such(key, name)), Ok);
    };
    Profile::parse(name, &text_of(&path)?).map_err(|bad| ConfigError::Contradiction(bad.to_string()))
}

/// The text of a profile.
fn text_of(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |error: String| ConfigError::Unreadable { path: path.to_owned(), error };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    // One byte more than a profile may have: a device or a file that grows has no end.
    let read = file.take(PROFILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > PROFILE_BYTES_MAX {
        return Err(unreadable(format!("it has more than the {PROFILE_BYTES_MAX} bytes of a profile")));
    }
    Ok(text)
}

fn no_such(key: SwitchKey, name: &str) -> String {
    let names: Vec<&str> = built_in::names().collect();
    format!(
        "switch.{:?}: there is no built-in profile {name:?}: write one of {}, or the path of a file, such as \"./{name}.toml\"",
        key.to_string(),
        names.join(", ")
    )
}

/// The numbers of a profile for a section.
fn pace(profile: &Profile, table: &SwitchTable) -> Arc<SwitchPace> {
    let rate = rate(profile, table.pace);
    Arc::new(SwitchPace {
        profile: profile.name.clone(),
        rate,
        order: profile.hardware.as_ref().map(cheap_order).unwrap_or_default(),
        programmed_after_ms: programmed_after_ms(profile, rate, table.programmed_quantile),
        entries: entries(profile),
        replies: replies(profile),
    })
}

fn rate(profile: &Profile, pace: Pace) -> Option<CommandRate> {
    let (per_s, burst) = match pace {
        Pace::None => return None,
        Pace::Setup => {
            let per_s = profile.setup_rate_per_s()?;
            (per_s, per_s * BURST_S)
        }
        Pace::Hardware => {
            let per_s = profile.hardware_rate_per_s()? * (1.0 - MARGIN);
            // The switch counts too, and a burst of its whole size would leave no room for one that comes early.
            let above = profile.software.as_ref().and_then(|software| match software.when {
                SoftwareUse::AboveRate { burst_rules, .. } => Some(f64::from(burst_rules) / 2.0),
                SoftwareUse::Only | SoftwareUse::WhenFull => None,
            });
            let buffer = profile.install.map(|install| f64::from(install.size_rules) / 2.0);
            (per_s, [above, buffer, Some(per_s * BURST_S)].into_iter().flatten().fold(f64::MAX, f64::min))
        }
    };
    // Both casts end at the bounds of the type.
    Some(CommandRate { milli_per_s: (per_s * 1e3).max(1.0) as u32, burst: burst.max(1.0) as u32 })
}

/// The cheaper order, by the costs of a table that is half full.
fn cheap_order(hardware: &Hardware) -> PriorityOrder {
    let half = hardware.capacities.iter().map(|class| class.entries).min().unwrap_or(0) / 2;
    let (ascending, descending) = (hardware.add.at(half, half, 0), hardware.add.at(half, 0, half));
    if ascending < CHEAP * descending {
        PriorityOrder::Ascending
    } else if descending < CHEAP * ascending {
        PriorityOrder::Descending
    } else {
        PriorityOrder::AsTheyCome
    }
}

/// How much later than the barrier reply the data plane has a rule. If a barrier orders nothing, what the pace let go before it may come
/// first.
fn programmed_after_ms(profile: &Profile, rate: Option<CommandRate>, quantile: Quantile) -> u64 {
    let Some(late) = profile.barrier.late_us() else { return 0 };
    let late_us = late.at(quantile.0);
    let served_us = match profile.barrier.kind {
        BarrierKind::NotOrdering(_) => {
            let ahead = rate.map_or(1, |rate| rate.burst);
            f64::from(ahead) * profile.cpu.add.service_us.max_us()
        }
        BarrierKind::Honest | BarrierKind::Early(_) => 0.0,
    };
    // The cast ends at the bounds of the type.
    ((late_us + served_us) / 1e3).ceil() as u64
}

/// How soon the switch answers a barrier behind one add, if it has nothing else to do. `None`: the profile has no time for adds.
fn replies(profile: &Profile) -> Option<ReplyDelay> {
    let (add, barrier) = (&profile.cpu.add.service_us, &profile.cpu.barrier.service_us);
    if add.is_zero() {
        return None;
    }
    let (least_us, most_us) = profile.hardware.as_ref().map_or((0.0, 0.0), |hardware| {
        let waits = hardware.cpu_waits || profile.barrier.kind == BarrierKind::Honest;
        if waits { hardware_us(hardware) } else { (0.0, 0.0) }
    });
    // An honest switch may answer only when it has written all that is in its install buffer.
    let buffer_us = profile.install.filter(|_| profile.barrier.kind == BarrierKind::Honest);
    let buffer_us = buffer_us.map_or(0.0, |install| 1e6 * f64::from(install.size_rules) / install.rate_per_s);
    let answers_early = matches!(profile.barrier.kind, BarrierKind::NotOrdering(_));
    let curve = |above_us: f64, with_add: bool| {
        PERCENT.map(|percent| {
            let at = f64::from(percent) / 100.0;
            let add_us = if with_add { add.at(at) } else { 0.0 };
            // The cast ends at the bounds of the type.
            (add_us + barrier.at(at) + above_us) as u32
        })
    };
    Some(ReplyDelay {
        earliest_us: curve(if answers_early { 0.0 } else { least_us }, !answers_early),
        latest_us: curve(most_us + buffer_us, true),
    })
}

/// The cheapest and the dearest add, in microseconds: into an empty table or a full one, in any order of priorities.
fn hardware_us(hardware: &Hardware) -> (f64, f64) {
    let full = hardware.capacities.iter().map(|class| class.entries).max().unwrap_or(0);
    let costs = [0, full].into_iter().flat_map(|rules| {
        [(0, 0), (rules, 0), (0, rules)].map(|(lower, higher)| hardware.add.at(rules, lower, higher))
    });
    costs.fold((f64::MAX, 0.0), |(least, most), cost| (least.min(cost), cost.max(most)))
}

/// The rules that are sure to fit, of whatever match: those of the class with the fewest. Without a hardware table, those of the software
/// table. A table of which the probe found no end says nothing: what the switch reports counts.
fn entries(profile: &Profile) -> Option<u32> {
    match &profile.hardware {
        Some(hardware) => {
            hardware.capacities.iter().filter(|class| !class.at_least).map(|class| class.entries).min()
        }
        None => profile.software.as_ref()?.bound(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::message::SwitchDesc;

    fn paces(text: &str) -> Result<SwitchPaces, ConfigError> {
        #[derive(serde::Deserialize)]
        struct File {
            switch: Switches,
        }
        toml::from_str::<File>(text).unwrap().switch.paces()
    }

    fn pace_of(text: &str) -> SwitchPace {
        let paces = paces(&format!("[switch.1]\n{text}")).unwrap();
        (*paces.of(DatapathId(1), None).unwrap()).clone()
    }

    fn described(software: &str) -> SwitchDesc {
        SwitchDesc {
            mfr_desc: "Nicira, Inc.".into(),
            hw_desc: "Open vSwitch".into(),
            sw_desc: software.into(),
            serial_num: "None".into(),
            dp_desc: "None".into(),
        }
    }

    #[test]
    fn the_hp_gets_eight_rules_a_second_for_its_hardware_and_forty_to_set_up() {
        let hardware = pace_of("profile = 'hp-procurve-j9451a'\npace = 'hardware'");
        assert_eq!(hardware.rate, Some(CommandRate { milli_per_s: 7_760, burst: 1 }));
        assert_eq!((hardware.entries, hardware.programmed_after_ms), (Some(1_500), 0));
        let setup = pace_of("profile = 'hp-procurve-j9451a'");
        assert_eq!(setup.rate, Some(CommandRate { milli_per_s: 40_000, burst: 4 }));
        assert_eq!(pace_of("profile = 'hp-procurve-j9451a'\npace = 'none'").rate, None);
        assert_eq!(pace_of("profile = 'null'").rate, None, "it has no limit");
    }

    #[test]
    fn programmed_waits_for_the_latest_rule_or_for_the_part_that_is_written() {
        let pica8 = pace_of("profile = 'pica8-p3290'");
        assert!((400..500).contains(&pica8.programmed_after_ms), "{pica8:?}");
        assert_eq!(pace_of("profile = 'hp-5406zl'").programmed_after_ms, 22_000);
        let most = pace_of("profile = 'hp-5406zl'\nprogrammed_quantile = 0.999");
        assert_eq!(most.programmed_after_ms, 250);
        assert_eq!(pace_of("profile = 'noviswitch-1132'").programmed_after_ms, 0);
    }

    #[test]
    fn a_switch_is_expected_to_answer_as_soon_as_the_costs_of_its_profile_allow() {
        let check = |name: &str, earliest_us: [u32; 5], latest_us: [u32; 5]| {
            let replies = pace_of(&format!("profile = '{name}'")).replies;
            assert_eq!(replies, Some(ReplyDelay { earliest_us, latest_us }), "{name}");
        };
        // 12 to 28 ms and half a millisecond.
        let hp = [13_500, 17_500, 20_500, 23_500, 27_500];
        check("hp-procurve-j9451a", hp, hp);
        // An install buffer of 16 rules that gives 8 a second to the hardware.
        let mut buffered = profile::built_in("hp-procurve-j9451a").unwrap();
        let install = profile::Install { size_rules: 16, rate_per_s: 8.0, ..profile::Install::default() };
        buffered.install = Some(install);
        let latest_us = hp.map(|us| us + 2_000_000);
        assert_eq!(super::replies(&buffered), Some(ReplyDelay { earliest_us: hp, latest_us }));
        // The barrier may come first.
        check("pica8-p3290", [100; 5], [1_100; 5]);
        // An add takes 0.4 to 20 ms of the hardware, and the CPU waits for it.
        check("tango-1", [900; 5], [20_500; 5]);
        assert_eq!(pace_of("profile = 'null'").replies, None);
    }

    #[test]
    fn the_cheap_order_is_that_of_the_costs_and_the_class_with_the_fewest_entries_counts() {
        let tango = pace_of("profile = 'tango-1'");
        assert_eq!((tango.order, tango.entries), (PriorityOrder::Ascending, Some(2_048)));
        assert_eq!(pace_of("profile = 'hp-procurve-j9451a'").order, PriorityOrder::AsTheyCome);
        assert_eq!(pace_of("profile = 'noviswitch-1132'").entries, None, "the end is not known");
    }

    #[test]
    fn a_section_comes_before_the_description_and_that_before_all_others() {
        let text =
            "[switch.1]\nprofile = 'null'\n[switch.'*']\nprofile = 'tango-2'\nrecognise = ['built-in']";
        let paces = paces(text).unwrap();
        let check = |datapath, desc: Option<&SwitchDesc>, expected: &str| {
            assert_eq!(paces.of(DatapathId(datapath), desc).unwrap().profile, expected);
        };
        check(1, Some(&described("3.1.0")), "null");
        check(2, Some(&described("3.1.0")), "ovs-3.1");
        check(2, None, "tango-2");
        assert_eq!([1, 2].map(|datapath| paces.needs_description(DatapathId(datapath))), [false, true]);
        assert!(Switches::default().paces().unwrap().of(DatapathId(1), None).is_none());
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_an_error_with_its_place() {
        let check = |text: &str, expected: &str| {
            let refused = paces(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        };
        check(
            "[switch.1]\nprofile = 'hp'",
            "switch.\"of:0000000000000001\": there is no built-in profile \"hp\"",
        );
        check("[switch.1]\nprofile = '/no/such.toml'", "/no/such.toml cannot be read");
        check(
            "[switch.'*']\nrecognise = ['null']",
            "switch.\"*\".recognise: the profile null does not say by which",
        );
        let folder = std::env::temp_dir().join(format!("burnet-config-profile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("bad.toml");
        let sections = Switches(BTreeMap::from([(
            SwitchKey::Others,
            SwitchTable { profile: Some(path.display().to_string()), ..SwitchTable::default() },
        )]));
        let missing = sections.profile_files();
        std::fs::write(&path, "schema = 1\nname = \"bad\"\nabout = \"x\"\ncpu.speed = 3\n").unwrap();
        let there = sections.profile_files();
        assert_eq!(missing.changed(&there).collect::<Vec<_>>(), [path.to_str().unwrap()]);
        assert_eq!(there.changed(&sections.profile_files()).count(), 0);
        assert_eq!(there.changed(&Switches::default().profile_files()).count(), 0, "no section names it");
        check(&format!("[switch.1]\nprofile = '{}'", path.display()), "bad.toml");
        check(&format!("[switch.1]\nprofile = '{}'", path.display()), "4");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
