//! The forms of values: how each is read from TOML, and how it is written.
//!
//! In: a value of the tree, or a number, word or table. Out: the other. It knows no key.

use super::node::{Kind, Node};
use super::place::Place;
use crate::curve::{BadCurve, Curve};
use crate::quantiles::{BadQuantiles, Quantiles};
use flow::Field;
use std::ops::RangeInclusive;

/// Why a value is not of its form: the place, and the end of the sentence that starts with the key.
pub(super) type Refused = (Place, String);

/// A value that is read and written.
pub(super) trait Form {
    /// Takes the value from the tree.
    fn read(&mut self, node: &Node) -> Result<(), Refused>;
    /// The value as TOML. None: it is not there.
    fn written(&self) -> Option<String>;
    /// What a reader of the file has to write.
    fn expected(&self) -> String;
}

fn refused<T>(node: &Node, expected: &str) -> Result<T, Refused> {
    Err((node.at, format!("is {}; expected {expected}", node.shown())))
}

/// A number as TOML: without a fraction if it has none, so that people see 1500 and not 1500.0.
pub(super) fn number_text(number: f64) -> String {
    match number {
        number if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        // In TOML's words, so that the reader names it.
        number if number.is_nan() => "nan".to_owned(),
        number => format!("{number:?}"),
    }
}

pub(super) fn text_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A number within a range.
pub(super) struct Number<'a>(pub(super) &'a mut f64, pub(super) RangeInclusive<f64>);

impl Form for Number<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        match node.number() {
            Some(number) if self.1.contains(&number) => {
                *self.0 = number + 0.0;
                Ok(())
            }
            _ => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        Some(number_text(*self.0))
    }

    fn expected(&self) -> String {
        format!("a number from {} to {}", self.1.start(), self.1.end())
    }
}

/// A whole number within a range.
pub(super) struct Count<'a, N>(pub(super) &'a mut N, pub(super) RangeInclusive<N>);

impl<N: Copy + TryFrom<i64> + Into<i64> + PartialOrd> Form for Count<'_, N> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        match node.integer().and_then(|number| N::try_from(number).ok()) {
            Some(number) if self.1.contains(&number) => {
                *self.0 = number;
                Ok(())
            }
            _ => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        let number: i64 = (*self.0).into();
        Some(number.to_string())
    }

    fn expected(&self) -> String {
        let (low, high): (i64, i64) = ((*self.1.start()).into(), (*self.1.end()).into());
        format!("a whole number from {low} to {high}")
    }
}

/// A text of a bounded length in one line.
pub(super) struct Text<'a>(pub(super) &'a mut String, pub(super) usize);

impl Form for Text<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        match &node.kind {
            Kind::Text(text) if text.chars().count() > self.1 => Err((
                node.at,
                format!("has {} characters; expected at most {}", text.chars().count(), self.1),
            )),
            Kind::Text(text) if !text.chars().any(char::is_control) => {
                text.clone_into(self.0);
                Ok(())
            }
            _ => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        Some(text_text(self.0))
    }

    fn expected(&self) -> String {
        format!("a text in one line of at most {} characters", self.1)
    }
}

/// The name of a profile.
pub(super) struct Name<'a>(pub(super) &'a mut String);

impl Form for Name<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
        match &node.kind {
            Kind::Text(text) if (1..=64).contains(&text.len()) && text.chars().all(of_a_name) => {
                text.clone_into(self.0);
                Ok(())
            }
            _ => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        Some(text_text(self.0))
    }

    fn expected(&self) -> String {
        "a name of at most 64 lower-case letters, digits, dots and hyphens".to_owned()
    }
}

/// `true` or `false`.
pub(super) struct Truth<'a>(pub(super) &'a mut bool);

impl Form for Truth<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        match node.kind {
            Kind::Truth(truth) => {
                *self.0 = truth;
                Ok(())
            }
            _ => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn expected(&self) -> String {
        "true or false".to_owned()
    }
}

