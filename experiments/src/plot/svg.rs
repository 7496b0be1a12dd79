//! SVG, element by element.
//!
//! In: shapes with numbers. Out: text, of which every number has at most two decimals, so that the same figure gives the same bytes.

use std::fmt::Write;

/// What is written so far.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Where a text stands about its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font {
    pub size: f64,
    pub bold: bool,
    pub mono: bool,
    pub colour: &'static str,
}

impl Font {
    pub(super) const fn of(size: f64) -> Font {
        Font { size, bold: false, mono: false, colour: INK }
    }

    /// About how wide so many characters are: the mean of DejaVu Sans, and of its monospaced kin.
    pub(super) fn width_of(self, text: &str) -> f64 {
        let each = if self.mono { 0.602 } else { 0.58 };
        text.chars().count() as f64 * self.size * each
    }
}

pub(super) const INK: &str = "#1a1a1a";
pub(super) const FAINT: &str = "#d9d9d9";

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg { body: String::new(), width, height }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.push(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" stroke-width=\"{}\"{dash}/>",
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1),
            n(width)
        ));
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, dash: &str) {
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
        self.push(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
            points.join(" ")
        ));
    }

    pub(super) fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, stroke: &str) {
        self.push(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
            n(at.0),
            n(at.1),
            n(size.0),
            n(size.1)
        ));
    }

    /// A closed shape.
    pub(super) fn polygon(&mut self, points: &[(f64, f64)], fill: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
        self.push(format_args!("<polygon points=\"{}\" fill=\"{fill}\"/>", points.join(" ")));
    }

    pub(super) fn circle(&mut self, at: (f64, f64), radius: f64, fill: &str) {
        self.push(format_args!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\"/>",
            n(at.0),
            n(at.1),
            n(radius)
        ));
    }

    pub(super) fn text(&mut self, at: (f64, f64), font: Font, anchor: Anchor, text: &str) {
        self.turned_text(at, font, anchor, text, false);
    }

    /// Upwards, for the label of an axis.
    pub(super) fn text_upwards(&mut self, at: (f64, f64), font: Font, text: &str) {
        self.turned_text(at, font, Anchor::Middle, text, true);
    }

    fn turned_text(&mut self, at: (f64, f64), font: Font, anchor: Anchor, text: &str, upwards: bool) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (n(at.0), n(at.1));
        let turn = if upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        let weight = if font.bold { " font-weight=\"bold\"" } else { "" };
        let family = if font.mono { " font-family=\"DejaVu Sans Mono, Consolas, monospace\"" } else { "" };
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{weight}{family}{turn} xml:space=\"preserve\">{}</text>",
            n(font.size),
            font.colour,
            escaped(text)
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    pub(super) fn finish(self) -> String {
        let Svg { body, width, height } = self;
        let (width, height) = (n(width), n(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

/// A number with at most two decimals. What is no number is nowhere to be seen, at 0.
fn n(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that XML takes: what XML 1.0 has no character for is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_or_no_text_of_xml_does_no_harm() {
        for (value, expected) in [
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (-0.001, "0"),
            (0.0, "0"),
            (2.5, "2.5"),
            (100.0, "100"),
            (1.0 / 3.0, "0.33"),
        ] {
            assert_eq!(n(value), expected);
        }
        assert_eq!(escaped("<a & \"b\">\u{1b}[0m\n"), "&lt;a &amp; &quot;b&quot;&gt;[0m");
    }
}
