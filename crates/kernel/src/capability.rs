//! The capabilities of a zone: their names, and sets of them.
//!
//! Nothing is granted by default. The operator grants, and the node passes the grant when it attaches the zone. This
//! file knows neither the source of a grant nor its bounds; [`crate::grant`] holds the bounds.

use std::fmt;

/// Something that an app may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Capability {
    /// Receive packet-ins.
    PacketIn,
    /// Send packets.
    PacketOut,
    /// Add, change and delete its own rules, groups and meters.
    RuleWrite,
    /// Change and delete the rules of others.
    RuleWriteOthers,
    /// Delete rules that no app of this node added, each by its whole cookie.
    RuleDeleteForeign,
    /// See the rules, groups and meters of others.
    RuleRead,
    /// Ask switches for statistics.
    StatsRead,
    /// Receive events about switches, ports and removed rules.
    ViewRead,
    /// Write notes into the network view.
    ViewAnnotate,
    /// Receive events about hosts.
    HostRead,
    /// Change ports.
    PortWrite,
    /// Use vendors' extensions of OpenFlow: their actions, instructions, fields, bands and statistics. The kernel does
    /// not know their effects, so no other capability implies this one.
    Vendor,
    /// Send queries to services.
    Query,
    /// Publish on topics.
    Publish,
    /// Receive publications.
    Subscribe,
}

const NAMES: [(Capability, &str); 15] = [
    (Capability::PacketIn, "packet.in"),
    (Capability::PacketOut, "packet.out"),
    (Capability::RuleWrite, "rule.write"),
    (Capability::RuleWriteOthers, "rule.write.others"),
    (Capability::RuleDeleteForeign, "rule.delete.foreign"),
    (Capability::RuleRead, "rule.read"),
    (Capability::StatsRead, "stats.read"),
    (Capability::ViewRead, "view.read"),
    (Capability::ViewAnnotate, "view.annotate"),
    (Capability::HostRead, "host.read"),
    (Capability::PortWrite, "port.write"),
    (Capability::Vendor, "vendor"),
    (Capability::Query, "query"),
    (Capability::Publish, "publish"),
    (Capability::Subscribe, "subscribe"),
];

impl Capability {
    /// The capabilities that `--grant-all` gives to an app without a grant of its own: most of those that apps use,
    /// without bounds. The list is explicit, so that an app gets a new capability only after a developer adds it here.
    /// It leaves out write access to other apps' rules and vendors' extensions. It also gives no right that a service
    /// defines.
    pub const GRANT_ALL: [Capability; 12] = [
        Capability::PacketIn,
        Capability::PacketOut,
        Capability::RuleWrite,
        Capability::RuleRead,
        Capability::StatsRead,
        Capability::ViewRead,
        Capability::ViewAnnotate,
        Capability::HostRead,
        Capability::PortWrite,
        Capability::Query,
        Capability::Publish,
        Capability::Subscribe,
    ];

    /// Every capability.
    pub fn all() -> impl Iterator<Item = Capability> {
        NAMES.iter().map(|(capability, _)| *capability)
    }

    /// Its name in a manifest.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The capability of this name.
    pub fn from_name(wanted: &str) -> Option<Capability> {
        NAMES.iter().find(|(_, name)| *name == wanted).map(|(capability, _)| *capability)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Adds one capability.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Capabilities {
        Capabilities(self.0 | 1 << capability as u8)
    }

    /// Removes one capability.
    #[must_use]
    pub const fn without(self, capability: Capability) -> Capabilities {
        Capabilities(self.0 & !(1 << capability as u8))
    }

    /// Whether the set contains this capability.
    #[inline]
    pub const fn allow(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_names_is_in_the_order_of_the_capabilities() {
        for (number, (capability, name)) in NAMES.iter().enumerate() {
            assert_eq!(*capability as usize, number, "{name}");
            assert_eq!(Capability::from_name(name), Some(*capability));
        }
        assert_eq!(Capability::from_name("rule"), None);
    }

    #[test]
    fn nothing_is_granted_by_default() {
        assert!(Capability::all().all(|capability| !Capabilities::default().allow(capability)));
    }

    #[test]
    fn grant_all_gives_neither_the_rules_of_others_nor_vendors_extensions() {
        let given = |capability| Capability::GRANT_ALL.contains(&capability);
        assert!(given(Capability::RuleWrite));
        assert!(!given(Capability::RuleWriteOthers) && !given(Capability::Vendor));
    }
}
