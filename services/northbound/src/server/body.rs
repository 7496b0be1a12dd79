//! The bodies of responses and of requests.
//!
//! In: bytes of a response, or parts of an event stream; a request's body. Out: a body for hyper; the whole body of a request, within a length and a
//! time. It reads no content.

use crate::http::Problem;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::sync::mpsc;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The most bytes of a request's body. The contracts of the services accept less.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// How long a client may take for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a response.
pub enum ResponseBody {
    /// In one piece.
    Whole(Option<Bytes>),
    /// As it comes. It ends when the sender is gone.
    Parts(mpsc::Receiver<Bytes>),
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
            ResponseBody::Parts(parts) => {
                parts.poll_recv(context).map(|part| part.map(|it| Ok(Frame::data(it))))
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
            ResponseBody::Parts(_) => SizeHint::new(),
        }
    }
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
