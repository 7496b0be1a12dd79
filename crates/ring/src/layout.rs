//! The layout of a port's memory, in 64-bit words in this machine's byte order. Both ends are on one machine.
//!
//! ```text
//! word 0    magic          "burnport"
//!      1    version        of this layout
//!      2-4  size of packets, of control, of from_app, in bytes
//!      64   packets' indices and wishes, four words, each on lines of its own     (ring.rs)
//!      128  control's
//!      192  from_app's
//!      512  packets' data, then control's, then from_app's
//! ```
//!
//! In: requested sizes, or a header from another process. Out: valid sizes. Never maps or touches memory.

#[cfg(not(loom))]
use crate::fault::PortFault;

/// The maximum length of a frame. The longest possible OpenFlow message (65,535 bytes) as a packet-in with its headers
/// fits easily. A peer cannot make the other end copy or keep more than this at a time.
pub const MAX_FRAME_BYTES: usize = 128 * 1024;

/// Bytes of a word, the unit of rings.
pub(crate) const WORD_BYTES: usize = 8;

/// Words from one index or wake-up request to the next: 128 bytes. Processors fetch cache lines in pairs, and a line
/// that both ends write makes each wait for the other. Loom has no cache lines.
pub(crate) const LINE_WORDS: usize = if cfg!(loom) { 1 } else { 16 };

/// Words before the first ring's data: one page.
pub(crate) const HEADER_WORDS: usize = if cfg!(loom) { 8 } else { 512 };

/// Words of the header that belong to one ring.
pub(crate) const INDEX_WORDS: usize = 4 * LINE_WORDS;

/// Sizes of a port's three rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    packets_bytes: usize,
    control_bytes: usize,
    from_app_bytes: usize,
}

impl Sizes {
    /// The smallest ring: a page. Frames must then fit into it.
    pub const MIN_RING_BYTES: usize = 4096;
    /// The largest ring. With more, a slow app would be so far behind that old packet-ins are useless.
    pub const MAX_RING_BYTES: usize = 64 * 1024 * 1024;

    /// Sizes in bytes; `None` unless all are powers of two from [`Sizes::MIN_RING_BYTES`] to [`Sizes::MAX_RING_BYTES`].
    pub fn new(packets_bytes: usize, control_bytes: usize, from_app_bytes: usize) -> Option<Sizes> {
        [packets_bytes, control_bytes, from_app_bytes].into_iter().all(is_ring_size).then_some(Sizes {
            packets_bytes,
            control_bytes,
            from_app_bytes,
        })
    }

    /// Size of the ring of packet-ins to the app, in bytes.
    pub fn packets_bytes(self) -> usize {
        self.packets_bytes
    }

    /// Size of the ring of control events to the app, in bytes.
    pub fn control_bytes(self) -> usize {
        self.control_bytes
    }

    /// Size of the ring from the app to the kernel, in bytes.
    pub fn from_app_bytes(self) -> usize {
        self.from_app_bytes
    }
}

impl Default for Sizes {
    /// 1 MiB each way: eight frames of maximum length, or thousands of usual ones. That stays in a processor's cache.
    /// Control events are rare and get a quarter of that.
    fn default() -> Self {
        Sizes { packets_bytes: 1024 * 1024, control_bytes: 256 * 1024, from_app_bytes: 1024 * 1024 }
    }
}

fn is_ring_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (Sizes::MIN_RING_BYTES..=Sizes::MAX_RING_BYTES).contains(&bytes)
}

#[cfg(not(loom))]
const MAGIC: u64 = u64::from_le_bytes(*b"burnport");
#[cfg(not(loom))]
const VERSION: u64 = 2;
#[cfg(not(loom))]
const FIRST_INDEX_WORD: usize = 64;

/// The five header words of a port's memory.
#[cfg(not(loom))]
pub(crate) type Opening = [u64; 5];

#[cfg(not(loom))]
impl Sizes {
    /// Returns the header that the maker of a port writes.
    pub(crate) fn opening(self) -> Opening {
        [MAGIC, VERSION, self.packets_bytes as u64, self.control_bytes as u64, self.from_app_bytes as u64]
    }

    /// Reads and checks a port's header. The memory is `memory_bytes` long.
    pub(crate) fn parse(opening: Opening, memory_bytes: u64) -> Result<Sizes, PortFault> {
        let [magic, version, packets, control, from_app] = opening;
        if magic != MAGIC {
            return Err(PortFault::NotAPort);
        }
        if version != VERSION {
            return Err(PortFault::WrongVersion { found: version, known: VERSION });
        }
        let sizes = Sizes {
            packets_bytes: ring_size(packets)?,
            control_bytes: ring_size(control)?,
            from_app_bytes: ring_size(from_app)?,
        };
        let expected_bytes = sizes.memory_bytes() as u64;
        if memory_bytes != expected_bytes {
            return Err(PortFault::MemorySize { expected_bytes, found_bytes: memory_bytes });
        }
        Ok(sizes)
    }

    /// Length of the whole memory, in bytes.
    pub(crate) fn memory_bytes(self) -> usize {
        HEADER_WORDS * WORD_BYTES + self.packets_bytes + self.control_bytes + self.from_app_bytes
    }

    /// The place of the ring of packet-ins.
    pub(crate) fn place_packets(self) -> Place {
        Place { indices: FIRST_INDEX_WORD, data: HEADER_WORDS, words: self.packets_bytes / WORD_BYTES }
    }

    /// The place of the ring of control events.
    pub(crate) fn place_control(self) -> Place {
        let before = self.place_packets();
        Place {
            indices: before.indices + INDEX_WORDS,
            data: before.data + before.words,
            words: self.control_bytes / WORD_BYTES,
        }
    }

    /// The place of the ring from the app.
    pub(crate) fn place_from_app(self) -> Place {
        let before = self.place_control();
        Place {
            indices: before.indices + INDEX_WORDS,
            data: before.data + before.words,
            words: self.from_app_bytes / WORD_BYTES,
        }
    }
}

#[cfg(not(loom))]
fn ring_size(found_bytes: u64) -> Result<usize, PortFault> {
    usize::try_from(found_bytes)
        .ok()
        .filter(|&bytes| is_ring_size(bytes))
        .ok_or(PortFault::RingSize { found_bytes })
}

/// The place of one ring in the memory, in words from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The first of its [`INDEX_WORDS`].
    pub(crate) indices: usize,
    /// The first word of its data.
    pub(crate) data: usize,
    /// Words of its data, a power of two.
    pub(crate) words: usize,
}