/// The words of a choice, with their meanings.
pub(super) type Words<T> = &'static [(&'static str, T)];

fn list_of_words<T>(words: Words<T>) -> String {
    words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// One of some words.
pub(super) struct Word<'a, T: 'static>(pub(super) &'a mut T, pub(super) Words<T>);

impl<T: Copy + PartialEq> Form for Word<'_, T> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let meant = match &node.kind {
            Kind::Text(text) => self.1.iter().find(|(word, _)| word == text),
            _ => None,
        };
        match meant {
            Some((_, meaning)) => {
                *self.0 = *meaning;
                Ok(())
            }
            None => refused(node, &self.expected()),
        }
    }

    fn written(&self) -> Option<String> {
        self.1.iter().find(|(_, meaning)| meaning == self.0).map(|(word, _)| format!("{word:?}"))
    }

    fn expected(&self) -> String {
        format!("one of {}", list_of_words(self.1))
    }
}

/// A list of some words, each at most once.
pub(super) struct WordList<'a, T: 'static>(pub(super) &'a mut Vec<T>, pub(super) Words<T>, pub(super) usize);

impl<T: Copy + PartialEq> Form for WordList<'_, T> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let Kind::List(items) = &node.kind else { return refused(node, &self.expected()) };
        self.0.clear();
        for item in items {
            let mut meaning = self.1[0].1;
            Word(&mut meaning, self.1).read(item)?;
            if self.0.contains(&meaning) {
                return Err((item.at, format!("has {} twice", item.shown())));
            }
            self.0.push(meaning);
        }
        if self.0.len() > self.2 {
            return Err((node.at, format!("has {} items; expected at most {}", self.0.len(), self.2)));
        }
        Ok(())
    }

    fn written(&self) -> Option<String> {
        let word = |item: &T| self.1.iter().find(|(_, meaning)| meaning == item).map(|(word, _)| word);
        let words: Vec<_> = self.0.iter().filter_map(word).map(|word| format!("{word:?}")).collect();
        Some(format!("[{}]", words.join(", ")))
    }

    fn expected(&self) -> String {
        format!("a list of at most {} of {}", self.2, list_of_words(self.1))
    }
}

/// Names of match fields.
pub(super) struct Fields<'a>(pub(super) &'a mut Vec<Field>);

impl Form for Fields<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let Kind::List(items) = &node.kind else { return refused(node, &self.expected()) };
        self.0.clear();
        for item in items {
            let field = match &item.kind {
                Kind::Text(text) => Field::from_name(text),
                _ => None,
            };
            match field {
                Some(field) if self.0.contains(&field) => {
                    return Err((item.at, format!("has {} twice", item.shown())));
                }
                Some(field) => self.0.push(field),
                None => return refused(item, "a match field of OpenFlow 1.3, such as \"eth_dst\""),
            }
        }
        Ok(())
    }

    fn written(&self) -> Option<String> {
        let names: Vec<_> = self.0.iter().map(|field| format!("{:?}", field.name())).collect();
        Some(format!("[{}]", names.join(", ")))
    }

    fn expected(&self) -> String {
        "a list of match fields, such as [\"eth_dst\"]".to_owned()
    }
}

/// A list of pairs of numbers.
fn pairs(node: &Node, expected: &str) -> Result<Vec<(f64, f64)>, Refused> {
    let Kind::List(items) = &node.kind else { return refused(node, expected) };
    let pair = |item: &Node| {
        let Kind::List(two) = &item.kind else { return refused(item, expected) };
        match two.as_slice() {
            [left, right] => match (left.number(), right.number()) {
                (Some(left), Some(right)) => Ok((left, right)),
                (None, _) => refused(left, expected),
                (_, None) => refused(right, expected),
            },
            _ => Err((item.at, format!("has a point of {} values; expected {expected}", two.len()))),
        }
    };
    items.iter().map(pair).collect()
}

