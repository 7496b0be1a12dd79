//! The service `hosts`: which hosts are in the network, where, and with which addresses.
