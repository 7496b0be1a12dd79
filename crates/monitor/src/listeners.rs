//! The sockets on which apps accept connections.
//!
//! ```text
//!   net.listen of an app ──bind, listen──> Listeners ──with the welcome message──> each run of the app
//!                                             └─ stay open while the app restarts: connections wait in Linux's queue
//! ```
//!
//! In: the addresses of an app at each of its starts. Out: listening sockets, or a sentence for the operator. It never accepts a
//! connection and never reads from one.

use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::Path;

use contract::ServiceAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// How many connections may wait at each address of an app. While the app restarts, clients wait here. When the queue
/// is full, Linux makes further clients retry and refuses none.
const BACKLOG: i32 = 128;

/// The mode of a socket file and its folder: access for owner and group, as for the operator's socket.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP);
const FOLDER_MODE: u32 = 0o750;

/// Without waiting.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// All open sockets of a node: at most [`zone::sandbox::LISTEN_MAX`] for each app.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    app: String,
    address: ServiceAddress,
    socket: OwnedFd,
    /// Device and number of the socket file.
    file: Option<(u64, u64)>,
}

impl Listeners {
    /// The sockets of an app for these addresses, in their order. It opens the missing ones, and closes the app's
    /// others.
    ///
    /// # Errors
    /// The address and why it cannot be opened. Sockets of the app that are open stay so.
    pub(crate) fn of(&mut self, app: &str, addresses: &[ServiceAddress]) -> io::Result<Vec<BorrowedFd<'_>>> {
        self.drop_unused(app, addresses);
        if let Some(why) = self.open_missing(app, addresses, "net.listen") {
            return Err(why);
        }
        Ok(addresses
            .iter()
            .filter_map(|address| self.find(app, address))
            .map(|it| it.socket.as_fd())
            .collect())
    }

    /// The same for a service of the node, which also runs without some of its addresses. The address of each socket is with it. `key`: where the
    /// operator wrote the addresses. The error names the first address that cannot be opened.
    pub(crate) fn of_service(
        &mut self,
        app: &str,
        addresses: &[ServiceAddress],
        key: &str,
    ) -> (Vec<(&ServiceAddress, BorrowedFd<'_>)>, Option<io::Error>) {
        self.drop_unused(app, addresses);
        let why = self.open_missing(app, addresses, key);
        let open = addresses.iter().filter_map(|address| self.find(app, address));
        (open.map(|it| (&it.address, it.socket.as_fd())).collect(), why)
    }

    /// Opens the missing sockets of an app that runs, for its next run. Returns whether there are more than before, and why one is missing.
    pub(crate) fn open_again(
        &mut self,
        app: &str,
        addresses: &[ServiceAddress],
        key: &str,
    ) -> (bool, Option<io::Error>) {
        let before = self.0.len();
        let why = self.open_missing(app, addresses, key);
        (self.0.len() > before, why)
    }

    fn drop_unused(&mut self, app: &str, addresses: &[ServiceAddress]) {
        // An earlier run of the app may have shut a socket down. The next run could not use it.
        self.0.retain(|it| it.app != app || (addresses.contains(&it.address) && it.is_listening()));
    }

    /// Tries all. Returns the first error.
    fn open_missing(&mut self, app: &str, addresses: &[ServiceAddress], key: &str) -> Option<io::Error> {
        let mut first = None;
        for address in addresses {
            if self.find(app, address).is_some() {
                continue;
            }
            match open(address) {
                Ok((socket, file)) => {
                    self.0.push(Listener { app: app.to_owned(), file, address: address.clone(), socket });
                }
                Err(why) => first = first.or_else(|| Some(self.in_words(app, address, &why, key))),
            }
        }
        first
    }

    /// Closes the sockets that no app is going to use.
    pub(crate) fn keep_only(&mut self, is_used: impl Fn(&str, &ServiceAddress) -> bool) {
        self.0.retain(|it| is_used(&it.app, &it.address));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, app: &str, address: &ServiceAddress) -> Option<&Listener> {
        self.0.iter().find(|it| it.app == app && it.address == *address)
    }

    fn in_words(&self, app: &str, address: &ServiceAddress, why: &io::Error, key: &str) -> io::Error {
        let other = self.0.iter().find(|it| it.app != app && it.address.overlaps(address));
        let why = match (why.raw_os_error().map(Errno::from_raw_os_error), other) {
            (_, Some(other)) => format!("the app {} uses it: change {key} of one of them", other.app),
            (Some(Errno::ADDRINUSE), None) => {
                format!("another program uses it: stop that program, or change {key}")
            }
            (Some(Errno::ADDRNOTAVAIL), None) => format!("this machine does not have it: change {key}"),
            (Some(Errno::ACCESS | Errno::PERM), None) => format!("this user may not: change {key}"),
            _ => format!("{why}: change {key}"),
        };
        io::Error::other(format!("it cannot listen on {address}: {why}"))
    }
}

