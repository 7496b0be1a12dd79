//! Questions and answers of services as JSON.
//!
//! In: a value that serde can represent, or the payload of a call. Out: the other of the two. It bounds what it reads, and does
//! not know what a question means.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The payload of a call. A value with maps whose keys are no texts gives an empty payload, which no service accepts.
pub fn to_json(question: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(question).unwrap_or_default()
}

/// Reads the payload of a call.
///
/// # Errors
/// A sentence that names the wrong field, or the bound. The caller has made a mistake.
pub fn from_json<T: DeserializeOwned>(payload: &[u8], bytes_max: usize) -> Result<T, String> {
    if payload.len() > bytes_max {
        return Err(format!("the question has {} bytes, and at most {bytes_max} are read", payload.len()));
    }
    serde_json::from_slice(payload).map_err(|why| format!("the question is wrong: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_bounded_and_its_fault_is_named() {
        let read = |payload: &[u8]| from_json::<Vec<u8>>(payload, 8);
        assert_eq!(read(b"[1,2]"), Ok(vec![1, 2]));
        assert_eq!(read(&to_json(&[1, 2])), Ok(vec![1, 2]));
        assert_eq!(read(b"[1,2,3,4]"), Err("the question has 9 bytes, and at most 8 are read".to_owned()));
        assert!(read(b"[1,").unwrap_err().starts_with("the question is wrong: "));
    }
}
