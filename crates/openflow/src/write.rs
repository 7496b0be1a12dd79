//! Writes the messages that a session sends often, without building a [`crate::Message`].
//!
//! Each function appends one complete message to a buffer that the caller reuses, or nothing. It allocates only the
//! buffer's growth and the text of an error. Matches, actions and instructions come as canonical bytes
//! ([`flow::canonical`]). They are copied unchanged for 1.3 and translated for 1.0.

use flow::{ErrorCode, PortNo};

use crate::envelope::{TYPE_ERROR, TYPE_HELLO, write_message};
use crate::error::{Unwritable, experimenter_of, to_version};
use crate::header::{HEADER_LEN, Header};
use crate::message::{
    FLOW_ADD, FLOW_MOD_RESET_COUNTS, FlowModFields, ONF_BUNDLE_ADD, ONF_BUNDLE_CONTROL, ONF_EXPERIMENTER,
    ROLE_SLAVE,
};
use crate::version::Version;
use crate::{v10, v13};

/// The number of bytes of the faulty message in an error: the minimum of the specification (1.3.5, 7.5.4).
pub const ERROR_DATA_LEN: usize = 64;
/// The flags of 1.3 for disabling counters. Counting nevertheless is harmless.
const NO_COUNTS: u16 = 0x18;
#[inline]
const fn is_v10(version: Version) -> bool {
    version.0 == Version::V1_0.0
}

/// Appends a message without a body.
fn bare(version: Version, kind: u8, xid: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&Header { version, kind, length: 8, xid }.to_bytes());
}

