"""Switches of OpenFlow 1.0 that say labels as the paper does, for tests of a tenant's controller.

In: cables, hosts, labels. Out: what the controller does: flow mods, and frames that reach hosts. A switch is a socket
and a table of exact rules. It answers only the messages that this test's controller sends.
"""

import selectors
import socket
import struct
import time
from dataclasses import dataclass, field

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT, FLOW_MOD = 10, 11, 12, 13, 14
GET_CONFIG_REQUEST, GET_CONFIG_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 7, 8, 18, 19
DELETE_STRICT = 4
OUTPUT = 0
IN_PORT = 0xFFF8

@dataclass
class Rule:
    """What a flow mod said: ports and addresses."""

    in_port: int
    source: str
    target: str
    output: int | None

@dataclass
class Switch:
    """A switch: its connection, ports with labels in kb/s, and rules."""

    number: int
    connection: socket.socket
    labels: dict[int, int]
    rules: dict[tuple[int, str, str], Rule] = field(default_factory=dict)
    unread: bytes = b""

def mac(text: str) -> bytes:
    """The bytes of an address."""
    return bytes.fromhex(text.replace(":", ""))

class Network:
    """Switches, cables between their ports, and hosts at other ports."""

    def __init__(
        self,
        port: int,
        cables: list[tuple[tuple[int, int], tuple[int, int]]],
        hosts: dict[str, tuple[int, int]],
        label: int,
    ) -> None:
        """Connects all switches. Each label is the same at first."""
        self.peers = dict(cables) | {two: one for one, two in cables}
        self.hosts = hosts
        self.received: list[tuple[str, bytes]] = []
        self.selector = selectors.DefaultSelector()
        places = [*self.peers, *hosts.values()]
        self.switches: dict[int, Switch] = {}
        for number in sorted({switch for switch, _ in places}):
            connection = socket.create_connection(("127.0.0.1", port))
            labels = {port: label for switch, port in places if switch == number}
            self.switches[number] = Switch(number, connection, labels)
            self.selector.register(connection, selectors.EVENT_READ, number)
            self.say(number, HELLO, b"")

    def close(self) -> None:
        """Ends all connections."""
        for switch in self.switches.values():
            switch.connection.close()
        self.selector.close()

    def say(self, number: int, kind: int, body: bytes, xid: int = 0) -> None:
        """Sends a message."""
        self.switches[number].connection.sendall(struct.pack("!BBHI", 1, kind, 8 + len(body), xid) + body)

    def run(self, seconds: float) -> None:
        """Reads and answers for this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                self.read(self.switches[key.data])

    def read(self, switch: Switch) -> None:
        """Reads what there is."""
        switch.unread += switch.connection.recv(65_536)
        while len(switch.unread) >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", switch.unread)
            if len(switch.unread) < length:
                break
            body, switch.unread = switch.unread[8:length], switch.unread[length:]
            self.on_message(switch, kind, xid, body)

    def on_message(self, switch: Switch, kind: int, xid: int, body: bytes) -> None:
        """What a switch does."""
        if kind == FEATURES_REQUEST:
            ports = b"".join(self.port(switch, port) for port in sorted(switch.labels))
            self.say(switch.number, FEATURES_REPLY, struct.pack("!QIB3xII", switch.number, 0, 1, 0, 1) + ports, xid)
        elif kind in (ECHO_REQUEST, BARRIER_REQUEST):
            self.say(switch.number, kind + 1, body, xid)
        elif kind == GET_CONFIG_REQUEST:
            self.say(switch.number, GET_CONFIG_REPLY, struct.pack("!HH", 0, 65_535), xid)
        elif kind == PACKET_OUT:
            _, in_port, actions_length = struct.unpack_from("!IHH", body)
            for output in outputs(body[8 : 8 + actions_length]):
                self.put(switch.number, in_port if output == IN_PORT else output, body[8 + actions_length :])
        elif kind == FLOW_MOD:
            in_port, source, target = struct.unpack_from("!4xH6s6s", body)
            (command,) = struct.unpack_from("!H", body, 48)
            rule = (in_port, source.hex(":"), target.hex(":"))
            if command == DELETE_STRICT:
                switch.rules.pop(rule, None)
            else:
                switch.rules[rule] = Rule(*rule, next(iter(outputs(body[64:])), None))

    def port(self, switch: Switch, number: int) -> bytes:
        """A port with its label."""
        address = bytes([2, 1, 0, 0, switch.number, number])
        name = f"s{switch.number}-{number}".encode()
        return struct.pack("!H6s16sIIIIIII", number, address, name, 0, 0, 0, 0, 0, 0, switch.labels[number])

    def tell(self, number: int, port: int, label: int) -> None:
        """A label has changed."""
        switch = self.switches[number]
        switch.labels[port] = label
        self.say(number, PORT_STATUS, struct.pack("!B7x", 2) + self.port(switch, port))

    def put(self, number: int, port: int, frame: bytes) -> None:
        """A frame leaves a switch by a port, and goes on as far as rules lead it."""
        for _ in range(32):
            at = (number, port)
            self.received += [(host, frame) for host, place in self.hosts.items() if place == at]
            if at not in self.peers:
                return
            number, in_port = self.peers[at]
            rule = self.switches[number].rules.get((in_port, frame[6:12].hex(":"), frame[:6].hex(":")))
            if rule is None or rule.output is None:
                self.packet_in(number, in_port, frame)
                return
            port = in_port if rule.output == IN_PORT else rule.output

    def packet_in(self, number: int, port: int, frame: bytes) -> None:
        """A frame that no rule matches."""
        self.say(number, PACKET_IN, struct.pack("!IHHBx", 0xFFFFFFFF, len(frame), port, 0) + frame)

    def send(self, source: str, target: str) -> None:
        """A host sends a frame."""
        frame = mac(target) + mac(source) + b"\x88\xb5" + bytes(46)
        number, port = self.hosts[source]
        rule = self.switches[number].rules.get((port, source, target))
        if rule is None or rule.output is None:
            self.packet_in(number, port, frame)
        else:
            self.put(number, rule.output, frame)

    def path(self, source: str, target: str) -> list[int]:
        """The switches that the rules of a flow lead through."""
        number, in_port = self.hosts[source]
        path: list[int] = []
        while len(path) < 32:
            rule = self.switches[number].rules.get((in_port, source, target))
            if rule is None or rule.output is None:
                return path
            path.append(number)
            if (number, rule.output) not in self.peers:
                return path
            number, in_port = self.peers[number, rule.output]
        return path

    def expire(self, source: str, target: str) -> None:
        """The rules of a flow are idle: they go, and the first is reported."""
        number, in_port = self.hosts[source]
        ends = (in_port, mac(source), mac(target))
        match = struct.pack("!IH6s6sHBxHBB2xIIHH", 0x3FFFF2, *ends, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        for switch in self.switches.values():
            switch.rules = {key: rule for key, rule in switch.rules.items() if key[1:] != (source, target)}
        self.say(number, FLOW_REMOVED, match + struct.pack("!QHBxIIH2xQQ", 0, 100, 0, 10, 0, 10, 1, 60))

def outputs(actions: bytes) -> list[int]:
    """The ports of output actions."""
    ports = []
    while len(actions) >= 8:
        kind, length, port = struct.unpack_from("!HHH", actions)
        ports += [port] if kind == OUTPUT else []
        actions = actions[length:]
    return ports
