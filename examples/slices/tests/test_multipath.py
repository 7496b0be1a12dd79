"""The tenant's controller for os-ken on the network of figure 1a, over sockets.

The labels of this network are what a slice would say. Left out if no Python has os-ken; `BURNET_OTHERS_PYTHON` names
one that may have it.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_network import Network

APP = Path(__file__).resolve().parents[1] / "multipath.py"
PYTHON = os.environ.get("BURNET_OTHERS_PYTHON", sys.executable)
HAS_OS_KEN = subprocess.run([PYTHON, "-c", "import os_ken"], capture_output=True, check=False).returncode == 0

pytestmark = pytest.mark.skipif(not HAS_OS_KEN, reason="os-ken is missing: pip install os-ken")

G = 1_000_000
C, D, E, F = (f"02:00:00:00:00:0{letter}" for letter in "cdef")
PLACES = {C: (5, 2), D: (7, 2), E: (6, 2), F: (8, 2)}
CABLES = [
    ((3, 1), (1, 3)),
    ((3, 2), (2, 3)),
    ((4, 1), (1, 4)),
    ((4, 2), (2, 4)),
    ((5, 1), (3, 5)),
    ((6, 1), (3, 6)),
    ((7, 1), (4, 7)),
    ((8, 1), (4, 8)),
]
PATIENCE_S = 60.0
"""Longer than any step takes. Only a failing test waits this long."""

def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    vnics = tmp_path / "vnics.txt"
    vnics.write_text(f"{C} 2G\n{D} 2G\n{E} 10G\n{F} 10G\n")
    port = free_port()
    app = subprocess.Popen(
        [PYTHON, "-B", str(APP), str(port), "--vnics", str(vnics)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.05)
        network = Network(port, CABLES, PLACES, 10 * G)
        yield network
        network.close()
    finally:
        app.kill()
        app.wait()

def until(network: Network, holds: Callable[[], bool], again: Callable[[], None] = lambda: None) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        again()
        network.run(0.3)

def connect(network: Network, source: str, target: str, switches: int = 5) -> list[int]:
    """Hosts exchange frames until rules lead from one to the other."""

    def again() -> None:
        network.send(target, source)
        network.send(source, target)

    until(network, lambda: len(network.path(source, target)) == switches, again)
    return network.path(source, target)

def test_flows_take_the_spine_with_the_most_label_and_move_if_it_falls(network: Network) -> None:
    # Another tenant has 8 Gb/s by s1.
    network.run(3)
    network.tell(3, 1, 2 * G)
    network.tell(1, 4, 2 * G)
    assert connect(network, E, F) == [6, 3, 2, 4, 8]
    # E to F has all of s2, so C to D takes the 2 Gb/s of s1.
    assert connect(network, C, D) == [5, 3, 1, 4, 7]
    assert any(host == F for host, _ in network.received)
    # The other tenant moves to s2. Now E to F gets 8 of 10 Gb/s more by s1.
    network.tell(3, 1, 10 * G)
    network.tell(3, 2, 2 * G)
    network.tell(1, 4, 10 * G)
    network.tell(2, 4, 2 * G)
    until(network, lambda: network.path(E, F) == [6, 3, 1, 4, 8])
    until(network, lambda: network.path(C, D) == [5, 3, 2, 4, 7])

def test_a_flow_that_ended_leaves_its_room_to_others(network: Network) -> None:
    network.run(3)
    first = connect(network, E, F)
    second = connect(network, C, D)
    assert first[2] != second[2], "each has a spine"
    network.expire(E, F)
    network.expire(F, E)
    network.run(0.5)
    network.expire(C, D)
    # What is free is the same on both, so any spine is right; a packet finds a way.
    connect(network, C, D)
