//! The files of the web page, which are part of the binary.
//!
//! In: a path. Out: a file. It opens no file of the machine, so no path can lead to one.

use crate::http::Response;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The files of `web/dist`, by path.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The tags of these files and of [`NO_PAGE`], in their order: the beginning of the hash of each. They are computed once.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = FILES.iter().map(|(_, bytes)| *bytes).chain([NO_PAGE]);
    let hash = |bytes: &[u8]| -> String {
        Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    };
    all.map(|bytes| format!("\"{}\"", hash(bytes))).collect()
});

/// What a node without the page shows.
const NO_PAGE: &[u8] = include_bytes!("no_page.html");

/// The file at this path.
pub fn file(path: &str) -> Option<Response> {
    let path = if path == "/" { "/index.html" } else { path };
    let at = FILES.iter().position(|(name, _)| *name == path);
    let at = at.or_else(|| (path == "/index.html").then_some(FILES.len()))?;
    let bytes = FILES.get(at).map_or(NO_PAGE, |(_, bytes)| *bytes);
    // The names in this folder contain a hash of the content.
    let caching =
        if path.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = TAGS.get(at).cloned().unwrap_or_default();
    Some(Response::new(200, content_type(path), bytes).tagged(tag).with("cache-control", caching))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_page_are_there() {
        for path in [
            "/etc/passwd",
            "/../etc/passwd",
            "//index.html",
            "/assets/",
            "/assets/../index.html",
            "/index.htm",
            "",
        ] {
            assert_eq!(file(path), None, "{path}");
        }
        assert_eq!(file("/").map(|it| (it.status, it.content_type)), Some((200, "text/html; charset=utf-8")));
        assert_eq!(file("/"), file("/index.html"));
    }
}
