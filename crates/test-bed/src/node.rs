//! A running node: what can be asked of it, waited for and done to it.
//!
//! In: questions of the operator, conditions. Out: answers. It ends the node in order when it is dropped.

use crate::PATIENCE;
use crate::folder::Bed;
use emulator::{Emulation, Handle, SwitchOptions, Topology};
use monitor_channel::AppState;
use operator::client;
use operator::contract::{
    Answer, AppUsageView, AppView, FlowsView, NodeView, Question, ReloadView, SwitchView, UsageView,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::SocketAddr;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How often it is looked whether a condition holds.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A node. It ends with SIGTERM when it is dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    bed: Bed,
}

impl Node {
    pub(crate) fn new(child: Child, bed: Bed) -> Node {
        Node { child, bed }
    }

    /// Its folder.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Asks it; nothing if it does not answer.
    pub fn ask(&self, question: &Question) -> Option<Answer> {
        client::ask(&self.bed.socket(), question).ok()
    }

    /// Its apps and services; none while it does not answer.
    pub fn apps(&self) -> Vec<AppView> {
        match self.ask(&Question::Apps) {
            Some(Answer::Apps(apps)) => apps,
            _ => Vec::new(),
        }
    }

    /// An app or service that the node has, as soon as the node answers.
    pub fn app(&self, name: &str) -> AppView {
        self.wait("the node answers", |node| !node.apps().is_empty());
        let found = self.apps().into_iter().find(|app| app.status.app == name);
        found.unwrap_or_else(|| panic!("the node has no app {name}"))
    }

    /// The process of an app.
    pub fn pid_of(&self, app: &str) -> Option<u32> {
        self.apps().into_iter().find(|view| view.status.app == app)?.status.pid
    }

    /// Its switches that are up; none while it does not answer.
    pub fn switches(&self) -> Vec<SwitchView> {
        match self.ask(&Question::Switches) {
            Some(Answer::Switches(switches)) => switches,
            _ => Vec::new(),
        }
    }

    /// The flow entries of all switches.
    pub fn flows(&self) -> Vec<FlowsView> {
        match self.ask(&Question::Flows { datapath: None }) {
            Some(Answer::Flows(flows)) => flows,
            other => panic!("{other:?}"),
        }
    }

    /// The node itself, as soon as it answers.
    pub fn view(&self) -> NodeView {
        let mut view = None;
        self.wait("the node answers", |node| {
            if let Some(Answer::Node(answer)) = node.ask(&Question::Node) {
                view = Some(answer);
            }
            view.is_some()
        });
        view.unwrap()
    }

    /// What the node and its apps use, as soon as the node's own processes have been looked at.
    pub fn usage(&self) -> UsageView {
        let mut usage = None;
        self.wait("the node says what it uses", |node| {
            if let Some(Answer::Usage(answer)) = node.ask(&Question::Usage)
                && !answer.kernel.is_empty()
                && !answer.monitor.is_empty()
            {
                usage = Some(answer);
            }
            usage.is_some()
        });
        usage.unwrap()
    }

    /// What one app uses.
    pub fn usage_of(&self, app: &str) -> Option<AppUsageView> {
        self.usage().apps.into_iter().find(|view| view.status.app == app)
    }

    /// Makes it read its configuration again.
    ///
    /// # Errors
    /// The node refuses; its sentence.
    pub fn reload(&self) -> Result<ReloadView, String> {
        match self.ask(&Question::Reload { app: None, slices: None }) {
            Some(Answer::Reloaded(view)) => Ok(view),
            Some(Answer::Refused(why)) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    /// Where switches connect.
    pub fn address(&self) -> SocketAddr {
        self.view().listen[0].parse().unwrap()
    }

    /// The kernel process.
    pub fn kernel_pid(&self) -> u32 {
        self.view().pid
    }

    /// The monitor's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it has written so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.bed.log()).unwrap_or_default()
    }

    /// Waits until this holds.
    ///
    /// # Panics
    /// It does not hold after [`PATIENCE`]: with the apps and the log.
    pub fn wait(&self, what: &str, mut holds: impl FnMut(&Node) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {:?}\n{}", self.apps(), self.log());
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until this holds for an app or service. Returns the app as it is then.
    pub fn wait_app(&self, name: &str, what: &str, holds: impl Fn(&AppView) -> bool) -> AppView {
        let mut found = None;
        self.wait(&format!("{name}: {what}"), |node| {
            found = node.apps().into_iter().find(|app| app.status.app == name).filter(|app| holds(app));
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until each app runs and has subscribed, has failed once, or does not start: a slice may wait for its network.
    pub fn wait_ready(&self) {
        self.wait("every app runs and has subscribed", |node| {
            let apps = node.apps();
            let rests =
                |app: &AppView| app.status.state == AppState::Stopped && app.status.last_end.is_some();
            let is_ready = |app: &AppView| app.commands > 0 || app.status.restarts > 0 || rests(app);
            !apps.is_empty() && apps.iter().all(is_ready)
        });
    }

    /// Waits until the log has this text.
    pub fn wait_for_line(&self, text: &str) {
        self.wait(text, |node| node.log().contains(text));
    }

    /// An emulated network whose switches are all connected to it.
    pub fn network(&self, topology: &str, options: &SwitchOptions) -> Handle {
        let topology: Topology = topology.parse().unwrap();
        let network = Emulation::start(&topology, self.address(), options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        network
    }

    /// Sends a signal to the monitor.
    pub fn signal(&self, which: Signal) {
        signal(self.child.id(), which);
    }

    /// Waits until the monitor has ended.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process, which may have ended meanwhile.
pub fn signal(pid: u32, which: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, which);
}

/// Ends a process with SIGKILL.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}
