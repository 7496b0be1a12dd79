//! The speeds of ports that the operator writes in `[network.discovery]`, in the words of the service.
//!
//! ```text
//!   port_speed = "10M", port_speeds = { "s1:3" = "1G", s2 = "10M" } ──> port_speed_kbps, port_speeds_kbps, switch_speeds_kbps
//! ```
//!
//! In: the settings of the service as they are written. Out: the settings that it gets, or a sentence with the key. It asks no switch.

use config::slices::{parse_port, parse_switch};
use hose::Bandwidth;
use serde_json::{Map, Value, json};

/// What the node fills in.
const FILLED: [&str; 3] = ["port_speed_kbps", "port_speeds_kbps", "switch_speeds_kbps"];

/// Replaces what is written by what the service reads.
///
/// # Errors
/// A sentence that begins with the key.
pub fn fill_in(settings: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(key) = FILLED.iter().find(|key| settings.contains_key(**key)) {
        return Err(format!("{key}: the node fills it in: write port_speed or port_speeds"));
    }
    if let Some(written) = settings.remove("port_speed") {
        settings.insert("port_speed_kbps".to_owned(), kbps("port_speed", &written)?.into());
    }
    let (mut ports, mut switches) = (Map::new(), Map::new());
    match settings.remove("port_speeds") {
        None => {}
        Some(Value::Object(speeds)) => {
            for (name, written) in &speeds {
                let key = format!("port_speeds.{name}");
                let speed = kbps(&key, written)?;
                let of_key = |why: String| format!("{key}: {why}");
                if name.contains([':', '/']) && !is_id(name) {
                    ports.insert(parse_port(name).map_err(of_key)?.to_string(), speed.into());
                } else {
                    switches.insert(parse_switch(name).map_err(of_key)?.to_string(), speed.into());
                }
            }
        }
        Some(_) => return Err("port_speeds: write a table, as in { \"s1:3\" = \"1G\" }".to_owned()),
    }
    for (key, speeds) in [("port_speeds_kbps", ports), ("switch_speeds_kbps", switches)] {
        if !speeds.is_empty() {
            settings.insert(key.to_owned(), json!(speeds));
        }
    }
    Ok(())
}

/// Whether this is the datapath id of a switch, which has a colon too.
fn is_id(name: &str) -> bool {
    name.strip_prefix("of:").is_some_and(|digits| !digits.contains(['/', ':']))
}

fn kbps(key: &str, written: &Value) -> Result<u64, String> {
    let text = written.as_str().ok_or_else(|| format!("{key}: write a rate as text, as in \"10M\""))?;
    let rate: Bandwidth = text.parse().map_err(|why| format!("{key}: {why}"))?;
    match rate.kbps() {
        0 => Err(format!("{key}: {text} is below 1 kbit/s: leave it out if the speed is not known")),
        kbps => Ok(kbps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<Value, String> {
        let table: toml::Table = text.parse().unwrap();
        let Value::Object(mut settings) = serde_json::to_value(table).unwrap() else { panic!("{text}") };
        fill_in(&mut settings).map(|()| settings.into())
    }

    #[test]
    fn speeds_of_ports_and_switches_are_told_apart() {
        let text = "latency = true\nport_speed = '10M'\n[port_speeds]\n's1:3' = '1G'\ns2 = '100k'\n'of:0000000000000003' = '5M'\n\
                    'of:0000000000000004/7' = '6M'";
        let expected = json!({
            "latency": true,
            "port_speed_kbps": 10_000,
            "port_speeds_kbps": { "of:0000000000000001/3": 1_000_000, "of:0000000000000004/7": 6_000 },
            "switch_speeds_kbps": { "of:0000000000000002": 100, "of:0000000000000003": 5_000 },
        });
        assert_eq!(filled(text), Ok(expected));
        assert_eq!(filled("latency = true"), Ok(json!({ "latency": true })));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        let check = |text: &str, expected: &str| {
            let why = filled(text).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        };
        check("port_speed = 10", "port_speed: write a rate as text");
        check("port_speed = '10'", "port_speed: `10`: the unit is missing");
        check("port_speeds = '10M'", "port_speeds: write a table");
        check("[port_speeds]\n'x:1' = '10M'", "port_speeds.x:1: ");
        check("[port_speeds]\ns1 = 'fast'", "port_speeds.s1: `fast`");
        check("port_speed_kbps = 1", "port_speed_kbps: the node fills it in");
    }
}
