//! The state of a slice, for the operator: one line of JSON to each client of the zone's socket.
//!
//! In: nothing; a client only connects. Out: the state at that time. It never waits for a client.

use flow::DatapathId;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The most clients at once. A further one is closed.
pub(crate) const CLIENTS_MAX: usize = 8;
/// How long a client may take to read its answer, in milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceState {
    /// Its name.
    pub slice: String,
    /// Its virtual switches.
    pub switches: Vec<SwitchState>,
}

/// A virtual switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchState {
    /// The physical switch.
    pub datapath: DatapathId,
    /// The datapath id that the tenant sees.
    pub shown_as: DatapathId,
    /// Whether the physical switch is connected.
    pub is_up: bool,
    /// The tenant's rules.
    pub rules: usize,
    /// How many rules they are in the physical switch while all ports are open.
    pub pieces: usize,
    /// Packet-ins of which a controller heard.
    pub packet_ins: u64,
    /// Packet-ins above the limit.
    pub packet_ins_dropped: u64,
    /// Packet-outs that were sent.
    pub packet_outs: u64,
    /// Flow mods that were carried out.
    pub flow_mods: u64,
    /// Messages that got an error.
    pub refused: u64,
    /// The connections to the controllers.
    pub controllers: Vec<ControllerState>,
}

/// A connection to a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerState {
    /// The controller.
    pub address: SocketAddr,
    /// The version that both speak, if the connection stands and the handshake is done: `1.0` or `1.3`.
    pub version: Option<String>,
    /// Its role.
    pub role: Option<String>,
    /// How long the connection has stood, in milliseconds.
    pub up_ms: Option<u64>,
    /// Why the last connection ended or failed, if none stands.
    pub trouble: Option<String>,
}

/// A client with its answer.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    rest: Vec<u8>,
    until_ms: u64,
}

impl Client {
    pub(crate) fn new(stream: UnixStream, state: &SliceState, now_ms: u64) -> Option<Client> {
        stream.set_nonblocking(true).ok()?;
        let mut rest = serde_json::to_vec(state).ok()?;
        rest.push(b'\n');
        Some(Client { stream, rest, until_ms: now_ms + PATIENCE_MS })
    }

    /// Writes what the client takes. Returns whether it is to be kept.
    pub(crate) fn serve(&mut self, now_ms: u64) -> bool {
        match self.stream.write(&self.rest) {
            Ok(count) => drop(self.rest.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        !self.rest.is_empty() && now_ms < self.until_ms
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_client_gets_the_whole_state_however_slowly_it_reads() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let state = SliceState { slice: "x".repeat(1 << 20), switches: Vec::new() };
        let mut client = Client::new(ours, &state, 0).unwrap();
        let mut got = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while client.serve(1) {
            let count = theirs.read(&mut buffer).unwrap();
            got.extend_from_slice(&buffer[..count]);
        }
        drop(client);
        theirs.read_to_end(&mut got).unwrap();
        assert_eq!(serde_json::from_slice::<SliceState>(&got).unwrap(), state);
    }

    #[test]
    fn a_client_that_does_not_read_is_left() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let state = SliceState { slice: "x".repeat(1 << 20), switches: Vec::new() };
        let mut client = Client::new(ours, &state, 0).unwrap();
        assert!(client.serve(PATIENCE_MS - 1));
        assert!(!client.serve(PATIENCE_MS));
    }
}
