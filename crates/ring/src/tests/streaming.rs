//! Two threads with a whole port between them, which sleep when they have nothing to do. Everything arrives in order,
//! and no thread sleeps for ever: a lost wake-up would hang this test.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::epoll;

use crate::fault::Full;
use crate::layout::Sizes;
use crate::port::{AppEnd, KernelEnd, Port};

const FRAMES: u32 = 100_000;

/// Frames of all sizes from four bytes on, that can be recognised again.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = number.to_le_bytes().to_vec();
    frame.resize(4 + (number as usize * 7) % 200, number as u8);
    frame
}

/// Sleeps as the kernel's worker does: an edge-triggered epoll on the descriptor that is never read.
struct Edges(std::os::fd::OwnedFd);

impl Edges {
    fn of(fd: BorrowedFd<'_>) -> Edges {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&epoll, fd, epoll::EventData::new_u64(1), epoll::EventFlags::IN | epoll::EventFlags::ET)
            .unwrap();
        Edges(epoll)
    }

    fn sleep(&self) {
        crate::wake::wait(self.0.as_fd(), None).unwrap();
    }
}

/// The app sends back each frame that it is sent; it waits when the ring to the kernel is full.
fn echo(mut app: AppEnd) {
    let mut buffer = Vec::new();
    let mut echoed = 0;
    while echoed < FRAMES {
        if !app.pop_into(&mut buffer).unwrap() {
            app.producer.publish();
            app.sleep(None).unwrap();
            continue;
        }
        while let Err(full) = app.producer.push(&[&buffer]) {
            assert_eq!(full, Full::NoRoom);
            app.producer.publish();
            if app.producer.about_to_wait(buffer.len()) {
                crate::wake::wait(app.wake_fd(), None).unwrap();
            }
        }
        echoed += 1;
    }
    app.producer.publish();
}

#[test]
#[cfg_attr(miri, ignore = "Miri cannot map memory")]
fn frames_go_to_an_app_and_back_with_sleeps_on_both_sides() {
    let port = Port::create(Sizes::new(16 * 1024, 4096, 4096).unwrap()).unwrap();
    let mut kernel = KernelEnd::attach(port.kernel).unwrap();
    let app = AppEnd::attach(port.app).unwrap();
    let edges = Edges::of(kernel.wake_fd());
    let app = std::thread::spawn(move || echo(app));

    let (mut sent, mut received) = (0, 0);
    let mut buffer = Vec::new();
    while received < FRAMES {
        kernel.drain_wake();
        while sent < FRAMES && kernel.packets.push(&[&frame(sent)]).is_ok() {
            sent += 1;
        }
        kernel.packets.publish();
        while kernel.consumer.pop_into(&mut buffer).unwrap().is_some() {
            assert_eq!(buffer, frame(received));
            received += 1;
        }
        let room = sent < FRAMES && !kernel.packets.about_to_wait(frame(sent).len());
        if received < FRAMES && !room && kernel.consumer.about_to_sleep() {
            edges.sleep();
        }
    }
    app.join().unwrap();
    assert_eq!((sent, received), (FRAMES, FRAMES));
    assert_eq!(kernel.packets.fault(), None);
}
