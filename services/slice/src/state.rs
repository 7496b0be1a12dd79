//! Questions of the operator to a slice, and the answers: one line of JSON each, on the zone's socket.
//!
//! ```text
//!   client ──"{"op":"explain", …}\n", or the end of what it sends──> Question ──> the slice ──> Answer ──> client, and the end
//! ```
//!
//! In: bytes of clients. Out: questions, and answers as bytes. A client has one question. It never waits for a client.

use crate::explain::Explained;
use crate::loss::LossSettings;
use crate::settings::SliceSettings;
use crate::vnics::VnicState;
use burnet_sdk::Wait;
use flow::DatapathId;
use labels_contract::TimedLabel;
use paths_contract::Lack;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use view::LinkId;

/// The most clients at once. A further one is closed.
pub(crate) const CLIENTS_MAX: usize = 8;
/// How long a client may take to ask and to read its answer, in milliseconds.
const PATIENCE_MS: u64 = 5_000;
/// How long the slice may take to delete what it loses, in milliseconds. A slow switch takes some hundred deletes in a second.
pub const WITHDRAWAL_MS: u64 = 30_000;
/// The longest question in bytes: the ports that a slice loses at 256 switches. A client with a longer one is closed.
const QUESTION_BYTES_MAX: usize = 1 << 20;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The state. It is also the question of a client that sends nothing.
    State,
    /// What the zone got of the node: its switches, ports and packets.
    Settings,
    /// What a flow mod becomes.
    Explain {
        /// At this switch, by its own datapath id or the one that the tenant sees. `None`: at all.
        at: Option<DatapathId>,
        /// The message, as a controller sends it.
        #[serde(with = "openflow::hex")]
        message: Vec<u8>,
    },
    /// Delete what the slice loses from the switches. A process with another plan follows, or none.
    Withdraw {
        /// What it loses.
        loss: LossSettings,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The state at that time.
    State(SliceState),
    /// The settings.
    Settings(Box<SliceSettings>),
    /// What the flow mod becomes, switch by switch.
    Explained(Vec<Explained>),
    /// What the slice loses is deleted, except at these switches, each with the reason.
    Withdrawn(Vec<(DatapathId, String)>),
    /// Why there is no answer.
    Refused(String),
}

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceState {
    /// Its name.
    pub slice: String,
    /// Its virtual switches.
    pub switches: Vec<SwitchState>,
    /// Its links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<SliceLinkState>,
    /// The labels of its links, each with the time at which the service had computed it. Only in an answer to an operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<TimedLabel>,
}

/// A link of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceLinkState {
    /// One direction of it, by physical ports.
    pub link: LinkId,
    /// Whether it is up for the tenant.
    pub is_up: bool,
    /// The links of the network below it, if the service paths has said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<LinkId>,
    /// Why the service says that it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// It is up, and this hop does not carry what the slice may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<Lack>,
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
    /// Packet-ins that a controller did not get, because it had not read its earlier messages.
    pub packet_ins_unread: u64,
    /// Packet-outs that were sent.
    pub packet_outs: u64,
    /// Flow mods that were carried out.
    pub flow_mods: u64,
    /// Messages that got an error.
    pub refused: u64,
    /// Its VNICs.
    #[serde(default)]
    pub vnics: Vec<VnicState>,
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

/// How far a client is.
#[derive(Debug)]
enum Phase {
    /// What it has sent so far.
    Asks(Vec<u8>),
    /// It waits for its answer.
    Waits,
    /// The rest of its answer.
    Reads(Vec<u8>),
}

/// A client with its question or its answer.
#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    phase: Phase,
    until_ms: u64,
}

impl Client {
    pub(crate) fn new(stream: UnixStream, now_ms: u64) -> Option<Client> {
        stream.set_nonblocking(true).ok()?;
        Some(Client { stream, phase: Phase::Asks(Vec::new()), until_ms: now_ms + PATIENCE_MS })
    }

    /// What to wait for on its socket, if anything.
    pub(crate) fn waits_for(&self) -> Option<Wait> {
        match self.phase {
            Phase::Asks(_) => Some(Wait::Readable),
            Phase::Waits => None,
            Phase::Reads(_) => Some(Wait::Writable),
        }
    }

