//! The WebSocket form of the stream of events.
//!
//! In: the head of a request, and the connection after its upgrade. Out: the head of the response, then one text message for each event. Messages of the
//! client are read and ignored, except for pings and the end.

use super::events::{Events, first_of};
use crate::http::{Problem, Response};
use futures_util::{SinkExt, StreamExt};
use hyper::HeaderMap;
use hyper::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// The subprotocol that a client may request.
const PROTOCOL: &str = "burnet.v1";

/// How a token is written among the subprotocols.
const TOKEN_PREFIX: &str = "token.";

/// The most bytes of a client's message. Clients have nothing to say.
const CLIENT_MESSAGE_BYTES_MAX: usize = 4 << 10;

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(',')).map(str::trim)
}

/// The token among the subprotocols, in the form of the header `Authorization`. A browser cannot send that header with a WebSocket.
pub fn authorization(headers: &HeaderMap) -> Option<String> {
    protocols(headers).find_map(|it| it.strip_prefix(TOKEN_PREFIX)).map(|token| format!("Bearer {token}"))
}

/// The head of the response that begins the WebSocket.
///
/// # Errors
/// The request is none for a WebSocket of version 13 (RFC 6455, 4.2.1).
pub fn accept(headers: &HeaderMap) -> Result<Response, Problem> {
    let is = |name, value: &str| {
        headers.get(name).and_then(|it| it.to_str().ok()).is_some_and(|it| it.eq_ignore_ascii_case(value))
    };
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .filter(|_| is(&UPGRADE, "websocket") && is(&SEC_WEBSOCKET_VERSION, "13"));
    let Some(key) = key else {
        let detail = "connect to this address with a WebSocket client of version 13";
        let problem = Problem::new(426, "no-websocket", "A WebSocket is needed", detail);
        return Err(Problem { headers: vec![("upgrade", "websocket".to_owned())], ..problem });
    };
    let response = Response::new(101, "", "").with("upgrade", "websocket").with("connection", "upgrade");
    let response = response.with("sec-websocket-accept", derive_accept_key(key.as_bytes()));
    let is_known = protocols(headers).any(|it| it == PROTOCOL);
    Ok(if is_known { response.with("sec-websocket-protocol", PROTOCOL) } else { response })
}

/// Sends the events, until the client has left.
pub async fn run(upgrade: OnUpgrade, mut events: Events) {
    let Ok(upgraded) = upgrade.await else { return };
    let config = WebSocketConfig::default()
        .max_message_size(Some(CLIENT_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(CLIENT_MESSAGE_BYTES_MAX));
    let socket: WebSocketStream<TokioIo<Upgraded>> =
        WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (mut sending, mut receiving) = socket.split();
    let send = async move {
        loop {
            let messages = events.next().await;
            if messages.is_empty() && sending.send(Message::Ping(Vec::new().into())).await.is_err() {
                return;
            }
            for message in messages {
                if sending.feed(Message::text(message.json())).await.is_err() {
                    return;
                }
            }
            if sending.flush().await.is_err() {
                return;
            }
        }
    };
    // Reading answers pings, and ends when the client closes.
    let receive = async move { while let Some(Ok(_)) = receiving.next().await {} };
    first_of(send, receive).await;
}
