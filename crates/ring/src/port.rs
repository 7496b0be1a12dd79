//! A port with its file descriptors: making one, passing it to other processes, attaching either end.
//!
//! ```text
//! monitor: Port::create ──kernel: PortFds──SCM_RIGHTS──→ KernelEnd::attach   in a worker of the kernel
//!                        └─app: PortFds────SCM_RIGHTS──→ AppEnd::attach      in the app's process
//! ```
//!
//! The two sets of descriptors differ (see `wake.rs`) and cannot be confused. Each end is attached once. When a zone
//! ends, its port ends with it.
//!
//! Never here: how descriptors are sent, and how an owner reacts to a fault of its peer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::fault::{Full, PeerFault, PortFault};
use crate::lanes::Lanes;
use crate::layout::Sizes;
use crate::memory::{Memory, mapping};
use crate::reader::Reader;
use crate::ring::Ring;
use crate::wake::{self, PeerWake};
use crate::writer::Writer;

/// A new port, made by the monitor: the descriptors for the kernel and for the app.
#[derive(Debug)]
pub struct Port {
    /// For [`KernelEnd::attach`].
    pub kernel: PortFds,
    /// For [`AppEnd::attach`]. With these the app cannot block or crash the kernel.
    pub app: PortFds,
}

impl Port {
    /// Makes a port with rings of these sizes. Fails if the system has no memory or descriptors left.
    pub fn create(sizes: Sizes) -> io::Result<Port> {
        let memory = mapping::create(sizes)?;
        let wake_app = wake::create()?;
        let wake_kernel = wake::create()?;
        let app = PortFds {
            memory: memory.try_clone()?,
            wake_app: wake::watch(&wake_app)?,
            wake_kernel: wake_kernel.try_clone()?,
        };
        Ok(Port { kernel: PortFds { memory, wake_app, wake_kernel }, app })
    }
}

/// The file descriptors of one end of a port. All are close-on-exec.
#[derive(Debug)]
pub struct PortFds {
    /// The sealed memfd with both rings.
    pub memory: OwnedFd,
    /// Wakes the app: an eventfd for the kernel, an epoll descriptor that watches it for the app.
    pub wake_app: OwnedFd,
    /// Wakes the kernel: an eventfd.
    pub wake_kernel: OwnedFd,
}

impl PortFds {
    /// Duplicates the descriptors, to keep one set and send the other.
    pub fn try_clone(&self) -> io::Result<PortFds> {
        Ok(PortFds {
            memory: self.memory.try_clone()?,
            wake_app: self.wake_app.try_clone()?,
            wake_kernel: self.wake_kernel.try_clone()?,
        })
    }

    /// In the order in which they are sent: memory, `wake_app`, `wake_kernel`.
    pub fn into_array(self) -> [OwnedFd; 3] {
        [self.memory, self.wake_app, self.wake_kernel]
    }

    /// From received descriptors, in the order of [`PortFds::into_array`]. Attaching checks them.
    pub fn from_array([memory, wake_app, wake_kernel]: [OwnedFd; 3]) -> PortFds {
        PortFds { memory, wake_app, wake_kernel }
    }
}

/// The kernel's end: produces events for the app, consumes its commands. No call of it or of its parts blocks.
pub struct KernelEnd {
    /// Packet-ins to the app.
    pub packets: Producer,
    /// Control events to the app, which takes them before any packet-in.
    pub control: Producer,
    /// Commands from the app.
    pub consumer: Consumer,
    wake: OwnedFd,
}

impl KernelEnd {
    /// Maps the memory and checks everything about the descriptors first.
    pub fn attach(fds: PortFds) -> Result<KernelEnd, PortFault> {
        wake::expect_eventfd(&fds.wake_app, "wake_app")?;
        wake::expect_nonblocking(&fds.wake_app, "wake_app")?;
        wake::expect_eventfd(&fds.wake_kernel, "wake_kernel")?;
        let Rings { packets, control, from_app } = rings(&fds.memory)?;
        let peer = Arc::new(PeerWake(fds.wake_app));
        let producer = |ring| Producer { writer: Writer::new(ring), peer: peer.clone() };
        let (packets, control) = (producer(packets), producer(control));
        Ok(KernelEnd {
            packets,
            control,
            consumer: Consumer { reader: Reader::new(from_app), peer },
            wake: fds.wake_kernel,
        })
    }

