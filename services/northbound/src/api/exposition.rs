//! The text format of Prometheus: the head of a metric, labels, samples.
//!
//! In: names and values. Out: text. Label values can come from switches, so they are escaped.

use std::fmt::{Display, Write};

/// The head of a metric.
pub fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// One sample.
pub fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl Display) {
    text.push_str(name);
    for (index, (label, value)) in labels.iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        let _ = write!(text, "{label}=\"");
        escaped(text, value);
        text.push('"');
    }
    if !labels.is_empty() {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

fn escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_line() {
        let check = |labels: &[(&str, &str)], expected: &str| {
            let mut text = String::new();
            sample(&mut text, "a_total", labels, 7);
            assert_eq!(text, expected);
        };
        check(&[], "a_total 7\n");
        check(&[("x", "1"), ("y", "")], "a_total{x=\"1\",y=\"\"} 7\n");
        check(&[("x", "a\"b\\c\nd")], "a_total{x=\"a\\\"b\\\\c\\nd\"} 7\n");
    }
}
