//! The syntax of ovs-ofctl: matches, actions and instructions printed as Open vSwitch 3.1 prints them, and read in all
//! the forms that it reads.
//!
//! ```text
//!   "tcp,in_port=1,nw_src=10.0.0.0/8,tp_dst=22"  <─>  Match
//!   "dec_ttl,set_field:4101->vlan_vid,output:2"  <─>  Vec<Action>
//!   "meter:5,output:2,goto_table:3"              <─>  Vec<Instruction>
//! ```
//!
//! Accepted are the names of OpenFlow 1.0 and 1.3 (`dl_src`, `eth_src`), the shorthands (`ip`, `arp`, `tcp6` …), and
//! commas or blanks between words. Actions that only 1.0 has keep their 1.0 names (`mod_dl_src`). Simple Nicira actions
//! have their own text; others are printed as `experimenter(0x00002320,hex)`, which can be read back.
//!
//! Text is for people and has less information than bytes and JSON. A mask of all ones is left out, and so is a field
//! with a mask of zeros. Fields are in ovs-ofctl's order. The length of an output is printed only for the controller,
//! and empty apply-actions are not printed. Never resolves port names: a port is a number or a reserved name.

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

/// The error for text that was refused: the word, its place, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadText {
    /// Bytes from the start of the text to the word.
    pub offset: usize,
    /// The wrong word.
    pub word: String,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

impl BadText {
    fn new(offset: usize, word: &str, message: impl Into<String>) -> Self {
        BadText { offset, word: word.to_owned(), message: message.into() }
    }

    /// The same error with an offset from the start of a text that begins `bytes` earlier.
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
