//! What crosses the boundary between the kernel and an app: events, commands, receipts.
