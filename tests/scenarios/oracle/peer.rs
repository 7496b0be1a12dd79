//! A switch that exchanges bytes with the test: ours in this process, or Open vSwitch over the management socket of a
//! bridge.
//!
//! In: messages as bytes, frames. Out: the switch's answers up to the barrier reply, and the frames that left it.

use super::forms::Names;
use emulator::{ControllerId, Effects, Switch, SwitchOptions};
use flow::{DatapathId, PortNo};
use openflow::message::{Hello, HelloElement, NO_BUFFER};
use openflow::{Body, Message, Version};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::Result;
use system_tests::dummy_bridge::DummyBridge;

/// Ports that each switch has.
pub const PORTS: u32 = 4;

/// Both switches answer at once; this limit only ends a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// The transaction id of the last barrier.
const LAST_XID: u32 = u32::MAX;

const NOW: Duration = Duration::from_secs(1_000);

/// A peer that accepts messages.
pub trait Peer {
    /// The names by which it knows fields.
    fn names(&self) -> Names;

    /// The answers to these messages, in order.
    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// The answers as messages.
pub fn ask(peer: &mut dyn Peer, messages: &[u8]) -> Result<Vec<Message>> {
    let answers = peer.exchange(messages)?;
    let read = |frame: &Vec<u8>| {
        Message::decode(&without_packet_type(frame))
            .map_err(|bad| format!("an unreadable answer: {bad} in {frame:02x?}"))
    };
    answers.iter().map(read).collect()
}

/// A switch with a node on one connection, and an observer on another.
pub trait Bench {
    /// Deletes all rules, groups and meters, and lets the node connect again.
    fn begin(&mut self, version: Version) -> Result<()>;

    /// The node's connection.
    fn node(&mut self) -> &mut dyn Peer;

    /// The observer's connection, in the node's version.
    fn onlooker(&mut self) -> &mut dyn Peer;

    /// A frame arrives at a port. Returns the messages to the node.
    fn arrive(&mut self, port: u32, frame: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The frames that left since the last call.
    fn take_frames(&mut self) -> Result<Vec<(u32, Vec<u8>)>>;
}

fn encoded(version: Version, xid: u32, body: Body) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Message { version, xid, body }.encode(&mut bytes).map_err(|bad| bad.to_string())?;
    Ok(bytes)
}

/// A hello that offers one version.
fn hello(version: Version) -> Body {
    let bitmap = HelloElement::VersionBitmap(vec![1 << version.0]);
    Body::Hello(if version == Version::V1_0 { Hello::default() } else { Hello { elements: vec![bitmap] } })
}

/// Splits bytes into messages.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = openflow::frame_len(rest)?.ok().filter(|length| *length <= rest.len())?;
        let (frame, after) = rest.split_at(length);
        rest = after;
        Some(frame)
    })
}

/// OXM_OF_PACKET_TYPE for Ethernet frames. Open vSwitch adds this field of OpenFlow 1.5 to a 1.3 rule that matches only
/// Ethernet frames.
const PACKET_TYPE: [u8; 8] = [0x80, 0, 0x58, 4, 0, 0, 0, 0];

/// Replaces that field by NXM_NX_PKT_MARK, which no test sends and which has the same length.
fn without_packet_type(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let places = frame.windows(PACKET_TYPE.len()).enumerate().filter(|(_, bytes)| *bytes == PACKET_TYPE);
    let marks: Vec<usize> = places.map(|(place, _)| place).collect();
    marks.iter().for_each(|place| frame[*place..*place + 4].copy_from_slice(&[0, 1, 66, 4]));
    frame
}

/// One of our switch's controllers.
const NODE: ControllerId = ControllerId(0);
const ONLOOKER: ControllerId = ControllerId(1);

/// The software switch, with the selected one of its two connections.
pub struct Ours {
    switch: Switch,
    effects: Effects,
    in_hand: ControllerId,
}

