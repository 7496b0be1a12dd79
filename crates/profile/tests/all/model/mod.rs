//! The model against models that are simpler and slower, against laws, against theory, and against what is published of switches.

mod barriers;
mod bounds;
mod driver;
mod laws;
mod paper;
mod published;
mod queue_oracle;
mod table_oracle;
mod theory;
mod time_outs;
mod writes;
