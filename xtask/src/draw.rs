//! `cargo xtask sentences --seed N --count N`: prints sentences drawn at random from pages, messages and comments.
//!
//! In: a seed and a count. Out: for each of the three sources that many sentences, with file and line. The same seed on
//! the same tree gives the same sentences. It never judges them: a person reads them.

use crate::sentences::{self, Part, Sentence};
use crate::tree::{self, Workspace};
use std::process::ExitCode;

/// A sentence with fewer words is a label.
const WORDS_MIN: usize = 4;

/// What to draw from, and the heading under which it is printed.
const SOURCES: [(&str, &[Part]); 3] = [
    ("docs", &[Part::Paragraph, Part::Cell]),
    ("messages", &[Part::Message]),
    ("comments", &[Part::Comment]),
];

/// `cargo xtask sentences`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (seed, count) = options(arguments)?;
    print!("{}", drawn(&tree::read()?, seed, count));
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &[String]) -> Result<(u64, usize), String> {
    let (mut seed, mut count) = (1, 20);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let mut number = || {
            let value = rest.next().ok_or(format!("`{option}` needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("`{option} {value}`: not a number"))
        };
        match option.as_str() {
            "--seed" => seed = number()?,
            "--count" => count = usize::try_from(number()?).map_err(|error| error.to_string())?,
            other => return Err(format!("`sentences` has the options --seed and --count, not `{other}`")),
        }
    }
    Ok((seed, count))
}

fn drawn(workspace: &Workspace, seed: u64, count: usize) -> String {
    let pages = workspace.pages.iter().flat_map(|page| sentences::of_page(&page.path, &page.text));
    let files = workspace.members.iter().flat_map(|member| &member.files);
    let sources = files.flat_map(|file| sentences::of_source(&file.path, &file.text));
    let mut all: Vec<Sentence> = pages.chain(sources).collect();
    all.retain(|sentence| sentence.words().len() >= WORDS_MIN);
    let mut text = String::new();
    for (name, parts) in SOURCES {
        let mut pool: Vec<&Sentence> = all.iter().filter(|it| parts.contains(&it.part)).collect();
        text += &format!("{name}: {} of {} sentences, seed {seed}\n", count.min(pool.len()), pool.len());
        let mut random = Random(seed);
        for number in 1..=count.min(pool.len()) {
            let sentence = pool.swap_remove(random.below(pool.len()));
            text += &format!("{number:3}. {}\n     {}:{}\n", sentence.text, sentence.path, sentence.line);
        }
        text.push('\n');
    }
    text
}

/// SplitMix64: enough to draw, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Page;

    fn page(sentences: usize) -> Workspace {
        let text = (0..sentences).map(|n| format!("Sentence {n} is right here. ")).collect();
        Workspace { pages: vec![Page { path: "x.md".to_owned(), text }], ..Workspace::default() }
    }

    #[test]
    fn a_seed_draws_the_same_sentences_and_none_twice() {
        let all = page(50);
        assert_eq!(drawn(&all, 7, 20), drawn(&all, 7, 20));
        assert_ne!(drawn(&all, 7, 20), drawn(&all, 8, 20));
        let everything = drawn(&all, 7, 60);
        assert!(
            (0..50).all(|n| everything.matches(&format!("Sentence {n} is")).count() == 1),
            "{everything}"
        );
    }

    #[test]
    fn options_are_numbers() {
        let options = |words: &str| options(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(options("--seed 3 --count 5"), Ok((3, 5)));
        assert!(options("--seed").is_err() && options("--seed x").is_err() && options("--many 5").is_err());
    }
}
