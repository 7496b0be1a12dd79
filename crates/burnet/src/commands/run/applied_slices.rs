//! The slices that the operator applies to a running node: first beside the applied file, and in its place once all else is well.
//!
//! ```text
//!   SlicesChange ──stage──> slices.toml.new ──> Config::load and all checks ──keep──> slices.toml
//! ```
//!
//! In: what the operator wants, and what runs. Out: files in the state folder. What was not kept is removed, so a refused change leaves nothing.

use crate::cli::{CommandError, RunArgs};
use config::{Config, ConfigFile, SlicesFrom, applied_file};
use monitor::{SlicesChange, SlicesWanted};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Says at the start that slices of the configuration are not used.
pub(super) fn say(config: &Config) {
    if let Some(file) = &config.applied_slices {
        tracing::info!("the slices are those of {}, which the operator has applied", file.display());
    }
}

/// A change that is not kept yet.
pub(super) struct Staged {
    /// The new file. `None`: the configuration's slices.
    new: Option<PathBuf>,
    /// The applied file.
    file: PathBuf,
    dry_run: bool,
}

impl Staged {
    /// Writes the new file, beside the applied one.
    ///
    /// # Errors
    /// A sentence: the file is wrong, there is no such slice, or the state folder cannot be written.
    pub(super) fn of(
        change: &SlicesChange,
        running: &Config,
        args: &RunArgs,
    ) -> Result<Staged, CommandError> {
        let state = running.node.state.as_deref().ok_or_else(|| {
            CommandError::Usage("this node has no state folder to keep applied slices in: write them into burnet.toml, or start it with --state DIR".to_owned())
        })?;
        let file = applied_file(state);
        let text = match &change.wanted {
            SlicesWanted::OfConfiguration
            | SlicesWanted::Paused(_)
            | SlicesWanted::Resumed(_)
            | SlicesWanted::Judged => None,
            SlicesWanted::OfFile(path) => Some(of_file(path)?),
            SlicesWanted::Without(slice) => {
                let source = running.applied_slices.as_deref().or(args.config.as_deref());
                Some(without(source, slice)?)
            }
        };
        let new = text.map(|text| write(&file.with_extension("toml.new"), &text)).transpose();
        let new = new.map_err(|why| {
            CommandError::Usage(format!("the slices cannot be kept in {}: {why}", state.display()))
        })?;
        Ok(Staged { new, file, dry_run: change.dry_run })
    }

    /// The arguments with which the configuration is read.
    pub(super) fn args(&self, args: &RunArgs) -> RunArgs {
        let slices = self.new.clone().map_or(SlicesFrom::Configuration, SlicesFrom::File);
        RunArgs { slices, ..args.clone() }
    }

    /// Whether nothing is to change.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Keeps it. Returns the applied file, if there is one now.
    ///
    /// # Errors
    /// The state folder cannot be written. Then nothing has changed.
    pub(super) fn keep(mut self) -> Result<Option<PathBuf>, CommandError> {
        let done = match self.new.take() {
            Some(new) => std::fs::rename(new, &self.file),
            None => match std::fs::remove_file(&self.file) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                done => return done.map(|()| None).map_err(|why| self.unkept(&why)),
            },
        };
        done.map(|()| Some(self.file.clone())).map_err(|why| self.unkept(&why))
    }

    fn unkept(&self, why: &std::io::Error) -> CommandError {
        CommandError::DidNotWork(format!("the slices cannot be kept in {}: {why}", self.file.display()))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            // It is in nobody's way, and the next change replaces it.
            let _ = std::fs::remove_file(new);
        }
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<PathBuf> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(path.to_owned())
}

/// The text of the operator's file, if it has slices and nothing else.
fn of_file(path: &Path) -> Result<String, CommandError> {
    ConfigFile::read(path)?;
    let table = table(path)?;
    match table.keys().find(|key| *key != "slice") {
        None => Ok(text_of(&table)),
        Some(other) => Err(CommandError::Usage(format!(
            "{} also has [{other}]: only slices can be applied, so write them into a file of their own",
            path.display()
        ))),
    }
}

/// The slices of a file, without one.
fn without(source: Option<&Path>, slice: &str) -> Result<String, CommandError> {
    let missing = || CommandError::Usage(format!("the node has no slice {slice}"));
    let mut slices = table(source.ok_or_else(missing)?)?;
    slices.retain(|key, _| key == "slice");
    let removed = slices.get_mut("slice").and_then(Value::as_table_mut).and_then(|all| all.remove(slice));
    removed.ok_or_else(missing).map(|_| text_of(&slices))
}

