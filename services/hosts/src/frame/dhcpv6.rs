//! Messages of DHCPv6 (RFC 8415), as far as they tell of hosts.
//!
//! In: the payload of a UDP packet from a server to a client. Out: the first address that the server has confirmed. It reads
//! no other option.

use std::net::Ipv6Addr;

/// The port of servers and relays.
pub(super) const SERVER_PORT: u16 = 547;
/// The port of clients.
pub(super) const CLIENT_PORT: u16 = 546;

const REPLY: u8 = 7;
/// The option with the addresses of a client, and what comes before the options in it: its number and two times.
const IA_NA: u16 = 3;
const IA_NA_BYTES: usize = 12;
/// The option with one address.
const IA_ADDRESS: u16 = 5;
/// The type and the number of the transaction.
const HEAD_BYTES: usize = 4;

/// The address in a message of a server. `None`: the message is damaged. `Some(None)`: it confirms no address.
pub(super) fn confirmed(payload: &[u8]) -> Option<Option<Ipv6Addr>> {
    let (head, options) = payload.split_at_checked(HEAD_BYTES)?;
    if head[0] != REPLY {
        return Some(None);
    }
    let Some(addresses) = find(options, IA_NA)? else { return Some(None) };
    let Some(address) = find(addresses.get(IA_NA_BYTES..)?, IA_ADDRESS)? else { return Some(None) };
    let (bytes, times) = address.split_first_chunk::<16>()?;
    // The preferred and the valid lifetime. An address whose valid lifetime is over is taken away.
    let is_valid = times.get(4..8)? != [0; 4];
    Some(is_valid.then(|| Ipv6Addr::from(*bytes)))
}

/// The value of the first option of this type. `None`: an option is cut off before it.
fn find(mut options: &[u8], wanted: u16) -> Option<Option<&[u8]>> {
    while !options.is_empty() {
        let ([t0, t1, l0, l1], rest) = options.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u16::from_be_bytes([*l0, *l1]).into())?;
        if u16::from_be_bytes([*t0, *t1]) == wanted {
            return Some(Some(value));
        }
        options = rest;
    }
    Some(None)
}
