//! The proxy on sockets: its loop.
//!
//! ```text
//!   switch ⇄ Peer ──messages──> Proxy ──bytes──> Peer ⇄ controller
//!   interface ──> PacketSocket ──frames──> │ ──releases──> Meter
//!                                  Alarm: the time
//! ```
//!
//! In: an address to listen on, the controller's address, interfaces, and what to play. Out: [`Notice`]s, counters and the validity of the run.
//! The caller calls [`ProxyRun::turn`] until it has enough. It never decides about a message: [`Proxy`] does.

mod measured;
mod notice;
mod patience;
mod peer;
mod taps;

use emulator::timing::{Alarm, MonotonicClock};
use emulator::validity::{Delays, MachineReading, Verdict};
use flow::PortNo;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use openflow::stream;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use crate::commands::{Commands, Counters, Event, Passage, Side, Way};
use crate::proxy::{Proxy, check_beginning};
use crate::settings::Settings;
use measured::Measured;
pub use notice::Notice;
use patience::{Owed, Patience};
use peer::Peer;
use taps::Taps;

/// How many events one poll returns.
const EVENTS: usize = 64;

/// How long a peer may owe something that the session needs, by default. A controller or a switch whose peer is silent ends the session sooner by
/// itself: Open vSwitch after five to fifteen seconds. Open vSwitch confirms 8,192 flow mods within a second.
pub const OWED_MAX: Duration = Duration::from_secs(30);

const LISTENER: Token = Token(0);
const TIMER: Token = Token(1);
const SWITCH: Token = Token(2);
const CONTROLLER: Token = Token(3);
/// The first tap. The others follow.
const TAPS: Token = Token(4);

/// What a run needs.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where it listens for the switch.
    pub listen: SocketAddr,
    /// The controller.
    pub controller: SocketAddr,
    /// The ports of the switch, each with the interface that is tapped.
    pub taps: Vec<(PortNo, String)>,
    /// What it plays.
    pub settings: Settings,
    /// How long a peer may leave bytes or a question of the proxy, without taking or answering any, before both connections end.
    pub owed_max: Duration,
}

/// Both peers.
#[derive(Debug)]
struct Session {
    switch: Peer,
    controller: Peer,
}

/// A proxy on sockets.
#[derive(Debug)]
pub struct ProxyRun {
    poll: Poll,
    events: Events,
    alarm: Alarm,
    clock: MonotonicClock,
    listener: TcpListener,
    options: RunOptions,
    taps: Taps,
    session: Option<Session>,
    patience: Patience,
    proxy: Proxy,
    commands: Commands,
    measured: Measured,
    notices: Vec<Notice>,
}

