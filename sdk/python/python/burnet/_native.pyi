"""The native half of `burnet`: its types, for checkers and editors. Import `burnet`."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Self, TypeAlias

_Plain: TypeAlias = int | str | bytes | IPv4Address | IPv4Network | IPv6Address | IPv6Network
_Value: TypeAlias = _Plain | tuple[_Plain, _Plain]

class Interests:
    """What an app wants to hear. Each method adds to it and gives it back."""

    def __new__(cls) -> Self: ...
    def packets(self) -> Self:
        """Every packet-in."""
    def packets_within(self, **fields: _Value) -> Self:
        """Packet-ins of packets within this match. Called again: of those within that one as well."""
    def switches(self) -> Self:
        """Switches that come and go."""
    def ports(self) -> Self:
        """Ports that come, go or change."""
    def flow_removed(self) -> Self:
        """Rules that are gone."""
    def topics(self) -> Self:
        """What others publish."""
    def ticks(self) -> Self:
        """The time, about once a second."""

class PacketIn:
    """A packet that a switch sent up."""

    @property
    def datapath(self) -> int:
        """From which switch."""
    @property
    def in_port(self) -> int:
        """By which port it came in."""
    @property
    def buffer_id(self) -> int | None:
        """Where the switch keeps it, or None if `data` is all of it."""
    @property
    def total_len(self) -> int:
        """Its length on the wire; `data` may be shorter."""
    @property
    def reason(self) -> int:
        """A `PacketInReason`."""
    @property
    def table_id(self) -> int:
        """The table that sent it."""
    @property
    def cookie(self) -> int:
        """The cookie of the rule that sent it; all ones where the switch does not say."""
    @property
    def data(self) -> bytes:
        """The frame, or its beginning."""
    @property
    def eth_dst(self) -> str:
        """Its destination, `02:00:00:00:00:01`; zeros in a frame that is too short to have one."""
    @property
    def eth_src(self) -> str:
        """Its source."""
    @property
    def eth_type(self) -> int:
        """Its EtherType, behind all VLAN tags; 0 in a frame that is too short to have one."""
    @property
    def is_multicast(self) -> bool:
        """Whether it is for more than one host."""
    def fields(self) -> dict[str, int | str]:
        """All that a switch could match on, by name."""
    def field(self, name: str, /) -> int | str | None:
        """One of these fields, or None."""

class Rule:
    """A rule that is being put together. Nothing happens before one of the `send`s."""

    def matching(self, **fields: _Value) -> Self:
        """Which packets."""
    def output(self, port: int | str, max_len: int = 0) -> Self:
        """Out of this port. Called again: out of that one as well."""
    def set_field(self, **fields: _Plain) -> Self:
        """Writes fields of the packet, for the outputs behind it."""
    def actions(self, text: str, /) -> Self:
        """Any actions, in order, in the syntax of ovs-ofctl."""
    def goto_table(self, table_id: int) -> Self:
        """On to this table when the actions are done."""
    def meter(self, meter_id: int) -> Self:
        """Through this meter."""
    def priority(self, priority: int) -> Self:
        """The higher wins."""
    def table(self, table_id: int) -> Self:
        """The table, for switches that have several."""
    def cookie(self, cookie: int) -> Self:
        """The app's own mark on the rule; 48 bits of it."""
    def idle_timeout_s(self, seconds: int) -> Self:
        """The rule goes after so many seconds without a packet; 0: never."""
    def hard_timeout_s(self, seconds: int) -> Self:
        """The rule goes after so many seconds; 0: never."""
    def tell_when_removed(self) -> Self:
        """Tell the app when the rule goes."""
    def buffer(self, buffer_id: int | None) -> Self:
        """Send the packet that the switch keeps through the new rule."""
    def modify(self) -> Self:
        """Change the actions of this very rule in place of adding one."""
    def delete(self) -> Self:
        """Delete this very rule in place of adding one."""
    def delete_within(self) -> Self:
        """Delete all of the app's own rules within the match, in all tables."""
    def out_port(self, port: int | str) -> Self:
        """For deletes: only rules that send to this port."""
    def send(self) -> None:
        """Commands it."""
    def send_with_receipt(self) -> int:
        """Commands it, asks for a receipt, and gives the ticket that the receipt will carry."""

class PacketOut:
    """A packet that is being put together. Nothing happens before one of the `send`s."""

    def packet(self, packet: PacketIn) -> Self:
        """The packet of a packet-in, as it came."""
    def frame(self, data: bytes) -> Self:
        """A frame of the app's own making."""
    def in_port(self, port: int | str) -> Self:
        """The port by which it is taken to have come in."""
    def output(self, port: int | str) -> Self:
        """Out of this port. Called again: out of that one as well."""
    def set_field(self, **fields: _Plain) -> Self:
        """Writes fields of the packet, for the outputs behind it."""
    def actions(self, text: str, /) -> Self:
        """Any actions, in order, in the syntax of ovs-ofctl."""
    def send(self) -> None:
        """Commands it."""
    def send_with_receipt(self) -> int:
        """Commands it, asks for a receipt, and gives the ticket that the receipt will carry."""

