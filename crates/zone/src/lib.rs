//! The sandbox around one app.

#[cfg(feature = "host")]
pub mod fault;
#[cfg(feature = "host")]
pub mod launch;
pub mod limits;
#[cfg(feature = "host")]
pub mod overflow;
#[cfg(feature = "host")]
pub mod port;

#[cfg(feature = "host")]
pub use fault::ZoneFault;
pub use limits::Limits;
#[cfg(feature = "host")]
pub use port::ProcessPort;
