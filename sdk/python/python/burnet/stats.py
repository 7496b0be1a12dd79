"""Statistics of switches: what to ask for, and the answers as objects.

    def on_switch_up(self, up, out):
        out.request_stats(up.datapath, stats.Kind.PORT, stats.port_request())

    def on_stats_reply(self, reply, out):
        for port in stats.parse(reply):
            out.log(f"port {port.port_no}: {port.rx_packets} packets came in")

Bodies are those of OpenFlow 1.3 (1.3.5, 7.3.5), whatever the switch speaks. Never asks a switch:
`Commands.request_stats` does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, calcsize, pack, unpack_from
from typing import Protocol, TypeAlias

from burnet._ports import ANY

class Kind(IntEnum):
    """What is asked for (`ofp_multipart_type`)."""

    DESCRIPTION = 0
    FLOW = 1
    AGGREGATE = 2
    TABLE = 3
    PORT = 4
    QUEUE = 5


ALL_TABLES = 0xFF
"""Rules of every table."""

ALL_QUEUES = 0xFFFF_FFFF
"""Every queue."""

UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
"""A count that the switch does not keep."""


class Malformed(ValueError):
    """A body that is not what its kind says: the switch's fault."""


@dataclass(frozen=True)
class Description:
    """Who made a switch, and what it is."""

    manufacturer: str
    hardware: str
    software: str
    serial_number: str
    datapath: str


@dataclass(frozen=True)
class Flow:
    """A rule, with what it matched."""

    table_id: int
    duration_s: float
    priority: int
    idle_timeout_s: int
    hard_timeout_s: int
    flags: int
    cookie: int
    """The app's own part of it."""
    owner: int
    """The zone that it belongs to."""
    packet_count: int
    byte_count: int
    matching: bytes
    """The fields as they are on the wire (`ofp_match` without its head and padding)."""
    instructions: bytes


@dataclass(frozen=True)
class Aggregate:
    """Many rules together."""

    packet_count: int
    byte_count: int
    flow_count: int


@dataclass(frozen=True)
class Table:
    """A table."""

    table_id: int
    active_count: int
    lookup_count: int
    matched_count: int


@dataclass(frozen=True)
class Port:
    """What passed a port. A count that the switch does not keep is `UNKNOWN`."""

    port_no: int
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_dropped: int
    tx_dropped: int
    rx_errors: int
    tx_errors: int
    rx_frame_errors: int
    rx_over_errors: int
    rx_crc_errors: int
    collisions: int
    duration_s: float


@dataclass(frozen=True)
class Queue:
    """What passed a queue of a port."""

    port_no: int
    queue_id: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    duration_s: float


Entry: TypeAlias = Description | Flow | Aggregate | Table | Port | Queue


class Reply(Protocol):
    """What is read of a `burnet.StatsReply`."""

    @property
    def multipart(self) -> int:
        """The kind."""

    @property
    def body(self) -> bytes:
        """The body."""


def flow_request(table_id: int = ALL_TABLES) -> bytes:
    """The body of a request for all rules of a table, or of all tables; for `Kind.FLOW` and `Kind.AGGREGATE`."""
    return pack("!B3xII4xQQHH4x", table_id, ANY, ANY, 0, 0, 1, 4)


def port_request(port_no: int = ANY) -> bytes:
    """The body of a request for `Kind.PORT`, of one port or of all."""
    return pack("!I4x", port_no)


def queue_request(port_no: int = ANY, queue_id: int = ALL_QUEUES) -> bytes:
    """The body of a request for `Kind.QUEUE`."""
    return pack("!II", port_no, queue_id)


def parse(reply: Reply) -> list[Entry]:
    """Reads the body of a reply, or of a part of one.

    Raises `Malformed` if the switch sent what is none, and `ValueError` for a kind that is not read here.
    """
    match reply.multipart:
        case Kind.DESCRIPTION:
            return [_description(reply.body)]
        case Kind.FLOW:
            return list(_flows(reply.body))
        case Kind.AGGREGATE:
            return [Aggregate(*_only(_AGGREGATE, reply.body))]
        case Kind.TABLE:
            return [Table(*entry) for entry in _each(_TABLE, reply.body)]
        case Kind.PORT:
            return [_timed(Port, entry) for entry in _each(_PORT, reply.body)]
        case Kind.QUEUE:
            return [_timed(Queue, entry) for entry in _each(_QUEUE, reply.body)]
    raise ValueError(f"statistics of kind {reply.multipart} are not read here: read the body yourself")


_DESCRIPTION = Struct("!256s256s256s32s256s")
_FLOW = Struct("!HBxIIHHHH4xQQQ")
_MATCH = Struct("!HH")
_AGGREGATE = Struct("!QQI4x")
_TABLE = Struct("!B3xIQQ")
_PORT = Struct("!I4x12QII")
_QUEUE = Struct("!IIQQQII")

_OWN_COOKIE = (1 << 48) - 1


def _seconds(seconds: int, nanoseconds: int) -> float:
    return float(seconds) + nanoseconds / 1e9


def _timed(make: Callable[..., Entry], entry: tuple[int, ...]) -> Entry:
    *counts, seconds, nanoseconds = entry
    return make(*counts, _seconds(seconds, nanoseconds))


def _only(form: Struct, body: bytes) -> tuple[int, ...]:
    if len(body) != form.size:
        raise Malformed(f"a body of {form.size} bytes was expected, and {len(body)} came")
    return form.unpack(body)


def _each(form: Struct, body: bytes) -> Iterator[tuple[int, ...]]:
    if len(body) % form.size:
        raise Malformed(f"{len(body)} bytes are no whole number of entries of {form.size}")
    return form.iter_unpack(body)


def _description(body: bytes) -> Description:
    if len(body) != _DESCRIPTION.size:
        raise Malformed(f"a body of {_DESCRIPTION.size} bytes was expected, and {len(body)} came")
    texts = (text.split(b"\0", 1)[0].decode(errors="replace") for text in _DESCRIPTION.unpack(body))
    return Description(*texts)


def _flows(body: bytes) -> Iterator[Flow]:
    while body:
        length = unpack_from("!H", body)[0] if len(body) >= calcsize("!H") else 0
        if not _FLOW.size + _MATCH.size <= length <= len(body):
            raise Malformed(f"an entry of {length} bytes in {len(body)}")
        yield _flow(body[:length])
        body = body[length:]


def _flow(entry: bytes) -> Flow:
    _, table, s, ns, priority, idle, hard, flags, cookie, packets, octets = _FLOW.unpack_from(entry)
    _, match_length = _MATCH.unpack_from(entry, _FLOW.size)
    # The match is padded to a multiple of eight bytes (1.3.5, 7.2.3.1).
    instructions = _FLOW.size + (match_length + 7) // 8 * 8
    if match_length < _MATCH.size or instructions > len(entry):
        raise Malformed(f"a match of {match_length} bytes in an entry of {len(entry)}")
    return Flow(
        table_id=table,
        duration_s=_seconds(s, ns),
        priority=priority,
        idle_timeout_s=idle,
        hard_timeout_s=hard,
        flags=flags,
        cookie=cookie & _OWN_COOKIE,
        owner=cookie >> 48,
        packet_count=packets,
        byte_count=octets,
        matching=entry[_FLOW.size + _MATCH.size : _FLOW.size + match_length],
        instructions=entry[instructions:],
    )
