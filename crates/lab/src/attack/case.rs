//! An attack: what is tried, by whom, on which switches, and what must come of it. [`super::catalogue`] has them all.
//!
//! In every case, besides: no ping of others is lost, what the firewall blocks stays blocked, no switch loses its session, its rules and the
//! kernel's stay as they are, and neither kernel nor innocent app is started anew. Nothing is tried here.

use std::fmt;

use openflow::Version;
use serde::Serialize;

use super::from_a_package::PackageAttack;
use super::from_a_switch::SwitchAttack;
use super::from_the_operator::OperatorAttack;

/// An attack.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, on the command line and in `apps/misbehaving`.
    pub name: &'static str,
    /// What is tried, in a few words.
    pub what: &'static str,
    /// What it is about.
    pub family: Family,
    /// What switches it is tried on.
    pub on: On,
    /// By whom.
    pub by: By,
    /// What must come of it.
    pub must: Must,
}

/// What an attack is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Body,
    Machine,
    Commands,
    Vendors,
    Identity,
    Deputies,
    Amplification,
    Defaults,
    Shadowing,
    Folders,
    Store,
    Packages,
    Signers,
    Operator,
    Switches,
}

impl Family {
    /// All, in the order of the scorecard, each with its name and the question that it answers.
    pub const ALL: [(Family, &'static str, &'static str); 15] = [
        (Family::Body, "body", "an app that ends, hangs or stops reading harms itself alone"),
        (Family::Machine, "machine", "an app takes nothing of the machine that it was not given"),
        (Family::Commands, "commands", "an app commands what it may, and others' rules stay as they are"),
        (
            Family::Vendors,
            "vendors",
            "what vendors defined beyond OpenFlow is refused without the capability vendor",
        ),
        (Family::Identity, "identity", "no rule takes another's place by being written differently"),
        (Family::Deputies, "deputies", "groups, tables and action sets do nothing that their sender may not"),
        (Family::Amplification, "amplification", "few commands have few effects"),
        (Family::Defaults, "defaults", "what was not granted is refused"),
        (Family::Shadowing, "shadowing", "no app makes another's rules void with rules of its own"),
        (Family::Folders, "folders", "a granted folder leads to nothing else"),
        (Family::Store, "store", "an app keeps to its own keys and its share"),
        (Family::Packages, "packages", "only what was signed and granted runs"),
        (Family::Signers, "signers", "another signer or other contents need a yes"),
        (Family::Operator, "operator", "whoever talks to the operator's socket badly harms nobody"),
        (Family::Switches, "switches", "a switch that lies or floods harms nobody else"),
    ];

    /// Whether its attacks command switches, and so begin when the switches are there.
    pub const fn is_about_switches(self) -> bool {
        use Family::*;
        matches!(self, Commands | Vendors | Identity | Deputies | Amplification | Defaults | Shadowing)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Family::ALL[self as usize].1
    }

    /// What holds if all its attacks held.
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

/// What switches an attack is tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All that are asked for: what comes of it may depend on the switch.
    Every,
    /// Those that speak this version.
    Only(Version),
    /// Whichever come first: it has to do with no switch.
    Any,
}

/// Who attacks.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The app `misbehaving`, with these lines in the configuration besides its settings.
    App(&'static str),
    /// The shared memory of a port, written over by an app that has nothing else.
    Ring,
    /// So many apps that end as soon as they are started.
    Storm(usize),
    /// Whoever has a package.
    Package(PackageAttack),
    /// A switch.
    Switch(SwitchAttack),
    /// Somebody at the operator's socket.
    Operator(OperatorAttack),
}

/// What must come of an attack.
#[derive(Clone, Copy, Debug)]
pub enum Must {
    /// The app ends for one of these reasons, and nobody else notices.
    End(&'static [&'static str]),
    /// Each try of the system is denied, or the first ends the app by SIGSYS.
    BeDenied,
    /// The kernel refuses its commands, every one.
    BeRefused,
    /// The kernel refuses its commands beyond a quota.
    BeLimited,
    /// So many of its commands work and no more.
    KeepNoMore(u64),
    /// What it logs is cut short, and how much that was is said.
    BeCutShort,
    /// Its rules are its own, whatever it said.
    OwnItsRules,
    /// What lies outside of its folders stays out of its sight, or it is not started any more.
    KeepOut,
    /// It may go on, and hurts nobody.
    HurtNobody,
    /// Each of its commands was answered, and whatever came of them hurts nobody.
    HoldOff,
    /// Its frames come out where it may send them, and no others come out.
    KeepWithin,
    /// Its frames come out, and of all switches no more than so many at hosts.
    MakeFew(u64),
    /// Switches send up no more than so many packets a second for it, and so many besides.
    SendFewUp { per_s: u64, besides: u64 },
    /// It gets no more than so many answers, and others get theirs.
    BeAnswered(u64),
    /// What it tries is not done, for this reason.
    BeTurnedAway(&'static str),
    /// The node closes the attacker's connection.
    BeCutOff,
}

