"""How an app follows the network view."""

import json
from ipaddress import ip_address
from typing import Any

import burnet
import pytest
from burnet.testing import Trial
from test_stream import payload
from view_objects import host, link, port, switch

class Watching(burnet.App):
    """Keeps what it receives."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.heard: list[str] = []
        self.ticks = 0

    def interests(self) -> burnet.Interests:
        return burnet.Interests().view("link", "host")

    def on_view(self, changes: list[burnet.view.Change], view: burnet.view.View, out: burnet.Commands) -> None:
        self.heard.append(" ".join(f"{change.what}:{change.key}" for change in changes))
        self.view = view
        assert len(out.view.switches) == len(view.switches)

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.ticks += 1


class Discovery(burnet.App):
    """A service that publishes records of the view; a tick sends what a test has put into its table."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.table = burnet.Table()
        self.sequence = 0

    def put(self, key: str, object: dict[str, Any]) -> None:
        self.sequence += 1
        stamp = {"term": 1, "sequence": self.sequence, "origin": 0}
        self.table.put(key.encode(), json.dumps({"stamp": stamp, "object": object}).encode())

    def on_query(self, query: burnet.Query, out: burnet.Commands) -> None:
        self.table.follow(query, out)

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.table.send(out)


def test_a_kind_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of object"):
        burnet.Interests().view("lnik")


def test_objects_are_typed_and_found_by_what_they_belong_to() -> None:
    trial = Trial(Watching)
    trial.view_put(switch(1), switch(2), port(1, 1), port(2, 1), port(2, 9))
    trial.view_put(link(1, 1, 2, 1), host(5, 2, 9, "10.0.0.5"))
    view = trial.app.view
    assert [it.datapath for it in view.switches] == [1, 2]
    assert view.switches[0].is_up and view.switches[0].openflow == "1.3"
    assert [str(it.at) for it in view.ports] == [
        "of:0000000000000001/1",
        "of:0000000000000002/1",
        "of:0000000000000002/9",
    ]
    (found,) = view.links
    assert found.src == burnet.view.ConnectPoint(1, 1) and found.dst.switch == 2
    assert found.is_up and found.found == "direct" and found.latency_us is None
    (station,) = view.hosts
    assert station.mac == "00:00:00:00:00:05" and station.addresses == [ip_address("10.0.0.5")]
    assert view.count("port") == 3 and view.get("link/of:1/1-of:2/1") is not None
    assert len(view.ports_of(2)) == 2 and view.port(2, 9) is not None and view.port(2, 8) is None
    assert len(view.links_from(1)) == len(view.links_from(1, 1)) == len(view.links_to("of:2")) == 1
    assert view.links_to(1) == [] and view.has_link(2, 1) and not view.has_link(2, 9)
    assert len(view.hosts_at(2)) == len(view.hosts_at(2, 9)) == 1 and view.hosts_at(2, 1) == []
    assert len(view.hosts_with_address("10.0.0.5")) == 1 and view.hosts_with_address(ip_address("10.0.0.6")) == []
    assert len(view.hosts_with_mac("00:00:00:00:00:05")) == 1 and view.host("00:00:00:00:00:05") is not None
    with pytest.raises(ValueError, match="no IP address"):
        view.hosts_with_address("10.0.0")


def test_a_state_that_the_app_keeps_does_not_change() -> None:
    trial = Trial(Watching)
    trial.view_put(switch(1), port(1, 1), port(1, 2), link(1, 1, 1, 2))
    kept = trial.app.view
    trial.view_removed("port/of:1/2")
    assert len(kept.links) == 1 and trial.app.view.links == []
    assert trial.app.heard[-1] == (
        "invisible:link/of:0000000000000001/1-of:0000000000000001/2 invisible:port/of:0000000000000001/2"
    )


def test_the_view_follows_a_service_and_its_successor() -> None:
    class Following(Watching):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().view("port")

        def on_start(self, out: burnet.Commands) -> None:
            # The SDK has opened the stream of the view just before. A second one has the next ticket.
            self.ticket = out.follow("discovery") - 1

    app, service = Trial(Following), Trial(Discovery)
    service.app.put("switch/1", switch(1))
    service.app.put("port/of:1/1", port(1, 1))
    for line in service.query(7, stream=True):
        app.query_reply(app.app.ticket, payload(line), more=True)
    assert app.app.heard == ["visible:switch/of:0000000000000001 visible:port/of:0000000000000001/1"]
    service.app.put("port/of:1/1", port(1, 1, live=False))
    for line in service.tick(1):
        app.query_reply(app.app.ticket, payload(line), more=True)
    assert app.app.heard[1:] == ["changed:port/of:0000000000000001/1"]
    (warned,) = app.query_reply(app.app.ticket, b"", int(burnet.QueryStatus.SERVICE_GONE))
    assert "no changes from the service discovery: it ended; next attempt in 500 ms" in warned
    (asked,) = app.tick(100_000)
    assert "discovery" in asked and "form: Stream" in asked
    assert app.app.ticks == 0 and len(app.app.view.ports) == 1
