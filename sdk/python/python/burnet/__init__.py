"""The package for authors of Burnet apps in Python.

An app is a class with handlers; `run` runs it in a process zone of a Burnet node:

    import burnet

    class Hub(burnet.App):
        def interests(self) -> burnet.Interests:
            return burnet.Interests().packets()

        def on_packet_in(self, packet: burnet.PacketIn, out: burnet.Commands) -> None:
            out.packet_out(packet.datapath).packet(packet).output(burnet.FLOOD).send()

    if __name__ == "__main__":
        burnet.run(Hub)

Handlers are called one at a time, and what they command is sent when they return. A handler that raises ends the
process, with its traceback on standard error; the node starts the app anew. `burnet.testing` tries an app without a
node.
"""

from burnet import stats, store, view
from burnet._app import App, Refused, run
from burnet._native import (
    Commands,
    Experimenter,
    FlowRemoved,
    Interests,
    Label,
    Labels,
    PacketIn,
    PacketOut,
    Port,
    PortStatus,
    Query,
    QueryReply,
    Receipt,
    Rule,
    SoftLimit,
    StatsReply,
    StreamUpdate,
    SwitchError,
    SwitchUp,
    Table,
    Topic,
    read_datapath,
    show_datapath,
)
from burnet._numbers import PacketInReason, PortReason, QueryStatus, Quota, RemovedReason
from burnet._ports import ALL, ANY, CONTROLLER, FLOOD, IN_PORT, LOCAL, NORMAL, TABLE, ReservedPort

__all__ = [
    "ALL",
    "ANY",
    "CONTROLLER",
    "FLOOD",
    "IN_PORT",
    "LOCAL",
    "NORMAL",
    "TABLE",
    "App",
    "Commands",
    "Experimenter",
    "FlowRemoved",
    "Interests",
    "Label",
    "Labels",
    "PacketIn",
    "PacketInReason",
    "PacketOut",
    "Port",
    "PortReason",
    "PortStatus",
    "Query",
    "QueryReply",
    "QueryStatus",
    "Quota",
    "Receipt",
    "Refused",
    "RemovedReason",
    "ReservedPort",
    "Rule",
    "SoftLimit",
    "StatsReply",
    "StreamUpdate",
    "SwitchError",
    "SwitchUp",
    "Table",
    "Topic",
    "read_datapath",
    "run",
    "show_datapath",
    "stats",
    "store",
    "view",
]
