//! Checks that text is plain English: phrases, length of sentences, reading grade.
//!
//! ```text
//! pages, Rust sources ──→ violations() ──→ file, line, the sentence, and what to do
//! prose-exceptions.txt ─┘
//! ```
//!
//! In: plain data about the workspace, and the list of files that are not rewritten yet. Out: one line for each sentence that
//! breaks a rule. It cannot tell whether a sentence is true or easy to read; a person draws samples for that
//! (`cargo xtask sentences`).

use crate::sentences::{self, Part, Sentence};
use crate::tree::Workspace;

/// Phrases that a reader stumbles over, and what to write instead. They are compared in lower case, as whole words.
const PHRASES: [(&str, &str); 51] = [
    ("message that lies", "malformed message"),
    ("what was asked cannot be", "usage or configuration error"),
    ("brings packets up", "table-miss rule"),
    ("sends packets up", "table-miss rule, or: sends packet-ins"),
    ("hands up", "sends to the controller"),
    ("goes before", "overrides, or: precedes"),
    ("lets go of", "releases, or: disconnects"),
    ("let go of", "release, or: disconnect"),
    ("operator's word", "operator's approval"),
    ("at the word of", "approved by"),
    ("switch's word", "switch's report"),
    ("word for a digest", "signature of a digest"),
    ("says of itself", "declares"),
    ("what became of", "the result of"),
    ("what becomes of", "the result of"),
    ("comes to be", "is created"),
    ("came to be", "was created"),
    ("nobody vouches", "the package is not approved"),
    ("vouched for", "verified, or: approved"),
    ("vouches for", "verifies, or: approves"),
    ("whoever", "name who: the operator, the app, users who"),
    ("whose it is", "its owner"),
    ("whose they are", "their owner"),
    ("is told so", "is notified"),
    ("and say so", "and state it"),
    ("an own", "its own"),
    ("is no kind of", "is not a valid kind of"),
    ("by a word", "with one option"),
    ("wants to be", "must be"),
    ("what it lacks is refused", "what it is not granted is refused"),
    ("of their own accord", "automatically"),
    ("of its own accord", "automatically"),
    ("as it lies", "unchanged"),
    ("anew", "again"),
    ("deputy", "indirect effect"),
    ("deputies", "indirect effects"),
    ("clerk", "the thread that verifies packages"),
    ("errand", "task"),
    ("choosy", "selective, or: strict"),
    ("deeds", "effects"),
    ("hears of", "receives"),
    ("hear of", "receive"),
    ("as often as one likes", "any number of times"),
    ("there is no such thing as", "does not exist"),
    ("that there is", "remove it, or: that exists"),
    ("for nothing", "without effect"),
    ("none of the kind", "nothing similar"),
    ("nothing of the kind", "nothing similar"),
    ("no other than", "only"),
    ("in vain", "without effect"),
    ("without a word", "without a message"),
];

/// Files that quote old phrases in order to replace them.
const QUOTE_PHRASES: [&str; 3] = ["STYLE.md", "docs/glossary.md", "xtask/src/prose.rs"];

/// How many words a sentence may have. A longer one has two ideas.
const WORDS_MAX: usize = 32;

/// The reading grade that a page may have: the automated readability index, which counts letters, words and sentences.
const GRADE_MAX: f64 = 10.0;

/// A page with fewer words has no grade: a single sentence would decide it.
const GRADED_WORDS_MIN: usize = 100;

/// What a code span or a name counts in letters: as an average word, since nobody can choose a shorter one.
const NAME_LETTERS: usize = 5;

/// Every breach in pages and sources, except in those that `exceptions` lists.
pub fn violations(workspace: &Workspace, exceptions: &str) -> Vec<String> {
    let exceptions: Vec<&str> =
        exceptions.lines().filter(|it| !it.starts_with('#') && !it.is_empty()).collect();
    let is_checked = |path: &str| !exceptions.iter().any(|exception| covers(exception, path));
    let mut found = Vec::new();
    for page in workspace.pages.iter().filter(|page| is_checked(&page.path)) {
        let sentences = sentences::of_page(&page.path, &page.text);
        found.extend(sentences.iter().flat_map(breaches));
        found.extend(too_hard(&page.path, &sentences));
    }
    let files = workspace.members.iter().flat_map(|member| &member.files);
    for file in files.filter(|file| is_checked(&file.path)) {
        found.extend(sentences::of_source(&file.path, &file.text).iter().flat_map(breaches));
    }
    found
}

/// Whether an exception covers a path: it is the path, or has a `*` for any text in it.
fn covers(exception: &str, path: &str) -> bool {
    match exception.split_once('*') {
        Some((start, end)) => path.starts_with(start) && path.ends_with(end),
        None => path == exception,
    }
}

