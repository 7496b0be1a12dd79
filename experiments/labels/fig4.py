"""Mininet for the experiments fig4a to fig4c: the network of Fig. 1a, its TCP flows, and what arrives at hosts.

    python3 fig4.py fig1a.py 6653

It says `ready` when the network is there. Then each line of its input is a request in JSON, and gets a line of JSON:

    {"do": "reach", "from": "a", "to": "b"}                     whether a ping comes back
    {"do": "run", "phase_s": 60, "sample_s": 2}                 three flows, one more in each phase

Switches are Open vSwitch's on its user-space datapath. It ends with its input.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path

from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController
from mininet.util import custom

FLOWS = (("a", "b"), ("e", "f"), ("c", "d"))
"""In the order in which they begin."""
SERVERS = (5, 6, 7, 8)
"""The switches that are in servers. An agent shapes what they send into the network."""
UPLINK = 3
"""The port of those switches that leads into the network."""
MTU = 1496
"""With the tag of a slice, a frame has no more bytes than without it before."""
LINK = {"bw": 10}
QUEUE_PACKETS = 50
"""What waits for a link at most. By itself, Linux takes a thousand packets: more than a second at this rate."""


def network(topology, port):
    """Build and start it."""
    spec = importlib.util.spec_from_file_location("fig1a", topology)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Shaped(module.Fig1a):
        """The same, where an agent has the sending side of each server's interface."""

        def addLink(self, one, two, **options):  # noqa: N802
            """Add a link with the rate of both directions, or of the one that no agent shapes."""
            options.pop("bw", None)
            is_uplink = one in {f"s{number}" for number in SERVERS} and options.get("port1") == UPLINK
            shaped = {} if is_uplink else dict(LINK)
            return super().addLink(one, two, params1=shaped, params2=dict(LINK), **options)

    switch = custom(OVSSwitch, datapath="user", protocols="OpenFlow13", inband=False)
    net = Mininet(topo=Shaped(), switch=switch, link=TCLink, controller=None, autoStaticArp=True)
    net.addController("c0", controller=RemoteController, ip="127.0.0.1", port=port)
    net.start()
    for interface in (it for node in (*net.hosts, *net.switches) for it in node.intfList()):
        if interface.params.get("bw"):
            # Behind the class that Mininet makes.
            interface.tc(f"%s qdisc add dev %s parent 5:1 handle 50: pfifo limit {QUEUE_PACKETS}")
    for host in net.hosts:
        device = host.defaultIntf().name
        # A switch in user space needs whole frames with their checksums.
        host.cmd(f"ethtool -K {device} tx off tso off gso off gro off")
        host.cmd(f"ip link set {device} mtu {MTU}")
        host.cmd(f"sysctl -q -w net.ipv6.conf.{device}.disable_ipv6=1")
    return net


def received(host):
    """How many bytes of frames have arrived at a host."""
    lines = Path(f"/proc/{host.pid}/net/dev").read_text().splitlines()
    line = next(line for line in lines if line.strip().startswith(f"{host.defaultIntf().name}:"))
    return int(line.split(":")[1].split()[0])


def reach(net, request):
    """Whether a ping comes back."""
    one, two = net.get(request["from"]), net.get(request["to"])
    return {"ok": ", 0% packet loss" in one.cmd(f"ping -n -c 1 -W 2 {two.IP()}")}


def run(net, request):
    """Three flows, one more in each phase. Samples have the bytes that arrived at the three receivers until then."""
    phase_s, sample_s = request["phase_s"], request["sample_s"]
    for _, to in FLOWS:
        net.get(to).cmd("iperf -s > /dev/null 2>&1 &")
    time.sleep(1)
    began, begun, samples, next_s = time.monotonic(), 0, [], 0.0
    while next_s <= phase_s * len(FLOWS):
        time.sleep(max(0.0, began + next_s - time.monotonic()))
        if begun < len(FLOWS) and next_s >= begun * phase_s:
            source, to = FLOWS[begun]
            left = phase_s * (len(FLOWS) - begun)
            net.get(source).cmd(f"iperf -c {net.get(to).IP()} -t {left} > /dev/null 2>&1 &")
            begun += 1
        at = time.monotonic() - began
        samples.append({"at_s": at, "bytes": [received(net.get(to)) for _, to in FLOWS]})
        next_s += sample_s
    for host in net.hosts:
        host.cmd("kill $(jobs -p) 2> /dev/null; wait")
    return {"samples": samples}


def main():
    """Serve requests until the input ends."""
    setLogLevel("warning")
    net = network(sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"reach": reach, "run": run}[request["do"]](net, request)
        print(json.dumps(answer), flush=True)
    net.stop()


main()
