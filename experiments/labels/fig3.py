"""The network of the experiment fig3: three servers at a bridge, the frames of two flows, and what crosses the bridge.

    python3 fig3.py

Its process has a network of its own. It says `ready` when the servers are there: `s1` and `s2` send, `r` receives through a link of 10 Mb/s. Each is a
namespace of `ip netns`, and has `eth0`. Then each line of its input is a request in JSON, and gets a line of JSON:

    {"do": "send", "flow": 0, "for_s": 10}       a flow begins; the answer comes at once
    {"do": "seen", "flow": 1, "within_s": 0.5}   what crossed the bridge from the first frame of the flow on, for so long

Times are in seconds since 1970, as Linux stamps frames. It ends with its input.
"""

import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

SERVERS = ("s1", "s2", "r")
BRIDGE = "10.9.0.254/24"
LINK_BPS = 10_000_000
TAG = 100
FLOWS = (
    {"at": "s1", "from": 1, "to": 3, "bytes": 1250},
    {"at": "s2", "from": 2, "to": 4, "bytes": 250},
)
"""The server, the numbers of VNICs, and the size of frames. Many small frames make a low rate readable in a short time."""
ETHER_TYPE = 0x88B5
SO_TIMESTAMPNS = 35
SEND_BYTES = 40_000
HEADER = 40
SIGNATURE = 16
FEEDBACK, REPORT = 3, 4
BEGAN, SHAPED = 1, 4


def run(line):
    """Run a command."""
    subprocess.run(line.split(), check=True)


def mac(number):
    """Return the address of a VNIC."""
    return bytes((2, 0, 0, 0, 0, number))


def build():
    """Make the servers."""
    run("ip link add br0 type bridge")
    run("ip link set br0 up")
    run(f"ip addr add {BRIDGE} dev br0")
    for number, name in enumerate(SERVERS, 1):
        run(f"ip netns add {name}")
        run(f"ip link add {name} type veth peer name eth0 netns {name}")
        run(f"ip link set {name} up master br0")
        inside = f"ip netns exec {name} "
        run(inside + "ip link set lo up")
        run(inside + "ip link set eth0 gso_max_segs 1 up")
        run(inside + f"ip addr add 10.9.0.{number}/24 dev eth0")
    # 20 ms of queue, as a switch may have.
    run(f"tc qdisc add dev r root tbf rate {LINK_BPS}bit burst 5000 limit {LINK_BPS // 8 // 50}")


def frame(flow):
    """Return a frame with the tag of the slice."""
    head = mac(flow["to"]) + mac(flow["from"]) + struct.pack("!HHH", 0x8100, TAG, ETHER_TYPE)
    return head.ljust(flow["bytes"], b"\0")


def send(number, for_s):
    """Send frames as fast as the shaper takes them. This runs in a process inside of the server."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    sock.bind(("eth0", 0))
    data, end = frame(FLOWS[number]), time.monotonic() + for_s
    while time.monotonic() < end:
        try:
            sock.send(data)
        except OSError:
            # The queue of a class may be smaller than that of the socket.
            time.sleep(0.001)


def bodies(payload):
    """Give the kind and the body of each datagram of agents in a row."""
    while len(payload) >= HEADER + SIGNATURE and payload[:4] == b"BEDG":
        length = int.from_bytes(payload[6:8], "big")
        yield payload[5], payload[HEADER : length - SIGNATURE]
        payload = payload[max(length, 1) :]


class Watch(threading.Thread):
    """All that crosses the bridge."""

    def __init__(self):
        """Open the sockets, so that nothing is missed from now on."""
        super().__init__(daemon=True)
        self.lock = threading.Lock()
        self.events = []
        self.sockets = {}
        for name in SERVERS:
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            sock.bind((name, 3))
            self.sockets[sock] = name

    def run(self):
        """Read until the process ends."""
        while True:
            for sock in select.select(list(self.sockets), [], [])[0]:
                data, ancillary, _, address = sock.recvmsg(2048, 64)
                stamp = next((it for level, kind, it in ancillary if kind == SO_TIMESTAMPNS), None)
                if stamp is None:
                    continue
                seconds, nanoseconds = struct.unpack("qq", stamp[:16])
                is_outgoing = address[2] == socket.PACKET_OUTGOING
                self.on_frame(seconds + nanoseconds / 1e9, self.sockets[sock], is_outgoing, data)

    def on_frame(self, at, port, is_outgoing, data):
        """Note what a frame says."""
        ether_type = int.from_bytes(data[12:14], "big")
        if ether_type == 0x8100:
            ether_type, data = int.from_bytes(data[16:18], "big"), data[:12] + data[16:]
        if ether_type == ETHER_TYPE:
            flow = next((n for n, it in enumerate(FLOWS) if mac(it["from"]) == data[6:12]), None)
            if flow is not None:
                arrives = port == "r" and is_outgoing
                leaves = port == FLOWS[flow]["at"] and not is_outgoing
                if arrives or leaves:
                    self.note(at, "arrives" if arrives else "leaves", flow)
        elif ether_type == 0x0800 and data[23] in (6, 17):
            payload = data[14 + (data[14] & 15) * 4 :]
            payload = payload[8:] if data[23] == 17 else payload[(payload[12] >> 4) * 4 :]
            for kind, body in bodies(payload):
                self.on_message(at, port, is_outgoing, kind, body)

    def on_message(self, at, port, is_outgoing, kind, body):
        """Note what agents say of flows."""
        pairs = {(it["from"], it["to"]): n for n, it in enumerate(FLOWS)}
        if kind == FEEDBACK and is_outgoing:
            for place in range(0, len(body) - 15, 16):
                flow = pairs.get(struct.unpack("!II", body[place : place + 8]))
                if flow is not None and port == FLOWS[flow]["at"]:
                    self.note(at, "rate", flow)
        elif kind == REPORT and not is_outgoing:
            for place in range(8, len(body) - 19, 20):
                flow = pairs.get(struct.unpack("!II", body[place + 4 : place + 12]))
                what = {BEGAN: "began", SHAPED: "shaped"}.get(body[place])
                if flow is not None and what:
                    self.note(at, what, flow)

    def note(self, at, what, flow):
        """Keep it for a while."""
        with self.lock:
            self.events.append((at, what, flow))
            if len(self.events) > 200_000:
                del self.events[:100_000]

    def seen(self, flow, within_s):
        """Wait for the first frame of a flow that was told to begin, and return what followed."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with self.lock:
                first = next((at for at, what, it in self.events if what == "leaves" and it == flow), None)
            if first is not None and time.time() > first + within_s + 0.1:
                with self.lock:
                    return [it for it in self.events if first - 0.1 <= it[0] <= first + within_s]
            time.sleep(0.02)
        return []

    def forget(self):
        """Forget what was seen."""
        with self.lock:
            self.events.clear()


def main():
    """Serve requests until the input ends."""
    if len(sys.argv) > 1:
        send(int(sys.argv[1]), float(sys.argv[2]))
        return
    build()
    watch = Watch()
    watch.start()
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {}
        if request["do"] == "send":
            watch.forget()
            server = FLOWS[request["flow"]]["at"]
            words = ["ip", "netns", "exec", server, sys.executable, "-B", os.path.abspath(__file__)]
            subprocess.Popen([*words, str(request["flow"]), str(request["for_s"])])
        else:
            answer = {"events": watch.seen(request["flow"], request["within_s"])}
        print(json.dumps(answer), flush=True)


main()
