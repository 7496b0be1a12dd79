//! Attacks by commands of an app to switches and its queries to services.

use openflow::Version;

use super::super::case::{
    ASKS, BOUNDED, Case, FEW_RULES, Family, Must, NO_CAPABILITY, On, USUAL_WITH_NAMES, granted,
};
use super::{V13, usual};

const V10: On = On::Only(Version::V1_0);

/// An app that may write rules of low priorities.
const LOW: &str = granted!("\"rule.write\" = { priority = [1, 100] }");

/// An app with most capabilities, but without `rule.write`.
const WITHOUT_RULES: &str =
    granted!("\"packet.in\" = true", "\"packet.out\" = true", "\"stats.read\" = true");

pub(super) const OWNERS: &[Case] = &[
    usual(Family::Commands, "forged-datapath", "commands a switch that does not exist", Must::BeRefused),
    usual(
        Family::Commands,
        "forged-cookie",
        "writes rules whose cookie names another owner",
        Must::OwnItsRules,
    ),
    usual(Family::Commands, "change-others", "changes the firewall's rule", Must::HurtNobody),
    usual(Family::Commands, "replace-others", "replaces the firewall's rule by an add", Must::BeRefused),
    usual(Family::Commands, "delete-others", "deletes the firewall's rule", Must::HurtNobody),
    usual(Family::Commands, "clear-tables", "deletes every rule in every table", Must::HurtNobody),
    Case::app(
        Family::Commands,
        "table-flood",
        "adds 20,000 rules to each switch",
        FEW_RULES,
        Must::BeLimited,
    ),
    usual(Family::Commands, "rule-flood", "adds the same rule 20,000 times to each switch", Must::HurtNobody),
    usual(Family::Commands, "packet-out-flood", "sends 20,000 packets from each switch", Must::HurtNobody),
    Case::app(
        Family::Commands,
        "uninvited",
        "subscribes, commands and asks without a capability",
        NO_CAPABILITY,
        Must::BeRefused,
    ),
    usual(
        Family::Commands,
        "malformed",
        "sends rules with a malformed match or malformed actions",
        Must::BeRefused,
    ),
    Case::app(
        Family::Commands,
        "rewrite-escape",
        "writes a rule whose actions lead out of its flowspace",
        BOUNDED,
        Must::BeRefused,
    ),
    Case::app(
        Family::Commands,
        "silence-all",
        "limits the packet-ins of all apps by a meter",
        BOUNDED,
        Must::BeRefused,
    )
    .on(V13),
    usual(
        Family::Commands,
        "output-flood",
        "adds a rule of 16 KB 600 times to each switch at once",
        Must::HurtNobody,
    ),
    Case::app(
        Family::Commands,
        "ask-flood",
        "queries another app faster than it reads",
        ASKS,
        Must::BeLimited,
    )
    .on(On::Any),
];

pub(super) const VENDORS: &[Case] = &[
    usual(
        Family::Vendors,
        "learn-by-packet-out",
        "makes a packet-out learn a rule that replaces the firewall's",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "learn-by-rule",
        "adds a rule that learns rules which replace the firewall's",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "delete-learned",
        "adds a rule whose removal also removes the firewall's",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "resubmit-packet-out",
        "sends a packet through the tables with another input port",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "resubmit-rule",
        "adds a rule that sends packets through the tables again",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "load-field",
        "writes into a field by another name than OpenFlow's",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "output-register",
        "sends to the port whose number is in a register",
        Must::BeRefused,
    ),
    usual(
        Family::Vendors,
        "controller-action",
        "sends packet-ins by an action other than output",
        Must::BeRefused,
    ),
    usual(Family::Vendors, "clone-action", "hides an output in a clone", Must::BeRefused),
    usual(Family::Vendors, "conntrack-action", "sends packets through connection tracking", Must::BeRefused),
    usual(Family::Vendors, "unknown-vendor-action", "uses an action of an unknown vendor", Must::BeRefused),
    usual(Family::Vendors, "vendor-set-field", "sets a register in a packet-out", Must::BeRefused).on(V13),
    usual(
        Family::Vendors,
        "unknown-oxm-class",
        "matches fields of an unknown class, and a register",
        Must::BeRefused,
    ),
    usual(Family::Vendors, "experimenter-field", "matches an experimenter's field", Must::BeRefused),
    usual(
        Family::Vendors,
        "experimenter-instruction",
        "adds a rule with an experimenter's instruction",
        Must::BeRefused,
    )
    .on(V13),
    usual(Family::Vendors, "experimenter-band", "makes a meter with an experimenter's band", Must::BeRefused)
        .on(V13),
    usual(
        Family::Vendors,
        "experimenter-statistics",
        "requests a report of every change of every rule",
        Must::BeRefused,
    ),
];

