//! Errors of the interface, in the form of RFC 9457.
//!
//! ```json
//! {"type": "urn:burnet:problem:bad-field", "title": "A field is wrong", "status": 422, "field": "at", "detail": "…"}
//! ```
//!
//! In: what is wrong. Out: a response whose `detail` says what was wrong and what to do. It contains nothing that the client may not see.

use super::response::Response;
use serde_json::json;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of the response.
    pub status: u16,
    /// The end of its type.
    pub name: &'static str,
    /// The type in words.
    pub title: &'static str,
    /// The member of the body or the parameter that is wrong.
    pub field: Option<String>,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// Further headers of the response.
    pub headers: Vec<(&'static str, String)>,
}

/// The type of a problem's body.
pub const PROBLEM_JSON: &str = "application/problem+json";

impl Problem {
    /// A problem without a field.
    pub fn new(status: u16, name: &'static str, title: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, name, title, field: None, detail: detail.into(), headers: Vec::new() }
    }

    /// The request is no proper one.
    pub fn bad_request(detail: &str) -> Problem {
        Problem::new(400, "bad-request", "The request is malformed", detail)
    }

    /// A parameter is unknown or has a wrong value.
    pub fn parameter(name: &str, detail: impl Into<String>) -> Problem {
        let problem = Problem::new(400, "bad-parameter", "A parameter is wrong", detail);
        Problem { field: Some(name.to_owned()), ..problem }
    }

    /// A member of the body is wrong.
    pub fn field(name: &str, detail: impl Into<String>) -> Problem {
        let problem = Problem::new(422, "bad-field", "A field is wrong", detail);
        Problem { field: Some(name.to_owned()), ..problem }
    }

    /// There is no such resource.
    pub fn not_found(what: &str) -> Problem {
        Problem::new(404, "not-found", "There is no such resource", what)
    }

    /// The resource has other methods.
    pub fn bad_method(allowed: &[&str]) -> Problem {
        let list = allowed.join(", ");
        let problem =
            Problem::new(405, "bad-method", "The resource has other methods", format!("use {list}"));
        Problem { headers: vec![("allow", list)], ..problem }
    }

    /// It contradicts another object.
    pub fn conflict(detail: impl Into<String>) -> Problem {
        Problem::new(409, "conflict", "It contradicts another object", detail)
    }

    /// The service that knows the answer does not answer.
    pub fn no_service(service: &str, why: &str) -> Problem {
        let detail = format!("the service {service} did not answer: {why}");
        let problem = Problem::new(503, "no-service", "A service does not answer", detail);
        Problem { headers: vec![("retry-after", "1".to_owned())], ..problem }
    }

    /// Too much at once.
    pub fn too_many(detail: impl Into<String>) -> Problem {
        let problem = Problem::new(429, "too-many", "Too many at once", detail);
        Problem { headers: vec![("retry-after", "1".to_owned())], ..problem }
    }

    /// The response to the request for this path.
    pub fn to_response(&self, path: &str) -> Response {
        let Problem { status, name, title, field, detail, headers } = self;
        let mut body = json!({
            "type": format!("urn:burnet:problem:{name}"),
            "title": title,
            "status": status,
            "detail": detail,
            "instance": path,
        });
        if let (Some(field), Some(members)) = (field, body.as_object_mut()) {
            members.insert("field".to_owned(), field.as_str().into());
        }
        let response = Response::new(*status, PROBLEM_JSON, body.to_string());
        Response { headers: headers.clone(), ..response }
    }
}
