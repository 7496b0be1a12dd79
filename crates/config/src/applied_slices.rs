//! The slices that the operator has applied to a node: a file in the state folder, which takes the place of `[slice.NAME]` in `burnet.toml`.
//!
//! In: what the file of the configuration has, and where slices shall come from. Out: the slices, and the file that they are from. It writes
//! nothing: `burnet run` keeps the file.

use std::path::{Path, PathBuf};

use crate::{ConfigError, ConfigFile};

/// Where the slices of a node come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SlicesFrom {
    /// From the applied file, if there is one, or else from the configuration.
    #[default]
    Applied,
    /// From this file.
    File(PathBuf),
    /// From the configuration.
    Configuration,
}

/// The applied file of a node with this state folder.
pub fn applied_file(state: &Path) -> PathBuf {
    state.join("slices.toml")
}

/// Puts the applied slices into the place of those of the configuration. Returns the file that they are from.
pub(crate) fn take(
    file: &mut ConfigFile,
    from: &SlicesFrom,
    state: Option<&Path>,
) -> Result<Option<PathBuf>, ConfigError> {
    let applied = match from {
        SlicesFrom::Configuration => None,
        SlicesFrom::File(path) => Some(path.clone()),
        SlicesFrom::Applied => state.map(applied_file).filter(|path| path.exists()),
    };
    if let Some(path) = &applied {
        file.slices = ConfigFile::read(path)?.slices;
    }
    Ok(applied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, tag: u16) -> String {
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = {tag}\nown_ports = ['s1:{tag}']\n"
        )
    }

    #[test]
    fn an_applied_file_takes_the_place_of_all_slices_of_the_configuration() {
        let folder = std::env::temp_dir().join(format!("burnet-applied-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let configuration = ConfigFile::parse(&slice("red", 1), Path::new("burnet.toml")).unwrap();
        let names = |from: &SlicesFrom, state: Option<&Path>| {
            let mut file = configuration.clone();
            take(&mut file, from, state)
                .map(|_| file.slices.into_iter().map(|it| it.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&SlicesFrom::Applied, Some(&folder)).unwrap(), ["red"]);
        let other = folder.join("other.toml");
        std::fs::write(&other, slice("green", 3)).unwrap();
        std::fs::write(applied_file(&folder), slice("blue", 2)).unwrap();
        assert_eq!(names(&SlicesFrom::Applied, Some(&folder)).unwrap(), ["blue"]);
        assert_eq!(names(&SlicesFrom::Applied, None).unwrap(), ["red"]);
        assert_eq!(names(&SlicesFrom::File(other), Some(&folder)).unwrap(), ["green"]);
        assert_eq!(names(&SlicesFrom::Configuration, Some(&folder)).unwrap(), ["red"]);
        std::fs::write(applied_file(&folder), "[slice.blue]\n").unwrap();
        assert!(
            names(&SlicesFrom::Applied, Some(&folder))
                .unwrap_err()
                .to_string()
                .contains("slices.toml, line 1")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
