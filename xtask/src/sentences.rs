//! Splits text into sentences: Markdown pages, comments of Rust sources, and string literals of Rust sources.
//!
//! ```text
//! Markdown ──→ of_page()   ──┐
//! Rust     ──→ of_source() ──┴→ Sentence: where it is, what it is part of, its text
//! ```
//!
//! In: text and its path. Out: sentences with their line numbers. It reads no file and judges nothing.
//! Blocks of code are left out. It is a reader for this project's style, not a full parser of Markdown or Rust.

/// What a sentence is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A paragraph or a list item of a page.
    Paragraph,
    /// A heading of a page.
    Heading,
    /// A cell of a table in a page.
    Cell,
    /// A comment in a Rust source.
    Comment,
    /// A string literal that a user can see.
    Message,
}

/// One sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The file, from the root of the workspace.
    pub path: String,
    /// The line on which it starts, from 1.
    pub line: usize,
    /// What it is part of.
    pub part: Part,
    /// Its text on one line, with its markup.
    pub text: String,
}

impl Sentence {
    /// Its words without markup. A code span counts as one word, `code`.
    pub fn words(&self) -> Vec<String> {
        let plain = without_markup(&self.text);
        let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
        plain.split_whitespace().filter(is_word).map(str::to_owned).collect()
    }
}

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 6] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "no."];

/// A string literal with fewer words than this is a name or a format, not a message.
const MESSAGE_WORDS_MIN: usize = 4;

/// A literal on a line with one of these is not shown to users: it speaks to the programmer.
const FOR_PROGRAMMERS: [&str; 8] =
    ["reason = ", "expect(", "assert", "panic!", "unreachable!", "env!", "include_str!", "#[doc"];

/// The sentences of a Markdown page.
pub fn of_page(path: &str, text: &str) -> Vec<Sentence> {
    let mut reader = Reader::new(path);
    for (index, line) in text.lines().enumerate() {
        reader.read(index + 1, line);
    }
    reader.end_of_block();
    reader.found
}

/// The sentences in the comments and string literals of a Rust source. Unit tests are left out.
pub fn of_source(path: &str, text: &str) -> Vec<Sentence> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = comments(path, code);
    let is_test = ["/tests/", "/benches/", "/tests.rs"].iter().any(|part| path.contains(part));
    if !is_test && !path.starts_with("tests/") {
        found.extend(messages(path, code));
    }
    found
}

/// Reads a page line by line and collects the lines of the block that is open.
struct Reader {
    path: String,
    found: Vec<Sentence>,
    block: Vec<(usize, String)>,
    in_fence: bool,
}

impl Reader {
    fn new(path: &str) -> Reader {
        Reader { path: path.to_owned(), found: Vec::new(), block: Vec::new(), in_fence: false }
    }

    fn read(&mut self, number: usize, line: &str) {
        let line = line.trim().trim_start_matches("> ");
        if line.starts_with("```") {
            self.end_of_block();
            self.in_fence = !self.in_fence;
        } else if self.in_fence {
        } else if line.is_empty() || line.starts_with('<') {
            self.end_of_block();
        } else if line.starts_with('#') {
            self.end_of_block();
            let heading = line.trim_start_matches('#').trim().to_owned();
            self.add(Part::Heading, &[(number, heading)]);
        } else if line.starts_with('|') {
            self.end_of_block();
            for cell in cells(line) {
                self.add(Part::Cell, &[(number, cell)]);
            }
        } else if let Some(item) = list_item(line) {
            self.end_of_block();
            self.block.push((number, item.to_owned()));
        } else {
            self.block.push((number, line.to_owned()));
        }
    }

    fn end_of_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.add(Part::Paragraph, &block);
    }

    fn add(&mut self, part: Part, lines: &[(usize, String)]) {
        for (line, text) in split(lines) {
            self.found.push(Sentence { path: self.path.clone(), line, part, text });
        }
    }
}

/// The cells of a table's line; none for the line below its head.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut in_code = false;
    let mut before = ' ';
    for letter in line.chars() {
        in_code ^= letter == '`';
        if letter == '|' && !in_code && before != '\\' {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(letter);
        }
        before = letter;
    }
    let is_text = |cell: &&str| cell.chars().any(char::is_alphabetic);
    cells.iter().map(|cell| cell.trim()).filter(is_text).map(str::to_owned).collect()
}

