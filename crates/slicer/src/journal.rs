//! The journal of a virtual switch: what its tenant has made, as the bytes of a file.
//!
//! ```text
//!   "burnet slice 1\n"                                                  the first line; the number is the version of this form
//!   length u32 · all bits of the length inverted u32 · CRC-32 u32 · records      a frame: what changed since the frame before
//! ```
//!
//! All numbers are little-endian. A later record about the same rule, group, meter or port replaces an earlier one. A file that ends within
//! its last frame is one that was being written: the frames before it count. Any other fault is damage.
//!
//! In: records, or bytes. Out: the other form. It knows no switch, and opens no file.

use flow::canonical::{read_match, write_match};
use flow::{Instruction, Match};
use openflow::message::{FlowModFields, GroupMod, MeterMod};
use openflow::{Body, Message, Version};

/// The first line.
const HEADING: &[u8] = b"burnet slice 1\n";
/// The bytes before the records of a frame.
const FRAME_HEAD_LEN: usize = 12;

const RULE: u8 = 1;
const NO_RULE: u8 = 2;
const GROUP: u8 = 3;
const NO_GROUP: u8 = 4;
const METER: u8 = 5;
const NO_METER: u8 = 6;
const PORT: u8 = 7;
const GENERATION: u8 = 8;
const PORTS: u8 = 9;

/// The numbers of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptNumbers {
    pub(crate) number: u64,
    pub(crate) at_ms: u64,
    pub(crate) cookie: u64,
    pub(crate) gone: (u64, u64),
    pub(crate) priority: u16,
    pub(crate) idle_timeout_s: u16,
    pub(crate) hard_timeout_s: u16,
    pub(crate) flags: u16,
}

/// What is kept of a rule. Its pieces follow from it and from the ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptRule {
    pub(crate) numbers: KeptNumbers,
    pub(crate) by: Version,
    pub(crate) matching: Match,
    pub(crate) instructions: Vec<Instruction>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Rule(Box<KeptRule>),
    NoRule(u64),
    /// A group with its number in the physical switch.
    Group(u32, GroupMod),
    NoGroup(u32),
    /// A meter with its number in the physical switch.
    Meter(u32, MeterMod),
    NoMeter(u32),
    /// The configuration of a port, by the number that the tenant sees.
    Port(u32, u32),
    /// The latest generation id of a master.
    Generation(u64),
    /// The checksum of the ports and hosts of the slice, on which pieces of rules depend.
    Ports(u32),
}

/// Writes one frame.
pub(crate) struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Whether it is the first of a file.
    is_first: bool,
}

