//! The misbehaving app: does one kind of harm, which its settings name, to show that other apps and switches are not
//! affected.
//!
//! ```text
//!   settings.attack ──first tick──┬─> body     what a bug or a bad day does to the app's own process
//!                                 ├─> machine  what is taken from the machine, or tried of the system
//!                                 ├─> network  what is commanded of switches and asked of services
//!                                 ├─> services what a service does to its callers, and a caller to its service
//!                                 └─> tries    a few commands to each switch, each with a receipt
//! ```
//! It writes on its own error output that it begins, because it may never return. What it tried goes into the node's
//! log with the result, one line each: `tried WHAT: denied: WHY`, or `tried WHAT: it worked`.
//!
//! It does no lasting harm even if a barrier is missing. Its signals have no effect, it sets the clock to the present
//! time, its mounts change nothing, and its use of resources is bounded. It never runs without an attack in its
//! settings.
//! change nothing, and what it takes is bounded. It never runs without an attack in its settings.

mod body;
pub mod frames;
mod machine;
mod network;
mod services;
pub mod tries;

use burnet_sdk::{
    App, Commands, DatapathId, Interests, Level, Outcome, PacketIn, PortNo, Query, QueryReply, Receipt,
    Settings, SwitchUp,
};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use std::path::PathBuf;
use tries::Progress;

/// The attacks that do not use [`tries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is named by what it does; `burnet attack` has a sentence on each")]
pub enum Attack {
    Exit,
    Abort,
    Segfault,
    Panic,
    KillItself,
    Deadlock,
    InfiniteLoop,
    StopReading,
    RestartStorm,
    ForkBomb,
    MemoryLeak,
    DescriptorLeak,
    ThreadBomb,
    DiskFill,
    LogFlood,
    ReadFiles,
    ReadMemory,
    Ptrace,
    Signals,
    RawSocket,
    ConnectOut,
    RunShell,
    Mount,
    LoadModule,
    SetTime,
    ForgedDatapath,
    ForgedCookie,
    ChangeOthers,
    ReplaceOthers,
    DeleteOthers,
    ClearTables,
    TableFlood,
    RuleFlood,
    PacketOutFlood,
    Uninvited,
    Malformed,
    RewriteEscape,
    SilenceAll,
    OutputFlood,
    AskFlood,
    StoreFlood,
    StoreOthers,
    PlantedLink,
    PlantedFileLink,
    ServiceLate,
    ServiceTwice,
    ServiceTooMuch,
    ServiceStranger,
    ServiceNever,
    CallUnknown,
    CallCredit,
    CallVanish,
    ServiceListens,
}

/// The chosen attack: one of [`Attack`], or one of [`tries::TRIES`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum Harm {
    /// An attack with its own code.
    Attack(Attack),
    /// An attack of commands and receipts.
    Try(&'static tries::Try),
}

impl Harm {
    /// The attack with this name.
    pub fn find(name: &str) -> Option<Harm> {
        let deserializer: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        let attack = Attack::deserialize(deserializer).ok().map(Harm::Attack);
        attack.or_else(|| tries::find(name).map(Harm::Try))
    }
}

impl TryFrom<String> for Harm {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Harm::find(&name).ok_or_else(|| format!("there is no attack {name}"))
    }
}

/// The settings under `[app.misbehaving.settings]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MisbehavingSettings {
    /// The name of the attack.
    pub attack: Harm,
    /// If set, it begins when the switch with this datapath id is up, and not at a tick. Then all other switches are
    /// known.
    #[serde(default)]
    pub begins_with: Option<u64>,
    /// Files that it must not be able to read, for `read-files`.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Addresses on which a server listens, for `connect-out`.
    #[serde(default)]
    pub address: Option<std::net::SocketAddr>,
    /// Processes of others, for `read-memory`, `ptrace` and `signals`.
    #[serde(default)]
    pub processes: Vec<i32>,
    /// A file with the numbers of more such processes, which are known only once the node runs. The attack begins
    /// when the file is not empty.
    #[serde(default)]
    pub processes_file: Option<PathBuf>,
    /// For how many seconds it behaves before it begins; 0: it begins at its first tick.
    #[serde(default)]
    pub quiet_s: u32,
    /// Whether it repeats the attack at each tick.
    #[serde(default)]
    pub again: bool,
    /// What it replaces by a symbolic link, and the link's target, for `planted-link` and `planted-file-link`.
    #[serde(default)]
    pub plant: Option<[PathBuf; 2]>,
    /// Milliseconds between two MiB of `memory-leak`.
    #[serde(default = "leak_pause_ms")]
    pub leak_pause_ms: u64,
}

