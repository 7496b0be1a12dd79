//! Trying an app without a node: hand it events, look at what it commands.
//!
//! Never starts a process or a thread.
//!
//! ```
//! # use burnet_sdk::{App, Commands, Interests, PacketIn, PortNo, Settings, testing::Trial};
//! # struct Hub;
//! # impl App for Hub {
//! #     fn new(_: &Settings) -> Result<Self, String> { Ok(Hub) }
//! #     fn interests(&self) -> Interests { Interests::none().packets() }
//! #     fn on_packet_in(&mut self, packet: &PacketIn, out: &mut Commands) {
//! #         out.packet_out(packet.datapath).packet(packet).output(PortNo::FLOOD).send();
//! #     }
//! # }
//! let mut trial = Trial::<Hub>::start("{}").unwrap();
//! assert_eq!(trial.packet_in(1, 1, b"a frame"), ["packet-out of:0000000000000001 in_port=1 actions=[output:FLOOD]"]);
//! ```

use crate::app::App;
use crate::instance::Instance;
use crate::settings::Settings;
use abi::Frame;
use abi::command::{Command, What};
use abi::event::{self, OpenFlowVersion, PacketIn, PortFacts, PortRecord, SwitchUp};
use flow::canonical::{read_actions, read_instructions, read_match};
use flow::{Action, DatapathId, Instruction, MacAddr, Match, MatchEntry, PortNo};
use std::collections::BTreeSet;
use std::sync::Arc;
use view::{Change, Key, Kind, Object, Record, Stamp};
use zone::guest::Guest;
use zone::region::{ReadRegion, Region, Unread};

/// A table in memory, as a zone shows it to an app, with these objects.
pub(crate) fn shared_table(objects: &[Object]) -> KeptTable {
    let record = |object: &Object| {
        let record = Record { stamp: Stamp::default(), object: object.clone() };
        (object.key().to_string().into_bytes(), record.to_bytes())
    };
    KeptTable(objects.iter().map(record).collect())
}

/// Records by their keys, in the memory of a test.
#[derive(Debug)]
pub(crate) struct KeptTable(Vec<(Vec<u8>, Vec<u8>)>);

impl ReadRegion for KeptTable {
    fn version(&self) -> u64 {
        2
    }

