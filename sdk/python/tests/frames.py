"""Frames for tests, of hosts that are known by the last octet of their addresses."""

ARP_REQUEST = bytes([0, 1, 8, 0, 6, 4, 0, 1])


def ethernet(destination: int, source: int, eth_type: int = 0x0800, payload: bytes = bytes(46)) -> bytes:
    """A frame from one host to another."""
    return bytes([2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source]) + eth_type.to_bytes(2) + payload


def arp(source: int, target: int) -> bytes:
    """Who has the target's address?"""
    addresses = bytes([2, 0, 0, 0, 0, source, 10, 0, 0, source]) + bytes([0, 0, 0, 0, 0, 0, 10, 0, 0, target])
    return ethernet(0xFF, source, 0x0806, ARP_REQUEST + addresses)
