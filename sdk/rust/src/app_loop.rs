//! The loop of an app that waits for more than events: for sockets, timers, other threads, or an async runtime.
//!
//! ```text
//!   the app's own loop ──waits──> [ AppLoop's descriptor | its sockets | its deadlines ]
//!        └──turn──> AppLoop: events ──> the app's handlers ──> commands
//!        └──act───> AppLoop: something else has happened ──> the app ──> commands
//! ```
//!
//! In: what the node sends, and what the app wants to do. Out: calls of its handlers, and commands. It waits only if the
//! kernel has no room for commands.

use crate::listener::Listener;
use crate::process::{Process, ProcessError, Turn, Welcome, welcome};
use burnet_sdk_core::instance::Instance;
use burnet_sdk_core::{App, Commands};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns in one call of [`AppLoop::turn`]. More events wait for the next call, so that the app's other work has its turn: 512 packet-ins
/// take an app that sends them on by a socket some milliseconds.
const TURNS_MAX: usize = 2;

/// How an app is after [`AppLoop::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All that was there is served. Wait for the descriptor before the next turn.
    Waiting,
    /// More is there. Take the next turn soon, without waiting for the descriptor.
    Busy,
    /// The node has told the zone to end. Let the process end with exit code 0.
    Ended,
}

/// An app in a process of its own, whose loop is the caller's.
///
/// The descriptor ([`AsFd`]) is readable when there is something to serve, or when a [`Waker`] has woken the loop. It is
/// only to be waited for, with `poll`, `epoll` or an async runtime, and never to be read.
pub struct AppLoop<A: App> {
    process: Process<'static>,
    instance: Instance<A>,
    epoll: OwnedFd,
    waker: Waker,
    timer: Timer,
    listeners: Vec<Listener>,
}

impl<A: App> AppLoop<A> {
    /// Takes the app's settings and ports from the node that started this process, and starts the app.
    ///
    /// # Errors
    /// [`ProcessError`]: no node started this process, the app refuses its settings, or the system has no descriptors left.
    pub fn start() -> Result<AppLoop<A>, ProcessError> {
        let Welcome { settings, ports, line, listeners } = welcome().map_err(ProcessError::with(1))?;
        let start = Instance::<A>::start_guest;
        let (process, instance) =
            Process::start(&settings, ports, Some(line), start, Box::new(|wait| wait()))?;
        Ok(AppLoop { listeners, ..AppLoop::of(process, instance)? })
    }

    pub(crate) fn of(
        mut process: Process<'static>,
        instance: Instance<A>,
    ) -> Result<AppLoop<A>, ProcessError> {
        let no_descriptors = |error| ProcessError::with(1)(format!("it cannot wait for events: {error}"));
        let mut timer = Timer::new().map_err(no_descriptors)?;
        let (epoll, waker) = watch(&process, &timer).map_err(no_descriptors)?;
        process.subscribe_everywhere().map_err(ProcessError::with(1))?;
        timer.set(process.wake_at()).map_err(no_descriptors)?;
        Ok(AppLoop { process, instance, epoll, waker, timer, listeners: Vec::new() })
    }

    /// The sockets on which the app accepts connections, in the order of its addresses. Empty after the first call.
    pub fn take_listeners(&mut self) -> Vec<Listener> {
        std::mem::take(&mut self.listeners)
    }

    /// Serves what is there, and never waits for more. After it returns [`State::Waiting`], the descriptor becomes readable
    /// when there is more.
    ///
    /// # Errors
    /// [`ProcessError`]: the zone is not as it must be. The process must end.
    pub fn turn(&mut self) -> Result<State, ProcessError> {
        self.waker.rest();
        self.awake().and_then(|()| self.serve()).map_err(ProcessError::with(1))
    }

    fn awake(&mut self) -> Result<(), String> {
        self.process.awake()?;
        self.process.look_at_line();
        Ok(())
    }

