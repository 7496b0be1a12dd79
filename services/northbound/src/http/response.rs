//! A response, before the connection writes it.
//!
//! In: a status and a body. Out: the same as a value. It knows no resource.

use hyper::body::Bytes;

/// The type of JSON.
pub const JSON: &str = "application/json";

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body. A copy of it costs a count, so that an answer can be given again.
    pub body: Bytes,
    /// The tag of the state that the body shows.
    pub etag: Option<String>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

impl Response {
    /// A response with this body.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response {
        Response { status, content_type, body: body.into(), etag: None, headers: Vec::new() }
    }

    /// 200 with JSON.
    pub fn json(body: impl Into<Bytes>) -> Response {
        Response::new(200, JSON, body)
    }

    /// 200 with a value as JSON.
    pub fn value(value: &serde_json::Value) -> Response {
        Response::json(value.to_string())
    }

    /// The same with a tag.
    #[must_use]
    pub fn tagged(mut self, etag: String) -> Response {
        self.etag = Some(etag);
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }

    /// Leaves the body out if the client has it already.
    #[must_use]
    pub fn unless_known(self, if_none_match: Option<&str>) -> Response {
        match self.etag.as_deref().filter(|_| self.status == 200) {
            Some(etag) if is_known(etag, if_none_match) => {
                Response { status: 304, body: Bytes::new(), ..self }
            }
            _ => self,
        }
    }
}

/// Whether a client that sent this header has the state with this tag.
pub fn is_known(etag: &str, if_none_match: Option<&str>) -> bool {
    let has = |known: &str| known == "*" || known.trim_start_matches("W/") == etag;
    if_none_match.is_some_and(|known| known.split(',').map(str::trim).any(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_the_client_has_is_left_out() {
        let check = |known: Option<&str>, status: u16| {
            let response = Response::json("{}").tagged("\"7\"".to_owned()).unless_known(known);
            assert_eq!((response.status, response.body.is_empty()), (status, status == 304), "{known:?}");
        };
        check(None, 200);
        check(Some("\"8\""), 200);
        check(Some("7"), 200);
        check(Some("\"7\""), 304);
        check(Some("\"6\", W/\"7\""), 304);
        check(Some("*"), 304);
        assert_eq!(Response::json("{}").unless_known(Some("*")).status, 200, "there is no tag");
    }
}
