//! How long files and functions may be.
//!
//! ```text
//!   sources ──> code alone (code.rs) ──> files above 600 lines, functions above 60 ──> those that are not in the list of exceptions
//! ```
//!
//! In: the sources of the workspace and the list of those that are still longer. Out: one sentence for each breach, and one for each exception that is
//! needed no more. Comments and empty lines do not count.

use crate::code;
use crate::tree::Workspace;

/// Lines of code of a file that a reader can still hold in their head. Past it, it is split by domain nouns.
const LINES_PER_FILE: usize = 600;

/// Lines of code of a function, from its name to its last brace.
const LINES_PER_FUNCTION: usize = 60;

/// The list of exceptions. It shrinks until it is empty.
pub const EXCEPTIONS: &str = "xtask/length-exceptions.txt";

/// What is too long, and not among the exceptions; and exceptions of what is not too long.
pub fn violations(workspace: &Workspace, exceptions: &str) -> Vec<String> {
    let files = workspace.members.iter().flat_map(|member| &member.files);
    let long: Vec<(String, String)> = files.flat_map(|file| too_long(&file.path, &file.text)).collect();
    let listed: Vec<&str> = exceptions.lines().filter(|line| !line.starts_with('#')).collect();
    let new = long.iter().filter(|(name, _)| !listed.contains(&name.as_str()));
    let mut found: Vec<String> = new.map(|(_, sentence)| sentence.clone()).collect();
    let stale = listed.iter().filter(|line| long.iter().all(|(name, _)| name != *line));
    found.extend(stale.map(|line| format!("{EXCEPTIONS}: `{line}` is not too long: remove the line")));
    found
}

/// Name and sentence of what is too long in a file: the file itself, functions.
fn too_long(path: &str, text: &str) -> Vec<(String, String)> {
    let code = code::of(text);
    let mut found = Vec::new();
    let lines = code::lines(&code);
    if lines > LINES_PER_FILE {
        let sentence = format!("{path}: {lines} lines of code, more than {LINES_PER_FILE}");
        found.push((path.to_owned(), sentence));
    }
    for (name, lines) in functions(&code).filter(|(_, lines)| *lines > LINES_PER_FUNCTION) {
        let sentence = format!("{path}: function {name} has {lines} lines, more than {LINES_PER_FUNCTION}");
        found.push((format!("{path} {name}"), sentence));
    }
    found
}

/// Names and lengths of the functions that have a body.
fn functions(code: &str) -> impl Iterator<Item = (&str, usize)> {
    let starts = code
        .match_indices("fn ")
        .filter(|(at, _)| !code[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_'));
    starts.filter_map(|(at, _)| {
        let rest = &code[at + 3..];
        let name = &rest[..rest.find(|it: char| !it.is_alphanumeric() && it != '_')?];
        let body = body_at(rest).filter(|_| !name.is_empty())?;
        Some((name, code::lines(&rest[..code::block_end(rest, body)])))
    })
}

/// Where a function's body begins: the first brace outside of its parameters and types. `None`: it has none.
fn body_at(function: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, it) in function.bytes().enumerate() {
        match it {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Member, SourceFile};

    fn check(text: &str, exceptions: &str, expected: &[&str]) {
        let files = vec![SourceFile { path: "a.rs".to_owned(), text: text.to_owned() }];
        let members = vec![Member { files, ..Member::default() }];
        let workspace = Workspace { members, pages: Vec::new() };
        assert_eq!(violations(&workspace, exceptions), expected);
    }

    fn function(lines: usize) -> String {
        format!("trait T {{ fn g(x: [u8; 2]); }}\nfn f(x: [u8; 2]) {{\n{}}}\n", "x;\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_named() {
        check(&function(LINES_PER_FUNCTION), "", &[]);
        check(&function(LINES_PER_FUNCTION + 1), "", &["a.rs: function f has 61 lines, more than 60"]);
        check(&function(LINES_PER_FUNCTION + 1), "# why\na.rs f", &[]);
    }

    #[test]
    fn a_long_file_is_named_and_comments_do_not_count() {
        check(&"x;\n// y\n\n".repeat(LINES_PER_FILE), "", &[]);
        check(&"x;\n".repeat(LINES_PER_FILE + 1), "", &["a.rs: 601 lines of code, more than 600"]);
        check(&"x;\n".repeat(LINES_PER_FILE + 1), "a.rs", &[]);
    }

    #[test]
    fn an_exception_that_is_needed_no_more_is_named() {
        check("", "a.rs f", &["xtask/length-exceptions.txt: `a.rs f` is not too long: remove the line"]);
    }
}
