//! An app as a file: what it asks for, what is in it, who signed it, and who is trusted to sign.
//!
//! ```text
//!   app.toml ──> manifest::Manifest ──> what the app asks for, in plain words; what an update asks for beyond it
//! ```
//!
//! `docs/reference/package.md` is what is written and read here, for people.
//!
//! This crate never enforces what was granted (kernel and zone do) and never starts an app.

pub mod manifest;
pub mod path;
pub mod toml_text;

pub use manifest::Manifest;
pub use path::PackagePath;
