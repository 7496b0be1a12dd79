//! Switch sessions: OpenFlow bytes to events, commands to OpenFlow bytes.
