"""A learning switch for os-ken, over OpenFlow 1.3: what an os-ken user begins with."""

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

LLDP = 0x88CC


class LearningSwitch(OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event):
        datapath = event.msg.datapath
        everything = [datapath.ofproto_parser.OFPActionOutput(
            datapath.ofproto.OFPP_CONTROLLER, datapath.ofproto.OFPCML_NO_BUFFER)]
        self.add(datapath, 0, datapath.ofproto_parser.OFPMatch(), everything)

    def add(self, datapath, priority, match, actions):
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        apply = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, priority=priority, match=match, instructions=apply))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        message = event.msg
        datapath, in_port = message.datapath, message.match["in_port"]
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        if frame.ethertype == LLDP:
            return
        known = self.ports.setdefault(datapath.id, {})
        known[frame.src] = in_port
        port = known.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if port != ofproto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_dst=frame.dst, eth_src=frame.src)
            self.add(datapath, 1, match, actions)
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=ofproto.OFP_NO_BUFFER, in_port=in_port,
            actions=actions, data=message.data))


if __name__ == "__main__":
    # os-ken's own launcher is not in every release; this is what it does. The port is the one argument.
    import sys

    from os_ken import cfg
    from os_ken.base.app_manager import AppManager

    options = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]]
    cfg.CONF(args=options, project="os_ken")
    AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
