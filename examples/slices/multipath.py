"""A tenant's controller for os-ken: layer 2 over several paths, chosen by the labels of the links.

    python3 multipath.py 6702 --vnics vnics.txt --choose label

It speaks OpenFlow 1.0 with a slice that has `labels = "paper"`: `ofp_phy_port` has 52 bytes, with the field `label` in
kb/s. Links come from os-ken's discovery by LLDP. A flow is a pair of MAC addresses; each switch of its path gets a
rule. Broadcasts go to ports of hosts only, so loops do no harm. Choices of paths are in choice.py.
"""

import argparse
import random
import sys
import time
import zlib
from pathlib import Path
from typing import ClassVar

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.lib.mac import haddr_to_bin
from os_ken.ofproto import ofproto_v1_0
from os_ken.topology import event as topology_event

from choice import BadMessage, Balancer, expected_rate, label_of_status, labels_of_features, read_vnics, shortest_paths

# os-ken steps over ports by this. Its parser reads the first 48 bytes of each.
ofproto_v1_0.OFP_PHY_PORT_SIZE = 52

AGAIN_S = 0.5
"""How often flows that get too little are looked at without a new label."""
IDLE_TIMEOUT_S = 10
PRIORITY = 100
HOSTS_MAX = 10_000
"""The most hosts that are remembered. At the bound, all are learned again."""
NEIGHBOURS = (0x88CC, 0x8942)
"""EtherTypes of probes for links."""

