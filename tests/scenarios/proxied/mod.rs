//! A real Open vSwitch behind the proxy: it is the switch of the profile, and not Open vSwitch, that controller and hosts meet.

mod os_ken;
mod pings;
mod refusals;
mod setup;