    fn is_full(&self) -> bool {
        false
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Unread> {
        let found = self.0.iter().find(|(known, _)| known == key);
        value.clear();
        value.extend(found.into_iter().flat_map(|(_, kept)| kept));
        Ok(found.is_some())
    }

    fn places(&self) -> usize {
        self.0.len()
    }

    fn at(&self, place: usize, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Unread> {
        let found = self.0.get(place);
        key.clear();
        key.extend(found.into_iter().flat_map(|(known, _)| known));
        self.get(&key.clone(), value)
    }
}

/// An app in a test.
pub struct Trial<A> {
    instance: Instance<A>,
    sequence: u64,
    frame: Vec<u8>,
}

impl<A: App> Trial<A> {
    /// Starts it with settings in JSON. Its subscription is not looked at.
    pub fn start(settings: &str) -> Result<Self, String> {
        let mut instance = Instance::start(&Settings::from_json(settings.as_bytes())?)?;
        instance.frames().clear();
        Ok(Trial { instance, sequence: 0, frame: Vec::new() })
    }

    /// The app.
    pub fn app(&self) -> &A {
        self.instance.app()
    }

    /// A switch comes up with ports of these numbers. What the app commands comes back in words, a line a command.
    pub fn switch_up(&mut self, datapath: u64, ports: &[u32]) -> Vec<String> {
        let record = |number: &u32| {
            PortRecord::new(PortFacts {
                port_no: PortNo(*number),
                hw_addr: MacAddr::from_u64(u64::from(*number)),
                live: true,
                administratively_up: true,
                curr_speed_kbps: 10_000_000,
                name: &format!("port{number}"),
            })
        };
        let ports: Vec<_> = ports.iter().map(record).collect();
        let up = SwitchUp {
            datapath: DatapathId(datapath),
            n_buffers: 0,
            n_tables: 1,
            openflow: OpenFlowVersion::V1_3,
            ports: &ports,
        };
        self.event(|out, sequence| event::write::switch_up(out, sequence, &up))
    }

    /// A switch goes.
    pub fn switch_down(&mut self, datapath: u64) -> Vec<String> {
        self.event(|out, sequence| event::write::switch_down(out, sequence, DatapathId(datapath)))
    }

    /// A frame comes up whole, as from a switch that buffers nothing.
    pub fn packet_in(&mut self, datapath: u64, in_port: u32, data: &[u8]) -> Vec<String> {
        self.packet_in_with(PacketIn { data, ..packet(datapath, in_port, data.len()) })
    }

    /// The beginning of a frame comes up, and the switch keeps it all.
    pub fn buffered_packet_in(
        &mut self,
        datapath: u64,
        in_port: u32,
        data: &[u8],
        buffer_id: u32,
    ) -> Vec<String> {
        self.packet_in_with(PacketIn { data, buffer_id: Some(buffer_id), ..packet(datapath, in_port, 1500) })
    }

    /// Any packet-in.
    pub fn packet_in_with(&mut self, packet: PacketIn<'_>) -> Vec<String> {
        self.event(|out, sequence| event::write::packet_in(out, sequence, &packet))
    }

    /// The clock ticks.
    pub fn tick(&mut self, now_ms: u64) -> Vec<String> {
        self.event(|out, sequence| event::write::tick(out, sequence, now_ms))
    }

    /// The network view changes by these objects, in one update. Each call has a later stamp than the one before.
    pub fn view_put(&mut self, objects: impl IntoIterator<Item = Object>) -> Vec<String> {
        self.view_changes(objects.into_iter().map(|object| (object.key(), Some(object))).collect())
    }

    /// Objects disappear from the network view, in one update.
    pub fn view_removed(&mut self, keys: impl IntoIterator<Item = Key>) -> Vec<String> {
        self.view_changes(keys.into_iter().map(|key| (key, None)).collect())
    }

    fn view_changes(&mut self, changes: Vec<(Key, Option<Object>)>) -> Vec<String> {
        self.sequence += 1;
        let stamp = Stamp { term: 0, sequence: self.sequence, origin: 0 };
        let changes = changes.into_iter().map(|(key, object)| Change { stamp, key, object });
        self.instance.change_view(changes.collect());
        in_words(&std::mem::take(self.instance.frames()))
    }

    /// The services share these objects with the app in memory, in place of those that they shared before.
    pub fn share(&mut self, objects: &[Object]) -> Vec<String> {
        let services: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.service()).collect();
        for service in services {
            let of_service = objects.iter().filter(|object| object.key().kind().service() == service);
            let table = Arc::new(shared_table(&of_service.cloned().collect::<Vec<_>>()));
            self.instance.on_region(Region::Reads { service: service.to_owned(), table });
        }
        self.instance.on_caught_up();
        in_words(&std::mem::take(self.instance.frames()))
    }

    /// The time has passed for which the app requested a wake-up. `None` if it requested none.
    pub fn wake(&mut self) -> Option<Vec<String>> {
        self.instance.take_wake()?;
        let mut frames = Vec::new();
        self.instance.on_wake(&mut frames).unwrap_or_else(|why| panic!("{why}"));
        Some(in_words(&frames))
    }

    /// Any event, put together by a function of [`abi::event::write`].
    pub fn event(&mut self, write: impl FnOnce(&mut Vec<u8>, u64) -> bool) -> Vec<String> {
        self.sequence += 1;
        self.frame.clear();
        assert!(write(&mut self.frame, self.sequence), "the event is longer than a frame can be");
        let frame = Frame::read(&self.frame).unwrap_or_else(|malformed| panic!("{malformed}"));
        self.instance.on_frame(&frame).unwrap_or_else(|malformed| panic!("{malformed}"));
        let frames = std::mem::take(self.instance.frames());
        in_words(&frames)
    }
}

fn packet(datapath: u64, in_port: u32, total_len: usize) -> PacketIn<'static> {
    PacketIn {
        datapath: DatapathId(datapath),
        in_port: PortNo(in_port),
        buffer_id: None,
        total_len: u16::try_from(total_len).unwrap_or(u16::MAX),
        reason: 0,
        table_id: 0,
        cookie: 0,
        metadata: &[],
        data: &[],
    }
}

