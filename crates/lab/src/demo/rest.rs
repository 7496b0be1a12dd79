//! What the demo asks its node: over the operator's socket file, and over TCP as a browser does.
//!
//! ```text
//!   annotations, intents ──PATCH, POST──> node ──stream of changes──> follow ──> events with the time of their arrival
//!   check_page ──GET / and /api/v1/topology over TCP──> node
//! ```
//!
//! In: questions. Out: answers, or sentences for the operator. It decides nothing.

use burnet::cli::CommandError;
use burnet::commands::network::Client;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long the page may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read: the page is far shorter.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// How long to wait before the stream of changes is asked for again.
const RETRY: Duration = Duration::from_millis(100);

/// How many events may wait for the demo. Beyond it, the thread that reads the stream waits.
const EVENTS_MAX: usize = 4_096;

/// The kinds of objects that the demo follows.
const STREAM: &str = "/api/v1/stream?kinds=switch,link,host,intent,path";

/// An event of the stream, and when it arrived.
pub(super) type Heard = (Instant, Value);

/// The way to the node.
pub(super) struct Rest {
    client: Client,
    address: SocketAddr,
}

/// The address, if it is free. A port 0 becomes a free port.
pub(super) fn free(address: SocketAddr) -> Result<SocketAddr, CommandError> {
    if !address.ip().is_loopback() {
        return Err(CommandError::Usage(format!(
            "--rest {address} could be reached by other machines, and the demo has no tokens: choose 127.0.0.1 and a port"
        )));
    }
    let bound = TcpListener::bind(address).and_then(|listener| listener.local_addr());
    bound.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program, perhaps a node, uses it already".to_owned(),
            _ => error.to_string(),
        };
        CommandError::Usage(format!(
            "the web page cannot be at {address}: {why}. Choose another address: --rest 127.0.0.1:0 takes any free port"
        ))
    })
}

impl Rest {
    /// The node with this operator's socket, whose REST interface is also at this address.
    pub fn new(socket: &Path, address: SocketAddr) -> Rest {
        Rest { client: Client::beside(socket), address }
    }

    /// Notes something about a switch.
    pub fn annotate(&self, switch: &str, annotations: &Value) -> Result<(), String> {
        let body = json!({ "annotations": annotations });
        self.client.ask("PATCH", &format!("/api/v1/switches/{switch}"), Some(&body)).map(drop)
    }

    /// Adds an intent.
    pub fn add_intent(&self, intent: &Value) -> Result<(), String> {
        self.client.ask("POST", "/api/v1/intents", Some(intent)).map(drop)
    }

    /// Loads the page with its script, and the topology, as a browser does. Returns the topology.
    pub fn check_page(&self) -> Result<Value, String> {
        let page = self.get("/")?;
        let script = page.split("src=\"").nth(1).and_then(|rest| rest.split('"').next());
        let script = script.ok_or_else(|| format!("http://{}/ is no page with a script", self.address))?;
        self.get(script.trim_start_matches('.'))?;
        let topology = self.get("/api/v1/topology")?;
        serde_json::from_str(&topology).map_err(|error| format!("the topology is no JSON: {error}"))
    }

    fn get(&self, path: &str) -> Result<String, String> {
        let answer =
            self.exchange(path).map_err(|error| format!("http://{}{path}: {error}", self.address))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => {
                Err(format!("http://{}{path}: {}", self.address, head.lines().next().unwrap_or("no answer")))
            }
        }
    }

    fn exchange(&self, path: &str) -> std::io::Result<String> {
        let mut connection = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).as_bytes())?;
        let mut answer = Vec::new();
        connection.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// Follows the network view in a thread, which ends with the receiver.
pub(super) fn follow(socket: &Path) -> std::io::Result<Receiver<Heard>> {
    let (to, heard) = sync_channel(EVENTS_MAX);
    let client = Client::beside(socket);
    std::thread::Builder::new().name("stream".into()).spawn(move || read(&client, &to))?;
    Ok(heard)
}

/// Reads streams one after the other, until nobody wants them. Each begins with a snapshot, so nothing is missed.
fn read(client: &Client, to: &SyncSender<Heard>) {
    let tell = |event: &Value| to.send((Instant::now(), event.clone())).err().map(drop);
    loop {
        // An error means that the node does not listen yet, or has ended. The demo notices the latter itself.
        let ended = client.events(STREAM, tell);
        if ended.is_ok() || tell(&Value::Null).is_some() {
            return;
        }
        std::thread::sleep(RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_refused_with_the_way_out() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let refused = free(address).unwrap_err().to_string();
        assert!(
            refused.contains(&address.to_string()) && refused.contains("--rest 127.0.0.1:0"),
            "{refused}"
        );
        assert_ne!(free("127.0.0.1:0".parse().unwrap()).unwrap().port(), 0);
        let open = free("0.0.0.0:0".parse().unwrap()).unwrap_err().to_string();
        assert!(open.contains("no tokens"), "{open}");
    }

    #[test]
    fn the_stream_is_followed_until_nobody_wants_it() {
        let heard = follow(Path::new("/nowhere/burnet.sock")).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap().1, Value::Null);
    }
}
