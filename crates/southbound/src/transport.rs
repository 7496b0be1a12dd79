//! The bytes of one connection, plain or by TLS.
//!
//! The first byte tells which: a TLS record begins with 0x16, and no OpenFlow version has that number. Never looks at what the bytes mean.

use crate::certificate::Certificate;
use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

/// The type of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// How a connection carries its bytes.
#[derive(Debug)]
pub enum Transport {
    /// TLS is set up, and no byte has come yet.
    Undecided,
    /// As they are.
    Plain,
    /// By TLS.
    Tls(Box<ServerConnection>),
}

impl Transport {
    /// Whether by TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Transport::Tls(_))
    }

    /// What the peer showed, once the handshake of TLS is over.
    pub fn certificate(&self) -> Option<Certificate> {
        let Transport::Tls(tls) = self else { return None };
        tls.peer_certificates()?.first().map(Certificate::read)
    }

    /// Looks at the first byte. Stays undecided while there is none.
    ///
    /// # Errors
    /// What the system or rustls says, and a connection that is closed already.
    pub fn decide(&mut self, stream: &TcpStream, tls: &Arc<ServerConfig>) -> io::Result<()> {
        let mut first = [0];
        match stream.peek(&mut first) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if first == [TLS_HANDSHAKE] => {
                let connection = ServerConnection::new(tls.clone()).map_err(io::Error::other)?;
                *self = Transport::Tls(Box::new(connection));
                Ok(())
            }
            Ok(_) => {
                *self = Transport::Plain;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads what there is; 0 at the end of the stream.
    ///
    /// # Errors
    /// As [`Read::read`]; [`ErrorKind::InvalidData`] if it is not the TLS that was set up, for example without the right
    /// certificate. The alert for it has been sent.
    pub fn read(&mut self, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Undecided => Err(ErrorKind::WouldBlock.into()),
            Transport::Plain => stream.read(room),
            Transport::Tls(tls) => read_tls(tls, stream, room),
        }
    }

    /// Writes what the peer takes.
    ///
    /// # Errors
    /// As [`Write::write`].
    pub fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Undecided => Err(ErrorKind::WouldBlock.into()),
            Transport::Plain => stream.write(bytes),
            Transport::Tls(tls) => {
                send_records(tls, stream)?;
                let taken = tls.writer().write(bytes)?;
                match send_records(tls, stream) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                    _ if taken == 0 => Err(ErrorKind::WouldBlock.into()),
                    _ => Ok(taken),
                }
            }
        }
    }

    /// Sends what TLS itself has to say.
    ///
    /// # Errors
    /// As [`Write::write`], but for [`ErrorKind::WouldBlock`].
    pub fn push(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let Transport::Tls(tls) = self else { return Ok(()) };
        match send_records(tls, stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// Says that nothing more will be written. What the peer still sends can be read.
    pub fn close(&mut self, stream: &mut TcpStream) {
        if let Transport::Tls(tls) = self {
            tls.send_close_notify();
        }
        // The connection is given up: if it is broken already, so much the better.
        drop(self.push(stream));
        drop(stream.shutdown(Shutdown::Write));
    }
}

fn read_tls(tls: &mut ServerConnection, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Many switches close the socket without TLS's own goodbye; what came before it was whole records all the same.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            read => return read,
        }
        if tls.read_tls(stream)? == 0 {
            return Ok(0);
        }
        let processed = tls.process_new_packets();
        let alert = send_records(tls, stream);
        processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        match alert {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

fn send_records(tls: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        if tls.write_tls(stream)? == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}
