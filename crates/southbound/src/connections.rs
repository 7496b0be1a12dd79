//! The connections of one worker: each has a slot, and a switch that is up is found by its datapath id.
//!
//! In: connections, slots and datapath ids. Out: the connection of a slot, the slot of a switch, and the connections with unsent output.
//! It reads and writes no socket.

use crate::connection::Connection;
use flow::DatapathId;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// The connections, by slot. [`crate::ConnectionCaps`] bounds their number.
#[derive(Debug)]
pub struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    by_datapath: HashMap<DatapathId, usize>,
    /// The switch of the last command, and its slot. Consecutive commands are often for the same switch.
    last_commanded: Option<(DatapathId, usize)>,
    /// Connections with unsent output, in the order in which they got it. Each once.
    dirty: VecDeque<usize>,
}

impl Connections {
    pub fn new() -> Self {
        Connections {
            slots: Vec::new(),
            free: Vec::new(),
            by_datapath: HashMap::new(),
            last_commanded: None,
            dirty: VecDeque::new(),
        }
    }

    /// The slot of the next new connection.
    pub fn next_slot(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    /// Puts a new connection into [`Self::next_slot`].
    pub fn add(&mut self, connection: Box<Connection>) {
        let slot = self.next_slot();
        if self.free.pop().is_none() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(connection);
        self.mark_dirty(slot);
    }

    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.slots.get(slot)?.as_deref()
    }

    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    /// Takes a connection out while it acts. [`Self::put_back`] or [`Self::release`] follows.
    #[inline]
    pub fn take(&mut self, slot: usize) -> Option<Box<Connection>> {
        self.slots.get_mut(slot)?.take()
    }

    #[inline]
    pub fn put_back(&mut self, slot: usize, connection: Box<Connection>) {
        self.slots[slot] = Some(connection);
    }

    /// The connection of a slot was closed. A new connection can have the slot.
    pub fn release(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// The slots in use are below this number.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().flatten().map(|connection| &**connection)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().flatten().map(|connection| &mut **connection)
    }

    pub fn slot_of(&self, datapath: DatapathId) -> Option<usize> {
        self.by_datapath.get(&datapath).copied()
    }

    /// The same for a command. The next command for this switch finds the slot faster.
    #[inline]
    pub fn slot_for_command(&mut self, datapath: DatapathId) -> Option<usize> {
        if let Some((last, slot)) = self.last_commanded
            && last == datapath
        {
            return Some(slot);
        }
        let slot = *self.by_datapath.get(&datapath)?;
        self.last_commanded = Some((datapath, slot));
        Some(slot)
    }

    pub fn switch_up(&mut self, datapath: DatapathId, slot: usize) {
        self.last_commanded = None;
        self.by_datapath.insert(datapath, slot);
    }

    pub fn switch_down(&mut self, datapath: DatapathId) {
        self.last_commanded = None;
        self.by_datapath.remove(&datapath);
    }

    /// The next flush sends the output of this connection.
    #[inline]
    pub fn mark_dirty(&mut self, slot: usize) {
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push_back(slot);
        }
    }

    pub fn next_dirty(&mut self) -> Option<usize> {
        self.dirty.pop_front()
    }

    /// Takes this connection out of the list of unsent output, if it is the last there.
    pub fn take_if_last_dirty(&mut self, slot: usize) -> bool {
        self.dirty.pop_back_if(|last| *last == slot).is_some()
    }
}
