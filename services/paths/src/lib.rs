//! The service `paths`: it computes paths, and keeps intents true.
