//! An attack: what is tried, by whom, on which switches, and the required result. [`super::catalogue`] has all
//! attacks.
//!
//! Each case also requires all of the following: no ping of others is lost, and what the firewall blocks stays
//! blocked. No switch loses its session, and its rules and the kernel's do not change. Neither the kernel nor an
//! innocent app restarts. This file tries nothing.

use std::fmt;

use openflow::Version;
use serde::Serialize;

use super::from_a_package::PackageAttack;
use super::from_a_switch::SwitchAttack;
use super::from_the_operator::OperatorAttack;
use super::tenant_words::TenantAttack;

/// An attack.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, on the command line and in `apps/misbehaving`.
    pub name: &'static str,
    /// A short description of the attack.
    pub what: &'static str,
    /// Its family.
    pub family: Family,
    /// The switches on which it is tried.
    pub on: On,
    /// The attacker.
    pub by: By,
    /// The required result.
    pub must: Must,
}

/// The target of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Body,
    Machine,
    Commands,
    Vendors,
    Identity,
    IndirectEffects,
    Amplification,
    Defaults,
    Shadowing,
    Folders,
    Store,
    Services,
    Packages,
    Signers,
    Operator,
    Switches,
    Tenants,
}

impl Family {
    /// All families in the order of the scorecard, each with its name and the promise that it tests.
    pub const ALL: [(Family, &'static str, &'static str); 17] = [
        (Family::Body, "body", "an app that ends, hangs or stops reading harms itself alone"),
        (Family::Machine, "machine", "an app uses nothing of the machine that was not granted"),
        (
            Family::Commands,
            "commands",
            "an app sends allowed commands, and the rules of other apps do not change",
        ),
        (
            Family::Vendors,
            "vendors",
            "what vendors defined beyond OpenFlow is refused without the capability vendor",
        ),
        (Family::Identity, "identity", "no rule takes another's place by being written differently"),
        (
            Family::IndirectEffects,
            "indirect-effects",
            "groups, tables and action sets do nothing that their sender may not",
        ),
        (Family::Amplification, "amplification", "few commands have few effects"),
        (Family::Defaults, "defaults", "commands that were not granted are refused"),
        (Family::Shadowing, "shadowing", "no app makes another's rules void with rules of its own"),
        (Family::Folders, "folders", "a granted folder leads to nothing else"),
        (Family::Store, "store", "an app keeps to its own keys and its share"),
        (Family::Services, "services", "a failed call ends for both sides, and affects no other app"),
        (Family::Packages, "packages", "only signed apps with granted requests run"),
        (Family::Signers, "signers", "another signer or other contents need a yes"),
        (Family::Operator, "operator", "malformed input on the operator's socket has no effect"),
        (Family::Switches, "switches", "a malformed or flooding switch affects no other session"),
        (Family::Tenants, "tenants", "a tenant's controller reaches nothing outside of its slice"),
    ];

    /// Whether its attacks command switches, so that they begin only when the switches are connected.
    pub const fn is_about_switches(self) -> bool {
        use Family::*;
        matches!(self, Commands | Vendors | Identity | IndirectEffects | Amplification | Defaults | Shadowing)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Family::ALL[self as usize].1
    }

