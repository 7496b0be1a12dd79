"""Reads a Mininet --custom file and prints the topology of a name in it as JSON.

In: the file, and NAME[,argument[,key=value]]. Out, on standard output: one JSON object, {"switches", "hosts", "links"} or
{"error": {"line", "message"}}. What the file itself prints goes to standard error. Mininet need not be installed: the classes
that such files derive from are here, and whatever else they import of it is there and does nothing.
"""

import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import traceback
import types


def natural(text):
    """A key that sorts s2 before s10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(text))]


def natural_sorted(names):
    return sorted(names, key=natural)


class Nothing:
    """Stands for what is not needed to draw a network: calling it and asking it for anything gives it again."""

    def __init__(self, *args, **options):
        pass

    def __call__(self, *args, **options):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Topo:
    """The part of mininet.topo.Topo that draws."""

    def __init__(self, *args, **params):
        self._nodes, self._links, self._ports = {}, [], {}
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self.params = params
        self.build(*args, **params)

    def build(self, *args, **params):
        pass

    def addNode(self, name, **opts):
        self._nodes[name] = opts
        return name

    def addHost(self, name, **opts):
        return self.addNode(name, **({**self.hopts, **opts} if self.hopts else opts))

    def addSwitch(self, name, **opts):
        merged = {**self.sopts, **opts} if self.sopts else dict(opts)
        merged["isSwitch"] = True
        return self.addNode(name, **merged)

    def addPort(self, src, dst, sport=None, dport=None):
        ports = self._ports
        for node in (src, dst):
            ports.setdefault(node, {})
        if sport is None:
            sport = len(ports[src]) + (1 if self.isSwitch(src) else 0)
        if dport is None:
            dport = len(ports[dst]) + (1 if self.isSwitch(dst) else 0)
        ports[src][sport] = (dst, dport)
        ports[dst][dport] = (src, sport)
        return sport, dport

    def addLink(self, node1, node2, port1=None, port2=None, key=None, **opts):
        for node in (node1, node2):
            if node not in self._nodes:
                raise KeyError("a link to %r, which has not been added" % (node,))
        if not opts and self.lopts:
            opts = self.lopts
        port1, port2 = self.addPort(node1, node2, port1, port2)
        link = dict(opts, node1=node1, node2=node2, port1=port1, port2=port2)
        self._links.append(link)
        return len(self._links) - 1 if key is None else key

    def nodes(self, sort=True):
        return natural_sorted(self._nodes) if sort else list(self._nodes)

    def isSwitch(self, name):
        return bool(self._nodes[name].get("isSwitch", False))

    def switches(self, sort=True):
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def hosts(self, sort=True):
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def iterLinks(self, withKeys=False, withInfo=False):
        for number, link in enumerate(self._links):
            ends = (link["node1"], link["node2"])
            yield ends + ((number,) if withKeys else ()) + ((link,) if withInfo else ())

    def links(self, sort=False, withKeys=False, withInfo=False):
        links = list(self.iterLinks(withKeys, withInfo))
        return sorted(links, key=lambda link: natural(link[0]) + natural(link[1])) if sort else links

    def port(self, src, dst):
        ports = [(mine, theirs[1]) for mine, theirs in self._ports[src].items() if theirs[0] == dst]
        return ports[0]

    def _between(self, src, dst):
        return next(link for link in self._links if {link["node1"], link["node2"]} == {src, dst})

    def linkInfo(self, src, dst, key=None):
        return self._between(src, dst)

    def setlinkInfo(self, src, dst, info, key=None):
        self._between(src, dst).update(info)

    def nodeInfo(self, name):
        return self._nodes[name]

    def setNodeInfo(self, name, info):
        self._nodes[name] = info


class SingleSwitchTopo(Topo):
    def build(self, k=2, **_opts):
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost("h%s" % number), switch)


class MinimalTopo(SingleSwitchTopo):
    def build(self):
        SingleSwitchTopo.build(self, k=2)


class SingleSwitchReversedTopo(Topo):
    def build(self, k=2):
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost("h%s" % number), switch, port1=0, port2=k - number + 1)


class LinearTopo(Topo):
    def build(self, k=2, n=1, sopts=None, **_opts):
        last = None
        for place in range(1, k + 1):
            switch = self.addSwitch("s%s" % place, **(sopts or {}))
            for number in range(1, n + 1):
                name = "h%s" % place if n == 1 else "h%ss%s" % (number, place)
                self.addLink(self.addHost(name), switch)
            if last:
                self.addLink(switch, last)
            last = switch


class TreeTopo(Topo):
    def build(self, depth=1, fanout=2):
        self.hostNum = self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth, fanout):
        if depth == 0:
            node = self.addHost("h%s" % self.hostNum)
            self.hostNum += 1
            return node
        node = self.addSwitch("s%s" % self.switchNum)
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(node, self.addTree(depth - 1, fanout))
        return node


class TorusTopo(Topo):
    def build(self, x, y, n=1):
        switch = {}
        for row in range(x):
            for column in range(y):
                place = "%dx%d" % (row + 1, column + 1)
                number = "%x" % ((row + 1) * 256 + column + 1)
                switch[row, column] = self.addSwitch("s" + place, dpid=number)
                for host in range(1, n + 1):
                    name = "h" + place if n == 1 else "h%sx%d" % (place, host)
                    self.addLink(self.addHost(name), switch[row, column])
        for row in range(x):
            for column in range(y):
                self.addLink(switch[row, column], switch[row, (column + 1) % y])
                self.addLink(switch[row, column], switch[(row + 1) % x, column])


def numeric(text):
    """A number if it is one, as mn reads arguments."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def irange(start, end):
    return range(start, end + 1)


