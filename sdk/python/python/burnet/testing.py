"""Trying an app without a node: hand it events, look at what it commands.

    trial = Trial(Hub)
    assert trial.packet_in(1, 1, b"a frame") == ["packet-out of:0000000000000001 in_port=1 actions=[output:FLOOD]"]

Each method of a trial is an event, and gives what the app commands then, in words, a line a command. It starts nothing.
"""

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from burnet import _native
from burnet._app import App

A = TypeVar("A", bound=App)


class Trial(_native.Trial, Generic[A]):
    """An app under test. Its subscription is not checked."""

    app: A

    def __new__(cls, make: Callable[[dict[str, Any]], A], settings: dict[str, Any] | None = None) -> "Trial[A]":
        """Start an app, given by its class, with these settings."""
        return super().__new__(cls, lambda text: make(json.loads(text)), json.dumps(settings or {}))

    def view_put(self, *objects: dict[str, Any]) -> list[str]:
        """The network view changes by these objects, in one update. Their form is that of their JSON."""
        return self.view_changed([json.dumps(one) for one in objects])
