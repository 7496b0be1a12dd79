//! The laboratory's apps: hostile ones for `attack`, one for `bench`. A node runs each as an external program.
//!
//! ```text
//!   place(FOLDER) ──> FOLDER/NAME, a link to burnet-lab; FOLDER/NAME.toml, its manifest
//!   [app.NAME] path = "FOLDER/NAME" ──> the node's zone executes the link ──> started_as() sees NAME ──> the app
//! ```
//!
//! It starts no app by itself.

pub mod bench_caller;
mod bench_service;
mod bystander;
mod port_echo;
mod scribbler;
mod wake_ups;

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use clap::Args;

/// An app in this program.
pub struct LabApp {
    /// Its name, which is also the name of the link that runs it.
    pub name: &'static str,
    manifest: &'static str,
    /// Serves its zone until the zone ends.
    pub run: fn() -> ExitCode,
}

/// All apps.
static APPS: [LabApp; 6] = [
    LabApp {
        name: "bench-caller",
        manifest: include_str!("apps/bench-caller.toml"),
        run: burnet_sdk::run::<bench_caller::BenchCaller>,
    },
    LabApp {
        name: "bench-service",
        manifest: include_str!("apps/bench-service.toml"),
        run: burnet_sdk::run::<bench_service::BenchService>,
    },
    LabApp {
        name: "bystander",
        manifest: include_str!("apps/bystander.toml"),
        run: burnet_sdk::run::<bystander::Bystander>,
    },
    LabApp {
        name: "misbehaving",
        manifest: include_str!("../../../apps/misbehaving/app.toml"),
        run: burnet_sdk::run::<misbehaving::Misbehaving>,
    },
    LabApp {
        name: "misbehaving-ring",
        manifest: include_str!("apps/misbehaving-ring.toml"),
        run: scribbler::run,
    },
    LabApp {
        name: "port-echo",
        manifest: include_str!("apps/port-echo.toml"),
        run: burnet_sdk::run::<port_echo::PortEcho>,
    },
];

const EXAMPLES: &str = "\
Examples:
  burnet-lab apps lab-apps
  burnet run --app lab-apps/bystander";

/// `burnet-lab apps`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AppsArgs {
    /// The folder; it is made if it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// The app as which this process was started. The program's name decides, which is the link's name in a zone.
pub fn started_as() -> Option<&'static LabApp> {
    let name = PathBuf::from(std::env::args_os().next()?);
    APPS.iter().find(|app| name.file_name().is_some_and(|name| name == app.name))
}

/// Writes a link and a manifest for each app into a folder.
///
/// # Errors
///
/// They cannot be written.
pub fn place(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let own = std::env::current_exe()?;
    for app in &APPS {
        std::fs::write(folder.join(format!("{}.toml", app.name)), app.manifest)?;
        let link = folder.join(app.name);
        match symlink(&own, &link) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && std::fs::read_link(&link)? == own => {}
            done => done?,
        }
    }
    Ok(())
}

/// Carries out `burnet-lab apps`.
///
/// # Errors
///
/// The files cannot be written.
pub fn write(args: &AppsArgs) -> Result<ExitCode, CommandError> {
    let folder = &args.folder;
    place(folder).map_err(|error| {
        CommandError::DidNotWork(format!("the apps cannot be written to {}: {error}", folder.display()))
    })?;
    for app in &APPS {
        println!("{}", folder.join(app.name).display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The lines of a configuration with which a node runs one of these apps.
pub fn table(folder: &Path, name: &str) -> String {
    format!("[app.{name}]\npath = \"{}\"\n", folder.join(name).display())
}

/// Starts a node with some of these apps, and with more lines of configuration.
///
/// # Errors
/// The files of the apps or the node's process cannot be made.
pub fn start_node(names: &[&str], settings: &str) -> Result<OwnNode, CommandError> {
    let mut placed = Ok(());
    let node = OwnNode::start_configured(|folder| {
        placed = place(folder);
        names.iter().map(|name| table(folder, name)).collect::<String>() + settings
    })?;
    placed.map_err(|error| CommandError::DidNotWork(format!("no files for the apps: {error}")))?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use package::Manifest;

    #[test]
    fn each_app_has_a_manifest_with_its_name() {
        for app in &APPS {
            let manifest =
                Manifest::parse(app.manifest).unwrap_or_else(|fault| panic!("{}: {fault}", app.name));
            assert_eq!(manifest.name.as_str(), app.name);
        }
    }

    #[test]
    fn links_are_written_twice_without_harm_and_over_no_other_file() {
        let folder = std::env::temp_dir().join(format!("burnet-lab-apps-{}", std::process::id()));
        place(&folder).unwrap();
        place(&folder).unwrap();
        assert_eq!(std::fs::read_link(folder.join("bystander")).unwrap(), std::env::current_exe().unwrap());
        std::fs::remove_file(folder.join("bystander")).unwrap();
        std::fs::write(folder.join("bystander"), "mine").unwrap();
        assert!(place(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
