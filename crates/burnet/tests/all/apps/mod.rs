//! Whole nodes with emulated networks: does a frame come out where the apps of the folder `apps` say, and nowhere else?
//!
//! Each app runs in a process zone with the capabilities of its own manifest. So an app that asks for too little fails here.

mod acl;
mod dhcp;
mod frames;
mod mirror;
mod proxy_arp;
mod qos;
mod router;
mod stage;
mod vlan;
