//! Hosts in network namespaces, joined by a bridge, for tests. Each namespace is that of a thread, and ends with it.
//!
//! In: names. Out: commands and closures that run inside, UDP traffic, and rates. It changes nothing outside of its namespaces.

use edge::agent::{Peer, Settings};
use edge::linux::{Device, Trouble};
use edge::protocol::Key;
use edge::vnic::{Address, AgentId, Directory, SliceId, Vnic, VnicId};
use edge::{Config, Orders, run};
use flow::MacAddr;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::SndBuf;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The port of agents in these networks.
pub const AGENT_PORT: u16 = 6655;

/// The port of TCP connections.
const TCP_PORT: u16 = 5001;

/// What a sending socket lets wait. Linux doubles it, and counts about 2,300 bytes for a frame.
const SEND_BYTES: usize = 40_000;

/// The size of the test's frames.
const FRAME_BYTES: usize = 1250;

/// The EtherType of the test's frames: one for experiments.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Whether the test's frames have a tag.
#[derive(Clone, Copy, Debug)]
pub enum Vlan {
    None,
    Id(u16),
}

type Task = Box<dyn FnOnce() + Send>;

/// A namespace.
pub struct Host {
    tasks: Sender<Task>,
    thread_id: i32,
}

impl Host {
    fn new() -> Self {
        let (tasks, received) = channel::<Task>();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            received.into_iter().for_each(|task| task());
        });
        Host { tasks, thread_id: told.recv().unwrap() }
    }

    /// Runs a closure inside, to its end. Threads and processes that it starts are inside too.
    pub fn inside<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        self.tasks.send(Box::new(move || drop(tell.send(task())))).unwrap();
        told.recv().unwrap()
    }

    /// Runs a command inside.
    pub fn run(&self, command: &str) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let output = self.inside(move || Command::new(&words[0]).args(&words[1..]).output().unwrap());
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Hosts at a bridge. The link to one of them is slow.
pub struct Lab {
    hosts: BTreeMap<&'static str, Host>,
    _bridge: Host,
}

impl Lab {
    pub fn new(names: &[&'static str], slow: &str, link_bps: u64) -> Self {
        let bridge = Host::new();
        bridge.run("ip link add br0 type bridge");
        bridge.run("ip link set br0 up");
        let mut hosts = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            let host = Host::new();
            bridge.run(&format!("ip link add {name} type veth peer name eth0 netns {}", host.thread_id));
            bridge.run(&format!("ip link set {name} up master br0"));
            if *name == slow {
                // 20 ms of queue, as a switch may have.
                bridge.run(&format!(
                    "tc qdisc add dev {name} root tbf rate {link_bps}bit burst 5000 limit {}",
                    link_bps / 8 / 50
                ));
            }
            host.run("ip link set lo up");
            host.run(&format!("ip link set eth0 address {}", mac(index as u32 + 1)));
            // A real card sends the segments of a large packet at the speed of the link. A veth hands them on at once, which
            // overflows the small queue of the bridge. So hosts cut their segments themselves, as in Mininet.
            host.run("ip link set eth0 gso_max_segs 1");
            host.run("ip link set eth0 up");
            host.run(&format!("ip addr add 10.9.0.{}/24 dev eth0", index + 1));
            hosts.insert(*name, host);
        }
        Lab { hosts, _bridge: bridge }
    }

    pub fn host(&self, name: &str) -> &Host {
        &self.hosts[name]
    }

    /// Sends frames as fast as the shaper takes them, as VNIC `from` to VNIC `to`.
    pub fn send(&self, name: &str, from: u32, to: u32, vlan: Vlan, time: Duration) -> JoinHandle<()> {
        let frame = frame(from, to, vlan);
        self.host(name).inside(move || {
            std::thread::spawn(move || {
                let socket = packet_socket();
                // The socket blocks when so much waits in the shaper: a busy machine then delays nothing for 30 ms.
                nix::sys::socket::setsockopt(&socket, SndBuf, &(SEND_BYTES)).unwrap();
                let begin = Instant::now();
                while begin.elapsed() < time {
                    // The queue of a class may be smaller. Then the frame is dropped.
                    if nix::sys::socket::send(socket.as_raw_fd(), &frame, MsgFlags::empty()).is_err() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            })
        })
    }

    /// Sends one frame.
    pub fn send_one(&self, name: &str, frame: Vec<u8>) {
        self.host(name).inside(move || {
            nix::sys::socket::send(packet_socket().as_raw_fd(), &frame, MsgFlags::empty()).unwrap()
        });
    }

    /// Collects the frames of VNICs 1 and 2.
    pub fn receive(&self, name: &str, time: Duration) -> JoinHandle<Vec<Arrival>> {
        self.host(name).inside(move || {
            std::thread::spawn(move || {
                let socket = packet_socket();
                let (begin, mut buffer, mut arrivals) = (Instant::now(), [0; 2048], Vec::new());
                while begin.elapsed() < time {
                    let Ok(read) =
                        nix::sys::socket::recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT)
                    else {
                        std::thread::sleep(Duration::from_micros(300));
                        continue;
                    };
                    // Linux takes a tag off.
                    let is_frame = read >= FRAME_BYTES - 4 && buffer[6] == 2;
                    if is_frame && (1..=2).contains(&buffer[11]) {
                        let sender = usize::from(buffer[11]) - 1;
                        arrivals.push(Arrival { at: begin.elapsed(), sender, bytes: FRAME_BYTES });
                    }
                }
                arrivals
            })
        })
    }
}