class Commands:
    """Where a handler puts its commands; they are sent when it returns."""

    def rule(self, datapath: int | str, /) -> Rule:
        """Begins a rule for a switch: an add of priority 0, of every packet, that drops."""
    def packet_out(self, datapath: int | str, /) -> PacketOut:
        """Begins a packet to be sent by a switch."""
    def request_stats(self, datapath: int | str, multipart: int, body: bytes = b"") -> int:
        """Asks a switch for statistics, and gives the ticket that the replies will carry."""
    def barrier(self, datapath: int | str, /) -> int:
        """Gets a receipt when the switch has done everything before it; gives its ticket."""
    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        """Publishes on a topic, named from coarse to fine: `host.moved`.

        With `retain`, apps that subscribe later get this value at once; an empty payload removes it.
        """
    def query(self, service: str, payload: bytes, deadline_ms: int = 0) -> int:
        """Asks a service, and gives the ticket that its answer will carry. A deadline of 0 is ten seconds."""
    def follow(self, service: str, payload: bytes = b"", deadline_ms: int = 0, credit_bytes: int = 0) -> int:
        """Follows a stream of a service: a snapshot, then each change. Gives the ticket that `App.on_stream` hears.

        The deadline is for the first part; 0 is ten seconds. The credit is how many bytes may be under way; 0 is
        64 KiB.
        """
    def cancel(self, ticket: int, /) -> None:
        """Does not wait for the answer to a query any more, or follows a stream no longer; nothing more comes."""
    def answer(self, ticket: int, payload: bytes, status: int = 0, more: bool = False) -> None:
        """Answers a query, whole or in parts."""
    def store_get(self, key: str) -> int:
        """Asks for the value of a key of the store, and gives the ticket of the answer.

        As with all that is asked of the store, the answer comes to `App.on_query_reply` with a status of
        `burnet.store`; what is refused for want of a capability comes to `App.on_receipt`.
        """
    def store_put(self, key: str, value: bytes) -> int:
        """Keeps a value under a key of the store: it is on disk when the answer says that it is done."""
    def store_delete(self, key: str) -> int:
        """Takes a key out of the store."""
    def store_list(self, prefix: str, after: str = "") -> int:
        """Asks for the keys of the store that begin so and come behind `after`.

        The answer comes in parts with `QueryReply.keys`; if its last has the status `burnet.store.MORE_KEYS`, one asks
        again behind the last key.
        """
    def log(self, text: str, level: int = 2) -> None:
        """Writes a line into the node's log: 0 error, 1 warning, 2 information, 3 debugging."""

class Port:
    """A port of a switch."""

    @property
    def port_no(self) -> int: ...
    @property
    def hw_addr(self) -> str: ...
    @property
    def live(self) -> bool: ...
    @property
    def administratively_up(self) -> bool: ...
    @property
    def curr_speed_kbps(self) -> int: ...
    @property
    def name(self) -> str: ...

class SwitchUp:
    """A switch and its ports, as it came up."""

    @property
    def datapath(self) -> int: ...
    @property
    def n_buffers(self) -> int: ...
    @property
    def n_tables(self) -> int: ...
    @property
    def ports(self) -> list[Port]: ...

class PortStatus:
    """What happened to a port: `reason` is a `PortReason`."""

    @property
    def datapath(self) -> int: ...
    @property
    def reason(self) -> int: ...
    @property
    def port(self) -> Port: ...