STANDINS = {
    "mininet.topo": {
        "Topo": Topo,
        "SingleSwitchTopo": SingleSwitchTopo,
        "SingleSwitchReversedTopo": SingleSwitchReversedTopo,
        "MinimalTopo": MinimalTopo,
        "LinearTopo": LinearTopo,
    },
    "mininet.topolib": {
        "TreeTopo": TreeTopo,
        "TorusTopo": TorusTopo,
        "TreeNet": Nothing,
    },
    "mininet.util": {
        "irange": irange,
        "natural": natural,
        "naturalSeq": natural,
        "makeNumeric": numeric,
        "customClass": lambda classes, name: Nothing,
    },
}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives every module below mininet: what draws, and nothing for all else."""

    def find_spec(self, name, path=None, target=None):
        if name == "mininet" or name.startswith("mininet."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__dict__.update(STANDINS.get(spec.name, {}))

        def anything(name):
            if name.startswith("__") and name != "__version__":
                raise AttributeError(name)
            # A class, since files derive theirs from some.
            return type(name, (Nothing,), {}) if name[:1].isupper() else Nothing()

        module.__getattr__ = anything
        return module

    def exec_module(self, module):
        pass


def described(topo):
    def switch(name):
        dpid = topo.nodeInfo(name).get("dpid")
        return {"name": str(name), "dpid": None if dpid is None else str(dpid)}

    def host(name):
        info = topo.nodeInfo(name)
        text = {key: None if info.get(key) is None else str(info[key]) for key in ("ip", "mac")}
        return dict(text, name=str(name))

    def link(info):
        options = {}
        for key in ("bw", "delay", "loss", "max_queue_size"):
            if info.get(key) is not None:
                options[key] = str(info[key])
        ends = {"one": str(info["node1"]), "two": str(info["node2"])}
        return dict(ends, port1=int(info["port1"]), port2=int(info["port2"]), options=options)

    links = topo.links(sort=True, withInfo=True)
    return {
        "switches": [switch(name) for name in topo.switches()],
        "hosts": [host(name) for name in topo.hosts()],
        "links": [link(found[-1]) for found in links],
    }


def read(file, wanted):
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    found = {"__name__": "mininet_custom", "__file__": file}
    with open(file, encoding="utf-8") as source:
        exec(compile(source.read(), file, "exec"), found, found)
    topos = found.get("topos")
    if not isinstance(topos, dict) or not topos:
        raise LookupError("it has no topos = {'NAME': ...}, by which Mininet finds its topologies")
    name, *words = wanted.split(",")
    if name not in topos:
        names = ", ".join(sorted(str(known) for known in topos))
        raise LookupError("it has no topology '%s'; it has %s" % (name, names))
    args = [numeric(word) for word in words if "=" not in word]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return described(topos[name](*args, **{key: numeric(value) for key, value in named.items()}))


def line_in(file, error):
    """The last line of the file that was on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else None


def main():
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    file, wanted = sys.argv[1:3]
    sys.meta_path.insert(0, StandIns())
    try:
        result = read(file, wanted)
    except LookupError as error:
        kind = "" if type(error) is LookupError else type(error).__name__ + ": "
        result = {"error": {"line": line_in(file, error), "message": kind + str(error)}}
    except BaseException as error:
        # A syntax error's own text names the file and the line once more.
        what = error.msg if isinstance(error, SyntaxError) else error
        message = "%s: %s" % (type(error).__name__, what)
        result = {"error": {"line": line_in(file, error), "message": message}}
    json.dump(result, answer)
    answer.close()


main()