    /// The property that holds if the node resists all attacks of the family.
    pub fn promise(self) -> &'static str {
        Family::ALL[self as usize].2
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Family {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The switches on which an attack is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All requested ones, because the result may depend on the switch.
    Every,
    /// Those with this version.
    Only(Version),
    /// Only the first, because the attack does not involve switches.
    Any,
}

/// The attacker.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The app `misbehaving`, with these additional lines in the configuration.
    App(&'static str),
    /// An app that overwrites the shared memory of its port.
    Ring,
    /// This many apps that end as soon as they start.
    Storm(usize),
    /// A user with a package.
    Package(PackageAttack),
    /// A switch.
    Switch(SwitchAttack),
    /// A process at the operator's socket.
    Operator(OperatorAttack),
    /// The controller of a slice.
    Tenant(TenantAttack),
}

/// The required result of an attack.
#[derive(Clone, Copy, Debug)]
pub enum Must {
    /// The app ends for one of these reasons, and nothing else is affected.
    End(&'static [&'static str]),
    /// Each forbidden system call is denied, or the first one ends the app with SIGSYS.
    BeDenied,
    /// The kernel refuses each of its commands.
    BeRefused,
    /// The kernel refuses its commands above a quota.
    BeLimited,
    /// Exactly this many of its commands succeed.
    KeepNoMore(u64),
    /// Its log lines are cut off, and the log says how many are missing.
    BeCutShort,
    /// Its rules carry its own owner, whatever their cookie said.
    OwnItsRules,
    /// It cannot read files outside its folders, or it is not started again.
    KeepOut,
    /// It may go on, and harms nothing.
    HurtNobody,
    /// Each of its commands is answered, and none of them harms anything.
    HoldOff,
    /// Its frames leave only where it may send them.
    KeepWithin,
    /// Its frames leave, and at most this many arrive at hosts.
    MakeFew(u64),
    /// Switches send at most this many packet-ins a second for it, and `besides` more in all.
    SendFewUp { per_s: u64, besides: u64 },
    /// It gets at most this many answers, and others get theirs.
    BeAnswered(u64),
    /// Its attempt is refused for this reason.
    BeTurnedAway(&'static str),
    /// The node closes the attacker's connection.
    BeCutOff,
}

/// The limits `[app.misbehaving.limits]` with as much memory as the trial of a leak allows.
pub const SMALL: &str = "[app.misbehaving.limits]\nmemory_bytes = 67108864\nprocesses = 32\n";

/// What an operator grants an app that is not trusted, for `APP`: a tenth of a core, and little of the rest.
pub const LIMITS: &str =
    "[app.APP.limits]\ncpu_percent = 10\nmemory_bytes = 67108864\nprocesses = 32\nopen_files = 64\n";

/// The quotas of such an app. Quotas of a case come in addition.
pub const QUOTAS: &str = "[app.APP.quotas]\n";
pub const QUOTA_LINES: &str = "commands_per_s = 1000\npacket_outs_per_s = 100\n";

/// `[app.misbehaving.capabilities]` with these lines.
macro_rules! granted {
    ($($line:literal),* $(,)?) => {
        concat!("[app.misbehaving.capabilities]\n\"view.read\" = true\n", $($line, "\n"),*)
    };
}
pub(super) use granted;

/// The same with the usual grants.
macro_rules! usual_and {
    ($($line:literal),* $(,)?) => {
        granted!(
            "\"packet.in\" = true",
            "\"packet.out\" = true",
            "\"rule.write\" = true",
            "\"stats.read\" = true",
            $($line),*
        )
    };
}

/// Only events about switches.
pub const VIEW: &str = granted!();

/// The usual grants: receive and send packets, install rules, request statistics.
pub const USUAL: &str = usual_and!();

/// Queries to a service.
pub const ASKS: &str = granted!("query = [\"learning-switch\"]");

/// Calls to itself, to an app that is no service, and to a name that no app has.
pub const CALLS: &str = granted!("query = [\"misbehaving\", \"learning-switch\", \"nobody\"]");

/// As [`SMALL`], and events about switches.
pub const SMALL_VIEW: &str =
    concat!("[app.misbehaving.limits]\nmemory_bytes = 67108864\nprocesses = 32\n", granted!());

/// Events about switches. Folders are granted in addition.
pub const FOLDERS: &str = VIEW;

/// As [`USUAL`], with a hundred packet-outs a second.
pub const USUAL_WITH_QUOTAS: &str =
    usual_and!("[app.misbehaving.quotas]", "commands_per_s = 1000", "packet_outs_per_s = 100");

/// The same, and Nicira's fields.
pub const USUAL_WITH_NAMES: &str = usual_and!("vendor = [\"nicira:field\"]");

/// As [`USUAL`], with a hundred caused packet-ins a second.
pub const USUAL_AND_CAUSES_FEW: &str =
    usual_and!("[app.misbehaving.quotas]", "packet_ins_caused_per_s = 100");

/// As [`USUAL`], with a few statistics requests a second.
pub const USUAL_AND_ASKS_LITTLE: &str = usual_and!("[app.misbehaving.quotas]", "stats_per_s = 200");

/// ARP requests, and rules for all of ARP.
pub const ASKS_FOR_ADDRESSES: &str =
    granted!("\"packet.out\" = { match = [\"arp,arp_op=1\"] }", "\"rule.write\" = { match = [\"arp\"] }");

/// Frames with its own address, and rules for all frames of that kind.
pub const OWN_FRAMES: &str = granted!(
    "\"packet.out\" = { match = [\"dl_type=0x88b5,dl_src=02:00:00:00:00:ef\"] }",
    "\"rule.write\" = { match = [\"dl_type=0x88b5\"] }"
);

/// Output to the first port of each switch, and any rule.
pub const FIRST_PORT: &str = granted!("\"packet.out\" = { ports = [1] }", "\"rule.write\" = true");

/// Packet-outs and rules, but no packet-ins.
pub const DEAF: &str = granted!("\"packet.out\" = true", "\"rule.write\" = true");

/// No capability at all.
pub const NO_CAPABILITY: &str = "[app.misbehaving.capabilities]\n";

/// A few rules for one network.
pub const BOUNDED: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\
    \"rule.write\" = { match = [\"ip,nw_dst=10.9.0.0/16\"], rules_per_datapath = 100 }\n";

/// Any rule, but at most a hundred in each switch.
pub const FEW_RULES: &str =
    "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"rule.write\" = { rules_per_datapath = 100 }\n";

/// Three of the longest values in the store, under its own name.
pub const SMALL_STORE: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"store.read\" = [\"misbehaving/\"]\n\
    \"store.write\" = [\"misbehaving/\"]\n[app.misbehaving.quotas]\nstore_bytes = 100000\n";

impl Case {
    /// An attack by an app with these lines in the configuration, on every switch.
    pub const fn app(
        family: Family,
        name: &'static str,
        what: &'static str,
        lines: &'static str,
        must: Must,
    ) -> Case {
        Case { name, what, family, on: On::Every, by: By::App(lines), must }
    }

    /// An attack by something else, on any switch.
    pub const fn by(family: Family, name: &'static str, what: &'static str, by: By, must: Must) -> Case {
        Case { name, what, family, on: On::Any, by, must }
    }

    /// The same, on these switches.
    pub const fn on(self, on: On) -> Case {
        Case { on, ..self }
    }
}
