//! The twelve counters of a port, in the order of both versions (1.3.5, 7.3.5.6; 1.0, 5.3.5).

use flow::{BadInput, PortNo};

use crate::message::PortStats;
use crate::wire::{Reader, Writer};

impl PortStats {
    /// Reads the counters. The age of the port stays 0.
    pub(crate) fn read_counters(port_no: PortNo, body: &mut Reader<'_>) -> Result<PortStats, BadInput> {
        Ok(PortStats {
            port_no,
            rx_packets: body.u64("rx_packets")?,
            tx_packets: body.u64("tx_packets")?,
            rx_bytes: body.u64("rx_bytes")?,
            tx_bytes: body.u64("tx_bytes")?,
            rx_dropped: body.u64("rx_dropped")?,
            tx_dropped: body.u64("tx_dropped")?,
            rx_errors: body.u64("rx_errors")?,
            tx_errors: body.u64("tx_errors")?,
            rx_frame_err: body.u64("rx_frame_err")?,
            rx_over_err: body.u64("rx_over_err")?,
            rx_crc_err: body.u64("rx_crc_err")?,
            collisions: body.u64("collisions")?,
            duration_s: 0,
            duration_ns: 0,
        })
    }

    pub(crate) fn write_counters(&self, out: &mut Writer<'_>) {
        out.u64(self.rx_packets).u64(self.tx_packets).u64(self.rx_bytes).u64(self.tx_bytes);
        out.u64(self.rx_dropped).u64(self.tx_dropped).u64(self.rx_errors).u64(self.tx_errors);
        out.u64(self.rx_frame_err).u64(self.rx_over_err).u64(self.rx_crc_err).u64(self.collisions);
    }
}
