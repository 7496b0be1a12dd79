//! The sockets on which an app accepts connections.
//!
//! In: the listening sockets that the monitor has opened for this app, with their addresses. Out: the same as types of the standard
//! library. It opens no socket and accepts no connection.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

/// A socket on which this app accepts connections: one for each address of its capability `net.listen`.
///
/// It does not block. The monitor keeps it open while the app restarts, so clients wait and are not refused.
#[derive(Debug)]
pub enum Listener {
    /// A TCP address. [`TcpListener::local_addr`] tells which.
    Tcp(TcpListener),
    /// A socket file. [`UnixListener::local_addr`] tells which.
    Unix(UnixListener),
}

impl Listener {
    /// The sockets with these addresses.
    pub(crate) fn all(addresses: &[String], sockets: Vec<OwnedFd>) -> io::Result<Vec<Listener>> {
        if sockets.len() != addresses.len() {
            return Err(io::Error::other("the number of sockets is not the number of addresses"));
        }
        addresses.iter().zip(sockets).map(|(address, socket)| Listener::of(address, socket)).collect()
    }

    fn of(address: &str, socket: OwnedFd) -> io::Result<Listener> {
        // An earlier run of the app may have changed it: all runs share the socket.
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(match address.starts_with("unix:") {
            true => Listener::Unix(socket.into()),
            false => Listener::Tcp(socket.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_socket_and_none_blocks() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let (none, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let addresses = [address.to_string(), "unix:/run/web".to_owned()];
        let all = Listener::all(&addresses, vec![tcp.into(), none.into()]).unwrap();
        let [Listener::Tcp(tcp), Listener::Unix(_)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(tcp.local_addr().unwrap(), address);
        assert_eq!(tcp.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(Listener::all(&addresses, Vec::new()).is_err());
    }
}
