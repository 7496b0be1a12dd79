//! Slices of tenants: the plan of a slices file, and whole nodes that carry it out.

mod agents;
mod examples;
mod judged;
mod labels;
mod nested;
mod operators;
mod plans;
mod standalone;
mod virtual_links;
mod zones;
