//! Runs an app in a process zone beside tokio.
//!
//! ```text
//!   node ──events──> AppLoop ──> your App's handlers ──> Commands
//!                       ^ one thread, one tokio runtime
//!   sockets, timers ──> your async tasks ──Handle::act──> your App ──> Commands
//! ```
//!
//! In: an app, and an async function that starts its tasks. Out: an exit code. All runs in one thread: a handler must not block, because
//! no task goes on meanwhile. The queue between tasks and the app is bounded. This crate opens no socket: the node opens those that the
//! capability `net.listen` grants.
//!
//! ```no_run
//! use burnet_sdk::{App, Interests, Settings};
//! use burnet_sdk_tokio::{Handle, Listener};
//!
//! struct Web;
//!
//! impl App for Web {
//!     fn new(_: &Settings) -> Result<Self, String> {
//!         Ok(Web)
//!     }
//!     fn interests(&self) -> Interests {
//!         Interests::none()
//!     }
//! }
//!
//! async fn serve(web: Handle<Web>, listeners: Vec<Listener>) -> Result<(), String> {
//!     for listener in listeners {
//!         let Listener::Tcp(listener) = listener else { continue };
//!         while let Ok((_connection, _)) = listener.accept().await {
//!             let _ = web.act(|_web, out| out.publish("web.visit", b"")).await;
//!         }
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     burnet_sdk_tokio::run(serve)
//! }
//! ```

/// The runtime that [`run`] starts, in the version and with the features that this crate has.
pub use tokio;

use burnet_sdk::{App, AppLoop, Commands, ProcessError, State};
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of [`Handle::act`] that wait for the app. A task that asks for one more waits, so a flood of connections does not fill
/// the memory.
pub const ACTIONS_MAX: usize = 256;

/// Actions between two turns of the app, so that tasks do not delay its events.
const ACTIONS_PER_TURN: usize = 32;

type Action<A> = Box<dyn FnOnce(&mut A, &mut Commands) + Send>;

/// Lets tasks use the app. It can be cloned and sent to other tasks and threads.
pub struct Handle<A>(mpsc::Sender<Action<A>>);

impl<A> Clone for Handle<A> {
    fn clone(&self) -> Handle<A> {
        Handle(self.0.clone())
    }
}

/// The app has ended, or is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

impl Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the app has ended")
    }
}

impl std::error::Error for Ended {}

impl<A: App> Handle<A> {
    /// Runs a function with the app, between two of its events, and returns the result. Its commands are sent at once.
    ///
    /// # Errors
    /// [`Ended`], and the function did not run.
    pub async fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut A, &mut Commands) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let (done, result) = oneshot::channel();
        let action: Action<A> = Box::new(move |app, out| {
            // The task may have been cancelled, and then nobody waits for the result.
            let _ = done.send(act(app, out));
        });
        self.0.send(action).await.map_err(|_| Ended)?;
        result.await.map_err(|_| Ended)
    }
}

/// A socket on which the app accepts connections. While the app restarts, the node keeps it open, and clients wait.
#[derive(Debug)]
pub enum Listener {
    /// A TCP address.
    Tcp(tokio::net::TcpListener),
    /// A socket file.
    Unix(tokio::net::UnixListener),
}

impl Listener {
    fn of(listener: burnet_sdk::Listener) -> std::io::Result<Listener> {
        Ok(match listener {
            burnet_sdk::Listener::Tcp(tcp) => Listener::Tcp(tokio::net::TcpListener::from_std(tcp)?),
            burnet_sdk::Listener::Unix(unix) => Listener::Unix(tokio::net::UnixListener::from_std(unix)?),
        })
    }
}

