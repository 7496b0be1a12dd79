//! An Open vSwitch bridge whose ports are files, so that a test can read each port's output byte by byte.
//!
//! ```text
//!   rules, groups ─────────────────> DummyBridge
//!   frame and its ingress port ────────> │ ──> the output of `ofproto/trace`, and the frames that left
//! ```
//!
//! Its user-space datapath and its ports are those of Open vSwitch's own tests (`--enable-dummy`). It never uses a
//! network device.

use crate::Result;
use crate::open_vswitch::OpenVSwitch;
use crate::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A time limit that only ends a hang: everything here is answered at once.
const LIMIT: Duration = Duration::from_secs(20);
/// Sizes of the header of a capture file, and of the header before each packet.
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;

/// The bridge `br0` with the ports 1 to `ports`.
pub struct DummyBridge<'s> {
    sandbox: &'s Sandbox,
    switch: OpenVSwitch<'s>,
    control: UnixStream,
    captures: Vec<Capture>,
}

/// The output of one port that was not read yet.
struct Capture {
    file: File,
    unread: Vec<u8>,
}

impl<'s> DummyBridge<'s> {
    /// Starts a separate Open vSwitch in the sandbox.
    pub fn start(sandbox: &'s Sandbox, ports: u32) -> Result<DummyBridge<'s>> {
        let control = sandbox.folder().join("control");
        let unixctl = format!("--unixctl={}", control.display());
        let switch = OpenVSwitch::start_with(sandbox, &["--enable-dummy", &unixctl])?;
        // So that it parses two VLAN tags, as OpenFlow requires.
        switch.vsctl(&["set", "Open_vSwitch", ".", "other_config:vlan-limit=2"])?;
        let bridge = ["datapath_type=dummy", "fail_mode=secure", "other_config:disable-in-band=true"];
        switch.vsctl(&[&["add-br", "br0", "--", "set", "bridge", "br0"], &bridge[..]].concat())?;
        for port in 1..=ports {
            let capture = format!("options:tx_pcap={}", capture_file(sandbox, port).display());
            let (name, number) = (format!("p{port}"), format!("ofport_request={port}"));
            let interface = ["set", "interface", &name, "type=dummy", &number, &capture];
            switch.vsctl(&[&["add-port", "br0", &name, "--"], &interface[..]].concat())?;
        }
        let captures = (1..=ports).map(|port| Capture::open(capture_file(sandbox, port)));
        let captures = captures.collect::<Result<_>>()?;
        let control = UnixStream::connect(&control).map_err(|error| format!("no control socket: {error}"))?;
        control.set_read_timeout(Some(LIMIT)).map_err(|error| format!("no limit for answers: {error}"))?;
        Ok(DummyBridge { sandbox, switch, control, captures })
    }

    /// The switch itself.
    pub fn switch(&self) -> &OpenVSwitch<'s> {
        &self.switch
    }

    /// Replaces all groups and rules. Each line is one line of `ovs-ofctl bundle`.
    pub fn load(&self, lines: &[String]) -> Result<()> {
        let file = self.sandbox.folder().join("bundle");
        let all = ["flow delete", "group delete group_id=all"].into_iter().map(str::to_owned);
        let text: String = all.chain(lines.iter().cloned()).map(|line| line + "\n").collect();
        fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let words = ["bundle", "br0", &file.display().to_string()];
        self.switch.ofctl(crate::Version::V1_3, &words).map(drop)
    }

    /// The output of `ofproto/trace` for a frame.
    pub fn trace(&mut self, in_port: u32, frame: &[u8]) -> Result<String> {
        self.ask("ofproto/trace", &["br0", &format!("in_port={in_port}"), &hex(frame)])
    }

