//! Figures of panels side by side. Each panel is a chart, a timeline or lines of text. A heading is above, notes are
//! below.
//!
//! ```text
//!   Figure (what is to be seen) ──draw──> SVG, as text
//! ```
//!
//! The colours are those of Okabe and Ito (2008), which are distinct with any colour vision. Series also differ in
//! dashes and markers. It never reads a file, and the same figure always gives the same bytes.

mod chart;
mod draw;
mod scale;
mod svg;

pub use scale::Scale;

/// What is to be seen.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Above all.
    pub title: String,
    /// Beside each other, from the left.
    pub panels: Vec<Panel>,
    /// Below all, a line each.
    pub notes: Vec<String>,
}

/// A part of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What is in it.
    pub content: Content,
}

/// What a panel holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbers over numbers, or over names.
    Chart(Chart),
    /// What happened when, row by row.
    Timeline(Timeline),
    /// Lines of text.
    Text(Vec<TextLine>),
}

/// Two axes and what lies between them.
#[derive(Clone, Debug)]
pub struct Chart {
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
    /// Lines through the whole panel, each with a word.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it counts, and in which unit.
    pub label: String,
    /// Its scale: even, by doubling, by factors of ten, or names.
    pub scale: Scale,
}

/// What belongs together.
#[derive(Clone, Debug)]
pub struct Series {
    /// As the legend calls it.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Which of the colours, dashes and markers.
    pub style: Style,
    /// Where. For a scale of names, x is the name's place from 0.
    pub points: Vec<Point>,
}

/// A point, and what it varied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The least and the most that was seen, where there were several.
    pub spread: Option<(f64, f64)>,
}

impl Point {
    /// One that was seen once.
    pub const fn at(x: f64, y: f64) -> Point {
        Point { x, y, spread: None }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line, with markers where there are few points.
    Line,
    /// Bars, beside those of other series at the same x.
    Bars,
}

/// Colour, dash and marker: five that are easy to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// What the design is: blue, solid, round.
    Ours,
    /// The other way in which we do it: green, long dashes, square.
    Other,
    /// What the baseline does: vermilion, dashes, triangle.
    Baseline,
    /// What the paper says: black, dotted, diamond.
    Paper,
    /// What it is held against: purple, solid, cross.
    Reference,
}

/// A line through the whole panel.
#[derive(Clone, Debug)]
pub enum Mark {
    /// At a height.
    Horizontal(f64, String),
    /// At a place.
    Vertical(f64, String),
}

/// What happened when.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// What time is counted in and from.
    pub x: Axis,
    /// One below the other.
    pub rows: Vec<Row>,
    /// As in a chart; those at a height are left out.
    pub marks: Vec<Mark>,
}

/// A row of a timeline.
#[derive(Clone, Debug)]
pub struct Row {
    /// To its left.
    pub name: String,
    /// When, and what.
    pub ticks: Vec<(f64, Tick)>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// It was answered, as it should be: blue, full height.
    Good,
    /// It was not answered, as it should not be: grey, half height.
    Held,
    /// Answered though it should not be, or not answered though it should: vermilion, with a cross.
    Bad,
}

/// A line of text.
#[derive(Clone, Debug)]
pub struct TextLine {
    /// The text.
    pub text: String,
    /// What it is.
    pub kind: LineKind,
}

/// What a line of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Somebody's words.
    Plain,
    /// A heading.
    Heading,
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
}

impl Figure {
    /// As SVG 1.1.
    pub fn to_svg(&self) -> String {
        draw::figure(self)
    }
}
