//! Switches that come back before the node knows that they were gone: how soon are they up again?

#![allow(clippy::unwrap_used, reason = "a test may")]

use flow::DatapathId;
use openflow::message::{FeaturesReply, Hello, MultipartReply, ReplyBody};
use openflow::{Body, Message, Version};
use operator::client;
use operator::contract::{Answer, Question, SwitchView};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for. Shorter than the node's patience with a switch that is silent, which is not to decide here.
const PATIENCE: Duration = Duration::from_secs(10);

struct Node {
    child: Child,
    socket: PathBuf,
    folder: PathBuf,
}

impl Node {
    fn start(name: &str, arguments: &[&str]) -> Node {
        let folder = std::env::temp_dir().join(format!("burnet-claims-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("node.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.env_remove("BURNET_SOCKET").env_remove("BURNET_LOG").stdin(Stdio::null());
        command.args([
            "run",
            "--app",
            "hub",
            "--listen",
            "127.0.0.1:0",
            "--die-with-parent",
            "--log",
            "error",
        ]);
        command.args(arguments).arg("--socket").arg(&socket).arg("--state").arg(folder.join("state"));
        let node = Node { child: command.spawn().unwrap(), socket, folder };
        node.until("it answers", || node.address().is_some());
        node
    }

    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        match client::ask(&self.socket, &Question::Node) {
            Ok(Answer::Node(node)) => node.listen.first()?.parse().ok(),
            _ => None,
        }
    }

    fn switches(&self) -> Vec<SwitchView> {
        match client::ask(&self.socket, &Question::Switches) {
            Ok(Answer::Switches(switches)) => switches,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until these switches are up, by these connections: how long that took.
    fn wait_for(&self, connections: &[TcpStream]) -> Duration {
        let began = Instant::now();
        let expected: Vec<String> =
            connections.iter().map(|stream| stream.local_addr().unwrap().to_string()).collect();
        self.until("the switches are up by their new connections", || {
            let peers: Vec<String> = self.switches().into_iter().map(|switch| switch.peer).collect();
            peers == expected
        });
        began.elapsed()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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
        let node = Node::start(&format!("back-{workers}"), &["--workers", workers]);
        let address = node.address().unwrap();
        let connect_all = || (1..=64).map(|number| connect(address, number)).collect::<Vec<_>>();
        let dead = connect_all();
        node.wait_for(&dead);
        let back = connect_all();
        let took = node.wait_for(&back);
        println!("{workers} worker(s): 64 switches were up again after {} ms", took.as_millis());
        // And once more, at once.
        let again = connect_all();
        let took = node.wait_for(&again);
        println!("{workers} worker(s): and after {} ms", took.as_millis());
    }
}
