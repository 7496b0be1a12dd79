//! The fixed parts of the bodies of events. A layout never changes.

use super::port::PortRecord;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A switch up; the ports follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SwitchUpFixed {
    pub(super) n_buffers: U32,
    pub(super) port_count: U16,
    pub(super) n_tables: u8,
    pub(super) openflow: u8,
}

/// A packet-in; metadata and data follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PacketInFixed {
    pub(super) cookie: U64,
    pub(super) buffer_id: U32,
    pub(super) in_port: U32,
    pub(super) total_len: U16,
    pub(super) metadata_len: U16,
    pub(super) reason: u8,
    pub(super) table_id: u8,
    pub(super) reserved: [u8; 2],
}

/// A port status.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PortStatusFixed {
    pub(super) reason: u8,
    pub(super) reserved: [u8; 3],
    pub(super) port: PortRecord,
}

/// A flow removed; the match follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct FlowRemovedFixed {
    pub(super) cookie: U64,
    pub(super) packet_count: U64,
    pub(super) byte_count: U64,
    pub(super) duration_s: U32,
    pub(super) duration_ns: U32,
    pub(super) priority: U16,
    pub(super) idle_timeout_s: U16,
    pub(super) hard_timeout_s: U16,
    pub(super) reason: u8,
    pub(super) table_id: u8,
}

/// A switch error and a receipt; the text follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AnswerFixed {
    pub(super) ticket: U64,
    pub(super) error_type: U16,
    pub(super) error_code: U16,
    pub(super) outcome: u8,
    pub(super) reserved: [u8; 3],
}

/// An experimenter message; its data follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ExperimenterFixed {
    pub(super) experimenter: U32,
    pub(super) exp_type: U32,
}

/// A statistics reply and an answer to a call; the body follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PartFixed {
    pub(super) ticket: U64,
    pub(super) what: U16,
    pub(super) more: u8,
    pub(super) reserved: [u8; 5],
}

/// A topic; name and payload follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct TopicFixed {
    pub(super) number: U64,
    pub(super) publisher: U16,
    pub(super) topic_len: U16,
    pub(super) run: U32,
    pub(super) is_retained: u8,
    pub(super) reserved: [u8; 7],
}

/// A soft limit.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SoftLimitFixed {
    pub(super) quota: U16,
    pub(super) reserved: [u8; 2],
    pub(super) used: U32,
    pub(super) soft: U32,
    pub(super) hard: U32,
}

/// A packet-in without a buffer.
pub(super) const NO_BUFFER: u32 = 0xffff_ffff;
