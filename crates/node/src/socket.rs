//! The operator's socket in the file system. It replaces a socket of an ended node, and is removed at the end.
//!
//! In: a path. Out: a listening socket for its owner and group, in a folder that other users cannot write. It never removes
//! a file that is not a socket, a socket that another process uses, or a file that replaced the socket.

use mio::net::{UnixListener, UnixStream};
use operator::place::check_folder;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::umask;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A bound socket.
pub struct OperatorSocket {
    /// The socket that operators connect to.
    pub listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file, to recognize it later.
    file: (u64, u64),
}

impl OperatorSocket {
    /// Binds it.
    ///
    /// # Errors
    /// One sentence for the operator, which says at its end what to do.
    pub fn bind(path: &Path) -> Result<OperatorSocket, String> {
        let cannot = |error: io::Error| {
            let path = path.display();
            format!(
                "the operator's socket {path} cannot be created ({error}): choose another with --socket PATH"
            )
        };
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(cannot)?;
            check_folder(folder)?;
        }
        make_room(path)?;
        let listener = listen(path).map_err(cannot)?;
        let file = identity(path).map_err(cannot)?;
        Ok(OperatorSocket { listener, path: path.to_owned(), file })
    }

    /// Removes the socket file, unless another file has replaced it.
    pub fn remove(&self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            // If it cannot be removed, the next node replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The mode of a folder that this function creates: like the socket, no access for others.
const FOLDER_MODE: u32 = 0o750;

/// Operators that may wait to be accepted; the system refuses further ones.
const BACKLOG: i32 = 64;

/// The umask belongs to the whole process. Two threads that bind at once would restore each other's.
static UMASK: Mutex<()> = Mutex::new(());

fn listen(path: &Path) -> io::Result<UnixListener> {
    let owner_and_group = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    // The socket is created with its mode. With a later chmod, other users could connect first, or replace the file
    // before the chmod.
    let bound = {
        let _alone = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
        let before = umask(Mode::from_raw_mode(0o777) - owner_and_group);
        let bound = rustix::net::bind(&socket, &address);
        umask(before);
        bound
    };
    bound?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from_std(std::os::unix::net::UnixListener::from(socket)))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Removes the socket of a dead node. Any other file there is an operator's mistake.
fn make_room(path: &Path) -> Result<(), String> {
    let refused = |what: &str| Err(format!("{what}, or choose another socket with --socket PATH"));
    let shown = path.display();
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(file) if !file.file_type().is_socket() => {
            return refused(&format!("{shown} exists and is not a socket: move it away"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).map_err(|error| error.kind()) {
        // No process listens there any more.
        Err(ErrorKind::ConnectionRefused) => std::fs::remove_file(path)
            .map_err(|error| format!("the socket {shown} of an earlier node cannot be removed: {error}")),
        // A node with a full queue is alive too.
        Ok(_) | Err(ErrorKind::WouldBlock) => {
            refused(&format!("another node already listens on {shown}: stop it"))
        }
        Err(kind) => {
            refused(&format!("the socket {shown} cannot be checked ({kind}): stop the node that uses it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A folder for one test, which is removed after the test.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let folder = std::env::temp_dir().join(format!("burnet-socket-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Place(folder.join("node.sock"))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
        }
    }

    fn check_refused(place: &Place, why: &str) {
        let said = OperatorSocket::bind(&place.0).err().unwrap_or_default();
        assert!(said.contains(why) && said.contains("--socket PATH"), "{said}");
    }

    #[test]
    fn a_socket_is_not_put_into_a_folder_that_everybody_can_change() {
        let place = Place::new("open");
        let folder = place.0.parent().unwrap();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        check_refused(&place, "can be changed by every user");
        assert!(!place.0.exists());
    }

    #[test]
    fn a_folder_that_is_made_is_nothing_for_others() {
        let place = Place::new("made");
        let folder = place.0.parent().unwrap().join("new");
        let socket = OperatorSocket::bind(&folder.join("node.sock")).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o007, 0);
        socket.remove();
    }

    #[test]
    fn what_is_no_socket_stays_where_it_is() {
        let place = Place::new("file");
        std::fs::write(&place.0, "precious").unwrap();
        check_refused(&place, "is not a socket");
        assert_eq!(std::fs::read_to_string(&place.0).unwrap(), "precious");
    }

    #[test]
    fn a_name_of_another_file_stays_where_it_is() {
        let place = Place::new("name");
        std::os::unix::fs::symlink("/nowhere", &place.0).unwrap();
        check_refused(&place, "is not a socket");
        assert!(place.0.is_symlink());
    }

    #[test]
    fn a_node_that_says_nothing_keeps_its_socket() {
        let place = Place::new("silent");
        let _silent = UnixListener::bind(&place.0).unwrap();
        check_refused(&place, "another node already listens on");
        assert!(place.0.exists());
    }

    #[test]
    fn the_socket_of_a_dead_node_is_replaced_and_is_its_owners_alone() {
        let place = Place::new("dead");
        drop(UnixListener::bind(&place.0).unwrap());
        let socket = OperatorSocket::bind(&place.0).unwrap();
        assert_eq!(std::fs::metadata(&place.0).unwrap().permissions().mode() & 0o777, 0o660);
        socket.remove();
        assert!(!place.0.exists());
    }

    #[test]
    fn what_another_has_put_there_is_not_taken_away() {
        let place = Place::new("another");
        let socket = OperatorSocket::bind(&place.0).unwrap();
        std::fs::rename(&place.0, place.0.with_extension("old")).unwrap();
        std::fs::write(&place.0, "another's").unwrap();
        socket.remove();
        assert!(place.0.exists());
    }
}
