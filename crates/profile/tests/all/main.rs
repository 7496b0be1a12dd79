//! All tests of profiles by the public interface, but those that count allocations, in one program: one link instead of ten.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod built_in;
mod compare;
mod file;
mod fuzz_corpus;
mod fuzz_model;
mod model;
mod parts;
mod quantiles;
mod random;
mod reference;
mod tuning;