/// Command frames, one after the other, in words: a line a command.
///
/// # Panics
/// When they are none: whatever made them is broken.
pub fn in_words(mut frames: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !frames.is_empty() {
        let (frame, rest) = Frame::split(frames).unwrap_or_else(|malformed| panic!("{malformed}"));
        let command = Command::read(&frame).unwrap_or_else(|malformed| panic!("{malformed}"));
        lines.push(line(&command));
        frames = rest;
    }
    lines
}

fn line(command: &Command<'_>) -> String {
    let datapath = command.datapath;
    match &command.what {
        What::FlowMod(it) => {
            let name =
                ["add", "modify", "modify-strict", "delete", "delete-strict"].get(usize::from(it.command));
            let mut text = format!("{}-rule {datapath} priority={}", name.unwrap_or(&"odd"), it.priority);
            if let Some(buffer) = it.buffer_id {
                text += &format!(" buffer={buffer}");
            }
            if (it.idle_timeout_s, it.hard_timeout_s) != (0, 0) {
                text += &format!(" idle={} hard={}", it.idle_timeout_s, it.hard_timeout_s);
            }
            text + &format!(
                " match=[{}] actions=[{}]",
                match_words(it.matching),
                instruction_words(it.instructions)
            )
        }
        What::PacketOut(it) => {
            let buffer = it.buffer_id.map(|buffer| format!(" buffer={buffer}")).unwrap_or_default();
            let actions = read_actions(it.actions).map(|actions| action_words(&actions));
            let actions = actions.unwrap_or_else(|error| error.to_string());
            format!("packet-out {datapath}{buffer} in_port={} actions=[{actions}]", it.in_port)
        }
        What::Query(it) if it.service == store_contract::SERVICE => {
            match store_contract::Ask::from_bytes(it.payload) {
                Ok(store_contract::Ask { op, key, value }) => format!("ask store: {op:?} {key:?} {value:?}"),
                Err(why) => format!("ask store: {why}"),
            }
        }
        What::Log(log) => format!("log {}", log.text),
        What::Bundle(bundle) => {
            let read =
                |frame: Frame<'_>| Command::read(&frame).map_or_else(|it| it.to_string(), |it| line(&it));
            let lines: Vec<String> = bundle.flow_mods().map(read).collect();
            format!("bundle {datapath} [{}]", lines.join("; "))
        }
        other => format!("{other:?}"),
    }
}

fn match_words(bytes: &[u8]) -> String {
    let entry = |entry: &MatchEntry| match entry {
        MatchEntry::Field { field, value, mask: None } => format!("{}={value:#x}", field.name()),
        MatchEntry::Field { field, value, mask: Some(mask) } => {
            format!("{}={value:#x}/{mask:#x}", field.name())
        }
        MatchEntry::Unknown { header, .. } => format!("oxm {header:#x}"),
    };
    let words = |matching: Match| matching.entries().iter().map(entry).collect::<Vec<_>>().join(",");
    read_match(bytes).map_or_else(|error| error.to_string(), words)
}

fn instruction_words(bytes: &[u8]) -> String {
    let instruction = |instruction: &Instruction| match instruction {
        Instruction::ApplyActions(actions) => action_words(actions),
        other => format!("{other:?}"),
    };
    let words = |all: Vec<Instruction>| all.iter().map(instruction).collect::<Vec<_>>().join(",");
    read_instructions(bytes).map_or_else(|error| error.to_string(), words)
}

fn action_words(actions: &[Action]) -> String {
    let action = |action: &Action| match action {
        Action::Output { port, .. } => format!("output:{port}"),
        other => format!("{other:?}"),
    };
    actions.iter().map(action).collect::<Vec<_>>().join(",")
}
