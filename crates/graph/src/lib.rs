//! Shortest, disjoint and constrained paths through a network that changes.
