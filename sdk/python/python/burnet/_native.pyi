"""The native half of `burnet`: its types, for checkers and editors. Import `burnet`."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Literal, Self, TypeAlias

_Plain: TypeAlias = int | str | bytes | IPv4Address | IPv4Network | IPv6Address | IPv6Network
_Value: TypeAlias = _Plain | tuple[_Plain, _Plain]

class Interests:
    """The events that an app subscribes to. Each method adds some and returns the object."""

    def __new__(cls) -> Self: ...
    def packets(self) -> Self:
        """Every packet-in."""
    def packets_within(self, **fields: _Value) -> Self:
        """Packet-ins of packets within this match. Each call adds one match."""
    def of_own_rules(self) -> Self:
        """Of the packet-ins that the app subscribes to, only those that its own rules send."""
    def switches(self) -> Self:
        """Switches that connect and disconnect."""
    def ports(self) -> Self:
        """Ports that are added, removed or changed."""
    def flow_removed(self) -> Self:
        """Removed rules."""
    def experimenters(self) -> Self:
        """Experimenter messages of switches, as far as the capability `vendor` names them."""
    def view(self, *kinds: str) -> Self:
        """The network view: objects of these kinds (`switch`, `port`, `link`, `host`), and of those that they need
        to be visible. `App.on_view` gets each change, and `Commands.view` is the present state.
        """
    def topics(self) -> Self:
        """Messages that other apps publish."""
    def ticks(self) -> Self:
        """The time, about once per second."""

class PacketIn:
    """A packet-in."""

    @property
    def datapath(self) -> int:
        """The switch that sent it."""
    @property
    def in_port(self) -> int:
        """The input port."""
    @property
    def buffer_id(self) -> int | None:
        """The buffer id in the switch, or None if `data` is the whole packet."""
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
        """The cookie of the rule that sent it; all ones if the switch does not report it."""
    @property
    def data(self) -> bytes:
        """The frame, or its beginning."""
    @property
    def eth_dst(self) -> str:
        """Its destination, `02:00:00:00:00:01`; zeros if the frame is too short."""
    @property
    def eth_src(self) -> str:
        """Its source address."""
    @property
    def eth_type(self) -> int:
        """Its EtherType after all VLAN tags; 0 if the frame is too short."""
    @property
    def is_multicast(self) -> bool:
        """Whether it is for more than one host."""
    def fields(self) -> dict[str, int | str]:
        """All fields that a switch can match, by name."""
    def field(self, name: str, /) -> int | str | None:
        """One of these fields, or None."""

class Rule:
    """A rule under construction. `send` and `send_with_receipt` send it."""

    def matching(self, **fields: _Value) -> Self:
        """The packets that the rule matches, by fields."""
    def output(self, port: int | str, max_len: int = 0) -> Self:
        """Outputs to this port. Each call adds a port."""
    def set_field(self, **fields: _Plain) -> Self:
        """Sets fields of the packet for the outputs after it."""
    def actions(self, text: str, /) -> Self:
        """Adds actions in order, in the syntax of ovs-ofctl."""
    def goto_table(self, table_id: int) -> Self:
        """Continues in this table after the actions."""
    def meter(self, meter_id: int) -> Self:
        """Passes the packets through this meter."""
    def priority(self, priority: int) -> Self:
        """The priority; the highest matching rule applies."""
    def table(self, table_id: int) -> Self:
        """The table id, for switches with several tables."""
    def cookie(self, cookie: int) -> Self:
        """The app's part of the cookie, 48 bits."""
    def idle_timeout_s(self, seconds: int) -> Self:
        """The idle timeout in seconds; 0: none."""
    def hard_timeout_s(self, seconds: int) -> Self:
        """The hard timeout in seconds; 0: none."""
    def tell_when_removed(self) -> Self:
        """Requests an event when the rule is removed."""
    def buffer(self, buffer_id: int | None) -> Self:
        """Sends the buffered packet of the switch through the new rule."""
    def modify(self) -> Self:
        """Modifies the rule with the same match and priority, instead of adding one."""
    def delete(self) -> Self:
        """Deletes the rule with the same match and priority, instead of adding one."""
    def delete_within(self) -> Self:
        """Deletes all rules of the app within the match, in all tables."""
    def out_port(self, port: int | str) -> Self:
        """For deletes: only rules that send to this port."""
    def send(self) -> None:
        """Sends it."""
    def send_with_receipt(self) -> int:
        """Sends it, requests a receipt, and returns the ticket of the receipt."""

