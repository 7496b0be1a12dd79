//! The controllers of many tenants in one thread: they connect, and note each label with the time at which it came to its socket.
//!
//! ```text
//!   virtual switches of all slices ──> thread: hello, features, echoes ──> SwitchOf: who connected ──> Told: a label, and when
//! ```
//!
//! In: connections. Out: labels, and flow mods of the first tenant. It chooses no paths. The kernel stamps what comes to a socket, and the thread reads it
//! later. Reading each label at once would take the slices a processor that real controllers do not share with them.

use flow::text::{parse_instructions, parse_match};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use openflow::labels::LabelMessage;
use openflow::message::{FLOW_ADD, FLOW_DELETE_STRICT, FlowModFields, Hello};
use openflow::{Body, Message, Version, frame_len};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::io::{IoSliceMut, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// From one look at what was told to the next. A look for each label would take processor time from the slices.
const LOOK: Duration = Duration::from_millis(2);
/// Sockets that one wait names. Others are named by the next one.
const READY_MAX: usize = 256;
/// How long the thread sleeps at most, so that it sees the end.
const NAP: Duration = Duration::from_millis(100);
/// From the first label of many until all are read. They have come to their sockets by then.
const REST: Duration = Duration::from_millis(10);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A label that a controller was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// The connection, by its number.
    pub connection: usize,
    /// The virtual switch.
    pub datapath: u64,
    pub label_kbps: u32,
    /// When it came to the socket, in seconds since 1970. A label that is read with a later one has that one's time.
    pub at_s: f64,
}

/// Streams of the first tenant, by virtual switch.
type Streams = Arc<Mutex<BTreeMap<u64, TcpStream>>>;

/// All controllers.
pub(super) struct Tenants {
    /// Where the first tenant's controller listens, and that of all others.
    pub addresses: [SocketAddr; 2],
    told: Receiver<Told>,
    first: Streams,
    /// What was told last, by connection of the others.
    latest: BTreeMap<usize, Told>,
    is_over: Arc<std::sync::atomic::AtomicBool>,
}

