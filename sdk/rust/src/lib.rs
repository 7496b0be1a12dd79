//! What authors of Burnet apps install.
