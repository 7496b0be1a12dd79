//! Roles (1.3.5, 7.3.9) and the asynchronous configuration (7.3.10).

use flow::BadInput;

use crate::error::{BAD_ROLE, Unwritable, bad};
use crate::message::{AsyncConfig, ROLE_SLAVE, Role};
use crate::wire::{Reader, Writer};

/// Reads a role request. Its role must exist, while a reply may have an unknown role.
pub(super) fn read_role_request(body: Reader<'_>) -> Result<Role, BadInput> {
    let offset = body.offset();
    let role = read_role(body)?;
    if role.role > ROLE_SLAVE {
        return Err(bad(offset, "role", BAD_ROLE, format!("there is no role {}", role.role)));
    }
    Ok(role)
}

pub(super) fn read_role(mut body: Reader<'_>) -> Result<Role, BadInput> {
    let role = body.u32("role")?;
    body.skip(4)?;
    let generation_id = body.u64("generation_id")?;
    body.end()?;
    Ok(Role { role, generation_id })
}

pub(super) fn write_role_request(role: &Role, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if role.role > ROLE_SLAVE {
        return Err(Unwritable::new("role", format!("there is no role {}", role.role)));
    }
    write_role(role, out);
    Ok(())
}

pub(super) fn write_role(role: &Role, out: &mut Writer<'_>) {
    out.u32(role.role).zeros(4).u64(role.generation_id);
}

pub(super) fn read_async(mut body: Reader<'_>) -> Result<AsyncConfig, BadInput> {
    let config = AsyncConfig {
        packet_in_mask: read_masks(&mut body, "packet_in_mask")?,
        port_status_mask: read_masks(&mut body, "port_status_mask")?,
        flow_removed_mask: read_masks(&mut body, "flow_removed_mask")?,
    };
    body.end()?;
    Ok(config)
}

fn read_masks(body: &mut Reader<'_>, field: &'static str) -> Result<[u32; 2], BadInput> {
    Ok([body.u32(field)?, body.u32(field)?])
}

pub(super) fn write_async(config: &AsyncConfig, out: &mut Writer<'_>) {
    for [master, slave] in [config.packet_in_mask, config.port_status_mask, config.flow_removed_mask] {
        out.u32(master).u32(slave);
    }
}
