//! Sessions: messages, their order, and their ends.

use crate::between::{Between, ECHO, FEATURES_REQUEST, HELLO};
use profile::{Profile, Quantiles};
use proxy::run::{Notice, OWED_MAX, ProxyRun, RunOptions};
use proxy::{Method, Settings};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

#[test]
fn messages_pass_both_ways_and_one_session_follows_another() {
    let mut between = Between::new(Profile::null());
    for _ in 0..3 {
        let (mut switch, mut controller) = between.session();
        switch.write_all(&[&HELLO[..], &ECHO, &ECHO[..3]].concat()).unwrap();
        between.arrives(&mut controller, &[HELLO, ECHO].concat());
        switch.write_all(&ECHO[3..]).unwrap();
        between.arrives(&mut controller, &ECHO);
        controller.write_all(&[HELLO, FEATURES_REQUEST].concat()).unwrap();
        between.arrives(&mut switch, &[HELLO, FEATURES_REQUEST].concat());
        drop(controller);
        between.ends("the controller: it closed the connection");
        let mut room = [0; 8];
        between.until(|_| matches!(switch.read(&mut room), Ok(0)).then_some(()));
    }
    assert_eq!(between.run.counters().sessions, 3);
}

#[test]
fn rubbish_ends_both_sides_with_one_line() {
    let mut between = Between::new(Profile::null());
    let (mut switch, mut controller) = between.session();
    switch.write_all(&HELLO).unwrap();
    between.arrives(&mut controller, &HELLO);
    switch.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    between.ends("the switch sent");
    let (mut switch, mut controller) = between.session();
    controller.write_all(&[4, 2, 0, 7, 0, 0, 0, 0]).unwrap();
    between.ends("the controller sent a wrong length");
    let mut room = [0; 8];
    between.until(|_| matches!(switch.read(&mut room), Ok(0)).then_some(()));
    let _ = controller.read(&mut room);
}

#[test]
fn a_second_switch_is_refused_and_the_first_goes_on() {
    let mut between = Between::new(Profile::null());
    let (mut switch, mut controller) = between.session();
    let mut second = between.connect();
    between.until(|between| {
        between.notices.iter().any(|notice| matches!(notice, Notice::Refused(_))).then_some(())
    });
    let mut room = [0; 8];
    between.until(|_| matches!(second.read(&mut room), Ok(0)).then_some(()));
    switch.write_all(&HELLO).unwrap();
    between.arrives(&mut controller, &HELLO);
}

#[test]
fn without_a_controller_the_switch_is_let_go() {
    let mut between = Between::new(Profile::null());
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let (gone, first) = (nobody.local_addr().unwrap(), between.run.address().unwrap());
    drop(nobody);
    let settings = Settings {
        profile: Profile::null(),
        base: Profile::null(),
        method: Method::Full,
        seed: 1,
        slow_motion: 1,
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = RunOptions { listen, controller: gone, taps: Vec::new(), settings, owed_max: OWED_MAX };
    between.run = ProxyRun::open(options).unwrap();
    assert_ne!(between.run.address().unwrap(), first);
    let _switch = between.connect();
    between.ends("the controller: ");
}

#[test]
fn a_held_message_leaves_at_its_time_and_not_before() {
    const MS: Duration = Duration::from_millis(30);
    let mut slow = Profile::null();
    slow.cpu.echo.service_us = Quantiles::constant(MS.as_micros() as f64);
    let mut between = Between::new(slow);
    let (mut switch, mut controller) = between.session();
    controller.write_all(&HELLO).unwrap();
    between.arrives(&mut switch, &HELLO);
    let began = Instant::now();
    controller.write_all(&ECHO).unwrap();
    let mut got = Vec::new();
    between.until(|_| {
        let mut room = [0; 4096];
        got.extend_from_slice(switch.read(&mut room).map_or(&[][..], |count| &room[..count]));
        got.ends_with(&ECHO).then_some(())
    });
    // How much later it comes depends on the machine.
    assert!(began.elapsed() >= MS);
}

#[test]
fn a_peer_that_does_not_read_stops_the_other_one() {
    let mut between = Between::new(Profile::null());
    let (mut switch, mut controller) = between.session();
    let messages = ECHO.repeat(8192);
    let mut written = 0usize;
    // Until the switch can write no more: the buffers of the proxy and of both sockets are full.
    let mut quiet = 0;
    while quiet < 50 {
        match switch.write(&messages[written % messages.len()..]) {
            Ok(count) => (written, quiet) = (written + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => quiet += 1,
            Err(error) => panic!("{error}"),
        }
        between.turn();
        assert!(written < 1 << 30, "there is no bound");
    }
    let mut read = 0usize;
    between.until(|_| {
        let mut room = vec![0; 1 << 20];
        while let Ok(count) = controller.read(&mut room) {
            let expected = (0..count).map(|at| ECHO[(read + at) % ECHO.len()]);
            assert!(room[..count].iter().copied().eq(expected));
            read += count;
        }
        (read == written / ECHO.len() * ECHO.len()).then_some(())
    });
    assert!(between.notices.iter().all(|notice| matches!(notice, Notice::Connected(_))));
}

#[test]
fn a_session_ends_with_a_peer_that_leaves_while_the_other_one_does_not_read() {
    let mut between = Between::new(Profile::null());
    let (mut switch, mut controller) = between.session();
    // What the switch never reads makes its end a reset, which overtakes what it has sent.
    controller.write_all(&ECHO).unwrap();
    let messages = ECHO.repeat(8192);
    let (mut written, mut quiet) = (0usize, 0);
    while quiet < 50 {
        match switch.write(&messages[written % messages.len()..]) {
            Ok(count) => (written, quiet) = (written + count, 0),
            Err(_) => quiet += 1,
        }
        between.turn();
        assert!(written < 1 << 30, "there is no bound");
    }
    drop(switch);
    between.until(|between| between.notices.iter().any(|it| matches!(it, Notice::Ended(_))).then_some(()));
}

/// OFPT_BARRIER_REQUEST.
const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 7];

#[test]
fn a_switch_that_confirms_nothing_is_let_go_and_the_next_one_is_served() {
    let mut slow = Profile::null();
    slow.cpu.echo.service_us = Quantiles::constant(1.0);
    let mut between = Between::with_patience(slow, Duration::from_millis(200));
    for _ in 0..2 {
        let (mut switch, mut controller) = between.session();
        switch.write_all(&HELLO).unwrap();
        controller.write_all(&[HELLO, FEATURES_REQUEST, BARRIER].concat()).unwrap();
        between.ends("the switch: it has answered no barrier of the proxy for 0.2 s");
        let mut room = [0; 4096];
        between.until(|_| matches!(controller.read(&mut room), Ok(0)).then_some(()));
    }
}

#[test]
fn a_controller_that_takes_nothing_is_let_go() {
    let mut between = Between::with_patience(Profile::null(), Duration::from_millis(200));
    let (mut switch, _controller) = between.session();
    let messages = ECHO.repeat(8192);
    let mut written = 0usize;
    between.until(|between| {
        match switch.write(&messages[written % messages.len()..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The proxy has ended the connection.
            Err(_) => return Some(()),
        }
        assert!(written < 1 << 30, "there is no bound");
        between.notices.iter().any(|it| matches!(it, Notice::Ended(_))).then_some(())
    });
    between.ends("the controller: it has taken no byte for 0.2 s");
}
