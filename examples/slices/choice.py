"""The decisions of a tenant's controller that spreads its flows by the labels of links.

In: OpenFlow 1.0 messages with the field `label`, links, flows, labels. Out: paths and moves. It is pure: it knows no
controller framework, opens no socket and draws no random numbers. `apps/multipath` decides the same in Rust; tests
hold both to the same cases.
"""

import struct
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

GAIN_PERCENT = 20
"""The least gain for which a flow moves, in percent of what it gets on its path."""

STAY_MS = 1_000
"""A flow that has moved stays for this time at least, and up to twice as long by its number.

Until then, all labels that the move has changed are told, and flows that moved together decide one after the other.
"""

FLOWS_MAX = 65_536
"""The most flows that are balanced. A further one still gets a path, but is not counted and never moves."""

PATHS_MAX = 64
"""The most paths between two switches. Further ones are left out."""

UNLIMITED = (1 << 64) - 1
"""What a path without a link has left."""

PORT_BYTES = 52
"""The length of `ofp_phy_port` with the field `label` behind `peer`: 48 bytes in OpenFlow 1.0, and 4."""

FEATURES_BYTES = 32
"""The length of a features reply without ports (OpenFlow 1.0, 5.3.1)."""

STATUS_BYTES = 16
"""The length of a port status before its port (OpenFlow 1.0, 5.4.3)."""

F = TypeVar("F", bound=Hashable)
L = TypeVar("L", bound=Hashable)
Switch: TypeAlias = int
Port: TypeAlias = tuple[Switch, int]
"""A switch and the number of one of its ports. As a link it is the direction that leaves by this port."""
Flow: TypeAlias = tuple[str, str]
"""The MAC addresses of both ends."""

class BadMessage(ValueError):
    """A message whose ports do not have the field `label`."""

def _label(message: bytes, at: int) -> tuple[int, int]:
    """The number of the port at this offset, and its label in kb/s."""
    (number,) = struct.unpack_from("!H", message, at)
    (label,) = struct.unpack_from("!I", message, at + PORT_BYTES - 4)
    return number, label

def labels_of_features(message: bytes) -> dict[int, int]:
    """The labels in a features reply: kb/s by port."""
    ports, rest = divmod(len(message) - FEATURES_BYTES, PORT_BYTES)
    if ports < 0 or rest:
        raise BadMessage(
            f"a features reply of {len(message)} bytes is not {FEATURES_BYTES} and a multiple of {PORT_BYTES}:"
            ' does the slice have labels = "paper"?'
        )
    return dict(_label(message, FEATURES_BYTES + index * PORT_BYTES) for index in range(ports))

def label_of_status(message: bytes) -> tuple[int, int]:
    """The port of a port status, and its label in kb/s."""
    if len(message) != STATUS_BYTES + PORT_BYTES:
        raise BadMessage(
            f"a port status of {len(message)} bytes is not {STATUS_BYTES + PORT_BYTES} long:"
            ' does the slice have labels = "paper"?'
        )
    return _label(message, STATUS_BYTES)

def shortest_paths(links: Iterable[tuple[Port, Port]], start: Switch, end: Switch) -> list[tuple[Port, ...]]:
    """All shortest paths from one switch to another, each as the ports by which it leaves switches."""
    leaving: dict[Switch, list[tuple[Port, Switch]]] = {}
    arriving: dict[Switch, list[Switch]] = {}
    for source, (peer, _) in sorted(links):
        leaving.setdefault(source[0], []).append((source, peer))
        arriving.setdefault(peer, []).append(source[0])
    distances, queue = {end: 0}, deque([end])
    while queue:
        at = queue.popleft()
        for before in arriving.get(at, []):
            if before not in distances:
                distances[before] = distances[at] + 1
                queue.append(before)
    paths: list[tuple[Port, ...]] = []
    unfinished: list[tuple[Switch, tuple[Port, ...]]] = [(start, ())] if start in distances else []
    while unfinished and len(paths) < PATHS_MAX:
        at, path = unfinished.pop()
        if at == end:
            paths.append(path)
            continue
        for port, peer in reversed(leaving.get(at, [])):
            if distances.get(peer) == distances[at] - 1:
                unfinished.append((peer, (*path, port)))
    return paths

def room(path: Sequence[L], label: Callable[[L], int], load: Callable[[L], int]) -> int:
    """What a path has left: the least of label minus own load over its links."""
    return min((max(label(link) - load(link), 0) for link in path), default=UNLIMITED)

