//! Ports of 1.0: `ofp_phy_port` (5.2.1), port status (5.4.4), port mod (5.3.3).

use flow::{BadInput, MacAddr};

use super::{port_number, read_port_number};
use crate::error::Unwritable;
use crate::message::{Port, PortMod, PortStatus};
use crate::wire::{Reader, Writer};

/// OFP_MAX_PORT_NAME_LEN.
const NAME_LEN: usize = 16;

pub(super) fn read_port(body: &mut Reader<'_>) -> Result<Port, BadInput> {
    Ok(Port {
        port_no: read_port_number(body, "port_no")?,
        hw_addr: MacAddr(body.array("hw_addr")?),
        name: body.text(NAME_LEN, "name")?,
        config: body.u32("config")?,
        state: body.u32("state")?,
        curr: body.u32("curr")?,
        advertised: body.u32("advertised")?,
        supported: body.u32("supported")?,
        peer: body.u32("peer")?,
        curr_speed_kbps: 0,
        max_speed_kbps: 0,
    })
}

/// Leaves out the rates, which 1.0 has no place for.
pub(super) fn write_port(port: &Port, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(port.port_no, "port_no")?)
        .bytes(&port.hw_addr.0)
        .text(&port.name, NAME_LEN, "name")?;
    out.u32(port.config).u32(port.state).u32(port.curr).u32(port.advertised);
    out.u32(port.supported).u32(port.peer);
    Ok(())
}

pub(super) fn read_port_status(mut body: Reader<'_>) -> Result<PortStatus, BadInput> {
    let reason = body.u8("reason")?;
    body.skip(7)?;
    let port = read_port(&mut body)?;
    body.end()?;
    Ok(PortStatus { reason, port })
}

pub(super) fn write_port_status(status: &PortStatus, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u8(status.reason).zeros(7);
    write_port(&status.port, out)
}

pub(super) fn read_port_mod(mut body: Reader<'_>) -> Result<PortMod, BadInput> {
    let port_mod = PortMod {
        port_no: read_port_number(&mut body, "port_no")?,
        hw_addr: MacAddr(body.array("hw_addr")?),
        config: body.u32("config")?,
        mask: body.u32("mask")?,
        advertise: body.u32("advertise")?,
    };
    body.skip(4)?;
    body.end()?;
    Ok(port_mod)
}

pub(super) fn write_port_mod(port_mod: &PortMod, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u16(port_number(port_mod.port_no, "port_no")?).bytes(&port_mod.hw_addr.0);
    out.u32(port_mod.config).u32(port_mod.mask).u32(port_mod.advertise).zeros(4);
    Ok(())
}
