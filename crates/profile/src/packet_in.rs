//! Packet-ins: how many a switch sends, how much of a packet is in one, and where the packet waits.

/// The bound of a switch on its packet-ins: a token bucket. What is above it is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacketInRate {
    /// Packet-ins a second.
    pub rate_per_s: f64,
    /// How many may come at once after a silence.
    pub burst_packets: u32,
}

/// Packet-ins and packet buffers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketIn {
    /// The bound on packet-ins. None: no bound was seen.
    pub limit: Option<PacketInRate>,
    /// How many packets the switch keeps for the controller's answer. 0: none, each packet-in has the whole packet. None: not known. A
    /// software switch that plays the profile then has its own buffers, and the model alone has none.
    pub buffers_packets: Option<u32>,
    /// How long a buffered packet is kept. It is lost then, and its buffer id is unknown.
    pub buffer_life_us: f64,
    /// How many bytes of a buffered packet a packet-in has, unless the controller asks for another number.
    pub miss_send_bytes: u16,
}

impl Default for PacketIn {
    /// No bound, no number of buffers, and OpenFlow's 128 bytes.
    fn default() -> Self {
        PacketIn { limit: None, buffers_packets: None, buffer_life_us: 1e6, miss_send_bytes: 128 }
    }
}