@dataclass
class Balancer(Generic[F, L]):
    """The flows of one tenant, and what they put on each link. Rates, labels and loads have the same unit."""

    choose_by_label: bool = True
    flows: dict[F, tuple[int, tuple[L, ...]]] = field(default_factory=dict)
    loads: dict[L, int] = field(default_factory=dict)
    free_ms: dict[F, int] = field(default_factory=dict)
    """From when on flows that moved may move again."""

    def place(
        self, flow: F, rate: int, paths: Sequence[Sequence[L]], number: int, label: Callable[[L], int]
    ) -> int | None:
        """A flow begins, or its path is gone. Returns the index of its path.

        `number` decides among paths that are equally good, and alone if labels are not used: a random number, or a
        hash of the flow.
        """
        self.end(flow)
        if not paths:
            return None
        chosen = number % len(paths)
        if self.choose_by_label:
            chosen, _ = self._best(paths, number, label, lambda _: 0)
        if len(self.flows) < FLOWS_MAX:
            self._add(flow, rate, tuple(paths[chosen]))
        return chosen

    def reconsider(
        self, flow: F, paths: Sequence[Sequence[L]], number: int, now_ms: int, label: Callable[[L], int]
    ) -> int | None:
        """Labels have changed, or a flow may move again. Returns the index of its new path; None if it stays."""
        if not self.choose_by_label or flow not in self.flows or not paths or now_ms < self.free_ms.get(flow, 0):
            return None
        rate, links = self.flows[flow]

        def own(link: L) -> int:
            return rate if link in links else 0

        now = min(rate, room(links, label, lambda link: self.load(link) - own(link)))
        if now >= rate:
            return None
        chosen, left = self._best(paths, number, label, own)
        then = min(rate, left)
        if then <= now or then * 100 < now * (100 + GAIN_PERCENT) or tuple(paths[chosen]) == links:
            return None
        self.end(flow)
        self._add(flow, rate, tuple(paths[chosen]))
        self.free_ms[flow] = now_ms + STAY_MS + number % STAY_MS
        return chosen

    def short(self, label: Callable[[L], int]) -> list[F]:
        """The flows that get less than their rate: those that may move."""

        def is_short(rate: int, links: tuple[L, ...]) -> bool:
            return room(links, label, lambda link: self.load(link) - rate) < rate

        return [flow for flow, (rate, links) in self.flows.items() if is_short(rate, links)]

    def set_rate(self, flow: F, rate: int) -> None:
        """The rate of a flow is another, because its VNICs have more flows or fewer."""
        if flow in self.flows:
            links, free_ms = self.flows[flow][1], self.free_ms.get(flow)
            self.end(flow)
            self._add(flow, rate, links)
            if free_ms is not None:
                self.free_ms[flow] = free_ms

    def end(self, flow: F) -> None:
        """A flow has ended."""
        rate, links = self.flows.pop(flow, (0, ()))
        self.free_ms.pop(flow, None)
        for link in links:
            left = self.loads[link] - rate
            if left:
                self.loads[link] = left
            else:
                del self.loads[link]

    def load(self, link: L) -> int:
        """What the own flows put on a link."""
        return self.loads.get(link, 0)

    def _best(
        self, paths: Sequence[Sequence[L]], number: int, label: Callable[[L], int], own: Callable[[L], int]
    ) -> tuple[int, int]:
        rooms = [room(path, label, lambda link: self.load(link) - own(link)) for path in paths]
        most = max(rooms)
        best = [index for index, left in enumerate(rooms) if left == most]
        return best[number % len(best)], most

    def _add(self, flow: F, rate: int, links: tuple[L, ...]) -> None:
        for link in links:
            self.loads[link] = self.load(link) + rate
        self.flows[flow] = (rate, links)

def expected_rate(flow: Flow, flows: Iterable[Flow], vnics: dict[str, int], unknown: int) -> int:
    """What a flow may expect of the hose: an even part of each VNIC's rate.

    `unknown` is the rate of a VNIC that is not in the list.
    """
    others = [other for other in flows if other != flow]
    sent = 1 + sum(other[0] == flow[0] for other in others)
    received = 1 + sum(other[1] == flow[1] for other in others)
    return min(vnics.get(flow[0], unknown) // sent, vnics.get(flow[1], unknown) // received)

def read_vnics(text: str) -> dict[str, int]:
    """The rates of VNICs in kb/s, from lines of a MAC address and a rate, such as `02:00:00:00:00:01 2.5G`."""
    scales = {"k": 1, "M": 1_000, "G": 1_000_000, "T": 1_000_000_000}
    vnics = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            mac, rate = words
            kbps = round(float(rate[:-1]) * scales[rate[-1]])
            octets = bytes.fromhex(mac.replace(":", ""))
        except (ValueError, KeyError):
            wanted = "write a MAC address and a rate, as in 02:00:00:00:00:01 2.5G"
            raise ValueError(f"line {number}: `{line.strip()}`: {wanted}") from None
        if len(octets) != 6 or kbps < 1:
            raise ValueError(f"line {number}: `{line.strip()}`: the address has 6 bytes, and the rate is at least 1k")
        vnics[octets.hex(":")] = kbps
    return vnics
