"""What an app is: a class with handlers. And how it is run.

In: an app's class. Out: a process that serves its zone. Never calls a handler: the native half does.
"""

import json
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from burnet import _native
from burnet._native import (
    Commands,
    FlowRemoved,
    Interests,
    PacketIn,
    PortStatus,
    Query,
    QueryReply,
    Receipt,
    SoftLimit,
    StatsReply,
    StreamUpdate,
    SwitchError,
    SwitchUp,
    Topic,
)

WRONG_SETTINGS = 2
"""The exit code of an app that refuses its settings, as of every Burnet program that is asked for what cannot be."""


class Refused(Exception):
    """The app cannot run with its settings; to be raised in `__init__`, with a sentence for the operator."""


class App:
    """A network application. Each handler that is left out does nothing."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Comes to be from its settings: what the operator wrote under `[app.NAME.settings]`."""
        self.settings = settings

    def interests(self) -> Interests:
        """What it wants to hear. Asked once, before any handler is called."""
        return Interests()

    def on_start(self, out: Commands) -> None:
        """Called once, after the subscription: for commands that need no event. They go to every worker of the node."""

    def on_switch_up(self, up: SwitchUp, out: Commands) -> None:
        """A switch is there. Comes for every switch that was there already when the app started, too."""

    def on_switch_down(self, datapath: int, out: Commands) -> None:
        """A switch is gone."""

    def on_packet_in(self, packet: PacketIn, out: Commands) -> None:
        """A packet came up."""

    def on_port_status(self, status: PortStatus, out: Commands) -> None:
        """A port came, went or changed."""

    def on_flow_removed(self, removed: FlowRemoved, out: Commands) -> None:
        """A rule is gone that was added with a wish to be told."""

    def on_switch_error(self, error: SwitchError, out: Commands) -> None:
        """A switch complained of a command of this app that asked for no receipt."""

    def on_stats_reply(self, reply: StatsReply, out: Commands) -> None:
        """An answer, or a part of one, to a statistics request."""

    def on_receipt(self, receipt: Receipt, out: Commands) -> None:
        """What became of a command that asked for a receipt."""

    def on_dropped(self, count: int, out: Commands) -> None:
        """So many packet-ins were dropped, since the app did not keep up."""

    def on_soft_limit(self, limit: SoftLimit, out: Commands) -> None:
        """It uses more than a soft limit, of a quota or of what it takes of the machine, or no more than that again.

        Beyond the hard limit commands are refused, or the app is ended.
        """

    def on_topic(self, topic: Topic, out: Commands) -> None:
        """Something was published."""

    def on_query(self, query: Query, out: Commands) -> None:
        """A question came to this app as a service; `Commands.answer` answers it, now or later."""

    def on_query_reply(self, reply: QueryReply, out: Commands) -> None:
        """The whole answer to a query or to what was asked of the store, or why there is none."""

    def on_query_over(self, ticket: int, status: int, out: Commands) -> None:
        """A query to this app as a service is over before it was answered to the end; `status` is a `QueryStatus`."""

    def on_stream(self, update: StreamUpdate, out: Commands) -> None:
        """An update of a stream that the app follows: an entry, a change, what it missed, or the end."""

    def on_credit(self, ticket: int, out: Commands) -> None:
        """A caller takes more of the answer to its query. A service with a `Table` sends more of it."""

    def on_tick(self, now_ms: int, out: Commands) -> None:
        """About once a second, with a clock that only goes forward."""

    def on_shutdown(self, out: Commands) -> None:
        """The zone is about to end."""


def run(make: Callable[[dict[str, Any]], App]) -> NoReturn:
    """Run an app, given by its class, in this process until its zone ends; then exit.

    Exit codes: 0 when told to end, 2 when the app refuses its settings (`Refused`), 1 when a handler raised or the
    zone is not as it must be. What went wrong is on standard error, which the node keeps.
    """
    # Ctrl-C is for the monitor, which tells its zones to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_code, trouble = _native.run(lambda settings: _start(make, settings))
    if trouble is not None:
        print(trouble, file=sys.stderr)
    sys.exit(exit_code)


def _start(make: Callable[[dict[str, Any]], App], settings: str) -> App:
    try:
        return make(json.loads(settings))
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        sys.exit(WRONG_SETTINGS)
