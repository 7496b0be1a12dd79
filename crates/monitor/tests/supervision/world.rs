//! A pretended machine for the supervisor: it starts and ends processes as the commands say, and notes them down.
//!
//! In: what the tests let happen, and the supervisor's commands. Out: the supervisor's answers, and which processes are
//! alive. Nothing is real here; the real ones are in `node.rs`.

use std::collections::{BTreeMap, BTreeSet};

use monitor::incident::Incident;
use monitor::protocol::ToKernel;
use monitor::supervisor::{ChildId, ProcessEnd, Reaction, StopSignal, Supervisor, SupervisorEvent};
use monitor::{AppSource, AppSpec, AppState, AppStatus, SafeModePlan, Timing, Validity, Verb, ZoneKind};

pub const KILLED: ProcessEnd = ProcessEnd::Signal { number: 9, core_dumped: false };
pub const CRASHED: ProcessEnd = ProcessEnd::Signal { number: 11, core_dumped: false };

pub struct World {
    pub supervisor: Supervisor,
    pub now_ms: u64,
    /// Processes that were started and have not ended.
    pub alive: BTreeSet<String>,
    /// Every command since the last `forget`, as short words: `start zone 1.2`, `term kernel.1`, `load hub`.
    pub commands: Vec<String>,
    pub exit: Option<(u8, Option<String>)>,
    /// What breaks a promise of the supervisor.
    pub broken: Vec<String>,
    pub kernel_generation: u64,
    pub kernel_ready: bool,
    /// Processes that end when they are asked to. KILL ends all.
    pub obedient: bool,
    /// The machine holds every process, even when killed.
    pub held: bool,
    /// All of them.
    pub incidents: Vec<Incident>,
    apps: usize,
    dying: Vec<SupervisorEvent>,
    /// The last that somebody was to vouch for, by zone, and whether somebody did.
    pub asked: BTreeMap<u16, (u64, bool)>,
    /// Every requested package is verified at once.
    pub vouches: bool,
}

pub fn name(who: ChildId) -> String {
    match who {
        ChildId::Kernel { generation } => format!("kernel.{generation}"),
        ChildId::Zone { zone, generation } => format!("zone {zone}.{generation}"),
    }
}

pub fn app(name: &str, kind: ZoneKind) -> AppSpec {
    AppSpec {
        zone: None,
        name: name.to_owned(),
        role: Default::default(),
        duty: None,
        kind,
        source: AppSource::BuiltIn("hub".to_owned()),
        limits: Default::default(),
        sandbox: Default::default(),
        settings: Default::default(),
        grant: Default::default(),
        regions: Default::default(),
        packaged: false,
        paused: false,
        waits: false,
    }
}

impl World {
    /// A node whose kernel has just been started.
    pub fn new(apps: Vec<AppSpec>) -> World {
        World::with_safe_mode(apps, SafeModePlan::default())
    }

    /// One of which the operator wants this of safe mode.
    pub fn with_safe_mode(apps: Vec<AppSpec>, safe_mode: SafeModePlan) -> World {
        let count = apps.len();
        let mut world = World {
            supervisor: Supervisor::new(apps, Timing::default()).unwrap().with_safe_mode(safe_mode),
            now_ms: 1_000_000,
            alive: BTreeSet::new(),
            commands: Vec::new(),
            exit: None,
            broken: Vec::new(),
            kernel_generation: 0,
            kernel_ready: false,
            obedient: true,
            held: false,
            incidents: Vec::new(),
            apps: count,
            dying: Vec::new(),
            asked: BTreeMap::new(),
            vouches: false,
        };
        world.hear(SupervisorEvent::Begin);
        world
    }

    /// `hub` in a process zone, `switch` trusted, and a kernel that is ready.
    pub fn running() -> World {
        let mut world = World::new(vec![app("hub", ZoneKind::Process), app("switch", ZoneKind::Trusted)]);
        world.hear(SupervisorEvent::KernelReady);
        world.commands.clear();
        world
    }

