//! The children that the scenarios start: a small kernel, a small app, and a whole monitor.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{abort, exit};
use std::time::{Duration, Instant};

use monitor::channel::{Channel, ChannelError};
use monitor::protocol::{FaultCause, FromKernel, ToKernel, ToZone, split_ports};
use ring::{AppEnd, Board, KernelEnd};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};
use zone::launch::{self, Code};
use zone::{Confinement, Limits, NotEnforced, Sandbox};

use crate::stage;

/// What the kernel role knows.
struct Kernel {
    channel: Channel,
    config: Value,
    ports: Vec<(String, u64, KernelEnd)>,
    board: Board,
}

impl Kernel {
    fn say(&self, message: FromKernel) {
        match self.channel.try_send(&message, &[]) {
            Ok(()) | Err(ChannelError::NotNow) => {}
            Err(ChannelError::Closed) => exit(0),
            Err(error) => panic!("{error}"),
        }
    }

    fn hear(&mut self) {
        loop {
            let received = match self.channel.try_receive::<ToKernel>() {
                Ok(received) => received,
                Err(ChannelError::NotNow) => return,
                Err(ChannelError::Closed) => exit(0),
                Err(error) => panic!("{error}"),
            };
            match received.message {
                ToKernel::AttachZone { app, generation, ports, .. } => {
                    for port in split_ports(received.fds, ports).unwrap() {
                        self.ports.push((app.clone(), generation, KernelEnd::attach(port).unwrap()));
                    }
                }
                ToKernel::DetachZone { app, generation, .. } => {
                    self.ports.retain(|(name, attached, _)| (name, *attached) != (&app, generation));
                }
                ToKernel::LoadTrusted { zone, app, settings, .. } => {
                    self.board.write(1, zone.into());
                    self.load(app, &settings);
                    self.board.write(1, 0);
                }
                ToKernel::Shutdown => exit(0),
                ToKernel::Configure { .. }
                | ToKernel::Owned { .. }
                | ToKernel::AppAdded { .. }
                | ToKernel::UnloadTrusted { .. }
                | ToKernel::Regrant { .. }
                | ToKernel::Reconfigure { .. }
                | ToKernel::Reloaded { .. }
                | ToKernel::Apps { .. }
                | ToKernel::Resources { .. }
                | ToKernel::StoreSaved { .. }
                | ToKernel::SoftLimit { .. } => {}
            }
        }
    }

    /// A trusted app can do what it likes to the kernel process.
    fn load(&self, app: String, settings: &serde_json::Map<String, Value>) {
        match settings.get("trusted").and_then(Value::as_str) {
            Some("panic") => self.say(FromKernel::TrustedFault { app, reason: "it panicked".into() }),
            Some("abort") => abort(),
            Some("hang") => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            _ => {}
        }
    }

    /// Apps send words over their ports; the kernel calls each a fault, so that the scenario sees it arrive.
    fn read_ports(&mut self) {
        let mut words = Vec::new();
        for (app, generation, port) in &mut self.ports {
            let mut frame = Vec::new();
            while let Ok(Some(_)) = port.consumer.pop_into(&mut frame) {
                let reason = String::from_utf8_lossy(&frame).into_owned();
                let (app, cause) = (app.clone(), FaultCause::BrokePort);
                words.push(FromKernel::ZoneFault { app, generation: *generation, cause, reason });
            }
        }
        words.into_iter().for_each(|word| self.say(word));
    }
}