/// What stands behind the mark of a list item.
fn list_item(line: &str) -> Option<&str> {
    if let Some(item) = ["* ", "- ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(item);
    }
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then_some(item)
}

/// The sentences of a block, each with the line on which it starts.
fn split(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let words = lines.iter().flat_map(|(line, text)| text.split_whitespace().map(move |word| (*line, word)));
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_open, mut in_code) = (false, false);
    let words: Vec<(usize, &str)> = words.collect();
    for (index, (line, word)) in words.iter().enumerate() {
        match found.last_mut().filter(|_| is_open) {
            Some((_, text)) => *text = format!("{text} {word}"),
            None => found.push((*line, (*word).to_owned())),
        }
        in_code ^= word.matches('`').count() % 2 == 1;
        let next = words.get(index + 1).map(|(_, next)| *next);
        is_open = in_code || !ends_sentence(word, next);
    }
    found
}

/// Whether a sentence ends with `word` when `next` follows.
fn ends_sentence(word: &str, next: Option<&str>) -> bool {
    let bare = word.trim_end_matches([')', '"', '*', '_', '”', '`']);
    let is_short = ABBREVIATIONS.contains(&word.trim_start_matches('(').to_lowercase().as_str());
    let stops = bare.ends_with(['.', '?', '!']) && !is_short && !bare.ends_with("..");
    let starts = |next: &str| {
        let first = next.trim_start_matches(['(', '"', '*', '_', '[', '“', '`']).chars().next();
        next.starts_with(['`', '[']) || first.is_some_and(|c| c.is_uppercase() || c.is_numeric())
    };
    stops && next.is_none_or(starts)
}

/// Code spans become `code`, links their text; emphasis loses its marks.
fn without_markup(text: &str) -> String {
    let mut plain = String::new();
    for (index, piece) in text.split('`').enumerate() {
        plain.push_str(if index % 2 == 1 { "code" } else { piece });
    }
    let mut without_links = String::new();
    for (index, piece) in plain.split("](").enumerate() {
        let shown = if index == 0 { piece } else { piece.split_once(')').map_or("", |(_, rest)| rest) };
        without_links.push_str(shown);
    }
    without_links.replace(['[', ']', '*'], "")
}

/// The sentences of the comments: blocks of lines with the same mark, read as Markdown.
fn comments(path: &str, code: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut reader = Reader::new(path);
    let mut open_mark = "";
    for (index, line) in code.lines().enumerate() {
        let line = line.trim_start();
        let mark = ["//!", "///", "//"].into_iter().find(|mark| line.starts_with(mark)).unwrap_or("");
        if mark != open_mark {
            reader.end_of_block();
            found.append(&mut reader.found);
            reader = Reader::new(path);
            open_mark = mark;
        }
        if !mark.is_empty() {
            reader.read(index + 1, line.trim_start_matches(mark));
        }
    }
    reader.end_of_block();
    found.append(&mut reader.found);
    found.iter_mut().for_each(|sentence| sentence.part = Part::Comment);
    found
}

/// The sentences of the string literals that a user can see.
fn messages(path: &str, code: &str) -> Vec<Sentence> {
    let is_message = |(line, text): &(usize, String)| {
        let around = code.lines().nth(line - 1).unwrap_or_default();
        let is_word =
            |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_alphabetic() || ",.:;'".contains(c));
        text.split_whitespace().filter(is_word).count() >= MESSAGE_WORDS_MIN
            && !FOR_PROGRAMMERS.iter().any(|word| around.contains(word))
    };
    let literals = literals(code).into_iter().filter(is_message);
    let lines = literals
        .flat_map(|(line, text)| text.split('\n').map(|text| (line, text.to_owned())).collect::<Vec<_>>());
    lines
        .flat_map(|literal| split(&[literal]))
        .map(|(line, text)| Sentence { path: path.to_owned(), line, part: Part::Message, text })
        .collect()
}

