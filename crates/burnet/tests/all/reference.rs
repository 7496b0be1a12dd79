//! Compares the reference pages with the code. The annotated `burnet.toml` is parsed, and each key, command and
//! option must be on its page.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use burnet::cli::{Cli, RunArgs};
use clap::{Command, CommandFactory};
use config::{Config, ConfigFile, Environment, Southbound};

fn page(name: &str) -> String {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    fs::read_to_string(pages.join(name)).unwrap()
}

/// The example with what it only shows: a `#` without a blank behind it is taken away.
fn with_examples(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(example) if !example.is_empty() && !example.starts_with(' ') => format!("{example}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn merged(text: &str) -> Config {
    let file = ConfigFile::parse(text, Path::new("burnet.toml")).unwrap();
    Config::merge(file, &RunArgs::default(), &Environment::default(), &burnet::apps::ALL).unwrap()
}

#[test]
fn the_annotated_configuration_shows_the_defaults() {
    let text = page("burnet.toml");
    let config = merged(&text);
    assert_eq!(config.southbound, Southbound::default());
    assert_eq!(config.node, merged("").node);
    assert_eq!(config.apps[0].limits, zone::Limits::default());
    assert_eq!(config.apps[0].sandbox, zone::Sandbox::default());
}

#[test]
fn what_it_shows_beyond_the_defaults_can_be_written_too() {
    let text = page("burnet.toml");
    let config = merged(&with_examples(&text));
    assert!(config.southbound.tls.is_some_and(|tls| tls.required));
    assert_eq!(config.node.socket, Path::new("/run/burnet/burnet.sock"));
    assert_eq!(config.apps.len(), 2);
}

/// The tables of a sandbox whose keys are capabilities.
const CAPABILITIES: [&str; 2] = ["fs", "net"];

#[test]
fn each_key_is_in_the_reference() {
    fn keys(table: &toml::Table, found: &mut BTreeSet<String>) {
        for (key, value) in table {
            match value {
                // What an app takes is the app's own to say; what stands above the keys are the headings.
                // Capabilities and quotas are the manifest's (package.md).
                toml::Value::Table(_)
                    if ["settings", "datapaths", "capabilities", "quotas"].contains(&key.as_str()) => {}
                // A soft and a hard limit are one value.
                toml::Value::Table(amount) if amount.contains_key("hard") => drop(found.insert(key.clone())),
                // Capabilities are written with a dot.
                toml::Value::Table(table) if CAPABILITIES.contains(&key.as_str()) => {
                    found.extend(table.keys().map(|last| format!("{key}.{last}")));
                }
                // Hosts are named by their addresses.
                toml::Value::Table(_) if key == "hosts" => drop(found.insert(key.clone())),
                toml::Value::Table(table) => keys(table, found),
                _ => drop(found.insert(key.clone())),
            }
        }
    }
    let example = page("burnet.toml");
    let reference = page("configuration.md");
    let mut found = BTreeSet::new();
    keys(&toml::from_str(&with_examples(&example)).unwrap(), &mut found);
    assert!(found.len() >= 20, "{found:?}");
    for key in &found {
        assert!(reference.contains(&format!("| `{key}` |")), "configuration.md does not say what {key} is");
    }
    // The example itself has all of them: what the code says to a key that is like none is the list of its keys.
    for table in [
        "southbound",
        "southbound.tls",
        "node",
        "packages",
        "python",
        "limits",
        "safe_mode",
        "app.x",
        "app.x.limits",
        "app.x.sandbox",
        "slice.x",
        "slice.x.tls",
        "slice.x.limits",
    ] {
        let text = format!("[{table}]\nqqqqqqqqq = 1");
        let refusal = ConfigFile::parse(&text, Path::new("x")).unwrap_err().to_string();
        let (_, known) = refusal.split_once("the keys here are ").unwrap();
        let tables = ["tls", "datapaths", "limits", "sandbox", "settings", "capabilities", "quotas", "vnics"];
        for key in known.split(", ").filter(|key| !tables.contains(key) && !CAPABILITIES.contains(key)) {
            assert!(found.contains(key), "burnet.toml does not show {table}.{key}");
        }
    }
}

#[test]
fn each_bound_is_the_codes() {
    // Without its line breaks, which fall where they fall.
    let reference = page("configuration.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for bound in [
        format!("at most {} apps", monitor::APPS_MAX),
        format!("up to {} letters", monitor::APP_NAME_BYTES_MAX),
        format!("1 to {}; `--workers`", monitor::protocol::WORKERS_MAX),
        format!("1 to {} milliseconds", config::DURATION_MS_MAX),
        format!("1 to {}; one more is closed", config::CONNECTIONS_MAX),
    ] {
        assert!(reference.contains(&bound), "configuration.md does not say: {bound}");
    }
}

#[test]
fn each_command_and_option_is_in_the_reference() {
    fn check(path: &str, command: &Command, reference: &str) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long() else { continue };
            assert!(
                reference.contains(&format!("`--{long}")),
                "cli.md does not say what {path} --{long} does"
            );
        }
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name());
            assert!(reference.contains(&path), "cli.md does not say what {path} does");
            check(&path, below, reference);
        }
    }
    let reference = page("cli.md");
    check("burnet", &Cli::command(), &reference);
}
