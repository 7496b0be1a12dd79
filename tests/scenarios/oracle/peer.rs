//! A switch to which bytes are said: ours in this process, or Open vSwitch over the socket by which a bridge is managed.
//!
//! In: messages as bytes. Out: what the switch answered until it said that all of them are done.

use super::forms::Names;
use emulator::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use flow::{DatapathId, PortNo};
use openflow::message::Hello;
use openflow::{Body, Message, Version};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use system_tests::Result;

/// Ports that each switch has.
pub const PORTS: u32 = 4;

/// Both answer at once; this only ends a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// By it the answer to the last barrier is known.
const LAST_XID: u32 = u32::MAX;

const NOW: Duration = Duration::from_secs(1_000);

/// Whoever takes messages.
pub trait Peer {
    /// By which names it knows fields.
    fn names(&self) -> Names;

    /// The answers to these messages, in order.
    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Message>>;
}

/// The software switch.
pub struct Ours {
    pub switch: Switch,
    pub effects: Effects,
}

/// A bridge of Open vSwitch's.
pub struct Theirs {
    stream: UnixStream,
    version: Version,
    unread: Vec<u8>,
}

fn encoded(version: Version, xid: u32, body: Body) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Message { version, xid, body }.encode(&mut bytes).map_err(|bad| bad.to_string())?;
    Ok(bytes)
}

/// The messages of a run of bytes.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = openflow::frame_len(rest)?.ok().filter(|length| *length <= rest.len())?;
        let (frame, after) = rest.split_at(length);
        rest = after;
        Some(frame)
    })
}

impl Ours {
    pub fn new(version: Version) -> Ours {
        let versions = if version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let options = SwitchOptions { versions, n_tables: 8, ..SwitchOptions::default() };
        let mut switch = Switch::new(DatapathId(1), "ours", options);
        let mut effects = Effects::default();
        (1..=PORTS).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        switch.on_connected(ControllerId(0), &mut effects);
        let hello = Message { version, xid: 0, body: Body::Hello(Hello::default()) };
        switch.on_message(ControllerId(0), &hello, NOW, &mut effects);
        Ours { switch, effects: Effects::default() }
    }
}

impl Peer for Ours {
    fn names(&self) -> Names {
        Names::OpenFlows
    }

    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Message>> {
        for frame in frames(messages) {
            let message = Message::decode(frame).map_err(|bad| format!("unreadable to ours: {bad}"));
            self.switch.on_received(ControllerId(0), &message?, frame, NOW, &mut self.effects);
        }
        Ok(self.effects.messages.drain(..).map(|(_, message)| message).collect())
    }
}

impl Theirs {
    /// Says hello over the socket.
    pub fn connect(socket: &Path, version: Version) -> Result<Theirs> {
        let failed = |error: std::io::Error| format!("{}: {error}", socket.display());
        let mut stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
        stream.write_all(&encoded(version, 0, Body::Hello(Hello::default()))?).map_err(failed)?;
        let mut theirs = Theirs { stream, version, unread: Vec::new() };
        theirs.exchange(&[])?;
        Ok(theirs)
    }

    /// What has come, as whole messages.
    fn take(&mut self) -> Result<Vec<Message>> {
        let mut bytes = [0; 65_536];
        let count = self.stream.read(&mut bytes).map_err(|error| format!("no answer: {error}"))?;
        if count == 0 {
            return Err("the switch has hung up".to_owned());
        }
        self.unread.extend_from_slice(&bytes[..count]);
        let (mut taken, mut messages) = (0, Vec::new());
        for frame in frames(&self.unread) {
            taken += frame.len();
            messages.push(
                Message::decode(&without_packet_type(frame))
                    .map_err(|bad| format!("unreadable of Open vSwitch: {bad} in {frame:02x?}"))?,
            );
        }
        self.unread.drain(..taken);
        Ok(messages)
    }
}

/// OXM_OF_PACKET_TYPE of Ethernet frames: OpenFlow 1.5's, by which Open vSwitch says of a rule of 1.3 that it is for such frames alone.
const PACKET_TYPE: [u8; 8] = [0x80, 0, 0x58, 4, 0, 0, 0, 0];

/// The same with that field as an Ethernet type's place, which nobody here sends: its length stays.
fn without_packet_type(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let places = frame.windows(PACKET_TYPE.len()).enumerate().filter(|(_, bytes)| *bytes == PACKET_TYPE);
    // NXM_NX_PKT_MARK, four bytes as well.
    let marks: Vec<usize> = places.map(|(place, _)| place).collect();
    marks.iter().for_each(|place| frame[*place..*place + 4].copy_from_slice(&[0, 1, 66, 4]));
    frame
}

impl Peer for Theirs {
    fn names(&self) -> Names {
        Names::NicirasToo
    }

    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Message>> {
        let barrier = encoded(self.version, LAST_XID, Body::BarrierRequest)?;
        let all = [messages, &barrier].concat();
        self.stream.write_all(&all).map_err(|error| format!("cannot say more: {error}"))?;
        let mut answers = Vec::new();
        loop {
            for message in self.take()? {
                match message.body {
                    Body::BarrierReply if message.xid == LAST_XID => return Ok(answers),
                    Body::EchoRequest(payload) => {
                        let reply = encoded(self.version, message.xid, Body::EchoReply(payload))?;
                        self.stream.write_all(&reply).map_err(|error| error.to_string())?;
                    }
                    Body::Hello(_) => {}
                    _ => answers.push(message),
                }
            }
        }
    }
}
