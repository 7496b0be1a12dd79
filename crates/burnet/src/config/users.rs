//! Which user each app becomes where the node runs as root.
//!
//! In: the first number of a range, and the apps' names. Out: a user and group id for each name. An app has the same one for as long as
//! it has its name, whatever is installed beside it, because files that it wrote belong to that user.
//! It looks up no user: the range is meant to be nobody else's.

/// The first id of the range, if the operator says no other: systemd and its containers give out none of these
/// (systemd.io/UIDS-GIDS).
pub const BASE: u32 = 1_900_000_000;

/// How many ids the range has: enough that two names of 63 fall onto one id in three of a hundred nodes, and then the second has the next.
pub const IDS: u32 = 1 << 16;

/// The highest first id with which the whole range is there; the last id of all means none.
pub const BASE_MAX: u32 = u32::MAX - IDS;

/// The id of each app, in their order.
#[must_use]
pub fn of_apps<'n>(base: u32, names: impl IntoIterator<Item = &'n str>) -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::new();
    for name in names {
        let wanted = hash(name) % IDS;
        // Fewer apps than ids, so one is free.
        let free = (0..IDS).map(|step| base.saturating_add((wanted + step) % IDS));
        let id = free.into_iter().find(|id| !taken.contains(id)).unwrap_or(base);
        taken.push(id);
    }
    taken
}

/// FNV-1a in 32 bits: it must stay the same from release to release, which the standard library's does not promise.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_shares_a_user_though_the_hashes_meet() {
        let names: Vec<String> = (0..1000).map(|number| format!("app-{number}")).collect();
        let mut ids = of_apps(BASE, names.iter().map(String::as_str));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), names.len());
        assert!(ids.iter().all(|id| (BASE..BASE + IDS).contains(id)));
    }

    #[test]
    fn the_end_of_the_range_is_an_id() {
        assert!(of_apps(BASE_MAX, ["hub"])[0] < u32::MAX);
    }

    #[test]
    fn an_app_keeps_its_user_whoever_else_is_there() {
        let alone = of_apps(BASE, ["hub"]);
        assert_eq!(of_apps(BASE, ["learning-switch", "firewall", "hub"])[2], alone[0]);
        // Files in the field belong to it.
        assert_eq!(alone, [1_900_025_836]);
    }
}