fn table(path: &Path) -> Result<Table, CommandError> {
    let unreadable = |why: String| CommandError::Usage(format!("{} cannot be read: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let mut table: Table =
        text.parse().map_err(|why: toml::de::Error| unreadable(why.message().to_owned()))?;
    let absolute = std::path::absolute(path).map_err(|error| unreadable(error.to_string()))?;
    root_files(&mut table, absolute.parent().unwrap_or(Path::new("/")));
    Ok(table)
}

/// Makes the paths in slices absolute. They are relative to the folder of the operator's file, and the kept file is in another folder.
fn root_files(table: &mut Table, folder: &Path) {
    let slices = table.get_mut("slice").and_then(Value::as_table_mut).into_iter().flat_map(Table::iter_mut);
    let tls = slices.filter_map(|(_, slice)| slice.get_mut("tls")?.as_table_mut());
    for (_, file) in tls.flat_map(Table::iter_mut) {
        if let Some(rooted) = file.as_str().map(|path| folder.join(path)) {
            // A path that is not UTF-8 cannot be written to TOML, so it stays relative.
            *file = rooted.to_str().map_or_else(|| file.clone(), |path| Value::String(path.to_owned()));
        }
    }
}

fn text_of(slices: &Table) -> String {
    format!(
        "# The slices of this node. `burnet slice apply` and `burnet slice remove` write this file.\n{slices}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, tag: u16) -> String {
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = {tag}\nown_ports = ['s1:{tag}']\n"
        )
    }

    fn names(path: &Path) -> Vec<String> {
        ConfigFile::read(path).unwrap().slices.into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_change_is_kept_as_a_whole_or_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("burnet-staged-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let written = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let config =
            written("burnet.toml", &(slice("red", 1) + &slice("blue", 2) + "[node]\nlog = 'info'\n"));
        let new = folder.join("slices.toml.new");
        let stage = |wanted: SlicesWanted| {
            let mut running = self::config();
            running.node.state = Some(folder.clone());
            running.applied_slices = Some(applied_file(&folder)).filter(|path| path.exists());
            let args = RunArgs { config: Some(config.clone()), ..RunArgs::default() };
            Staged::of(&SlicesChange { wanted, dry_run: false, force: false }, &running, &args)
        };
        let refused = |wanted: SlicesWanted, part: &str| {
            let why = stage(wanted).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(why.contains(part), "{why}");
            assert!(!new.exists(), "{part}");
        };
        refused(SlicesWanted::OfFile(config.clone()), "also has [node]");
        refused(SlicesWanted::OfFile(folder.join("none.toml")), "cannot be read");
        refused(SlicesWanted::OfFile(written("bad.toml", "[slice.red]\n")), "line 1");
        refused(SlicesWanted::Without("green".to_owned()), "the node has no slice green");
        drop(stage(SlicesWanted::Without("red".to_owned())).unwrap());
        assert!(!new.exists() && !applied_file(&folder).exists());
        stage(SlicesWanted::Without("red".to_owned())).unwrap().keep().unwrap();
        assert_eq!(names(&applied_file(&folder)), ["blue"]);
        refused(SlicesWanted::Without("red".to_owned()), "the node has no slice red");
        let file = written("other.toml", &slice("green", 3));
        assert_eq!(stage(SlicesWanted::OfFile(file)).unwrap().keep().unwrap(), Some(applied_file(&folder)));
        assert_eq!(names(&applied_file(&folder)), ["green"]);
        assert_eq!(stage(SlicesWanted::OfConfiguration).unwrap().keep().unwrap(), None);
        assert!(!applied_file(&folder).exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_of_an_applied_slice_are_those_of_the_operators_folder() {
        let folder = std::env::temp_dir().join(format!("burnet-rooted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tls = "[slice.green.tls]\ncertificate = 'a.pem'\nprivate_key = '/keys/b.pem'\nca_certificate = 'ca/c.pem'\n";
        let file = folder.join("mine.toml");
        std::fs::write(&file, slice("green", 3) + tls + &slice("red", 4)).unwrap();
        for text in [of_file(&file).unwrap(), without(Some(&file), "red").unwrap()] {
            let kept = ConfigFile::parse(&text, Path::new("/state/slices.toml")).unwrap();
            let tls = kept.slices[0].tls.clone().unwrap();
            assert_eq!(tls.certificate, folder.join("a.pem"));
            assert_eq!(tls.private_key, Path::new("/keys/b.pem"));
            assert_eq!(tls.ca_certificate, folder.join("ca/c.pem"));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn config() -> Config {
        let around = config::Environment { uid: 1000, home: Some("/home/u".into()), ..Default::default() };
        Config::merge(ConfigFile::default(), &RunArgs::default(), &around, &crate::apps::ALL).unwrap()
    }
}
