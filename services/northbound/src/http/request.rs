//! A request, after the connection has read it whole.
//!
//! In: a method, a target, and the headers that matter here. Out: decoded path and parameters. It judges no content.

use super::problem::Problem;

/// The methods that some resource has. All others are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads. HEAD is a GET whose body is left out by the connection.
    Get,
    /// Adds.
    Post,
    /// Replaces.
    Put,
    /// Changes some members.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Some(match name {
            "GET" | "HEAD" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The parameters of the query, decoded, in their order.
    pub parameters: Vec<(String, String)>,
    /// The header `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The header `If-Match`.
    pub if_match: Option<String>,
    /// The body. It is empty for a GET.
    pub body: Vec<u8>,
    /// Who sent it: the name of a token, for the audit log. The connection sets it.
    pub sender: String,
    /// The only slice that the sender may see, if it is a tenant. The connection sets it.
    pub slice: Option<String>,
}

/// The most parameters of one request. No resource has as many filters.
const PARAMETERS_MAX: usize = 32;

impl Request {
    /// A request for this target, such as `/api/v1/ports?switch=1`.
    ///
    /// # Errors
    /// The parameters are not decodable, or too many.
    pub fn new(method: Method, target: &str) -> Result<Request, Problem> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let mut parameters = Vec::new();
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| decoded(&text.replace('+', " "));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                return Err(Problem::parameter(name, "the encoding with % is wrong, or it is not UTF-8"));
            };
            parameters.push((name, value));
        }
        if parameters.len() > PARAMETERS_MAX {
            return Err(Problem::bad_request(&format!("a request has at most {PARAMETERS_MAX} parameters")));
        }
        let path = path.to_owned();
        let (body, sender) = (Vec::new(), String::new());
        Ok(Request {
            method,
            path,
            parameters,
            if_none_match: None,
            if_match: None,
            body,
            sender,
            slice: None,
        })
    }

    /// The parts of the path between slashes, decoded. An empty part at the end is left out.
    ///
    /// # Errors
    /// A part is not decodable, or would mean another folder.
    pub fn segments(&self) -> Result<Vec<String>, Problem> {
        let path = self.path.strip_prefix('/').unwrap_or(&self.path);
        let parts = path.strip_suffix('/').unwrap_or(path).split('/');
        let decode = |part: &str| {
            let decoded = decoded(part).filter(|it| !it.contains('\0') && it != ".." && it != ".");
            decoded.ok_or_else(|| Problem::bad_request("the path is not well formed"))
        };
        parts.map(decode).collect()
    }
}

/// Text with `%` and two hexadecimal digits for a byte. `None` if it is wrong or no UTF-8.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits =
            std::str::from_utf8(digits).ok().filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Text for a query: all but letters, digits and a few signs becomes `%` and two digits.
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let encode =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let check = |target: &str| {
            let request = Request::new(Method::Get, target);
            let problem = request.and_then(|request| request.segments()).unwrap_err();
            assert_eq!(problem.status, 400, "{target}");
        };
        for target in
            ["/%", "/%4", "/%zz", "/%ff", "/a/../b", "/%2e%2e/x", "/a/%2E", "/a%00", "/?a=%x", "/?%ff=1"]
        {
            check(target);
        }
        check(&format!("/?{}", "a=1&".repeat(PARAMETERS_MAX + 1)));
    }

    #[test]
    fn a_target_is_decoded_part_by_part() {
        let check = |target: &str, segments: &[&str], parameters: &[(&str, &str)]| {
            let request = Request::new(Method::Get, target).unwrap();
            assert_eq!(request.segments().unwrap(), segments, "{target}");
            let found: Vec<_> = request.parameters.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            assert_eq!(found, parameters, "{target}");
        };
        check("/", &[""], &[]);
        check("/a/b/", &["a", "b"], &[]);
        check("/a%2Fb/c?x=1%26&y&z=+", &["a/b", "c"], &[("x", "1&"), ("y", ""), ("z", " ")]);
    }

    #[test]
    fn encoded_text_is_the_same_when_decoded() {
        for text in ["of:0000000000000001/3", "a b+c&d=e%", "é"] {
            assert_eq!(decoded(&encoded(text)).as_deref(), Some(text));
        }
    }
}
