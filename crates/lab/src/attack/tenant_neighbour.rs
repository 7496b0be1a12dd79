//! A tenant that behaves: the controller of a slice beside that of an attacker. It adds the same few rules to each of its switches, and goes on answering.
//!
//! In: connections of virtual switches. Out: rules. It judges nothing, and ends with its connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openflow::message::{FlowMod, Hello};
use openflow::{Body, Version};

use super::tenant_messages::{flow_mod, group, meter, numbered};

/// The types of messages that it reads.
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const BARRIER_REPLY_V1_0: u8 = 19;
const BARRIER_REPLY: u8 = 21;

/// A tenant that behaves.
pub struct Neighbour {
    /// Where its virtual switches connect.
    pub address: SocketAddr,
    /// How many of them have their rules.
    ready: Arc<AtomicUsize>,
}

impl Neighbour {
    /// Waits for virtual switches until the process ends. `floods`: its hosts reach each other.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn start(version: Version, floods: bool) -> std::io::Result<Neighbour> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, ready) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
        let (words, counted) = (words(version, floods), ready.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (words, ready) = (words.clone(), counted.clone());
                std::thread::spawn(move || serve(stream, &words, &ready));
            }
        });
        Ok(Neighbour { address, ready })
    }

    /// How many virtual switches have their rules.
    pub fn ready(&self) -> usize {
        self.ready.load(Ordering::Relaxed)
    }
}

/// A greeting, a group, a meter, rules, and a barrier.
fn words(version: Version, floods: bool) -> Vec<u8> {
    let cookie = 0xfeed;
    let mut bodies = vec![Body::Hello(Hello::default()), Body::FeaturesRequest, group(0, 1), meter(0, 1)];
    let used = if version == Version::V1_0 { "output:1" } else { "meter:1,group:1" };
    bodies.push(Body::FlowMod(FlowMod { cookie, ..flow_mod("dl_type=0x88b6", used) }));
    if floods {
        bodies.push(Body::FlowMod(FlowMod { cookie, priority: 1, ..flow_mod("", "flood") }));
    }
    bodies.push(Body::BarrierRequest);
    numbered(version, 1, bodies).concat()
}

fn serve(mut stream: TcpStream, words: &[u8], ready: &AtomicUsize) {
    let (mut read, mut room) = (Vec::new(), [0; 16 << 10]);
    if stream.write_all(words).is_err() {
        return;
    }
    while let Ok(count @ 1..) = stream.read(&mut room) {
        read.extend_from_slice(&room[..count]);
        while let Some(&[version, kind, high, low]) = read.first_chunk() {
            let length = usize::from(u16::from_be_bytes([high, low])).max(8);
            if read.len() < length {
                break;
            }
            let message: Vec<u8> = read.drain(..length).collect();
            let is_barrier = kind == if version == 1 { BARRIER_REPLY_V1_0 } else { BARRIER_REPLY };
            ready.fetch_add(usize::from(is_barrier), Ordering::Relaxed);
            if kind == ECHO_REQUEST {
                let answer = [&[version, ECHO_REPLY], &message[2..]].concat();
                // A connection that cannot be written to is seen to be closed by the next read.
                let _ = stream.write_all(&answer);
            }
        }
    }
}