    /// Makes all pushed events visible to the app, and wakes it if it sleeps. Control events come first: an app that
    /// sees a packet-in also sees every control event that was pushed before it.
    pub fn publish(&mut self) {
        self.control.publish();
        self.packets.publish();
    }

    /// The app's violation in one of the event rings, if one was found.
    pub fn fault(&self) -> Option<PeerFault> {
        self.control.fault().or_else(|| self.packets.fault())
    }

    /// The descriptor that becomes ready when the app wakes the kernel. Register it for readability, **edge-triggered**
    /// (as mio does). It is never read, so a level-triggered poll would always find it ready.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Call it at the start of a turn of the loop: the app need not wake a worker that runs. No system call.
    pub fn drain_wake(&mut self) {
        self.consumer.reader.awake();
    }
}

/// The app's end: consumes events, produces commands.
pub struct AppEnd {
    /// Commands to the kernel.
    pub producer: Producer,
    events: Lanes,
    peer: Arc<PeerWake>,
    wake: OwnedFd,
}

impl AppEnd {
    /// Maps the memory and checks everything about the descriptors first.
    pub fn attach(fds: PortFds) -> Result<AppEnd, PortFault> {
        wake::expect_watch(&fds.wake_app, "wake_app")?;
        wake::expect_eventfd(&fds.wake_kernel, "wake_kernel")?;
        let Rings { packets, control, from_app } = rings(&fds.memory)?;
        let peer = Arc::new(PeerWake(fds.wake_kernel));
        let events = Lanes::new(Reader::new(packets), Reader::new(control));
        let producer = Producer { writer: Writer::new(from_app), peer: peer.clone() };
        Ok(AppEnd { producer, events, peer, wake: fds.wake_app })
    }

    /// Replaces the content of `buffer` by the next event. Returns `false` if there is none now; then the room of all
    /// earlier events is given back. Control events come before packet-ins, but at most some in a row. A control event
    /// never comes after a packet-in that was pushed later. It may come before one that was pushed earlier. Each kind
    /// keeps its own order. A buffer that is used again needs no further allocation.
    pub fn pop_into(&mut self, buffer: &mut Vec<u8>) -> Result<bool, PeerFault> {
        let popped = self.events.pop_into(buffer).map(|lane| lane.is_some());
        self.wake_kernel_if_due();
        popped
    }

    /// Requests to be woken at the kernel's next publish. Returns `false` if there are events (or a fault) already: do
    /// not sleep, pop. No interleaving loses a wake-up; there may be one too many.
    pub fn about_to_sleep(&mut self) -> bool {
        let sleep = self.events.about_to_sleep();
        self.wake_kernel_if_due();
        sleep
    }

    fn wake_kernel_if_due(&mut self) {
        if self.events.take_wake_due() {
            self.peer.wake();
        }
    }

    /// The descriptor that becomes readable when the kernel wakes the app, for apps that also wait for other things.
    /// Before waiting, call [`AppEnd::about_to_sleep`]; afterwards call [`AppEnd::drain_wake`].
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Withdraws the request to be woken. No system call: for a caller that has seen that [`AppEnd::wake_fd`] is not readable.
    pub fn awake(&mut self) {
        self.events.awake();
    }

    /// Clears past wake-ups, so that [`AppEnd::wake_fd`] becomes readable at the next one.
    pub fn drain_wake(&mut self) -> io::Result<()> {
        self.events.awake();
        wake::wait(self.wake.as_fd(), Some(Duration::ZERO)).map(|_| ())
    }

    /// Sleeps until the kernel publishes frames or gives back room that [`Producer::about_to_wait`] requested, until
    /// `timeout` passes, or until a signal arrives. Returns at once if there are frames already. It may also return
    /// early: check and call it again.
    pub fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.about_to_sleep() {
            return Ok(());
        }
        let result = wake::wait(self.wake.as_fd(), timeout);
        self.events.awake();
        result.map(|_| ())
    }
}

