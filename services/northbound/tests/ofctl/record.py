"""Records what os-ken's ofctl library makes of a switch's answers, and which messages it sends for entries.

In: a port to listen on, and a switch that connects. Out: a file in JSON with the bodies of the switch's answers
as hexadecimal digits beside the library's JSON, the flow mods of some entries beside their JSON, and which requests the library has in each
version of OpenFlow. The tests of the service northbound compare all of it with its own.
"""

import json
import os
import struct
import threading
import time

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import ofctl_v1_0
from os_ken.lib import ofctl_v1_3 as ofctl
from os_ken.ofproto import ofproto_v1_3

ENTRIES = [
    {"priority": 1, "match": {}, "actions": []},
    {"priority": 10, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]},
    {"priority": 11, "match": {"dl_dst": "aa:bb:cc:11:22:33"}, "actions": [{"type": "OUTPUT", "port": "CONTROLLER", "max_len": 128}]},
    {"priority": 12, "match": {"eth_type": 2048, "ipv4_dst": "192.168.10.10/255.255.255.0"}, "actions": [{"type": "DEC_NW_TTL"}, {"type": "OUTPUT", "port": 1}]},
    {"priority": 13, "match": {"dl_type": 2048, "nw_proto": 6, "tp_dst": 80}, "actions": [{"type": "GROUP", "group_id": 7}]},
    {"priority": 14, "match": {"dl_vlan": 100}, "actions": [{"type": "POP_VLAN"}, {"type": "OUTPUT", "port": 2}]},
    {"priority": 15, "match": {"vlan_vid": "0x1000/0x1000", "dl_src": "01:00:00:00:00:00/01:00:00:00:00:00"}, "actions": [{"type": "OUTPUT", "port": "ALL"}]},
    {"priority": 16, "match": {"in_port": 2}, "actions": [{"type": "PUSH_VLAN", "ethertype": 33024}, {"type": "SET_FIELD", "field": "vlan_vid", "value": 4102}, {"type": "OUTPUT", "port": 1}]},
    {"priority": 17, "match": {"eth_type": 34525, "ipv6_src": "2001:db8::1"}, "actions": [{"type": "SET_FIELD", "field": "eth_dst", "value": "00:00:00:00:00:09"}, {"type": "OUTPUT", "port": "IN_PORT"}]},
    {"priority": 18, "match": {"eth_type": 2054, "nw_src": "10.0.0.1", "arp_op": 1}, "actions": [{"type": "OUTPUT", "port": "FLOOD"}]},
    {"priority": 19, "match": {"metadata": "0x10/0xf0", "dl_type": "0x0800", "nw_proto": 17, "tp_src": 53}, "actions": [{"type": "WRITE_METADATA", "metadata": "0x3", "metadata_mask": "0x3"}, {"type": "GOTO_TABLE", "table_id": 1}], "idle_timeout": 60, "hard_timeout": 600},
    {"priority": 20, "match": {"in_port": 1, "eth_type": 2048}, "actions": [{"type": "WRITE_ACTIONS", "actions": [{"type": "SET_QUEUE", "queue_id": 1}, {"type": "OUTPUT", "port": 2}]}, {"type": "CLEAR_ACTIONS"}]},
    {"priority": 21, "match": {"in_port": 2, "eth_type": 2048}, "actions": [{"type": "METER", "meter_id": 3}, {"type": "OUTPUT", "port": 1}]},
]

GROUPS = [
    {"group_id": 7, "type": "SELECT", "buckets": [{"weight": 50, "actions": [{"type": "OUTPUT", "port": 1}]}, {"weight": 50, "actions": [{"type": "OUTPUT", "port": 2}]}]},
    {"group_id": 8, "type": "FF", "buckets": [{"watch_port": 1, "actions": [{"type": "OUTPUT", "port": 1}]}]},
    {"group_id": 9, "type": "ALL", "buckets": [{"actions": [{"type": "SET_FIELD", "field": "eth_src", "value": "00:00:00:00:00:08"}, {"type": "OUTPUT", "port": 2}]}]},
]

METERS = [
    {"meter_id": 3, "flags": "KBPS", "bands": [{"type": "DROP", "rate": 1000}]},
    {"meter_id": 4, "flags": ["PKTPS", "BURST", "STATS"], "bands": [{"type": "DROP", "rate": 100, "burst_size": 10}]},
]

ASKED = [
    ("desc", ofctl.get_desc_stats),
    ("flow", ofctl.get_flow_stats),
    ("aggregateflow", ofctl.get_aggregate_flow_stats),
    ("table", ofctl.get_table_stats),
    ("tablefeatures", ofctl.get_table_features),
    ("port", ofctl.get_port_stats),
    ("portdesc", ofctl.get_port_desc),
    ("queue", ofctl.get_queue_stats),
    ("group", ofctl.get_group_stats),
    ("groupdesc", ofctl.get_group_desc),
    ("groupfeatures", ofctl.get_group_features),
    ("meter", ofctl.get_meter_stats),
    ("meterconfig", ofctl.get_meter_config),
    ("meterfeatures", ofctl.get_meter_features),
    ("queueconfig", ofctl.get_queue_config),
    ("role", ofctl.get_role),
]

# Switches with queues are rare: the answer of one, behind the header. Port 1 has queue 7 with rates, and queue 8 with a property of a vendor.
QUEUES = bytes.fromhex(
    "00000001" "00000000"
    "00000007" "00000001" "0030" "000000000000" "0001" "0010" "00000000" "00c8" "000000000000" "0002" "0010" "00000000" "012c" "000000000000"
    "00000008" "00000001" "0028" "000000000000" "ffff" "0018" "00000000" "00002320" "00000000" "0102030405060708"
)

