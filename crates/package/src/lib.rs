//! An app as a file: its manifest, its contents, its signatures, and the trusted keys.
//!
//! ```text
//!   app.toml ──> manifest::Manifest ──> what the app asks for, in plain words; what an update asks for beyond it
//!   NAME-VERSION.burnet ──> file::Package ──> its manifest, files, signatures and digest, or what is wrong with it
//!   signatures, trust.toml, the time ──> trust::require ──> may be used, or why not
//!   package, what is installed ──> install::plan ──> what is to be granted, or why it may not be installed
//!   trust store, records, folders ──> verification::verify ──> whether what is installed may start, and go on
//!   state::State ──> reads and writes the state folder, and nothing else does
//! ```
//!
//! `docs/reference/package.md` describes the formats for users.
//!
//! This crate never enforces grants (kernel and zone do) and never starts an app.

pub mod archive;
pub mod digest;
pub mod file;
pub mod install;
pub mod key;
pub mod manifest;
pub mod moment;
pub mod path;
pub mod signature;
pub mod state;
pub mod toml_text;
pub mod trust;
pub mod verification;

pub use digest::Digest;
pub use file::{Package, PackageFault};
pub use manifest::Manifest;
pub use path::PackagePath;