impl<'a> FrameWriter<'a> {
    /// A frame behind what is in `out`. At the beginning of a file, the first line comes before it.
    pub(crate) fn new(out: &'a mut Vec<u8>, is_first: bool) -> FrameWriter<'a> {
        if is_first {
            out.extend_from_slice(HEADING);
        }
        let start = out.len();
        out.resize(start + FRAME_HEAD_LEN, 0);
        FrameWriter { out, start, is_first }
    }

    /// A rule. The parts come by themselves, so that nothing is copied for the record.
    pub(crate) fn rule(
        &mut self,
        it: &KeptNumbers,
        by: Version,
        matching: &Match,
        instructions: &[Instruction],
    ) {
        let start = self.out.len();
        self.out.push(RULE);
        for number in [it.number, it.at_ms, it.cookie, it.gone.0, it.gone.1] {
            self.out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [it.priority, it.idle_timeout_s, it.hard_timeout_s, it.flags] {
            self.out.extend_from_slice(&number.to_le_bytes());
        }
        self.out.push(by.0);
        let flow_mod = FlowModFields::default().with(Match::any(), instructions.to_vec());
        let is_whole = self.with_length(|out| {
            write_match(matching, out);
            true
        }) && self.message(by, Body::FlowMod(flow_mod));
        self.keep_if(is_whole, start);
    }

    pub(crate) fn no_rule(&mut self, number: u64) {
        self.out.push(NO_RULE);
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn group(&mut self, physical: u32, it: GroupMod) {
        self.numbered(GROUP, physical, Body::GroupMod(it));
    }

    pub(crate) fn no_group(&mut self, id: u32) {
        self.out.push(NO_GROUP);
        self.out.extend_from_slice(&id.to_le_bytes());
    }

    pub(crate) fn meter(&mut self, physical: u32, it: MeterMod) {
        self.numbered(METER, physical, Body::MeterMod(it));
    }

    pub(crate) fn no_meter(&mut self, id: u32) {
        self.out.push(NO_METER);
        self.out.extend_from_slice(&id.to_le_bytes());
    }

    pub(crate) fn port(&mut self, shown: u32, config: u32) {
        self.out.push(PORT);
        self.out.extend_from_slice(&shown.to_le_bytes());
        self.out.extend_from_slice(&config.to_le_bytes());
    }

    pub(crate) fn generation(&mut self, id: u64) {
        self.out.push(GENERATION);
        self.out.extend_from_slice(&id.to_le_bytes());
    }

    pub(crate) fn ports(&mut self, checksum: u32) {
        self.out.push(PORTS);
        self.out.extend_from_slice(&checksum.to_le_bytes());
    }

    fn numbered(&mut self, kind: u8, physical: u32, body: Body) {
        let start = self.out.len();
        self.out.push(kind);
        self.out.extend_from_slice(&physical.to_le_bytes());
        let is_whole = self.message(Version::V1_3, body);
        self.keep_if(is_whole, start);
    }

    /// A record that has no form is left out. There is none: each part came in a message of its version.
    fn keep_if(&mut self, is_whole: bool, start: usize) {
        if !is_whole {
            self.out.truncate(start);
        }
    }

    fn message(&mut self, version: Version, body: Body) -> bool {
        self.with_length(|out| Message { version, xid: 0, body }.encode(out).is_ok())
    }

    /// Appends bytes behind their length, which has 16 bits. Returns whether they have a form.
    fn with_length(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let mut bytes = Vec::new();
        let is_written = write(&mut bytes);
        let Some(length) = u16::try_from(bytes.len()).ok().filter(|_| is_written) else { return false };
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.extend_from_slice(&bytes);
        true
    }

    /// Ends the frame. Without a record there is none, except the first of a file.
    pub(crate) fn end(self) {
        let records = &self.out[self.start + FRAME_HEAD_LEN..];
        let length = u32::try_from(records.len()).ok().filter(|length| *length > 0 || self.is_first);
        // A state beyond 32 bits is far above the bound of the file.
        let Some(length) = length else { return self.out.truncate(self.start) };
        let head = [length, !length, crc32(records)].map(u32::to_le_bytes).concat();
        self.out[self.start..self.start + FRAME_HEAD_LEN].copy_from_slice(&head);
    }
}

/// Reads the records of a journal, in order. An error is a phrase: the file is damaged. Then the records before it do not count.
pub(crate) fn read(bytes: &[u8], mut take: impl FnMut(Record)) -> Result<(), &'static str> {
    let mut rest = match bytes.strip_prefix(HEADING) {
        Some(rest) => rest,
        // The process ended while it wrote the first line.
        None if HEADING.starts_with(bytes) => return Ok(()),
        None => return Err("it does not begin as a journal that this version can read"),
    };
    while let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEAD_LEN>() {
        let [a, b, c, d, e, f, g, h, checksum @ ..] = *head;
        let (length, inverted) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if length != !inverted {
            return Err("a length in it is wrong");
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // The process ended while it wrote the last frame.
        let Some((records, behind)) = behind.split_at_checked(length) else { break };
        if crc32(records) != u32::from_le_bytes(checksum) {
            return Err("its checksum is wrong");
        }
        let mut cursor = Cursor(records);
        while !cursor.0.is_empty() {
            take(record(&mut cursor).ok_or("a record in it cannot be read")?);
        }
        rest = behind;
    }
    Ok(())
}

/// What is left of a frame.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[it]| it)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.bytes(length.into())
    }

    fn body(&mut self, version: Version) -> Option<Body> {
        let message = Message::decode(self.sized()?).ok()?;
        (message.version == version).then_some(message.body)
    }
}

fn record(from: &mut Cursor<'_>) -> Option<Record> {
    Some(match from.u8()? {
        RULE => Record::Rule(Box::new(rule(from)?)),
        NO_RULE => Record::NoRule(from.u64()?),
        GROUP => {
            let physical = from.u32()?;
            match from.body(Version::V1_3)? {
                Body::GroupMod(it) => Record::Group(physical, it),
                _ => return None,
            }
        }
        NO_GROUP => Record::NoGroup(from.u32()?),
        METER => {
            let physical = from.u32()?;
            match from.body(Version::V1_3)? {
                Body::MeterMod(it) => Record::Meter(physical, it),
                _ => return None,
            }
        }
        NO_METER => Record::NoMeter(from.u32()?),
        PORT => Record::Port(from.u32()?, from.u32()?),
        GENERATION => Record::Generation(from.u64()?),
        PORTS => Record::Ports(from.u32()?),
        _ => return None,
    })
}

fn rule(from: &mut Cursor<'_>) -> Option<KeptRule> {
    let [number, at_ms, cookie] = [from.u64()?, from.u64()?, from.u64()?];
    let gone = (from.u64()?, from.u64()?);
    let [priority, idle_timeout_s, hard_timeout_s, flags] =
        [from.u16()?, from.u16()?, from.u16()?, from.u16()?];
    let by = Version(from.u8()?);
    if !matches!(by, Version::V1_0 | Version::V1_3) {
        return None;
    }
    let matching = read_match(from.sized()?).ok()?;
    let Body::FlowMod(flow_mod) = from.body(by)? else { return None };
    let numbers =
        KeptNumbers { number, at_ms, cookie, gone, priority, idle_timeout_s, hard_timeout_s, flags };
    Some(KeptRule { numbers, by, matching, instructions: flow_mod.instructions })
}

/// CRC-32 of IEEE 802.3, as zip has it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 256];
    let mut place = 0;
    while place < table.len() {
        let (mut crc, mut bit) = (place as u32, 0);
        while bit < u8::BITS {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[place] = crc;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;
    use openflow::message::{Bucket, GROUP_ANY, MeterBand, MeterBandKind};

    fn rule(by: Version, actions: &str) -> KeptRule {
        let numbers = KeptNumbers {
            number: 7 << 40,
            at_ms: 9,
            cookie: u64::MAX,
            gone: (3, 4),
            priority: 5,
            idle_timeout_s: 6,
            hard_timeout_s: 7,
            flags: 1,
        };
        KeptRule {
            numbers,
            by,
            matching: flow::text::parse_match("in_port=3,ip,nw_dst=10.0.0.0/255.0.255.0").unwrap(),
            instructions: flow::text::parse_instructions(actions).unwrap(),
        }
    }

    fn all() -> Vec<Record> {
        let actions = vec![flow::Action::output(PortNo(1))];
        let bucket = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions };
        let bands = vec![MeterBand { rate: 100, burst_size: 0, kind: MeterBandKind::Drop }];
        vec![
            Record::Rule(Box::new(rule(Version::V1_3, "set_field:10.0.0.1->nw_dst,output:2"))),
            Record::Rule(Box::new(rule(Version::V1_0, "output:2"))),
            Record::NoRule(8),
            Record::Group(104, GroupMod { command: 0, group_type: 0, group_id: 7, buckets: vec![bucket] }),
            Record::NoGroup(8),
            Record::Meter(201, MeterMod { command: 0, flags: 1, meter_id: 3, bands }),
            Record::NoMeter(4),
            Record::Port(1, 1),
            Record::Generation(u64::MAX),
            Record::Ports(7),
        ]
    }

    fn write(records: &[Record], is_first: bool, out: &mut Vec<u8>) {
        let mut frame = FrameWriter::new(out, is_first);
        for record in records.iter().cloned() {
            match record {
                Record::Rule(it) => frame.rule(&it.numbers, it.by, &it.matching, &it.instructions),
                Record::NoRule(number) => frame.no_rule(number),
                Record::Group(physical, it) => frame.group(physical, it),
                Record::NoGroup(id) => frame.no_group(id),
                Record::Meter(physical, it) => frame.meter(physical, it),
                Record::NoMeter(id) => frame.no_meter(id),
                Record::Port(shown, config) => frame.port(shown, config),
                Record::Generation(id) => frame.generation(id),
                Record::Ports(checksum) => frame.ports(checksum),
            }
        }
        frame.end();
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<Record>, &'static str> {
        let mut records = Vec::new();
        read(bytes, |record| records.push(record)).map(|()| records)
    }

    /// The first line with one frame, and a second frame behind it.
    fn journal() -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        write(&all(), true, &mut bytes);
        let first = bytes.len();
        write(&[Record::NoRule(1)], false, &mut bytes);
        (bytes, first)
    }

    #[test]
    fn a_changed_byte_anywhere_is_damage_or_an_end_before_it() {
        let (whole, first) = journal();
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x40;
            assert!(read_all(&changed).is_err(), "byte {place} of {first} and {}", whole.len());
        }
        assert_eq!(
            read_all(b"burnet slice 2\n"),
            Err("it does not begin as a journal that this version can read")
        );
        let mut unknown = Vec::new();
        let frame = FrameWriter::new(&mut unknown, true);
        frame.out.push(99);
        frame.end();
        assert_eq!(read_all(&unknown), Err("a record in it cannot be read"));
    }

    #[test]
    fn a_journal_that_is_cut_has_the_frames_before_the_cut() {
        let (whole, first) = journal();
        for length in 0..whole.len() {
            let expected = if length < first { Vec::new() } else { all() };
            assert_eq!(read_all(&whole[..length]), Ok(expected), "cut to {length}");
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let (whole, _) = journal();
        assert_eq!(read_all(&whole).unwrap(), [&all()[..], &[Record::NoRule(1)]].concat());
        let mut nothing = Vec::new();
        write(&[], false, &mut nothing);
        assert!(nothing.is_empty(), "no frame without a record");
    }

    #[test]
    fn the_checksum_is_that_of_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
