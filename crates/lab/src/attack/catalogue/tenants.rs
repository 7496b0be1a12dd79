//! Attacks by a tenant's controller, over the connections of the virtual switches of its slice.

use openflow::Version;

use super::super::case::{By, Case, Family, Must, On};
use super::super::tenant_words::TenantAttack;

const fn tenant(name: &'static str, what: &'static str, attack: TenantAttack, must: Must) -> Case {
    Case::by(Family::Tenants, name, what, By::Tenant(attack), must).on(On::Every)
}

/// What OpenFlow 1.0 does not have.
const fn tenant_of_1_3(name: &'static str, what: &'static str, attack: TenantAttack, must: Must) -> Case {
    tenant(name, what, attack, must).on(On::Only(Version::V1_3))
}

/// Each message is answered by an error, and the session lives.
const REFUSED: Must = Must::BeTurnedAway("all refused");

pub(super) const CASES: &[Case] = &[
    tenant(
        "tenant-silent",
        "accepts the connections of its virtual switches, and says nothing",
        TenantAttack::Silent,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-half-a-message",
        "begins a long message on each connection, and does not complete it",
        TenantAttack::HalfAMessage,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-newer-version",
        "offers only OpenFlow 1.5",
        TenantAttack::NewerVersionOnly,
        Must::BeCutOff,
    ),
    tenant("tenant-garbage", "sends bytes that are no message", TenantAttack::Garbage, Must::BeCutOff),
    tenant(
        "tenant-bad-length",
        "sends a message that is shorter than its header",
        TenantAttack::BadLength,
        Must::BeCutOff,
    ),
    tenant(
        "tenant-never-reads",
        "asks without end, and reads no answer",
        TenantAttack::NeverReads,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-reconnect-storm",
        "closes each connection as soon as it is there",
        TenantAttack::ReconnectStorm,
        Must::HurtNobody,
    ),
    tenant("tenant-rule-outside", "adds rules for packets of others", TenantAttack::RuleOutside, REFUSED),
    tenant(
        "tenant-foreign-port-rule",
        "adds a rule for packets from a port of others",
        TenantAttack::RuleOnForeignPort,
        REFUSED,
    ),
    tenant(
        "tenant-output-outside",
        "adds rules that send to a port of others, to NORMAL and to LOCAL",
        TenantAttack::OutputOutside,
        REFUSED,
    ),
    tenant(
        "tenant-rewrite-outside",
        "adds rules that make its packets look like those of others",
        TenantAttack::RewriteOutside,
        REFUSED,
    ),
    tenant_of_1_3(
        "tenant-foreign-group",
        "sends to a group that it did not make, and changes it",
        TenantAttack::ForeignGroup,
        REFUSED,
    ),
    tenant_of_1_3(
        "tenant-foreign-meter",
        "uses a meter that it did not make, and changes it",
        TenantAttack::ForeignMeter,
        REFUSED,
    ),
    tenant_of_1_3(
        "tenant-foreign-table",
        "adds rules in tables that its switch does not show",
        TenantAttack::ForeignTable,
        REFUSED,
    ),
    tenant(
        "tenant-foreign-buffer",
        "takes packets from buffers that it was not given",
        TenantAttack::ForeignBuffer,
        REFUSED,
    ),
    tenant("tenant-packet-outside", "sends packets of others", TenantAttack::PacketOutside, REFUSED),
    tenant("tenant-vendor", "sends messages of vendors", TenantAttack::ForeignVendor, REFUSED),
    tenant(
        "tenant-take-all",
        "drops all packets, with the highest priority",
        TenantAttack::TakeAll,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-delete-all",
        "deletes all rules, groups and meters",
        TenantAttack::DeleteAll,
        Must::HurtNobody,
    ),
    tenant("tenant-modify-all", "gives all rules other actions", TenantAttack::ModifyAll, Must::HurtNobody),
    tenant("tenant-ports-down", "takes its ports down", TenantAttack::PortsDown, Must::HurtNobody),
    tenant(
        "tenant-configure",
        "configures its switches to send no packet and to continue on a miss",
        TenantAttack::Configure,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-forge-links",
        "sends probes for links that name switches of others",
        TenantAttack::ForgeLinks,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-role-storm",
        "asks for the role of the master without end",
        TenantAttack::RoleStorm,
        Must::HurtNobody,
    ),
    tenant("tenant-rule-flood", "adds rules as fast as possible", TenantAttack::RuleFlood, Must::HurtNobody),
    tenant(
        "tenant-packet-flood",
        "sends packets as fast as possible",
        TenantAttack::PacketFlood,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-question-flood",
        "asks for statistics as fast as possible",
        TenantAttack::QuestionFlood,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-group-flood",
        "makes groups as fast as possible",
        TenantAttack::GroupFlood,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-barrier-flood",
        "sends barriers as fast as possible",
        TenantAttack::BarrierFlood,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-cookie-masks",
        "changes and deletes rules by all cookies, and by those of each owner",
        TenantAttack::CookieMasks,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-group-chain",
        "makes groups that lead to groups of others, or watch their ports",
        TenantAttack::GroupChain,
        REFUSED,
    ),
    tenant_of_1_3(
        "tenant-reserved-meters",
        "makes meters for the controller, the slow path, and all",
        TenantAttack::ReservedMeters,
        REFUSED,
    ),
    tenant(
        "tenant-replayed-buffer",
        "takes a packet from its buffer twice, on another connection",
        TenantAttack::ReplayedBuffer,
        REFUSED,
    ),
    tenant("tenant-tag-in-match", "adds rules for tags of others", TenantAttack::TagInMatch, REFUSED),
    tenant(
        "tenant-tag-in-action",
        "adds rules that write tags of others",
        TenantAttack::TagInAction,
        REFUSED,
    ),
    tenant(
        "tenant-removed-flood",
        "adds rules as fast as possible that end at once and tell so",
        TenantAttack::RemovedFlood,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-endless-request",
        "begins a request in parts, and never ends it",
        TenantAttack::EndlessRequest,
        Must::HurtNobody,
    ),
    tenant_of_1_3(
        "tenant-old-generations",
        "asks for roles with generations that are over",
        TenantAttack::OldGenerations,
        REFUSED,
    ),
    tenant_of_1_3(
        "tenant-async-storm",
        "wants all messages and none, in turn",
        TenantAttack::AsyncStorm,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-stacked-probes",
        "sends probes for links behind one tag and behind two",
        TenantAttack::StackedProbes,
        Must::HurtNobody,
    ),
    tenant(
        "tenant-foreign-sender",
        "sends ARP and IPv4 in the name of hosts that it does not have",
        TenantAttack::ForeignSender,
        REFUSED,
    ),
    tenant(
        "tenant-foreign-in-port",
        "sends packets as if they had come in by ports of others",
        TenantAttack::ForeignInPort,
        REFUSED,
    ),
    tenant(
        "tenant-odd-actions",
        "adds rules whose actions have no length, and more length than there is",
        TenantAttack::OddActions,
        REFUSED,
    ),
    tenant(
        "tenant-copy-flood",
        "sends packets that leave a thousand times each",
        TenantAttack::CopyFlood,
        Must::HurtNobody,
    ),
    tenant("tenant-foreign-ports", "takes ports of others down", TenantAttack::ForeignPorts, REFUSED),
];
