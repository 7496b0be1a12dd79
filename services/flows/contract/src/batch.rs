//! Writes a batch: changes of sets, in the compact form of the frequent way.
//!
//! ```text
//!   batch:  'F' form=1, then changes
//!   change: op, flags, name_len, name, version u64, [items_len u32, items]      op 1 put, 2 remove
//!   item:   kind, …                                                     kind 1 rule, 2 path, 3 group, 4 meter
//! ```
//!
//! In: names, versions, items. Out: bytes for a query. A batch that would be too long stays as it was, and says so.

use crate::BATCH_BYTES_MAX;
use crate::item::{Group, Item, Meter, Path, Rule};

/// The first bytes of every batch.
pub(crate) const HEAD: [u8; 2] = [b'F', 1];

pub(crate) const PUT: u8 = 1;
pub(crate) const REMOVE: u8 = 2;

pub(crate) const IN_ORDER: u8 = 1;
pub(crate) const PERMANENT: u8 = 2;

pub(crate) const RULE: u8 = 1;
pub(crate) const PATH: u8 = 2;
pub(crate) const GROUP: u8 = 3;
pub(crate) const METER: u8 = 4;

/// How a set is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// Add rules from the far end to the entry: no packet enters before the switches behind have confirmed their rules. It costs a
    /// round trip more. Without it, all switches get their rules at once.
    pub in_order: bool,
    /// Keep the set in the store, so that it is wanted again after a restart. For sets that nobody would put again.
    pub permanent: bool,
}

impl SetOptions {
    fn bits(self) -> u8 {
        u8::from(self.in_order) * IN_ORDER + u8::from(self.permanent) * PERMANENT
    }

    pub(crate) fn from_bits(bits: u8) -> Result<SetOptions, String> {
        match bits & !(IN_ORDER | PERMANENT) {
            0 => Ok(SetOptions { in_order: bits & IN_ORDER != 0, permanent: bits & PERMANENT != 0 }),
            unknown => Err(format!("the options of a set have the unknown bits {unknown:#04x}")),
        }
    }
}

/// Changes of sets for one query. The service takes or refuses each change by itself.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    changes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch { bytes: HEAD.to_vec(), changes: 0 }
    }

    /// How many changes it has.
    pub fn len(&self) -> usize {
        self.changes
    }

    /// Whether it has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// The payload of the query.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes it empty, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD.len());
        self.changes = 0;
    }

    /// Puts a set, in place of an earlier version. `false`: it has no room here. If the batch was empty, the set is too long for any batch.
    pub fn put(
        &mut self,
        name: &str,
        version: u64,
        options: SetOptions,
        write: impl FnOnce(&mut Items<'_>),
    ) -> bool {
        let start = self.bytes.len();
        let has_name = self.change(PUT, options.bits(), name, version);
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut items = Items { bytes: &mut self.bytes, is_sound: has_name };
        write(&mut items);
        let is_sound = items.is_sound;
        let length = self.bytes.len() - length_at - 4;
        // A batch is far shorter than 4 GiB.
        self.bytes[length_at..length_at + 4].copy_from_slice(&(length as u32).to_le_bytes());
        self.keep(start, is_sound)
    }

    /// Removes a set of at most this version, with its rules in the switches. `false`: it has no room here.
    pub fn remove(&mut self, name: &str, version: u64) -> bool {
        let start = self.bytes.len();
        let has_name = self.change(REMOVE, 0, name, version);
        self.keep(start, has_name)
    }

    fn change(&mut self, op: u8, flags: u8, name: &str, version: u64) -> bool {
        let Ok(name_len) = u8::try_from(name.len()) else { return false };
        self.bytes.extend_from_slice(&[op, flags, name_len]);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(&version.to_le_bytes());
        true
    }

    fn keep(&mut self, start: usize, is_sound: bool) -> bool {
        let fits = is_sound && self.bytes.len() <= BATCH_BYTES_MAX;
        match fits {
            true => self.changes += 1,
            false => self.bytes.truncate(start),
        }
        fits
    }
}

/// The items of a set that is being written.
#[derive(Debug)]
pub struct Items<'b> {
    bytes: &'b mut Vec<u8>,
    /// Whether every length had room in its field.
    is_sound: bool,
}

impl<'b> Items<'b> {
    /// Writes items to this buffer, without a batch around them.
    pub fn new(bytes: &'b mut Vec<u8>) -> Items<'b> {
        Items { bytes, is_sound: true }
    }

    /// Adds an item.
    pub fn item(&mut self, item: &Item<'_>) -> &mut Self {
        match item {
            Item::Rule(rule) => self.rule(rule),
            Item::Path(path) => self.path(path),
            Item::Group(group) => self.group(group),
            Item::Meter(meter) => self.meter(meter),
        }
    }

    /// Adds a rule.
    pub fn rule(&mut self, it: &Rule<'_>) -> &mut Self {
        self.bytes.push(RULE);
        self.bytes.extend_from_slice(&it.switch.0.to_le_bytes());
        self.bytes.extend_from_slice(&[it.table_id, it.stage]);
        for number in [it.priority, it.idle_timeout_s, it.hard_timeout_s] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.string(it.matching).string(it.instructions)
    }

    /// Adds a path.
    pub fn path(&mut self, it: &Path<'_>) -> &mut Self {
        let Ok(hops) = u8::try_from(it.hops.len()) else {
            self.is_sound = false;
            return self;
        };
        self.bytes.extend_from_slice(&[PATH, it.table_id, hops]);
        self.bytes.extend_from_slice(&it.priority.to_le_bytes());
        self.string(it.selector).string(it.treatment);
        self.bytes.extend_from_slice(it.hops.0);
        self
    }

    /// Adds a group.
    pub fn group(&mut self, it: &Group<'_>) -> &mut Self {
        self.bytes.push(GROUP);
        self.bytes.extend_from_slice(&it.switch.0.to_le_bytes());
        self.bytes.extend_from_slice(&it.group_id.to_le_bytes());
        self.bytes.push(it.group_type);
        self.string(it.buckets)
    }

    /// Adds a meter.
    pub fn meter(&mut self, it: &Meter<'_>) -> &mut Self {
        self.bytes.push(METER);
        self.bytes.extend_from_slice(&it.switch.0.to_le_bytes());
        self.bytes.extend_from_slice(&it.meter_id.to_le_bytes());
        self.bytes.extend_from_slice(&it.flags.to_le_bytes());
        self.string(it.bands)
    }

    fn string(&mut self, bytes: &[u8]) -> &mut Self {
        match u16::try_from(bytes.len()) {
            Ok(length) => {
                self.bytes.extend_from_slice(&length.to_le_bytes());
                self.bytes.extend_from_slice(bytes);
            }
            Err(_) => self.is_sound = false,
        }
        self
    }
}
