//! What the kernel says of a call in the place of its service, and the statuses that mean the same for every service.
//!
//! All lower statuses are the services' own, and mean nothing here.

/// From this status on none is a service's own.
pub const STATUS_OF_KERNEL: u16 = 0xff00;

/// No service of this name is on this node now. The payload says why, if the node knows.
pub const NO_SUCH_SERVICE: u16 = 0xffff;

/// The service did not get the call, since it does not keep up; ask again later.
pub const SERVICE_BUSY: u16 = 0xfffe;

/// A part of the answer was lost, since the caller does not keep up; nothing more of it comes.
pub const ANSWER_LOST: u16 = 0xfffd;

/// The service did not answer in time, or not to the end; nothing more comes. Ask again later.
pub const NO_ANSWER_IN_TIME: u16 = 0xfffc;

/// The service ended while the call was open; nothing more comes. Ask again: the monitor starts it anew.
pub const SERVICE_GONE: u16 = 0xfffb;

/// The service sent more than the caller had granted credit for; nothing more comes. It is the service's fault.
pub const TOO_MUCH: u16 = 0xfffa;

/// Of a call that is over, to its service: the caller is gone.
pub const CALLER_GONE: u16 = 0xfff9;

/// Of a call that is over, to its service: the caller does not want it any more.
pub const CANCELLED: u16 = 0xfff8;

/// Said by the caller's SDK: the service's stream cannot be read, or leaves a change out. It is the service's fault.
pub const BAD_ANSWER: u16 = 0xfff7;

/// Said by a service: the caller was not granted this. The payload is a sentence that begins with the capability: `store.read: …`.
pub const NOT_GRANTED: u16 = 0xff80;

/// Said by a service: a quota of the caller is used up. The payload is a sentence that begins with the quota's name.
pub const OVER_QUOTA: u16 = 0xff81;

/// Said by a service: it cannot read the question. The payload is a sentence. It is the caller's fault.
pub const BAD_QUESTION: u16 = 0xff82;

/// Said by a service: the answer is longer than it can keep for its callers.
pub const ANSWER_TOO_LONG: u16 = 0xff83;

/// Whether a service may say this status: its own, or one of those that services say.
pub const fn may_be_said(status: u16) -> bool {
    status < STATUS_OF_KERNEL || (NOT_GRANTED <= status && status <= ANSWER_TOO_LONG)
}
