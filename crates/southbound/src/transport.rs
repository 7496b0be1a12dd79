//! The bytes of one connection, plain or with TLS.
//!
//! The first byte decides: a TLS record starts with 0x16, and no OpenFlow version has that number. It does not
//! interpret the bytes.

use crate::certificate::Certificate;
use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

/// The type of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// How a connection transports its bytes.
#[derive(Debug)]
pub enum Transport {
    /// TLS is configured, and no byte has arrived yet.
    Undecided,
    /// Without TLS.
    Plain,
    /// With TLS.
    Tls(Box<ServerConnection>),
}

impl Transport {
    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Transport::Tls(_))
    }

    /// The peer's certificate, once the TLS handshake is finished.
    pub fn certificate(&self) -> Option<Certificate> {
        let Transport::Tls(tls) = self else { return None };
        tls.peer_certificates()?.first().map(Certificate::read)
    }

    /// Decides by the first byte. Stays undecided until a byte has arrived.
    ///
    /// # Errors
    /// The error of the system or of rustls, or that the connection is closed already.
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

    /// Reads the available bytes. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// As for [`Read::read`]. [`ErrorKind::InvalidData`] if the TLS handshake fails, for example because the
    /// certificate is wrong. The TLS alert has been sent.
    pub fn read(&mut self, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Undecided => Err(ErrorKind::WouldBlock.into()),
            Transport::Plain => stream.read(room),
            Transport::Tls(tls) => read_tls(tls, stream, room),
        }
    }

    /// Writes as many bytes as the peer accepts.
    ///
    /// # Errors
    /// As for [`Write::write`].
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

    /// Sends the waiting messages of TLS itself.
    ///
    /// # Errors
    /// As for [`Write::write`], except [`ErrorKind::WouldBlock`].
    pub fn push(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let Transport::Tls(tls) = self else { return Ok(()) };
        match send_records(tls, stream) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// Announces that no more will be written. What the peer still sends can be read.
    pub fn close(&mut self, stream: &mut TcpStream) {
        if let Transport::Tls(tls) = self {
            tls.send_close_notify();
        }
        // The connection is being closed, so an error does not matter.
        drop(self.push(stream));
        drop(stream.shutdown(Shutdown::Write));
    }
}

fn read_tls(tls: &mut ServerConnection, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Many switches close the socket without a TLS close message. The records before it were complete.
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
