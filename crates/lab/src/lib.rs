//! The laboratory: tools that test and measure a node, and are never part of one.
//!
//! ```text
//!   burnet bench|attack|emulate|demo ARGS ──exec──> burnet-lab ──cli──┬─> bench    load generator ⇄ a controller
//!                                                                     ├─> attack   hostile apps and switches ⇄ a node of its own
//!                                                                     ├─> emulate  switches and hosts ⇄ any controller
//!                                                                     ├─> demo     a node, a network, the page
//!                                                                     ├─> probe    a switch ──> its profile
//!                                                                     ├─> rehearse slices with packets, in virtual time
//!                                                                     └─> profiles lists, shows, checks, compares, tries and tunes profiles of switches
//!   burnet zone ──exec of a link to burnet-lab──> apps                the hostile apps and test apps, each in its zone
//! ```
//!
//! In: a command line. Out: text or JSON, and an exit code. It starts the program `burnet` for each node that it
//! needs. That program contains none of this code: a production node has no load generator and nothing hostile.

pub mod apps;
pub mod attack;
pub mod bench;
pub mod cli;
pub mod demo;
pub mod emulate;
pub mod machine;
mod machine_reading;
pub mod own_node;
mod printing;
pub mod probe;
pub mod processes;
pub mod profiles;
pub mod progress;
pub mod rehearse;
mod stage;