/// The rings of a port.
struct Rings {
    packets: Ring,
    control: Ring,
    from_app: Ring,
}

fn rings(memory: &OwnedFd) -> Result<Rings, PortFault> {
    let (mapping, sizes) = mapping::open(memory.as_fd())?;
    let memory = Arc::new(Memory::Mapped(mapping));
    let ring = |place| Ring::new(memory.clone(), place);
    Ok(Rings {
        packets: ring(sizes.place_packets()),
        control: ring(sizes.place_control()),
        from_app: ring(sizes.place_from_app()),
    })
}

/// The writing end of a ring. Belongs to one thread at a time.
pub struct Producer {
    writer: Writer,
    peer: Arc<PeerWake>,
}

impl Producer {
    /// Writes one frame, the concatenation of `parts`. It is invisible until [`Producer::publish`]. Allocates nothing.
    pub fn push(&mut self, parts: &[&[u8]]) -> Result<(), Full> {
        self.writer.push(0, parts)
    }

    /// As [`Producer::push`], but refuses the frame if fewer than `reserve_bytes` would be free after it. So frames
    /// that may be dropped leave room for those that may not.
    pub fn push_keeping(&mut self, reserve_bytes: usize, parts: &[&[u8]]) -> Result<(), Full> {
        self.writer.push(reserve_bytes, parts)
    }

    /// Makes all frames pushed so far visible, and wakes the consumer if it sleeps: one store, at most one system call.
    pub fn publish(&mut self) {
        if self.writer.publish() {
            self.peer.wake();
        }
    }

    /// Bytes that are free at this moment. A frame takes its length, up to a multiple of 8, and 8 more.
    pub fn free_bytes(&mut self) -> usize {
        self.writer.free_bytes()
    }

    /// Bytes that the consumer has taken since the start of the ring. If frames wait and this does not change, the
    /// consumer does not read.
    pub fn taken_bytes(&mut self) -> u64 {
        self.writer.taken_bytes()
    }

    /// Size of the ring in bytes.
    pub fn ring_bytes(&self) -> usize {
        self.writer.ring_bytes()
    }

    /// Requests to be woken when the consumer gives room back, after a push returned [`Full::NoRoom`]. Returns `false`
    /// if a frame of `length_bytes` fits now, or never will: do not wait, push again. Publish first, or the consumer
    /// cannot read.
    pub fn about_to_wait(&mut self, length_bytes: usize) -> bool {
        self.writer.about_to_wait(length_bytes)
    }

    /// The consumer's violation, if one was found. From then on the ring stays as full as it was.
    pub fn fault(&self) -> Option<PeerFault> {
        self.writer.fault()
    }
}

/// The reading end of a ring. Belongs to one thread at a time.
pub struct Consumer {
    reader: Reader,
    peer: Arc<PeerWake>,
}

impl Consumer {
    /// Replaces the content of `buffer` by the next frame and returns its length in bytes. Returns `None` and leaves
    /// the buffer unchanged if there is none now. A buffer that is used again needs no further allocation; it never
    /// grows beyond [`crate::MAX_FRAME_BYTES`].
    pub fn pop_into(&mut self, buffer: &mut Vec<u8>) -> Result<Option<usize>, PeerFault> {
        let result = self.reader.pop_into(buffer);
        self.wake_producer_if_due();
        result
    }

    /// Gives the room of all popped frames back to the producer. Popping does this itself after each small part of the
    /// ring and when the ring is empty. This call is for a consumer that stops in between.
    pub fn release(&mut self) {
        self.reader.release();
        self.wake_producer_if_due();
    }

    /// Requests to be woken at the producer's next publish. Returns `false` if there are frames (or a fault) already:
    /// do not sleep, pop. No interleaving loses a wake-up; there may be one too many.
    pub fn about_to_sleep(&mut self) -> bool {
        let sleep = self.reader.about_to_sleep();
        self.wake_producer_if_due();
        sleep
    }

    fn wake_producer_if_due(&mut self) {
        if self.reader.take_wake_due() {
            self.peer.wake();
        }
    }
}
