//! Parts of figures in few words, for the code of experiments.
//!
//! In: labels and values. Out: parts. It draws nothing.

use super::{Axis, Content, LineKind, Panel, Point, Scale, Series, Shape, Style, TextLine};

/// An axis.
pub fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

/// A series of points.
pub fn series(name: &str, shape: Shape, style: Style, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), shape, style, points }
}

/// A panel.
pub fn panel(title: impl Into<String>, content: Content) -> Panel {
    Panel { title: title.into(), content }
}

/// A line of a panel of text.
pub fn line(text: impl Into<String>, kind: LineKind) -> TextLine {
    TextLine { text: text.into(), kind }
}

/// What a paper says at a place of its text, as a panel.
pub fn quote(paper: &str, place: &str, says: &[String]) -> Panel {
    let mut lines = vec![line(format!("{paper}, {place}:"), LineKind::Heading)];
    lines.extend(says.iter().map(|text| line(text, LineKind::Plain)));
    panel("The paper", Content::Text(lines))
}
