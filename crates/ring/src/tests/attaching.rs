//! Descriptors that are not what they should be are refused with a reason; those that are work after any journey.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, fcntl_setfl, fstat, ftruncate, memfd_create,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::atomic::Ordering;
use crate::board::Board;
use crate::fault::PortFault;
use crate::layout::{LINE_WORDS, Sizes};
use crate::memory::mapping::Mapping;
use crate::port::{AppEnd, KernelEnd, Port, PortFds};
use crate::ring::frame_bytes;
use crate::wake::wait;

fn port() -> Port {
    Port::create(Sizes::new(4096, 4096, 8192).unwrap()).unwrap()
}

/// Both ends refuse a port whose memory is this, with these words in the reason.
fn check_memory(memory: &OwnedFd, expected: &str) {
    let Port { kernel, app } = port();
    let kernel = PortFds { memory: memory.try_clone().unwrap(), ..kernel };
    let app = PortFds { memory: memory.try_clone().unwrap(), ..app };
    let faults = [KernelEnd::attach(kernel).err(), AppEnd::attach(app).err()];
    for fault in faults {
        let fault = fault.unwrap_or_else(|| panic!("attached where {expected:?} was expected")).to_string();
        assert!(fault.contains(expected), "{fault:?} does not say {expected:?}");
    }
}

