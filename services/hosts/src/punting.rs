//! What the service asks the switches for: rules that send it the frames that tell of hosts, and no others.
//!
//! In: a switch that is up. Out: rules. The kernel gives these packets to this service
//! alone, and to apps with `rule.write.others`.

use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::{Commands, DatapathId, PortNo, Ticket};

/// The frames that tell of hosts, in the syntax of `ovs-ofctl`: ARP, neighbour solicitations and advertisements, DHCP in both versions.
pub const MATCHES: [&str; 7] = [
    "arp",
    "icmp6,icmp_type=135,icmp_code=0",
    "icmp6,icmp_type=136,icmp_code=0",
    "udp,tp_dst=67",
    "udp,tp_dst=68",
    "udp6,tp_dst=546",
    "udp6,tp_dst=547",
];

/// The priority of its rules: above those of apps that forward, below those of apps that block.
pub const PRIORITY: u16 = 40_000;

/// The whole frame (`OFPCML_NO_BUFFER`).
const WHOLE_FRAME: u16 = 0xffff;

/// Adds the rules to a switch. Returns the tickets of their receipts.
pub fn add_rules(switch: DatapathId, out: &mut Commands) -> Vec<Ticket> {
    let send = |text: &&str| {
        let mut matching = Vec::new();
        write_match(&parse_match(text).ok()?, &mut matching);
        let rule = out.rule(switch).priority(PRIORITY).matching_bytes(&matching);
        let to_controller = rule.apply(|actions| {
            actions.output(PortNo::CONTROLLER, WHOLE_FRAME);
        });
        Some(to_controller.send_with_receipt())
    };
    MATCHES.iter().filter_map(send).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_can_be_read_and_is_whole() {
        for text in MATCHES {
            let matching = parse_match(text).unwrap();
            assert_eq!(burnet_sdk::flow::canonical::check_prerequisites(&matching), Ok(()), "{text}");
        }
    }
}