/// As fast a leak as the slow leaks of most bugs allow, so that trials are short.
fn leak_pause_ms() -> u64 {
    1
}

/// The misbehaving app.
pub struct Misbehaving {
    settings: MisbehavingSettings,
    switches: Vec<DatapathId>,
    ticks: u32,
    refused: u64,
    programmed: u64,
    /// The progress of a try.
    progress: Option<Progress>,
    calls: services::CallState,
}

impl App for Misbehaving {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: MisbehavingSettings = settings.read()?;
        if settings.is(Attack::RestartStorm) {
            std::process::exit(7);
        }
        let (switches, progress) = (Vec::new(), None);
        let calls = services::CallState::default();
        Ok(Misbehaving { settings, switches, ticks: 0, refused: 0, programmed: 0, progress, calls })
    }

    fn interests(&self) -> Interests {
        let interests = Interests::none().switches().ticks();
        match self.settings.attack {
            Harm::Attack(Attack::Uninvited) => interests.packets().topics(),
            Harm::Try(tried) if tries::hears_packets(tried) => interests.packets(),
            _ => interests,
        }
    }

    /// An app that may receive nothing has no tick either.
    fn on_start(&mut self, out: &mut Commands) {
        if self.settings.is(Attack::Uninvited) {
            self.switches = (1..=3).map(DatapathId).collect();
            self.begin(out);
        }
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        match self.settings.begins_with {
            Some(first) if first == up.datapath.0 => self.begin(out),
            _ => self.switches.push(up.datapath),
        }
    }

    fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
        if let Some(progress) = &self.progress {
            progress.on_packet(packet, out);
        }
    }

    fn on_tick(&mut self, _: u64, out: &mut Commands) {
        // By the first tick the switches that were already connected are known.
        if !self.knows_its_processes() {
            return;
        }
        services::on_tick(&mut self.calls, out);
        self.ticks = self.ticks.saturating_add(1);
        let quiet = self.settings.quiet_s;
        if self.settings.begins_with.is_none()
            && self.ticks > quiet
            && (self.settings.again || self.ticks - quiet == 1)
        {
            self.begin(out);
        } else {
            self.tell_what_came(out);
        }
    }

    /// Counts a query as the receipt of a command: an answer means that the query was accepted.
    fn on_query_reply(&mut self, reply: &QueryReply, out: &mut Commands) {
        match self.settings.attack {
            Harm::Attack(attack) if services::is_by_calls(attack) => {
                if let Some(refused) = services::is_refused(attack, reply, &mut self.calls) {
                    self.came(refused, out);
                }
            }
            _ => self.came(reply.status != 0, out),
        }
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        if let Harm::Attack(attack) = self.settings.attack {
            services::on_query(attack, query, &mut self.calls, out);
        }
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if let Harm::Attack(attack) = self.settings.attack {
            body::on_receipt(attack);
        }
        self.on_outcome(receipt.outcome, out);
        if self.settings.is(Attack::Uninvited) {
            self.tell_what_came(out);
        }
    }
}

impl MisbehavingSettings {
    fn is(&self, attack: Attack) -> bool {
        matches!(self.attack, Harm::Attack(this) if this == attack)
    }
}

impl Misbehaving {
    /// Takes the answer to a query, or its refusal.
    fn came(&mut self, refused: bool, out: &mut Commands) {
        self.on_outcome(if refused { Outcome::Refused } else { Outcome::Programmed }, out);
    }