# The functions that ofctl_rest calls for its paths.
FUNCTIONS = {
    "desc": "get_desc_stats", "flow": "get_flow_stats", "flowdesc": "get_flow_desc", "aggregateflow": "get_aggregate_flow_stats",
    "table": "get_table_stats", "tablefeatures": "get_table_features", "port": "get_port_stats", "portdesc": "get_port_desc",
    "queue": "get_queue_stats", "queueconfig": "get_queue_config", "queuedesc": "get_queue_desc",
    "group": "get_group_stats", "groupdesc": "get_group_desc", "groupfeatures": "get_group_features",
    "meter": "get_meter_stats", "meterconfig": "get_meter_config", "meterdesc": "get_meter_desc", "meterfeatures": "get_meter_features",
    "role": "get_role",
}

# Of a multipart reply, what comes before its body: the header, the type, the flags and padding. Of other replies, the header.
HEAD = 16
HEADER = 8


def first_table(answer, part):
    """A switch has many tables that are alike: the first one, and its bytes."""
    length = int.from_bytes(bytes.fromhex(part[:4]), "big")
    return answer[:1], [part[:2 * length]]


class Outgoing:
    """Takes the messages that the library sends, and passes them on."""

    def __init__(self, datapath):
        self.datapath, self.sent = datapath, []
        # Takes the message in place of the switch.
        self.answer = None

    def __getattr__(self, name):
        return getattr(self.datapath, name)

    def send_msg(self, message):
        if message.xid is None:
            self.datapath.set_xid(message)
        message.serialize()
        self.sent.append(bytes(message.buf))
        if self.answer:
            self.answer(message)
        else:
            self.datapath.send_msg(message)


class Record(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.waiters, self.parts = {}, []

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def on_switch(self, event):
        threading.Thread(target=self.record, args=(event.datapath,), daemon=True).start()

    @set_ev_cls([getattr(ofp_event, f"EventOFP{name}Reply") for name in (
        "DescStats", "FlowStats", "AggregateStats", "TableStats", "PortStats", "PortDescStats", "QueueStats", "GroupStats", "GroupDescStats",
        "GroupFeaturesStats", "MeterStats", "MeterConfigStats", "MeterFeaturesStats", "TableFeaturesStats")], MAIN_DISPATCHER)
    def on_reply(self, event):
        message = event.msg
        waiting = self.waiters.get(message.datapath.id, {})
        if message.xid not in waiting:
            return
        lock, messages = waiting[message.xid]
        messages.append(message)
        self.parts.append(bytes(message.buf[HEAD:]).hex())
        if not message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE:
            del waiting[message.xid]
            lock.set()

    @set_ev_cls([ofp_event.EventOFPQueueGetConfigReply, ofp_event.EventOFPRoleReply], MAIN_DISPATCHER)
    def on_single_reply(self, event):
        self.take(event.msg)

    def take(self, message):
        lock, messages = self.waiters[message.datapath.id].pop(message.xid)
        messages.append(message)
        self.parts.append(bytes(message.buf[HEADER:]).hex())
        lock.set()

    def queues(self, datapath):
        """What the library makes of an answer that no switch has sent."""
        proto, parser = datapath.ofproto, datapath.ofproto_parser

        def answer(request):
            kind, length = proto.OFPT_QUEUE_GET_CONFIG_REPLY, HEADER + len(QUEUES)
            buf = struct.pack(proto.OFP_HEADER_PACK_STR, proto.OFP_VERSION, kind, length, request.xid) + QUEUES
            self.take(parser.msg_parser(datapath.datapath, proto.OFP_VERSION, kind, length, request.xid, buf))

        self.parts, datapath.answer = [], answer
        found = ofctl.get_queue_config(datapath, self.waiters, 1)
        datapath.answer = None
        return {"path": "queueconfig", "parts": self.parts, "json": next(iter(found.values()))}

    def record(self, datapath):
        try:
            self.write(Outgoing(datapath))
        finally:
            os._exit(0)

    def write(self, datapath):
        proto = datapath.ofproto
        sent = []
        for meter in METERS:
            ofctl.mod_meter_entry(datapath, meter, proto.OFPMC_ADD)
            sent.append({"entry": "meter", "json": meter, "message": datapath.sent[-1].hex()})
        for group in GROUPS:
            ofctl.mod_group_entry(datapath, group, proto.OFPGC_ADD)
            sent.append({"entry": "group", "json": group, "message": datapath.sent[-1].hex()})
        for entry in ENTRIES:
            ofctl.mod_flow_entry(datapath, json.loads(json.dumps(entry)), proto.OFPFC_ADD)
            sent.append({"entry": "flow", "json": entry, "message": datapath.sent[-1].hex()})
        time.sleep(1)
        answers = []
        for name, ask in ASKED:
            self.parts = []
            answer = ask(datapath, self.waiters)
            answer, parts = next(iter(answer.values())), self.parts
            if name == "tablefeatures":
                answer, parts = first_table(answer, parts[0])
            answers.append({"path": name, "parts": parts, "json": answer})
        answers.append(self.queues(datapath))
        libraries = {"1.0": ofctl_v1_0, "1.3": ofctl}
        offered = {version: {path: hasattr(library, name) for path, name in FUNCTIONS.items()} for version, library in libraries.items()}
        with open(os.environ["OFCTL_RECORD"], "w", encoding="utf-8") as file:
            json.dump({"sent": sent, "answers": answers, "offered": offered}, file, indent=1, sort_keys=True)
            file.write("\n")


if __name__ == "__main__":
    import sys

    from os_ken import cfg
    from os_ken.base.app_manager import AppManager

    # The port and the file are the arguments.
    os.environ["OFCTL_RECORD"] = sys.argv[2]
    options = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]]
    cfg.CONF(args=options, project="os_ken")
    AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
