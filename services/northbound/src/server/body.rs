//! The bodies of responses and of requests.
//!
//! In: bytes of a response, or parts of an event stream; a request's body. Out: a body for hyper; the whole body of a request, within a length and a
//! time. It reads no content.

use super::events::Events;
use crate::http::Problem;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The most bytes of a request's body. The contracts of the services accept less.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// A body up to this length needs no room of those that all bodies share: of as many as there are connections, all are 32 MiB.
const SMALL_BYTES: u64 = 16 << 10;

/// How long a client may take for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a response up to this length needs no room of those that all answers share.
const SHORT_BYTES: usize = 64 << 10;

/// A body with its room.
struct Held {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of a response with room among those of all responses, which it has until the last byte is on its way.
///
/// # Errors
/// 429: there is no room.
pub fn held(bytes: Bytes, answers: &Arc<Semaphore>) -> Result<Bytes, Problem> {
    if bytes.len() <= SHORT_BYTES {
        return Ok(bytes);
    }
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let room = Arc::clone(answers).try_acquire_many_owned(length);
    let full = |_| Problem::too_many("long answers that other clients have not read yet take all the room");
    Ok(Bytes::from_owner(Held { bytes, _room: room.map_err(full)? }))
}

/// The body of a response.
pub enum ResponseBody {
    /// In one piece.
    Whole(Option<Bytes>),
    /// As it comes, until the client leaves.
    Events(Box<Events>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ResponseBody::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            ResponseBody::Events(events) => {
                events.poll_lines(context).map(|lines| Some(Ok(Frame::data(lines))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64))
            }
            ResponseBody::Events(_) => SizeHint::new(),
        }
    }
}

/// Room for the body of a request among those of all requests. It is taken for the length that the client declares, or for the longest.
///
/// # Errors
/// 413 if the declared length is too long; 429 if there is no room for 10 seconds.
pub async fn room<'r>(
    body: &Incoming,
    bodies: &'r Semaphore,
) -> Result<Option<SemaphorePermit<'r>>, Problem> {
    let length = body.size_hint().upper().unwrap_or(BODY_BYTES_MAX as u64);
    if length <= SMALL_BYTES {
        return Ok(None);
    }
    let length =
        u32::try_from(length).ok().filter(|it| *it as usize <= BODY_BYTES_MAX).ok_or_else(too_large)?;
    let full =
        || Problem::too_many("the long bodies of other requests have all the room: send this one later");
    let waited = tokio::time::timeout(BODY_TIMEOUT, bodies.acquire_many(length)).await;
    // The semaphore is never closed.
    waited.map_err(|_| full())?.map(Some).map_err(|_| full())
}

/// Reads the body of a request.
///
/// # Errors
/// 413 if it is too long, as soon as that is known; 408 if it does not come in time; 400 if it breaks off.
pub async fn read(body: Incoming) -> Result<Vec<u8>, Problem> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let late = |_| {
        Problem::new(
            408,
            "too-slow",
            "The request came too slowly",
            "the body did not arrive within 10 seconds",
        )
    };
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.map_err(late)?
}

async fn collect(mut body: Incoming) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Problem::bad_request("the body breaks off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn too_large() -> Problem {
    let detail = format!("a body has at most {BODY_BYTES_MAX} bytes: split the request");
    Problem::new(413, "too-large", "The body is too long", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_has_its_room_until_the_last_copy_is_gone() {
        let answers = Arc::new(Semaphore::new(3 * SHORT_BYTES));
        let long = || Bytes::from(vec![7; 2 * SHORT_BYTES]);
        let first = held(long(), &answers).unwrap();
        let part = first.slice(..1);
        drop(first);
        assert_eq!(held(long(), &answers).unwrap_err().status, 429);
        assert!(held(Bytes::from(vec![7; SHORT_BYTES]), &answers).is_ok(), "a short one needs no room");
        drop(part);
        assert_eq!(held(long(), &answers).map(|it| it.len()), Ok(2 * SHORT_BYTES));
    }
}
