//! An app in a process of its own: takes its ports from the monitor, then events from the rings and commands into them.
//!
//! ```text
//!   monitor ──Welcome, descriptors──> run ──> [ port of worker 0 … n ] ──> Instance
//! ```
//!
//! Never reads anything but its ports once it runs, and ends when the monitor does.

use crate::app::App;
use crate::instance::Instance;
use crate::settings::Settings;
use abi::Frame;
use monitor::channel::Channel;
use monitor::protocol::{ToZone, split_ports};
use ring::{AppEnd, MAX_FRAME_BYTES, PortFds};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::HashMap;
use std::fmt::Display;
use std::process::ExitCode;

/// How many events of one port are taken before the next port has its turn and commands are shown to the kernel: enough to make one
/// wake-up serve many, few enough that the first command of a burst is not late.
const EVENTS_PER_TURN: usize = 256;

/// Runs an app in this process until its zone ends. For [`crate::main!`].
///
/// Exit codes: 0 when told to end; 2 when the app refuses its settings; 1 when the zone is not as it must be. What went wrong is on
/// standard error, which the monitor keeps.
pub fn run<A: App>() -> ExitCode {
    match welcome().and_then(start::<A>) {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("{trouble}");
            ExitCode::from(1)
        }
    }
}

fn welcome() -> Result<(Settings, Vec<PortFds>), String> {
    monitor::child::die_with_parent().map_err(in_words("it cannot be tied to its parent"))?;
    let channel = Channel::from_stdin()
        .map_err(in_words("it was not started by a Burnet node; `burnet run --app` does that"))?;
    let received = channel.receive::<ToZone>().map_err(in_words("the monitor did not welcome it"))?;
    let ToZone::Welcome { settings, ports, .. } = received.message;
    Ok((settings.into(), split_ports(received.fds, ports)?))
}

fn start<A: App>((settings, ports): (Settings, Vec<PortFds>)) -> Result<ExitCode, String> {
    let ports = ports.into_iter().map(AppEnd::attach).collect::<Result<Vec<_>, _>>();
    let ports = ports.map_err(in_words("a port could not be attached"))?;
    let mut instance = match Instance::<A>::start(&settings) {
        Ok(instance) => instance,
        Err(refusal) => {
            eprintln!("{refusal}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut process = Process { ports, homes: HashMap::new(), buffer: Vec::new() };
    process.subscribe_everywhere(instance.frames())?;
    while !instance.has_ended() {
        let mut idle = true;
        for port in 0..process.ports.len() {
            idle &= process.serve(port, &mut instance)? == 0;
        }
        if idle {
            process.sleep()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The ports of this process.
struct Process {
    ports: Vec<AppEnd>,
    /// Behind which port a switch is. Bounded by the switches that the node has told of and not taken back.
    homes: HashMap<u64, usize>,
    buffer: Vec<u8>,
}

impl Process {
    /// The first commands go to every worker: each has a kernel of its own to subscribe with.
    fn subscribe_everywhere(&mut self, frames: &mut Vec<u8>) -> Result<(), String> {
        for port in 0..self.ports.len() {
            self.push(port, frames)?;
            self.ports[port].producer.publish();
        }
        frames.clear();
        Ok(())
    }

    /// Takes events of one port and gives the commands that they led to. Says how many events there were.
    fn serve<A: App>(&mut self, port: usize, instance: &mut Instance<A>) -> Result<usize, String> {
        for served in 0..EVENTS_PER_TURN {
            let taken = self.ports[port].consumer.pop_into(&mut self.buffer);
            if taken.map_err(in_words("the kernel broke the rules of the port"))?.is_none() {
                self.publish();
                return Ok(served);
            }
            let frame = Frame::read(&self.buffer).map_err(in_words("the kernel sent what is no frame"))?;
            if self.ports.len() > 1 {
                remember_home(&mut self.homes, frame.header, port);
            }
            instance.on_frame(&frame).map_err(in_words("the kernel sent what is no event"))?;
            self.give(port, instance.frames())?;
        }
        self.publish();
        Ok(EVENTS_PER_TURN)
    }

    /// Each command goes to the worker that serves its switch; what is about no switch goes where the event came from.
    fn give(&mut self, came_from: usize, frames: &mut Vec<u8>) -> Result<(), String> {
        if self.ports.len() == 1 {
            self.push(came_from, frames)?;
        } else {
            let mut rest = frames.as_slice();
            while !rest.is_empty() {
                let (frame, others) =
                    Frame::split(rest).map_err(in_words("the app made a frame that is none"))?;
                let home = self.homes.get(&frame.header.datapath.get()).copied().unwrap_or(came_from);
                self.push(home, frame.bytes)?;
                rest = others;
            }
        }
        frames.clear();
        Ok(())
    }

    /// Writes whole frames into a port, waiting for room if there is none: an app that commands faster than the kernel takes is slowed
    /// down, not cut off.
    fn push(&mut self, port: usize, mut frames: &[u8]) -> Result<(), String> {
        while !frames.is_empty() {
            let (frame, rest) =
                Frame::split(frames).map_err(in_words("the app made a frame that is none"))?;
            while self.ports[port].producer.push(&[frame.bytes]).is_err() {
                self.wait_for_room(port, frame.bytes.len())?;
            }
            frames = rest;
        }
        Ok(())
    }

    fn wait_for_room(&mut self, port: usize, length: usize) -> Result<(), String> {
        let AppEnd { producer, .. } = &mut self.ports[port];
        producer.publish();
        if let Some(fault) = producer.fault() {
            return Err(format!("the kernel broke the rules of the port: {fault}"));
        }
        if length > MAX_FRAME_BYTES {
            return Err("the app made a frame longer than any that fits a port".to_owned());
        }
        if producer.about_to_wait(length) {
            self.poll_ports()?;
        }
        Ok(())
    }

    fn publish(&mut self) {
        self.ports.iter_mut().for_each(|port| port.producer.publish());
    }

    /// Sleeps until some port has events.
    fn sleep(&mut self) -> Result<(), String> {
        let mut all_asleep = true;
        for port in &mut self.ports {
            all_asleep &= port.consumer.about_to_sleep();
        }
        if all_asleep {
            self.poll_ports()?;
        }
        for port in &mut self.ports {
            port.drain_wake().map_err(in_words("a port could not be listened to"))?;
        }
        Ok(())
    }

    fn poll_ports(&mut self) -> Result<(), String> {
        let mut waits: Vec<_> =
            self.ports.iter().map(|port| PollFd::from_borrowed_fd(port.wake_fd(), PollFlags::IN)).collect();
        match poll(&mut waits, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("it cannot wait for events: {error}")),
        }
        drop(waits);
        for port in &mut self.ports {
            port.drain_wake().map_err(in_words("a port could not be listened to"))?;
        }
        Ok(())
    }
}

/// Takes note of where a switch is served.
fn remember_home(homes: &mut HashMap<u64, usize>, header: &abi::header::Header, port: usize) {
    match header.kind.get() {
        abi::event::kind::SWITCH_UP => drop(homes.insert(header.datapath.get(), port)),
        abi::event::kind::SWITCH_DOWN => drop(homes.remove(&header.datapath.get())),
        _ => {}
    }
}

fn in_words<E: Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}
