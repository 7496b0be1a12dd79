//! Checks between the values of a profile: combinations that no switch has.

use super::node::Node;
use super::problem::{Fault, Faults};
use crate::barrier::BarrierKind;
use crate::hardware::{Hardware, Stall, StallInterval, WhenFull};
use crate::install::BufferFull;
use crate::software::SoftwareUse;
use crate::whole::Profile;

/// Adds a fault for each.
pub(super) fn check(profile: &Profile, tree: &Node, faults: &mut Faults) {
    let mut refuse =
        |key: &str, what: &str| faults.push(Fault::new(tree.place_of(key), key, what.to_owned()));
    for pattern in &profile.switch.recognised_by {
        if pattern.fits(&crate::switch::Description::default()).is_some() {
            let what = "has a pattern without a text, which fits every switch; expected manufacturer, hardware or software";
            refuse("switch.recognised_by", what);
        }
    }
    software_and_hardware(profile, &mut refuse);
    if let Some(hardware) = &profile.hardware {
        check_hardware(hardware, tree, &mut refuse);
    }
    if tree.get("barrier").is_some_and(|barrier| barrier.get("rules_in_order").is_some())
        && profile.barrier.kind == BarrierKind::Honest
        && !profile.barrier.rules_in_order
    {
        refuse(
            "barrier.rules_in_order",
            "is false with an honest reply; expected reply = \"early\" or \"not_ordering\"",
        );
    }
}

fn software_and_hardware(profile: &Profile, refuse: &mut dyn FnMut(&str, &str)) {
    if profile.software.as_ref().is_some_and(|software| software.at_least && software.entries.is_none()) {
        refuse("software.at_least", "says how to read entries; expected entries beside it");
    }
    let only = profile.software.as_ref().is_some_and(|software| software.when == SoftwareUse::Only);
    match (&profile.hardware, &profile.software) {
        (Some(_), Some(_)) if only => {
            refuse("software.use", "is \"only\", but there is a table [hardware]; expected one of both");
        }
        (None, Some(_)) if !only => {
            refuse("software.use", "needs a table [hardware]; expected \"only\" without one")
        }
        _ => {}
    }
    let spills = profile.hardware.as_ref().is_some_and(|hardware| hardware.when_full == WhenFull::Spill);
    if spills && profile.software.is_none() {
        refuse("hardware.when_full", "is \"spill\", but there is no table [software]");
    }
    if only && profile.software.as_ref().is_some_and(|software| software.promotion.is_some()) {
        refuse("software.promotion", "has no hardware table to promote to");
    }
    let Some(install) = &profile.install else { return };
    if profile.hardware.is_none() {
        refuse("install", "needs a table [hardware]");
    }
    if install.when_full == BufferFull::Spill && profile.software.is_none() {
        refuse("install.when_full", "is \"spill\", but there is no table [software]");
    }
    if install.batch_rules > install.size_rules {
        refuse("install.batch_rules", "is larger than size_rules");
    }
}

fn check_hardware(hardware: &Hardware, tree: &Node, refuse: &mut dyn FnMut(&str, &str)) {
    match (hardware.when_full, hardware.evict.is_empty()) {
        (WhenFull::Evict, true) => {
            refuse(
                "hardware.when_full",
                "is \"evict\"; expected evict = [\"oldest\"] or another order beside it",
            );
        }
        (WhenFull::Evict, false) | (_, true) => {}
        (_, false) => refuse("hardware.evict", "is given, but when_full is not \"evict\""),
    }
    let stall = tree.get("hardware").and_then(|hardware| hardware.get("stall"));
    let given = |key: &str| stall.is_some_and(|stall| stall.get(key).is_some());
    if stall.is_some() && given("every_us") == given("every_changes") {
        refuse("hardware.stall", "has both or none of every_us and every_changes; expected one");
    }
    if let Some(Stall { interval: StallInterval::TimeUs(every), .. }) = &hardware.stall
        && every.is_zero()
        && given("every_us")
    {
        refuse(
            "hardware.stall.every_us",
            "is always 0, so that the hardware never works; expected some time",
        );
    }
    let hides_others = |index: usize| {
        let class = &hardware.capacities[index];
        // A class behind one that takes every match is never reached.
        class.fields.is_empty() && !class.exact && index + 1 < hardware.capacities.len()
    };
    if (0..hardware.capacities.len()).any(hides_others) {
        refuse(
            "hardware.capacity",
            "has a class behind one that takes every match; expected the class without fields last",
        );
    }
}
