"""An app and its events."""

from typing import Any

import burnet
import pytest
from burnet.testing import Trial
from frames import arp, ethernet

class Hearing(burnet.App):
    """Keeps what it receives."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.heard: list[Any] = []

    def on_switch_up(self, up: burnet.SwitchUp, out: burnet.Commands) -> None:
        self.heard.append((up.datapath, [port.name for port in up.ports]))

    def on_packet_in(self, packet: burnet.PacketIn, out: burnet.Commands) -> None:
        self.heard.append(packet)

    def on_port_status(self, status: burnet.PortStatus, out: burnet.Commands) -> None:
        self.heard.append((status.reason, status.port.port_no, status.port.live))

    def on_flow_removed(self, removed: burnet.FlowRemoved, out: burnet.Commands) -> None:
        self.heard.append((removed.cookie, removed.matching))

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.heard.append(now_ms)

    def on_shutdown(self, out: burnet.Commands) -> None:
        self.heard.append("shutdown")


def packet(data: bytes) -> burnet.PacketIn:
    """How an app sees this frame."""
    trial = Trial(Hearing)
    trial.packet_in(1, 3, data)
    (heard,) = trial.app.heard
    assert isinstance(heard, burnet.PacketIn)
    return heard


@pytest.mark.parametrize("length", range(15))
def test_a_frame_cut_anywhere_is_read_as_far_as_it_goes(length: int) -> None:
    whole = ethernet(1, 2)
    cut = packet(whole[:length])
    assert cut.data == whole[:length]
    assert cut.eth_dst == ("02:00:00:00:00:01" if length >= 6 else "00:00:00:00:00:00")
    assert cut.eth_src == ("02:00:00:00:00:02" if length >= 12 else "00:00:00:00:00:00")
    assert cut.eth_type == (0x0800 if length >= 14 else 0)
    assert cut.fields()["in_port"] == 3


def test_a_packet_is_read_by_the_names_of_the_fields() -> None:
    asked = packet(arp(1, 2))
    assert (asked.eth_type, asked.field("arp_op"), asked.field("arp_tpa")) == (0x0806, 1, "10.0.0.2")
    assert asked.field("ipv4_dst") is None
    assert asked.fields()["arp_sha"] == "02:00:00:00:00:01"
    with pytest.raises(TypeError, match="there is no field arp_tap"):
        asked.field("arp_tap")


def test_the_type_behind_vlan_tags_is_found() -> None:
    tagged = packet(ethernet(1, 2, 0x88A8, bytes([0, 5, 0x81, 0, 0, 6, 8, 6])))
    assert tagged.eth_type == 0x0806


def test_a_packet_outlives_its_event() -> None:
    trial = Trial(Hearing)
    for number in range(3):
        trial.packet_in(number, 1, ethernet(number, 9))
    assert [kept.data[5] for kept in trial.app.heard] == [0, 1, 2]
    with pytest.raises(AttributeError):
        trial.app.heard[0].in_port = 2


def test_events_say_what_happened() -> None:
    trial = Trial(Hearing)
    trial.switch_up(1, [1, 2])
    trial.port_status(1, 2, live=False)
    trial.flow_removed(1, cookie=7, eth_type=0x0800, ipv4_dst="10.0.0.0/8")
    trial.tick(1000)
    trial.shutdown()
    removed = (7, {"eth_type": 0x0800, "ipv4_dst": ("10.0.0.0", "255.0.0.0")})
    assert trial.app.heard == [(1, ["port1", "port2"]), (2, 2, False), removed, 1000, "shutdown"]


def test_a_match_that_went_can_be_said_again() -> None:
    class Stubborn(burnet.App):
        def on_flow_removed(self, removed: burnet.FlowRemoved, out: burnet.Commands) -> None:
            out.rule(removed.datapath).matching(**removed.matching).send()

    (line,) = Trial(Stubborn).flow_removed(1, eth_type=0x0800, ipv4_dst="10.0.0.0/8")
    assert "match=[eth_type=0x800,ipv4_dst=0xa000000/0xff000000]" in line


def test_settings_are_the_operators() -> None:
    assert Trial(burnet.App, {"idle": [1, "two"]}).app.settings == {"idle": [1, "two"]}
    assert Trial(burnet.App).app.settings == {}


def test_what_a_handler_raises_comes_to_the_test() -> None:
    class Broken(burnet.App):
        def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
            raise KeyError(now_ms)

    with pytest.raises(KeyError):
        Trial(Broken).tick(1)


def test_interests_that_are_none_are_refused_at_the_start() -> None:
    class Vague(burnet.App):
        def interests(self) -> Any:
            return "everything"

    with pytest.raises(TypeError):
        Trial(Vague)


def test_an_experimenter_message_comes_with_its_numbers_and_its_data() -> None:
    class Listens(burnet.App):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().experimenters()

        def on_experimenter(self, message: burnet.Experimenter, out: burnet.Commands) -> None:
            text = f"{message.datapath} {message.experimenter:#x} {message.exp_type}"
            out.publish("heard", text.encode() + message.data)

    (said,) = Trial(Listens).experimenter(1, 0x2320, 7, b"!")
    assert "heard" in said


def test_labels_of_a_slice_come_as_labels() -> None:
    heard: list[object] = []

    class Listens(burnet.App):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().experimenters()

        def on_experimenter(self, message: burnet.Experimenter, out: burnet.Commands) -> None:
            heard.append(message.data)

        def on_labels(self, labels: burnet.Labels, out: burnet.Commands) -> None:
            told = [(it.port, it.label_kbps, it.capacity_kbps) for it in labels.labels]
            heard.append((labels.datapath, labels.is_stale, told))

    trial = Trial(Listens)
    trial.experimenter(5, 0x627572, 2, bytes.fromhex("00010000 00000003 000007d0 00002710 00000000"))
    trial.experimenter(5, 0x627572, 2, bytes.fromhex("00000000 00000003 ffffffff 00000000 00000000"))
    trial.experimenter(5, 0x627572, 2, b"rubbish")
    assert heard == [(5, True, [(3, 2000, 10000)]), (5, False, [(3, None, None)]), b"rubbish"]


def test_interests_are_added_up() -> None:
    wanted = burnet.Interests().packets_within(eth_type=0x0806).switches().ports().flow_removed().topics().ticks()
    assert isinstance(wanted, burnet.Interests)
    with pytest.raises(TypeError, match="there is no field port"):
        burnet.Interests().packets_within(port=1)


def test_packets_within_twice_means_within_either() -> None:
    class Choosy(Hearing):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().packets_within(eth_type=0x0806).packets_within(in_port=7, eth_type=0x0800)

    trial = Trial(Choosy)
    trial.packet_in(1, 3, arp(1, 2))
    trial.packet_in(1, 3, ethernet(2, 1))
    trial.packet_in(1, 7, ethernet(2, 1))
    trial.packet_in(1, 7, ethernet(2, 1, 0x86DD))
    assert [(packet.in_port, packet.eth_type) for packet in trial.app.heard] == [(3, 0x0806), (7, 0x0800)]


def test_every_packet_is_every_packet_whatever_else_is_asked_for() -> None:
    class All(Hearing):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().packets_within(eth_type=0x0806).packets().packets_within(eth_type=0x88CC)

    trial = Trial(All)
    trial.packet_in(1, 3, ethernet(2, 1))
    assert len(trial.app.heard) == 1


def test_numbers_have_names_and_stay_numbers() -> None:
    trial = Trial(Hearing)
    trial.packet_in(1, 3, arp(1, 2))
    (packet,) = trial.app.heard
    assert packet.reason == burnet.PacketInReason.NO_MATCH
    assert burnet.RemovedReason(2).name == "DELETE"
    assert int(burnet.FLOOD) == 0xFFFF_FFFB
    assert int(burnet.Quota.STORE_BYTES) == 10
