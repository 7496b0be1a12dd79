//! The connections of clients: HTTP, server-sent events and WebSockets.
//!
//! ```text
//!   socket ──accept──> Patient ──hyper──> exchange ──> api::answer ──> response, event stream or WebSocket
//! ```
//!
//! In: the sockets that the node has opened. Out: responses. The number of connections is bounded, and so is the time of each step: a client that sends or
//! reads too slowly is disconnected and delays no other.

mod body;
mod events;
mod exchange;
mod patient;
pub mod tls;
mod websocket;

use crate::access::Access;
use crate::app::Northbound;
use burnet_sdk::Level;
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::io::{AsyncRead, AsyncWrite};
use burnet_sdk_tokio::tokio::net::TcpStream;
use burnet_sdk_tokio::tokio::sync::Semaphore;
use burnet_sdk_tokio::{Handle, Listener};
use exchange::{Exchange, Peer};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use patient::Patient;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// The most connections. Beyond it, clients wait in the socket's queue.
pub const CONNECTIONS_MAX: usize = 2_048;

/// Further connections that only the operator's socket may have, so that the operator gets in whatever others do.
pub const OPERATORS_MAX: usize = 64;

/// How long a client may take for the head of a request, and how long a connection may be idle between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The most headers of a request.
const HEADERS_MAX: usize = 64;

/// How long to wait after a failed accept, for example if no descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves all sockets, until the app ends.
///
/// # Errors
/// Other machines can connect without a token, or the certificate is wrong.
pub async fn serve(app: Handle<Northbound>, listeners: Vec<Listener>) -> Result<(), String> {
    let ended = |_| "the app has ended".to_owned();
    let shared = app.act(|app, _| app.shared()).await.map_err(ended)?;
    let is_open = listeners.iter().any(is_open);
    if let Some(flaw) = shared.settings.flaw_if_open().filter(|_| is_open) {
        return Err(format!("[network.northbound]: {flaw}"));
    }
    let wrong = |flaw: String| format!("[network.northbound] {flaw}");
    let acceptor = shared.settings.identity.as_ref().map(tls::acceptor).transpose().map_err(wrong)?;
    if is_open && acceptor.is_none() {
        let _ = app.act(|_, out| out.log(Level::Warning, WITHOUT_TLS)).await;
    }
    let is_local_too = shared.settings.tls.as_ref().is_some_and(|tls| tls.local);
    let access = Arc::new(Access::new(&shared.settings, is_open));
    let exchange = Exchange { app, shared, access };
    let (for_all, for_operator) =
        (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Arc::new(Semaphore::new(OPERATORS_MAX)));
    for listener in listeners {
        let room = if matches!(listener, Listener::Unix(_)) { &for_operator } else { &for_all };
        let uses_tls = is_local_too || self::is_open(&listener);
        let acceptor = acceptor.clone().filter(|_| uses_tls);
        tokio::spawn(accept(listener, acceptor, exchange.clone(), Arc::clone(room)));
    }
    Ok(())
}

/// For the log of a node that others reach without TLS.
const WITHOUT_TLS: &str = "other machines can reach the REST interface without TLS, so tokens can be read on their way: add \
                           [network.northbound.tls], or put a proxy with TLS before it";

/// Whether other machines can connect. If that is not known, they might.
fn is_open(listener: &Listener) -> bool {
    match listener {
        Listener::Tcp(tcp) => tcp.local_addr().map_or(true, |it| !it.ip().is_loopback()),
        Listener::Unix(_) => false,
    }
}

async fn accept(listener: Listener, acceptor: Option<TlsAcceptor>, exchange: Exchange, room: Arc<Semaphore>) {
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let exchange = exchange.clone();
        let accepted: io::Result<()> = match &listener {
            Listener::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Small answers go out at once.
                let _ = stream.set_nodelay(true);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    remote(stream, acceptor, exchange).await;
                    drop(permit);
                });
            }),
            Listener::Unix(unix) => unix.accept().await.map(|(stream, _)| {
                tokio::spawn(async move {
                    connection(stream, exchange, Peer::Operator).await;
                    drop(permit);
                });
            }),
        };
        if accepted.is_err() {
            tokio::time::sleep(ACCEPT_RETRY).await;
        }
    }
}

/// A connection over TCP, with TLS or without.
async fn remote(stream: TcpStream, acceptor: Option<TlsAcceptor>, exchange: Exchange) {
    match acceptor {
        None => connection(stream, exchange, Peer::Remote).await,
        Some(acceptor) => {
            if let Some(stream) = tls::accept(acceptor, stream).await {
                connection(stream, exchange, Peer::Remote).await;
            }
        }
    }
}

async fn connection<S>(stream: S, exchange: Exchange, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::clone(&exchange.shared);
    let stream = Patient::new(stream, move || shared.state().stalled += 1);
    let service = service_fn(move |request| {
        let exchange = exchange.clone();
        async move { Ok::<_, std::convert::Infallible>(exchange.answer(request, peer).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // The client is told what it did wrong, as far as it listens. There is nobody else to tell.
    let _ = served.await;
}
