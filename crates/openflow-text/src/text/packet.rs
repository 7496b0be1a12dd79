//! Prints packet-ins and packet-outs.

use std::fmt::{self, Write};

use super::connection::PACKET_IN_REASONS;
use super::frame;
use openflow::message::*;

pub(super) fn packet_in(out: &mut String, packet_in: &PacketIn) -> fmt::Result {
    if packet_in.table_id != 0 {
        write!(out, " table_id={}", packet_in.table_id)?;
    }
    // All ones: the switch sent no cookie, as in 1.0.
    if packet_in.cookie != u64::MAX {
        write!(out, " cookie=0x{:x}", packet_in.cookie)?;
    }
    write!(out, " total_len={} ", packet_in.total_len)?;
    out.push_str(&flow::text::match_to_string(&packet_in.matching));
    match PACKET_IN_REASONS.get(usize::from(packet_in.reason)) {
        Some(name) => write!(out, " (via {name})")?,
        None => write!(out, " (via {})", packet_in.reason)?,
    }
    lengths(out, packet_in)?;
    frame::headers(out, &packet_in.data)
}

/// The length of the packet and of its data, with a remark if they are inconsistent.
fn lengths(out: &mut String, packet_in: &PacketIn) -> fmt::Result {
    let data_len = packet_in.data.len();
    let total_len = usize::from(packet_in.total_len);
    write!(out, " data_len={data_len}")?;
    if packet_in.buffer_id == NO_BUFFER {
        out.push_str(" (unbuffered)");
        if total_len != data_len {
            out.push_str(" (***total_len != data_len***)");
        }
    } else {
        write!(out, " buffer=0x{:08x}", packet_in.buffer_id)?;
        if total_len < data_len {
            out.push_str(" (***total_len < data_len***)");
        }
    }
    out.push('\n');
    Ok(())
}

pub(super) fn packet_out(out: &mut String, packet_out: &PacketOut) -> fmt::Result {
    write!(out, " in_port={}", packet_out.in_port)?;
    write!(out, " actions={}", flow::text::actions_to_string(&packet_out.actions))?;
    if packet_out.buffer_id != NO_BUFFER {
        return write!(out, " buffer=0x{:08x}", packet_out.buffer_id);
    }
    write!(out, " data_len={}", packet_out.data.len())?;
    if packet_out.data.is_empty() {
        return Ok(());
    }
    out.push('\n');
    frame::headers(out, &packet_out.data)
}
