"""What the tenant's controller decides, without a controller framework."""

import json
import random
import struct
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

from choice import (  # noqa: E402
    STAY_MS,
    BadMessage,
    Balancer,
    expected_rate,
    label_of_status,
    labels_of_features,
    read_vnics,
    shortest_paths,
)

CASES = HERE.parents[3] / "apps/multipath/tests/cases.json"

def port(number: int, label: int) -> bytes:
    """A port as the paper has it: nine fields of OpenFlow 1.0, then the label."""
    return struct.pack("!H6s16sIIIIIII", number, b"\2\0\0\0\0\1", b"eth0", 0, 0, 0, 0, 0, 0, label)

def cable(one: tuple[int, int], two: tuple[int, int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [(one, two), (two, one)]

FIGURE_1 = [
    link
    for ends in [
        ((3, 1), (1, 1)),
        ((3, 2), (2, 1)),
        ((4, 1), (1, 2)),
        ((4, 2), (2, 2)),
        ((5, 1), (3, 3)),
        ((7, 1), (4, 3)),
    ]
    for link in cable(*ends)
]

def test_labels_are_behind_the_ports_of_the_standard() -> None:
    assert len(port(1, 0)) == 52
    header = struct.pack("!BBHI", 1, 6, 32 + 2 * 52, 1) + bytes(24)
    assert labels_of_features(header + port(1, 2_000_000) + port(65534, 7)) == {1: 2_000_000, 65534: 7}
    status = struct.pack("!BBHIB7x", 1, 12, 68, 1, 2)
    assert label_of_status(status + port(3, 10_000_000)) == (3, 10_000_000)

def test_messages_without_labels_are_refused() -> None:
    for damaged in [b"", bytes(31), bytes(32 + 48), bytes(32 + 51)]:
        with pytest.raises(BadMessage):
            labels_of_features(damaged)
    for damaged in [b"", bytes(64), bytes(69)]:
        with pytest.raises(BadMessage, match="port status"):
            label_of_status(damaged)

def test_the_servers_of_figure_1_have_two_paths() -> None:
    paths = shortest_paths(FIGURE_1, 5, 7)
    assert sorted(paths) == [((5, 1), (3, 1), (1, 2), (4, 3)), ((5, 1), (3, 2), (2, 2), (4, 3))]
    assert shortest_paths(FIGURE_1, 5, 5) == [()]
    assert shortest_paths(FIGURE_1, 5, 99) == []

def test_figure_2_is_what_the_blue_tenant_does() -> None:
    labels = {"s3-s1": 2, "s3-s2": 10}
    blue: Balancer[str, str] = Balancer()
    paths = [["s3-s1"], ["s3-s2"]]
    assert blue.place("E-F", 10, paths, 0, labels.__getitem__) == 1
    assert blue.place("C-D", 2, paths, 0, labels.__getitem__) == 0

@pytest.mark.parametrize(
    ("now", "then", "moves"),
    [(0, 0, None), (0, 1, 1), (40, 50, 1), (40, 47, None), (40, 48, 1), (50, 100, None), (45, 100, None)],
)
def test_a_flow_moves_only_if_it_gets_a_fifth_more(now: int, then: int, moves: int | None) -> None:
    tenant: Balancer[str, int] = Balancer()
    paths = [[1], [2]]
    assert tenant.place("flow", 50, paths, 0, {1: 100, 2: 0}.__getitem__) == 0
    assert tenant.reconsider("flow", paths, 0, 0, {1: now, 2: then}.__getitem__) == moves

@pytest.mark.parametrize("number", [0, 250, 1_250])
def test_a_flow_that_moved_stays_for_a_second_and_more_by_its_number(number: int) -> None:
    tenant: Balancer[str, int] = Balancer()
    paths = [[1], [2]]
    tenant.place("flow", 5, paths, 0, {1: 9, 2: 0}.__getitem__)
    assert tenant.reconsider("flow", paths, number, 100, {1: 0, 2: 9}.__getitem__) == 1
    free_ms = 100 + STAY_MS + number % STAY_MS
    assert tenant.reconsider("flow", paths, number, free_ms - 1, {1: 9, 2: 0}.__getitem__) is None
    assert tenant.reconsider("flow", paths, number, free_ms, {1: 9, 2: 0}.__getitem__) == 0

def test_random_and_hash_know_no_label_and_never_move() -> None:
    tenant: Balancer[int, int] = Balancer(choose_by_label=False)
    assert [tenant.place(number, 1, [[1], [2]], number, lambda _: 0) for number in range(4)] == [0, 1, 0, 1]
    assert tenant.reconsider(0, [[1], [2]], 1, 0, {1: 0, 2: 9}.__getitem__) is None

def test_loads_are_sums_and_choices_are_best() -> None:
    draws = random.Random(3)
    for _ in range(200):
        tenant: Balancer[int, int] = Balancer()
        for _ in range(30):
            labels = {link: draws.randrange(12) for link in range(8)}
            paths = [sorted(draws.sample(range(8), draws.randint(1, 3))) for _ in range(draws.randint(1, 4))]
            flow, rate = draws.randrange(6), draws.randint(1, 5)
            tenant.end(flow)
            loads = {link: sum(rate for rate, links in tenant.flows.values() if link in links) for link in range(8)}
            assert all(tenant.load(link) == loads[link] for link in range(8))
            rooms = [min(max(labels[link] - loads[link], 0) for link in path) for path in paths]
            chosen = tenant.place(flow, rate, paths, draws.randrange(9), labels.__getitem__)
            assert chosen is not None
            assert rooms[chosen] == max(rooms)
            assert set(tenant.short(labels.__getitem__)) == {
                flow
                for flow, (rate, links) in tenant.flows.items()
                if any(labels[link] - tenant.load(link) + rate < rate for link in links)
            }

def test_the_app_in_rust_decides_the_same() -> None:
    for case in json.loads(CASES.read_text()):
        tenant: Balancer[int, int] = Balancer(choose_by_label=case["by_label"])
        for step in case["steps"]:
            flow, paths, number, label = step["flow"], step["paths"], step["number"], step["labels"].__getitem__
            if step["what"] == "place":
                chosen = tenant.place(flow, step["rate"], paths, number, label)
            else:
                chosen = tenant.reconsider(flow, paths, number, step["now_ms"], label)
            assert chosen == step["chosen"], step

def test_flows_of_a_vnic_share_its_rate() -> None:
    vnics = {"a": 8, "b": 6}
    assert expected_rate(("a", "b"), [], vnics, 10) == 6
    assert expected_rate(("a", "b"), [("a", "b"), ("a", "c")], vnics, 10) == 4
    assert expected_rate(("c", "d"), [], vnics, 10) == 10

def test_rates_of_vnics_are_lines() -> None:
    text = "# red\n02:00:00:00:00:01 8G\n\n02:00:00:00:00:0B 2.5M  # blue\n"
    assert read_vnics(text) == {"02:00:00:00:00:01": 8_000_000, "02:00:00:00:00:0b": 2_500}
    for wrong in ["02:00:00:00:00:01", "02:00:00:00:00:01 8", "02:00:00:00:01 8G", "x 8G", "02:00:00:00:00:01 0k"]:
        with pytest.raises(ValueError, match="line 2"):
            read_vnics("\n" + wrong)
