"""How an app follows a stream, and how a service offers one."""

import re

import burnet
from burnet.testing import Trial

class Following(burnet.App):
    """Follows a service from the first tick on, and keeps what it receives."""

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.heard: list[str] = []
        self.ticket = out.follow("hosts", b"all")

    def on_stream(self, update: burnet.StreamUpdate, out: burnet.Commands) -> None:
        assert update.ticket == self.ticket
        words = [update.kind, str(update.number), update.key.decode(), update.value.decode(), str(update.missed)]
        self.heard.append(" ".join(words))
        if update.key == b"enough":
            out.cancel(update.ticket)


class Serving(burnet.App):
    """A service with one table; a tick changes it."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.table = burnet.Table()
        self.table.put(b"a", b"1")

    def on_query(self, query: burnet.Query, out: burnet.Commands) -> None:
        self.table.follow(query, out)

    def on_credit(self, ticket: int, out: burnet.Commands) -> None:
        self.table.send(out)

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.table.put(b"a", str(now_ms).encode())
        self.table.send(out)


def payload(line: str) -> bytes:
    """The payload of an answer that a trial shows in words."""
    found = re.search(r"payload: \[([0-9, ]*)\]", line)
    assert found, line
    return bytes(int(number) for number in found[1].split(", ") if number)


def test_what_is_no_stream_ends_it_and_is_cancelled() -> None:
    trial = Trial(Following)
    trial.tick(1)
    assert trial.query_reply(trial.app.ticket, b"garbage", more=True) == ["QueryCancel"]
    trial.query_reply(trial.app.ticket, b"more garbage", more=True)
    assert [line.split()[0] for line in trial.app.heard] == ["ended"]


def test_a_query_is_no_stream() -> None:
    trial = Trial(Serving)
    (refused,) = trial.query(7)
    assert f"status: {int(burnet.QueryStatus.BAD_QUESTION)}" in refused


def test_a_reader_gets_the_snapshot_and_then_each_change() -> None:
    service, app = Trial(Serving), Trial(Following)
    assert "form: Stream" in app.tick(1)[0]
    for line in service.query(7, stream=True) + service.tick(2) + service.tick(3):
        app.query_reply(app.app.ticket, payload(line), more=True)
    app.query_reply(app.app.ticket, b"", int(burnet.QueryStatus.SERVICE_GONE))
    assert app.app.heard == [
        "begin 1   0",
        "entry 0 a 1 0",
        "complete 1   0",
        "put 2 a 2 0",
        "put 3 a 3 0",
        "ended 0   0",
    ]
    assert service.app.table.number == 3


def test_credit_bounds_what_is_sent() -> None:
    service = Trial(Serving)
    assert len(service.query(7, stream=True, credit_bytes=120)) == 1
    assert service.tick(2) == []
    assert len(service.query_credit(7, 200)) == 1


def test_nothing_is_heard_after_the_app_has_cancelled() -> None:
    service, app = Trial(Serving), Trial(Following)
    app.tick(1)
    service.app.table.put(b"enough", b"")
    service.app.table.put(b"later", b"")
    (line,) = service.query(7, stream=True)
    assert app.query_reply(app.app.ticket, payload(line), more=True) == ["QueryCancel"]
    assert app.app.heard[-1] == "entry 0 enough  0"
