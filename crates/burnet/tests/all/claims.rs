//! Switches that reconnect before the node notices that their old sessions are dead: how soon are they up again?

use flow::DatapathId;
use openflow::message::{FeaturesReply, Hello, MultipartReply, ReplyBody};
use openflow::{Body, Message, Version};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node};

/// A node with a hub.
fn start(arguments: &[&str]) -> Node {
    Bed::new(env!("CARGO_BIN_EXE_burnet")).node().app("hub").args(arguments).start_ready()
}

/// Waits until these switches are up, by these connections: how long that took.
fn wait_for(node: &Node, connections: &[TcpStream]) -> Duration {
    let began = Instant::now();
    let expected: Vec<String> =
        connections.iter().map(|stream| stream.local_addr().unwrap().to_string()).collect();
    node.wait("the switches are up by their new connections", |node| {
        let peers: Vec<String> = node.switches().into_iter().map(|switch| switch.peer).collect();
        peers == expected
    });
    began.elapsed()
}

/// A switch that shakes hands and then says nothing more, as one whose cable was pulled.
fn connect(address: SocketAddr, datapath: u64) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let features = FeaturesReply {
        datapath_id: DatapathId(datapath),
        n_buffers: 0,
        n_tables: 254,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    let ports = MultipartReply { flags: 0, body: ReplyBody::PortDesc(Vec::new()) };
    let mut bytes = Vec::new();
    for body in [Body::Hello(Hello::default()), Body::FeaturesReply(features), Body::MultipartReply(ports)] {
        Message { version: Version::V1_3, xid: 1, body }.encode(&mut bytes).unwrap();
    }
    stream.write_all(&bytes).unwrap();
    stream
}

#[test]
fn sixty_four_switches_that_are_back_before_they_are_known_to_be_gone_are_up_at_once() {
    for workers in ["1", "2"] {
        let node = start(&["--workers", workers]);
        let address = node.address();
        let connect_all = || (1..=64).map(|number| connect(address, number)).collect::<Vec<_>>();
        let dead = connect_all();
        wait_for(&node, &dead);
        let back = connect_all();
        let took = wait_for(&node, &back);
        println!("{workers} worker(s): 64 switches were up again after {} ms", took.as_millis());
        // And once more, at once.
        let again = connect_all();
        let took = wait_for(&node, &again);
        println!("{workers} worker(s): and after {} ms", took.as_millis());
    }
}
