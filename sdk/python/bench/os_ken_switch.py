"""A learning switch for os-ken that does what ../examples/learning_switch.py does, to be measured beside it.

    burnet bench compare node:../examples/learning_switch.py 'python3 os_ken_switch.py {port}'

It reads of a packet what it needs and no more: the two Ethernet addresses, from the bytes.
"""

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.mac import haddr_to_str
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

ADDRESSES_MAX = 100_000


class LearningSwitch(app_manager.OSKenApp):
    """Where each address was last seen, by switch and address."""

    OFP_VERSIONS = (ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION)

    def __init__(self, *args, **kwargs):
        """Nothing is known yet."""
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_switch_up(self, event):
        """A switch of 1.3 sends up what no rule matches only if it is told to."""
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, 128)]
            apply = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
            datapath.send_msg(parser.OFPFlowMod(datapath, priority=0, match=parser.OFPMatch(), instructions=apply))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event):
        """Learn the source's port; a rule if the destination's is known, else a flood."""
        message = event.msg
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        old = ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
        in_port = message.in_port if old else message.match["in_port"]
        destination, source = haddr_to_str(message.data[:6]), haddr_to_str(message.data[6:12])
        if len(self.ports) > ADDRESSES_MAX:
            self.ports.clear()
        self.ports[datapath.id, source] = in_port
        port = self.ports.get((datapath.id, destination), ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        kept = message.buffer_id != ofproto.OFP_NO_BUFFER
        if port != ofproto.OFPP_FLOOD:
            self.add_rule(datapath, old, in_port, message.data[:12], source, destination, actions, message.buffer_id)
        if port == ofproto.OFPP_FLOOD or not kept:
            data = None if kept else message.data
            datapath.send_msg(parser.OFPPacketOut(datapath, message.buffer_id, in_port, actions, data))

    def add_rule(self, datapath, old, in_port, addresses, source, destination, actions, buffer_id):
        """The same rule in either version."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        if old:
            match = parser.OFPMatch(in_port=in_port, dl_dst=addresses[:6], dl_src=addresses[6:])
            rule = {"actions": actions}
        else:
            match = parser.OFPMatch(in_port=in_port, eth_dst=destination, eth_src=source)
            rule = {"instructions": [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]}
        datapath.send_msg(
            parser.OFPFlowMod(
                datapath=datapath,
                match=match,
                cookie=0,
                command=ofproto.OFPFC_ADD,
                priority=100,
                idle_timeout=60,
                buffer_id=buffer_id,
                **rule,
            )
        )


if __name__ == "__main__":
    # os-ken's own launcher is not in every release; this is what it does. The port is the one argument.
    import sys

    from os_ken import cfg

    cfg.CONF(args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", sys.argv[1]], project="os_ken")
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
