//! Messages of DHCPv4 (RFC 2131), as far as they tell of hosts.
//!
//! In: the payload of a UDP packet. Out: who sent it, and the address that a server has confirmed. It reads no other option.

use burnet_sdk::MacAddr;
use std::net::Ipv4Addr;

/// The port of servers.
pub(super) const SERVER_PORT: u16 = 67;
/// The port of clients.
pub(super) const CLIENT_PORT: u16 = 68;

/// The fixed part of a message, with the cookie that comes before the options (RFC 2131, 2; RFC 2132, 2).
const FIXED_BYTES: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: [u8; 2] = [1, 6];
const PAD: u8 = 0;
const MESSAGE_TYPE: u8 = 53;
const END: u8 = 255;
const ACK: u8 = 5;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A client asks.
    Client {
        /// The client, as the message names it.
        mac: MacAddr,
    },
    /// A relay passes on what a client asked, or a server answers through a relay. The client is in another network.
    Relay,
    /// A server answers.
    Server {
        /// The client and its address, if the server confirms one.
        lease: Option<(MacAddr, Ipv4Addr)>,
    },
}

/// Reads a message. `None`: it is damaged.
pub(super) fn read(payload: &[u8]) -> Option<Message> {
    let (fixed, options) = payload.split_first_chunk::<FIXED_BYTES>()?;
    if fixed[236..] != COOKIE || fixed[1..3] != ETHERNET {
        return None;
    }
    let kind = message_type(options)?;
    let mac = MacAddr(fixed[28..34].try_into().ok()?);
    let given = Ipv4Addr::from(<[u8; 4]>::try_from(&fixed[16..20]).ok()?);
    let is_relayed = fixed[24..28] != [0; 4];
    match fixed[0] {
        REQUEST | REPLY if is_relayed => Some(Message::Relay),
        REQUEST => Some(Message::Client { mac }),
        REPLY => Some(Message::Server { lease: (kind == ACK).then_some((mac, given)) }),
        _ => None,
    }
}

/// The type of the message (RFC 2132, 9.6). `None`: there is none, or an option is cut off before it.
fn message_type(mut options: &[u8]) -> Option<u8> {
    loop {
        let (kind, rest) = options.split_first()?;
        match *kind {
            PAD => options = rest,
            END => return None,
            kind => {
                let (length, rest) = rest.split_first()?;
                let (value, rest) = rest.split_at_checked((*length).into())?;
                match (kind, value) {
                    (MESSAGE_TYPE, [kind]) => return Some(*kind),
                    (MESSAGE_TYPE, _) => return None,
                    _ => options = rest,
                }
            }
        }
    }
}
