//! The request to follow: which kinds of objects the stream brings.
//!
//! In: kinds, or the payload of a request. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::Kind;

/// The payload of a request to follow. No bytes mean all kinds of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// The kinds of objects.
    pub kinds: Vec<Kind>,
}

impl Follow {
    /// The payload.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A list of texts, which JSON can always represent.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The kinds that a caller of this service wants to follow.
    ///
    /// # Errors
    /// A sentence for the caller: the payload is no request, or names a kind of another service.
    pub fn kinds_of(payload: &[u8], service: &str) -> Result<Vec<Kind>, String> {
        if payload.is_empty() {
            return Ok(Kind::ALL.iter().copied().filter(|kind| kind.service() == service).collect());
        }
        let Follow { kinds } = serde_json::from_slice(payload).map_err(|why| {
            format!("the request to follow is wrong: {why}: send no bytes, or {{\"kinds\":[…]}}")
        })?;
        if let Some(other) = kinds.iter().find(|kind| kind.service() != service) {
            return Err(format!("kinds: the service {service} has no {other}: follow {}", other.service()));
        }
        match kinds.is_empty() {
            true => Err("kinds: the list is empty: send no bytes for all kinds".to_owned()),
            false => Ok(kinds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_kinds_of_this_service() {
        let check = |payload: &[u8], expected: Result<&[Kind], &str>| {
            let read = Follow::kinds_of(payload, "discovery");
            match expected {
                Ok(kinds) => assert_eq!(read.as_deref(), Ok(kinds)),
                Err(part) => assert!(read.as_ref().is_err_and(|why| why.contains(part)), "{read:?}"),
            }
        };
        check(b"{", Err("the request to follow is wrong"));
        check(br#"{"kinds":["router"]}"#, Err("unknown variant `router`"));
        check(br#"{"kinds":[]}"#, Err("the list is empty"));
        check(br#"{"kinds":["link","host"]}"#, Err("the service discovery has no host: follow hosts"));
        check(b"", Ok(&[Kind::Switch, Kind::Port, Kind::Link]));
        check(&Follow { kinds: vec![Kind::Link] }.to_bytes(), Ok(&[Kind::Link]));
    }
}