impl Drop for Tenants {
    fn drop(&mut self) {
        self.is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Tenants {
    /// Listens.
    ///
    /// # Errors
    /// There is no socket for it.
    pub(super) fn listen() -> Result<Tenants, String> {
        let failed = |error: std::io::Error| format!("no socket for controllers: {error}");
        let listener = || TcpListener::bind("127.0.0.1:0").map_err(failed);
        let listeners = [listener()?, listener()?];
        let addresses =
            [listeners[0].local_addr().map_err(failed)?, listeners[1].local_addr().map_err(failed)?];
        listeners.iter().try_for_each(|it| it.set_nonblocking(true)).map_err(failed)?;
        let no_wait = |error| format!("nothing to wait with for controllers: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_wait)?;
        for (place, listener) in listeners.iter().enumerate() {
            watch(&epoll, listener, place).map_err(no_wait)?;
        }
        let (send, told) = channel();
        let (first, is_over) = (Streams::default(), Arc::default());
        let mut crew = Crew {
            epoll,
            listeners,
            connections: Vec::new(),
            first: Arc::clone(&first),
            send,
            is_over: Arc::clone(&is_over),
        };
        std::thread::spawn(move || crew.run());
        Ok(Tenants { addresses, told, first, latest: BTreeMap::new(), is_over })
    }

    /// Adds or removes a rule of the first tenant. Returns when it was written.
    ///
    /// # Errors
    /// The virtual switch is not connected, or takes nothing.
    pub(super) fn rule(
        &self,
        datapath: u64,
        is_there: bool,
        matching: &str,
        actions: &str,
    ) -> Result<f64, String> {
        let matching = parse_match(matching).map_err(|error| format!("{matching}: {error}"))?;
        let actions = parse_instructions(actions).map_err(|error| format!("{actions}: {error}"))?;
        let command = if is_there { FLOW_ADD } else { FLOW_DELETE_STRICT };
        let flow_mod = FlowModFields { command, ..FlowModFields::default() }.with(matching, actions);
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = first.get_mut(&datapath).ok_or("the first tenant is not connected")?;
        let at_s = now_s();
        tell(stream, Body::FlowMod(flow_mod))?;
        Ok(at_s)
    }

    /// Waits until so many connections of other tenants have this label at a virtual switch. Returns when each was told. None: it had the label before.
    ///
    /// # Errors
    /// Not in time.
    pub(super) fn wait(
        &mut self,
        datapath: u64,
        label_kbps: u32,
        count: usize,
        patience: Duration,
    ) -> Result<Vec<f64>, String> {
        let until = Instant::now() + patience;
        loop {
            let have: Vec<f64> = self
                .latest
                .values()
                .filter(|it| it.datapath == datapath && it.label_kbps == label_kbps)
                .map(|it| it.at_s)
                .collect();
            if have.len() >= count {
                return Ok(have);
            }
            if Instant::now() >= until {
                let of_it = self.latest.values().filter(|it| it.datapath == datapath);
                let of_it: Vec<u32> = of_it.map(|it| it.label_kbps).collect();
                return Err(format!(
                    "{} of {count} controllers were told {label_kbps} kb/s in time; there are {} with {:?}",
                    have.len(),
                    of_it.len(),
                    of_it.first()
                ));
            }
            std::thread::sleep(LOOK);
            self.latest.extend(self.told.try_iter().map(|told| (told.connection, told)));
        }
    }
}

/// The time in seconds since 1970.
pub(super) fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

struct Peer {
    stream: TcpStream,
    bytes: Vec<u8>,
    is_first: bool,
    datapath: u64,
}

/// What the thread has.
struct Crew {
    epoll: OwnedFd,
    listeners: [TcpListener; 2],
    /// A connection keeps its number.
    connections: Vec<Option<Peer>>,
    first: Streams,
    send: Sender<Told>,
    is_over: Arc<std::sync::atomic::AtomicBool>,
}

impl Crew {
    fn run(&mut self) {
        let mut buffer = vec![0; READ_BYTES];
        let nap = NAP.try_into().ok();
        let mut events = Vec::with_capacity(READY_MAX);
        while !self.is_over.load(std::sync::atomic::Ordering::Relaxed) {
            events.clear();
            if epoll::wait(&self.epoll, spare_capacity(&mut events), nap.as_ref()).is_err()
                || events.is_empty()
            {
                continue;
            }
            std::thread::sleep(REST);
            for event in &events {
                match usize::try_from(event.data.u64()).unwrap_or_default().checked_sub(self.listeners.len())
                {
                    Some(number) => self.read(number, &mut buffer),
                    None => self.accept(),
                }
            }
        }
    }

    fn accept(&mut self) {
        for (place, listener) in self.listeners.iter().enumerate() {
            while let Ok((mut stream, _)) = listener.accept() {
                // A connection that fails here ends, and the slice dials again.
                let greeted = tell(&mut stream, Body::Hello(Hello::default()))
                    .and_then(|()| tell(&mut stream, Body::FeaturesRequest));
                let token = self.listeners.len() + self.connections.len();
                if greeted.is_ok()
                    && stream.set_nonblocking(true).is_ok()
                    && stamp(&stream).is_ok()
                    && watch(&self.epoll, &stream, token).is_ok()
                {
                    let _late = stream.set_nodelay(true);
                    let peer = Peer { stream, bytes: Vec::new(), is_first: place == 0, datapath: 0 };
                    self.connections.push(Some(peer));
                }
            }
        }
    }

    fn read(&mut self, number: usize, buffer: &mut [u8]) {
        let Some(peer) = self.connections.get_mut(number).and_then(Option::as_mut) else { return };
        let at_s = match read_stamped(&peer.stream, buffer) {
            Ok((count @ 1.., at_s)) => {
                peer.bytes.extend_from_slice(&buffer[..count]);
                at_s
            }
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            _ => return drop(self.connections[number].take()),
        };
        while let Some(length) = whole(&peer.bytes) {
            let message: Vec<u8> = peer.bytes.drain(..length).collect();
            let Ok(message) = Message::decode(&message) else { continue };
            match message.body {
                Body::EchoRequest(payload) => drop(tell(&mut peer.stream, Body::EchoReply(payload))),
                Body::FeaturesReply(it) => {
                    peer.datapath = it.datapath_id.0;
                    if peer.is_first
                        && let Ok(stream) = peer.stream.try_clone()
                    {
                        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
                        first.insert(peer.datapath, stream);
                    }
                    drop(tell(&mut peer.stream, Body::BarrierRequest));
                }
                Body::Experimenter(it) if !peer.is_first => {
                    let Ok(Some(LabelMessage::Labels { labels, .. })) = LabelMessage::read(&it) else {
                        continue;
                    };
                    for label in labels {
                        let (datapath, label_kbps) = (peer.datapath, label.label_kbps);
                        let _over = self.send.send(Told { connection: number, datapath, label_kbps, at_s });
                    }
                }
                _ => {}
            }
        }
    }
}

/// The kernel stamps what comes to a socket from now on.
///
/// # Errors
/// It has no stamps.
pub(super) fn stamp(stream: &TcpStream) -> Result<(), Errno> {
    setsockopt(stream, sockopt::ReceiveTimestampns, &true)
}

/// How many bytes were read, and when the last of them came, in seconds since 1970.
///
/// # Errors
/// Nothing can be read.
pub(super) fn read_stamped(stream: &TcpStream, buffer: &mut [u8]) -> Result<(usize, f64), Errno> {
    let mut space = cmsg_space!(TimeSpec);
    let mut pieces = [IoSliceMut::new(buffer)];
    let read = recvmsg::<()>(stream.as_raw_fd(), &mut pieces, Some(&mut space), MsgFlags::empty())?;
    let stamp = read.cmsgs()?.find_map(|said| match said {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp).as_secs_f64()),
        _ => None,
    });
    // What came before the socket was asked for stamps has none.
    Ok((read.bytes, stamp.unwrap_or_else(now_s)))
}

fn watch(epoll: &OwnedFd, socket: &impl AsFd, token: usize) -> rustix::io::Result<()> {
    // A `usize` has 64 bits or fewer.
    epoll::add(epoll, socket, epoll::EventData::new_u64(token as u64), epoll::EventFlags::IN)
}

/// The length of the first message, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let length = frame_len(bytes)?.ok()?;
    (bytes.len() >= length).then_some(length)
}

fn tell(stream: &mut TcpStream, body: Body) -> Result<(), String> {
    let mut bytes = Vec::new();
    Message { version: Version::V1_3, xid: 7, body }.encode(&mut bytes).map_err(|error| error.to_string())?;
    stream.write_all(&bytes).map_err(|error| format!("a slice takes nothing: {error}"))
}