    /// What the descriptor stands for, for a loop that waits for each of these itself.
    pub(crate) fn parts(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.waker.0.as_fd(), self.timer.fd.as_fd()].into_iter().chain(self.process.wake_fds())
    }

    /// As [`AppLoop::turn`], by what the caller has seen of [`AppLoop::parts`]: whether it is readable. So there are no system calls to find that out.
    pub(crate) fn turn_by(&mut self, is_readable: &[bool]) -> Result<State, ProcessError> {
        let (own, of_process) = is_readable.split_at(is_readable.len().min(2));
        if own.first().copied().unwrap_or_default() {
            self.waker.rest();
        }
        let served = self.process.awake_by(of_process).and_then(|()| self.serve());
        served.map_err(ProcessError::with(1))
    }

    fn set_timer(&mut self) -> Result<(), String> {
        let set = self.timer.set(self.process.wake_at());
        set.map_err(|error| format!("it cannot wait for a deadline: {error}"))
    }

    fn serve(&mut self) -> Result<State, String> {
        let state = self.serve_turns()?;
        self.set_timer()?;
        Ok(state)
    }

    fn serve_turns(&mut self) -> Result<State, String> {
        for _ in 0..TURNS_MAX {
            match self.process.turn(&mut self.instance)? {
                Turn::ToldToEnd => return Ok(State::Ended),
                Turn::Idle if self.process.about_to_sleep() => return Ok(State::Waiting),
                Turn::Idle => self.process.awake()?,
                Turn::Busy => {}
            }
        }
        Ok(State::Busy)
    }

    /// Lets the app do something that no event of the node caused: a socket is readable, or a deadline has passed. Its
    /// commands are sent at once.
    ///
    /// # Errors
    /// [`ProcessError`]: the zone is not as it must be. The process must end.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut A, &mut Commands) -> T) -> Result<T, ProcessError> {
        let AppLoop { process, instance, .. } = self;
        let mut acted = None;
        let given = process.act(|commands| acted = Some(instance.act(commands, act)));
        given.map_err(ProcessError::with(1))?;
        self.process.take_wake(&mut self.instance);
        self.set_timer().map_err(ProcessError::with(1))?;
        acted.ok_or_else(|| ProcessError::with(1)("the app did nothing".to_owned()))
    }

    /// The app.
    pub fn app(&self) -> &A {
        self.instance.app()
    }

    /// Wakes this loop from other threads.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl<A: App> AsFd for AppLoop<A> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl<A: App> AsRawFd for AppLoop<A> {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

/// Makes the descriptor readable when it is time to wake the app.
struct Timer {
    fd: OwnedFd,
    /// The time that was set last.
    at: Option<Instant>,
}

impl Timer {
    fn new() -> rustix::io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer { fd: timerfd_create(TimerfdClockId::Monotonic, flags)?, at: None })
    }

    /// Sets another time. A timer that is set again is not readable any more.
    fn set(&mut self, at: Option<Instant>) -> rustix::io::Result<()> {
        if self.at == at {
            return Ok(());
        }
        self.at = at;
        // 0 would turn the timer off, as `None` does.
        let left = |at: Instant| at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = at.map(left).and_then(|left| Timespec::try_from(left).ok()).unwrap_or(no_time);
        let once = Itimerspec { it_interval: no_time, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once).map(drop)
    }
}

