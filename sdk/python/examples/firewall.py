#!/usr/bin/env python3
# /// burnet
# [capabilities]
# "view.read" = true
# "rule.write" = { priority = [40000, 49999] }
# ///
"""A firewall: drops what comes from the addresses that the operator names, on every switch.

    [app.firewall.settings]
    blocked = ["10.0.0.1", "192.168.0.0/16"]

Its rules have a higher priority than those of the apps that forward, so it stands beside them.
"""

from ipaddress import IPv4Network
from typing import Any

import burnet

PRIORITY = 40_000
"""Above what apps that forward use."""

IPV4 = 0x0800


class Firewall(burnet.App):
    """Rules on every switch that comes up, and a line in the log if one of them is not put in."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Read `blocked`, a list of IPv4 addresses and prefixes."""
        unknown = settings.keys() - {"blocked"}
        if unknown:
            raise burnet.Refused(f"the firewall has no setting {', '.join(sorted(unknown))}; it has `blocked`")
        try:
            self.blocked = [IPv4Network(text) for text in settings.get("blocked", [])]
        except (ValueError, TypeError) as error:
            raise burnet.Refused(f"blocked: {error}") from error

    def interests(self) -> burnet.Interests:
        """Switches that come up."""
        return burnet.Interests().switches()

    def on_switch_up(self, up: burnet.SwitchUp, out: burnet.Commands) -> None:
        """A rule without an action drops."""
        for network in self.blocked:
            out.rule(up.datapath).priority(PRIORITY).matching(eth_type=IPV4, ipv4_src=network).send_with_receipt()

    def on_receipt(self, receipt: burnet.Receipt, out: burnet.Commands) -> None:
        """A hole in a firewall is worth a line."""
        if not receipt.programmed:
            out.log(f"{burnet.show_datapath(receipt.datapath)} lets pass what is blocked: {receipt.reason}", level=0)


if __name__ == "__main__":
    burnet.run(Firewall)
