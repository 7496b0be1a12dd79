"""A Mininet switch that is Burnet's emulated switch, in the place where Open vSwitch stands otherwise.

    mn --custom burnet_switch.py --switch burnet --controller remote --topo tree,2
    mn --custom burnet_switch.py --switch burnet,protocols=OpenFlow10 ...

In: what Mininet tells a switch. Out: one `burnet emulate --bind` for each switch, on the switch's own interfaces. The
binary is `burnet` in the path, or what the environment variable BURNET_BINARY names.

It never touches Open vSwitch, and needs no kernel module. Hosts are told to cut their segments themselves (what is left
uncut to a network card that is none is longer than an interface takes).
"""

import os
import re
import shlex
import tempfile
import time

from mininet.log import error
from mininet.node import Switch

# What `burnet emulate --version` calls what Open vSwitch calls so.
VERSIONS = {"OpenFlow10": "1.0", "OpenFlow13": "1.3"}

# A switch that does not end by itself within this many seconds is made to.
END_PATIENCE_S = 5


class BurnetSwitch(Switch):
    """An emulated switch on the interfaces that Mininet gives it."""

    def __init__(self, name, protocols="OpenFlow10,OpenFlow13", failMode="secure", **params):
        """protocols: as for Open vSwitch; failMode: secure or standalone."""
        Switch.__init__(self, name, **params)
        spoken = [VERSIONS[protocol] for protocol in protocols.split(",")]
        self.version = spoken[0] if len(spoken) == 1 else "both"
        self.fail_mode = failMode
        self.binary = os.environ.get("BURNET_BINARY", "burnet")
        self.process = None
        self.log = None

    @classmethod
    def setup(cls):
        """Nothing has to run before the first switch."""

    def start(self, controllers):
        """Starts the switch, connected to all of these controllers."""
        ports = {port: intf for port, intf in self.intfs.items() if intf.name != "lo"}
        for intf in ports.values():
            self.prepare(intf)
        bound = ",".join("%s=%d" % (intf.name, port) for port, intf in sorted(ports.items()))
        words = [self.binary, "emulate", "--bind", bound, "--dpid", "0x" + self.dpid]
        words += ["--version", self.version, "--fail-mode", self.fail_mode]
        for controller in controllers:
            words += ["--controller", "%s:%d" % (controller.IP(), controller.port)]
        handle, self.log = tempfile.mkstemp(prefix="burnet-%s-" % self.name, suffix=".log")
        os.close(handle)
        command = " ".join(shlex.quote(word) for word in words)
        self.cmd("%s > %s 2>&1 < /dev/null &" % (command, shlex.quote(self.log)))
        self.process = self.cmd("echo $!").strip()

    def prepare(self, intf):
        """The kernel is not to speak on this interface, and its other end is to cut its segments."""
        self.cmd("sysctl -q -w net.ipv6.conf.%s.disable_ipv6=1" % intf.name)
        self.cmd("ip link set dev %s up" % intf.name)
        if intf.link:
            ends = [intf.link.intf1, intf.link.intf2]
            other = ends[0] if ends[1] is intf else ends[1]
            other.node.cmd("ip link set dev %s gso_max_segs 1" % other.name)

    def connected(self):
        """Whether the last that the switch said of its controllers is that one is there."""
        said = [line for line in self.said().splitlines() if re.search(r" (dis)?connected[:,]", line)]
        return bool(said) and " connected," in said[-1]

    def said(self):
        """What the switch has printed."""
        if not self.log:
            return ""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def runs(self):
        """Whether the process is there."""
        return bool(self.process) and os.path.exists("/proc/%s" % self.process)

    def stop(self, deleteIntfs=True):
        """Ends the switch in good order."""
        if not self.runs():
            error("%s had ended before; it said:\n%s\n" % (self.name, self.said()))
        else:
            self.cmd("kill %s" % self.process)
            deadline = time.monotonic() + END_PATIENCE_S
            while self.runs() and time.monotonic() < deadline:
                self.cmd("wait %s" % self.process)
            if self.runs():
                self.cmd("kill -9 %s" % self.process)
        self.process = None
        if self.log:
            os.unlink(self.log)
            self.log = None
        Switch.stop(self, deleteIntfs)


switches = {"burnet": BurnetSwitch}
