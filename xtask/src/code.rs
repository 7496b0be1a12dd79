//! The code of a Rust file without what is not code: comments, texts and tests.
//!
//! In: the text of a file. Out: the same lines, with blanks where something was left out, so that line numbers stay. It does not parse Rust.

/// The text with blanks in place of comments and of what stands between quotes. Line ends stay.
pub fn of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let after_word = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let skipped = match no_code_len(rest, after_word) {
            0 => {
                code.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            length => &rest[..length],
        };
        code.extend(skipped.chars().map(|it| if it == '\n' { '\n' } else { ' ' }));
        rest = &rest[skipped.len()..];
    }
    code
}

/// How many bytes at the start are a comment, a text or a character; 0 if it is code.
fn no_code_len(rest: &str, after_word: bool) -> usize {
    let bytes = rest.as_bytes();
    match (bytes[0], bytes.get(1)) {
        (b'/', Some(b'/')) => rest.find('\n').unwrap_or(rest.len()),
        (b'/', Some(b'*')) => comment_len(rest),
        (b'"', _) => text_len(rest),
        (b'r', _) if !after_word => raw_text_len(rest),
        (b'b', Some(b'r')) if !after_word => match raw_text_len(&rest[1..]) {
            0 => 0,
            length => length + 1,
        },
        (b'\'', _) => character_len(rest),
        _ => 0,
    }
}

/// A comment between `/*` and `*/`, with those inside it.
fn comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        match here {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn text_len(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in rest.char_indices().skip(1) {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `r"…"`, or with any number of `#`; 0 if it is none.
fn raw_text_len(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|it| *it == b'#').count();
    if rest.as_bytes().get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = hashes + 2;
    rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len())
}

/// `'x'`, but not the name of a lifetime; 0 if it is none.
fn character_len(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            rest[from..].find('\'').map_or(0, |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// Where the block ends that begins with the first `{` at or behind `from`. `code` has no texts and no comments.
pub fn block_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, it) in code.bytes().enumerate().skip(from) {
        match it {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at + 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

/// The code without the modules that are compiled for tests only.
pub fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]\nmod ";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        let (before, tests) = rest.split_at(at);
        kept.push_str(before);
        let name_end = tests[MARK.len()..].find(['{', ';']).map_or(tests.len(), |end| MARK.len() + end);
        let is_file = tests[name_end..].starts_with(';');
        rest = &tests[if is_file { name_end } else { block_end(tests, name_end) }..];
    }
    kept + rest
}

/// How many lines are not empty.
pub fn lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(of(text), expected);
    }

    #[test]
    fn what_is_no_code_becomes_blank() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check("f(\"a{\\\"b\", 1)", "f(       , 1)");
        check("r#\"a\"{\"#;b", "        ;b");
        check("br\"{\";", "     ;");
        check("['{', '\\'', b'x']", "[   ,     , b   ]");
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("for x in \"a\nb\" {", "for x in   \n   {");
    }

    #[test]
    fn damage_ends_with_the_text() {
        for text in ["\"a", "/* a", "r#\"a", "'", "'\\", "r", "b", "/"] {
            assert_eq!(of(text).len(), text.len(), "{text}");
        }
        assert_eq!(block_end("{ {", 0), 3);
    }

    #[test]
    fn tests_are_left_out() {
        assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\n{ } }\nb"), "a\n\nb");
        assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\nb"), "a\n;\nb");
    }
}
