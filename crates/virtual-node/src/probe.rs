//! The LLDP frames by which a tenant's controller finds the links of its slice (IEEE 802.1AB): the slice answers them from its own topology.
//!
//! In: a port. Out: a frame, and the port again at the other end. It sends nothing.

use flow::{DatapathId, PortNo};

/// A port as the tenant sees it, at a physical switch.
pub type Place = (DatapathId, PortNo);

/// The destination of LLDP, a source of nobody, and the EtherType.
const HEADER: [u8; 14] = [0x01, 0x80, 0xc2, 0, 0, 0x0e, 0x02, 0, 0, 0, 0, 0x01, 0x88, 0xcc];
/// The chassis: type 1, 9 bytes, locally assigned. Its value is the datapath id.
const CHASSIS: [u8; 3] = [1 << 1, 9, 7];
/// The port: type 2, 5 bytes, locally assigned.
const PORT: [u8; 3] = [2 << 1, 5, 7];
/// How long it holds: type 3, 2 bytes, two minutes. Then the end.
const REST: [u8; 6] = [3 << 1, 2, 0, 120, 0, 0];

const DATAPATH_AT: usize = HEADER.len() + CHASSIS.len();
const PORT_AT: usize = DATAPATH_AT + 8 + PORT.len();

/// The frame that leaves by a port.
pub(crate) fn write((datapath, port): Place) -> Vec<u8> {
    [&HEADER[..], &CHASSIS, &datapath.0.to_be_bytes(), &PORT, &port.0.to_be_bytes(), &REST].concat()
}

/// The port by which a frame left. `None`: it is no frame of this controller.
pub(crate) fn read(frame: &[u8]) -> Option<Place> {
    let is_own = frame.starts_with(&HEADER) && frame.get(HEADER.len()..DATAPATH_AT)? == CHASSIS;
    let datapath =
        frame.get(DATAPATH_AT..)?.first_chunk().map(|bytes| DatapathId(u64::from_be_bytes(*bytes)))?;
    let port = frame.get(PORT_AT..)?.first_chunk().map(|bytes| PortNo(u32::from_be_bytes(*bytes)))?;
    is_own.then_some((datapath, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_port_and_a_short_or_foreign_one_names_none() {
        let place = (DatapathId(0x0102_0304_0506_0708), PortNo(0xfffe));
        let frame = write(place);
        assert_eq!(read(&frame), Some(place));
        assert!((0..PORT_AT + 4).all(|length| read(&frame[..length]).is_none()));
        let mut foreign = frame.clone();
        foreign[12] = 8;
        assert_eq!(read(&foreign), None);
    }
}