class FlowRemoved:
    """A rule that is gone: `reason` is a `RemovedReason`."""

    @property
    def datapath(self) -> int: ...
    @property
    def cookie(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def packet_count(self) -> int: ...
    @property
    def byte_count(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def reason(self) -> int: ...
    @property
    def table_id(self) -> int: ...
    @property
    def matching(self) -> dict[str, Any]: ...

class SwitchError:
    """A switch's complaint of a command of this app that asked for no receipt."""

    @property
    def datapath(self) -> int: ...
    @property
    def error_type(self) -> int: ...
    @property
    def error_code(self) -> int: ...
    @property
    def ticket(self) -> int: ...
    @property
    def reason(self) -> str: ...

class StatsReply:
    """Statistics, or a part of them: `burnet.stats.parse` reads the body."""

    @property
    def datapath(self) -> int: ...
    @property
    def ticket(self) -> int: ...
    @property
    def multipart(self) -> int: ...
    @property
    def more(self) -> bool: ...
    @property
    def body(self) -> bytes: ...

class Receipt:
    """What became of a command: `outcome` is `programmed`, `refused`, `failed` or `unknown`."""

    @property
    def datapath(self) -> int: ...
    @property
    def ticket(self) -> int: ...
    @property
    def outcome(self) -> str: ...
    @property
    def programmed(self) -> bool: ...
    @property
    def error_type(self) -> int: ...
    @property
    def error_code(self) -> int: ...
    @property
    def reason(self) -> str: ...

class Topic:
    """Something that was published."""

    @property
    def topic(self) -> str: ...
    @property
    def publisher(self) -> int: ...
    @property
    def run(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def is_retained(self) -> bool: ...
    @property
    def payload(self) -> bytes: ...

class Query:
    """A question to this app as a service."""

    @property
    def ticket(self) -> int: ...
    @property
    def caller(self) -> int: ...
    @property
    def caller_name(self) -> str: ...
    @property
    def grant(self) -> bytes: ...
    @property
    def service(self) -> str: ...
    @property
    def is_stream(self) -> bool: ...
    @property
    def credit_bytes(self) -> int: ...
    @property
    def payload(self) -> bytes: ...

class QueryReply:
    """The whole answer to a query (`status` 0), or why there is none: a `QueryStatus`, or the service's own."""

    @property
    def ticket(self) -> int: ...
    @property
    def status(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    def keys(self) -> list[str]:
        """The keys in an answer to `Commands.store_list`."""

class StreamUpdate:
    """Something of a stream that the app follows.

    `kind` is `begin`, `entry`, `complete`, `put`, `removed`, `missed` or `ended`. A snapshot begins with `begin`, which
    replaces everything that came before. After `missed`, a new snapshot begins.
    """

    @property
    def ticket(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes: ...
    @property
    def missed(self) -> int: ...
    @property
    def status(self) -> int: ...

class Table:
    """A table of a service that other apps can follow. It is not bounded: the service decides how much it keeps."""

    def __new__(cls) -> Self: ...
    @property
    def number(self) -> int: ...
    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value of a key. Readers hear of it with the next `send`."""
    def remove(self, key: bytes) -> bool:
        """Removes a key, and says whether it was there. Readers hear of it with the next `send`."""
    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
    def follow(self, query: Query, out: Commands) -> None:
        """The call follows this table from now on. It gets the snapshot at once, as far as its credit goes."""
    def send(self, out: Commands) -> None:
        """Sends each reader what its credit allows. To be called after changes, and in `App.on_credit`."""

class SoftLimit:
    """A soft limit that is passed, or kept again if no more than it is used.

    What goes beyond the hard one is refused, or ends the app.

    `quota` is a `Quota`.
    """

    @property
    def datapath(self) -> int: ...
    @property
    def quota(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def soft(self) -> int: ...
    @property
    def hard(self) -> int: ...

class Trial:
    """The native half of `burnet.testing.Trial`."""

    def __new__(cls, make: Callable[[str], Any], settings: str, /) -> Self: ...
    @property
    def app(self) -> Any: ...
    def switch_up(self, datapath: int, ports: list[int]) -> list[str]:
        """A switch comes up with ports of these numbers."""
    def switch_down(self, datapath: int) -> list[str]:
        """A switch goes."""
    def packet_in(self, datapath: int, in_port: int, data: bytes, buffer_id: int | None = None) -> list[str]:
        """A frame comes up: whole, or its beginning and the number of its buffer."""
    def port_status(self, datapath: int, port_no: int, reason: int = 2, live: bool = True) -> list[str]:
        """A port changes."""
    def flow_removed(self, datapath: int, cookie: int = 0, **fields: _Value) -> list[str]:
        """A rule goes by its idle time-out."""
    def receipt(self, datapath: int | str, ticket: int, outcome: str = "programmed", reason: str = "") -> list[str]:
        """A receipt comes."""
    def query_reply(self, ticket: int, payload: bytes = b"", status: int = 0, more: bool = False) -> list[str]:
        """An answer comes, or a part of one, to a query or to what was asked of the store."""
    def query(
        self, ticket: int, payload: bytes = b"", stream: bool = False, credit_bytes: int = 65536
    ) -> list[str]:
        """A call comes to the app as a service, from zone 1 with the name `caller`."""
    def query_credit(self, ticket: int, bytes: int) -> list[str]:
        """The caller of a call to the app grants more credit."""
    def tick(self, now_ms: int) -> list[str]:
        """The clock ticks."""
    def shutdown(self) -> list[str]:
        """The zone is about to end."""

def run(make: Callable[[str], Any], /) -> tuple[int, str | None]: ...
def read_datapath(text: str, /) -> int:
    """A datapath id from any of its forms: `1`, `0x1`, `00:00:00:00:00:00:00:01`, `of:0000000000000001`."""

def show_datapath(datapath: int, /) -> str:
    """A datapath id as it is printed everywhere: `of:0000000000000001`."""