/// With `[app.misbehaving.limits]`: as much memory as the trial of a leak gives.
pub const SMALL: &str = "[app.misbehaving.limits]\nmemory_bytes = 67108864\nprocesses = 32\n";

/// What an operator gives an app that is not trusted, for `APP`: a tenth of a core, and little of the rest.
pub const LIMITS: &str =
    "[app.APP.limits]\ncpu_percent = 10\nmemory_bytes = 67108864\nprocesses = 32\nopen_files = 64\n";

/// And how much of the network. Where a case has quotas of its own, these come beside them.
pub const QUOTAS: &str = "[app.APP.quotas]\n";
pub const QUOTA_LINES: &str = "commands_per_s = 1000\npacket_outs_per_s = 100\n";

/// `[app.misbehaving.capabilities]` with these lines.
macro_rules! granted {
    ($($line:literal),* $(,)?) => {
        concat!("[app.misbehaving.capabilities]\n\"view.read\" = true\n", $($line, "\n"),*)
    };
}
pub(super) use granted;

/// The same with what most apps are granted.
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

/// May hear of switches, and nothing else.
pub const VIEW: &str = granted!();

/// May do what most apps may: hear and send packets, write rules of its own, ask for statistics.
pub const USUAL: &str = usual_and!();

/// May ask a service.
pub const ASKS: &str = granted!("query = [\"learning-switch\"]");

/// As [`SMALL`], and may hear of switches.
pub const SMALL_VIEW: &str =
    concat!("[app.misbehaving.limits]\nmemory_bytes = 67108864\nprocesses = 32\n", granted!());

/// May hear of switches; its folders are granted beside this.
pub const FOLDERS: &str = VIEW;

/// The same as [`USUAL`] for a hundred packet-outs a second.
pub const USUAL_WITH_QUOTAS: &str =
    usual_and!("[app.misbehaving.quotas]", "commands_per_s = 1000", "packet_outs_per_s = 100");

/// The same, and Nicira's names of fields.
pub const USUAL_WITH_NAMES: &str = usual_and!("vendor = [\"nicira:field\"]");

/// The same as [`USUAL`], and may cause a hundred packet-ins a second.
pub const USUAL_AND_CAUSES_FEW: &str =
    usual_and!("[app.misbehaving.quotas]", "packet_ins_caused_per_s = 100");

/// The same as [`USUAL`], and may ask for a few statistics a second.
pub const USUAL_AND_ASKS_LITTLE: &str = usual_and!("[app.misbehaving.quotas]", "stats_per_s = 200");

/// May ask for addresses, and write rules for all of ARP.
pub const ASKS_FOR_ADDRESSES: &str =
    granted!("\"packet.out\" = { match = [\"arp,arp_op=1\"] }", "\"rule.write\" = { match = [\"arp\"] }");

/// May send frames of its own address, and write rules for all frames of that kind.
pub const OWN_FRAMES: &str = granted!(
    "\"packet.out\" = { match = [\"dl_type=0x88b5,dl_src=02:00:00:00:00:ef\"] }",
    "\"rule.write\" = { match = [\"dl_type=0x88b5\"] }"
);

/// May send out of the first port of each switch, and write any rule.
pub const FIRST_PORT: &str = granted!("\"packet.out\" = { ports = [1] }", "\"rule.write\" = true");

/// May send packets and write rules, and hears no packets.
pub const DEAF: &str = granted!("\"packet.out\" = true", "\"rule.write\" = true");

/// May do nothing at all.
pub const NO_CAPABILITY: &str = "[app.misbehaving.capabilities]\n";

/// May write rules for one network, and only a few.
pub const BOUNDED: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\
    \"rule.write\" = { match = [\"ip,nw_dst=10.9.0.0/16\"], rules_per_datapath = 100 }\n";

/// May write any rule, but only a hundred for each switch.
pub const FEW_RULES: &str =
    "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"rule.write\" = { rules_per_datapath = 100 }\n";

/// May keep three of the longest values, under its own name.
pub const SMALL_STORE: &str = "[app.misbehaving.capabilities]\n\"view.read\" = true\n\"store.read\" = [\"misbehaving/\"]\n\
    \"store.write\" = [\"misbehaving/\"]\n[app.misbehaving.quotas]\nstore_bytes = 100000\n";

impl Case {
    /// By an app with these lines in the configuration, on every switch.
    pub const fn app(
        family: Family,
        name: &'static str,
        what: &'static str,
        lines: &'static str,
        must: Must,
    ) -> Case {
        Case { name, what, family, on: On::Every, by: By::App(lines), must }
    }

    /// By somebody else, and no matter on what switch.
    pub const fn by(family: Family, name: &'static str, what: &'static str, by: By, must: Must) -> Case {
        Case { name, what, family, on: On::Any, by, must }
    }

    /// The same, but tried on these switches.
    pub const fn on(self, on: On) -> Case {
        Case { on, ..self }
    }
}
