//! The sandbox around one app.

#[cfg(feature = "host")]
pub mod launch;
pub mod limits;

pub use limits::Limits;
