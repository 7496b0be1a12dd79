#!/usr/bin/env python3
# /// burnet
# [capabilities]
# "hello.greet" = ["A"]
# [quotas]
# "hello.greetings" = 2
# ///
"""An app that calls the service hello: it has people greeted, and prints who was greeted how often."""

import burnet

NAMES = ["Ada", "Bob", "Alan", "Alonzo"]


class Client(burnet.App):
    """It knows whom to greet."""

    def __init__(self, settings: dict[str, object]) -> None:
        """Take the names from the settings, or the usual ones."""
        self.names = list(settings.get("names", NAMES))

    def interests(self) -> burnet.Interests:
        """No events of the network."""
        return burnet.Interests()

    def on_start(self, out: burnet.Commands) -> None:
        """Follow the table of the service, and have each person greeted."""
        out.follow("hello")
        for name in self.names:
            out.query("hello", str(name).encode())

    def on_query_reply(self, reply: burnet.QueryReply, out: burnet.Commands) -> None:
        """Print the greeting, or why there is none."""
        word = "answer" if reply.status == 0 else "refused"
        print(f"{word}: {reply.payload.decode()}", flush=True)

    def on_stream(self, update: burnet.StreamUpdate, out: burnet.Commands) -> None:
        """Print each change of the table."""
        if update.kind in ("entry", "put"):
            print(f"greeted: {update.key.decode()} {update.value.decode()}", flush=True)


if __name__ == "__main__":
    burnet.run(Client)