pub(super) const IDENTITY: &[Case] = &[
    Case::app(
        Family::Identity,
        "alias-of-field",
        "adds the firewall's rule with Nicira's names of its fields",
        USUAL_WITH_NAMES,
        Must::BeRefused,
    ),
    Case::app(
        Family::Identity,
        "zero-register",
        "adds the firewall's rule with a register whose mask is zero",
        USUAL_WITH_NAMES,
        Must::BeRefused,
    ),
    usual(Family::Identity, "ones-mask", "adds the firewall's rule with masks of all ones", Must::BeRefused),
    usual(
        Family::Identity,
        "zero-mask",
        "adds the firewall's rule with a field whose mask is zero",
        Must::BeRefused,
    ),
    usual(
        Family::Identity,
        "other-order",
        "adds the firewall's rule with its fields in another order",
        Must::BeRefused,
    ),
    Case::app(
        Family::Identity,
        "delete-by-alias",
        "deletes the firewall's rule by other names of its fields",
        USUAL_WITH_NAMES,
        Must::HoldOff,
    ),
    Case::app(
        Family::Identity,
        "modify-by-alias",
        "changes the firewall's rule by other names of its fields",
        USUAL_WITH_NAMES,
        Must::HoldOff,
    ),
    usual(Family::Identity, "miss-rule", "replaces the table-miss rule", Must::BeRefused),
    Case::app(
        Family::Identity,
        "miss-rule-by-register",
        "does so with a register whose mask is zero",
        USUAL_WITH_NAMES,
        Must::BeRefused,
    ),
    usual(
        Family::Identity,
        "table-255",
        "names a table that 1.0 does not have to reach the firewall's rule",
        Must::HoldOff,
    )
    .on(V10),
    Case::app(
        Family::Identity,
        "exact-priority",
        "exceeds its priorities with an exact match, which is above all others in 1.0",
        LOW,
        Must::BeRefused,
    )
    .on(V10),
    Case::app(
        Family::Identity,
        "untagged-priority",
        "opens what the firewall blocks by a match of all fields, which 1.0 may put on top",
        LOW,
        Must::HoldOff,
    ),
    usual(
        Family::Identity,
        "ignored-field",
        "adds the firewall's rule with a field that 1.0 ignores",
        Must::HoldOff,
    ),
];

/// Commands without a capability, and granted commands that would override other apps' rules.
pub(super) const RIGHTS: &[Case] = &[
    Case::app(
        Family::Defaults,
        "without-packet-out",
        "sends packets without packet.out",
        granted!("\"packet.in\" = true", "\"rule.write\" = true", "\"stats.read\" = true"),
        Must::BeRefused,
    ),
    Case::app(
        Family::Defaults,
        "without-rule-write",
        "adds and deletes rules without rule.write",
        WITHOUT_RULES,
        Must::BeRefused,
    ),
    Case::app(
        Family::Defaults,
        "without-groups",
        "makes groups and meters without rule.write",
        WITHOUT_RULES,
        Must::BeRefused,
    )
    .on(V13),
    Case::app(
        Family::Defaults,
        "without-stats-read",
        "requests statistics without stats.read",
        granted!("\"packet.in\" = true", "\"packet.out\" = true", "\"rule.write\" = true"),
        Must::BeRefused,
    ),
    usual(Family::Defaults, "without-port-write", "takes ports down without port.write", Must::BeRefused),
    Case::app(
        Family::Defaults,
        "without-packet-in",
        "sends packet-ins without packet.in",
        granted!("\"packet.out\" = true", "\"rule.write\" = true", "\"stats.read\" = true"),
        Must::BeRefused,
    ),
    Case::app(
        Family::Defaults,
        "without-buffers",
        "forwards buffered packets without packet.in",
        granted!("\"packet.out\" = true", "\"rule.write\" = true", "\"stats.read\" = true"),
        Must::BeRefused,
    ),
    Case::app(
        Family::Defaults,
        "without-barrier",
        "requests a barrier with only view.read",
        granted!(),
        Must::BeRefused,
    ),
    usual(Family::Defaults, "without-query", "queries a service without query", Must::BeRefused).on(On::Any),
    usual(
        Family::Defaults,
        "without-store",
        "uses the store without store.read and store.write",
        Must::BeRefused,
    )
    .on(On::Any),
    usual(Family::Defaults, "without-vendor", "uses a vendor's action without vendor", Must::BeRefused),
    usual(
        Family::Defaults,
        "without-others-meters",
        "limits packet-ins by a meter without rule.write.others",
        Must::BeRefused,
    )
    .on(V13),
    usual(
        Family::Shadowing,
        "shadow-higher",
        "forwards blocked packets by a rule with a higher priority than the firewall's",
        Must::HoldOff,
    ),
    usual(
        Family::Shadowing,
        "shadow-wider",
        "forwards all IPv4 packets by a rule with a higher priority",
        Must::HoldOff,
    ),
    usual(
        Family::Shadowing,
        "shadow-narrower",
        "forwards blocked pings by a narrower rule with the firewall's priority",
        Must::HoldOff,
    ),
    usual(
        Family::Shadowing,
        "shadow-drop",
        "drops every packet by a rule with the highest priority",
        Must::HoldOff,
    ),
    usual(Family::Shadowing, "shadow-goto", "sends every packet to a table without rules", Must::HoldOff)
        .on(V13),
    usual(
        Family::Shadowing,
        "undercut",
        "handles table misses so that the learning switch does not receive them",
        Must::HoldOff,
    ),
    usual(Family::Shadowing, "shadow-by-port", "drops all packets of each port", Must::HoldOff),
];
