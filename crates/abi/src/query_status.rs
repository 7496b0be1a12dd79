//! The statuses of calls that the kernel sends, and the statuses that are common to all services.
//!
//! Each service defines its own lower statuses.

/// The first status that a service cannot define.
pub const STATUS_OF_KERNEL: u16 = 0xff00;

/// This node has no service of this name now. The payload has the reason, if it is known.
pub const NO_SUCH_SERVICE: u16 = 0xffff;

/// The call did not reach the service, because the service is too slow. Try again later.
pub const SERVICE_BUSY: u16 = 0xfffe;

/// A part of the answer was lost, because the caller is too slow. The call is over.
pub const ANSWER_LOST: u16 = 0xfffd;

/// The answer was not complete before the deadline. The call is over. Try again later.
pub const NO_ANSWER_IN_TIME: u16 = 0xfffc;

/// The service ended during the call. The call is over. Try again: the monitor restarts the service.
pub const SERVICE_GONE: u16 = 0xfffb;

/// The service sent more than the credit of the caller. The call is over. It is the service's fault.
pub const TOO_MUCH: u16 = 0xfffa;

/// To a service: the call is over because the caller ended.
pub const CALLER_GONE: u16 = 0xfff9;

/// To a service: the call is over because the caller cancelled it.
pub const CANCELLED: u16 = 0xfff8;

/// From the caller's SDK: the stream is malformed, or a change is missing. It is the service's fault.
pub const BAD_ANSWER: u16 = 0xfff7;

/// From a service: the caller has no capability for this. The payload is a sentence that starts with the capability: `store.read: …`.
pub const NOT_GRANTED: u16 = 0xff80;

/// From a service: the caller exceeded a quota. The payload is a sentence that starts with the quota's name.
pub const OVER_QUOTA: u16 = 0xff81;

/// From a service: the question is malformed. The payload is a sentence. It is the caller's fault.
pub const BAD_QUESTION: u16 = 0xff82;

/// From a service: the answer is longer than the service can buffer.
pub const ANSWER_TOO_LONG: u16 = 0xff83;

/// Whether a service may send this status: its own, or one that is common to services.
pub const fn may_be_said(status: u16) -> bool {
    status < STATUS_OF_KERNEL || (NOT_GRANTED <= status && status <= ANSWER_TOO_LONG)
}
