# /// burnet
# [capabilities]
# "packet.in" = true
# "packet.out" = true
# "rule.write" = { priority = [1, 9999] }
# ///
"""A learning switch: learns which port each address is behind, and puts rules into the switch for what it learned."""
import burnet

class LearningSwitch(burnet.App):
    def __init__(self, settings: dict[str, int]) -> None:
        self.idle_timeout_s = settings.get("idle_timeout_s", 60)
        self.ports: dict[tuple[int, str], int] = {}

    def interests(self) -> burnet.Interests:
        return burnet.Interests().packets()

    def on_packet_in(self, packet: burnet.PacketIn, out: burnet.Commands) -> None:
        switch, source, destination = packet.datapath, packet.eth_src, packet.eth_dst
        if len(self.ports) > 100_000:  # More addresses than that are forgotten, and learned anew.
            self.ports.clear()
        self.ports[switch, source] = packet.in_port
        port = self.ports.get((switch, destination), burnet.FLOOD)
        if port != burnet.FLOOD:
            rule = out.rule(switch).matching(in_port=packet.in_port, eth_src=source, eth_dst=destination).output(port)
            rule.priority(100).idle_timeout_s(self.idle_timeout_s).buffer(packet.buffer_id).send()
        if port == burnet.FLOOD or packet.buffer_id is None:
            out.packet_out(switch).packet(packet).output(port).send()

if __name__ == "__main__":
    burnet.run(LearningSwitch)
