"""The examples, tried without a node."""

import json
import subprocess
import sys
from pathlib import Path

import burnet
import pytest
from block_host import BlockHost
from burnet.testing import Trial
from failed_links import FailedLinks
from firewall import Firewall
from frames import ethernet
from hub import Hub
from learning_switch import LearningSwitch
from test_stream import payload
from to_server import ToServer
from view_objects import host, link, port, switch

EXAMPLES = Path(__file__).parents[1] / "examples"
FLOODED_FROM_1 = "packet-out of:0000000000000001 in_port=1 actions=[output:FLOOD]"


def test_the_hub_sends_each_packet_out_of_every_other_port() -> None:
    trial = Trial(Hub)
    assert trial.packet_in(1, 1, b"a frame") == [FLOODED_FROM_1]
    kept = "packet-out of:0000000000000001 buffer=7 in_port=3 actions=[output:FLOOD]"
    assert trial.packet_in(1, 3, b"fra", buffer_id=7) == [kept]


def test_a_packet_to_the_unknown_goes_out_of_every_other_port() -> None:
    assert Trial(LearningSwitch).packet_in(1, 1, ethernet(2, 1)) == [FLOODED_FROM_1]


def test_a_packet_to_a_known_address_gets_a_rule_and_goes_there() -> None:
    trial = Trial(LearningSwitch, {"idle_timeout_s": 5})
    trial.packet_in(1, 1, ethernet(2, 1))
    rule = (
        "add-rule of:0000000000000001 priority=100 idle=5 hard=0 "
        "match=[in_port=0x2,eth_src=0x20000000002,eth_dst=0x20000000001] actions=[output:1]"
    )
    sent = "packet-out of:0000000000000001 in_port=2 actions=[output:1]"
    assert trial.packet_in(1, 2, ethernet(1, 2)) == [rule, sent]


def test_a_packet_that_the_switch_keeps_goes_through_the_rule() -> None:
    trial = Trial(LearningSwitch)
    trial.packet_in(1, 1, ethernet(2, 1))
    (rule,) = trial.packet_in(1, 2, ethernet(1, 2), buffer_id=77)
    assert rule.startswith("add-rule of:0000000000000001 priority=100 buffer=77")


def test_switches_learn_for_themselves() -> None:
    trial = Trial(LearningSwitch)
    trial.packet_in(2, 2, ethernet(9, 5))
    assert trial.packet_in(1, 1, ethernet(5, 1)) == [FLOODED_FROM_1]


@pytest.mark.parametrize("settings", [{"block": []}, {"blocked": ["10.0.0.300"]}, {"blocked": ["10.0.0.1/8"]}])
def test_the_firewall_refuses_settings_that_it_cannot_keep(settings: dict[str, list[str]]) -> None:
    with pytest.raises(burnet.Refused):
        Trial(Firewall, settings)


def test_the_firewall_drops_what_comes_from_blocked_addresses() -> None:
    trial = Trial(Firewall, {"blocked": ["10.0.0.0/8"]})
    rule = (
        "add-rule of:0000000000000001 priority=40000 "
        "match=[eth_type=0x800,ipv4_src=0xa000000/0xff000000] actions=[]"
    )
    assert trial.switch_up(1, [1, 2]) == [rule]
    (line,) = trial.receipt(1, 1, "failed", "the table is full")
    assert line == "log of:0000000000000001 lets pass what is blocked: the table is full"
    assert trial.receipt(1, 1) == []


def test_the_learning_switch_has_25_lines() -> None:
    lines = (EXAMPLES / "learning_switch.py").read_text().splitlines()
    assert len([line for line in lines if not line.startswith("# ")]) <= 25, "beside its manifest"


def test_an_app_that_no_node_started_says_so_and_ends_with_code_1() -> None:
    ended = subprocess.run(
        [sys.executable, EXAMPLES / "hub.py"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "not started by a Burnet node" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_guides_app_blocks_its_host_in_each_switch() -> None:
    rule = (
        "add-rule of:0000000000000007 priority=20000 "
        "match=[eth_type=0x800,ipv4_src=0xa000004] actions=[]"
    )
    assert Trial(BlockHost, {"address": "10.0.0.4"}).switch_up(7, [1, 2]) == [rule]
    for settings in [{}, {"address": "ten"}]:
        with pytest.raises(burnet.Refused):
            Trial(BlockHost, settings)


def test_each_link_that_fails_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial(FailedLinks)
    trial.view_put(switch(1), switch(2), port(1, 1), port(2, 1), link(1, 1, 2, 1))
    trial.view_put(link(1, 1, 2, 1, state="down"))
    trial.view_put(link(1, 1, 2, 1))
    trial.view_removed("switch/of:2")
    ends = "of:0000000000000001/1 to of:0000000000000002/1"
    assert capsys.readouterr().out.splitlines() == [f"works: {ends}", f"failed: {ends}"] * 2


def test_each_host_is_connected_with_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial(ToServer, {"server": "10.0.0.4"})
    trial.view_put(switch(1), port(1, 1), port(1, 4), host(1, 1, 1, "10.0.0.1"))
    asked = trial.view_put(host(4, 1, 4, "10.0.0.4"))
    (question,) = [json.loads(payload(line)) for line in asked if "paths" in line]
    ends = {"type": "host_to_host", "one": "00:00:00:00:00:01", "two": "00:00:00:00:00:04", "protection": "protected"}
    assert question == {"op": "add", "name": "00:00:00:00:00:01", "intent": ends}
    intent = {"kind": "intent", "id": 1, "owner": "to-server", "name": "00:00:00:00:00:01", "state": "installed",
              "type": "host_to_host", "one": "00:00:00:00:00:01", "two": "00:00:00:00:00:04", "since_ms": 0}
    assert trial.view_put(intent) == [], "only a change of hosts is a reason to ask"
    assert capsys.readouterr().out == "00:00:00:00:00:01: installed\n"
    lines = (EXAMPLES / "to_server.py").read_text().splitlines()
    assert len(lines) <= 40