def options(words):
    """The command line. os-ken has its own, so this is read before os-ken is started."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int, help="the TCP port at which slices connect")
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS")
    parser.add_argument("--choose", choices=["label", "random", "hash"], default="label")
    parser.add_argument("--vnics", metavar="FILE", help="lines of a MAC address and a rate, such as 2.5G")
    return parser.parse_args(words)

class Multipath(OSKenApp):
    """Chooses paths, installs rules, and moves flows when labels change."""

    OFP_VERSIONS = (ofproto_v1_0.OFP_VERSION,)
    choose = "label"
    vnics: ClassVar = {}

    def __init__(self, *args, **kwargs):
        """Nothing is known yet."""
        super().__init__(*args, **kwargs)
        self.switches = {}
        self.ports = {}
        self.labels = {}
        self.links = {}
        self.hosts = {}
        self.numbers = {}
        self.balancer = Balancer(choose_by_label=self.choose == "label")
        hub.spawn(self.move_again)

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_switch(self, event):
        """A switch is there, with the labels of its ports."""
        datapath = event.msg.datapath
        try:
            labels = labels_of_features(bytes(event.msg.buf))
        except BadMessage as wrong:
            self.logger.error("switch %016x: %s", datapath.id, wrong)
            datapath.close()
            return
        self.switches[datapath.id] = datapath
        self.ports[datapath.id] = {port for port in labels if port < datapath.ofproto.OFPP_MAX}
        self.labels.update({(datapath.id, port): label for port, label in labels.items()})

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    def on_gone(self, event):
        """A switch is gone. os-ken's discovery removes its links."""
        self.switches.pop(event.datapath.id, None)
        self.ports.pop(event.datapath.id, None)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event):
        """A label has changed, or a port."""
        message = event.msg
        datapath = message.datapath
        try:
            port, label = label_of_status(bytes(message.buf))
        except BadMessage as wrong:
            self.logger.error("switch %016x: %s", datapath.id, wrong)
            return
        known = self.ports.setdefault(datapath.id, set())
        if message.reason == datapath.ofproto.OFPPR_DELETE:
            known.discard(port)
        elif port < datapath.ofproto.OFPP_MAX:
            known.add(port)
        if self.labels.get((datapath.id, port)) != label:
            self.labels[datapath.id, port] = label
            self.logger.info("label of %x:%d is %d kb/s", datapath.id, port, label)
            self.move()

    @set_ev_cls(topology_event.EventLinkAdd)
    def on_link(self, event):
        """Discovery has found a link. A host that was learned there is none."""
        link = event.link
        self.links[link.src.dpid, link.src.port_no] = (link.dst.dpid, link.dst.port_no)
        self.hosts = {mac: at for mac, at in self.hosts.items() if at not in self.inner()}

    @set_ev_cls(topology_event.EventLinkDelete)
    def on_link_gone(self, event):
        """A link is gone. Its flows get other paths, or none."""
        gone = (event.link.src.dpid, event.link.src.port_no)
        self.links.pop(gone, None)
        for flow, (_, path) in list(self.balancer.flows.items()):
            if gone in path and self.knows(flow):
                self.remove(flow, path)
                self.begin(flow)
            elif gone in path:
                # Its rules time out.
                self.forget(flow)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_flow_removed(self, event):
        """Nobody uses a flow any more. If this app deleted the rule, the flow has another path."""
        message = event.msg
        if message.reason == message.datapath.ofproto.OFPRR_DELETE:
            return
        match = message.match
        flow = (match.dl_src.hex(":"), match.dl_dst.hex(":"))
        self.forget(flow)
        self.share()

    def forget(self, flow):
        """A flow has ended."""
        self.balancer.end(flow)
        self.numbers.pop(flow, None)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        """Learns the sender, and begins a flow or asks all hosts."""
        message = event.msg
        datapath, data = message.datapath, message.data
        at = (datapath.id, message.in_port)
        if len(data) < 14 or int.from_bytes(data[12:14]) in NEIGHBOURS:
            return
        target, source = data[:6].hex(":"), data[6:12].hex(":")
        if at not in self.inner() and not data[6] & 1:
            if len(self.hosts) >= HOSTS_MAX:
                self.hosts.clear()
            self.hosts[source] = at
        if target not in self.hosts:
            self.flood(at, data)
        elif source in self.hosts and (path := self.begin((source, target))) is not None:
            self.logger.info("%s to %s by %s", source, target, path)
            self.send(self.hosts[target], data)

    def inner(self):
        """The ports at both ends of links."""
        return set(self.links) | set(self.links.values())

    def label(self, port):
        """The label of the link that leaves by a port, in kb/s."""
        return self.labels.get(port, 0)

    def knows(self, flow):
        """Whether both hosts of a flow are known."""
        return flow[0] in self.hosts and flow[1] in self.hosts

    def paths(self, flow):
        """The paths that a flow could take."""
        (start, _), (end, _) = self.hosts[flow[0]], self.hosts[flow[1]]
        return shortest_paths(self.links.items(), start, end)

    def number(self, flow):
        """What decides among equal paths: the same number for a flow as long as it lives."""
        if self.choose == "hash":
            return zlib.crc32(" ".join(flow).encode())
        return self.numbers.setdefault(flow, random.getrandbits(32))

    def begin(self, flow):
        """Gives a flow its path. Returns it; None if there is none."""
        if not self.knows(flow):
            return None
        paths = self.paths(flow)
        # A VNIC that is not in the list may want as much as the fastest link has.
        unknown = max(self.labels.values(), default=0)
        rate = expected_rate(flow, self.balancer.flows, self.vnics, unknown)
        if flow in self.balancer.flows and self.balancer.flows[flow][1] in paths:
            # A packet was on its way while the rules were.
            path = self.balancer.flows[flow][1]
        else:
            chosen = self.balancer.place(flow, rate, paths, self.number(flow), self.label)
            if flow not in self.balancer.flows:
                self.numbers.pop(flow, None)
            self.share()
            if chosen is None:
                return None
            path = paths[chosen]
        self.install(flow, path)
        return path

    def share(self):
        """Flows of the same VNIC share its rate."""
        unknown = max(self.labels.values(), default=0)
        for flow in list(self.balancer.flows):
            self.balancer.set_rate(flow, expected_rate(flow, self.balancer.flows, self.vnics, unknown))

    def move_again(self):
        """A flow that has moved may move again after some time, without a new label."""
        while True:
            hub.sleep(AGAIN_S)
            self.move()

    def move(self):
        """Flows that get too little move if another path gives them a fifth more."""
        now_ms = int(time.monotonic() * 1_000)
        for flow in self.balancer.short(self.label):
            if not self.knows(flow):
                continue
            before, paths = self.balancer.flows[flow][1], self.paths(flow)
            chosen = self.balancer.reconsider(flow, paths, self.number(flow), now_ms, self.label)
            if chosen is not None:
                self.logger.info("%s to %s moves to %s", *flow, paths[chosen])
                self.install(flow, paths[chosen])
                kept = {hop[:2] for hop in self.hops(flow, paths[chosen])}
                self.remove(flow, before, kept)

    def hops(self, flow, path):
        """Where a path enters and leaves each switch: (switch, in, out)."""
        entries = [self.hosts[flow[0]], *(self.links[port] for port in path if port in self.links)]
        exits = [*(port[1] for port in path), self.hosts[flow[1]][1]]
        return [(switch, entry, out) for (switch, entry), out in zip(entries, exits, strict=False)]

    def install(self, flow, path):
        """Rules from the end of the path to its beginning, so that a packet that meets one finds the others."""
        hops = self.hops(flow, path)
        for index, (switch, entry, out) in reversed(list(enumerate(hops))):
            if switch in self.switches:
                self.rule(self.switches[switch], flow, entry, out, tell=index == 0)

    def remove(self, flow, path, kept=()):
        """Removes the rules of a path, except where another rule has their place."""
        for switch, entry, _ in self.hops(flow, path):
            if switch in self.switches and (switch, entry) not in kept:
                self.rule(self.switches[switch], flow, entry, None)

    def rule(self, datapath, flow, entry, out, tell=False):
        """One rule: adds it, or deletes it if it leads nowhere."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        match = parser.OFPMatch(in_port=entry, dl_src=haddr_to_bin(flow[0]), dl_dst=haddr_to_bin(flow[1]))
        command = ofproto.OFPFC_DELETE_STRICT if out is None else ofproto.OFPFC_ADD
        # A port by which a packet came in must be named as such.
        port = ofproto.OFPP_IN_PORT if out == entry else out
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, match=match, cookie=0, command=command, priority=PRIORITY, idle_timeout=IDLE_TIMEOUT_S,
            flags=ofproto.OFPFF_SEND_FLOW_REM if tell else 0,
            actions=[] if out is None else [parser.OFPActionOutput(port)]))

    def flood(self, came_from, data):
        """To all ports of hosts, and into no link."""
        inner = self.inner()
        for switch, ports in self.ports.items():
            for port in ports:
                if (switch, port) != came_from and (switch, port) not in inner:
                    self.send((switch, port), data)

    def send(self, at, data):
        """Sends a frame out of a port."""
        datapath = self.switches.get(at[0])
        if datapath is not None:
            ofproto, parser = datapath.ofproto, datapath.ofproto_parser
            datapath.send_msg(parser.OFPPacketOut(
                datapath=datapath, buffer_id=ofproto.OFP_NO_BUFFER, in_port=ofproto.OFPP_NONE,
                actions=[parser.OFPActionOutput(at[1])], data=data))

def main():
    """Reads the options, and starts os-ken with this file as its app."""
    from os_ken import cfg
    from os_ken.base.app_manager import AppManager

    given = options(sys.argv[1:])
    try:
        vnics = read_vnics(Path(given.vnics).read_text()) if given.vnics else {}
    except (OSError, ValueError) as wrong:
        sys.exit(f"multipath: {given.vnics}: {wrong}")
    # os-ken imports this file again, by its name. So that is where the options go.
    import multipath

    multipath.Multipath.choose, multipath.Multipath.vnics = given.choose, vnics
    words = ["--ofp-listen-host", given.listen, "--ofp-tcp-listen-port", str(given.port), "--observe-links"]
    # Without a rule for it, the probes of discovery come up anyway. A node with [network] refuses rules of the
    # highest priority, and os-ken ends a connection of 1.0 at any error.
    words.append("--noinstall-lldp-flow")
    # Discovery has options of its own, which exist once it is imported.
    import os_ken.topology.switches  # noqa: F401

    cfg.CONF(args=words, project="os_ken")
    AppManager.run_apps(["os_ken.controller.ofp_handler", "os_ken.topology.switches", "multipath"])

if __name__ == "__main__":
    main()
