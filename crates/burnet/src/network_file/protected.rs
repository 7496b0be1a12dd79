//! Whether a step would touch a port that carries connections of switches to the node.
//!
//! In: a step's effect, and the protected ports. Out: sentences. It is careful: a rule that may take packets of such a port counts.

use super::effect::{Effect, PlainRule};
use burnet_sdk::view::ConnectPoint;
use flow::{Field, PortNo};

/// Why a step must not be taken.
pub fn objections(what: &str, effect: &Effect, protected: &[ConnectPoint]) -> Vec<String> {
    let mut found = Vec::new();
    for port in protected {
        if effect.ports.contains(port) {
            found.push(format!(
                "{what}: a path uses {port}, which carries connections of switches to the node"
            ));
        }
        if let Some((rule, why)) = effect.rules.iter().find_map(|rule| Some((rule, touches(rule, *port)?))) {
            let matching = flow::text::match_to_string(&rule.matching);
            let matching = if matching.is_empty() { "any packet".to_owned() } else { matching };
            found.push(format!("{what}: the rule for {matching} {why} {port}, which carries connections of switches to the node"));
        }
    }
    found
}

/// Whether a rule may take packets that arrive at a port, or may send packets there.
fn touches(rule: &PlainRule, port: ConnectPoint) -> Option<&'static str> {
    if rule.switch != port.switch {
        return None;
    }
    let takes = match rule.matching.get(Field::InPort) {
        None => true,
        Some((in_port, mask)) => (u128::from(port.port.0) ^ in_port) & mask == 0,
    };
    // Tables behind the first one get what earlier tables send there.
    if takes {
        return Some("may take packets that arrive at");
    }
    let reach = flow::reach::outputs(&rule.instructions);
    let named = reach.ports.contains(&port.port) || port.port == PortNo::LOCAL && reach.normal;
    let may = named || reach.all || reach.flood || reach.normal || reach.anywhere || !reach.groups.is_empty();
    may.then_some("may send packets to")
}
