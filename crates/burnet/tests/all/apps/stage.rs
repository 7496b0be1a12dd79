//! A node with apps of the folder `apps`, and an emulated network whose hosts send any frame and say what they receive.
//!
//! In: settings of apps, frames. Out: the frames that hosts receive. No test waits for a silence: it sends a second frame that must arrive,
//! and looks at what came before.

use emulator::run::{Captured, Tap};
use emulator::topology::Endpoint;
use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use flow::frame::FrameFields;
use operator::contract::{Answer, FlowView, Question};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE};

pub struct Stage {
    pub node: Node,
    pub network: Handle,
    ears: Vec<(String, Captured)>,
}

/// The versions in which each behaviour is looked at.
pub const BOTH: [Versions; 2] = [Versions::Only10, Versions::Only13];

/// How long a host listens until the test looks again whether time is up.
const LISTEN: Duration = Duration::from_millis(20);

/// An app of the folder `apps`, with its settings.
pub struct App<'a>(pub &'a str, pub &'a str);

impl Stage {
    /// A node with these apps, and a network of one version. `rest` is the rest of `burnet.toml`.
    pub fn new(apps: &[App<'_>], rest: &str, topology: &str, versions: Versions) -> Stage {
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let tables: String = apps.iter().map(|app| table(&bed, app)).collect();
        let node = bed.node().config(&format!("{rest}\n{tables}")).log("info").start_ready();
        let topology: Topology = topology.parse().unwrap();
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let taps: Vec<_> =
            (0..topology.hosts.len()).map(|index| Tap::Arrivals(Endpoint::Host { index })).collect();
        let (network, _, captured) =
            Emulation::start_captured(&topology, &[node.address()], &options, &taps).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        let names = topology.hosts.iter().map(|host| host.name.clone());
        Stage { node, network, ears: names.zip(captured).collect() }
    }

    /// The rules that an app or service has in all switches.
    pub fn rules(&self, owner: &str) -> Vec<FlowView> {
        let Some(Answer::Flows(switches)) = self.node.ask(&Question::Flows { datapath: None }) else {
            return Vec::new();
        };
        switches.into_iter().flat_map(|switch| switch.flows).filter(|flow| flow.owner == owner).collect()
    }

    /// Waits until an app or service has exactly so many rules.
    pub fn wait_for_rules(&self, owner: &str, count: usize) {
        self.node.wait(&format!("{owner} has {count} rules"), |_| self.rules(owner).len() == count);
    }

    pub fn send(&self, host: &str, frame: &[u8]) {
        self.network.send_frame(host, frame.to_vec()).unwrap();
    }

    /// Waits until a host receives such a frame. Returns it, and what the host received before.
    ///
    /// # Panics
    /// None comes: with the node's log.
    pub fn hear(&self, host: &str, what: &str, is_it: impl Fn(&[u8]) -> bool) -> (Vec<u8>, Vec<Vec<u8>>) {
        let (began, mut before) = (Instant::now(), Vec::new());
        while began.elapsed() < PATIENCE {
            match self.ear(host).next_within(LISTEN) {
                Ok((_, frame)) if is_it(&frame) => return (frame, before),
                Ok((_, frame)) => before.push(frame),
                Err(_) => {}
            }
        }
        panic!("{host} does not receive {what}, but {before:02x?}\n{}", self.node.log());
    }

    /// Sends a frame again and again until a host receives it: the first ones can be lost while the network is not ready.
    pub fn reaches(&self, from: &str, frame: &[u8], to: &str) {
        self.reaches_as(from, frame, to, frame);
    }

    /// The same, with the frame as it arrives.
    pub fn reaches_as(&self, from: &str, frame: &[u8], to: &str, arrives: &[u8]) {
        let began = Instant::now();
        let mut heard = Vec::new();
        while began.elapsed() < PATIENCE {
            self.send(from, frame);
            heard.extend(self.heard_within(to, LISTEN));
            if heard.iter().any(|heard| same(heard, arrives)) {
                return;
            }
        }
        panic!("{to} does not receive {frame:02x?} of {from}, but {heard:02x?}\n{}", self.node.log());
    }

    /// Sends a frame, and then a marker that must reach the host. The frame must not have reached it before the marker.
    pub fn is_kept_from(&self, to: &str, (from, frame): (&str, &[u8]), (by, marker): (&str, &[u8])) {
        self.send(from, frame);
        self.send(by, marker);
        let (_, before) = self.hear(to, "the marker", |heard| same(heard, marker));
        assert!(
            !before.iter().any(|heard| heard.ends_with(payload(frame))),
            "{to} got {frame:02x?} of {from}"
        );
    }

    /// Whether such a frame came since the host was last listened to, or comes in a moment.
    pub fn has_come(&self, host: &str, is_it: impl Fn(&[u8]) -> bool) -> bool {
        self.heard_within(host, LISTEN).iter().any(|frame| is_it(frame))
    }

    /// What a host has received since it was last listened to.
    pub fn all(&self, host: &str) -> Vec<Vec<u8>> {
        self.heard_within(host, Duration::ZERO)
    }

    /// Forgets what a host has received so far.
    pub fn forget(&self, host: &str) {
        while self.ear(host).next_within(Duration::ZERO).is_ok() {}
    }

    fn heard_within(&self, host: &str, time: Duration) -> Vec<Vec<u8>> {
        let mut heard = Vec::new();
        while let Ok((_, frame)) =
            self.ear(host).next_within(if heard.is_empty() { time } else { Duration::ZERO })
        {
            heard.push(frame);
        }
        heard
    }

    fn ear(&self, host: &str) -> &Captured {
        &self.ears.iter().find(|(name, _)| name == host).unwrap().1
    }
}

/// Whether two frames are the same but for padding.
fn same(heard: &[u8], sent: &[u8]) -> bool {
    heard.starts_with(sent) && heard[sent.len()..].iter().all(|byte| *byte == 0)
}

/// The end of a frame, which no tag and no rewrite changes.
fn payload(frame: &[u8]) -> &[u8] {
    &frame[frame.len().saturating_sub(8)..]
}

/// What a frame has in its headers.
pub fn fields(frame: &[u8]) -> FrameFields {
    FrameFields::read(frame)
}

/// The app's table in `burnet.toml`, and its folder with its manifest and its program.
fn table(bed: &Bed, App(name, settings): &App<'_>) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../apps/{name}/app.toml"));
    let manifest = fs::read_to_string(manifest).unwrap();
    let folder = bed.path(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("app.toml"), manifest.replace(&format!("../../target/release/{name}"), name))
        .unwrap();
    fs::copy(bed.example(&format!("app_{name}")), folder.join(name)).unwrap();
    format!("[app.{name}]\npath = '{}'\n[app.{name}.settings]\n{settings}\n", folder.join(name).display())
}
