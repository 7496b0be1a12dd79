//! Switches, links and hosts in user space.
