"""The network of "The Price of Virtualization", Fig. 1a, at a thousandth of its rates.

For Mininet's option --custom, and that of `burnet emulate`.
"""

from mininet.topo import Topo

RATE_MBPS = 10


class Fig1a(Topo):
    """Spines s1 and s2, leaves s3 and s4, and a software switch in each of four servers."""

    def build(self):
        """Add the switches, the links and a host for each VNIC."""
        switches = {number: self.addSwitch(f"s{number}") for number in range(1, 9)}

        def cable(one, one_port, other, other_port):
            self.addLink(switches[one], switches[other], port1=one_port, port2=other_port, bw=RATE_MBPS)

        cable(3, 1, 1, 1)
        cable(3, 2, 2, 1)
        cable(4, 1, 1, 2)
        cable(4, 2, 2, 2)
        cable(5, 3, 3, 3)
        cable(6, 3, 3, 4)
        cable(7, 3, 4, 3)
        cable(8, 3, 4, 4)
        places = {"a": (5, 1), "c": (5, 2), "e": (6, 1), "b": (7, 1), "d": (7, 2), "f": (8, 1)}
        for number, (name, (switch, port)) in enumerate(places.items(), 1):
            host = self.addHost(name, ip=f"10.0.0.{number}", mac=f"00:00:00:00:00:{number:02x}")
            self.addLink(host, switches[switch], port2=port, bw=RATE_MBPS)


topos = {"fig1a": Fig1a}