impl Ours {
    /// A switch with a connection on which no hello was sent yet.
    pub fn new() -> Ours {
        let mut switch =
            Switch::new(DatapathId(1), "ours", SwitchOptions { n_tables: 8, ..SwitchOptions::default() });
        let mut effects = Effects::default();
        (1..=PORTS).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        switch.on_connected(NODE, &mut effects);
        Ours { switch, effects, in_hand: NODE }
    }

    /// A switch with a controller of this version.
    pub fn greeted(version: Version) -> Result<Ours> {
        let mut ours = Ours::new();
        ours.exchange(&encoded(version, 0, hello(version))?)?;
        Ok(ours)
    }

    /// The messages to the selected connection. Those to the other one are dropped.
    fn heard(&mut self) -> Result<Vec<Vec<u8>>> {
        let Ours { effects, in_hand, .. } = self;
        let for_it = effects.messages.drain(..).filter(|(controller, _)| controller == in_hand);
        for_it.map(|(_, message)| encoded(message.version, message.xid, message.body)).collect()
    }
}

impl Peer for Ours {
    fn names(&self) -> Names {
        Names::OpenFlows
    }

    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Vec<u8>>> {
        for frame in frames(messages) {
            let message = Message::decode(frame).map_err(|bad| format!("unreadable to ours: {bad}"));
            self.switch.on_received(self.in_hand, &message?, frame, NOW, &mut self.effects);
        }
        self.heard()
    }
}

impl Bench for Ours {
    fn begin(&mut self, version: Version) -> Result<()> {
        *self = Ours::new();
        let mut effects = Effects::default();
        self.switch.on_connected(ONLOOKER, &mut effects);
        let message = Message { version, xid: 0, body: hello(version) };
        self.switch.on_message(ONLOOKER, &message, NOW, &mut effects);
        Ok(())
    }

    fn node(&mut self) -> &mut dyn Peer {
        self.in_hand = NODE;
        self
    }

    fn onlooker(&mut self) -> &mut dyn Peer {
        self.in_hand = ONLOOKER;
        self
    }

    fn arrive(&mut self, port: u32, frame: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.in_hand = NODE;
        self.switch.on_frame(PortNo(port), frame.to_vec(), NOW, &mut self.effects);
        self.heard()
    }

    fn take_frames(&mut self) -> Result<Vec<(u32, Vec<u8>)>> {
        Ok(self.effects.frames.drain(..).map(|(port, frame)| (port.0, frame)).collect())
    }
}

/// A connection to a bridge of Open vSwitch's.
pub struct Theirs {
    stream: UnixStream,
    /// Set once both sides have sent a hello.
    version: Option<Version>,
    unread: Vec<u8>,
}

impl Theirs {
    /// A connection without any message yet.
    pub fn dial(socket: &Path) -> Result<Theirs> {
        let failed = |error: std::io::Error| format!("{}: {error}", socket.display());
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
        Ok(Theirs { stream, version: None, unread: Vec::new() })
    }

    /// A connection of this version.
    pub fn greeted(socket: &Path, version: Version) -> Result<Theirs> {
        let mut theirs = Theirs::dial(socket)?;
        theirs.exchange(&encoded(version, 0, hello(version))?)?;
        Ok(theirs)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|error| format!("cannot say more: {error}"))
    }

    /// Reads whole messages.
    fn take(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut bytes = [0; 65_536];
        let count = self.stream.read(&mut bytes).map_err(|error| format!("no answer: {error}"))?;
        if count == 0 {
            return Err("the switch has hung up".to_owned());
        }
        self.unread.extend_from_slice(&bytes[..count]);
        let messages: Vec<Vec<u8>> = frames(&self.unread).map(<[u8]>::to_vec).collect();
        self.unread.drain(..messages.iter().map(Vec::len).sum::<usize>());
        Ok(messages)
    }
}

/// OFPT_ECHO_REQUEST and OFPT_ECHO_REPLY.
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;

/// OFPT_BARRIER_REPLY of either version.
fn is_last(version: Version, frame: &[u8]) -> bool {
    let kind = if version == Version::V1_0 { 19 } else { 21 };
    frame.get(1) == Some(&kind) && frame.get(4..8) == Some(&LAST_XID.to_be_bytes())
}

