//! What a service of the network gets: what it needs, with the operator's values in front.
//!
//! In: `[network]`, and the tables of a manifest with what the service needs. Out: its limits, sandbox, settings and grant. It starts no
//! service.

use package::manifest::Needs;
use package::manifest::services::SHARED;
use package::toml_text::{self, Fault};
use serde_json::{Map, Value};
use zone::{Limits, Sandbox};

use super::grant::{AppGrant, GrantedBy};
use super::{AppTable, Config, manifests};

/// What a service of the network gets from its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceShare {
    /// What it may use of the machine.
    pub limits: Limits,
    /// What of the machine it may touch.
    pub sandbox: Sandbox,
    /// The size of the shared memory for its tables in bytes. 0: it has none.
    pub shared_bytes: usize,
    /// Its settings.
    pub settings: Map<String, Value>,
    /// What it may do with the network and with other services.
    pub grant: AppGrant,
}

impl Config {
    /// What the network service of this name gets. `needs` are the tables of a manifest with what it needs. `None` if this node
    /// does not run it.
    ///
    /// # Errors
    /// The first fault in `needs`. It is the service's fault.
    pub fn network_share(&self, service: &str, needs: &str) -> Result<Option<ServiceShare>, Fault> {
        let needs: Needs = toml_text::parse(needs)?;
        let Some(network) = self.network.as_ref().filter(|network| network.runs(service)) else {
            return Ok(None);
        };
        let written = network.of.get(service).cloned().unwrap_or_default();
        let mut table = AppTable {
            limits: written.limits.unwrap_or_default(),
            settings: written.settings,
            ..AppTable::default()
        };
        table.sandbox.net.listen = written.listen.unwrap_or_default();
        manifests::fill(&mut table, needs, GrantedBy::BuiltIn);
        let grant = AppGrant {
            capabilities: table.capabilities.unwrap_or_default(),
            quotas: table.quotas,
            rank: None,
        };
        let mut limits = table.limits;
        grant.limit_store(&mut limits);
        let default = SHARED.iter().find(|table| table.service == service).map(|table| table.bytes);
        // A service without such tables has none, whatever is written.
        let shared_bytes = default.map_or(0, |default| written.shared_bytes.unwrap_or(default));
        Ok(Some(ServiceShare {
            limits,
            sandbox: table.sandbox,
            shared_bytes,
            settings: table.settings,
            grant,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigFile, Environment, RunArgs};
    use super::*;
    use std::path::Path;

    const NEEDS: &str = "[capabilities]\n'view.read' = true\n[system]\n'net.listen' = ['127.0.0.1:8181']\n\
                         [limits]\nmemory_bytes = 8388608\n[settings]\na = 1\nb = 2";

    fn config(text: &str, network: bool) -> Result<Config, String> {
        let file = ConfigFile::parse(text, Path::new("burnet.toml")).map_err(|error| error.to_string())?;
        let around = Environment { uid: 1000, home: Some("/home/u".into()), ..Environment::default() };
        let args = RunArgs { network, ..RunArgs::default() };
        Config::merge(file, &args, &around, &[]).map_err(|error| error.to_string())
    }

    fn share(text: &str, network: bool) -> Option<ServiceShare> {
        config(text, network).unwrap().network_share("discovery", NEEDS).unwrap()
    }

    #[test]
    fn a_wrong_table_is_refused_with_its_line() {
        let check = |text: &str, expected: &str| assert_eq!(config(text, false).unwrap_err(), expected);
        check(
            "\n[network.discover]",
            "burnet.toml, line 2: unknown key `discover`: did you mean `discovery`?",
        );
        let refused = config("[network]\nservices = ['switches']", false).unwrap_err();
        let names_them =
            "burnet.toml, line 2: `switches` is no service of the network: write some of discovery, ";
        assert!(refused.starts_with(names_them), "{refused}");
        let refused = config("[network.discovery]\nlisten = ['8181']", false).unwrap_err();
        assert!(refused.contains("listen: \"8181\" is no address to listen on"), "{refused}");
        let refused = config("[network.discovery.limits]\nmemory = 1", false).unwrap_err();
        assert!(refused.contains("limits: unknown field `memory`"), "{refused}");
        assert!(
            config("[network.discovery]\nlimits.memory_bytes = 10", false).unwrap_err().contains("10 bytes")
        );
    }

    #[test]
    fn a_node_runs_a_service_of_the_network_if_it_has_the_table_or_the_option() {
        let check =
            |text: &str, network, expected| assert_eq!(share(text, network).is_some(), expected, "{text}");
        check("", false, false);
        check("", true, true);
        check("[network]", false, true);
        check("[network.discovery]\na = 3", false, true);
        check("[network]\nservices = []", false, false);
        check("[network]\nservices = []", true, false);
        check("[network]\nservices = ['discovery']", false, true);
    }

    #[test]
    fn the_operators_values_stay_and_the_rest_is_what_the_service_needs() {
        let plain = share("[network]", false).unwrap();
        assert_eq!(plain.limits.memory_bytes, 8 << 20);
        assert_eq!(Value::Object(plain.settings), serde_json::json!({ "a": 1, "b": 2 }));
        assert_eq!(plain.sandbox.net.listen, ["127.0.0.1:8181".parse().unwrap()]);
        assert!(plain.grant.to_kernel().service("discovery").is_some(), "its own part is no harm");
        let text = "[network.discovery]\nb = 3\nlisten = ['0.0.0.0:80']\nlimits.memory_bytes = 9437184";
        let written = share(text, false).unwrap();
        assert_eq!(written.limits.memory_bytes, 9 << 20);
        assert_eq!(Value::Object(written.settings), serde_json::json!({ "a": 1, "b": 3 }));
        assert_eq!(written.sandbox.net.listen, ["0.0.0.0:80".parse().unwrap()]);
    }
}
