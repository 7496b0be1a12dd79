//! One client's stream of events: what it takes from the feed, and how long it waits.
//!
//! In: the feed. Out: batches of messages, or a keep-alive after 15 seconds without one. When it is dropped, the client has left. It has no
//! task and no queue of its own: the connection takes the next messages when the last ones are on their way.

use crate::app::Shared;
use crate::feed::{ClientId, Interest, Message};
use crate::http::Problem;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::time::{Instant, Sleep};
use hyper::body::Bytes;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// After so long without an event the client gets a keep-alive, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A client of the feed.
pub struct Events {
    shared: Arc<Shared>,
    id: ClientId,
    /// When a keep-alive is due.
    due: Instant,
    /// Ends then, or earlier.
    timer: Pin<Box<Sleep>>,
}

impl Events {
    /// Joins the feed, if it has fewer clients than this.
    ///
    /// # Errors
    /// There are too many clients.
    pub fn join(shared: &Arc<Shared>, interest: Interest, clients_max: usize) -> Result<Events, Problem> {
        let joined = shared.state().feed.join(interest, clients_max);
        let id = joined.ok_or_else(|| Problem::too_many("too many clients follow streams: close some"))?;
        let due = Instant::now() + KEEP_ALIVE;
        let timer = Box::pin(tokio::time::sleep_until(due));
        Ok(Events { shared: Arc::clone(shared), id, due, timer })
    }

    /// The next messages. Empty: nothing for 15 seconds.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Vec<Arc<Message>>> {
        let messages = self.take(context.waker());
        if !messages.is_empty() {
            // The timer is set again when it ends, and not for each message.
            self.due = Instant::now() + KEEP_ALIVE;
            return Poll::Ready(messages);
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            let is_due = Instant::now() >= self.due;
            if is_due {
                self.due = Instant::now() + KEEP_ALIVE;
            }
            self.timer.as_mut().reset(self.due);
            if is_due {
                return Poll::Ready(Vec::new());
            }
        }
    }

    /// The same, to be awaited.
    pub async fn next(&mut self) -> Vec<Arc<Message>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The text of the next server-sent events, or of a keep-alive.
    pub fn poll_lines(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        self.poll_next(context).map(|messages| lines(&messages))
    }

    fn take(&mut self, waker: &Waker) -> Vec<Arc<Message>> {
        let mut state = self.shared.state();
        let state = &mut *state;
        let crate::state::State { feed, run, view, slices, apps, .. } = state;
        let of_slices = |interest: &Interest| slices.snapshot(apps, view.version(), interest);
        feed.take(self.id, run, (view, &of_slices), waker)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.state().feed.leave(self.id);
    }
}

/// The text of server-sent events. That of a single message is shared by all its clients.
fn lines(messages: &[Arc<Message>]) -> Bytes {
    match messages {
        [] => Bytes::from_static(b":\n\n"),
        [one] => one.lines().clone(),
        all => all.iter().map(|it| &it.lines()[..]).collect::<Vec<_>>().concat().into(),
    }
}

/// Runs both until one has ended.
pub async fn first_of(one: impl Future<Output = ()>, two: impl Future<Output = ()>) {
    futures_util::future::select(Box::pin(one), Box::pin(two)).await;
}
