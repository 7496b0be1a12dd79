//! All attacks, family by family, in the order in which they are tried.
//!
//! Never tries one: it says which there are, and finds them by name.

mod apps;
mod commands;
mod effects;
mod outside;
mod services;
mod tenants;

use openflow::Version;

use super::case::{Case, Family, Must, On, USUAL};

/// The cases of one file each.
const ALL: [&[Case]; 10] = [
    apps::CASES,
    services::CASES,
    commands::OWNERS,
    commands::VENDORS,
    commands::IDENTITY,
    effects::INDIRECT_EFFECTS,
    effects::AMPLIFICATION,
    commands::RIGHTS,
    outside::CASES,
    tenants::CASES,
];

/// What OpenFlow 1.0 has no words for: groups, meters, more than one table.
const V13: On = On::Only(Version::V1_3);

/// By any app, with what most apps are granted.
const fn usual(family: Family, name: &'static str, what: &'static str, must: Must) -> Case {
    Case::app(family, name, what, USUAL, must)
}

/// How much of a word may be another letter, left out or too much for it still to be what was meant.
const TYPOS_MAX: usize = 4;

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Case> {
    ALL.iter().copied().flatten()
}

/// The attack of this name.
///
/// # Errors
/// There is none, and which name is most like it.
pub fn find(name: &str) -> Result<&'static Case, String> {
    let found = all().find(|case| case.name == name);
    found.ok_or_else(|| unknown("attack", name, all().map(|case| case.name)))
}

/// The family of this name.
///
/// # Errors
/// There is none, and which name is most like it.
pub fn family(name: &str) -> Result<Family, String> {
    let found = Family::ALL.iter().find(|(_, known, _)| *known == name).map(|(family, ..)| *family);
    found.ok_or_else(|| unknown("family", name, Family::ALL.iter().map(|(_, known, _)| *known)))
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let nearest = known.map(|known| (typos(name, known), known)).min();
    match nearest.filter(|(typos, known)| *typos <= TYPOS_MAX.min(known.len() / 2)) {
        Some((_, known)) => format!("there is no {what} {name}: did you mean {known}?"),
        None => format!("there is no {what} {name}; `burnet attack --list` has them all"),
    }
}

/// How many letters are to be changed, added or taken out to make one word of the other.
fn typos(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, wanted) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::super::case::By;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_case_has_a_name_of_its_own_and_its_app_knows_it() {
        let names: BTreeSet<&str> = all().map(|case| case.name).collect();
        assert_eq!(names.len(), all().count());
        for case in all().filter(|case| matches!(case.by, By::App(_))) {
            assert!(misbehaving::Harm::find(case.name).is_some(), "{}", case.name);
        }
    }

    #[test]
    fn there_are_a_hundred_and_each_family_has_some() {
        assert!(all().count() >= 100, "{}", all().count());
        for (at, (family, name, _)) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family as usize, at, "{name} is not in its place");
            assert!(all().any(|case| case.family == family), "{name} has no attack");
        }
    }

    #[test]
    fn each_family_that_was_found_open_has_some_and_each_case_says_in_a_line_what_it_tries() {
        for name in [
            "vendors",
            "identity",
            "indirect-effects",
            "amplification",
            "defaults",
            "shadowing",
            "folders",
            "operator",
            "signers",
        ] {
            let family = family(name).unwrap();
            assert!(all().any(|case| case.family == family) && !family.promise().is_empty(), "{name}");
        }
        for Case { name, what, .. } in all() {
            let is_a_line = (4..=90).contains(&what.len()) && !what.contains('\n') && !what.ends_with('.');
            assert!(is_a_line, "{name}: {what}");
        }
    }

    #[test]
    fn who_mistypes_is_told_what_was_meant() {
        assert_eq!(find("fork-bom").unwrap_err(), "there is no attack fork-bom: did you mean fork-bomb?");
        assert_eq!(family("identify").unwrap_err(), "there is no family identify: did you mean identity?");
        assert!(find("kindness").unwrap_err().contains("`burnet attack --list` has them all"));
        assert!(find("fork-bomb").is_ok() && family("body").is_ok());
    }
}
