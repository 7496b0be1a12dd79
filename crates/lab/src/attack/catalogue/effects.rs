//! Attacks through groups, tables and the controller, and commands whose effects are far larger than the commands.

use super::super::case::{
    ASKS_FOR_ADDRESSES, BOUNDED, Case, DEAF, FIRST_PORT, Family, Must, OWN_FRAMES, USUAL_AND_ASKS_LITTLE,
    USUAL_AND_CAUSES_FEW, USUAL_WITH_QUOTAS,
};
use super::{V13, usual};

pub(super) const INDIRECT_EFFECTS: &[Case] = &[
    Case::app(
        Family::IndirectEffects,
        "forge-by-group",
        "turns its ARP requests into another host's answers by its own group",
        ASKS_FOR_ADDRESSES,
        Must::KeepWithin,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "forge-by-table",
        "sends frames into the tables, where its own rule sends them with another host's address",
        OWN_FRAMES,
        Must::KeepWithin,
    ),
    Case::app(
        Family::IndirectEffects,
        "ports-by-group",
        "sends to a forbidden port by a group",
        FIRST_PORT,
        Must::KeepWithin,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "ports-by-chain",
        "sends to a forbidden port by a chain of three groups",
        FIRST_PORT,
        Must::KeepWithin,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "group-changed-later",
        "changes a group that its rules and packets already use, so that it forges addresses",
        ASKS_FOR_ADDRESSES,
        Must::KeepWithin,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "controller-by-group",
        "sends packet-ins through a group, without packet.in",
        DEAF,
        Must::SendFewUp { per_s: 0, besides: 400 },
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "escape-by-action-set",
        "leaves its flowspace by an action set that a later table executes",
        BOUNDED,
        Must::BeRefused,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "escape-by-bucket",
        "leaves its flowspace by a group's bucket",
        BOUNDED,
        Must::BeRefused,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "unknown-group",
        "refers to a group that is not its own",
        BOUNDED,
        Must::BeRefused,
    )
    .on(V13),
    Case::app(
        Family::IndirectEffects,
        "unknown-meter",
        "refers to a meter that is not its own",
        BOUNDED,
        Must::BeRefused,
    )
    .on(V13),
    usual(
        Family::IndirectEffects,
        "delete-all-groups",
        "deletes the groups of all apps at once",
        Must::HoldOff,
    )
    .on(V13),
    usual(
        Family::IndirectEffects,
        "delete-all-meters",
        "deletes the meters of all apps at once",
        Must::HoldOff,
    )
    .on(V13),
];

pub(super) const AMPLIFICATION: &[Case] = &[
    Case::app(
        Family::Amplification,
        "many-outputs",
        "sends 100 packets from each switch, each with 3,500 outputs",
        USUAL_WITH_QUOTAS,
        Must::BeLimited,
    ),
    Case::app(
        Family::Amplification,
        "long-frames",
        "floods 500 frames of 8,000 bytes from each switch",
        USUAL_WITH_QUOTAS,
        Must::BeLimited,
    ),
    usual(Family::Amplification, "barrier-flood", "sends 2,000 barriers to each switch", Must::HoldOff),
    usual(Family::Amplification, "group-flood", "adds 5,000 groups in each switch", Must::BeLimited).on(V13),
    usual(Family::Amplification, "meter-flood", "adds 5,000 meters in each switch", Must::BeLimited).on(V13),
    usual(
        Family::Amplification,
        "many-floods",
        "sends 20 packets from each switch, each flooded 3,500 times",
        Must::MakeFew(200),
    ),
    usual(
        Family::Amplification,
        "group-of-groups",
        "sends 20 packets from each switch, each copied 1,200 times by nested groups",
        Must::MakeFew(200),
    )
    .on(V13),
    usual(
        Family::Amplification,
        "controller-outputs",
        "adds a rule that makes 3,500 packet-ins of each packet",
        Must::SendFewUp { per_s: 0, besides: 1_000 },
    ),
    Case::app(
        Family::Amplification,
        "packet-in-loop",
        "sends the packet of each packet-in into the tables twice, which causes more packet-ins",
        USUAL_AND_CAUSES_FEW,
        Must::SendFewUp { per_s: 100, besides: 500 },
    ),
    Case::app(
        Family::Amplification,
        "statistics-flood",
        "requests all rules of each switch 2,000 times",
        USUAL_AND_ASKS_LITTLE,
        Must::BeAnswered(100),
    ),
];