/// Makes the descriptor of an [`AppLoop`] readable, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Wakes the loop. Many calls before its next turn wake it once.
    pub fn wake(&self) {
        // It fails if the counter is full, and then the loop is awake anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn rest(&self) {
        // It fails if nobody has woken it.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// One descriptor for all that this process waits for, and its waker.
fn watch(process: &Process<'_>, timer: &Timer) -> rustix::io::Result<(OwnedFd, Waker)> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    for fd in process.wake_fds().chain([waker.as_fd(), timer.fd.as_fd()]) {
        epoll::add(&epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok((epoll, Waker(Arc::new(waker))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Frame;
    use burnet_sdk_core::{Interests, Settings};
    use ring::{AppEnd, KernelEnd, Port, Sizes};
    use rustix::event::{PollFd, PollFlags, poll};

    /// Counts ticks.
    struct Counter(u64);

    impl App for Counter {
        fn new(_: &Settings) -> Result<Self, String> {
            Ok(Counter(0))
        }
        fn interests(&self) -> Interests {
            Interests::none().ticks()
        }
        fn on_tick(&mut self, _: u64, out: &mut Commands) {
            self.0 += 1;
            out.publish("ticks", &self.0.to_be_bytes());
        }
        fn on_wake(&mut self, out: &mut Commands) {
            self.0 += 100;
            out.log(burnet_sdk_core::Level::Information, "woken");
        }
    }

    fn started() -> (AppLoop<Counter>, KernelEnd) {
        let port = Port::create(Sizes::new(1 << 20, 1 << 20, 1 << 20).unwrap()).unwrap();
        let kernel = KernelEnd::attach(port.kernel).unwrap();
        let ports = vec![AppEnd::attach(port.app).unwrap()];
        let start = Instance::<Counter>::start_guest;
        let (process, instance) = Process::start(b"{}", ports, None, start, Box::new(|wait| wait())).unwrap();
        (AppLoop::of(process, instance).unwrap(), kernel)
    }

    /// Whether the descriptor becomes readable within so many seconds.
    fn is_readable(app: &AppLoop<Counter>, within_s: i64) -> bool {
        let mut fds = [PollFd::new(app, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: within_s, tv_nsec: 0 })).unwrap() == 1
    }

    fn tick(kernel: &mut KernelEnd) {
        let mut bytes = Vec::new();
        assert!(abi::event::write::tick(&mut bytes, 1, 7));
        kernel.control.push(&[&bytes]).unwrap();
        kernel.publish();
    }

    /// The kinds of the commands that came.
    fn commands(kernel: &mut KernelEnd) -> Vec<u16> {
        let (mut buffer, mut kinds) = (Vec::new(), Vec::new());
        while kernel.consumer.pop_into(&mut buffer).unwrap().is_some() {
            kinds.push(Frame::read(&buffer).unwrap().header.kind.get());
        }
        kinds
    }

    #[test]
    fn the_descriptor_is_readable_when_an_event_is_there_and_not_after_it_was_served() {
        let (mut app, mut kernel) = started();
        assert_eq!(app.turn(), Ok(State::Waiting));
        assert_eq!(commands(&mut kernel), [abi::command::kind::SUBSCRIBE]);
        for _ in 0..3 {
            assert!(!is_readable(&app, 0));
            tick(&mut kernel);
            assert!(is_readable(&app, 60));
            assert_eq!(app.turn(), Ok(State::Waiting));
            assert_eq!(commands(&mut kernel), [abi::command::kind::PUBLISH]);
        }
        assert_eq!(app.act(|counter, _| counter.0), Ok(3));
    }

    /// Which parts are readable now.
    fn readable_parts(app: &AppLoop<Counter>) -> Vec<bool> {
        let mut fds: Vec<_> = app.parts().map(|part| PollFd::from_borrowed_fd(part, PollFlags::IN)).collect();
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds.iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    #[test]
    fn a_loop_that_waits_for_the_parts_finds_none_readable_after_it_was_served() {
        let (mut app, mut kernel) = started();
        assert_eq!(app.turn(), Ok(State::Waiting));
        commands(&mut kernel);
        for round in 0..3 {
            assert_eq!(readable_parts(&app), [false, false, false]);
            tick(&mut kernel);
            app.waker().wake();
            let readable = readable_parts(&app);
            assert_eq!(readable, [true, false, true], "round {round}");
            assert_eq!(app.turn_by(&readable), Ok(State::Waiting));
            assert_eq!(commands(&mut kernel), [abi::command::kind::PUBLISH]);
        }
        app.act(|_, out| out.wake_after(Duration::from_nanos(1))).unwrap();
        assert_eq!(app.turn_by(&[false, true, false]), Ok(State::Waiting));
        assert_eq!(commands(&mut kernel), [abi::command::kind::LOG]);
        assert_eq!(readable_parts(&app), [false, false, false]);
    }

    #[test]
    fn what_the_app_does_without_an_event_is_sent_at_once() {
        let (mut app, mut kernel) = started();
        commands(&mut kernel);
        app.act(|_, out| out.publish("socket", b"readable")).unwrap();
        assert_eq!(commands(&mut kernel), [abi::command::kind::PUBLISH]);
    }

    #[test]
    fn the_app_is_woken_once_at_the_time_that_it_asked_for_last() {
        let (mut app, mut kernel) = started();
        commands(&mut kernel);
        app.act(|_, out| out.wake_after(Duration::from_secs(3_600))).unwrap();
        assert!(!is_readable(&app, 0));
        let asked = Instant::now();
        app.act(|_, out| out.wake_after(Duration::from_millis(20))).unwrap();
        assert_eq!(app.turn(), Ok(State::Waiting));
        assert!(commands(&mut kernel).is_empty());
        assert!(is_readable(&app, 60) && asked.elapsed() >= Duration::from_millis(20));
        assert_eq!(app.turn(), Ok(State::Waiting));
        assert_eq!(commands(&mut kernel), [abi::command::kind::LOG]);
        assert!(!is_readable(&app, 0));
        assert_eq!(app.act(|counter, _| counter.0), Ok(100));
    }

    #[test]
    fn another_thread_wakes_the_loop_once_however_often_it_calls() {
        let (mut app, _kernel) = started();
        assert_eq!(app.turn(), Ok(State::Waiting));
        let waker = app.waker();
        std::thread::spawn(move || (0..1_000).for_each(|_| waker.wake())).join().unwrap();
        assert!(is_readable(&app, 60));
        assert_eq!(app.turn(), Ok(State::Waiting));
        assert!(!is_readable(&app, 0));
    }

    #[test]
    fn the_end_of_the_zone_is_told_after_what_came_before() {
        let (mut app, mut kernel) = started();
        tick(&mut kernel);
        let mut bytes = Vec::new();
        assert!(abi::event::write::shutdown(&mut bytes, 2));
        kernel.control.push(&[&bytes]).unwrap();
        kernel.publish();
        assert_eq!(app.turn(), Ok(State::Ended));
        assert_eq!(app.act(|counter, _| counter.0), Ok(1));
    }
}
