//! The apps that are compiled into the binary with their manifests, and the code of those that are not.
//!
//! Never starts one: the monitor starts processes, and a worker loads what is trusted.

use crate::services;
use abi::table::AppTable;
use config::BuiltInApp;
use monitor::AppSource;
use std::path::Path;
use std::process::ExitCode;
use zone::guest::Guest;
use zone::trusted::{TrustedApp, TrustedCode};

/// An app within the binary.
struct BuiltIn {
    about: BuiltInApp,
    table: &'static AppTable,
    run: fn() -> ExitCode,
}

const BUILT_IN: [BuiltIn; 5] = [
    BuiltIn {
        about: app("firewall", include_str!("../../../apps/firewall/app.toml")),
        table: &firewall::TABLE,
        run: firewall::run,
    },
    BuiltIn {
        about: app("forwarding", include_str!("../../../apps/forwarding/app.toml")),
        table: &forwarding::TABLE,
        run: forwarding::run,
    },
    BuiltIn {
        about: app("hub", include_str!("../../../apps/hub/app.toml")),
        table: &hub::TABLE,
        run: hub::run,
    },
    BuiltIn {
        about: app("learning-switch", include_str!("../../../apps/learning-switch/app.toml")),
        table: &learning_switch::TABLE,
        run: learning_switch::run,
    },
    BuiltIn {
        about: app("proxy-arp", include_str!("../../../apps/proxy-arp/app.toml")),
        table: &proxy_arp::TABLE,
        run: proxy_arp::run,
    },
];

const fn app(name: &'static str, manifest: &'static str) -> BuiltInApp {
    BuiltInApp { name, manifest }
}

/// The apps within the binary.
pub const ALL: [BuiltInApp; BUILT_IN.len()] = {
    let mut all = [BUILT_IN[0].about; BUILT_IN.len()];
    let mut index = 0;
    while index < BUILT_IN.len() {
        all[index] = BUILT_IN[index].about;
        index += 1;
    }
    all
};

/// All that the binary holds.
pub const WITHIN: config::BuiltIn = config::BuiltIn { apps: &ALL, services: services::wanted };

/// Their names.
pub const NAMES: [&str; BUILT_IN.len()] = {
    let mut names = [""; BUILT_IN.len()];
    let mut index = 0;
    while index < BUILT_IN.len() {
        names[index] = BUILT_IN[index].about.name;
        index += 1;
    }
    names
};

fn built_in(name: &str) -> Result<&'static BuiltIn, String> {
    let found = BUILT_IN.iter().find(|app| app.about.name == name);
    found.ok_or_else(|| format!("there is no app {name} in this binary; there are {}", NAMES.join(", ")))
}

/// The code of an app that is to run in the kernel's process.
pub fn trusted_code(source: &AppSource) -> Result<TrustedCode, String> {
    match source {
        AppSource::BuiltIn(name) => Ok(TrustedCode::built_in(*built_in(name)?.table)),
        AppSource::SharedObject(path) => TrustedCode::load(path).map_err(|fault| fault.to_string()),
        AppSource::Executable(path) | AppSource::Python(path) => {
            Err(format!("{} is a separate program and cannot run trusted", path.display()))
        }
    }
}

/// Runs an app or a service of the binary in this process, until its zone ends.
pub fn run_built_in(name: &str) -> ExitCode {
    if name == slice::CODE {
        return slice::run();
    }
    if let Some(service) = services::named(name) {
        return (service.run)();
    }
    match built_in(name) {
        Ok(app) => (app.run)(),
        Err(trouble) => {
            eprintln!("{trouble}");
            ExitCode::from(2)
        }
    }
}

/// Runs the app of a shared object in this process, until its zone ends.
pub fn run_shared_object(path: &Path) -> ExitCode {
    burnet_sdk::run_guest(|settings, commands| {
        let code = TrustedCode::load(path).map_err(|fault| fault.to_string())?;
        let mut app = code.start(settings).map_err(|fault| fault.to_string())?;
        app.take_commands(commands);
        Ok(SharedObjectApp(app))
    })
}

/// The app of a shared object as what the loop of a process serves.
struct SharedObjectApp(TrustedApp);

impl Guest for SharedObjectApp {
    fn start(_: &[u8], _: &mut Vec<u8>) -> Result<Self, String> {
        Err("a shared object is started by its path".to_owned())
    }

    fn on_events(&mut self, events: &[u8], commands: &mut Vec<u8>) -> Result<(), abi::Malformed> {
        if let Err(fault) = self.0.on_events(events) {
            // In its own process a fault of the app is what ends the process; the monitor keeps the reason.
            eprintln!("{fault}");
            std::process::exit(1);
        }
        self.0.take_commands(commands);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::Manifest;

    #[test]
    fn an_app_that_is_not_there_is_named_with_those_that_are() {
        let refusal = trusted_code(&AppSource::BuiltIn("fire".into())).err().unwrap();
        assert_eq!(refusal, format!("there is no app fire in this binary; there are {}", NAMES.join(", ")));
    }

    #[test]
    fn every_app_has_a_manifest_of_its_name() {
        for app in ALL {
            let manifest =
                Manifest::parse(app.manifest).unwrap_or_else(|fault| panic!("{}: {fault}", app.name));
            assert_eq!(manifest.name.as_str(), app.name);
        }
    }

    #[test]
    fn each_asks_for_no_more_than_its_work_and_priorities_do_not_meet() {
        let asks = |name: &str| {
            let app = ALL.iter().find(|app| app.name == name).unwrap();
            Manifest::parse(app.manifest).unwrap().asks().into_iter().map(|ask| ask.name).collect::<Vec<_>>()
        };
        assert_eq!(asks("hub"), ["packet.in", "packet.out"]);
        assert_eq!(asks("learning-switch"), ["packet.in", "packet.out", "rule.write", "view.read"]);
        assert_eq!(asks("firewall"), ["rule.write", "view.read"]);
        assert_eq!(asks("forwarding"), ["packet.in", "packet.out", "rule.write", "view.read", "host.read"]);
        assert_eq!(asks("proxy-arp"), ["packet.in", "packet.out", "view.read", "host.read"]);
        let rules =
            ALL.iter().filter_map(|app| Manifest::parse(app.manifest).unwrap().capabilities.rule_write);
        let mut ranges: Vec<_> = rules.map(|rules| rules.priority.unwrap()).collect();
        ranges.sort_by_key(|range| range.low);
        assert!(ranges.windows(2).all(|two| two[0].high < two[1].low), "{ranges:?}");
        assert!(ranges[0].low > 0, "the table-miss rule is the kernel's");
    }

    #[test]
    fn a_program_of_its_own_cannot_run_trusted() {
        assert!(trusted_code(&AppSource::Executable("/bin/true".into())).is_err());
    }

    #[test]
    fn what_is_within_can_run_trusted() {
        for name in NAMES {
            let code = trusted_code(&AppSource::BuiltIn(name.into()));
            assert!(code.unwrap().start(b"{}").is_ok(), "{name}");
        }
    }
}
