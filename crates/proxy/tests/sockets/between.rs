//! A proxy on sockets of this machine, and both of its peers, which are the test.
//!
//! In: a profile. Out: the streams of both peers, and what the proxy says of them.

use profile::Profile;
use proxy::run::{Notice, OWED_MAX, ProxyRun, RunOptions};
use proxy::{Method, Settings};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Only ends a hang.
const LIMIT: Duration = Duration::from_secs(60);
pub const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
pub const FEATURES_REQUEST: [u8; 8] = [4, 5, 0, 8, 0, 0, 0, 2];
pub const ECHO: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 9];

/// A proxy, and a controller that listens.
pub struct Between {
    pub run: ProxyRun,
    pub controller: TcpListener,
    pub notices: Vec<Notice>,
}

impl Between {
    pub fn new(profile: Profile) -> Between {
        Self::with_taps(profile, Vec::new())
    }

    /// Taps at ports 1, 2 and so on.
    pub fn with_taps(profile: Profile, taps: Vec<(flow::PortNo, String)>) -> Between {
        Self::with(profile, taps, OWED_MAX)
    }

    /// A peer may owe something for so long.
    pub fn with_patience(profile: Profile, owed_max: Duration) -> Between {
        Self::with(profile, Vec::new(), owed_max)
    }

    fn with(profile: Profile, taps: Vec<(flow::PortNo, String)>, owed_max: Duration) -> Between {
        let controller = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings =
            Settings { profile, base: Profile::null(), method: Method::Full, seed: 1, slow_motion: 1 };
        let options = RunOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            controller: controller.local_addr().unwrap(),
            taps,
            settings,
            owed_max,
        };
        Between { run: ProxyRun::open(options).unwrap(), controller, notices: Vec::new() }
    }

    pub fn connect(&mut self) -> TcpStream {
        let switch = TcpStream::connect(self.run.address().unwrap()).unwrap();
        switch.set_nonblocking(true).unwrap();
        switch
    }

    /// Both ends of a new session.
    pub fn session(&mut self) -> (TcpStream, TcpStream) {
        let switch = self.connect();
        self.controller.set_nonblocking(true).unwrap();
        let controller = self.until(|between| between.controller.accept().ok());
        controller.0.set_nonblocking(true).unwrap();
        (switch, controller.0)
    }

    pub fn turn(&mut self) {
        self.run.turn(Duration::from_millis(5)).unwrap();
        self.notices.extend(self.run.take_notices());
    }

    pub fn until<T>(&mut self, mut what: impl FnMut(&mut Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            self.turn();
            if let Some(found) = what(self) {
                return found;
            }
            assert!(began.elapsed() < LIMIT, "it did not happen: {:?}", self.notices);
        }
    }

    /// Reads exactly these bytes.
    pub fn arrives(&mut self, at: &mut TcpStream, expected: &[u8]) {
        let mut got = Vec::new();
        self.until(|_| {
            let mut room = [0; 4096];
            match at.read(&mut room) {
                Ok(count) => got.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            (got.len() >= expected.len()).then_some(())
        });
        assert_eq!(got, expected);
    }

    pub fn ends(&mut self, expected: &str) {
        self.until(|between| {
            let ended = between.notices.iter().find_map(|notice| match notice {
                Notice::Ended(why) => Some(why.clone()),
                _ => None,
            })?;
            assert!(ended.contains(expected), "{ended}");
            Some(())
        });
        self.notices.clear();
    }
}
