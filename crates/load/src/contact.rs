//! Measures how long a starting controller takes until its first handshake with a switch.
//!
//! In: the address where it will listen. Out: when the first connected switch got a features request. It sends no
//! packet-in.

use flow::DatapathId;
use openflow::Version;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::greeting::Greeting;
use crate::stream::{Inbound, Room};

/// The time between attempts: short compared with what is measured.
const BETWEEN: Duration = Duration::from_millis(1);

/// Connects as soon as a server listens, sends a 1.0 hello, and answers the controller's features request. Returns
/// the time of that, or `None` if the patience ends.
pub fn first_contact(address: SocketAddr, patience: Duration) -> Option<Instant> {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if let Ok(Some(at)) = greet(address, end) {
            return Some(at);
        }
        std::thread::sleep(BETWEEN);
    }
    None
}

/// One attempt.
fn greet(address: SocketAddr, end: Instant) -> std::io::Result<Option<Instant>> {
    let began = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(end.saturating_duration_since(began).max(BETWEEN)))?;
    let (mut greeting, mut out) = (Greeting::new(Version::V1_0, DatapathId(1)), Vec::new());
    let (mut inbound, mut room) = (Inbound::default(), Room::new());
    greeting.hello(&mut out);
    stream.write_all(&out)?;
    while Instant::now() < end {
        let taken = inbound.read(&mut stream, &mut room)?;
        out.clear();
        let mut refused = None;
        let cut = inbound.cut(&room, taken.filled, Some(Version::V1_0), |message| {
            refused = refused.take().or(greeting.on_message(message, began.elapsed(), &mut out).err());
        });
        stream.write_all(&out)?;
        if greeting.is_known(began.elapsed()) {
            return Ok(Some(Instant::now()));
        }
        if let Some(why) = refused.or(cut.err().map(|nonsense| nonsense.to_string())) {
            return Err(std::io::Error::new(ErrorKind::InvalidData, why));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn nobody_is_no_contact() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(first_contact(address, Duration::from_millis(30)), None);
    }

    #[test]
    fn whoever_asks_for_features_has_taken_the_switch() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let controller = std::thread::spawn(move || {
            // The server closes the first connection, like a controller that is not ready.
            drop(listener.accept().unwrap());
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2]).unwrap();
            stream
        });
        let began = Instant::now();
        assert!(first_contact(address, Duration::from_secs(10)).unwrap() >= began);
        controller.join().unwrap();
    }
}