/// The place of a point in a list; the list's own if it has no such point.
fn place_of_point(node: &Node, index: usize) -> Place {
    match &node.kind {
        Kind::List(items) => items.get(index).map_or(node.at, |item| item.at),
        _ => node.at,
    }
}

fn pairs_text(points: impl Iterator<Item = (f64, f64)>) -> String {
    let pairs: Vec<_> =
        points.map(|(left, right)| format!("[{}, {}]", number_text(left), number_text(right))).collect();
    // A line for each eight points.
    let lines: Vec<_> = pairs.chunks(8).map(|chunk| chunk.join(", ")).collect();
    format!("[{}]", lines.join(",\n  "))
}

const EXPECTED_QUANTILES: &str =
    "a number of µs, or points [probability, µs] from [0, minimum] to [1, maximum]";

/// A quantile table, or one number for a constant.
pub(super) struct Table<'a>(pub(super) &'a mut Quantiles);

impl Form for Table<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let points = match node.number() {
            Some(number) => vec![(0.0, number), (1.0, number)],
            None => pairs(node, EXPECTED_QUANTILES)?,
        };
        *self.0 = Quantiles::new(&points).map_err(|bad| match (node.number(), bad) {
            (Some(_), _) => (node.at, format!("is {}; expected 0 to a day, in µs", node.shown())),
            (None, bad) => {
                let index = match bad {
                    BadQuantiles::ProbabilityDoesNotRise(index, ..)
                    | BadQuantiles::ValueFalls(index, ..)
                    | BadQuantiles::Value(index, _) => index,
                    BadQuantiles::NoMaximum(_) => points.len() - 1,
                    BadQuantiles::Count(_) | BadQuantiles::NoMinimum(_) => 0,
                };
                (place_of_point(node, index), format!("is no quantile table: {bad}"))
            }
        })?;
        Ok(())
    }

    fn written(&self) -> Option<String> {
        let ends = self.0.points().len() == 2;
        Some(match self.0.as_constant() {
            Some(value) if ends => number_text(value),
            _ => pairs_text(self.0.points()),
        })
    }

    fn expected(&self) -> String {
        EXPECTED_QUANTILES.to_owned()
    }
}

const EXPECTED_CURVE: &str = "a number of µs, or points [rules, µs]";

/// A curve by occupancy, or one number for a constant.
pub(super) struct Cost<'a>(pub(super) &'a mut Curve);

impl Form for Cost<'_> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let points = match node.number() {
            Some(number) => vec![(0.0, number)],
            None => pairs(node, EXPECTED_CURVE)?,
        };
        *self.0 = Curve::new(&points).map_err(|bad| {
            let index = match bad {
                BadCurve::RulesDoNotRise(index, ..)
                | BadCurve::Rules(index, _)
                | BadCurve::Cost(index, _) => index,
                BadCurve::Count(_) => 0,
            };
            (place_of_point(node, index), format!("is no curve: {bad}"))
        })?;
        Ok(())
    }

    fn written(&self) -> Option<String> {
        let points = self.0.points();
        Some(match points {
            [(rules, cost)] if *rules == 0.0 => number_text(*cost),
            _ => pairs_text(points.iter().copied()),
        })
    }

    fn expected(&self) -> String {
        EXPECTED_CURVE.to_owned()
    }
}

/// A value that may be left out. The form is that of the value when it is there.
pub(super) struct Maybe<'a, T> {
    pub(super) slot: &'a mut Option<T>,
    pub(super) form: for<'b> fn(&'b mut T) -> Box<dyn Form + 'b>,
}

impl<T: Clone + Default> Form for Maybe<'_, T> {
    fn read(&mut self, node: &Node) -> Result<(), Refused> {
        let mut value = T::default();
        (self.form)(&mut value).read(node)?;
        *self.slot = Some(value);
        Ok(())
    }

    fn written(&self) -> Option<String> {
        let mut value = self.slot.clone()?;
        (self.form)(&mut value).written()
    }

    fn expected(&self) -> String {
        (self.form)(&mut T::default()).expected()
    }
}