impl ProxyRun {
    /// Listens, and opens the taps.
    ///
    /// # Errors
    /// The address is in use, or an interface is missing or may not be tapped: the message names it.
    pub fn open(options: RunOptions) -> io::Result<Self> {
        let poll = Poll::new()?;
        let clock = MonotonicClock::begin();
        let mut listener = TcpListener::bind(options.listen).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.listen))
        })?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let alarm = Alarm::new(clock, poll.registry(), TIMER)?;
        let taps = Taps::open(&options.taps, TAPS, poll.registry(), clock)?;
        Ok(ProxyRun {
            poll,
            events: Events::with_capacity(EVENTS),
            alarm,
            clock,
            listener,
            proxy: Proxy::new(options.settings.clone()),
            measured: Measured::new(options.settings.slow_motion),
            patience: Patience::new(options.owed_max),
            options,
            taps,
            session: None,
            commands: Commands::default(),
            notices: Vec::new(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What the proxy has counted.
    pub fn counters(&self) -> Counters {
        self.proxy.counters()
    }

    /// The machine was read.
    pub fn note_machine(&mut self, reading: MachineReading) {
        let now = self.clock.elapsed();
        self.measured.on_dropped(self.taps.take_dropped(), now);
        self.measured.on_reading(reading, now);
    }

    /// Whether the machine has kept up, since the first session began. `None`: there was no session.
    pub fn verdict(&mut self) -> Option<Verdict> {
        let now = self.clock.elapsed();
        self.measured.on_dropped(self.taps.take_dropped(), now);
        self.measured.verdict(now)
    }

    /// The delays that packets have had so far, in the time of the target.
    pub fn delays(&self, way: Way) -> &Delays {
        self.measured.delays(way)
    }

    /// The own delays of the switch: from packets that taps have seen to their packet-ins. Meant and actual ones are the same.
    pub fn base_delays(&self) -> &Delays {
        self.measured.base()
    }

    /// What has happened since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Waits until something happens, at most for the patience, and acts.
    ///
    /// # Errors
    /// The poll or the timer fails. Trouble with a peer is no error: the session ends.
    pub fn turn(&mut self, patience: Duration) -> io::Result<()> {
        self.note_switch_behind();
        let due = self.proxy.next_due_ns().map(Duration::from_nanos);
        let patience = if self.has_more() { Duration::ZERO } else { patience };
        self.alarm.wait(&mut self.poll, &mut self.events, due, patience)?;
        let trouble = self.take_events();
        // Frames first: a packet-in needs the time of its frame.
        self.read_taps();
        self.taps.look(self.clock.elapsed(), self.poll.registry(), &mut self.notices);
        let worked = trouble.and_then(|()| self.serve()).and_then(|()| self.check_owed());
        if let Err(why) = worked {
            self.end(why);
        }
        Ok(())
    }

    /// Whether there is work that no event announces.
    fn has_more(&self) -> bool {
        let is_crowded = self.taps.is_crowded();
        let Some(Session { switch, controller }) = &self.session else { return is_crowded };
        let of_switch = switch.has_bytes() && !controller.is_behind();
        let of_controller =
            controller.has_bytes() && !switch.is_behind() && self.proxy.takes_from_controller();
        is_crowded || of_switch || of_controller
    }

    /// What is due would only make more bytes for a switch that takes too few.
    fn note_switch_behind(&mut self) {
        let is_behind = self.session.as_ref().is_some_and(|session| session.switch.is_behind());
        self.proxy.set_switch_behind(is_behind);
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Ends the session if a peer has owed something for too long.
    fn check_owed(&mut self) -> Result<(), String> {
        let now = self.clock.elapsed();
        let owed = self.session.as_ref().map(|Session { switch, controller }| Owed {
            taken_by_switch: switch.taken_before_owed(),
            taken_by_controller: controller.taken_before_owed(),
            answered: self.proxy.answers_before_owed(),
        });
        self.patience.look(now, owed.unwrap_or_default())
    }

    /// Notes which sockets are ready.
    fn take_events(&mut self) -> Result<(), String> {
        let mut has_caller = false;
        let mut result = Ok(());
        for event in &self.events {
            let peer = match (event.token(), &mut self.session) {
                (LISTENER, _) => {
                    has_caller = true;
                    continue;
                }
                (SWITCH, Some(session)) => &mut session.switch,
                (CONTROLLER, Some(session)) => &mut session.controller,
                _ => continue,
            };
            if event.is_readable() {
                peer.on_readable();
            }
            if event.is_read_closed() || event.is_error() {
                peer.on_ending();
            }
            if event.is_writable() || event.is_error() {
                result = result.and(peer.on_writable().map_err(|error| sentence(peer.side, &error)));
            }
        }
        if has_caller { result.and(self.accept()) } else { result }
    }

    fn accept(&mut self) -> Result<(), String> {
        // The poll is edge-triggered: all callers must be taken.
        let mut result = Ok(());
        loop {
            match self.listener.accept() {
                Ok((_, from)) if self.session.is_some() => self.notices.push(Notice::Refused(from)),
                Ok((stream, from)) => {
                    self.notices.push(Notice::Connected(from));
                    result = result.and(self.begin_session(stream));
                }
                // It gave up before it was taken.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => return result,
            }
        }
    }

    fn begin_session(&mut self, stream: TcpStream) -> Result<(), String> {
        let registry = self.poll.registry();
        let of = |side| move |error: io::Error| sentence(side, &error);
        let switch = Peer::new(stream, Side::Switch, true, SWITCH, registry).map_err(of(Side::Switch))?;
        let controller = TcpStream::connect(self.options.controller)
            .and_then(|stream| Peer::new(stream, Side::Controller, false, CONTROLLER, registry))
            .map_err(of(Side::Controller))?;
        self.session = Some(Session { switch, controller });
        Ok(())
    }

    fn read_taps(&mut self) {
        let now_ns = self.now_ns();
        let ProxyRun { taps, proxy, commands, notices, .. } = self;
        taps.read(notices, |port, arrived, frame| {
            let arrived = arrived.and_then(|time| u64::try_from(time.as_nanos()).ok());
            // A frame may come while they are read.
            let arrived_ns = arrived.map_or(now_ns, |at_ns| at_ns.min(now_ns));
            let _taken = proxy.on_event(now_ns, Event::Frame { port, arrived_ns, frame }, commands);
        });
    }

    /// Serves the session: what is due, what came, what waits.
    fn serve(&mut self) -> Result<(), String> {
        let now_ns = self.now_ns();
        if self.session.is_none() {
            return Ok(());
        }
        if self.proxy.next_due_ns().is_some_and(|due| due <= now_ns) {
            let _taken = self.proxy.on_event(now_ns, Event::Time, &mut self.commands);
            self.hand_out()?;
        }
        self.serve_side(Side::Switch)?;
        self.serve_side(Side::Controller)?;
        let (is_open, now) = (self.proxy.is_in_session(), self.clock.elapsed());
        if is_open && !self.measured.is_in_session() {
            // What was dropped before belongs to nobody.
            let _before = self.taps.take_dropped();
        }
        self.measured.set_session(is_open, now);
        let Some(Session { switch, controller }) = &mut self.session else { return Ok(()) };
        switch.flush().map_err(|error| sentence(Side::Switch, &error))?;
        controller.flush().map_err(|error| sentence(Side::Controller, &error))
    }

    /// Reads one peer, unless the other one is behind.
    fn serve_side(&mut self, side: Side) -> Result<(), String> {
        let must_wait = self.must_wait(side);
        let takes = side == Side::Switch || self.proxy.takes_from_controller();
        let Some(Session { switch, controller }) = &mut self.session else { return Ok(()) };
        let peer = if side == Side::Switch { switch } else { controller };
        // The rest of what it has said is not read before its end, which would otherwise stay unseen.
        if peer.is_ending() && must_wait {
            return Err(format!("{side}: it closed the connection"));
        }
        if !peer.has_bytes() || must_wait || !takes {
            return Ok(());
        }
        peer.read().map_err(|error| sentence(side, &error))?;
        let mut inbound = peer.take_inbound();
        let handled = self.pass(side, inbound.bytes());
        let must_wait = self.must_wait(side);
        if let Some(Session { switch, controller }) = &mut self.session {
            let peer = if side == Side::Switch { switch } else { controller };
            inbound.on_handled(*handled.as_ref().unwrap_or(&0), must_wait);
            peer.put_back(inbound);
        }
        handled.map(drop)
    }

    /// Whether the other end has so much to take, or the switch so much to confirm, that no further message may be handled.
    fn must_wait(&self, side: Side) -> bool {
        match side {
            Side::Switch => self.session.as_ref().is_some_and(|session| session.controller.is_behind()),
            Side::Controller => {
                self.session.as_ref().is_some_and(|session| session.switch.is_behind())
                    || self.proxy.waits_for_switch()
            }
        }
    }

    /// Gives each whole message to the proxy. Messages that pass unchanged are sent from where they are, as many as follow each
    /// other at once. It stops when the other end is behind, since one message may become many. Returns how many bytes it has handled.
    fn pass(&mut self, side: Side, bytes: &[u8]) -> Result<usize, String> {
        let (mut at, mut run) = (0, 0);
        let mut trouble = Ok(());
        let cut = stream::cut(bytes, |message| {
            let now_ns = self.now_ns();
            let event = match side {
                Side::Switch => Event::FromSwitch(message),
                Side::Controller => Event::FromController(message),
            };
            self.note_switch_behind();
            let passage = self.proxy.on_event(now_ns, event, &mut self.commands);
            let end = at + message.len();
            let has_commands = !self.commands.to_switch.is_empty()
                || !self.commands.to_controller.is_empty()
                || self.commands.end.is_some();
            if passage == Passage::Taken || has_commands {
                trouble = self.send_run(side, &bytes[run..at]).and_then(|()| self.hand_out());
                run = if passage == Passage::Taken { end } else { at };
            }
            at = end;
            trouble.is_ok() && !self.must_wait(side)
        });
        trouble?;
        cut.map_err(|bad| format!("{side} sent a wrong length: {bad}"))?;
        self.send_run(side, &bytes[run..at])?;
        check_beginning(side, &bytes[at..]).map_err(|rubbish| rubbish.to_string())?;
        Ok(at)
    }

    /// Messages that pass unchanged.
    fn send_run(&mut self, from: Side, bytes: &[u8]) -> Result<(), String> {
        let Some(Session { switch, controller }) = &mut self.session else { return Ok(()) };
        let to = if from == Side::Switch { controller } else { switch };
        if bytes.is_empty() { Ok(()) } else { to.send(bytes).map_err(|error| sentence(to.side, &error)) }
    }

    /// Sends what the proxy has for both sides.
    fn hand_out(&mut self) -> Result<(), String> {
        let Some(Session { switch, controller }) = &mut self.session else { return Ok(()) };
        for (peer, bytes) in
            [(switch, &mut self.commands.to_switch), (controller, &mut self.commands.to_controller)]
        {
            if !bytes.is_empty() {
                peer.send(bytes).map_err(|error| sentence(peer.side, &error))?;
                bytes.clear();
            }
        }
        let actual = self.clock.elapsed();
        for release in self.commands.releases.drain(..) {
            self.measured.on_release(release, actual);
        }
        match self.commands.end.take() {
            Some(rubbish) => Err(rubbish.to_string()),
            None => Ok(()),
        }
    }

    fn end(&mut self, why: String) {
        self.notices.push(Notice::Ended(why));
        if let Some(Session { switch, controller }) = self.session.take() {
            switch.close(self.poll.registry());
            controller.close(self.poll.registry());
        }
        self.commands = Commands::default();
        let _taken = self.proxy.on_event(self.now_ns(), Event::Ended, &mut self.commands);
        let now = self.clock.elapsed();
        self.measured.on_dropped(self.taps.take_dropped(), now);
        self.measured.set_session(false, now);
    }
}

fn sentence(side: Side, error: &io::Error) -> String {
    format!("{side}: {error}")
}
