//! The parent of kernel and zones: starts, watches, restarts.