fn memfd(length: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create(c"test", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, length).unwrap();
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

const ALL: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn memory_that_is_no_port_is_refused() {
    check_memory(&std::fs::File::open("/dev/null").unwrap().into(), "sealed");
    check_memory(&rustix::pipe::pipe().unwrap().0, "sealed");
    check_memory(&eventfd(0, EventfdFlags::empty()).unwrap(), "sealed");
    check_memory(&memfd(16384, SealFlags::empty()), "sealed");
    check_memory(&memfd(16384, SealFlags::SHRINK | SealFlags::GROW), "sealed");
    check_memory(&memfd(0, ALL), "magic number of a port");
    check_memory(&memfd(39, ALL), "magic number of a port");
    check_memory(&memfd(16384, ALL), "magic number of a port");
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn nobody_can_run_what_is_shared_as_a_program() {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL;
    if memfd_create(c"test", flags).is_err() {
        println!("left out: this Linux is older than 6.3 and cannot say so");
        return;
    }
    for memory in [port().kernel.memory, Board::create().unwrap().1] {
        assert_eq!(fstat(&memory).unwrap().st_mode & 0o111, 0);
        assert!(fchmod(&memory, Mode::RWXU).is_err());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn a_frame_takes_of_a_ring_what_is_said() {
    let mut kernel = KernelEnd::attach(port().kernel).unwrap();
    for length in [0, 1, 7, 8, 9, 100] {
        let before = kernel.packets.free_bytes();
        kernel.packets.push(&[&vec![1; length]]).unwrap();
        assert_eq!(before - kernel.packets.free_bytes(), frame_bytes(length), "{length}");
    }
}

/// A port whose opening has this value at this word is refused with these words.
fn check_opening(word: usize, value: u64, expected: &str) {
    let port = port();
    let mapping = Mapping::new(port.app.memory.as_fd(), 20480).unwrap();
    mapping.words()[word].store(value, Ordering::Relaxed);
    check_memory(&port.kernel.memory, expected);
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn an_opening_that_lies_is_refused() {
    check_opening(0, 0, "magic number of a port");
    check_opening(1, 1, "layout version 1, and this side supports 2");
    check_opening(2, 0, "a ring of 0 bytes");
    check_opening(2, 4097, "a ring of 4097 bytes");
    check_opening(2, 2048, "a ring of 2048 bytes");
    check_opening(3, 0, "a ring of 0 bytes");
    check_opening(4, 1 << 27, "a ring of 134217728 bytes");
    check_opening(4, u64::MAX, "a ring of 18446744073709551615 bytes");
    check_opening(2, 8192, "has 20480 bytes, but its header requires 24576");
    check_opening(3, 8192, "has 20480 bytes, but its header requires 24576");
    check_opening(4, 4096, "has 20480 bytes, but its header requires 16384");
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no epoll of this kind")]
fn a_descriptor_that_could_block_or_wakes_nobody_is_refused() {
    let refused = |fault: Option<PortFault>, name| {
        assert!(
            matches!(fault, Some(PortFault::NotAWake { which }) if which == name),
            "{fault:?} is not about {name}"
        );
    };
    let pipe = || rustix::pipe::pipe().unwrap().1;
    refused(KernelEnd::attach(PortFds { wake_app: pipe(), ..port().kernel }).err(), "wake_app");
    refused(KernelEnd::attach(PortFds { wake_kernel: pipe(), ..port().kernel }).err(), "wake_kernel");
    refused(AppEnd::attach(PortFds { wake_app: pipe(), ..port().app }).err(), "wake_app");
    refused(AppEnd::attach(PortFds { wake_kernel: pipe(), ..port().app }).err(), "wake_kernel");
    let blocking = eventfd(0, EventfdFlags::empty()).unwrap();
    refused(KernelEnd::attach(PortFds { wake_app: blocking, ..port().kernel }).err(), "wake_app");
    refused(AppEnd::attach(port().kernel).err(), "wake_app");
    refused(KernelEnd::attach(port().app).err(), "wake_app");
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn sizes_are_powers_of_two_within_bounds() {
    assert!(Sizes::new(4096, 4096, 64 * 1024 * 1024).is_some());
    for wrong in [0, 1, 2048, 4095, 12288, 128 * 1024 * 1024, usize::MAX] {
        assert_eq!(Sizes::new(wrong, 4096, 4096), None, "{wrong}");
        assert_eq!(Sizes::new(4096, wrong, 4096), None, "{wrong}");
        assert_eq!(Sizes::new(4096, 4096, wrong), None, "{wrong}");
    }
    Port::create(Sizes::default()).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn neither_end_can_change_the_size_of_the_memory() {
    let port = port();
    assert!(ftruncate(&port.app.memory, 0).is_err());
    assert!(ftruncate(&port.app.memory, 1 << 20).is_err());
    assert!(fcntl_add_seals(&port.app.memory, SealFlags::WRITE).is_err());
}

/// Sends descriptors over a socket, as the monitor does, and receives them again.
fn sent_and_received(fds: PortFds) -> PortFds {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let fds = fds.into_array();
    let borrowed = [fds[0].as_fd(), fds[1].as_fd(), fds[2].as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    sendmsg(&here, &[IoSlice::new(b"port")], &mut control, SendFlags::empty()).unwrap();

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 4];
    recvmsg(&there, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let Some(RecvAncillaryMessage::ScmRights(received)) = control.drain().next() else {
        panic!("no descriptors")
    };
    PortFds::from_array(received.collect::<Vec<_>>().try_into().unwrap())
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn both_ends_work_after_their_descriptors_travelled() {
    let Port { kernel, app } = port();
    let mut kernel = KernelEnd::attach(sent_and_received(kernel)).unwrap();
    let mut app = AppEnd::attach(sent_and_received(app)).unwrap();
    let mut buffer = Vec::new();
    assert!(app.about_to_sleep());
    kernel.packets.push(&[b"packet-in"]).unwrap();
    kernel.packets.publish();
    app.sleep(None).unwrap();
    assert_eq!(app.pop_into(&mut buffer), Ok(true));
    assert_eq!(buffer, b"packet-in");
    app.producer.push(&[b"flow ", b"mod"]).unwrap();
    app.producer.publish();
    assert_eq!(kernel.consumer.pop_into(&mut buffer), Ok(Some(8)));
    assert_eq!(buffer, b"flow mod");
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no epoll of this kind")]
fn an_app_that_spoils_its_descriptors_cannot_block_the_kernel() {
    let Port { kernel, app } = port();
    assert!(
        rustix::io::write(&app.wake_app, &1_u64.to_ne_bytes()).is_err(),
        "the app can write what wakes it"
    );
    assert!(rustix::io::read(&app.wake_app, &mut [0; 8]).is_err(), "the app can read what wakes it");
    rustix::io::write(&app.wake_kernel, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    for fd in [&app.wake_app, &app.wake_kernel] {
        fcntl_setfl(fd, OFlags::RDWR).unwrap();
    }
    let mut kernel = KernelEnd::attach(kernel).unwrap();
    let mapping = Mapping::new(app.memory.as_fd(), 20480).unwrap();
    let wish =
        &mapping.words()[Sizes::new(4096, 4096, 8192).unwrap().place_packets().indices + 3 * LINE_WORDS];
    for turn in 0..3 {
        wish.store(u64::MAX - turn, Ordering::Relaxed);
        kernel.drain_wake();
        kernel.packets.push(&[b"event"]).unwrap();
        kernel.packets.publish();
        assert!(wait(app.wake_app.as_fd(), Some(Duration::ZERO)).unwrap(), "not woken in turn {turn}");
        kernel.packets.push(&[b"event"]).unwrap();
        kernel.packets.publish();
        assert!(!wait(app.wake_app.as_fd(), Some(Duration::ZERO)).unwrap(), "woken twice in turn {turn}");
    }
}
