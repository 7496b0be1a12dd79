//! A minimal controller in a thread: it sends a hello, requests the features, and floods every packet-in.

use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// Listens on a free port and serves every switch in a thread. Returns the switches' messages.
pub fn flooding() -> (SocketAddr, Receiver<Message>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (said, hearing) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let said = said.clone();
            std::thread::spawn(move || serve(&mut stream.unwrap(), |message| drop(said.send(message))));
        }
    });
    (address, hearing)
}

/// Listens, and calls `conduct` for each connection.
pub fn behaving(conduct: impl Fn(usize, TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            conduct(count, stream.unwrap());
        }
    });
    address
}

/// Serves one switch until it disconnects.
pub fn serve(stream: &mut TcpStream, heard: impl FnMut(Message)) {
    serve_with(Some(table_miss()), stream, heard);
}

/// Serves one switch until it disconnects, with this as the first rule of a 1.3 switch.
pub fn serve_with(first_rule: Option<FlowMod>, stream: &mut TcpStream, mut heard: impl FnMut(Message)) {
    while let Some(message) = read(stream) {
        let version = message.version;
        let mut say = |xid, body| {
            let mut bytes = Vec::new();
            Message { version, xid, body }.encode(&mut bytes).unwrap();
            // The switch may have disconnected. The next read reports it.
            let _ = stream.write_all(&bytes);
        };
        match &message.body {
            Body::Hello(_) => {
                say(1, Body::Hello(Hello::default()));
                say(2, Body::FeaturesRequest);
                if let Some(rule) = first_rule.clone().filter(|_| version == Version::V1_3) {
                    say(3, Body::FlowMod(rule));
                }
            }
            Body::EchoRequest(payload) => say(message.xid, Body::EchoReply(payload.clone())),
            Body::PacketIn(packet_in) => say(4, Body::PacketOut(flood(packet_in))),
            _ => {}
        }
        heard(message);
    }
}

fn read(stream: &mut TcpStream) -> Option<Message> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).ok()?;
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    bytes.resize(length, 0);
    stream.read_exact(&mut bytes[8..]).ok()?;
    Some(Message::decode(&bytes).unwrap())
}

fn flood(packet_in: &PacketIn) -> PacketOut {
    let (in_port, _) = packet_in.matching.get(Field::InPort).unwrap();
    let is_kept = packet_in.buffer_id != NO_BUFFER;
    PacketOut {
        buffer_id: packet_in.buffer_id,
        in_port: PortNo(in_port as u32),
        actions: vec![Action::output(PortNo::FLOOD)],
        data: if is_kept { Vec::new() } else { packet_in.data.clone() },
    }
}

fn table_miss() -> FlowMod {
    FlowModFields { priority: 0, ..FlowModFields::default() }.with(
        Match::any(),
        vec![Instruction::ApplyActions(vec![Action::Output { port: PortNo::CONTROLLER, max_len: 128 }])],
    )
}