impl Listener {
    fn is_listening(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let is_shut = poll(&mut fds, Some(&AT_ONCE)).is_ok_and(|count| count > 0)
            && fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP);
        !is_shut && sockopt::socket_acceptconn(&self.socket).unwrap_or(false)
    }
}

impl Drop for Listener {
    /// Removes its file, unless another program has replaced it.
    fn drop(&mut self) {
        if let ServiceAddress::Unix(path) = &self.address
            && self.file.is_some()
            && self.file == identity(path).ok()
        {
            // If the file stays, the next node replaces it.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open(address: &ServiceAddress) -> io::Result<(OwnedFd, Option<(u64, u64)>)> {
    match address {
        ServiceAddress::Tcp(address) => Ok((open_tcp(address)?, None)),
        ServiceAddress::Unix(path) => {
            let socket = open_unix(path)?;
            Ok((socket, Some(identity(path)?)))
        }
    }
}

/// How much Linux keeps for each client that reads slowly. Without a bound it grows to some megabytes, which no limit of the service counts.
const SEND_BUFFER_BYTES: usize = 256 << 10;

fn open_tcp(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier node that Linux is still closing do not count as a use of the address.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // Without this, `[::]` would include all IPv4 addresses.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Its connections inherit it.
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn open_unix(path: &Path) -> io::Result<OwnedFd> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let address = SocketAddrUnix::new(path)?;
    make_room(path, &socket()?, &address)?;
    let socket = socket()?;
    // Linux uses this mode and the umask for the file: other users cannot connect before the mode is set below.
    rustix::fs::fchmod(&socket, FILE_MODE)?;
    rustix::net::bind(&socket, &address)?;
    rustix::fs::chmod(path, FILE_MODE)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Removes the socket file of a node that has ended.
fn make_room(path: &Path, socket: &OwnedFd, address: &SocketAddrUnix) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::other("a file that is not a socket is at its path"));
        }
        Ok(_) => {}
    }
    match rustix::net::connect(socket, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        // A program accepts connections there, or its queue is full.
        Ok(()) | Err(Errno::AGAIN) => Err(Errno::ADDRINUSE.into()),
        Err(errno) => Err(errno.into()),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    /// After so long, a connection is not going to come.
    const HANG: std::time::Duration = std::time::Duration::from_secs(30);

    /// An address that was free a moment ago.
    fn free() -> ServiceAddress {
        ServiceAddress::Tcp(TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("burnet-listeners-{name}-{}", std::process::id()))
    }

    fn connects(address: &ServiceAddress) -> bool {
        match address {
            // On this machine it connects at once, or not at all. The limit is there to end a hang.
            ServiceAddress::Tcp(address) => TcpStream::connect_timeout(address, HANG).is_ok(),
            ServiceAddress::Unix(path) => UnixStream::connect(path).is_ok(),
        }
    }

    fn refused(listeners: &mut Listeners, app: &str, address: &ServiceAddress, expected: &str) {
        let error = listeners.of(app, std::slice::from_ref(address)).unwrap_err().to_string();
        assert_eq!(error, format!("it cannot listen on {address}: {expected}"));
        // It becomes the reason of an app's end, after these words.
        assert!(error.len() + "it could not be started: ".len() <= crate::app::REASON_BYTES_MAX, "{error}");
    }

    #[test]
    fn a_socket_stays_open_over_the_runs_of_its_app_and_no_longer() {
        let unix = folder("runs").join("node.listen/web");
        let (tcp, unix) = (free(), ServiceAddress::Unix(unix));
        let both = [tcp.clone(), unix.clone()];
        let mut listeners = Listeners::default();
        assert_eq!(listeners.of("a", &both).unwrap().len(), 2);
        let numbers = |listeners: &Listeners| -> Vec<u64> {
            listeners.0.iter().map(|it| rustix::fs::fstat(&it.socket).unwrap().st_ino).collect()
        };
        let before = numbers(&listeners);
        listeners.of("a", &both).unwrap();
        assert_eq!(numbers(&listeners), before);
        assert!(connects(&tcp) && connects(&unix));
        listeners.of("a", std::slice::from_ref(&tcp)).unwrap();
        assert!(connects(&tcp) && !connects(&unix));
        listeners.keep_only(|app, _| app != "a");
        assert!(!connects(&tcp) && listeners.is_empty());
        std::fs::remove_dir_all(folder("runs")).unwrap();
    }

    #[test]
    fn a_socket_that_an_app_has_shut_down_is_opened_again() {
        let unix = ServiceAddress::Unix(folder("shut").join("web"));
        for address in [free(), unix] {
            let mut listeners = Listeners::default();
            let sockets = listeners.of("a", std::slice::from_ref(&address)).unwrap();
            rustix::net::shutdown(sockets[0], rustix::net::Shutdown::Read).unwrap();
            assert!(!connects(&address), "{address}");
            listeners.of("a", std::slice::from_ref(&address)).unwrap();
            assert!(connects(&address), "{address}");
        }
        std::fs::remove_dir_all(folder("shut")).unwrap();
    }

    #[test]
    fn an_address_that_cannot_be_opened_is_named_with_its_reason() {
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = ServiceAddress::Tcp(theirs.local_addr().unwrap());
        let mut listeners = Listeners::default();
        refused(
            &mut listeners,
            "a",
            &taken,
            "another program uses it: stop that program, or change net.listen",
        );
        let away = "192.0.2.1:8181".parse().unwrap();
        refused(&mut listeners, "a", &away, "this machine does not have it: change net.listen");
        let own = free();
        listeners.of("a", std::slice::from_ref(&own)).unwrap();
        refused(&mut listeners, "b", &own, "the app a uses it: change net.listen of one of them");
    }

    #[test]
    fn a_service_gets_the_sockets_that_there_are_and_the_others_when_they_are_free() {
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let (taken, own) = (ServiceAddress::Tcp(theirs.local_addr().unwrap()), free());
        let both = [taken.clone(), own.clone()];
        let mut listeners = Listeners::default();
        let (open, why) = listeners.of_service("northbound", &both, "listen");
        assert_eq!(open.iter().map(|(address, _)| (*address).clone()).collect::<Vec<_>>(), [own]);
        let expected = format!(
            "it cannot listen on {taken}: another program uses it: stop that program, or change listen"
        );
        assert_eq!(why.unwrap().to_string(), expected);
        let again = |listeners: &mut Listeners| {
            let (is_new, why) = listeners.open_again("northbound", &both, "listen");
            (is_new, why.is_some())
        };
        assert_eq!(again(&mut listeners), (false, true));
        drop(theirs);
        assert_eq!(again(&mut listeners), (true, false));
        assert_eq!(again(&mut listeners), (false, false));
        assert!(connects(&taken), "clients wait in its queue until the service has it");
    }

    #[test]
    fn a_socket_file_of_a_node_that_ended_is_replaced_and_nothing_else() {
        let place = folder("files");
        std::fs::create_dir_all(&place).unwrap();
        let (left, plain) = (place.join("left"), place.join("plain"));
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        std::fs::write(&plain, "").unwrap();
        let mut listeners = Listeners::default();
        let left = ServiceAddress::Unix(left);
        listeners.of("a", std::slice::from_ref(&left)).unwrap();
        assert!(connects(&left));
        refused(
            &mut Listeners::default(),
            "b",
            &left,
            "another program uses it: stop that program, or change net.listen",
        );
        let why = "a file that is not a socket is at its path: change net.listen";
        refused(&mut listeners, "b", &ServiceAddress::Unix(plain.clone()), why);
        assert!(plain.exists());
        std::fs::remove_dir_all(&place).unwrap();
    }
}
