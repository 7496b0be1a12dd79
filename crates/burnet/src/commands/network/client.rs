//! A client of the REST interface over a socket file.
//!
//! ```text
//!   method, path, body ──HTTP/1.0──> node.listen/northbound ──> JSON, or a sentence that says why not
//! ```
//!
//! In: requests. Out: answers. It speaks HTTP/1.0, in which an answer ends with its connection, so it needs no library and no framing. It waits 30
//! seconds for an answer or for the next event. The service sends a comment at least every 15 seconds.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for an answer, or for the next line of an event stream.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer: a page of a thousand objects is far shorter.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A way to the service.
pub struct Client {
    socket: PathBuf,
}

/// The beginning of an answer.
struct Head {
    status: u16,
    body: BufReader<UnixStream>,
}

impl Client {
    /// The service of the node with this operator's socket.
    pub fn beside(operator: &Path) -> Client {
        Client { socket: operator.with_extension("listen").join("northbound") }
    }

    /// Sends a request, and reads the answer as JSON. An empty answer is null.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> Result<Value, String> {
        let Head { status, body } = self.send(method, target, body)?;
        let text = self.read(body)?;
        let value: Value = if text.is_empty() { Value::Null } else { self.parsed(&text)? };
        if (200..300).contains(&status) { Ok(value) } else { Err(refusal(status, &value)) }
    }

    /// The answer to a GET as text.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn text(&self, target: &str) -> Result<String, String> {
        let Head { status, body } = self.send("GET", target, None)?;
        let text = self.read(body)?;
        if status == 200 { Ok(text) } else { Err(refusal(status, &self.parsed(&text)?)) }
    }

    /// Reads the events of a stream, until the function returns what it was waiting for.
    ///
    /// # Errors
    /// A sentence for the operator: the stream has ended, or there was none.
    pub fn events<T>(&self, target: &str, mut hear: impl FnMut(&Value) -> Option<T>) -> Result<T, String> {
        let Head { status, body } = self.send("GET", target, None)?;
        if status != 200 {
            return Err(refusal(status, &self.parsed(&self.read(body)?)?));
        }
        for line in body.lines() {
            let line = line.map_err(|error| self.trouble(&error))?;
            let Some(data) = line.strip_prefix("data: ") else { continue };
            if let Some(done) = hear(&self.parsed(data)?) {
                return Ok(done);
            }
        }
        Err(format!("the stream of the node at {} has ended", self.socket.display()))
    }

    fn send(&self, method: &str, target: &str, body: Option<&Value>) -> Result<Head, String> {
        let stream = UnixStream::connect(&self.socket).map_err(|error| self.missing(&error))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| self.trouble(&error))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let head = format!("{method} {target} HTTP/1.0\r\n{kind}Content-Length: {}\r\n\r\n", body.len());
        (&stream).write_all((head + &body).as_bytes()).map_err(|error| self.trouble(&error))?;
        self.head(stream)
    }

    fn head(&self, stream: UnixStream) -> Result<Head, String> {
        let mut body = BufReader::new(stream);
        let mut line = String::new();
        body.read_line(&mut line).map_err(|error| self.trouble(&error))?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| self.trouble("its answer is no HTTP"))?;
        while line.trim_end() != "" {
            line.clear();
            if body.read_line(&mut line).map_err(|error| self.trouble(&error))? == 0 {
                return Err(self.trouble("it ended before it answered"));
            }
        }
        Ok(Head { status, body })
    }

    fn read(&self, body: BufReader<UnixStream>) -> Result<String, String> {
        let mut text = String::new();
        body.take(ANSWER_BYTES_MAX).read_to_string(&mut text).map_err(|error| self.trouble(&error))?;
        Ok(text)
    }

    fn parsed(&self, text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| self.trouble(&format!("its answer is no JSON: {error}")))
    }

    fn trouble(&self, what: &(impl std::fmt::Display + ?Sized)) -> String {
        format!("the node at {} did not answer: {what}", self.socket.display())
    }

    fn missing(&self, error: &std::io::Error) -> String {
        format!(
            "no node offers the network view at {} ({error}): start one with `burnet run --network`, add the table [network] to \
             its configuration, or name its socket with --socket PATH",
            self.socket.display()
        )
    }
}

/// What the node refused, in a sentence.
fn refusal(status: u16, problem: &Value) -> String {
    match (problem["detail"].as_str(), problem["field"].as_str()) {
        (Some(detail), Some(field)) if !detail.starts_with(field) => format!("{field}: {detail}"),
        (Some(detail), _) => detail.to_owned(),
        (None, _) => format!("the node answered with the status {status}"),
    }
}

/// Text for a query.
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let encode =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the client makes of this answer.
    fn ask(answer: &'static str) -> Result<Value, String> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(answer.as_bytes()).unwrap();
        drop(theirs);
        let client = Client { socket: "s".into() };
        let Head { status, body } = client.head(ours)?;
        let value = client.parsed(&client.read(body)?)?;
        if status == 200 { Ok(value) } else { Err(refusal(status, &value)) }
    }

    #[test]
    fn what_is_no_answer_is_reported() {
        let check = |answer, part: &str| {
            let why = ask(answer).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check("", "is no HTTP");
        check("SSH-2.0-OpenSSH_9.2\r\n", "is no HTTP");
        check("HTTP/1.0 200 OK\r\nContent-Type: x\r\n", "ended before it answered");
        check("HTTP/1.0 200 OK\r\n\r\n<html>", "is no JSON");
        check("HTTP/1.0 422 X\r\n\r\n{\"detail\":\"7 is no host\",\"field\":\"one\"}", "one: 7 is no host");
        check("HTTP/1.0 422 X\r\n\r\n{\"detail\":\"one: no host\",\"field\":\"one\"}", "one: no host");
        check("HTTP/1.0 500 X\r\n\r\n{}", "the status 500");
        assert_eq!(ask("HTTP/1.0 200 OK\r\nA: b\r\n\r\n[1]"), Ok(serde_json::json!([1])));
    }

    #[test]
    fn a_node_without_the_service_says_what_to_do() {
        let client = Client::beside(Path::new("/nowhere/node.sock"));
        let why = client.ask("GET", "/api/v1", None).unwrap_err();
        assert!(why.contains("/nowhere/node.listen/northbound") && why.contains("--network"), "{why}");
    }
}
