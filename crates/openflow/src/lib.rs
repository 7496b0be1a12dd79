//! OpenFlow 1.0 and 1.3: bytes, types and text.
