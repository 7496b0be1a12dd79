//! Packages from end to end with the commands that people type: keys, build, sign, verify, install, and what is
//! refused.
//!
//! The tests do not wait for time to pass. For expired things, they edit the state folder with which these were
//! signed or trusted.

mod installing;
mod python;
mod running;
mod world;
