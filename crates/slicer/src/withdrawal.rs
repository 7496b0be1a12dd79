//! How far a virtual switch is with what its slice loses.
//!
//! In: values. Out: the same. The file `withdrawing` says what is sent.

use crate::output::Command;
use flow::PortNo;
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// What is to go at one switch.
#[derive(Clone, Debug)]
pub(crate) enum Going {
    /// Everything.
    All,
    /// Ports, by their numbers in the physical switch, and hosts.
    Parts { ports: BTreeSet<PortNo>, hosts: BTreeSet<Ipv4Addr> },
}

/// How far it is.
#[derive(Clone, Debug)]
pub(crate) struct Withdrawing {
    pub(crate) going: Going,
    /// All that was ordered before has been carried out.
    pub(crate) has_room: bool,
    pub(crate) has_begun: bool,
    /// Rules that are to be deleted or laid again.
    pub(crate) rules: VecDeque<u64>,
    /// What comes after them.
    pub(crate) rest: VecDeque<Command>,
    /// Answers that are on their way.
    pub(crate) awaited: usize,
    /// There was no room for a command, so it is ordered again: not before this time. The answers to other commands come first.
    pub(crate) again_ms: Option<u64>,
    /// How it ended: why something stays, if it does.
    pub(crate) end: Option<Result<(), String>>,
}

impl Withdrawing {
    /// Nothing was sent yet.
    pub(crate) fn of(going: Going) -> Withdrawing {
        let (rules, rest) = (VecDeque::new(), VecDeque::new());
        Withdrawing {
            going,
            has_room: false,
            has_begun: false,
            rules,
            rest,
            awaited: 0,
            again_ms: None,
            end: None,
        }
    }
}
