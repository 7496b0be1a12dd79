//! A connection that ends if its client does not read.
//!
//! In: a stream. Out: the same stream, whose writes fail after 30 seconds without progress; and a call for each client that is disconnected. Without it,
//! a client that reads nothing would hold its connection and its answer for ever.

use burnet_sdk_tokio::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use burnet_sdk_tokio::tokio::time::{Sleep, sleep};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a client may read nothing while something waits for it.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

/// A stream with a limit for writes that make no progress.
pub struct Patient<S> {
    stream: S,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Is called once if the client reads nothing for too long.
    on_stalled: Option<Box<dyn FnOnce() + Send>>,
}

impl<S> Patient<S> {
    /// Wraps a stream.
    pub fn new(stream: S, on_stalled: impl FnOnce() + Send + 'static) -> Patient<S> {
        Patient { stream, waiting: None, on_stalled: Some(Box::new(on_stalled)) }
    }

    /// Ends the wait after progress, and fails after too long a wait.
    fn judge<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(WRITE_PATIENCE)));
        let polled = waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
        if let Some(on_stalled) = self.on_stalled.take_if(|_| polled.is_ready()) {
            on_stalled();
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
