//! Packet sockets at both ends of a veth pair, with the kernel's time stamps.
//!
//! Each test makes a network namespace for its own thread, so that nothing on the machine changes. That needs root: without
//! it, the tests say so and look at nothing.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use emulator::run::packet_socket::{Direction, PacketSocket, Received, Room, SocketOptions};
use emulator::timing::{KernelStamps, MonotonicClock};
use nix::sched::{CloneFlags, unshare};
use std::process::Command;
use std::time::Duration;

const STAMPED: SocketOptions =
    SocketOptions { direction: Direction::Received, stamps: true, kept_bytes: None };
/// How long a frame may take until the test counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Runs a test in a network namespace with a veth pair, `left` and `right`.
fn between_veths(name: &str, test: impl FnOnce() + Send + 'static) {
    if !nix::unistd::geteuid().is_root() {
        println!("left out: {name}: only root can make a network namespace");
        return;
    }
    let inside = move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip("link add left type veth peer name right");
        for name in ["left", "right"] {
            ip(&format!("link set {name} up"));
        }
        test();
    };
    std::thread::spawn(inside).join().unwrap();
}

/// A broadcast of an EtherType for experiments, by which the tests recognise their frames.
fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5, number]);
    frame.resize(60, 0);
    frame
}

/// The next frame of the tests, with its stamp.
fn next(socket: &PacketSocket) -> (u8, Option<Duration>) {
    let (mut room, clock) = (Room::new(), MonotonicClock::begin());
    while clock.elapsed() < PATIENCE {
        match socket.receive(&mut room).unwrap() {
            Received::Frame { frame, stamp } if frame[12..14] == [0x88, 0xb5] => return (frame[14], stamp),
            Received::Nothing => std::thread::yield_now(),
            _ => {}
        }
    }
    panic!("no frame came in {PATIENCE:?}");
}

#[test]
fn a_stamp_is_between_sending_and_reading() {
    between_veths("a_stamp_is_between_sending_and_reading", || {
        let clock = MonotonicClock::begin();
        let mut stamps = KernelStamps::new(clock);
        let left = PacketSocket::bind_to("left", SocketOptions::default()).unwrap();
        let right = PacketSocket::bind_to("right", STAMPED).unwrap();
        for number in 0..100 {
            let before = clock.elapsed();
            left.send(&frame(number)).unwrap();
            let sent = clock.elapsed();
            // The stamp is of the arrival, and not of this late reading.
            std::thread::sleep(Duration::from_millis(2));
            let (found, stamp) = next(&right);
            let time = stamps.time_of(stamp.unwrap()).unwrap();
            assert_eq!(found, number);
            let inexact = Duration::from_micros(50);
            assert!(before <= time + inexact && time <= clock.elapsed(), "{before:?} {time:?}");
            assert!(time < sent + Duration::from_secs(1), "{sent:?} {time:?}");
        }
    });
}

#[test]
fn a_socket_for_sent_frames_stamps_what_another_socket_sends() {
    between_veths("a_socket_for_sent_frames_stamps_what_another_socket_sends", || {
        let mut stamps = KernelStamps::new(MonotonicClock::begin());
        let left = PacketSocket::bind_to("left", STAMPED).unwrap();
        let sent = SocketOptions { direction: Direction::Sent, ..STAMPED };
        let left_sent = PacketSocket::bind_to("left", sent).unwrap();
        let right = PacketSocket::bind_to("right", STAMPED).unwrap();
        for number in 0..100 {
            left.send(&frame(number)).unwrap();
            let (at_left, at_right) = (next(&left_sent), next(&right));
            assert_eq!((at_left.0, at_right.0), (number, number));
            assert!(at_left.1.unwrap() <= at_right.1.unwrap(), "{at_left:?} {at_right:?}");
            assert!(stamps.time_of(at_left.1.unwrap()).is_some());
        }
        right.send(&frame(200)).unwrap();
        assert_eq!(next(&left).0, 200, "and it gets nothing of its own");
        left.send(&frame(201)).unwrap();
        assert_eq!(next(&left_sent).0, 201, "and not what the interface has received");
    });
}

#[test]
fn frames_that_nobody_reads_are_counted() {
    between_veths("frames_that_nobody_reads_are_counted", || {
        let left = PacketSocket::bind_to("left", SocketOptions::default()).unwrap();
        let right = PacketSocket::bind_to("right", SocketOptions::default()).unwrap();
        left.send(&frame(1)).unwrap();
        assert_eq!(next(&right), (1, None), "without stamps");
        assert_eq!(right.take_dropped().unwrap(), 0);
        // More than any default of the receive buffer holds. The sender may have no room for a moment.
        let taken = (0..50_000).filter(|_| left.send(&frame(2)).is_ok()).count();
        let dropped = right.take_dropped().unwrap();
        assert!(dropped > 0 && dropped < taken as u64, "{dropped} of {taken}");
        assert_eq!(right.take_dropped().unwrap(), 0, "each is counted once");
    });
}

#[test]
fn a_missing_interface_is_named() {
    between_veths("a_missing_interface_is_named", || {
        let missing = PacketSocket::bind_to("middle", STAMPED).unwrap_err();
        assert_eq!(missing.to_string(), "this machine has no interface middle");
    });
}