/// Every string literal with the line on which it starts. Values that are formatted into it stay as `{…}`.
fn literals(code: &str) -> Vec<(usize, String)> {
    let letters: Vec<char> = code.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < letters.len() {
        let rest = &letters[at..];
        let end = match rest {
            ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['\'', '\\', _, '\'', ..] => 4,
            ['\'', _, '\'', ..] => 3,
            ['r', '#', '"', ..] => raw_end(rest),
            ['"', ..] => {
                let (end, text) = quoted(rest);
                found.push((line, text));
                end
            }
            _ => 1,
        };
        line += rest[..end].iter().filter(|c| **c == '\n').count();
        at += end;
    }
    found
}

/// Where a raw literal ends. Its text is code or a file of another language, not a message.
fn raw_end(rest: &[char]) -> usize {
    let end = rest[3..].windows(2).position(|pair| pair == ['"', '#']);
    end.map_or(rest.len(), |end| end + 5)
}

/// Where a quoted literal ends, and its text. The escape of a line break becomes one; other escapes become a blank.
fn quoted(rest: &[char]) -> (usize, String) {
    let (mut text, mut at) = (String::new(), 1);
    while at < rest.len() && rest[at] != '"' {
        if rest[at] == '\\' {
            at += 1;
            match rest.get(at) {
                Some('"') => text.push('"'),
                Some('n') => text.push('\n'),
                _ => text.push(' '),
            }
        } else {
            text.push(rest[at]);
        }
        at += 1;
    }
    ((at + 1).min(rest.len()), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &[Sentence], expected: &[(usize, Part, &str)]) {
        let found: Vec<_> = found.iter().map(|it| (it.line, it.part, it.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_is_split_into_paragraphs_items_headings_and_cells() {
        let page = "# A title\n\nOne is here. Two goes\nover lines, e.g. this. `Three` too!\n\n* an item\n  goes on\n\
                    1. Numbered.\n\n| a cell | `x|y` and z |\n|---|---|\n";
        check(
            &of_page("x.md", page),
            &[
                (1, Part::Heading, "A title"),
                (3, Part::Paragraph, "One is here."),
                (3, Part::Paragraph, "Two goes over lines, e.g. this."),
                (4, Part::Paragraph, "`Three` too!"),
                (6, Part::Paragraph, "an item goes on"),
                (8, Part::Paragraph, "Numbered."),
                (10, Part::Cell, "a cell"),
                (10, Part::Cell, "`x|y` and z"),
            ],
        );
    }

    #[test]
    fn code_is_no_prose_and_ends_no_sentence() {
        check(&of_page("x.md", "```text\nNot this. Nor this.\n```\n"), &[]);
        let text = "Say `a. B` twice. And go.";
        check(
            &of_page("x.md", text),
            &[(1, Part::Paragraph, "Say `a. B` twice."), (1, Part::Paragraph, "And go.")],
        );
    }

    #[test]
    fn words_are_counted_without_markup() {
        let sentence = &of_page("x.md", "A **bold** [link here](a/long/path.md) and `some code` – yes.")[0];
        assert_eq!(sentence.words(), ["A", "bold", "link", "here", "and", "code", "yes."]);
    }

    #[test]
    fn a_source_gives_comments_and_messages_but_no_tests() {
        let source = "//! What it is.\n\n/// Doc one. Doc two.\nfn f() {\n    // Why so.\n    let c = '\"';\n    \
                      say(\"the switch {id} has \\\"gone\\\" away\", \"name\");\n    x.expect(\"this is for a programmer\");\n}\n\
                      #[cfg(test)]\nmod tests {\n    // Not this.\n}\n";
        check(
            &of_source("crates/x/src/a.rs", source),
            &[
                (1, Part::Comment, "What it is."),
                (3, Part::Comment, "Doc one."),
                (3, Part::Comment, "Doc two."),
                (5, Part::Comment, "Why so."),
                (7, Part::Message, "the switch {id} has \"gone\" away"),
            ],
        );
    }

    #[test]
    fn damaged_sources_end() {
        for source in ["\"no end", "\"\\", "r#\"no end", "'", "/", "// no line end"] {
            let _ = of_source("crates/x/src/a.rs", source);
        }
    }
}
