//! On which switches attacks are tried: of which kind, and in which version of OpenFlow.
//!
//! In: what was asked for on the command line. Out: the combinations. It starts nothing.

use std::fmt;

use clap::ValueEnum;
use openflow::Version;

use super::case::{Case, Family, On};

/// A kind of switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchKind {
    /// Burnet's own, in this process
    Emulated,
    /// Open vSwitch, started for the trial alone, with its user-space datapath
    Ovs,
}

/// What versions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Versions {
    /// OpenFlow 1.0
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3")]
    V1_3,
    /// Both, one after the other
    All,
}

/// What tenants speak, if it is not what the switches speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TenantVersion {
    /// OpenFlow 1.0
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3")]
    V1_3,
}

impl TenantVersion {
    fn version(self) -> Version {
        match self {
            TenantVersion::V1_0 => Version::V1_0,
            TenantVersion::V1_3 => Version::V1_3,
        }
    }
}

/// Switches of one kind that speak one version, and what an attacking tenant speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    pub kind: SwitchKind,
    pub version: Version,
    pub tenant: Version,
}

impl Combination {
    /// Those that were asked for. A tenant speaks what the switches speak, unless something else was asked for.
    pub fn asked(kind: SwitchKind, versions: Versions, tenant: Option<TenantVersion>) -> Vec<Combination> {
        let versions = match versions {
            Versions::V1_0 => &[Version::V1_0][..],
            Versions::V1_3 => &[Version::V1_3],
            Versions::All => &[Version::V1_3, Version::V1_0],
        };
        let of = |version: &Version| {
            let tenant = tenant.map_or(*version, TenantVersion::version);
            Combination { kind, version: *version, tenant }
        };
        versions.iter().map(of).collect()
    }

    /// The kind's name on the command line.
    pub fn kind_name(self) -> &'static str {
        match self.kind {
            SwitchKind::Emulated => "emulated",
            SwitchKind::Ovs => "ovs",
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind_name(), self.version)
    }
}

/// Each case with each combination on which it is to be tried.
pub fn pairs<'c>(cases: &[&'c Case], asked: &[Combination]) -> Vec<(&'c Case, Combination)> {
    let of_case = |case: &'c Case| {
        asked.iter().enumerate().filter(move |(at, combination)| match case.on {
            On::Every => true,
            On::Only(version) if case.family == Family::Tenants => combination.tenant == version,
            On::Only(version) => combination.version == version,
            On::Any => *at == 0,
        })
    };
    cases.iter().flat_map(|case| of_case(case).map(|(_, combination)| (*case, *combination))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    fn tried(name: &str, versions: Versions) -> Vec<Version> {
        let case = catalogue::find(name).unwrap();
        let pairs = pairs(&[case], &Combination::asked(SwitchKind::Emulated, versions, None));
        pairs.into_iter().map(|(_, combination)| combination.version).collect()
    }

    #[test]
    fn what_has_to_do_with_switches_is_tried_in_each_version_that_has_it() {
        assert_eq!(tried("replace-others", Versions::All), [Version::V1_3, Version::V1_0]);
        assert_eq!(tried("replace-others", Versions::V1_0), [Version::V1_0]);
        assert_eq!(tried("table-255", Versions::All), [Version::V1_0]);
        assert_eq!(tried("table-255", Versions::V1_3), []);
        assert_eq!(tried("fork-bomb", Versions::All), [Version::V1_3]);
        assert_eq!(tried("fork-bomb", Versions::V1_0), [Version::V1_0]);
        assert_eq!(tried("tenant-role-storm", Versions::V1_0), [], "1.0 has no roles");
    }

    #[test]
    fn a_tenant_speaks_what_is_asked_for() {
        let case = catalogue::find("tenant-role-storm").unwrap();
        let asked = Combination::asked(SwitchKind::Emulated, Versions::V1_0, Some(TenantVersion::V1_3));
        let pairs = pairs(&[case], &asked);
        assert_eq!((pairs[0].1.version, pairs[0].1.tenant), (Version::V1_0, Version::V1_3));
    }
}
