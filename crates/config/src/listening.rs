//! The addresses on which the apps of a node accept connections, checked together.
//!
//! In: what each app was granted, where the node itself listens, and the operator's socket. Out: the same addresses, with the
//! names of socket files as paths; or the first contradiction, which names the app, the address and what to do. It opens nothing.

use std::path::{Path, PathBuf};

use contract::ServiceAddress;
use monitor_channel::{AppSpec, ZoneKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{ConfigError, ListenAddress, contradiction};

/// Refuses what a manifest requests and only the operator can grant.
pub(super) fn check_granted(app: &str, needs_operator: &[ServiceAddress]) -> Result<(), ConfigError> {
    let Some((address, why)) = needs_operator.iter().find_map(|it| Some((it, it.needs_operator()?))) else {
        return Ok(());
    };
    contradiction(format!(
        "the app {app} requests to listen on {address}, and {why}: to allow it, write net.listen = [\"{address}\"] into \
         [app.{app}.sandbox] of burnet.toml. Another list there replaces the request"
    ))
}

/// Gives each socket file its path, and refuses addresses that cannot be open together.
pub(super) fn settle(
    apps: &mut [AppSpec],
    operator_socket: &Path,
    switches: &[ListenAddress],
) -> Result<(), ConfigError> {
    let folder = folder(operator_socket);
    let mut taken: Vec<(String, ServiceAddress)> = Vec::new();
    for app in apps {
        let name = &app.name;
        for address in &mut app.sandbox.net.listen {
            *address = address.clone().within(&folder);
            if app.kind == ZoneKind::Trusted {
                return contradiction(format!(
                    "the app {name} listens on {address}, but a trusted app cannot receive sockets: run it in a process zone, or leave net.listen out"
                ));
            }
            if let Some(switches) = switches.iter().find(|switches| overlaps(address, switches)) {
                return contradiction(format!(
                    "the app {name} listens on {address}, where this node listens for switches ({switches}): give the app another \
                     address"
                ));
            }
            if let Some((other, theirs)) = taken.iter().find(|(_, other)| other.overlaps(address)) {
                return contradiction(format!(
                    "the apps {other} and {name} cannot both listen on {theirs}{}: give one of them another address",
                    if theirs == address { String::new() } else { format!(" and {address}") },
                ));
            }
            taken.push((name.clone(), address.clone()));
        }
    }
    Ok(())
}

/// The folder of the apps' socket files, beside the operator's socket: `node.listen` for `node.sock`.
fn folder(operator_socket: &Path) -> PathBuf {
    operator_socket.with_extension("listen")
}

/// Without an address, the node listens for switches on all of them.
fn overlaps(address: &ServiceAddress, switches: &ListenAddress) -> bool {
    let ServiceAddress::Tcp(tcp) = address else { return false };
    let all = if tcp.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { [0_u16; 8].into() };
    let theirs = SocketAddr::new(switches.0.address.unwrap_or(all), switches.0.port);
    ServiceAddress::Tcp(theirs).overlaps(address)
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigFile, Environment, RunArgs};
    use super::*;

    fn merged(text: &str) -> Result<Vec<String>, String> {
        let file = ConfigFile::parse(text, Path::new("burnet.toml")).map_err(|error| error.to_string())?;
        let around = Environment { uid: 1000, home: Some("/home/u".into()), ..Environment::default() };
        let config = super::super::Config::merge(file, &RunArgs::default(), &around, &[]);
        let apps = config.map_err(|error| error.to_string())?.apps;
        Ok(apps.iter().flat_map(|app| &app.sandbox.net.listen).map(ToString::to_string).collect())
    }

    fn check(apps: &[(&str, &str)], expected: Result<&[&str], &str>) {
        let table = |(name, listen): &(&str, &str)| {
            format!("[app.{name}]\npath = '/bin/true'\nsandbox.net.listen = [{listen}]\n")
        };
        let got = merged(&apps.iter().map(table).collect::<String>());
        match (got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(got), Err(expected)) => assert!(got.contains(expected), "{got}"),
            (got, expected) => panic!("{got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn addresses_that_meet_are_refused_with_both_apps() {
        check(
            &[("a", "'127.0.0.1:8181'"), ("b", "'127.0.0.1:8182'")],
            Ok(&["127.0.0.1:8181", "127.0.0.1:8182"]),
        );
        check(
            &[("a", "'127.0.0.1:8181'"), ("b", "'127.0.0.1:8181'")],
            Err("the apps a and b cannot both listen on 127.0.0.1:8181: give one of them another address"),
        );
        check(
            &[("a", "'0.0.0.0:8181'"), ("b", "'127.0.0.1:8181'")],
            Err("the apps a and b cannot both listen on 0.0.0.0:8181 and 127.0.0.1:8181"),
        );
        check(
            &[("a", "'unix:web'"), ("b", "'unix:web'")],
            Err("the apps a and b cannot both listen on unix:/"),
        );
        check(
            &[("a", "'127.0.0.1:6653'")],
            Err("the app a listens on 127.0.0.1:6653, where this node listens for switches (0.0.0.0:6653)"),
        );
        check(&[("a", "'localhost:8181'")], Err("line 3: \"localhost:8181\" is no address to listen on"));
        let trusted = "[app.a]\npath = '/a.so'\nzone = 'trusted'\nsandbox.net.listen = ['127.0.0.1:8181']";
        assert!(merged(trusted).unwrap_err().contains("trusted app cannot receive sockets"));
    }

    #[test]
    fn a_socket_file_lies_beside_the_operators_socket() {
        let around = merged(
            "[node]\nsocket = '/run/burnet/node.sock'\n[app.a]\npath = '/a'\nsandbox.net.listen = ['unix:web']",
        );
        assert_eq!(around, Ok(vec!["unix:/run/burnet/node.listen/web".to_owned()]));
    }
}
