//! An answer that takes several calls of services, one after the other.
//!
//! ```text
//!   question ──call──> a service ──take──> question ──…──> response
//! ```
//!
//! In: the answers of services. Out: the next question, and in the end the response. What implements it makes no call itself.

use crate::http::{Problem, Response};
use std::fmt;

/// A question to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The service.
    pub service: &'static str,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Which other requests may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// All.
    Any,
    /// A few of the same kind: each of them holds much memory, or asks many switches. One more is refused.
    Few,
    /// None of the same kind, because it reads what it then replaces. Another one waits.
    Alone,
}

/// A request that is answered in steps.
pub trait Steps: Send + fmt::Debug {
    /// The next question. `None`: everything is known.
    fn question(&mut self) -> Option<Question>;

    /// The status and the payload of the answer to the last question.
    fn take(&mut self, status: u16, payload: &[u8]);

    /// Which other requests may run at the same time.
    fn turn(&self) -> Turn {
        Turn::Any
    }

    /// There is no time left for more questions.
    fn stop(&mut self);

    /// The response.
    ///
    /// # Errors
    /// What was wrong.
    fn response(self: Box<Self>) -> Result<Response, Problem>;
}
