//! The environment of a command. It provides the operator's socket and the state folder where the command line does
//! not name them.
//!
//! In: environment variables, the user, the current directory. Out: paths. It opens no file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use operator::place::shared_folder;

/// Longest path of a Unix socket in bytes: Linux stores it in 108 bytes, with a zero at the end (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The parts of a process's environment that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `$BURNET_SOCKET`.
    pub burnet_socket: Option<OsString>,
    /// `$XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<OsString>,
    /// `$BURNET_STATE`.
    pub burnet_state: Option<OsString>,
    /// `$XDG_STATE_HOME`.
    pub xdg_state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
    /// The effective user; 0 is root.
    pub uid: u32,
    /// The folder at which relative paths of the command line start.
    pub current_dir: PathBuf,
}

impl Environment {
    /// The environment of this process.
    ///
    /// # Errors
    /// The current directory no longer exists.
    pub fn of_this_process() -> Result<Environment, ConfigError> {
        let current_dir = std::env::current_dir().map_err(|error| {
            ConfigError::Contradiction(format!(
                "the current directory cannot be used ({error}): go to another"
            ))
        })?;
        Ok(Environment {
            burnet_socket: std::env::var_os("BURNET_SOCKET"),
            xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR"),
            burnet_state: std::env::var_os("BURNET_STATE"),
            xdg_state_home: std::env::var_os("XDG_STATE_HOME"),
            home: std::env::var_os("HOME"),
            uid: rustix::process::geteuid().as_raw(),
            current_dir,
        })
    }

    /// The path of the operator's socket. The first of these that is set: the command line, `$BURNET_SOCKET`, the
    /// file. The default is `/run/burnet/burnet.sock` for root, `$XDG_RUNTIME_DIR/burnet.sock` for a user who has
    /// that, and `/tmp/burnet-UID/burnet.sock` for all others. An empty variable counts as not set.
    ///
    /// # Errors
    /// The path is longer than Linux allows for a socket.
    pub fn socket(&self, command_line: Option<&Path>, file: Option<&Path>) -> Result<PathBuf, ConfigError> {
        let variable = self.burnet_socket.as_deref().filter(|path| !path.is_empty()).map(Path::new);
        let chosen = command_line.or(variable).or(file).map_or_else(|| self.default_socket(), Path::to_owned);
        let path = self.current_dir.join(chosen);
        if path.as_os_str().as_bytes().len() > SOCKET_PATH_BYTES_MAX {
            return Err(ConfigError::Contradiction(format!(
                "{} is longer than the {SOCKET_PATH_BYTES_MAX} bytes that the path of a socket may have: \
                 choose a shorter one with --socket PATH",
                path.display()
            )));
        }
        if path.to_str().is_none() {
            return Err(ConfigError::Contradiction(format!(
                "the socket's path {} is not UTF-8: choose another with --socket PATH",
                path.display()
            )));
        }
        Ok(path)
    }

    /// The state folder. The first of these that is set: the command line, `$BURNET_STATE`, the file. The default for
    /// root is `/var/lib/burnet`. For all others it is `burnet` in `$XDG_STATE_HOME`, or in `.local/state` of the
    /// home folder. An empty variable counts as not set, and so does a relative `$XDG_STATE_HOME` (XDG Base Directory
    /// Specification 0.8).
    ///
    /// # Errors
    /// The user has no home folder, or the path is not UTF-8.
    pub fn state(&self, command_line: Option<&Path>, file: Option<&Path>) -> Result<PathBuf, ConfigError> {
        let set =
            |variable: &Option<OsString>| variable.clone().filter(|path| !path.is_empty()).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        let by_default = || match self.uid {
            0 => Some(PathBuf::from("/var/lib/burnet")),
            _ => set(&self.xdg_state_home)
                .filter(absolute)
                .or_else(|| Some(set(&self.home)?.join(".local/state")))
                .map(|folder| folder.join("burnet")),
        };
        let chosen = command_line.map(Path::to_owned).or_else(|| set(&self.burnet_state));
        let chosen = chosen.or_else(|| file.map(Path::to_owned)).or_else(by_default);
        let path = chosen.map(|path| self.current_dir.join(path)).filter(|path| path.to_str().is_some());
        path.ok_or_else(|| {
            ConfigError::Contradiction(
                "there is no state folder for this user, or its name is not UTF-8: choose one with --state DIR".to_owned(),
            )
        })
    }

