//! Keeps pages of other sites away: DNS rebinding and cross-site requests.
//!
//! In: the headers `Host`, `Origin` and `Sec-Fetch-*`, and the names of this machine. Out: nothing, or a problem. It looks up no name.

use crate::http::Problem;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a request says of its sender and of the machine that it addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender<'a> {
    /// `Host`.
    pub host: Option<&'a str>,
    /// `Origin`: a browser sends it with each request that is no plain link.
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
    /// `Sec-Fetch-Mode`, if the request only reads.
    pub fetch_mode: Option<&'a str>,
}

/// Checks the headers of a request.
///
/// # Errors
/// 421 if `Host` is another machine, 403 if a page of another site sent the request.
pub fn check(sender: &Sender<'_>, names: &[String]) -> Result<(), Problem> {
    let host = sender.host.unwrap_or_default();
    if !is_ours(host, names) {
        let detail = format!(
            "the header Host is {host:?}, which is no name of this machine: use its address, or add the name to names in \
             [network.northbound]"
        );
        return Err(Problem::new(421, "wrong-host", "The request is for another machine", detail));
    }
    let is_foreign = match sender.origin {
        Some(origin) => !origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host)),
        // A link on another site may lead to the page. It reads nothing for that site.
        None => {
            matches!(sender.fetch_site, Some("cross-site" | "same-site"))
                && sender.fetch_mode != Some("navigate")
        }
    };
    if is_foreign {
        let from = sender.origin.unwrap_or("another site");
        let detail = format!("a page of {from} sent this request, and only pages of {host} may");
        return Err(Problem::new(403, "foreign-origin", "A page of another site sent the request", detail));
    }
    Ok(())
}

/// Whether a `Host` header means this machine. An address cannot be rebound, so every address is accepted.
fn is_ours(host: &str, names: &[String]) -> bool {
    let Some(name) = without_port(host) else { return false };
    if let Some(v6) = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return v6.parse::<Ipv6Addr>().is_ok();
    }
    let is_named = || names.iter().any(|it| it.eq_ignore_ascii_case(name));
    name.parse::<Ipv4Addr>().is_ok() || name.eq_ignore_ascii_case("localhost") || is_named()
}

/// `None` if the part after the name is no port.
fn without_port(host: &str) -> Option<&str> {
    let end = host.rfind(']').map_or(0, |at| at + 1);
    match host[end..].find(':') {
        None => Some(host),
        Some(at) => {
            let (name, port) = host.split_at(end + at);
            let digits = &port[1..];
            (!digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())).then_some(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_ours_is_refused() {
        let names = ["node1.example".to_owned()];
        let check = |host: Option<&str>, ours: bool| {
            let got = check(&Sender { host, ..Sender::default() }, &names);
            assert_eq!(got.map_err(|it| it.status), if ours { Ok(()) } else { Err(421) }, "{host:?}");
        };
        for host in
            ["", "evil.example", "evil.example:8181", "localhost.evil.example", "127.0.0.1.evil.example"]
        {
            check(Some(host), false);
        }
        for host in
            ["localhost:", "localhost:x", "localhost:1:2", "[::1", "[evil]:80", "127.0.0.1@evil.example"]
        {
            check(Some(host), false);
        }
        check(None, false);
        for host in
            ["localhost", "LOCALHOST:8181", "127.0.0.1:8181", "10.0.0.1", "[::1]:8181", "node1.example:80"]
        {
            check(Some(host), true);
        }
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let check = |origin, fetch_site, fetch_mode, passes: bool| {
            let sender = Sender { host: Some("localhost:8181"), origin, fetch_site, fetch_mode };
            let got = check(&sender, &[]).map_err(|it| it.status);
            assert_eq!(got, if passes { Ok(()) } else { Err(403) }, "{sender:?}");
        };
        for origin in
            ["null", "", "http://evil.example", "http://localhost", "http://localhost:3000", "localhost:8181"]
        {
            check(Some(origin), None, None, false);
        }
        check(Some("http://localhost:8181"), None, None, true);
        check(None, Some("cross-site"), Some("cors"), false);
        check(None, Some("cross-site"), Some("no-cors"), false);
        check(None, Some("cross-site"), None, false);
        check(None, Some("same-site"), Some("websocket"), false);
        check(None, Some("cross-site"), Some("navigate"), true);
        check(None, Some("same-origin"), Some("cors"), true);
        check(None, Some("none"), Some("navigate"), true);
        check(None, None, None, true);
    }
}
