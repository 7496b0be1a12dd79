"""The bodies of statistics, and what is made of them."""

from dataclasses import dataclass
from struct import pack

import pytest
from burnet import stats
from burnet.stats import Kind

@dataclass
class Reply:
    multipart: int
    body: bytes


FLOW = pack("!HBxIIHHHH4xQQQ", 88, 3, 60, 500_000_000, 100, 30, 0, 1, 5 << 48 | 7, 11, 1100)
MATCH = pack("!HH", 1, 12) + bytes.fromhex("8000000400000001") + bytes(4)
OUTPUT = bytes.fromhex("0004001800000000" "0000001000000002ffff000000000000")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Kind.FLOW, b"\0"),
        (Kind.FLOW, FLOW),
        (Kind.FLOW, FLOW + MATCH),
        (Kind.FLOW, pack("!H", 0) + FLOW[2:] + MATCH + OUTPUT),
        (Kind.FLOW, FLOW + pack("!HH", 1, 80) + bytes(36)),
        (Kind.FLOW, FLOW + pack("!HH", 1, 0) + bytes(36)),
        (Kind.PORT, bytes(111)),
        (Kind.TABLE, bytes(25)),
        (Kind.QUEUE, bytes(1)),
        (Kind.AGGREGATE, b""),
        (Kind.DESCRIPTION, bytes(1055)),
    ],
)
def test_what_a_switch_sends_damaged_is_refused(kind: int, body: bytes) -> None:
    with pytest.raises(stats.Malformed):
        stats.parse(Reply(kind, body))


def test_a_kind_that_is_not_read_is_named() -> None:
    with pytest.raises(ValueError, match="kind 9 are not read"):
        stats.parse(Reply(9, b""))


def test_a_rule_is_read_with_its_owner() -> None:
    assert len(FLOW + MATCH + OUTPUT) == 88
    first, second = stats.parse(Reply(Kind.FLOW, (FLOW + MATCH + OUTPUT) * 2))
    assert first == second
    assert isinstance(first, stats.Flow)
    assert (first.table_id, first.priority, first.duration_s, first.packet_count) == (3, 100, 60.5, 11)
    assert (first.owner, first.cookie) == (5, 7)
    assert first.matching == bytes.fromhex("8000000400000001")
    assert first.instructions == OUTPUT


def test_ports_tables_queues_sums_and_descriptions_are_read() -> None:
    port = pack("!I4x12QII", 2, *range(1, 13), 9, 250_000_000)
    (read,) = stats.parse(Reply(Kind.PORT, port))
    assert isinstance(read, stats.Port)
    assert (read.port_no, read.rx_packets, read.tx_bytes, read.collisions) == (2, 1, 4, 12)
    assert read.duration_s == 9.25
    assert stats.parse(Reply(Kind.TABLE, pack("!B3xIQQ", 1, 2, 3, 4))) == [stats.Table(1, 2, 3, 4)]
    assert stats.parse(Reply(Kind.AGGREGATE, pack("!QQI4x", 1, 2, 3))) == [stats.Aggregate(1, 2, 3)]
    assert stats.parse(Reply(Kind.QUEUE, pack("!IIQQQII", 1, 2, 3, 4, 5, 6, 0))) == [stats.Queue(1, 2, 3, 4, 5, 6.0)]
    texts = pack("!256s256s256s32s256s", b"maker", b"box", b"1.0", b"7", b"s1")
    assert stats.parse(Reply(Kind.DESCRIPTION, texts)) == [stats.Description("maker", "box", "1.0", "7", "s1")]


def test_requests_have_the_form_of_openflow_1_3() -> None:
    assert len(stats.flow_request()) == 40
    assert stats.flow_request(3)[0] == 3
    assert stats.port_request() == bytes.fromhex("ffffffff00000000")
    assert stats.queue_request(1, 2) == bytes.fromhex("0000000100000002")
