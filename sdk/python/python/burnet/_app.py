"""The base class of apps, with its handlers, and the function that runs an app.

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
    Experimenter,
    FlowRemoved,
    Interests,
    Labels,
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
    View,
    ViewChange,
)

WRONG_SETTINGS = 2
"""The exit code of an app that refuses its settings: usage or configuration error."""


class Refused(Exception):
    """Raise this in `__init__` if the app cannot run with its settings. The text is for the operator."""


class App:
    """A network application. A handler that the class does not define does nothing."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Creates the app from its settings: the table `[app.NAME.settings]` of the operator."""
        self.settings = settings

    def interests(self) -> Interests:
        """The events that the app subscribes to. Called once, before any handler."""
        return Interests()

    def on_start(self, out: Commands) -> None:
        """Called once, after the subscription: for commands that need no event. They go to every worker of the node."""

    def on_switch_up(self, up: SwitchUp, out: Commands) -> None:
        """A switch is connected. Also called for each switch that was connected before the app started."""

    def on_switch_down(self, datapath: int, out: Commands) -> None:
        """A switch is disconnected."""

    def on_packet_in(self, packet: PacketIn, out: Commands) -> None:
        """A packet-in."""

    def on_port_status(self, status: PortStatus, out: Commands) -> None:
        """A port was added, removed or changed."""

    def on_flow_removed(self, removed: FlowRemoved, out: Commands) -> None:
        """A rule was removed that was added with `tell_when_removed`."""

    def on_switch_error(self, error: SwitchError, out: Commands) -> None:
        """A switch sent an error about a command of this app without a receipt."""

    def on_experimenter(self, message: Experimenter, out: Commands) -> None:
        """An experimenter message of a switch. The app needs the capability `vendor` for it."""

    def on_labels(self, labels: Labels, out: Commands) -> None:
        """Labels of links, from a slice of which this node is the tenant: what the flows of others leave.

        The app subscribes to `Interests.experimenters`, and needs the capability
        `vendor = ["0x00627572:message"]`. All labels of a switch come some time after it is up, later only changes.
        """

    def on_stats_reply(self, reply: StatsReply, out: Commands) -> None:
        """An answer, or a part of one, to a statistics request."""

    def on_receipt(self, receipt: Receipt, out: Commands) -> None:
        """The receipt of a command."""

    def on_dropped(self, count: int, out: Commands) -> None:
        """`count` packet-ins were dropped because the app was too slow."""

    def on_soft_limit(self, limit: SoftLimit, out: Commands) -> None:
        """The app exceeds a soft limit of a quota or of a resource of the machine, or does not exceed it any more.

        Beyond the hard limit commands are refused, or the app is ended.
        """

    def on_topic(self, topic: Topic, out: Commands) -> None:
        """An app published a message."""

    def on_query(self, query: Query, out: Commands) -> None:
        """A query to this app as a service. Answer it with `Commands.answer`, now or later."""

    def on_query_reply(self, reply: QueryReply, out: Commands) -> None:
        """The whole answer to a query, also of the store, or the reason why there is none."""

    def on_query_over(self, ticket: int, status: int, out: Commands) -> None:
        """A query to this app as a service ended before its last part. `status` is a `QueryStatus`."""

    def on_stream(self, update: StreamUpdate, out: Commands) -> None:
        """An update of a stream that the app follows: an entry, a change, what it missed, or the end."""

    def on_view(self, changes: list[ViewChange], view: View, out: Commands) -> None:
        """The network view changed: one atomic update. `view` is the state after it.

        Only for the kinds in `Interests.view`, and those that they need. The first call brings what exists already.
        """

    def on_credit(self, ticket: int, out: Commands) -> None:
        """A caller granted more credit for an answer. A service with a `Table` then calls `Table.send`."""

    def on_tick(self, now_ms: int, out: Commands) -> None:
        """About once per second, with a monotonic clock."""

    def on_wake(self, out: Commands) -> None:
        """The time of `out.wake_after` has passed."""

    def on_shutdown(self, out: Commands) -> None:
        """The zone will end."""


def run(make: Callable[[dict[str, Any]], App]) -> NoReturn:
    """Run an app, given by its class, in this process until its zone ends; then exit.

    Exit codes: 0 when told to end, 2 when the app refuses its settings (`Refused`), 1 when a handler raised or the
    zone is not as it must be. What went wrong is on standard error, which the node keeps.
    """
    # The monitor handles Ctrl-C. It tells its zones to end.
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