    pub fn status(&self, app: &str) -> AppStatus {
        self.supervisor.statuses(0).into_iter().find(|status| status.app == app).unwrap()
    }

    pub fn state(&self, app: &str) -> AppState {
        self.status(app).state
    }

    /// One event, and then everything that follows from it at once.
    pub fn hear(&mut self, event: SupervisorEvent) {
        self.hear_one(event);
        while let Some(event) = self.dying.pop() {
            self.hear_one(event);
        }
    }

    pub fn hear_one(&mut self, event: SupervisorEvent) {
        if let SupervisorEvent::Verified { zone, check, validity: Validity::Good | Validity::NotTrusted(_) } =
            &event
            && let Some((asked, good)) = self.asked.get_mut(zone)
        {
            *good |= asked == check;
        }
        if matches!(event, SupervisorEvent::KernelReady) {
            self.kernel_ready = true;
        }
        let operator = matches!(event, SupervisorEvent::Operator { .. });
        let quarantined: Vec<u16> = self.supervisor.statuses(0).iter().filter_map(quarantined).collect();
        let over = self.exit.is_some();
        let commands = self.supervisor.on_event(event, self.now_ms);
        if commands.len() > 8 + 6 * self.apps {
            self.broken.push(format!("{} commands at once", commands.len()));
        }
        if over && !commands.is_empty() {
            self.broken.push(format!("{commands:?} after the end"));
        }
        for command in commands {
            if let Reaction::StartZone { zone, .. } = &command
                && quarantined.contains(zone)
                && !operator
            {
                self.broken.push(format!("zone {zone} is quarantined and was started"));
            }
            self.act(command);
        }
    }

    fn act(&mut self, command: Reaction) {
        match command {
            Reaction::StartKernel { generation } => {
                self.kernel_generation = generation;
                self.kernel_ready = false;
                self.start(ChildId::Kernel { generation }, "kernel.");
            }
            Reaction::StartZone { zone, generation } => {
                if self.asked.get_mut(&zone).is_some_and(|(_, good)| !std::mem::take(good)) {
                    self.broken.push(format!("zone {zone} was started and nobody vouched for it"));
                }
                if !self.kernel_ready {
                    self.broken.push(format!("zone {zone} was started without a kernel"));
                }
                self.start(ChildId::Zone { zone, generation }, &format!("zone {zone}."));
            }
            Reaction::End { who, how } => {
                let verb = if how == StopSignal::Term { "term" } else { "kill" };
                self.commands.push(format!("{verb} {}", name(who)));
                if !self.held && (self.obedient || how == StopSignal::Kill) {
                    self.dies(who, if how == StopSignal::Term { ProcessEnd::Code(0) } else { KILLED });
                }
            }
            Reaction::TellKernel(message) => self.tell(message),
            Reaction::Verify(subject) => {
                self.commands.push(format!("ask about {}", subject.app));
                self.asked.insert(subject.zone, (subject.check, false));
                if self.vouches {
                    let (zone, check) = (subject.zone, subject.check);
                    self.dying.push(SupervisorEvent::Verified { zone, check, validity: Validity::Good });
                }
            }
            Reaction::Listen { zone, generation } => {
                self.commands.push(format!("listen {}", name(ChildId::Zone { zone, generation })));
            }
            Reaction::LookUp { app } => self.commands.push(format!("look up {app}")),
            Reaction::PublishApps | Reaction::Log { .. } => {}
            Reaction::Incident(incident) => self.incidents.push(*incident),
            Reaction::Exit { code, message } => self.exit = Some((code, message)),
        }
    }

    fn start(&mut self, who: ChildId, prefix: &str) {
        if self.alive.iter().any(|alive| alive.starts_with(prefix)) {
            self.broken.push(format!("{} was started beside {:?}", name(who), self.alive));
        }
        self.commands.push(format!("start {}", name(who)));
        self.alive.insert(name(who));
        self.dying.push(SupervisorEvent::Started { who, pid: 4_711 });
    }

