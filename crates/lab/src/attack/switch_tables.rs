//! What is in the tables of emulated switches, as they say themselves: a second controller asks them, past the node.
//!
//! ```text
//!   switches ──connect──> Witness ──flow, group and meter statistics──> Tables
//! ```
//!
//! In: connections of switches. Out: all that does not end by itself, and how often each rule was used. It changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use openflow::message::{
    FlowStats, FlowStatsRequest, METER_ALL, MULTIPART_MORE, MultipartRequest, ReplyBody, RequestBody,
};
use openflow::{Body, Message, Version};

/// How long a busy switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The rules without a time-out, the groups and the meters of all switches, as text.
pub type Lasting = BTreeSet<String>;

/// What the switches have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// What does not end by itself.
    pub lasting: Lasting,
    /// How many packets each such rule had, except for those of priority 0, which have what no other rule has.
    pub used: BTreeMap<String, u64>,
}

/// The connections of the switches.
pub struct Witness {
    version: Version,
    switches: Vec<Switch>,
}

struct Switch {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Witness {
    /// Waits for so many switches.
    ///
    /// # Errors
    /// One does not connect, or its handshake fails.
    pub fn accept(listener: &TcpListener, version: Version, count: usize) -> io::Result<Witness> {
        listener.set_nonblocking(false)?;
        let switch = |_| {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let mut switch = Switch { stream, read: Vec::new() };
            switch.say(version, Body::Hello(openflow::message::Hello::default()))?;
            switch.say(version, Body::FeaturesRequest)?;
            while !matches!(switch.hear()?, Some(Message { body: Body::FeaturesReply(_), .. })) {}
            Ok(switch)
        };
        let switches = (0..count).map(switch).collect::<io::Result<_>>()?;
        Ok(Witness { version, switches })
    }

    /// What all switches have now.
    ///
    /// # Errors
    /// One does not answer.
    pub fn tables(&mut self) -> io::Result<Tables> {
        let mut tables = Tables::default();
        for (at, switch) in self.switches.iter_mut().enumerate() {
            for body in switch.ask(self.version)? {
                note(at, body, &mut tables);
            }
        }
        Ok(tables)
    }
}

fn note(switch: usize, body: ReplyBody, tables: &mut Tables) {
    let ends = |flow: &FlowStats| flow.idle_timeout_s > 0 || flow.hard_timeout_s > 0;
    match body {
        ReplyBody::Flow(flows) => {
            for flow in flows.into_iter().filter(|flow| !ends(flow)) {
                let rule = format!(
                    "switch {switch}: rule table={} priority={} flags={} cookie={:#x} {:?} {:?}",
                    flow.table_id, flow.priority, flow.flags, flow.cookie, flow.matching, flow.instructions
                );
                if flow.priority > 0 {
                    tables.used.insert(rule.clone(), flow.packet_count);
                }
                tables.lasting.insert(rule);
            }
        }
        ReplyBody::GroupDesc(groups) => {
            tables.lasting.extend(groups.iter().map(|group| format!("switch {switch}: {group:?}")));
        }
        ReplyBody::MeterConfig(meters) => {
            tables.lasting.extend(meters.iter().map(|meter| format!("switch {switch}: {meter:?}")));
        }
        _ => {}
    }
}

impl Switch {
    fn say(&mut self, version: Version, body: Body) -> io::Result<()> {
        let mut bytes = Vec::new();
        let written = Message { version, xid: 1, body }.encode(&mut bytes);
        written.map_err(|why| io::Error::other(format!("{why:?}")))?;
        self.stream.write_all(&bytes)
    }

    /// The next message that can be read. What a switch says on its own account is skipped.
    fn hear(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(&[_, _, high, low]) = self.read.first_chunk() {
                let length = usize::from(u16::from_be_bytes([high, low])).max(8);
                if self.read.len() >= length {
                    let whole: Vec<u8> = self.read.drain(..length).collect();
                    let message = Message::decode(&whole).ok();
                    if let Some(Message { version, body: Body::EchoRequest(data), .. }) = message {
                        self.say(version, Body::EchoReply(data))?;
                        continue;
                    }
                    return Ok(message);
                }
            }
            let mut room = [0; 64 << 10];
            match self.stream.read(&mut room)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.read.extend_from_slice(&room[..count]),
            }
        }
    }

    fn ask(&mut self, version: Version) -> io::Result<Vec<ReplyBody>> {
        let mut questions = vec![RequestBody::Flow(FlowStatsRequest::default())];
        if version != Version::V1_0 {
            questions.extend([RequestBody::GroupDesc, RequestBody::MeterConfig(METER_ALL)]);
        }
        let mut answers = Vec::new();
        for body in questions {
            self.say(version, Body::MultipartRequest(MultipartRequest { flags: 0, body }))?;
            loop {
                let Some(Message { body: Body::MultipartReply(reply), .. }) = self.hear()? else { continue };
                answers.push(reply.body);
                if reply.flags & MULTIPART_MORE == 0 {
                    break;
                }
            }
        }
        Ok(answers)
    }
}
