# /// burnet
# [capabilities]
# "view.read" = true
# "host.read" = true
# "intent.read" = true
# "intent.write" = true
# ///
"""Connects each host with a server by a protected intent, and prints each state of these intents."""

import json
from typing import Any

import burnet
from burnet.view import Change, View

class ToServer(burnet.App):
    """One intent for each host."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Read `server`, the address of the server."""
        self.server = str(settings["server"])

    def interests(self) -> burnet.Interests:
        """Hosts and intents, and what they need."""
        return burnet.Interests().view("host", "intent")

    def on_view(self, changes: list[Change], view: View, out: burnet.Commands) -> None:
        """Print the states of intents. If hosts changed, ask for all intents again: a question can be repeated."""
        for change in changes:
            if change.kind == "intent" and change.now is not None:
                print(f"{change.now['name']}: {change.now['state']}", flush=True)
        servers = view.hosts_with_address(self.server)
        for host in view.hosts if servers and any(change.kind == "host" for change in changes) else []:
            if host.mac != servers[0].mac:
                ends = {"type": "host_to_host", "one": host.mac, "two": servers[0].mac, "protection": "protected"}
                out.query("paths", json.dumps({"op": "add", "name": host.mac, "intent": ends}).encode())


if __name__ == "__main__":
    burnet.run(ToServer)
