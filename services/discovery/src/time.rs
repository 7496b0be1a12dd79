//! The time of an event, and the settings that are times.
//!
//! In: what the shell reads from a clock, and `[network.discovery]`. Out: values. It reads no clock.

use serde::Deserialize;
use std::collections::BTreeMap;
use view::ConnectPoint;

use burnet_sdk::DatapathId;

/// When an event happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since the service started. It never goes back.
    pub us: u64,
    /// Milliseconds since 1970, for people.
    pub unix_ms: u64,
}

/// The settings: `[network.discovery]` of `burnet.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySettings {
    /// How often each port is probed. ONOS has the same default.
    pub probe_interval_ms: u64,
    /// Whether ports without a direct link are also probed by broadcast, for links across switches of others.
    pub indirect: bool,
    /// Whether links have a latency: the time of their probes, with both control channels.
    pub latency: bool,
    /// A switch or link that is down for so long is removed; 0: never.
    pub forget_after_s: u64,
    /// The speed of a port whose switch does not say it, in kbit/s; 0: it is not known.
    pub port_speed_kbps: u64,
    /// The speed of all ports of a switch, in kbit/s, whatever the switch says.
    pub switch_speeds_kbps: BTreeMap<DatapathId, u64>,
    /// The speed of a port, in kbit/s, whatever the switch says.
    pub port_speeds_kbps: BTreeMap<ConnectPoint, u64>,
    /// The secret of the signatures as 64 hexadecimal digits. Without it, each run has a random one.
    pub key: Option<String>,
}

impl Default for DiscoverySettings {
    fn default() -> DiscoverySettings {
        DiscoverySettings {
            probe_interval_ms: 3_000,
            indirect: true,
            latency: false,
            forget_after_s: 86_400,
            port_speed_kbps: 0,
            switch_speeds_kbps: BTreeMap::new(),
            port_speeds_kbps: BTreeMap::new(),
            key: None,
        }
    }
}

/// The bounds of the interval: a busy switch needs some time for a probe, and a link that fails silently should be noticed within
/// minutes.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 50..=60_000;

impl DiscoverySettings {
    /// What is wrong with them.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        let (ms, bounds) = (self.probe_interval_ms, INTERVAL_MS);
        if !bounds.contains(&ms) {
            let (least, most) = (bounds.start(), bounds.end());
            return Err(format!(
                "network.discovery.probe_interval_ms: {ms} is out of range: write {least} to {most}"
            ));
        }
        self.secret().map(|_| ())
    }

    /// The speed of a port of which its switch says this; 0: it is not known.
    pub fn speed_kbps(&self, port: ConnectPoint, said_kbps: u64) -> u64 {
        let of_port = self.port_speeds_kbps.get(&port);
        let written = of_port.or_else(|| self.switch_speeds_kbps.get(&port.switch)).copied();
        written.unwrap_or(if said_kbps == 0 { self.port_speed_kbps } else { said_kbps })
    }

    /// The secret, if one is set.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn secret(&self) -> Result<Option<[u8; 32]>, String> {
        let Some(key) = &self.key else { return Ok(None) };
        let byte = |index: usize| {
            let digits = key.get(index * 2..index * 2 + 2)?;
            digits
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit())
                .then(|| u8::from_str_radix(digits, 16).ok())?
        };
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let bytes = bytes.filter(|_| key.len() == 64).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Some).ok_or_else(|| "network.discovery.key: write 64 hexadecimal digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_writes_of_a_port_comes_before_what_its_switch_says() {
        let text = r#"{"port_speed_kbps": 5, "switch_speeds_kbps": {"of:0000000000000002": 7}, "port_speeds_kbps": {"of:0000000000000002/1": 9}}"#;
        let settings: DiscoverySettings = serde_json::from_str(text).unwrap();
        let check = |port: &str, said_kbps: u64, expected: u64| {
            assert_eq!(settings.speed_kbps(port.parse().unwrap(), said_kbps), expected, "{port} {said_kbps}");
        };
        check("1/1", 0, 5);
        check("1/1", 100, 100);
        check("2/2", 100, 7);
        check("2/2", 0, 7);
        check("2/1", 100, 9);
        assert_eq!(DiscoverySettings::default().speed_kbps("1/1".parse().unwrap(), 0), 0);
    }

    #[test]
    fn a_setting_that_cannot_work_is_refused() {
        let check = |settings: DiscoverySettings, part: &str| {
            let why = settings.check().err().unwrap_or_default();
            assert!(why.contains(part) && why.is_empty() == part.is_empty(), "{why}");
        };
        let default = DiscoverySettings::default;
        check(DiscoverySettings { probe_interval_ms: 0, ..default() }, "write 50 to 60000");
        check(DiscoverySettings { probe_interval_ms: 60_001, ..default() }, "60001 is out of range");
        for key in ["", "0", &"0".repeat(63), &"g".repeat(64), &"0".repeat(66), &"é".repeat(32)] {
            check(DiscoverySettings { key: Some(key.into()), ..default() }, "write 64 hexadecimal digits");
        }
        check(DiscoverySettings { key: Some("0f".repeat(32)), ..default() }, "");
        check(default(), "");
    }
}
