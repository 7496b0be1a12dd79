"""A learning switch for os-ken, over OpenFlow 1.0. Its argument is the port at which it listens, or behind it the options
of os-ken that say how."""

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.mac import haddr_to_bin
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0

LLDP = 0x88CC


class LearningSwitch(OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        if frame.ethertype == LLDP:
            return
        known = self.ports.setdefault(datapath.id, {})
        known[frame.src] = message.in_port
        port = known.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=message.in_port, dl_dst=haddr_to_bin(frame.dst))
            datapath.send_msg(parser.OFPFlowMod(
                datapath=datapath, match=match, cookie=0, command=ofproto.OFPFC_ADD, priority=1,
                actions=actions))
        # A switch with buffers has sent the beginning of the packet, and keeps the rest.
        is_kept = message.buffer_id != ofproto.OFP_NO_BUFFER
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=message.buffer_id, in_port=message.in_port, actions=actions,
            data=None if is_kept else message.data))


if __name__ == "__main__":
    # os-ken's own launcher is not in every release; this is what it does.
    import sys

    from os_ken import cfg
    from os_ken.base.app_manager import AppManager

    options = sys.argv[2:] or ["--ofp-tcp-listen-port", sys.argv[1]]
    cfg.CONF(args=["--ofp-listen-host", "127.0.0.1", *options], project="os_ken")
    AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