/// Runs an app in this process until the node ends its zone. `main` starts the tasks, and gets the sockets in the order of their
/// addresses. If `main` returns an error, the process ends with it. After `Ok`, the app goes on.
///
/// Exit codes: 0 if the node ended the zone, 2 if the app refuses its settings, 1 for all other errors. The error is written to standard
/// error, which the node keeps.
pub fn run<A, F>(main: impl FnOnce(Handle<A>, Vec<Listener>) -> F) -> ExitCode
where
    A: App,
    F: Future<Output = Result<(), String>>,
{
    match run_to_end(main) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ProcessError { exit_code, reason }) => {
            eprintln!("{reason}");
            ExitCode::from(exit_code)
        }
    }
}

fn run_to_end<A, F>(main: impl FnOnce(Handle<A>, Vec<Listener>) -> F) -> Result<(), ProcessError>
where
    A: App,
    F: Future<Output = Result<(), String>>,
{
    let mut app = AppLoop::<A>::start()?;
    let listeners = app.take_listeners();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(in_words("it has no async runtime"))?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe: the descriptor must stay open, and AppLoop keeps its own to the end"
    )]
    let watched = |app| AsyncFd::with_interest(app, Interest::READABLE);
    runtime.block_on(async {
        let (handle, actions) = mpsc::channel(ACTIONS_MAX);
        let listeners = listeners.into_iter().map(Listener::of).collect::<Result<Vec<_>, _>>();
        let main = main(Handle(handle), listeners.map_err(in_words("a socket cannot be used"))?);
        let app = watched(app).map_err(in_words("it cannot wait for events"))?;
        first_end(serve(app, actions), main).await
    })
}

/// Both until the app ends or `main` fails.
async fn first_end(
    serving: impl Future<Output = Result<(), ProcessError>>,
    main: impl Future<Output = Result<(), String>>,
) -> Result<(), ProcessError> {
    let (mut serving, mut main, mut has_started) = (pin!(serving), pin!(main), false);
    poll_fn(|context| {
        if let Poll::Ready(ended) = serving.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        if !has_started && let Poll::Ready(started) = main.as_mut().poll(context) {
            has_started = true;
            if let Err(reason) = started {
                return Poll::Ready(Err(failed(reason)));
            }
        }
        Poll::Pending
    })
    .await
}

/// What the app does next.
enum Next<A> {
    Events,
    Action(Action<A>),
}

/// Serves events and actions until the node ends the zone.
async fn serve<A: App>(
    mut app: AsyncFd<AppLoop<A>>,
    mut actions: mpsc::Receiver<Action<A>>,
) -> Result<(), ProcessError> {
    loop {
        let state = app.get_mut().turn()?;
        if state == State::Ended {
            return Ok(());
        }
        for _ in 0..ACTIONS_PER_TURN {
            let Ok(action) = actions.try_recv() else { break };
            app.get_mut().act(action)?;
        }
        if state == State::Busy {
            tokio::task::yield_now().await;
        } else if let Next::Action(action) = next(&mut app, &mut actions).await? {
            app.get_mut().act(action)?;
        }
    }
}

/// Waits for events of the node, or for an action of a task.
async fn next<A: App>(
    app: &mut AsyncFd<AppLoop<A>>,
    actions: &mut mpsc::Receiver<Action<A>>,
) -> Result<Next<A>, ProcessError> {
    poll_fn(|context| {
        // If no task has a handle any more, only events come.
        if let Poll::Ready(Some(action)) = actions.poll_recv(context) {
            return Poll::Ready(Ok(Next::Action(action)));
        }
        app.poll_read_ready_mut(context).map(|ready| {
            // Before the turn: an event that comes during it makes the descriptor ready again.
            ready.map_err(in_words("it cannot wait for events"))?.clear_ready();
            Ok(Next::Events)
        })
    })
    .await
}

fn failed(reason: String) -> ProcessError {
    ProcessError { exit_code: 1, reason }
}

fn in_words<E: Display>(what: &'static str) -> impl Fn(E) -> ProcessError {
    move |error| failed(format!("{what}: {error}"))
}