/// Appends a message with a body of at most 72 bytes. It cannot fail.
fn small(version: Version, kind: u8, xid: u32, body: &[&[u8]], out: &mut Vec<u8>) {
    let length = HEADER_LEN + body.iter().map(|part| part.len()).sum::<usize>();
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    out.extend_from_slice(&Header { version, kind, length, xid }.to_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends a hello (1.3.5, 7.5.1) of `version`, the highest offered version. `version_bitmap` is the first word of the
/// bitmap, bit n for wire version n. Versions before 1.3 have no bitmap.
pub fn hello(version: Version, xid: u32, version_bitmap: Option<u32>, out: &mut Vec<u8>) {
    match version_bitmap.filter(|_| version.0 >= Version::V1_3.0) {
        // Type 1, length 8.
        Some(bitmap) => small(version, TYPE_HELLO, xid, &[&[0, 1, 0, 8], &bitmap.to_be_bytes()], out),
        None => bare(version, TYPE_HELLO, xid, out),
    }
}

/// Appends an error (1.3.5, 7.5.4). `error` has the numbers of 1.3 and is translated if the version is 1.0. The first
/// [`ERROR_DATA_LEN`] bytes of the faulty message are sent back.
///
/// ```
/// use openflow::{Version, error, write};
/// let mut out = Vec::new();
/// write::error(Version::V1_3, 7, error::BAD_LEN, &[4, 9, 0, 9, 0, 0, 0, 7, 0], &mut out);
/// assert_eq!(out, [4, 1, 0, 21, 0, 0, 0, 7, 0, 1, 0, 6, 4, 9, 0, 9, 0, 0, 0, 7, 0]);
/// ```
pub fn error(version: Version, xid: u32, error: ErrorCode, at_fault: &[u8], out: &mut Vec<u8>) {
    let error = to_version(error, version);
    let data = at_fault.get(..ERROR_DATA_LEN).unwrap_or(at_fault);
    let experimenter = experimenter_of(error).map(u32::to_be_bytes);
    let experimenter: &[u8] = experimenter.as_ref().map_or(&[], |number| number);
    let parts: [&[u8]; 4] = [&error.kind.to_be_bytes(), &error.code.to_be_bytes(), experimenter, data];
    small(version, TYPE_ERROR, xid, &parts, out);
}

/// Appends OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE with a sentence for the peer's log, of which the first
/// [`ERROR_DATA_LEN`] bytes are sent.
pub fn hello_failed(version: Version, xid: u32, sentence: &str, out: &mut Vec<u8>) {
    error(version, xid, crate::error::HELLO_INCOMPATIBLE, sentence.as_bytes(), out);
}

/// Appends an echo request with a payload.
///
/// # Errors
/// If the payload does not fit a message.
pub fn echo_request(version: Version, xid: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    with_data(version, v13::kind::ECHO_REQUEST, xid, data, out)
}

/// Appends an echo reply with the request's payload.
///
/// # Errors
/// If the payload does not fit a message.
pub fn echo_reply(version: Version, xid: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    with_data(version, v13::kind::ECHO_REPLY, xid, data, out)
}

fn with_data(version: Version, kind: u8, xid: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    write_message(version, kind, xid, out, |out| {
        out.bytes(data);
        Ok(())
    })
}

/// Appends a features request.
pub fn features_request(version: Version, xid: u32, out: &mut Vec<u8>) {
    bare(version, v13::kind::FEATURES_REQUEST, xid, out);
}

/// Appends a get-config request.
pub fn get_config_request(version: Version, xid: u32, out: &mut Vec<u8>) {
    bare(version, v13::kind::GET_CONFIG_REQUEST, xid, out);
}

/// Appends a set-config. `flags` sets the handling of fragments, `miss_send_len` how many bytes of a buffered packet go
/// to the controller.
pub fn set_config(version: Version, xid: u32, flags: u16, miss_send_len: u16, out: &mut Vec<u8>) {
    let body: [&[u8]; 2] = [&flags.to_be_bytes(), &miss_send_len.to_be_bytes()];
    small(version, v13::kind::SET_CONFIG, xid, &body, out);
}

/// Appends a barrier request.
pub fn barrier_request(version: Version, xid: u32, out: &mut Vec<u8>) {
    let kind = if is_v10(version) { v10::kind::BARRIER_REQUEST } else { v13::kind::BARRIER_REQUEST };
    bare(version, kind, xid, out);
}

/// Appends a barrier reply.
pub fn barrier_reply(version: Version, xid: u32, out: &mut Vec<u8>) {
    let kind = if is_v10(version) { v10::kind::BARRIER_REPLY } else { v13::kind::BARRIER_REPLY };
    bare(version, kind, xid, out);
}

/// Appends a role request of 1.3. `role` is [`crate::message::ROLE_NOCHANGE`] or another of the `ROLE_` numbers.
///
/// # Errors
/// The version is 1.0, which has no roles, or the number is not a role.
pub fn role_request(
    version: Version,
    xid: u32,
    role: u32,
    generation_id: u64,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    if is_v10(version) {
        return Err(Unwritable::new("OFPT_ROLE_REQUEST", "OpenFlow 1.0 has no roles"));
    }
    if role > ROLE_SLAVE {
        return Err(Unwritable::new("role", format!("there is no role {role}")));
    }
    let body: [&[u8]; 3] = [&role.to_be_bytes(), &[0; 4], &generation_id.to_be_bytes()];
    small(version, v13::kind::ROLE_REQUEST, xid, &body, out);
    Ok(())
}

/// Appends a bundle control message of 1.3 without properties. `control` is [`crate::message::BUNDLE_OPEN_REQUEST`] or another of
/// these numbers.
pub fn bundle_control(xid: u32, bundle_id: u32, control: u16, flags: u16, out: &mut Vec<u8>) {
    let body: [&[u8]; 5] = [
        &ONF_EXPERIMENTER.to_be_bytes(),
        &ONF_BUNDLE_CONTROL.to_be_bytes(),
        &bundle_id.to_be_bytes(),
        &control.to_be_bytes(),
        &flags.to_be_bytes(),
    ];
    small(Version::V1_3, v13::kind::EXPERIMENTER, xid, &body, out);
}

/// Appends a message of 1.3 that adds one to a bundle. `write` appends that one: a whole message of 1.3 with the same
/// transaction id, or nothing if it fails.
///
/// # Errors
/// The error of `write`, or the message is too long. Nothing is appended then.
///
/// ```
/// use openflow::{Body, Message, Unwritable, Version, write};
/// let mut out = Vec::new();
/// let barrier = Message { version: Version::V1_3, xid: 7, body: Body::BarrierRequest };
/// write::bundle_add::<Unwritable>(7, 1, 3, &mut out, |out| barrier.encode(out)).unwrap();
/// let Body::BundleAdd(add) = Message::decode(&out).unwrap().body else { panic!("expected a bundled message") };
/// assert_eq!(*add.message, barrier);
/// ```
pub fn bundle_add<E: From<Unwritable>>(
    xid: u32,
    bundle_id: u32,
    flags: u16,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let (start, mut failed) = (out.len(), None);
    let written = write_message(Version::V1_3, v13::kind::EXPERIMENTER, xid, out, |out| {
        out.u32(ONF_EXPERIMENTER).u32(ONF_BUNDLE_ADD).u32(bundle_id).zeros(2).u16(flags);
        failed = write(out.out).err();
        Ok(())
    });
    match failed {
        None => written.map_err(E::from),
        Some(failed) => {
            out.truncate(start);
            Err(failed)
        }
    }
}

/// Appends a packet-out. `actions` are canonical. For 1.3 they are copied unchanged, so the caller must have validated
/// them.
///
/// # Errors
/// 1.0 cannot express the actions, or the message is too long. Nothing is appended then.
///
/// ```
/// use flow::{PortNo, canonical::ActionWriter};
/// use openflow::{Version, message::NO_BUFFER, write};
/// let mut actions = Vec::new();
/// ActionWriter::new(&mut actions).output(PortNo::FLOOD, 0);
/// let mut out = Vec::new();
/// write::packet_out(Version::V1_0, 7, NO_BUFFER, PortNo(1), &actions, b"frame", &mut out).unwrap();
/// assert_eq!(out[..8], [1, 13, 0, 29, 0, 0, 0, 7]);
/// ```
#[inline]
pub fn packet_out(
    version: Version,
    xid: u32,
    buffer_id: u32,
    in_port: PortNo,
    actions: &[u8],
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    write_message(version, v13::kind::PACKET_OUT, xid, out, |out| {
        if is_v10(version) {
            return v10::write_packet_out_with(buffer_id, in_port, data, out, |out| {
                v10::action::write_from_canonical(actions, v10::is_untagged(buffer_id, data), out)
            });
        }
        v13::write_packet_out_with(buffer_id, in_port, data, out, |out| {
            out.bytes(actions);
            Ok(())
        })
    })
}

/// Appends a flow mod. `match_tlvs` (without header and padding) and `instructions` are canonical, and the flags are
/// those of 1.3. For 1.3 they are copied unchanged, so the caller must have validated them.
///
/// For 1.0, flags that disable counters are left out. So is the reset of counters if 1.0 resets them anyway.
///
/// # Errors
/// The version cannot express the rule, or the message is too long. Nothing is appended then.
#[inline]
pub fn flow_mod(
    version: Version,
    xid: u32,
    fields: &FlowModFields,
    match_tlvs: &[u8],
    instructions: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    write_message(version, v13::kind::FLOW_MOD, xid, out, |out| {
        if is_v10(version) {
            let fields = FlowModFields { flags: flags_of_v10(fields)?, ..*fields };
            let untagged = v10::matching::write_from_canonical(match_tlvs, fields.priority, out)?;
            v10::rule::write_flow_mod_fields(&fields, out)?;
            return v10::rule::write_instructions_from_canonical(instructions, untagged, out);
        }
        v13::rule::write_flow_mod_fields(fields, out)?;
        v13::matching::write_tlvs(match_tlvs, out)?;
        out.bytes(instructions);
        Ok(())
    })
}

/// Translates the flags of 1.3 to 1.0, where the number of OFPFF_RESET_COUNTS has another meaning.
#[inline]
fn flags_of_v10(fields: &FlowModFields) -> Result<u16, Unwritable> {
    if fields.flags & FLOW_MOD_RESET_COUNTS != 0 && fields.command != FLOW_ADD {
        return Err(Unwritable::new(
            "OFPFF_RESET_COUNTS",
            "OpenFlow 1.0 keeps the counters of a rule that is modified",
        ));
    }
    Ok(fields.flags & !(FLOW_MOD_RESET_COUNTS | NO_COUNTS))
}
