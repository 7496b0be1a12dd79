//! Parses packet-outs.

use flow::PortNo;
use flow::text::{BadText, parse_actions};

use super::words::{fault, split, split_actions};
use openflow::hex;
use openflow::message::{NO_BUFFER, PacketOut};

/// `in_port=1,packet=ffffffffffff…,actions=output:2`. Without a port, the input port is the controller.
pub(super) fn typed(text: &str) -> Result<PacketOut, BadText> {
    let (before, actions) = split_actions(text);
    let mut read = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: PortNo::CONTROLLER,
        actions: Vec::new(),
        data: Vec::new(),
    };
    for word in split(before) {
        match word.key {
            "in_port" => read.in_port = word.port()?,
            "buffer_id" => read.buffer_id = word.number("a buffer's number")?,
            "packet" => {
                let digits = word.needed("the packet in hexadecimal")?;
                read.data = hex::from_text(digits).map_err(|bad| word.fault(bad.to_string()))?;
            }
            _ => return Err(word.unknown("in_port, packet, buffer_id, actions")),
        }
    }
    if read.buffer_id == NO_BUFFER && read.data.is_empty() {
        return Err(fault(before.len(), "", "expected packet=… in hexadecimal, or buffer_id=…"));
    }
    if let Some((actions, at)) = actions {
        read.actions = parse_actions(actions).map_err(|bad| bad.shifted(at))?;
    }
    Ok(read)
}

/// `in_port=1 actions=output:2 buffer=0x00000105`
pub(super) fn printed(text: &str) -> Result<PacketOut, BadText> {
    let line = text.lines().next().unwrap_or_default();
    let (before, actions) = split_actions(line);
    let mut words = split(before);
    let in_port = match words.next() {
        Some(word) if word.key == "in_port" => word.port()?,
        _ => return Err(fault(0, line, "expected in_port=…")),
    };
    let (list, at) = actions.ok_or_else(|| fault(line.len(), "", "expected actions=…"))?;
    // The last word is not an action.
    let end = list.trim_end().rfind(' ').unwrap_or(0);
    let mut read = PacketOut { buffer_id: NO_BUFFER, in_port, actions: Vec::new(), data: Vec::new() };
    match split(&list[end..]).next() {
        Some(word) if word.key == "buffer" => read.buffer_id = word.number("a buffer's number")?,
        Some(word) if word.key == "data_len" && word.value == Some("0") => {}
        Some(word) if word.key == "data_len" => {
            return Err(fault(
                at + end + word.offset,
                word.whole,
                "the packet's bytes are not in the text: write packet-out in_port=…,packet=…,actions=…",
            ));
        }
        _ => return Err(fault(at + end, &list[end..], "expected buffer=… or data_len=…")),
    }
    read.actions = parse_actions(&list[..end]).map_err(|bad| bad.shifted(at))?;
    Ok(read)
}
