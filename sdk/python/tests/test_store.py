"""What an app asks of the store, and how it receives the answer."""

import burnet
import pytest
from burnet import store
from burnet.testing import Trial

class Keeping(burnet.App):
    """Asks everything once, and keeps what it receives."""

    heard: list[tuple[int, int, bytes, list[str]]]
    tickets: list[int]

    def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
        self.heard = []
        self.tickets = [
            out.store_get("app/k"),
            out.store_put("app/k", b"v"),
            out.store_delete("app/k"),
            out.store_list("app/"),
            out.store_list("app/", "app/k"),
        ]

    def on_query_reply(self, reply: burnet.QueryReply, out: burnet.Commands) -> None:
        self.heard.append((reply.ticket, reply.status, reply.payload, reply.keys()))


def test_what_is_damaged_in_a_list_of_keys_ends_it() -> None:
    trial = Trial(Keeping)
    trial.tick(1)
    for payload in (b"", b"\x01", b"\x05\x00k", b"\x01\x00\xff"):
        trial.query_reply(4, payload)
    assert [keys for _, _, _, keys in trial.app.heard] == [[], [], [], []]


def test_a_key_is_text_and_a_value_is_bytes() -> None:
    class Wrong(burnet.App):
        def on_tick(self, now_ms: int, out: burnet.Commands) -> None:
            out.store_put("k", "v")  # type: ignore[arg-type,unused-ignore]

    with pytest.raises(TypeError):
        Trial(Wrong).tick(1)


def test_each_ask_is_a_command_with_a_ticket_of_its_own() -> None:
    trial = Trial(Keeping)
    asks = [
        ("Get", "app/k", []),
        ("Put", "app/k", [118]),
        ("Delete", "app/k", []),
        ("List", "app/", []),
        ("List", "app/", list(b"app/k")),
    ]
    words = [f'ask store: {op} "{key}" {value}' for op, key, value in asks]
    assert trial.tick(1) == words
    assert [ticket & 0xFFFF for ticket in trial.app.tickets] == [1, 2, 3, 4, 5]


def test_an_answer_says_what_came_of_it() -> None:
    trial = Trial(Keeping)
    trial.tick(1)
    trial.query_reply(1, b"v")
    trial.query_reply(2, status=store.APP_FULL)
    trial.query_reply(4, b"\x05\x00app/k", store.MORE_KEYS)
    assert trial.app.heard == [
        (1, store.DONE, b"v", []),
        (2, store.APP_FULL, b"", []),
        (4, store.MORE_KEYS, b"\x05\x00app/k", ["app/k"]),
    ]