    fn on_outcome(&mut self, outcome: Outcome, out: &mut Commands) {
        if let Some(progress) = &mut self.progress {
            let count = |came: &mut tries::Came| match outcome {
                Outcome::Refused => came.denied += 1,
                Outcome::Programmed => came.worked += 1,
                _ => came.reached += 1,
            };
            if let Some(told) = progress.on_came(count, &self.switches, out) {
                out.log(Level::Warning, &told);
            }
            return;
        }
        match outcome {
            Outcome::Refused => self.refused += 1,
            Outcome::Programmed => self.programmed += 1,
            _ => {}
        }
    }

    fn tell_what_came(&mut self, out: &mut Commands) {
        if self.refused + self.programmed > 0 {
            let text = format!("tried commands: {} denied, {} worked", self.refused, self.programmed);
            out.log(Level::Warning, &text);
            (self.refused, self.programmed) = (0, 0);
        }
    }

    /// Reads the process numbers from their file, if one is set, as soon as it has any.
    fn knows_its_processes(&mut self) -> bool {
        let Some(path) = &self.settings.processes_file else { return true };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let numbers: Vec<i32> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let known = !numbers.is_empty();
        if known {
            self.settings.processes.extend(numbers);
            self.settings.processes_file = None;
        }
        known
    }

    fn begin(&mut self, out: &mut Commands) {
        eprintln!("begins");
        let settings = &self.settings;
        let attack = match settings.attack {
            Harm::Attack(attack) => attack,
            Harm::Try(tried) => {
                self.progress = Some(Progress::begin(tried, &self.switches, out));
                return;
            }
        };
        match attack {
            Attack::RestartStorm => {}
            Attack::Exit
            | Attack::Abort
            | Attack::Segfault
            | Attack::Panic
            | Attack::KillItself
            | Attack::Deadlock
            | Attack::InfiniteLoop
            | Attack::StopReading => body::harm(attack, out),
            Attack::ForgedDatapath
            | Attack::ForgedCookie
            | Attack::ChangeOthers
            | Attack::ReplaceOthers
            | Attack::DeleteOthers
            | Attack::ClearTables
            | Attack::TableFlood
            | Attack::RuleFlood
            | Attack::PacketOutFlood
            | Attack::Uninvited
            | Attack::Malformed
            | Attack::RewriteEscape
            | Attack::SilenceAll
            | Attack::OutputFlood
            | Attack::AskFlood
            | Attack::StoreFlood
            | Attack::StoreOthers => network::attack(attack, self.ticks, &self.switches, out),
            _ if services::is_by_calls(attack) => services::begin(attack, &mut self.calls, out),
            _ => machine::attack(attack, settings, out),
        }
    }
}

/// Logs the result of a try.
fn report<E: std::fmt::Display>(out: &mut Commands, what: &str, came: Result<(), E>) {
    let text = match came {
        Ok(()) => format!("tried {what}: it worked"),
        Err(error) => format!("tried {what}: denied: {error}"),
    };
    out.log(Level::Warning, &text);
}

/// A port to which attacks send packets. No small switch has it.
const NOWHERE: PortNo = PortNo(0xfeed);

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    #[test]
    fn without_an_attack_it_does_not_start() {
        for settings in ["{}", r#"{"attack": "kindness"}"#, r#"{"attack": "exit", "when": 1}"#] {
            assert!(Trial::<Misbehaving>::start(settings).is_err(), "{settings}");
        }
    }

    #[test]
    fn it_waits_for_its_first_tick() {
        let mut app = Trial::<Misbehaving>::start(r#"{"attack": "clear-tables"}"#).unwrap();
        assert!(app.switch_up(1, &[1]).is_empty());
        assert!(app.tick(1)[0].starts_with("delete-rule of:0000000000000001"));
        assert!(app.tick(2).is_empty(), "once");
    }

    #[test]
    fn it_behaves_for_as_long_as_it_is_told_and_goes_on_if_it_is_told() {
        let settings = r#"{"attack": "clear-tables", "quiet_s": 2, "again": true}"#;
        let mut app = Trial::<Misbehaving>::start(settings).unwrap();
        app.switch_up(1, &[1]);
        let commands = [1, 2, 3, 4].map(|second| app.tick(second).len());
        assert_eq!(commands, [0, 0, 1, 1]);
    }
}