impl Lab {
    /// Accepts two TCP connections, and collects what arrives: sender 0 is the host with the address 1.
    pub fn accept(&self, name: &str, time: Duration) -> JoinHandle<Vec<Arrival>> {
        self.host(name).inside(move || {
            let listener = TcpListener::bind(("0.0.0.0", TCP_PORT)).unwrap();
            std::thread::spawn(move || {
                let begin = Instant::now();
                let collect = move |mut stream: TcpStream| {
                    let SocketAddr::V4(peer) = stream.peer_addr().unwrap() else { panic!("IPv4 only") };
                    let sender = usize::from(peer.ip().octets()[3]) - 1;
                    let (mut buffer, mut arrivals) = ([0; 65_536], Vec::new());
                    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                        if begin.elapsed() > time {
                            break;
                        }
                        arrivals.push(Arrival { at: begin.elapsed(), sender, bytes });
                    }
                    arrivals
                };
                let accept = |_| {
                    let (stream, _) = listener.accept().unwrap();
                    std::thread::spawn(move || collect(stream))
                };
                let readers: Vec<_> = (0..2).map(accept).collect();
                let mut arrivals: Vec<Arrival> =
                    readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
                arrivals.sort_by_key(|arrival| arrival.at);
                arrivals
            })
        })
    }

    /// Sends over TCP to the host with this address.
    pub fn connect(&self, name: &str, address: u8, time: Duration) -> JoinHandle<()> {
        self.host(name).inside(move || {
            std::thread::spawn(move || {
                let begin = Instant::now();
                let mut stream = TcpStream::connect((Ipv4Addr::new(10, 9, 0, address), TCP_PORT)).unwrap();
                stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
                while begin.elapsed() < time && stream.write(&[0; 16_384]).is_ok() {}
            })
        })
    }
}

/// A frame that was received.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: Duration,
    /// 0 for VNIC 1, 1 for VNIC 2.
    pub sender: usize,
    pub bytes: usize,
}

pub fn mac(id: u32) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, id as u8])
}

/// A VNIC with the address of its number.
pub fn vnic(id: u32, agent: u32, guarantee_bps: u64, vlan: Vlan) -> Vnic {
    let vlan = match vlan {
        Vlan::None => None,
        Vlan::Id(id) => Some(id),
    };
    Vnic {
        id: VnicId(id),
        slice: SliceId(1),
        agent: Some(AgentId(agent)),
        address: Address { vlan, mac: mac(id) },
        guarantee_bps,
        strict: false,
    }
}

fn frame(from: u32, to: u32, vlan: Vlan) -> Vec<u8> {
    let mut frame = [mac(to).0, mac(from).0].concat();
    if let Vlan::Id(id) = vlan {
        frame.extend_from_slice(&[0x81, 0]);
        frame.extend_from_slice(&id.to_be_bytes());
    }
    frame.extend_from_slice(&ETHER_TYPE);
    frame.resize(FRAME_BYTES, 0);
    frame
}

/// A UDP datagram to the port of agents, from VNIC `from` to VNIC `to`, with the source address 10.9.`net`.2.
pub fn datagram(from: u32, to: u32, net: u8) -> Vec<u8> {
    let mut frame = [mac(to).0, mac(from).0].concat();
    frame.extend_from_slice(&[8, 0]);
    // 20 bytes of IPv4 (time to live 64, UDP), 8 bytes of UDP, 100 of payload.
    let mut ip = [0x45, 0, 0, 128, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, net, 2, 10, 9, 0, to as u8];
    // A bridge of Linux may check the sum of the header.
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    ip[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend_from_slice(&ip);
    let [high, low] = AGENT_PORT.to_be_bytes();
    frame.extend_from_slice(&[high, low, high, low, 0, 108, 0, 0]);
    frame.resize(frame.len() + 100, 0);
    frame
}

/// A packet socket on `eth0`.
fn packet_socket() -> std::os::fd::OwnedFd {
    let socket = nix::sys::socket::socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )
    .unwrap();
    let find = |interface: nix::ifaddrs::InterfaceAddress| {
        (interface.interface_name == "eth0").then_some(interface.address?.as_link_addr().copied()?)
    };
    let address: LinkAddr = nix::ifaddrs::getifaddrs().unwrap().find_map(find).unwrap();
    assert!(address.len() > 0);
    nix::sys::socket::bind(socket.as_raw_fd(), &address).unwrap();
    socket
}

/// Starts the agent of a host. All agents know each other.
pub fn run_agent(
    lab: &Lab,
    name: &str,
    id: u32,
    vnics: &[Vnic],
    nic_bps: u64,
    orders: &Arc<Orders>,
) -> JoinHandle<Result<(), Trouble>> {
    let mut settings = Settings::for_nic(AgentId(id), nic_bps, u64::from(id) + 7);
    let others: Vec<u32> = (1..=3).filter(|other| *other != id).collect();
    let key = |other: u32| Key([(id.min(other) * 16 + id.max(other)) as u8; 32]);
    settings.peers = others.iter().map(|other| Peer { agent: AgentId(*other), key: key(*other) }).collect();
    let address = |other: &u32| (AgentId(*other), format!("10.9.0.{other}:{AGENT_PORT}").parse().unwrap());
    let config = Config {
        device: Device::new("eth0").unwrap(),
        settings,
        directory: Directory::new(vnics.iter().copied()).unwrap(),
        addresses: others.iter().map(address).collect(),
        service: None,
    };
    let orders = Arc::clone(orders);
    lab.host(name).inside(move || {
        let socket = UdpSocket::bind(format!("0.0.0.0:{AGENT_PORT}")).unwrap();
        std::thread::spawn(move || run(&config, socket, &orders))
    })
}
