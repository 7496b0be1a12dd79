//! A client that keeps its connection: HTTP/1.1 with whole bodies, as much of it as a load needs.
//!
//! In: an address and requests. Out: the status and the body of each answer. It never follows a redirection and never reads chunked bodies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct HttpClient {
    stream: BufReader<TcpStream>,
    host: String,
}

/// An answer.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpClient {
    /// Connects.
    ///
    /// # Errors
    /// Nothing listens there.
    pub fn connect(address: SocketAddr) -> Result<HttpClient, String> {
        let trouble = |error: std::io::Error| format!("{address}: {error}");
        let stream = TcpStream::connect(address).map_err(trouble)?;
        stream.set_nodelay(true).map_err(trouble)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(trouble)?;
        Ok(HttpClient { stream: BufReader::with_capacity(64 << 10, stream), host: address.to_string() })
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// The connection ended, or its answer is none.
    pub fn ask(&mut self, method: &str, target: &str, body: &str) -> Result<HttpAnswer, String> {
        self.send(method, target, body)?;
        self.receive()
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The connection ended.
    pub fn send(&mut self, method: &str, target: &str, body: &str) -> Result<(), String> {
        let request = request(&self.host, (method, target), body);
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(|error| format!("the node is gone: {error}"))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// The connection ended, or its answer is none.
    pub fn receive(&mut self) -> Result<HttpAnswer, String> {
        let mut line = String::new();
        let status = self.line(&mut line)?.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or("the answer has no status")?;
        let mut length = 0;
        loop {
            let line = self.line(&mut line)?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().map_err(|_| format!("{name} is no number: {value}"))?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(|error| format!("an answer breaks off: {error}"))?;
        Ok(HttpAnswer { status, body })
    }

    fn line<'l>(&mut self, line: &'l mut String) -> Result<&'l str, String> {
        line.clear();
        match self.stream.read_line(line) {
            Ok(0) => Err("the node closed the connection".to_owned()),
            Ok(_) => Ok(line.trim_end()),
            Err(error) => Err(format!("the node does not answer: {error}")),
        }
    }
}

impl HttpAnswer {
    /// The body, if the status is one of success.
    ///
    /// # Errors
    /// It is not: the status and the body.
    pub fn success(self) -> Result<Vec<u8>, String> {
        match self.status {
            200..300 => Ok(self.body),
            status => Err(format!("the status {status}: {:.300}", String::from_utf8_lossy(&self.body))),
        }
    }
}

/// The text of a request.
pub fn request(host: &str, (method, target): (&str, &str), body: &str) -> String {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn answers_follow_each_other_on_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = HttpClient::connect(listener.local_addr().unwrap()).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        let text = "HTTP/1.1 201 Created\r\ncontent-length: 2\r\nX: y\r\n\r\nabHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\nx";
        served.write_all(text.as_bytes()).unwrap();
        drop(served);
        assert_eq!(client.receive().and_then(HttpAnswer::success), Ok(b"ab".to_vec()));
        assert!(client.receive().and_then(HttpAnswer::success).is_err_and(|why| why.contains("404")));
        assert!(client.receive().is_err());
    }

    #[test]
    fn a_request_has_its_length() {
        let text = request("h:1", ("POST", "/x"), "{}");
        assert!(text.ends_with("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"), "{text}");
        assert!(request("h:1", ("GET", "/x"), "").ends_with("Content-Length: 0\r\n\r\n"));
    }
}
