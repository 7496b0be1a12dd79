//! A scripted switch: a socket that says what the test says.

use crate::node::Node;
use flow::{DatapathId, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use rustls::ClientConnection;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

pub struct Switch {
    stream: TcpStream,
    tls: Option<ClientConnection>,
    bytes: Vec<u8>,
    pub heard: Vec<Message>,
    /// Whether the controller has closed.
    pub closed: bool,
}

impl Switch {
    /// Connected, and has said nothing.
    pub fn silent(node: &Node) -> Switch {
        let stream = TcpStream::connect(node.address()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Switch { stream, tls: None, bytes: Vec::new(), heard: Vec::new(), closed: false }
    }

    /// The same by TLS.
    pub fn by_tls(node: &Node, tls: ClientConnection) -> Switch {
        Switch { tls: Some(tls), ..Switch::silent(node) }
    }

    /// Connected and up.
    pub fn up(node: &mut Node, version: Version, datapath: u64) -> Switch {
        let mut switch = Switch::silent(node);
        switch.come_up(node, version, datapath);
        switch
    }

    /// Goes through the handshake, to its end.
    pub fn come_up(&mut self, node: &mut Node, version: Version, datapath: u64) {
        let before = node.ups();
        self.shake_hands(version, datapath);
        node.until("the switch is up", |node| {
            self.pump();
            node.ups() > before
        });
    }

    /// Says everything that a switch says in the handshake, without waiting to be asked.
    pub fn shake_hands(&mut self, version: Version, datapath: u64) {
        self.say(version, Body::Hello(Hello::default()));
        let features = FeaturesReply {
            datapath_id: DatapathId(datapath),
            n_buffers: 0,
            n_tables: 254,
            auxiliary_id: 0,
            capabilities: 0,
            actions: 0,
            ports: Vec::new(),
        };
        self.say(version, Body::FeaturesReply(features));
        if version == Version::V1_3 {
            let reply = MultipartReply { flags: 0, body: ReplyBody::PortDesc(Vec::new()) };
            self.say(version, Body::MultipartReply(reply));
        }
    }

    pub fn say(&mut self, version: Version, body: Body) {
        self.say_as(version, 1, body);
    }

    pub fn say_as(&mut self, version: Version, xid: u32, body: Body) {
        let mut bytes = Vec::new();
        Message { version, xid, body }.encode(&mut bytes).unwrap();
        self.say_bytes(&bytes);
    }

    /// Says bytes; they must fit the socket's buffer.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            None => self.stream.write_all(bytes).unwrap(),
            Some(tls) => tls.writer().write_all(bytes).unwrap(),
        }
        self.pump();
    }

    /// Says as much of the bytes as the socket takes; how much that is.
    pub fn say_some(&mut self, bytes: &[u8]) -> usize {
        self.stream.write(bytes).unwrap_or(0)
    }

    /// Takes what the controller has said.
    pub fn pump(&mut self) {
        let mut room = [0; 4096];
        loop {
            match self.read(&mut room) {
                Ok(0) => {
                    self.closed = true;
                    break;
                }
                Ok(count) => self.bytes.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.closed = true;
                    break;
                }
            }
        }
        while let Some(Ok(length)) = openflow::frame_len(&self.bytes) {
            if length > self.bytes.len() {
                break;
            }
            let message: Vec<u8> = self.bytes.drain(..length).collect();
            self.heard.push(Message::decode(&message).unwrap());
        }
    }

    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(room) };
        loop {
            while tls.wants_write() {
                tls.write_tls(&mut self.stream)?;
            }
            match tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Whether the controller has said something like this.
    pub fn has_heard(&mut self, wanted: impl Fn(&Body) -> bool) -> bool {
        self.pump();
        self.heard.iter().any(|message| wanted(&message.body))
    }
}

/// A packet-in of so many bytes.
pub fn packet_in(size: usize) -> Body {
    Body::PacketIn(PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 1,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(1)),
        data: vec![7; size],
    })
}