    /// Whether `$BURNET_STATE` names a state folder.
    pub fn names_state(&self) -> bool {
        self.burnet_state.as_ref().is_some_and(|path| !path.is_empty())
    }

    fn default_socket(&self) -> PathBuf {
        let runtime_dir = self.xdg_runtime_dir.as_deref().filter(|path| !path.is_empty()).map(Path::new);
        match runtime_dir {
            _ if self.uid == 0 => PathBuf::from("/run/burnet/burnet.sock"),
            Some(runtime_dir) => runtime_dir.join("burnet.sock"),
            None => shared_folder(self.uid).join("burnet.sock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Environment {
        Environment { uid: 1000, current_dir: "/home/u".into(), ..Environment::default() }
    }

    fn check(around: &Environment, command_line: Option<&str>, file: Option<&str>, expected: &str) {
        let socket = around.socket(command_line.map(Path::new), file.map(Path::new)).unwrap();
        assert_eq!(socket, Path::new(expected));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let long = format!("/{}", "x".repeat(SOCKET_PATH_BYTES_MAX));
        let error = user().socket(Some(Path::new(&long)), None).unwrap_err().to_string();
        assert!(error.contains("longer than the 107 bytes"), "{error}");
        assert!(user().socket(Some(Path::new(&long[..SOCKET_PATH_BYTES_MAX])), None).is_ok());
    }

    #[test]
    fn a_path_that_cannot_be_handed_on_is_refused() {
        let odd = std::ffi::OsStr::from_bytes(b"/run/\xff.sock");
        let error = user().socket(Some(Path::new(odd)), None).unwrap_err().to_string();
        assert!(error.contains("is not UTF-8"), "{error}");
    }

    fn check_state(
        around: &Environment,
        command_line: Option<&str>,
        file: Option<&str>,
        expected: Option<&str>,
    ) {
        let state = around.state(command_line.map(Path::new), file.map(Path::new));
        assert_eq!(state.ok(), expected.map(PathBuf::from));
    }

    #[test]
    fn each_kind_of_user_has_a_state_folder_and_the_nearest_word_decides_on_it() {
        let xdg = |path: &str| Environment {
            xdg_state_home: Some(path.into()),
            home: Some("/home/u".into()),
            ..user()
        };
        let told = Environment { burnet_state: Some("/b".into()), ..user() };
        check_state(&user(), None, None, None);
        check_state(&told, Some("a"), Some("/c"), Some("/home/u/a"));
        check_state(&told, None, Some("/c"), Some("/b"));
        check_state(&user(), None, Some("/c"), Some("/c"));
        check_state(&xdg("/s"), None, None, Some("/s/burnet"));
        check_state(&xdg("s"), None, None, Some("/home/u/.local/state/burnet"));
        check_state(&xdg(""), None, None, Some("/home/u/.local/state/burnet"));
        check_state(&Environment { uid: 0, ..xdg("/s") }, None, None, Some("/var/lib/burnet"));
    }

    #[test]
    fn the_nearest_word_decides_on_the_socket() {
        let told = Environment { burnet_socket: Some("/b".into()), ..user() };
        check(&told, Some("/a"), Some("/c"), "/a");
        check(&told, None, Some("/c"), "/b");
        check(&user(), None, Some("/c"), "/c");
        check(&Environment { burnet_socket: Some("".into()), ..user() }, None, Some("/c"), "/c");
        check(&user(), Some("here.sock"), None, "/home/u/here.sock");
    }

    #[test]
    fn each_kind_of_user_has_a_socket_by_default() {
        let runtime_dir = Some("/run/user/1000".into());
        check(&Environment { uid: 0, ..user() }, None, None, "/run/burnet/burnet.sock");
        check(
            &Environment { xdg_runtime_dir: runtime_dir, ..user() },
            None,
            None,
            "/run/user/1000/burnet.sock",
        );
        check(&user(), None, None, "/tmp/burnet-1000/burnet.sock");
    }
}
