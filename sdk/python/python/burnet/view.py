"""The network view: switches, ports, links and hosts, and their changes.

An app names the kinds of objects in `interests`, and gets each change:

    def interests(self) -> burnet.Interests:
        return burnet.Interests().view("link", "host")

    def on_view(self, changes: list[view.Change], now: view.View, out: burnet.Commands) -> None:
        for change in changes:
            print(change.what, change.key)

`out.view` is the present state, in every handler. The app needs the capability `view.read`, and for hosts `host.read`.
"""

from burnet._native import ConnectPoint, View
from burnet._native import ViewChange as Change
from burnet._native import ViewHost as Host
from burnet._native import ViewLink as Link
from burnet._native import ViewPort as Port
from burnet._native import ViewSwitch as Switch

__all__ = ["Change", "ConnectPoint", "Host", "Link", "Port", "Switch", "View"]
