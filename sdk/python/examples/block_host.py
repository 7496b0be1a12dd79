# /// burnet
# [capabilities]
# "view.read" = true
# "rule.write" = { priority = [20000, 20000] }
# ///
"""Drops IPv4 packets from one host, in every switch: the app of docs/guide/first-app-python.md."""

from ipaddress import IPv4Address
from typing import Any

import burnet

class BlockHost(burnet.App):
    """One rule in each switch."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Read `address`, the host to block."""
        try:
            self.address = IPv4Address(settings["address"])
        except (KeyError, ValueError) as error:
            raise burnet.Refused(f"set `address` to an IPv4 address: {error}") from error

    def interests(self) -> burnet.Interests:
        """Switches that come up."""
        return burnet.Interests().switches()

    def on_switch_up(self, up: burnet.SwitchUp, out: burnet.Commands) -> None:
        """A rule without actions drops the packet."""
        out.rule(up.datapath).priority(20000).matching(eth_type=0x0800, ipv4_src=self.address).send_with_receipt()

    def on_receipt(self, receipt: burnet.Receipt, out: burnet.Commands) -> None:
        """Report a switch that has no such rule."""
        if not receipt.programmed:
            out.log(f"{burnet.show_datapath(receipt.datapath)} does not block it: {receipt.reason}", level=0)


if __name__ == "__main__":
    burnet.run(BlockHost)
