//! Connections of the switches, which are in a network namespace of their own, to the node, which is not.
//!
//! In: bytes of either side. Out: the same to the other. It knows no message, and ends a connection when either side does.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::daemons::{SWITCHES, controller_socket};

/// How often a listener looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// What is carried at once.
const CHUNK_BYTES: usize = 64 << 10;

/// All relays of a network.
pub(super) struct Relays {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    lost: AtomicU64,
}

impl Relays {
    /// Listens for each switch.
    pub(super) fn start(folder: &Path, controller: SocketAddr) -> io::Result<Relays> {
        let shared = Arc::new(Shared::default());
        for switch in 1..=SWITCHES {
            let listener = UnixListener::bind(controller_socket(folder, switch))?;
            listener.set_nonblocking(true)?;
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("relay".into())
                .spawn(move || accept(&listener, controller, &shared))?;
        }
        Ok(Relays { shared })
    }

    /// Connections that ended.
    pub(super) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

fn accept(listener: &UnixListener, controller: SocketAddr, shared: &Arc<Shared>) {
    while !shared.over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((switch, _)) => {
                // What cannot be connected is closed, and the switch tries again.
                let _ = join(switch, controller, shared);
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Carries bytes both ways until either side ends.
fn join(switch: UnixStream, controller: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    switch.set_nonblocking(false)?;
    let node = TcpStream::connect(controller)?;
    node.set_nodelay(true)?;
    let (from_switch, from_node) = (switch.try_clone()?, node.try_clone()?);
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("to switch".into()).spawn(move || {
        carry(from_node.try_clone(), switch.try_clone());
        let _ = (switch.shutdown(Shutdown::Both), from_node.shutdown(Shutdown::Both));
        if !shared.over.load(Ordering::Relaxed) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    std::thread::Builder::new().name("to node".into()).spawn(move || {
        carry(from_switch.try_clone(), node.try_clone());
        let _ = (from_switch.shutdown(Shutdown::Both), node.shutdown(Shutdown::Both));
    })?;
    Ok(())
}

fn carry(from: io::Result<impl Read>, to: io::Result<impl Write>) {
    let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
    let mut room = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..count]).is_err() {
            return;
        }
    }
}
