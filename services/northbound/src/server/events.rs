//! One client's stream of events: what it takes from the feed, and how long it waits.
//!
//! In: the feed. Out: batches of messages, or a sign of life after 15 seconds without one. When it is dropped, the client has left.

use crate::app::Shared;
use crate::feed::{ClientId, Interest, Message};
use crate::http::Problem;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::sync::{Notify, mpsc};
use hyper::body::Bytes;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// After so long without an event the client gets a sign of life, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How many batches wait for the connection. The feed holds the others, with a bound.
const BATCHES_WAITING: usize = 1;

/// A client of the feed.
pub struct Events {
    shared: Arc<Shared>,
    id: ClientId,
    wake: Arc<Notify>,
}

impl Events {
    /// Joins the feed.
    ///
    /// # Errors
    /// There are too many clients.
    pub fn join(shared: &Arc<Shared>, interest: Interest) -> Result<Events, Problem> {
        let wake = Arc::new(Notify::new());
        let waker = Arc::clone(&wake);
        let joined = shared.state().feed.join(interest, Box::new(move || waker.notify_one()));
        let id = joined.ok_or_else(|| Problem::too_many("too many clients follow streams: close some"))?;
        Ok(Events { shared: Arc::clone(shared), id, wake })
    }

    /// The next messages. Empty: nothing for 15 seconds.
    pub async fn next(&self) -> Vec<Arc<Message>> {
        let wait = async {
            loop {
                let messages = self.take();
                if !messages.is_empty() {
                    return messages;
                }
                self.wake.notified().await;
            }
        };
        tokio::time::timeout(KEEP_ALIVE, wait).await.unwrap_or_default()
    }

    fn take(&self) -> Vec<Arc<Message>> {
        let mut state = self.shared.state();
        let state = &mut *state;
        state.feed.take(self.id, &state.run, &state.view)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.state().feed.leave(self.id);
    }
}

/// Sends the events as server-sent events, until the client has left.
pub fn server_sent(events: Events) -> mpsc::Receiver<Bytes> {
    let (parts, body) = mpsc::channel(BATCHES_WAITING);
    tokio::spawn(async move {
        let gone = parts.clone();
        let send = async move {
            loop {
                let text = in_lines(&events.next().await);
                if parts.send(Bytes::from(text)).await.is_err() {
                    return;
                }
            }
        };
        first_of(send, gone.closed()).await;
    });
    body
}

/// The text of server-sent events.
fn in_lines(messages: &[Arc<Message>]) -> String {
    if messages.is_empty() {
        return ":\n\n".to_owned();
    }
    messages.iter().map(|it| format!("event: {}\ndata: {}\n\n", it.event, it.json)).collect()
}

/// Runs both until one has ended.
pub async fn first_of(one: impl Future<Output = ()>, two: impl Future<Output = ()>) {
    futures_util::future::select(Box::pin(one), Box::pin(two)).await;
}
