//! What the kernel says of a query in the place of its service.
//!
//! All other statuses are the services' own, and mean nothing here.

/// The status of a query whose service is not there.
pub const NO_SUCH_SERVICE: u16 = 0xffff;

/// The status of a query that its service did not get, since it does not keep up; ask again later.
pub const SERVICE_BUSY: u16 = 0xfffe;

/// The status of a query of whose answer a part was lost, since the asker does not keep up; nothing more of it comes.
pub const ANSWER_LOST: u16 = 0xfffd;

/// The status of a query that its service did not answer in time, or not to the end; nothing more of it comes. Ask again later.
pub const NO_ANSWER_IN_TIME: u16 = 0xfffc;
