//! An app that waits on sockets beside the events of the node, in one thread and without an async runtime.
//!
//! ```text
//!   SocketApp::sockets ──> poll [ events of the node | the app's sockets ] ──> the app's handlers, SocketApp::on_socket ──> commands
//! ```
//!
//! In: the sockets that the app wants to wait on, named before each wait. Out: calls of its handlers, one at a time, and
//! an exit code. It reads and writes no socket, and keeps none. The app must use sockets that do not block: while a handler
//! waits, no event is served.

use crate::app_loop::{AppLoop, State};
use crate::listener::Listener;
use crate::process::{ProcessError, exit_code};
use burnet_sdk_core::{App, Commands};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

/// How many sockets an app may wait on at once. Further ones are left out of the wait; the app's limit of open files is
/// usually lower.
pub const SOCKETS_MAX: usize = 4_096;

/// What to wait for at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until there is something to read, or to accept.
    Readable,
    /// Until it takes bytes, or is connected.
    Writable,
    /// Until either.
    Either,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// A read or accept does not block. Also at the end of the connection, and after a failure: the read tells which.
    pub readable: bool,
    /// A write does not block. Also after a failure.
    pub writable: bool,
}

/// The sockets of one wait.
#[derive(Debug, Default)]
pub struct Sockets<'a> {
    waits: Vec<PollFd<'a>>,
    /// The app's number of each socket.
    tokens: Vec<usize>,
}

impl<'a> Sockets<'a> {
    /// Waits on a socket too. `token` is a number of the app's choice, by which [`SocketApp::on_socket`] names the socket.
    /// Beyond [`SOCKETS_MAX`] sockets, it has no effect.
    pub fn add(&mut self, token: usize, socket: &'a impl AsFd, wait: Wait) {
        let flags = match wait {
            Wait::Readable => PollFlags::IN,
            Wait::Writable => PollFlags::OUT,
            Wait::Either => PollFlags::IN | PollFlags::OUT,
        };
        if self.tokens.len() < SOCKETS_MAX {
            self.add_fd(socket.as_fd(), flags);
            self.tokens.push(token);
        }
    }

    fn add_fd(&mut self, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.waits.push(PollFd::from_borrowed_fd(fd, flags));
    }
}

/// An app that waits on sockets too.
pub trait SocketApp: App {
    /// The sockets on which the node lets the app accept connections. Called once, before the first wait. They do
    /// not block.
    ///
    /// # Errors
    /// A sentence: the app cannot use them. It ends.
    fn on_listeners(&mut self, _listeners: Vec<Listener>, _out: &mut Commands) -> Result<(), String> {
        Ok(())
    }

    /// Names the sockets to wait on now. Called before each wait.
    fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>);

    /// A socket is ready. If the app does not use it, it is called again at once.
    fn on_socket(&mut self, token: usize, ready: Ready, out: &mut Commands);
}

/// As [`crate::run`], for an app that waits on sockets too.
///
/// ```no_run
/// use burnet_sdk::{App, Commands, Interests, Listener, Ready, Settings, SocketApp, Sockets, Wait};
/// use std::net::TcpListener;
///
/// struct Counter {
///     listeners: Vec<TcpListener>,
/// }
///
/// impl App for Counter {
///     fn new(_: &Settings) -> Result<Self, String> {
///         Ok(Counter { listeners: Vec::new() })
///     }
///     fn interests(&self) -> Interests {
///         Interests::none()
///     }
/// }
///
/// impl SocketApp for Counter {
///     fn on_listeners(&mut self, listeners: Vec<Listener>, _out: &mut Commands) -> Result<(), String> {
///         for listener in listeners {
///             let Listener::Tcp(listener) = listener else { continue };
///             self.listeners.push(listener);
///         }
///         Ok(())
///     }
///     fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>) {
///         self.listeners.iter().enumerate().for_each(|(token, it)| sockets.add(token, it, Wait::Readable));
///     }
///     fn on_socket(&mut self, token: usize, _ready: Ready, out: &mut Commands) {
///         while self.listeners[token].accept().is_ok() {
///             out.publish("counter.visit", b"");
///         }
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     burnet_sdk::run_with_sockets::<Counter>()
/// }
/// ```
pub fn run_with_sockets<A: SocketApp>() -> ExitCode {
    let served = AppLoop::<A>::start().and_then(|mut app| {
        let listeners = app.take_listeners();
        app.act(|it, out| it.on_listeners(listeners, out))?.map_err(ProcessError::with(1))?;
        serve(&mut app)
    });
    exit_code(served)
}

/// Serves events and sockets until the node ends the zone.
fn serve<A: SocketApp>(app: &mut AppLoop<A>) -> Result<(), ProcessError> {
    let mut state = app.turn()?;
    while state != State::Ended {
        let is_readable = wait(app, state == State::Waiting)?;
        state = app.turn_by(&is_readable)?;
    }
    Ok(())
}

