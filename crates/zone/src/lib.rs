//! The sandbox around one app.
//!
//! ```text
//!   kernel's worker                                        app
//!     port    ──(rings of a process zone)────────────────> its own process, confined by `launch`
//!     trusted ──(C table)──> guest ──────────────────────> inside the kernel process, if the operator trusts the app
//! ```
//!
//! It does not decide what an app may do with switches: the crate `kernel` does. It does not start or restart apps:
//! the crate `monitor` does.

pub mod cgroup;
pub mod cores;
mod excess;
pub mod fairness;
#[cfg(feature = "host")]
pub mod fault;
#[allow(unsafe_code, reason = "a C table is implemented with raw pointers")]
pub mod guest;
#[cfg(feature = "host")]
#[allow(unsafe_code, reason = "a system call that no library wraps safely")]
pub mod landlock;
#[cfg(feature = "host")]
#[allow(unsafe_code, reason = "forks, and system calls that no library wraps safely")]
pub mod launch;
pub mod limits;
#[cfg(feature = "host")]
pub mod overflow;
#[cfg(feature = "host")]
pub mod port;
#[allow(unsafe_code, reason = "an instruction of the processor")]
pub mod prefetch;
pub mod region;
pub mod sandbox;
#[cfg(feature = "host")]
mod shares;
#[cfg(feature = "host")]
#[allow(
    unsafe_code,
    reason = "a C table is called with raw pointers, and a shared object is loaded by its path"
)]
pub mod trusted;
pub mod usage;

pub use cores::Cores;
pub use excess::Excess;
#[cfg(feature = "host")]
pub use fault::ZoneFault;
#[cfg(feature = "host")]
pub use launch::Confinement;
pub use limits::Limits;
#[cfg(feature = "host")]
pub use port::ProcessPort;
pub use sandbox::{Denied, NotEnforced, Sandbox};
pub use usage::{Resource, Sample};