    /// Reads what the client has sent. Returns the question once it is whole, or why it is none.
    pub(crate) fn hear(&mut self) -> Option<Result<Question, String>> {
        let Phase::Asks(text) = &mut self.phase else { return None };
        let mut buffer = [0; 4 << 10];
        let is_whole = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => text.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.until_ms = 0;
                    return None;
                }
            }
            if text.last() == Some(&b'\n') || text.len() > QUESTION_BYTES_MAX {
                break true;
            }
        };
        if !is_whole {
            return None;
        }
        let text = std::mem::take(text);
        self.phase = Phase::Waits;
        Some(match text.trim_ascii() {
            [] => Ok(Question::State),
            _ if text.len() > QUESTION_BYTES_MAX => {
                Err(format!("the question has more than {QUESTION_BYTES_MAX} bytes"))
            }
            text => serde_json::from_slice(text).map_err(|why| format!("the question is wrong: {why}")),
        })
    }

    /// Its question has this answer.
    pub(crate) fn answer(&mut self, answer: &Answer) {
        let mut rest = serde_json::to_vec(answer).unwrap_or_default();
        rest.push(b'\n');
        self.phase = Phase::Reads(rest);
    }

    /// Whether it waits for its answer.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waits)
    }

    /// Its answer comes when the switches have answered.
    pub(crate) fn wait_for_switches(&mut self, now_ms: u64) {
        self.until_ms = now_ms + WITHDRAWAL_MS;
    }

    /// Writes what the client takes. Returns whether it is to be kept.
    pub(crate) fn serve(&mut self, now_ms: u64) -> bool {
        let Phase::Reads(rest) = &mut self.phase else { return now_ms < self.until_ms };
        match self.stream.write(rest) {
            Ok(count) => drop(rest.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        !rest.is_empty() && now_ms < self.until_ms
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

    fn large() -> Answer {
        Answer::State(SliceState {
            slice: "x".repeat(1 << 20),
            switches: Vec::new(),
            links: Vec::new(),
            labels: Vec::new(),
        })
    }

    #[test]
    fn a_client_gets_the_whole_answer_however_slowly_it_reads() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut client = Client::new(ours, 0).unwrap();
        client.answer(&large());
        let mut got = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while client.serve(1) {
            let count = theirs.read(&mut buffer).unwrap();
            got.extend_from_slice(&buffer[..count]);
        }
        drop(client);
        theirs.read_to_end(&mut got).unwrap();
        assert_eq!(serde_json::from_slice::<Answer>(&got).unwrap(), large());
    }

    #[test]
    fn a_client_that_does_not_read_or_ask_is_left() {
        for asks in [true, false] {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let mut client = Client::new(ours, 0).unwrap();
            if !asks {
                client.answer(&large());
            }
            assert!(client.serve(PATIENCE_MS - 1), "{asks}");
            assert!(!client.serve(PATIENCE_MS), "{asks}");
        }
    }

    /// What a client has asked that sends these parts, and then ends if it is told to.
    fn heard(parts: &[&[u8]], ends: bool) -> Option<Result<Question, String>> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut client = Client::new(ours, 0).unwrap();
        for part in parts {
            assert_eq!(client.hear(), None);
            theirs.write_all(part).unwrap();
        }
        if ends {
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
        }
        client.hear()
    }

    #[test]
    fn a_question_is_a_line_or_all_until_the_end() {
        assert_eq!(heard(&[], true), Some(Ok(Question::State)));
        assert_eq!(heard(&[], false), None);
        assert_eq!(heard(&[br#"{"op":"#, br#""settings"}"#], false), None, "half a line");
        assert_eq!(heard(&[br#"{"op":"#, b"\"settings\"}\n"], false), Some(Ok(Question::Settings)));
        let explain = Question::Explain { at: None, message: vec![4, 14] };
        assert_eq!(heard(&[br#"{"op":"explain","at":null,"message":"040e"}"#], true), Some(Ok(explain)));
        for wrong in [&b"{}"[..], b"x", br#"{"op":"explain","at":null,"message":"0"}"#] {
            assert!(matches!(heard(&[wrong], true), Some(Err(_))), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn a_question_without_an_end_is_refused_at_the_bound() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut client = Client::new(ours, 0).unwrap();
        let refused = std::iter::repeat_with(|| {
            theirs.write_all(&[b'x'; 4 << 10]).unwrap();
            client.hear()
        });
        let refused = refused.take(QUESTION_BYTES_MAX).find_map(|it| it).unwrap();
        assert!(refused.unwrap_err().contains("more than"));
    }
}
