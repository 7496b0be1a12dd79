//! What the engine sends to switches, and what it tells the rest of the service.
//!
//! In: nothing. Out: types. The shell turns a [`Send`] into a command with a receipt, and returns its ticket.

use crate::key::EntryKey;
use crate::sets::Sets;
use crate::wanted::Scratch;
use crate::window::Window;
use flow::DatapathId;

/// A command for a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send<'a> {
    /// Add a rule in place of one with the same key, or remove exactly that rule.
    Rule {
        /// All but the two that follow.
        head: RuleHead,
        /// Its match.
        matching: &'a [u8],
        /// Its instructions; none for a removal.
        instructions: &'a [u8],
    },
    /// Remove exactly this rule of another controller.
    Foreign {
        /// Its table.
        table_id: u8,
        /// Its priority.
        priority: u16,
        /// Its whole cookie.
        cookie: u64,
        /// Its match.
        matching: &'a [u8],
    },
    /// Add (0), modify (1) or remove (2) a group.
    Group {
        /// `ofp_group_mod_command`.
        command: u16,
        /// `ofp_group_type`.
        group_type: u8,
        /// Its id.
        group_id: u32,
        /// Its buckets.
        buckets: &'a [u8],
    },
    /// Add (0), modify (1) or remove (2) a meter.
    Meter {
        /// `ofp_meter_mod_command`.
        command: u16,
        /// `ofp_meter_flags`.
        flags: u16,
        /// Its id.
        meter_id: u32,
        /// Its bands.
        bands: &'a [u8],
    },
    /// Carry out all of these changes of rules, or none. One receipt is for all of them.
    Bundle(&'a [BundledRule]),
    /// Ask for statistics of this type. The answer comes with the ticket.
    Read(u16),
}

/// A change of a rule, without the match and the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleHead {
    /// Whether the rule is removed.
    pub is_removed: bool,
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Seconds without a packet until it ends.
    pub idle_timeout_s: u16,
    /// Seconds until it ends.
    pub hard_timeout_s: u16,
    /// The service's part of the cookie.
    pub cookie: u64,
}

/// A change of a rule in a bundle, as in [`Send::Rule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledRule {
    /// All but the two that follow.
    pub head: RuleHead,
    /// Its match.
    pub matching: Box<[u8]>,
    /// Its instructions.
    pub instructions: Box<[u8]>,
}

impl BundledRule {
    /// The change of a rule; `None`: it is another command.
    pub fn of(send: &Send<'_>) -> Option<BundledRule> {
        let Send::Rule { head, matching, instructions } = *send else { return None };
        Some(BundledRule { head, matching: matching.into(), instructions: instructions.into() })
    }

    /// The same as a command of its own.
    pub fn alone(&self) -> Send<'_> {
        Send::Rule { head: self.head, matching: &self.matching, instructions: &self.instructions }
    }
}

/// Sends a command, and returns its ticket. Tickets grow.
pub type Sender<'s> = dyn FnMut(DatapathId, &Send<'_>) -> u64 + 's;

/// What the engine tells the rest of the service.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether anybody follows the tables. If not, no changes are noted.
    pub is_followed: bool,
    /// Entries that have changed.
    pub changed: Vec<(DatapathId, EntryKey)>,
    /// Lines for the log.
    pub lines: Vec<String>,
}

/// The most lines that wait for the log. More are left out: the log is bounded too.
const LINES_MAX: usize = 32;

impl Notes {
    /// An entry has changed.
    pub fn changed(&mut self, switch: DatapathId, key: EntryKey) {
        if self.is_followed {
            self.changed.push((switch, key));
        }
    }

    /// Adds a line for the log.
    pub fn line(&mut self, line: impl FnOnce() -> String) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line());
        }
    }
}

/// What every step of the engine needs beside the switch itself.
pub struct Context<'c, 's> {
    /// The time.
    pub now_ms: u64,
    /// The sets.
    pub sets: &'c mut Sets,
    /// Buffers.
    pub scratch: &'c mut Scratch,
    /// What is told.
    pub notes: &'c mut Notes,
    /// The commands under way.
    pub window: &'c mut Window,
    /// The way to the switches.
    pub send: &'c mut Sender<'s>,
}
