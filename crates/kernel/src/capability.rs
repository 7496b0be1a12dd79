//! What a zone may do.
//!
//! Nothing is granted by default; the operator's word, carried by whoever attaches the zone, is what grants. Never knows where a
//! grant came from. Restrictions within a capability (a flowspace, tables, priorities) and quotas belong here as well.

use std::fmt;

/// Something that an app may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Capability {
    /// Hear packet-ins.
    PacketIn,
    /// Send packets.
    PacketOut,
    /// Add, change and delete its own rules, groups and meters.
    RuleWrite,
    /// Change and delete the rules of others.
    RuleWriteOthers,
    /// Ask switches for statistics.
    StatsRead,
    /// Hear of switches, ports and rules that went.
    ViewRead,
    /// Change ports.
    PortWrite,
    /// Ask services.
    Query,
    /// Publish on topics.
    Publish,
    /// Hear what is published.
    Subscribe,
}

const NAMES: [(Capability, &str); 10] = [
    (Capability::PacketIn, "packet.in"),
    (Capability::PacketOut, "packet.out"),
    (Capability::RuleWrite, "rule.write"),
    (Capability::RuleWriteOthers, "rule.write.others"),
    (Capability::StatsRead, "stats.read"),
    (Capability::ViewRead, "view.read"),
    (Capability::PortWrite, "port.write"),
    (Capability::Query, "query"),
    (Capability::Publish, "publish"),
    (Capability::Subscribe, "subscribe"),
];

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[*self as usize].1)
    }
}

/// The capabilities that a zone holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// None.
    pub const NONE: Capabilities = Capabilities(0);

    /// What an app gets that the operator started by name: everything but the rules of others.
    pub fn of_an_app() -> Capabilities {
        NAMES
            .iter()
            .filter(|(capability, _)| *capability != Capability::RuleWriteOthers)
            .fold(Capabilities::NONE, |all, (capability, _)| all.with(*capability))
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Capabilities {
        Capabilities(self.0 | 1 << capability as u8)
    }

    /// Whether it is among them.
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
        }
    }

    #[test]
    fn nothing_is_granted_by_default() {
        assert!(NAMES.iter().all(|(capability, _)| !Capabilities::default().allow(*capability)));
    }

    #[test]
    fn an_app_may_not_touch_the_rules_of_others() {
        assert!(Capabilities::of_an_app().allow(Capability::RuleWrite));
        assert!(!Capabilities::of_an_app().allow(Capability::RuleWriteOthers));
    }
}