class PacketOut:
    """A packet-out under construction. `send` and `send_with_receipt` send it."""

    def packet(self, packet: PacketIn) -> Self:
        """The packet of a packet-in, unchanged."""
    def frame(self, data: bytes) -> Self:
        """A frame that the app made."""
    def in_port(self, port: int | str) -> Self:
        """The input port that the switch assumes."""
    def output(self, port: int | str) -> Self:
        """Outputs to this port. Each call adds a port."""
    def set_field(self, **fields: _Plain) -> Self:
        """Sets fields of the packet for the outputs after it."""
    def actions(self, text: str, /) -> Self:
        """Adds actions in order, in the syntax of ovs-ofctl."""
    def send(self) -> None:
        """Sends it."""
    def send_with_receipt(self) -> int:
        """Sends it, requests a receipt, and returns the ticket of the receipt."""

class Commands:
    """The commands of a handler. The loop sends them when the handler returns."""

    def rule(self, datapath: int | str, /) -> Rule:
        """Begins a rule for a switch: an add of priority 0, of every packet, that drops."""
    def packet_out(self, datapath: int | str, /) -> PacketOut:
        """Begins a packet-out."""
    def request_stats(self, datapath: int | str, multipart: int, body: bytes = b"") -> int:
        """Requests statistics of a switch, and returns the ticket of the replies."""
    def barrier(self, datapath: int | str, /) -> int:
        """Sends a barrier: its receipt arrives after the switch has processed all earlier commands. Returns
        its ticket.
        """
    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        """Publishes on a topic, named from general to specific: `host.moved`.

        With `retain`, apps that subscribe later get this value at once; an empty payload removes it.
        """
    def query(self, service: str, payload: bytes, deadline_ms: int = 0) -> int:
        """Queries a service, and returns the ticket of the answer. A deadline of 0 is ten seconds."""
    def follow(self, service: str, payload: bytes = b"", deadline_ms: int = 0, credit_bytes: int = 0) -> int:
        """Follows a stream of a service: a snapshot, then each change. Returns the ticket of the updates in
        `App.on_stream`.

        The deadline is for the first part; 0 is ten seconds. The credit is how many bytes may be under way; 0 is
        64 KiB.
        """
    @property
    def view(self) -> View:
        """The present network view, as far as the app follows it (`Interests.view`)."""
    @property
    def view_is_current(self) -> bool:
        """Whether the view is complete, and its changes arrive. While a service is away, its part of the view is
        as it was.
        """
    def wake_after(self, seconds: float, /) -> None:
        """Requests one wake-up after so many seconds, at most a day: `App.on_wake`. A later request replaces
        an earlier one.
        """
    def cancel(self, ticket: int, /) -> None:
        """Cancels a query, or stops following a stream. Nothing more arrives for its ticket."""
    def answer(self, ticket: int, payload: bytes, status: int = 0, more: bool = False) -> None:
        """Answers a query, whole or in parts."""
    def store_get(self, key: str) -> int:
        """Requests the value of a key in the store, and returns the ticket of the answer.

        As with all that is asked of the store, the answer comes to `App.on_query_reply` with a status of
        `burnet.store`; what is refused for want of a capability comes to `App.on_receipt`.
        """
    def store_put(self, key: str, value: bytes) -> int:
        """Writes a value under a key in the store. When the answer arrives, the value is on disk."""
    def store_delete(self, key: str) -> int:
        """Deletes a key from the store."""
    def store_list(self, prefix: str, after: str = "") -> int:
        """Lists the keys in the store with this prefix that follow `after`.

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
    """A switch and its ports when it connected."""

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
    """A removed rule: `reason` is a `RemovedReason`."""

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
    """An error of a switch about a command of this app without a receipt."""

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

class Experimenter:
    """An experimenter message of a switch."""

    @property
    def datapath(self) -> int: ...
    @property
    def experimenter(self) -> int: ...
    @property
    def exp_type(self) -> int: ...
    @property
    def data(self) -> bytes: ...

class Label:
    """The label of the link that begins at a port."""

    @property
    def port(self) -> int: ...
    @property
    def label_kbps(self) -> int | None:
        """What the flows of others leave of the link. `None`: the port has no label any more."""

    @property
    def capacity_kbps(self) -> int | None:
        """What the link carries. `None`: it is unknown."""

class Labels:
    """Labels of one switch: all that it has, or those that changed."""

    @property
    def datapath(self) -> int: ...
    @property
    def is_stale(self) -> bool:
        """All labels, also earlier ones, may be too high."""

    @property
    def labels(self) -> list[Label]: ...

class StatsReply:
    """A statistics reply, or a part of one: `burnet.stats.parse` reads the body."""

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
    """The receipt of a command: `outcome` is `programmed`, `refused`, `failed` or `unknown`."""

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
    """A published message."""

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
    """A query to this app as a service."""

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
    """The whole answer to a query (`status` 0), or the reason why there is none: a `QueryStatus`, or the
    service's own.
    """

    @property
    def ticket(self) -> int: ...
    @property
    def status(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    def keys(self) -> list[str]:
        """The keys in an answer to `Commands.store_list`."""

class StreamUpdate:
    """An update of a stream that the app follows.

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
    """A table of a service that other apps can follow. It has no bound: the service decides how many
    entries it keeps.
    """

    def __new__(cls) -> Self: ...
    @property
    def number(self) -> int: ...
    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value of a key. Readers get the change with the next `send`."""
    def remove(self, key: bytes) -> bool:
        """Removes a key, and returns whether it existed. Readers get the change with the next `send`."""
    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
    def follow(self, query: Query, out: Commands) -> None:
        """Lets the call follow this table from now on. It gets the snapshot at once, up to its credit."""
    def send(self, out: Commands) -> None:
        """Sends each reader as much as its credit allows. Call it after changes, and in `App.on_credit`."""

class ConnectPoint:
    """A port of a switch. Its text is `of:0000000000000001/3`."""

    def __new__(cls, switch: int | str, port: int) -> Self: ...
    @property
    def switch(self) -> int: ...
    @property
    def port(self) -> int: ...

class ViewSwitch:
    """A switch that is or was connected."""

    @property
    def datapath(self) -> int: ...
    @property
    def is_up(self) -> bool: ...
    @property
    def openflow(self) -> str: ...
    @property
    def n_tables(self) -> int: ...
    @property
    def n_buffers(self) -> int: ...
    @property
    def description(self) -> dict[str, str]: ...
    @property
    def since_ms(self) -> int: ...
    @property
    def annotations(self) -> dict[str, str]: ...

class ViewPort:
    """A port."""

    @property
    def at(self) -> ConnectPoint: ...
    @property
    def name(self) -> str: ...
    @property
    def mac(self) -> str: ...
    @property
    def live(self) -> bool: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def speed_kbps(self) -> int: ...
    @property
    def annotations(self) -> dict[str, str]: ...

class ViewLink:
    """One direction of a link: frames enter it at `src` and leave it at `dst`."""

    @property
    def src(self) -> ConnectPoint: ...
    @property
    def dst(self) -> ConnectPoint: ...
    @property
    def is_up(self) -> bool: ...
    @property
    def found(self) -> str:
        """`direct`, `indirect` or `static`."""
    @property
    def capacity_kbps(self) -> int: ...
    @property
    def latency_us(self) -> int | None: ...
    @property
    def since_ms(self) -> int: ...
    @property
    def annotations(self) -> dict[str, str]: ...

class ViewHost:
    """An end station."""

    @property
    def mac(self) -> str: ...
    @property
    def vlan(self) -> int | None: ...
    @property
    def addresses(self) -> list[IPv4Address | IPv6Address]: ...
    @property
    def at(self) -> ConnectPoint: ...
    @property
    def configured(self) -> bool: ...
    @property
    def since_ms(self) -> int: ...
    @property
    def annotations(self) -> dict[str, str]: ...

class ViewChange:
    """A change of one object. `before` is None if it was not visible, `now` if it no longer is."""

    @property
    def what(self) -> Literal["visible", "changed", "invisible"]: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def before(self) -> Any: ...
    @property
    def now(self) -> Any: ...

class View:
    """A state of the network view. It does not change while the app keeps it.

    A link is in it only while both of its ports are, a port while its switch is, and a host while its port is.
    """

    @property
    def switches(self) -> list[ViewSwitch]: ...
    @property
    def ports(self) -> list[ViewPort]: ...
    @property
    def links(self) -> list[ViewLink]:
        """All links, each direction by itself."""
    @property
    def hosts(self) -> list[ViewHost]: ...
    def get(self, key: str, /) -> Any:
        """One object by its key, such as `host/00:00:00:00:00:01`, or None."""
    def count(self, word: str, /) -> int:
        """How many objects of this kind there are."""
    def switch(self, switch: int | str, /) -> ViewSwitch | None: ...
    def port(self, switch: int | str, port: int, /) -> ViewPort | None: ...
    def host(self, address: str, /, vlan: int | None = None) -> ViewHost | None: ...
    def ports_of(self, switch: int | str, /) -> list[ViewPort]: ...
    def links_from(self, switch: int | str, port: int | None = None, /) -> list[ViewLink]:
        """The links from a switch, or from one of its ports."""
    def links_to(self, switch: int | str, port: int | None = None, /) -> list[ViewLink]:
        """The links to a switch, or to one of its ports."""
    def hosts_at(self, switch: int | str, port: int | None = None, /) -> list[ViewHost]:
        """The hosts of a switch, or at one of its ports."""
    def hosts_with_address(self, address: str | IPv4Address | IPv6Address, /) -> list[ViewHost]: ...
    def hosts_with_mac(self, address: str, /) -> list[ViewHost]: ...
    def has_link(self, switch: int | str, port: int, /) -> bool:
        """Whether a link leaves or reaches this port. Other ports are at the edge of the network."""

class SoftLimit:
    """A soft limit that the app exceeds, or does not exceed any more.

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
        """A switch connects with ports of these numbers."""
    def wake(self) -> list[str] | None:
        """The time passes for which the app requested a wake-up. `None` if it requested none."""
    def view_changed(self, objects: list[str], /) -> list[str]: ...
    def view_removed(self, *keys: str) -> list[str]:
        """Objects with these keys disappear from the network view, in one update."""
    def switch_down(self, datapath: int) -> list[str]:
        """A switch disconnects."""
    def packet_in(self, datapath: int, in_port: int, data: bytes, buffer_id: int | None = None) -> list[str]:
        """A packet-in arrives: the whole frame, or its beginning and the buffer id."""
    def port_status(self, datapath: int, port_no: int, reason: int = 2, live: bool = True) -> list[str]:
        """A port changes."""
    def flow_removed(self, datapath: int, cookie: int = 0, **fields: _Value) -> list[str]:
        """A rule is removed by its idle timeout."""
    def experimenter(self, datapath: int, experimenter: int, exp_type: int, data: bytes = b"") -> list[str]:
        """An experimenter message comes from a switch."""
    def receipt(self, datapath: int | str, ticket: int, outcome: str = "programmed", reason: str = "") -> list[str]:
        """A receipt arrives."""
    def query_reply(self, ticket: int, payload: bytes = b"", status: int = 0, more: bool = False) -> list[str]:
        """An answer, or a part of one, to a query arrives. Queries to the store are queries too."""
    def query(
        self, ticket: int, payload: bytes = b"", stream: bool = False, credit_bytes: int = 65536
    ) -> list[str]:
        """A call to the app as a service arrives, from zone 1 with the name `caller`."""
    def query_credit(self, ticket: int, bytes: int) -> list[str]:
        """The caller of a call to the app grants more credit."""
    def tick(self, now_ms: int) -> list[str]:
        """The clock ticks."""
    def shutdown(self) -> list[str]:
        """The zone will end."""

def run(make: Callable[[str], Any], /) -> tuple[int, str | None]: ...
def read_datapath(text: str, /) -> int:
    """A datapath id from any of its forms: `1`, `0x1`, `00:00:00:00:00:00:00:01`, `of:0000000000000001`."""

def show_datapath(datapath: int, /) -> str:
    """The printed form of a datapath id: `of:0000000000000001`."""
