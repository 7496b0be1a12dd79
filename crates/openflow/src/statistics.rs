//! Views of the answers to statistics requests, read in place.
//!
//! ```text
//!   the body of a multipart reply in OpenFlow 1.3's layout ──> flow_entries, table_sizes, table_counts, numbers … ──> numbers and slices
//! ```
//!
//! Replies of 1.0 switches were translated to this layout. Bodies are untrusted: an iterator ends where the body is damaged. It never allocates, and
//! never interprets an answer.

/// `ofp_multipart_type` (1.3.5, 7.3.5).
pub mod kind {
    /// Flow entries, one by one.
    pub const FLOW: u16 = 1;
    /// The sum of the counters of flow entries.
    pub const AGGREGATE: u16 = 2;
    /// Counters of groups.
    pub const GROUP: u16 = 6;
    /// Groups with their buckets.
    pub const GROUP_DESC: u16 = 7;
    /// Counters of meters.
    pub const METER: u16 = 9;
    /// Meters with their bands.
    pub const METER_CONFIG: u16 = 10;
    /// The features of tables, to read or to set.
    pub const TABLE_FEATURES: u16 = 12;
    /// Ports: the last number that OpenFlow defines.
    pub const PORT_DESC: u16 = 13;
    /// A type of a vendor.
    pub const EXPERIMENTER: u16 = 0xffff;
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |found| u16::from_be_bytes(*found))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |found| u32::from_be_bytes(*found))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|found| u64::from_be_bytes(*found))
}

/// Entries that begin with their length in two bytes, and have at least the minimum length. The iterator ends at the first entry that does not fit.
fn with_length(mut body: &[u8], length_min: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_be_bytes(*body.first_chunk()?));
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= length_min)?;
        body = rest;
        Some(entry)
    })
}

/// A flow entry of an answer (`ofp_flow_stats`, 1.3.5, 7.3.5.2).
#[derive(Clone, Copy, Debug)]
pub struct FlowEntryView<'a> {
    /// The whole entry; it has at least its fixed part.
    pub bytes: &'a [u8],
}

/// The fixed part of a flow entry, with the header of its match (1.3.5, 7.2.3.1).
const FLOW_ENTRY_LEN_MIN: usize = 56;
const MATCH_AT: usize = 48;
const MATCH_HEADER_LEN: usize = 4;

impl<'a> FlowEntryView<'a> {
    /// Its table.
    pub fn table_id(&self) -> u8 {
        self.bytes.get(2).copied().unwrap_or_default()
    }

    /// Its priority.
    pub fn priority(&self) -> u16 {
        short(self.bytes, 12)
    }

    /// Its idle time-out in seconds; 0: none.
    pub fn idle_timeout_s(&self) -> u16 {
        short(self.bytes, 14)
    }

    /// Its hard time-out in seconds; 0: none.
    pub fn hard_timeout_s(&self) -> u16 {
        short(self.bytes, 16)
    }

    /// `ofp_flow_mod_flags`.
    pub fn flags(&self) -> u16 {
        short(self.bytes, 18)
    }

    /// Its cookie.
    pub fn cookie(&self) -> u64 {
        long(self.bytes, 24).unwrap_or_default()
    }

    /// The fields of its match as OXM; `None`: the match is longer than the entry.
    pub fn matching(&self) -> Option<&'a [u8]> {
        let length = usize::from(short(self.bytes, MATCH_AT + 2));
        self.bytes.get(MATCH_AT + MATCH_HEADER_LEN..MATCH_AT + length)
    }

    /// Its instructions. They follow the match, which is padded to a multiple of eight bytes.
    pub fn instructions(&self) -> &'a [u8] {
        let length = usize::from(short(self.bytes, MATCH_AT + 2));
        self.bytes.get(MATCH_AT + length.next_multiple_of(8)..).unwrap_or_default()
    }
}

/// The flow entries of an answer.
pub fn flow_entries(body: &[u8]) -> impl Iterator<Item = FlowEntryView<'_>> {
    with_length(body, FLOW_ENTRY_LEN_MIN).map(|bytes| FlowEntryView { bytes })
}

/// How many flow entries an aggregate answer counts (1.3.5, 7.3.5.3).
pub fn aggregate_entries(body: &[u8]) -> u32 {
    word(body, 16)
}

/// A table, and a number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntries {
    /// The table id.
    pub table_id: u8,
    /// The number of entries.
    pub entries: u32,
}

/// How many entries each table can hold, by the tables' features (1.3.5, 7.3.5.5).
pub fn table_sizes(body: &[u8]) -> impl Iterator<Item = TableEntries> {
    const FEATURES_LEN_MIN: usize = 64;
    let tables = with_length(body, FEATURES_LEN_MIN);
    tables.filter_map(|table| Some(TableEntries { table_id: *table.get(2)?, entries: word(table, 60) }))
}

/// How many entries each table has, by the tables' statistics (1.3.5, 7.3.5.4).
pub fn table_counts(body: &[u8]) -> impl Iterator<Item = TableEntries> {
    const TABLE_STATS_LEN: usize = 24;
    let tables = body.chunks_exact(TABLE_STATS_LEN);
    tables.filter_map(|table| Some(TableEntries { table_id: *table.first()?, entries: word(table, 4) }))
}

