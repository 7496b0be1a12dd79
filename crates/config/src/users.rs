//! The user id of each app, if the node runs as root.
//!
//! In: the first number of a range, the ids of earlier nodes, and the apps' names. Out: a user and group id for each
//! name. An app keeps its id while the state folder stores it, whatever else is installed, because the app's files
//! belong to that user.
//! It looks up no user. The range must belong to no other program.

use std::collections::{BTreeMap, BTreeSet};

/// The default first id of the range. systemd and its containers assign none of these ids (systemd.io/UIDS-GIDS).
pub const BASE: u32 = 1_900_000_000;

/// How many ids the range has. With 63 apps, two names collide in 3 of 100 nodes, and with 1,000 apps in nearly all.
/// Then the second app gets the next free id.
pub const IDS: u32 = 1 << 16;

/// How many names are stored. Beyond that, the names of apps that the node no longer has are deleted.
const KEPT_MAX: usize = 4_096;

/// The highest first id with which the whole range fits. The highest id of all means no user.
pub const BASE_MAX: u32 = u32::MAX - IDS;

/// The id of each app: the stored one, or else a free one.
#[must_use]
pub fn of_apps<'n>(
    base: u32,
    kept: &BTreeMap<String, u32>,
    names: impl IntoIterator<Item = &'n str>,
) -> BTreeMap<String, u32> {
    let range = base..base.saturating_add(IDS);
    let mut taken: BTreeSet<u32> = kept.values().copied().collect();
    let mut given: BTreeMap<String, u32> = BTreeMap::new();
    for name in names {
        // The stored ids may have been edited by hand, but two apps of a node never share one.
        let is_own = |id: &u32| range.contains(id) && !given.values().any(|other| other == id);
        let id = kept.get(name).copied().filter(is_own).unwrap_or_else(|| free(base, &taken, name));
        taken.insert(id);
        given.insert(name.to_owned(), id);
    }
    given
}

fn free(base: u32, taken: &BTreeSet<u32>, name: &str) -> u32 {
    let wanted = hash(name) % IDS;
    let ids = (0..IDS).map(|step| base.saturating_add((wanted + step) % IDS));
    // Fewer ids are stored than exist, so one is free.
    ids.into_iter().find(|id| !taken.contains(id)).unwrap_or(base)
}

/// What to store from now on. `None` if it has not changed.
#[must_use]
pub fn to_keep(kept: &BTreeMap<String, u32>, given: &BTreeMap<String, u32>) -> Option<BTreeMap<String, u32>> {
    let mut all = kept.clone();
    all.extend(given.clone());
    if all.len() > KEPT_MAX {
        all.retain(|name, _| given.contains_key(name));
    }
    (all != *kept).then_some(all)
}

/// FNV-1a with 32 bits. It must stay the same in all releases, which the standard library does not promise for its
/// hash.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh<const N: usize>(names: [&str; N]) -> BTreeMap<String, u32> {
        of_apps(BASE, &BTreeMap::new(), names)
    }

    #[test]
    fn nobody_shares_a_user_though_the_hashes_meet() {
        let names: Vec<String> = (0..1000).map(|number| format!("app-{number}")).collect();
        let given = of_apps(BASE, &BTreeMap::new(), names.iter().map(String::as_str));
        let ids: BTreeSet<u32> = given.values().copied().collect();
        assert_eq!(ids.len(), names.len());
        assert!(ids.iter().all(|id| (BASE..BASE + IDS).contains(id)));
    }

    #[test]
    fn the_end_of_the_range_is_an_id() {
        assert!(of_apps(BASE_MAX, &BTreeMap::new(), ["hub"])["hub"] < u32::MAX);
    }

    #[test]
    fn an_app_keeps_its_user_when_other_apps_come_and_go() {
        let alone = fresh(["hub"]);
        assert_eq!(fresh(["learning-switch", "firewall", "hub"])["hub"], alone["hub"]);
        // Existing files belong to this id.
        assert_eq!(alone["hub"], 1_900_025_836);
    }

    #[test]
    fn an_app_whose_hash_meets_another_keeps_its_user_when_that_comes_or_goes() {
        let met = |name: &str| {
            (0..).map(|number| format!("app-{number}")).find(|other| hash(other) % IDS == hash(name) % IDS)
        };
        let other = met("hub").unwrap();
        let first = fresh(["hub"]);
        let both = of_apps(BASE, &first, [other.as_str(), "hub"]);
        assert_eq!(both["hub"], first["hub"]);
        assert_ne!(both[&other], both["hub"]);
        let kept = to_keep(&first, &both).unwrap();
        assert_eq!(of_apps(BASE, &kept, [other.as_str()])[&other], both[&other]);
        assert_eq!(to_keep(&kept, &both), None);
    }

    #[test]
    fn what_is_kept_is_used_only_as_far_as_it_can_be() {
        let kept = BTreeMap::from([("a".to_owned(), 0), ("b".to_owned(), BASE), ("c".to_owned(), BASE)]);
        let given = of_apps(BASE, &kept, ["a", "b", "c"]);
        let ids: BTreeSet<u32> = given.values().copied().collect();
        assert_eq!((given["b"], ids.len()), (BASE, 3));
        assert!(!ids.contains(&0));
    }

    #[test]
    fn names_of_apps_that_are_gone_are_forgotten_when_there_are_too_many() {
        let kept: BTreeMap<_, _> = (0..KEPT_MAX).map(|number| (format!("gone-{number}"), BASE)).collect();
        let given = fresh(["hub"]);
        assert_eq!(to_keep(&kept, &given), Some(given));
    }
}
