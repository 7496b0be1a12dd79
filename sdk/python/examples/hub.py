#!/usr/bin/env python3
# /// burnet
# [capabilities]
# "packet.in" = true
# "packet.out" = { ports = ["FLOOD"] }
# ///
"""The hub: sends each packet out of every other port, and puts no rule into any switch."""

import burnet

class Hub(burnet.App):
    """It remembers nothing."""

    def interests(self) -> burnet.Interests:
        """Every packet."""
        return burnet.Interests().packets()

    def on_packet_in(self, packet: burnet.PacketIn, out: burnet.Commands) -> None:
        """Out of every other port."""
        out.packet_out(packet.datapath).packet(packet).output(burnet.FLOOD).send()


if __name__ == "__main__":
    burnet.run(Hub)
