"""Two Mininet switches: Burnet's emulated switch, and Open vSwitch behind Burnet's proxy.

    mn --custom burnet_switch.py --switch burnet --controller remote --topo tree,2
    mn --custom burnet_switch.py --switch burnet,protocols=OpenFlow10 ...
    mn --custom burnet_switch.py --switch burnet,profile=hp-procurve-j9451a ...
    mn --custom burnet_switch.py --switch profiled,profile=my.toml,protocols=OpenFlow13 ...

In: what Mininet tells a switch. Out: for each switch one `burnet emulate`, on the switch's own interfaces. The binary is
`burnet` in the path, or what the environment variable BURNET_BINARY names.

The class `burnet` never touches Open vSwitch, and needs no kernel module. Hosts are told to cut their segments themselves
(what is left uncut to a network card that is none is longer than an interface takes). The class `profiled` is Mininet's own
Open vSwitch, with its arguments. It connects to a proxy, which makes it behave as the switch of the profile.
"""

import os
import re
import shlex
import subprocess
import tempfile
import time

from mininet.log import error
from mininet.node import OVSSwitch, Switch

# What `burnet emulate --version` calls what Open vSwitch calls so.
VERSIONS = {"OpenFlow10": "1.0", "OpenFlow13": "1.3"}

# A switch that does not end by itself within this many seconds is made to.
END_PATIENCE_S = 5

# A proxy that does not listen within this many seconds will not.
START_PATIENCE_S = 30


def binary():
    """The program."""
    return os.environ.get("BURNET_BINARY", "burnet")


def new_log(name):
    """An empty file for what the process of a switch prints."""
    handle, path = tempfile.mkstemp(prefix="burnet-%s-" % name, suffix=".log")
    os.close(handle)
    return path


def read_log(path):
    """What the process has printed."""
    if not path:
        return ""
    with open(path, encoding="utf-8", errors="replace") as log:
        return log.read()


class BurnetSwitch(Switch):
    """An emulated switch on the interfaces that Mininet gives it."""

    def __init__(self, name, protocols="OpenFlow10,OpenFlow13", failMode="secure", profile=None, **params):
        """protocols: as for Open vSwitch; failMode: secure or standalone; profile: a built-in one, or a file."""
        Switch.__init__(self, name, **params)
        spoken = [VERSIONS[protocol] for protocol in protocols.split(",")]
        self.version = spoken[0] if len(spoken) == 1 else "both"
        self.fail_mode = failMode
        self.profile = profile
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
        words = [binary(), "emulate", "--bind", bound, "--dpid", "0x" + self.dpid]
        words += ["--version", self.version, "--fail-mode", self.fail_mode]
        if self.profile:
            words += ["--profile", self.profile]
        for controller in controllers:
            words += ["--controller", "%s:%d" % (controller.IP(), controller.port)]
        self.log = new_log(self.name)
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
        return read_log(self.log)

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


class Proxy:
    """What Open vSwitch takes for its controller."""

    protocol = "tcp"
    name = "proxy"

    def __init__(self, address, port):
        self.address, self.port = address, port

    def IP(self):
        """Its address."""
        return self.address


class ProfiledSwitch(OVSSwitch):
    """Open vSwitch that behaves as the switch of a profile."""

    def __init__(self, name, profile=None, **params):
        """profile: a built-in one, or a file; the others are those of OVSSwitch."""
        if not profile:
            raise ValueError("--switch profiled needs a profile: write profiled,profile=NAME or profiled,profile=FILE")
        OVSSwitch.__init__(self, name, **params)
        self.profile = profile
        self.process = None
        self.log = None

    def start(self, controllers):
        """Starts the proxy before the switch. Without a controller there is nothing to stand before."""
        if len(controllers) > 1:
            raise ValueError("%s: the proxy serves one controller, not %d" % (self.name, len(controllers)))
        OVSSwitch.start(self, [self.start_proxy(controller) for controller in controllers])

    def start_proxy(self, controller):
        """Starts the proxy on a free port, and waits until it says which."""
        taps = sorted((port, intf.name) for port, intf in self.intfs.items() if intf.name != "lo")
        words = [binary(), "emulate", "--profile", self.profile, "--proxy", "127.0.0.1:0"]
        words += ["--controller", "%s:%d" % (controller.IP(), controller.port)]
        for port, intf in taps:
            words += ["--tap", "%d=%s" % (port, intf)]
        self.log = new_log(self.name)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = self.popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            listens = re.search(r"the switch that connects to ([0-9.]+):(\d+)", self.said())
            if listens:
                return Proxy(listens.group(1), int(listens.group(2)))
            time.sleep(0.05)
        raise RuntimeError("%s: the proxy does not start; it said:\n%s" % (self.name, self.said()))

    def said(self):
        """What the proxy has printed."""
        return read_log(self.log)

    def end_proxy(self):
        """Ends the proxy in good order. Returns what it has printed, with its counters."""
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(END_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        return self.said()

    def terminate(self):
        """Mininet's last call to each switch."""
        self.end_proxy()
        if self.log:
            os.unlink(self.log)
            self.log = None
        OVSSwitch.terminate(self)


switches = {"burnet": BurnetSwitch, "profiled": ProfiledSwitch}
