//! A bundle: flow mods for one switch, which it carries out all together or not at all.
//!
//! In: the body of a command, which is a sequence of flow mods as frames of their own. Out: these frames. It never decides whether a
//! flow mod is allowed.

use crate::command::kind;
use crate::frame::{Frame, Malformed};
use crate::header::HEADER_LEN;

/// The most flow mods in a bundle. A worker decides on all of them in one turn, and a session keeps a bundle until the switch has
/// answered.
pub const BUNDLE_MAX: usize = 512;

/// The flow mods of a bundle.
///
/// They are for the switch of the bundle. The bundle has one receipt, under its own ticket. The tickets of its flow mods, and their
/// requests for receipts, have no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundle<'a> {
    /// Whole frames of flow mods, at least one and at most [`BUNDLE_MAX`].
    frames: &'a [u8],
}

impl<'a> Bundle<'a> {
    /// Reads the frame of a bundle. Its flow mods are not read, only their headers.
    pub(crate) fn read(bundle: &Frame<'a>) -> Result<Self, Malformed> {
        let (mut rest, mut count) = (bundle.body, 0);
        while !rest.is_empty() {
            let offset = HEADER_LEN + bundle.body.len() - rest.len();
            let malformed = |reason| Malformed { offset, reason };
            let (frame, behind) =
                Frame::split(rest).map_err(|inner| Malformed { offset: offset + inner.offset, ..inner })?;
            if frame.header.kind.get() != kind::FLOW_MOD {
                return Err(malformed("a bundle holds flow mods only"));
            }
            if frame.datapath() != bundle.datapath() {
                return Err(malformed("a flow mod in a bundle is for another switch"));
            }
            (rest, count) = (behind, count + 1);
            if count > BUNDLE_MAX {
                return Err(malformed("a bundle holds at most 512 flow mods"));
            }
        }
        if count == 0 {
            return Err(Malformed { offset: HEADER_LEN, reason: "a bundle holds at least one flow mod" });
        }
        Ok(Bundle { frames: bundle.body })
    }

    /// Its flow mods, in order.
    pub fn flow_mods(&self) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        let mut rest = self.frames;
        std::iter::from_fn(move || {
            let (frame, behind) = Frame::split(rest).ok()?;
            rest = behind;
            Some(frame)
        })
    }

    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        self.frames
    }
}
