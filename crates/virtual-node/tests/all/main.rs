//! Nodes in virtual time: a slice that owns a network, with a tenant that learns.

mod owner;