/// A kernel process: says that it lives, attaches ports, and does what its configuration says.
pub fn kernel() {
    monitor::child::die_with_parent().unwrap();
    let channel = Channel::from_stdin().unwrap();
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0, "the socket is still on standard input");
    let received = channel.receive::<ToKernel>().unwrap();
    let ToKernel::Configure { config, .. } = received.message else { panic!("{received:?}") };
    let board = Board::open(&received.fds[0]).unwrap();
    let mut kernel = Kernel { channel, config, ports: Vec::new(), board };
    if let Some(path) = kernel.config.get("pid_file").and_then(Value::as_str) {
        stage::write(path, &std::process::id().to_string());
    }
    match kernel.config.get("kernel").and_then(Value::as_str) {
        Some("port in use") => {
            kernel.say(FromKernel::Fatal { exit_code: 2, message: "port 6653 is in use".into() });
            exit(2);
        }
        Some("talkative") => {
            for _ in 0..200 {
                kernel.say(FromKernel::Alive);
            }
            kernel.say(FromKernel::Fatal { exit_code: 2, message: "the last word".into() });
            exit(2);
        }
        Some("deaf") => {
            kernel.say(FromKernel::Ready);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Some("garbage") => {
            kernel.channel.try_send(&json!({"alive": "and kicking"}), &[]).unwrap();
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        _ => {}
    }
    kernel.say(FromKernel::Ready);
    for said in kernel.config.get("says").and_then(Value::as_array).cloned().unwrap_or_default() {
        kernel.say(serde_json::from_value(said).unwrap());
    }
    let mut alive = Instant::now();
    loop {
        wait_10_ms(&kernel.channel);
        kernel.hear();
        kernel.read_ports();
        if alive.elapsed() >= Duration::from_millis(monitor::protocol::ALIVE_INTERVAL_MS) {
            alive = Instant::now();
            kernel.say(FromKernel::Alive);
        }
    }
}

fn wait_10_ms(channel: &Channel) {
    let mut fds = [PollFd::from_borrowed_fd(channel.as_fd(), PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 })).unwrap();
}

/// The process of an app: the launcher, and then a shell script or a small app.
pub fn zone(args: &[String]) {
    // What a script needs that counts how often it was started.
    let mut sandbox = Sandbox { spawn: true, own_user: false, ..Sandbox::default() };
    sandbox.fs.write.push(std::env::temp_dir());
    let code = match args.first() {
        Some(script) => {
            Code::Program { path: "/bin/sh".into(), args: ["-c", script].map(OsString::from).into() }
        }
        None => Code::Here,
    };
    let known_gaps = vec![NotEnforced::new("cpu_percent", "the test says so")];
    let limits = Limits { processes: None, ..Limits::default() };
    let confinement = Confinement {
        limits,
        sandbox,
        code,
        user: None,
        cgroups: Vec::new(),
        others_write: Vec::new(),
        known_gaps,
    };
    let confined = launch::confine(&confinement).unwrap();
    for gap in confined.not_enforced() {
        eprintln!("{}{}", monitor::ZONE_REMARK, serde_json::to_string(gap).unwrap());
    }
    launch::hand_over_streams().unwrap();
    if !args.is_empty() {
        panic!("{}", confined.r#become());
    }
    let channel = Channel::from_stdin().unwrap();
    let received = channel.receive::<ToZone>().unwrap();
    let ToZone::Welcome { app, generation, settings, ports, .. } = received.message else {
        panic!("the first message is no welcome");
    };
    let mut ports: Vec<AppEnd> = split_ports(received.fds, ports)
        .unwrap()
        .into_iter()
        .map(|port| AppEnd::attach(port).unwrap())
        .collect();
    if let Some(word) = settings.get("word").and_then(Value::as_str) {
        let frame = format!("{app} {generation} says {word} on port {}", ports.len());
        let port = ports.last_mut().unwrap();
        port.producer.push(&[frame.as_bytes()]).unwrap();
        port.producer.publish();
    }
    // Until the monitor is gone or kills us.
    let end = channel.receive::<ToZone>();
    panic!("{end:?}");
}

/// A whole node, as `burnet run` would be, configured by the file that is named in `BURNET_TEST_PID_FILE`, with the kernel of
/// `BURNET_TEST_KERNEL`.
pub fn monitor() {
    let pid_file = PathBuf::from(std::env::var_os("BURNET_TEST_PID_FILE").unwrap());
    let mut plan = stage::plan(vec![stage::script("sleeper", &stage::sleeper(&pid_file))]);
    plan.config = json!({"pid_file": pid_file, "kernel": std::env::var("BURNET_TEST_KERNEL").unwrap()});
    let outcome = monitor::run(plan, &mut Default::default()).unwrap();
    exit(outcome.code.into());
}
