//! The sandbox around one app.