/// Tells the app which sockets are ready, and waits for one or for an event if it may. Returns which of [`AppLoop::parts`] are readable.
fn wait<A: SocketApp>(app: &mut AppLoop<A>, may_wait: bool) -> Result<Vec<bool>, ProcessError> {
    let mut sockets = Sockets::default();
    app.app().sockets(&mut sockets);
    app.parts().for_each(|part| sockets.add_fd(part, PollFlags::IN));
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut sockets.waits, (!may_wait).then_some(&at_once)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(ProcessError::with(1)(format!("it cannot wait for sockets: {error}"))),
    }
    let failed = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    let ready: Vec<(usize, Ready)> = sockets
        .tokens
        .iter()
        .zip(&sockets.waits)
        .filter(|(_, wait)| !wait.revents().is_empty())
        .map(|(token, wait)| {
            let has = |flag: PollFlags| wait.revents().intersects(flag | failed);
            (*token, Ready { readable: has(PollFlags::IN), writable: has(PollFlags::OUT) })
        })
        .collect();
    let parts = sockets.waits.iter().skip(sockets.tokens.len());
    let is_readable = parts.map(|wait| !wait.revents().is_empty()).collect();
    for (token, ready) in ready {
        app.act(|it, out| it.on_socket(token, ready, out))?;
    }
    Ok(is_readable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use burnet_sdk_core::instance::Instance;
    use burnet_sdk_core::{Interests, Settings};
    use ring::{AppEnd, KernelEnd, Port, Sizes};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Publishes the bytes that come by its socket, and how many ticks came before.
    #[derive(Default)]
    struct Echo {
        socket: Option<UnixStream>,
        ticks: u8,
    }

    impl App for Echo {
        fn new(_: &Settings) -> Result<Self, String> {
            Ok(Echo::default())
        }
        fn interests(&self) -> Interests {
            Interests::none().ticks()
        }
        fn on_tick(&mut self, _: u64, _: &mut Commands) {
            self.ticks += 1;
        }
    }

    impl SocketApp for Echo {
        fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>) {
            self.socket.iter().for_each(|it| sockets.add(7, it, Wait::Readable));
        }
        fn on_socket(&mut self, token: usize, ready: Ready, out: &mut Commands) {
            let (mut bytes, mut count) = ([0; 8], 0);
            if let Some(socket) = self.socket.as_mut().filter(|_| token == 7 && ready.readable) {
                count = socket.read(&mut bytes).unwrap_or_default();
            }
            if count == 0 {
                self.socket = None;
            }
            bytes[count] = self.ticks;
            out.publish("echo", &bytes[..=count]);
        }
    }

    /// The app with a socket, the kernel's end of its port, and the other end of the socket.
    fn started() -> (AppLoop<Echo>, KernelEnd, UnixStream) {
        let port = Port::create(Sizes::new(1 << 20, 1 << 20, 1 << 20).unwrap()).unwrap();
        let kernel = KernelEnd::attach(port.kernel).unwrap();
        let ports = vec![AppEnd::attach(port.app).unwrap()];
        let start = Instance::<Echo>::start_guest;
        let (process, instance) = Process::start(b"{}", ports, None, start, Box::new(|wait| wait())).unwrap();
        let mut app = AppLoop::of(process, instance).unwrap();
        let (socket, other) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        app.act(|it, _| it.socket = Some(socket)).unwrap();
        (app, kernel, other)
    }

    fn say(kernel: &mut KernelEnd, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        kernel.control.push(&[&bytes]).unwrap();
        kernel.publish();
    }

    /// The payloads that the app has published.
    fn published(kernel: &mut KernelEnd) -> Vec<Vec<u8>> {
        let (mut buffer, mut payloads) = (Vec::new(), Vec::new());
        while kernel.consumer.pop_into(&mut buffer).unwrap().is_some() {
            let frame = abi::Frame::read(&buffer).unwrap();
            if let abi::command::What::Publish(it) = abi::command::Command::read(&frame).unwrap().what {
                payloads.push(it.payload.to_vec());
            }
        }
        payloads
    }

    #[test]
    fn sockets_and_events_are_served_until_the_zone_ends() {
        let (mut app, mut kernel, mut other) = started();
        say(&mut kernel, |bytes| abi::event::write::tick(bytes, 1, 7));
        other.write_all(b"abc").unwrap();
        let node = std::thread::spawn(move || {
            // The app has waited for the socket meanwhile, and for the end of the connection after it.
            let (mut all, mut other) = (Vec::new(), Some(other));
            while all.len() < 2 {
                all.extend(published(&mut kernel));
                other.take_if(|_| all.len() == 1);
                std::thread::yield_now();
            }
            say(&mut kernel, |bytes| abi::event::write::shutdown(bytes, 2));
            // The wake-up goes with the kernel's end.
            (all, kernel)
        });
        assert_eq!(serve(&mut app), Ok(()));
        let (all, _kernel) = node.join().unwrap();
        assert_eq!(all, [b"abc\x01".to_vec(), b"\x01".to_vec()]);
        assert!(app.app().socket.is_none());
    }

    #[test]
    fn an_app_that_has_events_left_does_not_wait_for_its_sockets() {
        let (mut app, _kernel, other) = started();
        assert!(wait(&mut app, false).is_ok());
        assert!(app.app().socket.is_some());
        drop(other);
        assert!(wait(&mut app, false).is_ok());
        assert!(app.app().socket.is_none());
    }

    #[test]
    fn more_sockets_than_the_bound_are_left_out() {
        let (socket, _other) = UnixStream::pair().unwrap();
        let mut sockets = Sockets::default();
        (0..SOCKETS_MAX + 5).for_each(|token| sockets.add(token, &socket, Wait::Either));
        assert_eq!((sockets.tokens.len(), sockets.waits.len()), (SOCKETS_MAX, SOCKETS_MAX));
    }
}