impl Peer for Theirs {
    fn names(&self) -> Names {
        Names::NicirasToo
    }

    fn exchange(&mut self, messages: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.write(messages)?;
        let Some(version) = self.version else {
            // A hello: no barrier may be sent before both sides have sent one.
            self.version = messages.first().map(|byte| Version(*byte));
            return self.take();
        };
        self.write(&encoded(version, LAST_XID, Body::BarrierRequest)?)?;
        let mut answers = Vec::new();
        loop {
            for mut frame in self.take()? {
                if is_last(version, &frame) {
                    return Ok(answers);
                } else if frame[1] == ECHO_REQUEST {
                    frame[1] = ECHO_REPLY;
                    self.write(&frame)?;
                } else {
                    answers.push(frame);
                }
            }
        }
    }
}

/// A bridge with both connections.
pub struct TheirBench<'s> {
    bridge: DummyBridge<'s>,
    socket: PathBuf,
    node: Theirs,
    onlooker: Theirs,
    /// It uses 1.3, because 1.0 has no groups and meters.
    cleaner: Theirs,
    version: Version,
}

impl<'s> TheirBench<'s> {
    pub fn new(bridge: DummyBridge<'s>, socket: PathBuf) -> Result<TheirBench<'s>> {
        let version = Version::V1_3;
        let node = Theirs::dial(&socket)?;
        let (onlooker, cleaner) = (Theirs::greeted(&socket, version)?, Theirs::greeted(&socket, version)?);
        Ok(TheirBench { bridge, socket, node, onlooker, cleaner, version })
    }
}

/// Deletes all rules, groups and meters of 1.3.
fn clean_up() -> Result<Vec<u8>> {
    use openflow::message::*;
    let rules = FlowModFields { table_id: TABLE_ALL, command: FLOW_DELETE, ..FlowModFields::default() };
    let rules = Body::FlowMod(rules.with(flow::Match::any(), Vec::new()));
    // OFPGC_DELETE of OFPG_ALL, and OFPMC_DELETE of OFPM_ALL.
    let groups = GroupMod { command: 2, group_type: 0, group_id: 0xffff_fffc, buckets: Vec::new() };
    let meters = MeterMod { command: 2, flags: 0, meter_id: 0xffff_ffff, bands: Vec::new() };
    let all = [rules, Body::GroupMod(groups), Body::MeterMod(meters)];
    Ok(all.into_iter().map(|body| encoded(Version::V1_3, 1, body)).collect::<Result<Vec<_>>>()?.concat())
}

impl Bench for TheirBench<'_> {
    fn begin(&mut self, version: Version) -> Result<()> {
        self.node = Theirs::dial(&self.socket)?;
        if self.version != version {
            (self.onlooker, self.version) = (Theirs::greeted(&self.socket, version)?, version);
        }
        self.cleaner.exchange(&clean_up()?)?;
        self.take_frames().map(drop)
    }

    fn node(&mut self) -> &mut dyn Peer {
        &mut self.node
    }

    fn onlooker(&mut self) -> &mut dyn Peer {
        &mut self.onlooker
    }

    /// Sends a packet-out to the tables. It is complete when its barrier is answered.
    fn arrive(&mut self, port: u32, frame: &[u8]) -> Result<Vec<Vec<u8>>> {
        let packet_out = openflow::message::PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo(port),
            actions: vec![flow::Action::output(PortNo::TABLE)],
            data: frame.to_vec(),
        };
        self.onlooker.exchange(&encoded(self.version, 2, Body::PacketOut(packet_out))?)?;
        self.node.exchange(&[])
    }

    fn take_frames(&mut self) -> Result<Vec<(u32, Vec<u8>)>> {
        let by_port = (1..).zip(self.bridge.sent()?);
        Ok(by_port.flat_map(|(port, frames)| frames.into_iter().map(move |frame| (port, frame))).collect())
    }
}
