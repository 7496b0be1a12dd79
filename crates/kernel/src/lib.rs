//! Who hears an event, and whether a command may pass.
