//! A group's buckets, in place (`ofp_bucket`, 1.3.5, 7.3.4.2).
//!
//! Never checks the actions inside; [`super::check_actions`] does.

use super::{ActionFault, bad, u16_at, u32_at};
use crate::error::BadInput;
use crate::port::PortNo;

/// The length of the part before a bucket's actions.
const FIXED_LEN: usize = 16;

/// One bucket in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBucket<'a> {
    /// Its weight in a select group.
    pub weight: u16,
    /// The port whose liveness decides, in a fast-failover group; ANY: none.
    pub watch_port: PortNo,
    /// The group whose liveness decides; 0xffffffff: none.
    pub watch_group: u32,
    /// Its action set, as canonical bytes.
    pub actions: &'a [u8],
    /// Bytes from the start of the list to the actions.
    pub actions_at: usize,
}

/// Iterates over the buckets of a list. Ends after the first that exceeds the input.
#[derive(Clone, Debug)]
pub struct RawBuckets<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Walks a list of buckets in place.
///
/// ```
/// use flow::canonical::buckets_raw;
/// let empty = [0, 16, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// assert_eq!(buckets_raw(&empty).next().unwrap().unwrap().weight, 7);
/// assert!(buckets_raw(&empty[..15]).next().unwrap().is_err());
/// ```
pub fn buckets_raw(bytes: &[u8]) -> RawBuckets<'_> {
    RawBuckets { rest: bytes, offset: 0 }
}

impl<'a> Iterator for RawBuckets<'a> {
    type Item = Result<RawBucket<'a>, BadInput>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let length = usize::from(u16_at(self.rest, 0));
        if length < FIXED_LEN || length % 8 != 0 || length > self.rest.len() {
            let left = std::mem::take(&mut self.rest).len();
            let message = format!("length {length} is not a multiple of 8 from 16 to the {left} bytes left");
            return Some(Err(bad(ActionFault::BadLen, self.offset, "len", message)));
        }
        let (bytes, rest) = self.rest.split_at(length);
        let bucket = RawBucket {
            weight: u16_at(bytes, 2),
            watch_port: PortNo(u32_at(bytes, 4)),
            watch_group: u32_at(bytes, 8),
            actions: bytes.get(FIXED_LEN..).unwrap_or_default(),
            actions_at: self.offset + FIXED_LEN,
        };
        self.rest = rest;
        self.offset += length;
        Some(Ok(bucket))
    }
}
