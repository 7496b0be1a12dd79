//! The syntax of ovs-ofctl: matches, actions and instructions printed as Open vSwitch 3.1 prints them, and read in all the
//! forms that it reads.
//!
//! ```text
//!   "tcp,in_port=1,nw_src=10.0.0.0/8,tp_dst=22"  <─>  Match
//!   "dec_ttl,set_field:4101->vlan_vid,output:2"  <─>  Vec<Action>
//!   "meter:5,output:2,goto_table:3"              <─>  Vec<Instruction>
//! ```
//!
//! Read are the names of OpenFlow 1.0 and 1.3 (`dl_src`, `eth_src`), the shorthands (`ip`, `arp`, `tcp6` …), and commas or blanks
//! between words. Actions that only 1.0 has keep their 1.0 names (`mod_dl_src`); Nicira's are understood where they are
//! simple, and otherwise printed as `experimenter(0x00002320,hex)`, which is read back.
//!
//! Text is what people want to see and so says less than bytes and JSON do: a mask of all ones is no mask, a mask of zeros
//! no field, fields stand in ovs-ofctl's order, an output's length is said for the controller only, and empty apply-actions
//! are nothing. Never resolves a port's name: a port is a number or a reserved one.

mod action_print;
mod action_text;
mod flags;
mod instruction_text;
mod match_print;
mod match_text;
mod names;
mod nicira;
mod words;

#[cfg(test)]
mod round_trips;

pub use action_print::actions_to_string;
pub use action_text::parse_actions;
pub use instruction_text::{instructions_to_string, parse_instructions};
pub use match_print::match_to_string;
pub use match_text::parse_match;

use std::fmt;

/// Text that was refused: which word, where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadText {
    /// Bytes from the start of the text to the word.
    pub offset: usize,
    /// The word that is wrong, as it stands there.
    pub word: String,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

impl BadText {
    fn new(offset: usize, word: &str, message: impl Into<String>) -> Self {
        BadText { offset, word: word.to_owned(), message: message.into() }
    }

    /// The same error seen from a text that begins `bytes` before the one that was read.
    pub fn shifted(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' at offset {}: {}", self.word, self.offset, self.message)
    }
}

impl std::error::Error for BadText {}