/// What is wrong with one sentence.
fn breaches(sentence: &Sentence) -> Vec<String> {
    let place = format!("{}:{}", sentence.path, sentence.line);
    let mut found = Vec::new();
    if !QUOTE_PHRASES.contains(&sentence.path.as_str()) {
        let text = spaced(&sentence.words().join(" "));
        let is_in = |phrase: &str| text.contains(&format!(" {phrase} "));
        for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| is_in(phrase)) {
            found.push(format!("{place}: say \"{better}\" instead of \"{phrase}\": {}", sentence.text));
        }
    }
    let words = sentence.words().len();
    if words > WORDS_MAX {
        found.push(format!(
            "{place}: {words} words, at most {WORDS_MAX}: split the sentence: {}",
            sentence.text
        ));
    }
    found
}

/// In lower case, with one blank around each word and without punctuation, so that a phrase is found across marks.
fn spaced(text: &str) -> String {
    let kept: String = text
        .to_lowercase()
        .chars()
        .map(|letter| if letter.is_alphanumeric() || letter == '\'' { letter } else { ' ' })
        .collect();
    format!(" {} ", kept.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The reading grade of a page, when it is above the limit.
fn too_hard(path: &str, sentences: &[Sentence]) -> Option<String> {
    let prose: Vec<&Sentence> = sentences.iter().filter(|it| it.part == Part::Paragraph).collect();
    let grade = grade(&prose)?;
    let longest = prose.iter().max_by_key(|it| it.words().len())?;
    (grade > GRADE_MAX).then(|| {
        format!(
            "{path}: reading grade {grade:.1}, at most {GRADE_MAX}: use shorter sentences and words. Its longest sentence is on line {}: {}",
            longest.line, longest.text
        )
    })
}

/// The automated readability index; none for a page with too few words.
fn grade(prose: &[&Sentence]) -> Option<f64> {
    let (mut letters, mut words) = (0, 0);
    for sentence in prose {
        for (index, word) in sentence.words().iter().enumerate() {
            let is_name = word == "code" || (index > 0 && word.starts_with(char::is_uppercase));
            letters +=
                if is_name { NAME_LETTERS } else { word.chars().filter(|c| c.is_alphanumeric()).count() };
            words += 1;
        }
    }
    if words < GRADED_WORDS_MIN {
        return None;
    }
    let (letters, words, sentences) = (letters as f64, words as f64, prose.len() as f64);
    Some(4.71 * letters / words + 0.5 * words / sentences - 21.43)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Member, Page, SourceFile};

    /// What the check says about a page, with its beginning removed.
    fn found(text: &str, exceptions: &str) -> Vec<String> {
        let page = Page { path: "docs/page.md".to_owned(), text: text.to_owned() };
        violations(&Workspace { pages: vec![page], ..Workspace::default() }, exceptions)
    }

    #[test]
    fn a_phrase_is_named_with_its_line_and_what_to_write() {
        let text = "Fine.\n\nA message\nthat lies, ends it.\n";
        let said = "docs/page.md:3: say \"malformed message\" instead of \"message that lies\": A message that lies, ends it.";
        assert_eq!(found(text, ""), [said]);
        assert_eq!(found("| cell | what becomes of it |\n", "").len(), 1);
        assert_eq!(found("```text\na message that lies\n```\n", ""), Vec::<String>::new());
        assert_eq!(found("The clerks of renewal.\n", ""), Vec::<String>::new());
    }

    #[test]
    fn a_long_sentence_is_named() {
        let long = format!("{}end.", "word ".repeat(WORDS_MAX));
        assert!(
            found(&long, "")[0].starts_with("docs/page.md:1: 33 words, at most 32: split"),
            "{:?}",
            found(&long, "")
        );
        assert_eq!(found(long.trim_start_matches("word "), ""), Vec::<String>::new());
    }

    #[test]
    fn a_page_of_long_words_is_too_hard_and_one_of_short_words_is_not() {
        let hard =
            "Comprehensive organisational considerations necessitate interdepartmental communication. "
                .repeat(20);
        assert!(found(&hard, "")[0].contains("reading grade"), "{:?}", found(&hard, ""));
        assert_eq!(found(&"The app asks. The kernel gives an answer. ".repeat(20), ""), Vec::<String>::new());
        assert_eq!(found("Comprehensive organisational considerations.", ""), Vec::<String>::new());
        let names = "We use Comprehensive Organisational Considerations and `interdepartmental::communication` a lot. ";
        assert_eq!(found(&names.repeat(20), ""), Vec::<String>::new());
    }

    #[test]
    fn an_exception_covers_a_file_or_all_that_a_star_stands_for() {
        let text = "A message that lies.";
        assert_eq!(found(text, "# not yet\ndocs/*.md\n"), Vec::<String>::new());
        assert_eq!(found(text, "docs/page.md"), Vec::<String>::new());
        assert_eq!(found(text, "docs/\ndocs/*.rs\n").len(), 1);
    }

    #[test]
    fn sources_are_checked_too() {
        let text = "//! A message that lies.\nfn f() { say(\"what was asked cannot be done here\") }\n";
        let file = SourceFile { path: "crates/x/src/lib.rs".to_owned(), text: text.to_owned() };
        let member = Member { files: vec![file], ..Member::default() };
        let workspace = Workspace { members: vec![member], ..Workspace::default() };
        assert_eq!(violations(&workspace, "").len(), 2);
        assert_eq!(violations(&workspace, "crates/x/*.rs").len(), 0);
    }
}
