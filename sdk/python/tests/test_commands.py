"""What handlers command, and what is refused where it is said."""

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Address
from typing import Any

import burnet
import pytest
from burnet.testing import Trial

def commanded(give: Callable[[burnet.Commands], object]) -> list[str]:
    """What an app commands whose only handler is this."""

    class Once(burnet.App):
        def on_switch_down(self, datapath: int, out: burnet.Commands) -> None:
            give(out)

    return Trial(Once).switch_down(1)


def match(**fields: Any) -> str:
    (line,) = commanded(lambda out: out.rule(1).matching(**fields).send())
    return line.split("match=")[1].split(" ")[0]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"eth_dts": 1}, "there is no field eth_dts"),
        ({"in_port": -1}, "in_port: -1 is not a number"),
        ({"in_port": 1 << 32}, "wider than 32 bits"),
        ({"eth_type": 0x10000}, "wider than 16 bits"),
        ({"ipv6_src": 1 << 128}, "ipv6_src: "),
        ({"eth_type": (1, 1)}, "eth_type takes no mask"),
        ({"eth_dst": "10.0.0.1"}, "expected an Ethernet address"),
        ({"eth_dst": b"\x01"}, "eth_dst takes 6 bytes, not 1"),
        ({"ipv4_src": "10.0.0.1/33"}, "a prefix has at most 32 bits"),
        ({"ipv4_src": (1, 2, 3)}, "expected tuple of length 2"),
        ({"ipv4_src": None}, "found 'None'"),
        ({"ip_proto": 6.0}, "found '6.0'"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError), match=reason):
        match(**fields)


def test_a_field_is_in_a_match_once() -> None:
    with pytest.raises(ValueError, match="in_port is in the match twice"):
        commanded(lambda out: out.rule(1).matching(in_port=1).matching(in_port=2))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "[]"),
        ({"in_port": 3}, "[in_port=0x3]"),
        ({"in_port": "LOCAL"}, "[in_port=0xfffffffe]"),
        ({"eth_dst": "02:00:00:00:00:01"}, "[eth_dst=0x20000000001]"),
        ({"eth_dst": b"\2\0\0\0\0\1"}, "[eth_dst=0x20000000001]"),
        ({"eth_dst": ("01:00:00:00:00:00", 1 << 40)}, "[eth_dst=0x10000000000/0x10000000000]"),
        ({"ipv4_src": "10.0.0.0/8"}, "[ipv4_src=0xa000000/0xff000000]"),
        ({"ipv4_src": IPv4Network("10.0.0.0/8")}, "[ipv4_src=0xa000000/0xff000000]"),
        ({"ipv6_dst": IPv6Address("::1")}, "[ipv6_dst=0x1]"),
        ({"ipv6_dst": (1 << 128) - 1}, "[ipv6_dst=0xffffffffffffffffffffffffffffffff]"),
    ],
)
def test_a_field_is_said_as_one_likes(fields: dict[str, Any], expected: str) -> None:
    assert match(**fields) == expected


def test_actions_are_in_the_order_in_which_they_are_said() -> None:
    (line,) = commanded(lambda out: out.rule(1).actions("dec_ttl").set_field(eth_dst=1).output(2).output("ALL").send())
    assert line.endswith("actions=[DecNwTtl,SetField { field: EthDst, value: 1 },output:2,output:ALL]")


def test_actions_that_are_none_are_refused_by_their_word() -> None:
    with pytest.raises(ValueError, match="outptu"):
        commanded(lambda out: out.rule(1).actions("outptu:1"))
    with pytest.raises(ValueError, match="takes no mask here"):
        commanded(lambda out: out.packet_out(1).set_field(ipv4_dst="10.0.0.0/8"))  # type: ignore[arg-type,unused-ignore]


def test_nothing_is_commanded_before_it_is_sent() -> None:
    assert commanded(lambda out: out.rule(1).output(1)) == []
    assert commanded(lambda out: out.packet_out(1).output(1)) == []


def test_two_rules_at_once_do_not_mix() -> None:
    def give(out: burnet.Commands) -> None:
        one, two = out.rule(1).priority(1), out.rule(2).priority(2)
        two.output(2).send()
        one.output(1).send()

    assert commanded(give) == [
        "add-rule of:0000000000000002 priority=2 match=[] actions=[output:2]",
        "add-rule of:0000000000000001 priority=1 match=[] actions=[output:1]",
    ]


def test_a_delete_says_which_rules() -> None:
    (one,) = commanded(lambda out: out.rule(1).matching(in_port=1).delete().send())
    assert one.startswith("delete-strict-rule of:0000000000000001")
    (within,) = commanded(lambda out: out.rule("of:0000000000000001").delete_within().send())
    assert within.startswith("delete-rule of:0000000000000001")


def test_tickets_count_up_and_receipts_name_them() -> None:
    tickets: list[int] = []
    commanded(lambda out: tickets.extend([out.rule(1).send_with_receipt(), out.barrier(1), out.query("paths", b"?")]))
    # Of a call the upper bits say by which worker it goes.
    assert [ticket & 0xFFFF for ticket in tickets] == [1, 2, 3]
    assert tickets[:2] == [1, 2]


def test_a_command_longer_than_a_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit a frame"):
        commanded(lambda out: out.publish("topic", bytes(1 << 20)))
    with pytest.raises(ValueError, match="65527 bytes"):
        commanded(lambda out: out.rule(1).actions(",".join(["output:1"] * 5000)).send())


def test_datapath_ids_are_read_and_shown() -> None:
    assert burnet.show_datapath(1) == "of:0000000000000001"
    assert {burnet.read_datapath(text) for text in ("1", "0x1", "00:00:00:00:00:00:00:01", "of:01")} == {1}
    with pytest.raises(ValueError):
        burnet.read_datapath("switch one")


@pytest.mark.parametrize("text", ["2-0-0-0-0-1", "2:0:0:0:0:1", "02:00:00:00:00:01", "02-00-00-00-00-01"])
def test_an_address_is_read_in_each_of_its_forms(text: str) -> None:
    assert match(eth_dst=text) == "[eth_dst=0x20000000001]"


@pytest.mark.parametrize("text", ["02:00:00:00:00:0g", "02:00:00:00:0001:", "02:00:00:00:00:01:", "0x2000000000000:"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="eth_dst: expected an Ethernet address"):
        match(eth_dst=text)


def test_an_app_is_woken_once_for_the_time_that_it_asked_for_last() -> None:
    class Waking(burnet.App):
        def on_start(self, out: burnet.Commands) -> None:
            out.wake_after(3600)
            out.wake_after(0.5)

        def on_wake(self, out: burnet.Commands) -> None:
            out.publish("woken", b"")

    trial = Trial(Waking)
    woken = trial.wake()
    assert woken is not None and len(woken) == 1
    assert trial.wake() is None


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_time_that_does_not_come_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds: "):
        commanded(lambda out: out.wake_after(seconds))
