"""A controller that adds five rules, changes one to an output that no switch has, asks for a barrier, and prints what it hears.

Arguments: 1.0 or 1.3. It listens at 127.0.0.1:6653 for one switch, and needs nothing but Python.
"""

import socket
import struct
import sys

VERSION = {"1.0": 1, "1.3": 4}[sys.argv[1]]
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY, FLOW_MOD = 0, 1, 2, 3, 5, 6, 14
BARRIER_REQUEST, BARRIER_REPLY = {1: (18, 19), 4: (20, 21)}[VERSION]
ADD, MODIFY = 0, 1
NO_BUFFER = 0xFFFFFFFF
# Above all ports, and none of the reserved ones.
NO_PORT = {1: 0xFF10, 4: 0xFFFFFF10}[VERSION]
BARRIER_XID = 200


def message(kind, xid, body=b""):
    return struct.pack("!BBHI", VERSION, kind, 8 + len(body), xid) + body


def flow_mod(xid, command, in_port, output=None):
    if VERSION == 1:
        wildcards = 0x3FFFFF & ~1
        match = struct.pack("!IH34x", wildcards, in_port)
        fixed = struct.pack("!QHHHHIHH", 0, command, 0, 0, 5, NO_BUFFER, 0xFFFF, 0)
        actions = b"" if output is None else struct.pack("!HHHH", 0, 8, output, 0)
        return message(FLOW_MOD, xid, match + fixed + actions)
    fixed = struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, command, 0, 0, 5, NO_BUFFER, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    match = struct.pack("!HHII4x", 1, 12, 0x80000004, in_port)
    instructions = b""
    if output is not None:
        instructions = struct.pack("!HH4x", 4, 24) + struct.pack("!HHIH6x", 0, 16, output, 0)
    return message(FLOW_MOD, xid, fixed + match + instructions)


def exactly(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            sys.exit("the switch has gone")
        data += more
    return data


def say(line):
    print(line, flush=True)


def talk(stream):
    asked = [flow_mod(101 + number, ADD, 1 + number) for number in range(5)]
    asked.append(flow_mod(106, MODIFY, 1, NO_PORT))
    stream.sendall(message(HELLO, 1))
    while True:
        header = exactly(stream, 8)
        _, kind, length, xid = struct.unpack("!BBHI", header)
        body = exactly(stream, length - 8)
        if kind == HELLO:
            stream.sendall(message(FEATURES_REQUEST, 2))
        elif kind == FEATURES_REPLY:
            stream.sendall(b"".join(asked) + message(BARRIER_REQUEST, BARRIER_XID))
        elif kind == ECHO_REQUEST:
            stream.sendall(message(ECHO_REPLY, xid, body))
        elif kind == ERROR:
            number, code = struct.unpack("!HH", body[:4])
            request = asked[xid - 101] if 101 <= xid <= 106 else b""
            same = "its" if body[4:] == request[:64] else "other"
            say(f"error {xid} type {number} code {code} with {same} bytes")
        elif kind == BARRIER_REPLY:
            say(f"barrier {xid}")


listener = socket.create_server(("127.0.0.1", 6653))
say("it listens")
talk(listener.accept()[0])
