"""Objects of the network view for tests, in the form of their JSON."""

from typing import Any

def switch(datapath: int) -> dict[str, Any]:
    return {
        "kind": "switch",
        "id": f"of:{datapath:016x}",
        "state": "up",
        "openflow": "1.3",
        "n_tables": 1,
        "n_buffers": 0,
        "since_ms": 0,
    }


def port(datapath: int, number: int, live: bool = True) -> dict[str, Any]:
    return {
        "kind": "port",
        "id": f"of:{datapath:016x}/{number}",
        "name": f"port{number}",
        "mac": "00:00:00:00:00:01",
        "live": live,
        "enabled": True,
        "speed_kbps": 10_000_000,
    }


def link(src: int, src_port: int, dst: int, dst_port: int, state: str = "up") -> dict[str, Any]:
    return {
        "kind": "link",
        "id": f"of:{src:016x}/{src_port}-of:{dst:016x}/{dst_port}",
        "found": "direct",
        "state": state,
        "capacity_kbps": 10_000_000,
        "since_ms": 0,
    }


def host(number: int, datapath: int, port: int, *addresses: str) -> dict[str, Any]:
    return {
        "kind": "host",
        "id": f"00:00:00:00:00:{number:02x}",
        "addresses": list(addresses),
        "at": f"of:{datapath:016x}/{port}",
        "since_ms": 0,
    }