    /// Sends a frame to the bridge, and returns the output of each port, the first port's first. It waits for
    /// `expected` frames at each port. The next call returns further ones.
    pub fn receive(&mut self, in_port: u32, frame: &[u8], expected: &[usize]) -> Result<Vec<Vec<Vec<u8>>>> {
        // Otherwise the datapath would use old rules for a moment longer. It also stores flows by fewer fields than
        // it writes: with a new MPLS label a packet would get the class of the flow's first packet.
        self.ask("revalidator/purge", &[])?;
        self.ask("netdev-dummy/receive", &[&format!("p{in_port}"), &hex(frame)])?;
        let started = Instant::now();
        let mut frames = vec![Vec::new(); self.captures.len()];
        loop {
            for (capture, frames) in self.captures.iter_mut().zip(&mut frames) {
                capture.read(frames)?;
            }
            let all_there = frames.iter().zip(expected).all(|(frames, expected)| frames.len() >= *expected);
            if all_there || started.elapsed() > LIMIT {
                return Ok(frames);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// The frames that have left each port since the last call, the first port's first.
    pub fn sent(&mut self) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut frames = vec![Vec::new(); self.captures.len()];
        for (capture, frames) in self.captures.iter_mut().zip(&mut frames) {
            capture.read(frames)?;
        }
        Ok(frames)
    }

    /// Uses the socket of `ovs-appctl` (JSON-RPC), which saves a process for each question.
    fn ask(&mut self, command: &str, words: &[&str]) -> Result<String> {
        let request = json!({"id": 0, "method": command, "params": words});
        let failed = |error: std::io::Error| format!("{command}: {error}");
        self.control.write_all(request.to_string().as_bytes()).map_err(failed)?;
        let mut answers = serde_json::Deserializer::from_reader(&self.control).into_iter::<Value>();
        let answer = answers.next().ok_or_else(|| format!("{command}: no answer"))?;
        let answer = answer.map_err(|error| format!("{command}: {error}"))?;
        match (answer.get("result"), answer.get("error")) {
            (Some(Value::String(text)), _) => Ok(text.clone()),
            (_, None | Some(Value::Null)) => Ok(String::new()),
            _ => Err(format!("{command} {}: {answer}", words.join(" "))),
        }
    }
}

impl Capture {
    fn open(path: PathBuf) -> Result<Capture> {
        let file = File::open(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(Capture { file, unread: Vec::new() })
    }

    /// Appends the frames that were written since the last call.
    fn read(&mut self, frames: &mut Vec<Vec<u8>>) -> Result<()> {
        let at_start = self.file.read_to_end(&mut self.unread).map_err(|error| error.to_string())?;
        if at_start == 0 {
            return Ok(());
        }
        // In this machine's byte order.
        if self.unread.starts_with(&0xa1b2_c3d4u32.to_ne_bytes()) {
            self.unread.drain(..FILE_HEADER_BYTES.min(self.unread.len()));
        }
        while let Some(header) = self.unread.first_chunk::<PACKET_HEADER_BYTES>() {
            let length = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]) as usize;
            let end = PACKET_HEADER_BYTES + length;
            let Some(frame) = self.unread.get(PACKET_HEADER_BYTES..end) else { break };
            frames.push(frame.to_vec());
            self.unread.drain(..end);
        }
        Ok(())
    }
}

fn capture_file(sandbox: &Sandbox, port: u32) -> PathBuf {
    sandbox.folder().join(format!("p{port}.pcap"))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The datapath's port numbers that a trace outputs to, in order. `ofproto/trace` prints them as plain numbers in its
/// lines "Datapath actions:". It prints other actions as words with arguments.
pub fn ports_of_trace(trace: &str) -> Vec<u32> {
    let lines = trace.lines().filter_map(|line| line.strip_prefix("Datapath actions: "));
    lines.flat_map(outputs).collect()
}

fn outputs(actions: &str) -> Vec<u32> {
    let mut found = Vec::new();
    // The words whose brackets are open, and the word that is being read.
    let (mut open, mut word): (Vec<String>, String) = (Vec::new(), String::new());
    let mut end = |word: &mut String, open: &[String]| {
        if open.iter().all(|outer| outer == "clone")
            && let Ok(port) = word.parse()
        {
            found.push(port);
        }
        word.clear();
    };
    for character in actions.trim().chars().chain([',']) {
        match character {
            '(' => open.push(std::mem::take(&mut word)),
            ')' => {
                end(&mut word, &open);
                open.pop();
            }
            ',' => end(&mut word, &open),
            other => word.push(other),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actions: &str, expected: &[u32]) {
        assert_eq!(ports_of_trace(&format!("x\nDatapath actions: {actions}\ny")), expected, "{actions}");
    }

    #[test]
    fn a_trace_is_read_for_its_outputs_alone() {
        check("drop", &[]);
        check("2", &[2]);
        check("set(ipv4(src=10.0.0.1,ttl=3)),push_vlan(vid=4,pcp=5),2,pop_vlan,3", &[2, 3]);
        check("clone(set(eth(src=00:00:00:00:00:07)),4),1,recirc(0x1)", &[4, 1]);
        check(
            "userspace(pid=0,controller(reason=1,7)),push_mpls(label=16,tc=0,ttl=64,bos=1,eth_type=0x8847),3",
            &[3],
        );
    }
}
