# /// burnet
# [capabilities]
# "view.read" = true
# ///
"""Prints each link that fails, and each that works again."""

import burnet
from burnet.view import Change, View

class FailedLinks(burnet.App):
    """Follows the links of the network view."""

    def interests(self) -> burnet.Interests:
        """Links, and the ports and switches that they need."""
        return burnet.Interests().view("link")

    def on_view(self, changes: list[Change], view: View, out: burnet.Commands) -> None:
        """Compares each link with its state before."""
        for change in changes:
            if change.kind != "link":
                continue
            was_up = change.before is not None and change.before.is_up
            is_up = change.now is not None and change.now.is_up
            if was_up and not is_up:
                print(f"failed: {change.before.src} to {change.before.dst}")
            elif is_up and not was_up:
                print(f"works: {change.now.src} to {change.now.dst}")


if __name__ == "__main__":
    burnet.run(FailedLinks)
