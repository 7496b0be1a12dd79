//! What agents on servers know of VNICs: their numbers, addresses and servers.
//!
//! In: the keys `number`, `mac`, `agent` and `strict` of a VNIC. Out: an [`EdgeVnic`], or what is wrong with them. It reads no file, and knows no
//! agent.

use super::slice::{EdgeVnic, Line, Slice};
use super::written::WrittenVnic;
use flow::MacAddr;
use package::toml_text::Fault;
use std::collections::BTreeMap;

/// The keys of one VNIC.
///
/// # Errors
/// A sentence: a key is missing or wrong.
pub(super) fn read(vnic: &WrittenVnic) -> Result<Option<EdgeVnic>, String> {
    let (number, mac) = match (vnic.number, &vnic.mac) {
        (Some(number), Some(mac)) => (number, mac),
        (None, None) if vnic.agent.is_none() && !vnic.strict => return Ok(None),
        (Some(_), None) => {
            return Err("number needs mac, by which agents know its frames: add mac".to_owned());
        }
        _ => {
            return Err(
                "mac, agent and strict are for agents, which know it by a number: add number".to_owned()
            );
        }
    };
    let mac: MacAddr =
        mac.parse().map_err(|_| format!("mac: `{mac}` is no address: write 02:00:00:00:00:01"))?;
    let is_group = mac.0.first().is_none_or(|first| first & 1 != 0);
    if is_group || mac == MacAddr([0; 6]) {
        return Err(format!("mac: {mac} is not the address of one interface"));
    }
    Ok(Some(EdgeVnic { number, mac, agent: vnic.agent, is_strict: vnic.strict }))
}

/// Whether each number is that of one VNIC only, and each address is there once where frames look the same.
///
/// # Errors
/// The second of two VNICs.
pub(super) fn check(slices: &[Slice]) -> Result<(), Fault> {
    let mut numbers = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    let all = slices.iter().flat_map(|slice| slice.vnics.iter().map(move |vnic| (slice, vnic)));
    for (slice, vnic, edge) in all.filter_map(|(slice, vnic)| Some((slice, vnic, vnic.edge?))) {
        let Line(line) = vnic.line;
        let fault =
            |why: String| Fault { line, reason: format!("slice {}: VNIC {}: {why}", slice.name, vnic.name) };
        if let Some((other, at)) = numbers.insert(edge.number, (&vnic.name, vnic.line)) {
            let number = edge.number;
            return Err(fault(format!(
                "number {number} is that of VNIC {other} ({at}): write another number"
            )));
        }
        if let Some((other, at)) = addresses.insert((slice.tag(), edge.mac), (&vnic.name, vnic.line)) {
            let mac = edge.mac;
            return Err(fault(format!(
                "agents cannot tell it from VNIC {other} ({at}), which has the mac {mac} too"
            )));
        }
    }
    Ok(())
}
