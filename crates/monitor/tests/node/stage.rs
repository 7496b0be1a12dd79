//! What the scenarios stand on: plans, a node that is driven until it is in a state, processes looked at from outside.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use monitor::{AppSource, AppSpec, AppStatus, Monitor, NodeEnd, Plan, Programs, Timing, ZoneKind};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

/// Far beyond what a loaded machine needs; only a failure takes it.
const GIVE_UP: Duration = Duration::from_secs(60);

pub const WORKERS: u16 = 2;

/// An app that greets the kernel with `settings`, in its own process.
pub fn app(name: &str, kind: ZoneKind, settings: Value) -> AppSpec {
    let Value::Object(settings) = settings else { panic!("{settings}") };
    let source = AppSource::BuiltIn("greeter".into());
    AppSpec {
        zone: None,
        name: name.into(),
        role: Default::default(),
        duty: None,
        kind,
        source,
        limits: Default::default(),
        sandbox: Default::default(),
        settings,
        grant: Default::default(),
        regions: Default::default(),
        packaged: false,
        paused: false,
        waits: false,
    }
}

/// An app that becomes a shell script.
pub fn script(name: &str, script: &str) -> AppSpec {
    app(name, ZoneKind::Process, json!({"script": script}))
}

pub fn plan(apps: Vec<AppSpec>) -> Plan {
    let this = std::env::current_exe().unwrap().into_os_string();
    let kernel = vec![this.clone(), "kernel".into()];
    let zone = move |spec: &AppSpec, _: &monitor::ZoneSetup| {
        let script = spec.settings.get("script").and_then(Value::as_str).map(OsString::from);
        [this.clone(), "zone".into()].into_iter().chain(script).collect()
    };
    Plan {
        apps,
        workers: WORKERS,
        port: ring::Sizes::default(),
        config: json!({}),
        programs: Programs { kernel, zone: Box::new(zone) },
        timing: Timing { end_grace_ms: 300, ..Timing::default() },
        safe_mode: Default::default(),
        records: None,
        find: None,
        reload: None,
        network_changes: None,
        packages: None,
        owners: Default::default(),
    }
}

/// A running node and the hand on its stop button.
pub struct Node {
    monitor: Monitor,
    stop: std::io::PipeWriter,
    pid_file: PathBuf,
    pub outcome: Option<NodeEnd>,
}

impl Node {
    pub fn start(mut plan: Plan) -> Node {
        let (reader, stop) = std::io::pipe().unwrap();
        let pid_file = scratch("kernel");
        plan.config["pid_file"] = json!(pid_file);
        Node { monitor: Monitor::start(plan, reader.into()).unwrap(), stop, pid_file, outcome: None }
    }

    /// Lets the node run until `done` says so.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Node) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < GIVE_UP, "never came to be: {what}; {:#?}", self.monitor.statuses());
            assert_eq!(self.outcome, None, "it ended before: {what}");
            self.outcome = self.monitor.turn().unwrap();
        }
    }

    pub fn status(&self, app: &str) -> AppStatus {
        self.monitor.statuses().into_iter().find(|status| status.app == app).unwrap()
    }

    pub fn last_reason(&self, app: &str) -> String {
        self.status(app).last_end.map(|end| end.reason).unwrap_or_default()
    }

    pub fn last_line(&self, app: &str) -> String {
        self.status(app).last_end.and_then(|end| end.last_line).unwrap_or_default()
    }

    /// The app runs in its `generation` or a later one.
    pub fn runs(&self, app: &str, generation: u64) -> bool {
        let status = self.status(app);
        status.state == monitor::AppState::Running && status.generation >= generation
    }

    /// The process id that the kernel role wrote down when it was configured.
    pub fn kernel_pid(&self) -> Option<u32> {
        read_pid(&self.pid_file)
    }

    pub fn ask_to_stop(&mut self) {
        self.stop.write_all(b"!").unwrap();
    }

    #[track_caller]
    pub fn end(mut self) -> NodeEnd {
        self.until("the end", |node| node.outcome.is_some());
        self.outcome.take().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It is not there if no kernel came so far.
        let _ = std::fs::remove_file(&self.pid_file);
    }
}

pub fn read_pid(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A script that writes into FILE.app for how many seconds it will sleep, and sleeps: a number that nobody else sleeps for. Its process id
/// is another inside of its zone.
pub fn sleeper(file: &Path) -> String {
    let seconds = 1_000_000 + std::process::id();
    format!("echo {seconds} > {}.app; exec sleep {seconds}", file.display())
}

/// Whether somebody sleeps for so long.
pub fn sleeps(seconds: u32) -> bool {
    let expected = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    commands.any(|command| command == expected.as_bytes())
}

/// A path that no other test uses.
pub fn scratch(what: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::env::temp_dir().join(format!("burnet-monitor-{}-{number}-{what}", std::process::id()))
}

/// Whole or not at all, because others poll for it.
pub fn write(path: &str, text: &str) {
    let unfinished = format!("{path}.part");
    std::fs::write(&unfinished, text).unwrap();
    std::fs::rename(unfinished, path).unwrap();
}

pub fn kill(pid: u32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// A folder for what a node keeps, gone when the test is.
pub struct Records(pub PathBuf);

impl Records {
    pub fn new() -> Records {
        Records(scratch("records"))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// It runs; a process that ended and was not reaped does not.
pub fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    !matches!(state, Some('Z' | 'X') | None)
}

#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < GIVE_UP, "never came to be: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Everything that was logged since the program began.
pub fn log() -> String {
    String::from_utf8_lossy(&sink().lock().unwrap()).into_owned()
}

pub fn keep_log() {
    let write = || Sink(sink().clone());
    tracing_subscriber::fmt().with_ansi(false).with_writer(write).init();
}

fn sink() -> &'static Arc<Mutex<Vec<u8>>> {
    static SINK: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    SINK.get_or_init(Default::default)
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