/// The ids of the groups or meters of an answer: both have the id after the length of the entry (`ofp_group_desc`, 1.3.5, 7.3.5.8, and
/// `ofp_meter_config`, 7.3.5.11). The last item is `None` if the rest is not an entry.
pub fn numbers(mut body: &[u8]) -> impl Iterator<Item = Option<u32>> {
    const LEN_MIN: usize = 8;
    std::iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        let entry = with_length(body, LEN_MIN).next();
        body = entry.and_then(|entry| body.get(entry.len()..)).unwrap_or_default();
        Some(entry.map(|entry| word(entry, 4)))
    })
}

/// The entries of groups, or of meters with their bands, each with its number: `ofp_group_stats` (1.3.5, 7.3.5.6), and those of [`numbers`].
pub fn numbered(body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    const LEN_MIN: usize = 8;
    with_length(body, LEN_MIN).map(|entry| (word(entry, 4), entry))
}

/// The counters of meters, each with its number (`ofp_meter_stats`, 1.3.5, 7.3.5.12). Here the number is before the length.
pub fn meter_counters(mut body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    const LEN_MIN: usize = 40;
    std::iter::from_fn(move || {
        let length = usize::from(short(body, 4));
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= LEN_MIN)?;
        body = rest;
        Some((word(entry, 0), entry))
    })
}

/// The meter features of a switch (`ofp_meter_features`, 1.3.5, 7.3.5.14). If an answer is too short for a number, the number is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterFeatures {
    /// The highest number of a meter; 0: it has no meters.
    pub max_meter: u32,
    /// The types of bands, as bits.
    pub band_types: u32,
    /// The supported `ofp_meter_flags`.
    pub capabilities: u32,
    /// The maximum number of bands of a meter.
    pub max_bands: u8,
}

impl MeterFeatures {
    /// Reads an answer.
    pub fn read(body: &[u8]) -> MeterFeatures {
        MeterFeatures {
            max_meter: word(body, 0),
            band_types: word(body, 4),
            capabilities: word(body, 8),
            max_bands: body.get(12).copied().unwrap_or_default(),
        }
    }
}

/// Packets of the first band of a meter (`ofp_meter_stats`, 1.3.5, 7.3.5.12), if the switch counts them. All bits are set if it does not.
pub fn first_band_packets(body: &[u8]) -> Option<u64> {
    long(body, 40).filter(|packets| *packets != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_answers_end_where_the_damage_is() {
        let mut features = vec![0; 64];
        features[1] = 64;
        features[2] = 7;
        features[63] = 9;
        let whole = [TableEntries { table_id: 7, entries: 9 }];
        assert_eq!(table_sizes(&features).collect::<Vec<_>>(), whole);
        assert_eq!(table_sizes(&features[..63]).count(), 0);
        assert_eq!(table_sizes(&[0, 0, 0]).count(), 0);
        assert_eq!(table_counts(&[0; 47]).count(), 1);
    }

    #[test]
    fn groups_and_meters_have_numbers_up_to_the_damage() {
        let entry = [0, 8, 0, 0, 0, 0, 0, 5];
        let check = |body: &[u8], expected: &[Option<u32>]| {
            assert_eq!(numbers(body).collect::<Vec<_>>(), expected);
        };
        check(&[], &[]);
        check(&[entry, entry].concat(), &[Some(5), Some(5)]);
        check(&[&entry[..], &[0, 8, 0]].concat(), &[Some(5), None]);
        check(&[0; 8], &[None]);
    }

    #[test]
    fn entries_of_groups_and_meters_have_their_numbers() {
        let (mut group, mut meter) = (vec![0; 40], vec![0; 48]);
        (group[1], group[7]) = (40, 5);
        (meter[3], meter[5]) = (6, 48);
        let two = [&group[..], &group[..39]].concat();
        assert_eq!(numbered(&two).collect::<Vec<_>>(), [(5, &group[..])]);
        let three = [&meter[..], &meter[..], &meter[..47]].concat();
        assert_eq!(meter_counters(&three).collect::<Vec<_>>(), [(6, &meter[..]), (6, &meter[..])]);
        meter[5] = 39;
        assert_eq!(meter_counters(&meter).count(), 0);
    }

    #[test]
    fn a_flow_entry_is_read_in_place() {
        let mut entry = vec![0; 64];
        (entry[1], entry[2], entry[13], entry[15], entry[17], entry[19]) = (64, 3, 9, 10, 11, 1);
        (entry[31], entry[51]) = (0x42, 12);
        entry[52..60].copy_from_slice(b"oxmfield");
        let found: Vec<_> = flow_entries(&entry).collect();
        let [it] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((it.table_id(), it.priority(), it.idle_timeout_s(), it.hard_timeout_s()), (3, 9, 10, 11));
        assert_eq!((it.flags(), it.cookie(), it.matching()), (1, 0x42, Some(&b"oxmfield"[..])));
        entry[51] = 17;
        assert_eq!(flow_entries(&entry).next().map(|it| it.matching()), Some(None));
        entry[1] = 65;
        assert_eq!(flow_entries(&entry).count(), 0);
        assert_eq!(flow_entries(&entry[..55]).count(), 0);
    }
}
