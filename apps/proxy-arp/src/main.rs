//! Runs the app `proxy-arp` in a process of its own.

burnet_sdk::main!(proxy_arp::ProxyArp);