    fn tell(&mut self, message: ToKernel) {
        let told = match message {
            ToKernel::LoadTrusted { app, .. } => {
                if self.status(&app).demoted.is_some() {
                    self.broken.push(format!("{app} was demoted and is loaded again"));
                }
                if self.supervisor.safe_mode_status(0).is_some() {
                    self.broken.push(format!("{app} is loaded in safe mode"));
                }
                format!("load {app}")
            }
            ToKernel::UnloadTrusted { app, .. } => format!("unload {app}"),
            ToKernel::DetachZone { zone, generation, .. } => format!("detach {zone}.{generation}"),
            ToKernel::Shutdown => {
                if self.obedient {
                    self.dies(ChildId::Kernel { generation: self.kernel_generation }, ProcessEnd::Code(0));
                }
                "shut down".to_owned()
            }
            other => format!("{other:?}"),
        };
        self.commands.push(told);
    }

    /// A process ends now. The supervisor receives this after its present work.
    fn dies(&mut self, who: ChildId, end: ProcessEnd) {
        if self.alive.remove(&name(who)) {
            if matches!(who, ChildId::Kernel { .. }) {
                self.kernel_ready = false;
            }
            self.dying.insert(0, SupervisorEvent::Exited { who, end, last_line: None });
        }
    }

    pub fn kernel_ends(&mut self, end: ProcessEnd) {
        self.dies(ChildId::Kernel { generation: self.kernel_generation }, end);
        self.settle();
    }

    pub fn app_ends(&mut self, app: &str, end: ProcessEnd) {
        let AppStatus { zone, generation, .. } = self.status(app);
        self.dies(ChildId::Zone { zone, generation }, end);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(event) = self.dying.pop() {
            self.hear_one(event);
        }
    }

    /// The incidents since last asked, as short words: what, whom it happened to, who did it, and what followed.
    pub fn take_incidents(&mut self) -> Vec<String> {
        let words = |incident: Incident| {
            let culprit = incident.finding.culprit.as_deref().unwrap_or("nobody");
            format!("{} {} by {culprit}; {}", incident.subject(), incident.what.words(), incident.then)
        };
        std::mem::take(&mut self.incidents).into_iter().map(words).collect()
    }

    /// Something is said of the app's package, about its newest start.
    pub fn says(&mut self, app: &str, validity: Validity) {
        let zone = self.status(app).zone;
        let check = self.asked[&zone].0;
        self.hear(SupervisorEvent::Verified { zone, check, validity });
    }

    pub fn operator(&mut self, verb: Verb, app: &str) {
        self.hear(SupervisorEvent::Operator { app: app.to_owned(), verb, why: None });
    }

    /// Time passes, and the kernel's workers move if it is ready.
    pub fn wait_ms(&mut self, ms: u64) {
        self.pass_ms(ms, true);
    }

    /// Time passes, and the kernel says nothing.
    pub fn silence_ms(&mut self, ms: u64) {
        self.pass_ms(ms, false);
    }

    fn pass_ms(&mut self, ms: u64, alive: bool) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            let wake = self.supervisor.next_wake_ms(self.now_ms);
            // A deadline that is over and never goes away would make the real loop spin.
            self.now_ms = wake.clamp(self.now_ms + 1, until_ms);
            if alive && self.kernel_ready {
                self.hear(SupervisorEvent::KernelAlive);
            }
            self.hear(SupervisorEvent::Tick);
        }
    }

    pub fn take_commands(&mut self) -> Vec<String> {
        std::mem::take(&mut self.commands)
    }
}

fn quarantined(status: &AppStatus) -> Option<u16> {
    (status.state == AppState::Quarantined).then_some(status.zone)
}
