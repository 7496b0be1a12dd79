//! Attacks from outside of a zone: with packages, at the operator's socket, and by switches.

use super::super::case::{By, Case, Family, Must, On};
use super::super::from_a_package::PackageAttack;
use super::super::from_a_switch::SwitchAttack;
use super::super::from_the_operator::OperatorAttack;

pub(super) const CASES: &[Case] = &[
    Case::by(
        Family::Packages,
        "old-package",
        "installs an old package of an app that has a newer one",
        By::Package(PackageAttack::Replay),
        Must::BeTurnedAway("is older than 2.0.0"),
    ),
    Case::by(
        Family::Packages,
        "altered-package",
        "flips a bit of an installed program and starts it again",
        By::Package(PackageAttack::Tamper),
        Must::BeTurnedAway("was altered on disk"),
    ),
    Case::by(
        Family::Packages,
        "altered-while-running",
        "flips a bit of the program of an app that runs",
        By::Package(PackageAttack::TamperRunning),
        Must::BeTurnedAway("was altered on disk"),
    ),
    Case::by(
        Family::Packages,
        "outlived-key",
        "continues to run after its key is revoked",
        By::Package(PackageAttack::OutliveKey),
        Must::BeTurnedAway("is signed with a revoked key"),
    ),
    Case::by(
        Family::Packages,
        "greedy-update",
        "updates an app to a version with more requests, which the operator has not granted",
        By::Package(PackageAttack::AskForMore),
        Must::BeTurnedAway("there is no terminal to ask on"),
    ),
    Case::by(
        Family::Signers,
        "other-signer",
        "updates an app with a package of another trusted key, without the operator's consent",
        By::Package(PackageAttack::OtherSigner),
        Must::BeTurnedAway(""),
    ),
    Case::by(
        Family::Signers,
        "same-version",
        "installs other contents under the version that is installed",
        By::Package(PackageAttack::SameVersion),
        Must::BeTurnedAway(""),
    ),
    Case::by(
        Family::Signers,
        "untrusted-signer",
        "installs a package that is signed with an untrusted key",
        By::Package(PackageAttack::UntrustedSigner),
        Must::BeTurnedAway(""),
    ),
    Case::by(
        Family::Operator,
        "operator-never-reads",
        "sends requests to the operator's socket without end, and reads no answer",
        By::Operator(OperatorAttack::NeverReads),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Operator,
        "operator-half-a-line",
        "starts a request on 100 connections and completes none",
        By::Operator(OperatorAttack::HalfALine),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Operator,
        "operator-huge-line",
        "sends a request of 64 MiB",
        By::Operator(OperatorAttack::HugeLine),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Operator,
        "operator-many-connections",
        "opens 500 connections to the operator's socket and holds them",
        By::Operator(OperatorAttack::ManyConnections),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Operator,
        "operator-garbage",
        "sends thousands of lines that are not requests",
        By::Operator(OperatorAttack::Garbage),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Switches,
        "no-hello",
        "sends a packet-in before any hello",
        By::Switch(SwitchAttack::NoHello),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "wrong-version",
        "sends a hello with a version that the node does not support",
        By::Switch(SwitchAttack::WrongVersion),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "mixed-version",
        "negotiates one version and continues in another",
        By::Switch(SwitchAttack::MixedVersion),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "bad-length",
        "sends a length that is less than a header's",
        By::Switch(SwitchAttack::BadLength),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "bad-types",
        "sends messages of types that do not exist",
        By::Switch(SwitchAttack::BadTypes),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "damaged-messages",
        "sends messages with garbage after the header",
        By::Switch(SwitchAttack::Damaged),
        Must::BeCutOff,
    ),
    Case::by(
        Family::Switches,
        "stolen-datapath",
        "connects with the datapath id of a connected switch",
        By::Switch(SwitchAttack::StolenDatapath),
        Must::BeCutOff,
    )
    .on(On::Every),
    Case::by(
        Family::Switches,
        "half-open",
        "opens 300 connections and sends nothing",
        By::Switch(SwitchAttack::HalfOpen),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Switches,
        "packet-in-flood",
        "sends packet-ins as fast as possible",
        By::Switch(SwitchAttack::PacketInFlood),
        Must::HurtNobody,
    )
    .on(On::Every),
    Case::by(
        Family::Switches,
        "slow-reader",
        "sends requests without end, and reads nothing",
        By::Switch(SwitchAttack::SlowReader),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Switches,
        "false-removals",
        "reports the removal of rules that never existed",
        By::Switch(SwitchAttack::FalseRemovals),
        Must::HurtNobody,
    )
    .on(On::Every),
    Case::by(
        Family::Switches,
        "false-ports",
        "reports thousands of ports that do not exist",
        By::Switch(SwitchAttack::FalsePorts),
        Must::HurtNobody,
    ),
    Case::by(
        Family::Switches,
        "error-storm",
        "sends errors that answer no message",
        By::Switch(SwitchAttack::ErrorStorm),
        Must::HurtNobody,
    ),
];
